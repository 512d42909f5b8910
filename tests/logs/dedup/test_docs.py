"""The examples of docstrings run, and the tables of docs/dedup.md say what the code says."""

import doctest

import pytest

import goodgain.formats.urls
import goodgain.logs.dedup.deduplication
import goodgain.logs.dedup.document_types
from goodgain.logs.dedup.document_types import PARENT, TYPES
from goodgain.logs.dedup.verification import RULE_NAMES
from tests.support.tables import ROOT

PAGE = (ROOT / "docs" / "dedup.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "module", [goodgain.logs.dedup.deduplication, goodgain.logs.dedup.document_types, goodgain.formats.urls]
)
def test_the_examples_of_docstrings_run(module: object) -> None:
    outcome = doctest.testmod(module)  # type: ignore[arg-type] # they are modules
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_every_rule_has_its_row() -> None:
    assert sorted(first for first, *_ in table_rows("| rule | joins |")) == sorted(RULE_NAMES)


def test_the_table_of_types_says_what_the_code_says() -> None:
    urls = {
        "no": "nothing",
        "yes": "item",
        "yes, except a start page's URL": "item beyond the start page",
    }
    shown = {name: (ids, fields, urls[url]) for name, ids, fields, url in table_rows("| type | item ids |")}
    assert shown == {
        name: (", ".join(row.item_ids), ", ".join(row.reject), row.url)
        for name, row in TYPES.items()
        if row is not PARENT
    }


def table_rows(header: str) -> list[list[str]]:
    """Return the cells of the rows of the page's table with this header, without backticks."""
    rows = PAGE.split(header)[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in rows]
