"""What is declared in one place has its line in every list that is kept by hand; a failure names the line to write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from goodgain.logs.dedup import rows_and_trusted_ids
from goodgain.logs.dedup.document_types import GENERIC, PARENT, TYPES, canonical_name, find_pair_type
from goodgain.logs.traces import formats
from goodgain.measures import MEASURES, classic
from goodgain.measures.bounds import find_rule
from goodgain.measures.declaration import GoodGainMeasure, RankedMeasure
from goodgain.measures.names import HOST_NAMES, HOSTLESS_MEASURES, RANKED_MEASURES, parse_measures
from goodgain.schema import DEDUPLICATED, RESULTS
from tests.analysis.comparing.test_bounds import BOUNDED
from tests.logs.dedup.writing import PAIRS, Pair
from tests.logs.traces.expected import EXPECTED, NOT_RECORDED, ODD_ITEMS
from tests.logs.traces.logs import WITHOUT_STORY, WRITERS
from tests.logs.traces.test_cases import SUBJECTS
from tests.support import oracle, ranking_oracle
from tests.support.ranking_cases import BY_GDEVAL, GRADED, JUDGED_ONLY, WITH_PROVIDER, WITHOUT_PROVIDER
from tests.support.ranking_cases import HOSTLESS as CASES
from tests.support.tables import ROOT

#: The trace formats, by their files: a file that cannot be imported is listed too.
FORMATS = sorted(
    path.stem for path in (ROOT / "src/goodgain/logs/traces/formats").glob("*.py") if path.stem != "__init__"
)
#: The formats that claim files: the story is read with format="auto". test_shape.py has the cases of the other one.
_CLAIMING = [name for name in FORMATS if name != "shape" and name not in WITHOUT_STORY]
FIXTURES = Path("tests/logs/traces/fixtures")


def same_names(declared: Iterable[str], listed: Iterable[str], absent: str, left_over: str) -> None:
    """Fail with a sentence for each declared name that is not listed, and for each listed one that is not declared."""
    wanted, found = set(declared), set(listed)
    said = [absent.format(name) for name in sorted(wanted - found)]
    said += [left_over.format(name) for name in sorted(found - wanted)]
    if said:
        pytest.fail("\n".join(said), pytrace=False)


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


# --- Measures: src/goodgain/measures/ ---------------------------------------------------------------------------------


def test_every_measure_is_exported() -> None:
    same_names(
        MEASURES,
        (name for name in gg.__all__ if isinstance(getattr(gg, name), GoodGainMeasure)),
        "src/goodgain/__init__.pyi does not export {0}: import it there",
        "src/goodgain/__init__.pyi exports {0}, which is not a measure any more: remove it",
    )


def test_every_measure_has_a_formula_in_the_oracle() -> None:
    same_names(
        MEASURES,
        oracle.NAMES,
        "tests/support/oracle.py has no formula for {0}: add it to CUMULATIVE (or to ALONE or WITHOUT_CUTOFF, with a branch in "
        "value(), where @i is obligatory or not taken)",
        "tests/support/oracle.py has a formula for {0}, which is not a measure: remove it",
    )


def test_every_measure_that_a_label_can_only_raise_is_tried_for_its_bounds() -> None:
    declared = [name for name, measure in MEASURES.items() if find_rule(measure)]
    declared += [name for name, ranked in RANKED_MEASURES.items() if ranked.from_labels]
    same_names(
        declared,
        (str(measure.__name__) for measure in parse_measures(BOUNDED)),
        "tests/analysis/comparing/test_bounds.py does not try {0}, whose declaration has from_labels: add it to BOUNDED",
        "tests/analysis/comparing/test_bounds.py has {0} in BOUNDED, whose declaration has no from_labels: remove it",
    )


HOSTLESS = [*HOSTLESS_MEASURES]


def test_every_measure_that_no_host_has_is_exported() -> None:
    same_names(
        HOSTLESS,
        (name for name in gg.__all__ if isinstance(getattr(gg, name), RankedMeasure) and name not in classic.DECLARED),
        "src/goodgain/__init__.pyi does not export {0}: import it there",
        "src/goodgain/__init__.pyi exports {0}, which is not a measure any more: remove it",
    )


def test_every_measure_that_no_host_has_has_a_formula_in_the_ranking_oracle() -> None:
    same_names(
        HOSTLESS,
        ranking_oracle.HOSTLESS | ranking_oracle.GRADED,
        "tests/support/ranking_oracle.py has no formula for {0}: add it to HOSTLESS",
        "tests/support/ranking_oracle.py has a formula for {0}, which is not a measure: remove it",
    )


def test_every_measure_over_one_ranking_is_held_against_the_oracle() -> None:
    held = [*WITH_PROVIDER, *JUDGED_ONLY, *BY_GDEVAL, *WITHOUT_PROVIDER, *CASES, *GRADED]
    same_names(
        RANKED_MEASURES,
        (str(measure.__name__) for measure in held),
        "tests/support/ranking_cases.json has no case of {0}: add some to hostless, or to with provider",
        "tests/support/ranking_cases.json has cases of {0}, which is not a measure: remove them",
    )


def test_every_measure_has_a_row_in_the_page_on_measures() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \|(?:[^|]*)\|", text("docs/measures.md"), flags=re.MULTILINE)
    same_names(
        MEASURES,
        (name.removesuffix("@i") for row in rows for name in re.findall("`(.*?)`", row)),
        "docs/measures.md has no row for {0} in its table of measures: add | `{0}@i` | up or **down** | what it is |",
        "docs/measures.md has {0} in its table of measures, which is not a measure: remove it",
    )


def test_every_measure_has_a_row_in_the_table_of_ranx() -> None:
    same_names(
        (f"| `{name}` | {measure} | {measure.declaration.arrow} |" for name, measure in HOST_NAMES.items()),
        re.findall(r"^\| `\w+` \| .+? \| [↑↓] \|$", text("docs/hosts.md"), flags=re.MULTILINE),
        "docs/hosts.md lacks a row in its table of names: add {0}",
        "docs/hosts.md has a row for a name that does not exist: remove {0}",
    )


# --- Trace formats: src/goodgain/logs/traces/formats/ ----------------------------------------------------------------------


def test_every_trace_format_is_found_by_its_file() -> None:
    same_names(
        FORMATS,
        (name for name, form in formats().items() if not form.is_plugin),
        "src/goodgain/logs/traces/formats/{0}.py is not among goodgain.logs.traces.formats()",
        "goodgain.logs.traces.formats() has {0}, which has no file in src/goodgain/logs/traces/formats",
    )


def test_every_trace_format_has_a_writer_of_the_story() -> None:
    same_names(
        _CLAIMING,
        WRITERS,
        'tests/logs/traces/story_templates.json has no template for {0}, nor logs.py a writer: add "{0}"',
        "tests/logs/traces/logs.py has a writer for {0}, which is not a format: remove it",
    )


_ODD = "without a search what is not understood is an error with its place, or left out on skip"


@pytest.mark.parametrize(
    ("file", "listed"),
    [
        ("odd_items.json", [*ODD_ITEMS, "openinference"]),  # a span of an unknown kind is not a search
        ("cases/not_understood.json", re.findall(rf"{_ODD} \[(\w+)\]", str(SUBJECTS["not_understood"]))),
    ],
)
def test_every_trace_format_has_something_that_it_does_not_understand(file: str, listed: list[str]) -> None:
    same_names(
        _CLAIMING,
        listed,
        f"tests/logs/traces/{file} has nothing of an unknown kind for {{0}}: add it",
        f"tests/logs/traces/{file} has {{0}}, which is not a format: remove it",
    )


def test_every_trace_format_has_a_fixture() -> None:
    same_names(
        FORMATS,
        (path.parent.name for path in (ROOT / FIXTURES).glob("*/*")),
        f"{FIXTURES}/{{0}} has no file: let its library write a small log there",
        f"{FIXTURES}/{{0}} is a folder for {{0}}, which is not a format: remove it",
    )


def test_every_fixture_of_a_trace_format_is_expected() -> None:
    same_names(
        (str(path.relative_to(ROOT / FIXTURES)) for path in (ROOT / FIXTURES).glob("*/*")),
        [*EXPECTED, *NOT_RECORDED],
        'tests/logs/traces/expected.json does not say what {0} holds: add "{0}", as a person counts it',
        f"tests/logs/traces/expected.json has {{0}}, which is not in {FIXTURES}: remove it",
    )


def test_every_trace_format_has_its_counts_expected_in_some_fixture() -> None:
    same_names(
        FORMATS,
        (name.partition("/")[0] for name in EXPECTED),
        'tests/logs/traces/expected.json has no counts for any fixture of {0}: add one, "{0}/<file>"',
        "tests/logs/traces/expected.json has fixtures of {0}, which is not a format: remove them",
    )


def test_every_trace_format_has_its_table_in_the_reference() -> None:
    same_names(
        FORMATS,
        re.findall(r"^## (\w+)$", text("docs/reference/trace_formats.md"), flags=re.MULTILINE),
        "docs/reference/trace_formats.md lacks {0}: run `make reference`",
        "docs/reference/trace_formats.md has {0}, which is not a format: run `make reference`",
    )


# --- Document types: src/goodgain/logs/dedup/document_types.py ----------------------------------------------------------------


@pytest.mark.parametrize("same", [True, False], ids=["the same document", "different documents"])
def test_every_document_type_has_a_hand_written_pair_of(same: bool) -> None:
    """A type can be wrong in both ways: take two documents for one, or one for two."""
    same_names(
        TYPES.keys() - {PARENT.name},  # no result has this type: it is what a passage is at level="document"
        (name for pair in PAIRS if pair.same is same and (name := type_of(pair)) is not None),
        f"tests/logs/dedup/pairs.jsonl has no pair of two results of type {{0}} that are {'the same' if same else 'different'}:"
        " add a line with same, reason, first and second",
        "tests/logs/dedup has pairs of type {0}, which is not in TYPES of src/goodgain/logs/dedup/document_types.py: remove them",
    )


def taken_names() -> set[str]:
    """The columns of deduplication beside ids and fields, and those that it reads and adds; a type may be of title and snippet."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            rows_and_trusted_ids, "USED_NAMES", frozenset()
        )  # so that a type with a taken name is told below
        rows = {"query_id": "q", "doc_id": ["a", "b"], "url": "https://example.org"}
        found = gg.deduplicate(pl.DataFrame(rows))
    columns = {*found._records.frame.columns, *found._rows.columns, *DEDUPLICATED.columns, *RESULTS.columns}
    return columns - {"title", "snippet"}


