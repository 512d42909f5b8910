"""Results, options, and the documents that they become: each case of cases.json is a rule.

`gives` has a text for each result: a letter, equal for one document, then the rule that joined it, its confidence and the row
it repeats. `summary` are the lines of the summary. `documents` are names in order; a list stands for one of several, `text:`
for the name of a text. `earlier` are results with their documents, which `known` renames. `told` are the rules of the pairs
that an explanation of all documents shows.

    python -m tests.logs.dedup.test_cases

writes `gives` and `summary` of all cases. Read the diff: each changed decision has its reason in the commit message.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import warnings
from pathlib import Path
from string import Template
from typing import Any

import polars as pl
import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.dedup import Deduplication, Summary, deduplicate
from tests.logs.dedup.writing import fill, frame, result
from tests.logs.traces.test_cases import lay_out

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))


def make_frame(rows: list[dict[str, Any]], query_id: str = "q") -> pl.DataFrame:
    return frame([result(**{name: fill(value) for name, value in row.items()}) for row in rows], query_id)


def deduplicate_case(case: dict[str, Any], folder: Path) -> Deduplication:
    for name, text in case.get("files", {}).items():
        (folder / name).write_bytes(text.encode("latin-1"))
    case = json.loads(Template(json.dumps(case)).safe_substitute(here=folder))
    options = case.get("options", {})
    if "earlier" in case:
        known = deduplicate(make_frame(case["earlier"], case.get("earlier query", "q"))).frame
        options["earlier"] = known.with_columns(document=pl.Series(case.get("known", known["document"])))
    return deduplicate(make_frame(case["rows"]), **options)


def describe_decisions(frame: pl.DataFrame, folder: Path) -> list[str]:
    """Describe each row: the letter of its document, and why and of which row it is a repeat. `folder` is written `$here`."""
    letters = dict(zip(frame["document"].unique(maintain_order=True), "abcdefgh", strict=False))
    lines = []
    for document, row, rule, confidence in frame.select("document", "duplicate_of", "rule", "confidence").iter_rows():
        reason = "" if row is None else f" {rule} {confidence:.4g} of {row}"
        lines.append(letters[document] + reason.replace(str(folder), "$here"))
    return lines


def list_lines(summary: Summary, folder: Path) -> list[str]:
    return str(summary).replace(str(folder), "$here").splitlines()


@pytest.mark.each
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_results_become_the_documents_of_the_case(case: dict[str, Any], tmp_path: Path) -> None:
    if "error" in case:
        with pytest.raises(InputError, match=case["error"]):
            deduplicate_case(case, tmp_path)
        return

    said = pytest.warns(GoodgainNotice, match=case["notice"]) if "notice" in case else contextlib.nullcontext()
    with said:
        deduplication = deduplicate_case(case, tmp_path)
    documents, summary = deduplication.frame["document"].to_list(), deduplication.summary
    assert None not in documents
    assert describe_decisions(deduplication.frame, tmp_path) == case["gives"]
    assert list_lines(summary, tmp_path) == case["summary"]
    assert summary.pairs == sum(summary.same.values()) + sum(summary.different.values()) + summary.undecided

    for document, wanted in zip(documents, case.get("documents", documents), strict=True):
        if wanted == "text:":
            assert document.startswith(wanted)
        else:
            assert document in wanted if isinstance(wanted, list) else document == wanted

    assert sorted(documents) == case.get("names", sorted(documents))
    assert case.get("holds", documents[0]) in documents and not set(documents) & set(case.get("others", []))
    assert all(documents[one] != documents[two] for one, two in case.get("apart", []))

    if "told" in case:
        explanation = deduplication.explain(*list(dict.fromkeys(documents))[: case.get("explain")])
        assert [rule.replace(str(tmp_path), "$here") for rule in explanation.pairs["rule"]] == case["told"]
        assert all(part in str(explanation) for part in case.get("explained", []))


def main() -> None:
    """Write what is decided today into all cases."""
    warnings.simplefilter("ignore")
    for case in CASES:
        if "error" not in case:
            with tempfile.TemporaryDirectory() as folder:
                deduplication = deduplicate_case(case, Path(folder))
            case["gives"] = describe_decisions(deduplication.frame, Path(folder))
            case["summary"] = list_lines(deduplication.summary, Path(folder))
    Path(__file__).with_name("cases.json").write_text(lay_out(CASES) + "\n", "utf-8")


if __name__ == "__main__":
    main()
