"""docs/classic_measures.md: its table says what the declarations say, and its examples print what they show.

python tests/measures/test_classic_measures_page.py      # writes the table into the page anew: read the diff
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goodgain.measures.declaration import Declaration
from goodgain.measures.names import RANKED_MEASURES, parse_measure

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "classic_measures.md"
_TABLE = re.compile(
    r"(<!-- the (\w+) measures, by tests/measures/test_classic_measures_page\.py -->\n)(.*?)(?=<!-- end of the table -->)",
    re.DOTALL,
)


def write_table(family: str) -> str:
    rows = [
        "| measure | better | parameters | what it is | as in |",
        "|---|---|---|---|---|",
        *(write_row(declared) for declared in DECLARED if declared.family == family),
    ]
    return "\n".join(rows) + "\n"


def write_row(declared: Declaration) -> str:
    parameters = ", ".join(f"`{name}`" for name in declared.parameters)
    what = f"{declared.title}: {declared.definition}"
    if declared.remark:
        what += f". Note: {declared.remark}"
    cells = (f"`{declared.usage}`", declared.arrow, parameters, what, declared.source)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|').replace('*', chr(92) + '*') for cell in cells)} |"


DECLARED = list(RANKED_MEASURES.values())


def write_page(page: str) -> str:
    return _TABLE.sub(lambda found: found[1] + write_table(found[2]), page)


def test_the_table_says_what_the_declarations_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert {found[2] for found in _TABLE.finditer(page)} == {declared.family for declared in DECLARED}
    assert write_page(page) == page


def test_the_examples_print_what_the_page_shows() -> None:
    from tests.evaluation.test_engines_docs import run_examples  # not found where this file runs as a script

    run_examples(re.findall(r"```pycon\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL))


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: declared.name)
def test_every_measure_in_the_table_is_computed_as_it_is_spelled(declared: Declaration) -> None:
    spelled = declared.usage.replace("[", "").replace("]", "").replace("@k", "@10").replace("@recall", "@0.5")
    name, at, cutoff = spelled.partition("@")
    rel = "(rel=1)" if "rel" in declared.parameters else ""
    assert declared.computes(parse_measure(f"{name}{rel}{at}{cutoff}"))


if __name__ == "__main__":
    PAGE.write_text(write_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
