"""What is declared in one place has its line in every list that is kept by hand; a failure names the line to write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.explaining.accounts import HAPPENED
from goodgain.logs.dedup import rows_and_trusted_ids
from goodgain.logs.dedup.document_types import GENERIC, PARENT, TYPES, canonical_name, find_pair_type
from goodgain.logs.traces import formats
from goodgain.measures import MEASURES
from goodgain.measures.bounds import find_rule
from goodgain.measures.declaration import ARROWS, GoodGainMeasure, RankedMeasure
from goodgain.measures.families import HOST_NAMES, HOSTLESS_MEASURES, RANKED_MEASURES
from goodgain.measures.names import parse_measures
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
FIXTURES = ROOT / "tests/logs/traces/fixtures"


def same_names(declared: Iterable[str], listed: Iterable[str], absent: str, left_over: str) -> None:
    """Fail with a sentence for each declared name that is not listed, and for each listed one that is not declared."""
    wanted, found = set(declared), set(listed)
    said = [absent.format(name) for name in sorted(wanted - found)]
    said += [left_over.format(name) for name in sorted(found - wanted)]
    if said:
        pytest.fail("\n".join(said), pytrace=False)


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def section(path: str, heading: str) -> str:
    """Return the text of a page below a heading, up to the next one."""
    return text(path).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


HOSTLESS = [*HOSTLESS_MEASURES]
PACKAGE = ROOT / "src/goodgain"


def find_exported_hostless() -> list[str]:
    exported = {name: getattr(gg, name) for name in gg.__all__}
    ranked = {name: measure for name, measure in exported.items() if isinstance(measure, RankedMeasure)}
    return [name for name, measure in ranked.items() if measure.declaration.family != "classic"]


def find_bounded() -> list[str]:
    """The measures whose declaration says that a label can only raise them."""
    declared = [name for name, measure in MEASURES.items() if find_rule(measure)]
    return declared + [name for name, ranked in RANKED_MEASURES.items() if ranked.from_labels]


def find_measures_of_the_page() -> Iterable[str]:
    rows = re.findall(r"^\| (`[^|]*`) \|(?:[^|]*)\|", text("docs/measures.md"), flags=re.MULTILINE)
    return (name.removesuffix("@i") for row in rows for name in re.findall("`(.*?)`", row))


def find_bounded_of_the_page() -> Iterable[str]:
    """The measures in the rows of docs/judging.md that say `yes` or `both bounds equal the value`."""
    rows = re.findall(r"^\| ([^|]+) \| (?:yes|both bounds)[^|]*\|$", text("docs/judging.md"), flags=re.MULTILINE)
    return (name for row in rows for name in row.split(", "))


def find_types(*, same: bool) -> set[str]:
    return {name for pair in PAIRS if pair.same is same and (name := type_of(pair)) is not None}


def find_names_of_the_package() -> list[str]:
    there = [path.name + "/" for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    return there + [path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")]


_ODD = "without a search what is not understood is an error with its place, or left out on skip"
_TYPES = TYPES.keys() - {PARENT.name}  # no result has this type: it is what a passage is at level="document"
#: What is declared and what is listed; `lists.json` has the sentences on a name that is absent and on one that is left over.
LISTS: dict[str, Callable[[], tuple[Iterable[str], Iterable[str]]]] = {
    "every measure is exported": lambda: (
        MEASURES,
        (name for name in gg.__all__ if isinstance(getattr(gg, name), GoodGainMeasure)),
    ),
    "every measure has a formula in the oracle": lambda: (MEASURES, oracle.NAMES),
    "every measure that a label can only raise is tried for its bounds": lambda: (
        find_bounded(),
        (str(measure.__name__) for measure in parse_measures(BOUNDED)),
    ),
    "every measure with bounds is in the table of the page on judging": lambda: (
        find_bounded(),
        find_bounded_of_the_page(),
    ),
    "every cause has a row in the page on explaining": lambda: (
        HAPPENED,
        re.findall(
            r"^\| `(\w+)` \|",
            text("docs/explain.md").partition("| cause | meaning |\n|---|---|\n")[2].partition("\n\n")[0],
            flags=re.MULTILINE,
        ),
    ),
    "every measure that no host has is exported": lambda: (
        HOSTLESS,
        find_exported_hostless(),
    ),
    "every measure that no host has has a formula in the ranking oracle": lambda: (
        HOSTLESS,
        ranking_oracle.HOSTLESS | ranking_oracle.GRADED,
    ),
    "every measure over one ranking is held against the oracle": lambda: (
        RANKED_MEASURES,
        (
            str(measure.__name__)
            for measure in (*WITH_PROVIDER, *JUDGED_ONLY, *BY_GDEVAL, *WITHOUT_PROVIDER, *CASES, *GRADED)
        ),
    ),
    "every measure has a row in the page on measures": lambda: (MEASURES, find_measures_of_the_page()),
    "every measure has a row in the table of ranx": lambda: (
        (f"| `{name}` | {measure} | {ARROWS[measure.declaration.better]} |" for name, measure in HOST_NAMES.items()),
        re.findall(r"^\| `\w+` \| .+? \| [↑↓] \|$", text("docs/names.md"), flags=re.MULTILINE),
    ),
    "every trace format is found by its file": lambda: (
        FORMATS,
        (name for name, form in formats().items() if not form.is_plugin),
    ),
    "every trace format has a writer of the story": lambda: (_CLAIMING, WRITERS),
    "every trace format has an odd item": lambda: (
        _CLAIMING,
        [*ODD_ITEMS, "openinference"],  # a span of an unknown kind is not a search
    ),
    "every trace format has a case of what it does not understand": lambda: (
        _CLAIMING,
        re.findall(rf"{_ODD} \[(\w+)\]", str(SUBJECTS["not_understood"])),
    ),
    "every trace format has a fixture": lambda: (FORMATS, (path.parent.name for path in FIXTURES.glob("*/*"))),
    "every fixture of a trace format is expected": lambda: (
        (str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("*/*")),
        [*EXPECTED, *NOT_RECORDED],
    ),
    "every trace format has its counts expected in some fixture": lambda: (
        FORMATS,
        (name.partition("/")[0] for name in EXPECTED),
    ),
    "every trace format has its table in the reference": lambda: (
        FORMATS,
        re.findall(r"^## (\w+)$", text("docs/reference/trace_formats.md"), flags=re.MULTILINE),
    ),
    # A document type can be wrong in both ways: take two documents for one, or one for two.
    "every document type has a hand-written pair of the same document": lambda: (_TYPES, find_types(same=True)),
    "every document type has a hand-written pair of different documents": lambda: (_TYPES, find_types(same=False)),
    "the page for developers names every folder and file of the package": lambda: (
        find_names_of_the_package(),
        re.findall(r"`([a-z_]+(?:/|\.py))`", section("CONTRIBUTING.md", "The folders")),
    ),
}
SENTENCES = json.loads(Path(__file__).with_name("lists.json").read_text(encoding="utf-8"))


@pytest.mark.each
@pytest.mark.parametrize("rule", LISTS)
def test_what_is_declared_in_one_place_is_listed_in_the_other(rule: str) -> None:
    declared, listed = LISTS[rule]()
    same_names(declared, listed, **SENTENCES[rule])


def taken_names() -> set[str]:
    """The columns of deduplication beside ids and fields, and those that it reads and adds; a type may be of title and snippet."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            rows_and_trusted_ids, "USED_NAMES", frozenset()
        )  # so that a type with a taken name is told below
        rows = {"query_id": "q", "doc_id": ["a", "b"], "url": "https://example.org"}
        deduplication = gg.deduplicate(pl.DataFrame(rows))
    columns = {
        *deduplication._records.frame.columns,
        *deduplication._rows.columns,
        *DEDUPLICATED.columns,
        *RESULTS.columns,
    }
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


# --- Messages, help, pages for developers -----------------------------------------------------------------------------


def test_every_page_that_a_message_or_a_help_text_names_exists() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    named = {(name, path.name) for path, source in sources.items() for name in re.findall(r"\bdocs/[\w./-]*\w", source)}
    wrong = [f"{path} names {name}, which is not a page" for name, path in named if not (ROOT / name).is_file()]
    assert len(named) > 5 and not wrong, "\n".join(sorted(wrong))


def test_every_path_on_the_page_for_developers_exists() -> None:
    paths = re.findall(r"`([\w.]+/[\w./]*)`", text("CONTRIBUTING.md"))
    assert len(paths) > 10
    wrong = [path for path in paths if not any((folder / path).exists() for folder in (ROOT, PACKAGE))]
    assert not wrong, f"CONTRIBUTING.md names {wrong}, which do not exist: write where they are now"