def test_every_document_type_keeps_to_the_rules_of_its_table() -> None:
    said = []
    taken = taken_names()
    for row in TYPES.values():
        names = {*row.item_ids, *row.reject, *row.required, *row.weights, row.title, *chain(*row.further_keys)}
        said += [f"{row.name}: the name {name!r} is taken: choose another" for name in sorted(names & taken)]
        said += [
            f"{row.name}: write {canonical_name(name)!r} for {name!r}"
            for name in sorted(names)
            if canonical_name(name) != name
        ]
        said += [
            f"{row.name}: goes_with has {name!r}, which is not a type" for name in row.goes_with if name not in TYPES
        ]
        if row.weights.get(row.title, 0) >= 1 or row.weights.get("title", 0) >= 1:
            said += [f"{row.name}: a title alone counts 1.0 or more: two things of one title would be one document"]
    if [*TYPES][-1] != PARENT.name:
        said += [f"{[*TYPES][-1]} stands below PARENT: move its row above it"]
    if said:
        pytest.fail("\n".join(f"src/goodgain/logs/dedup/document_types.py, {one}" for one in said), pytrace=False)


def type_of(pair: Pair) -> str | None:
    """The type whose row decides the pair; None where the types of the two cannot be one thing."""
    first, second = (canonical_name(str(side.get("type") or GENERIC.name)) for side in (pair.first, pair.second))
    row = find_pair_type(*(name if name in TYPES else GENERIC.name for name in (first, second)))
    return None if row is None else row.name


# --- Messages and help ------------------------------------------------------------------------------------------------


def test_every_page_that_a_message_or_a_help_text_names_exists() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src/goodgain").rglob("*.py")}
    named = {(name, path.name) for path, source in sources.items() for name in re.findall(r"\bdocs/[\w./-]*\w", source)}
    wrong = [f"{path} names {name}, which is not a page" for name, path in named if not (ROOT / name).is_file()]
    assert len(named) > 5 and not wrong, "\n".join(sorted(wrong))


# --- Pages: docs/how_it_works.md, CONTRIBUTING.md ---------------------------------------------------------------------


def test_the_page_on_how_it_works_names_every_folder_and_file_of_the_package() -> None:
    package = ROOT / "src/goodgain"
    there = [path.name + "/" for path in package.iterdir() if (path / "__init__.py").exists()]
    there += [path.name for path in package.glob("*.py") if not path.name.startswith("__")]
    named = re.findall(r"`([a-z_]+(?:/|\.py))`", text("docs/how_it_works.md"))
    same_names(
        there,
        named,
        "docs/how_it_works.md does not name {0}: add its row to the table of folders",
        "docs/how_it_works.md names {0}, which is not in src/goodgain: remove it",
    )


@pytest.mark.parametrize("page", ["docs/how_it_works.md", "CONTRIBUTING.md"])
def test_every_path_on_the_pages_for_developers_exists(page: str) -> None:
    paths = re.findall(r"`([\w.]+/[\w./]*)`", text(page))
    assert len(paths) > 10
    same_names(
        [],
        (path for path in paths if not any((folder / path).exists() for folder in (ROOT, ROOT / "src/goodgain"))),
        "",
        f"{page} names {{0}}, which does not exist: write where it is now",
    )
