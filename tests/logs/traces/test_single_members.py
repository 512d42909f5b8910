"""One message, line, span or event of a log dropped, repeated, swapped with the next, or merged: right, refused or told."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from goodgain.errors import InputError
from goodgain.logs.traces import read_traces
from tests.support.counts import how_many

from . import single_members as members
from .expected import EXPECTED

FIXTURES = Path(__file__).parent / "fixtures"
SAMPLES = Path(__file__).parents[3].parent / "shared" / "traces"
COUNT = how_many(40, full=400)

#: Archives and databases hold the same members as other fixtures of their format.
_WHOLE = {"inspect_ai/log.eval", "openai_agents/sessions.db"}
#: Its list is called `results`, as lists of documents are.
_WHOLE |= {"promptfoo/results.json"}
#: Its steps are numbered keys, not members of a list.
_WHOLE |= {"dspy/predictions.jsonl"}
#: Logs whose members have ids, numbers or times that give their order: the order in the file must not matter.
_ORDERED_BY_IDS = {
    *("atif/story.json", "claude_code/session.jsonl", "claude_code/story.jsonl", "langfuse/observations.jsonl"),
    *(
        "langsmith/runs.jsonl",
        "openai_agents_traces/spans.jsonl",
        "mlflow/trace.json",
        "openinference/phoenix.parquet",
        "openinference/vercel.json",
    ),
    *("smolagents/steps.json", "openinference/readable_spans.jsonl.gz", "openinference/traceloop.json"),
}
#: Silent changes that are right, by the beginning of a fixture's name, what was done, and what changed.
_RIGHT: dict[tuple[str, str, str], str] = {
    ("turn5/codex", "drop", "searches"): "the event that ends a search tells of it too, without the id of the call",
    ("codex/", "drop", "ids"): "the line with the session's id: a log without an id has the name of its file",
    ("openinference/phoenix.parquet", "drop", "ids"): "the span with the query's id: the trace's id is the next best",
    ("openinference/traceloop.json", "drop", "ids"): "the span with the query's id: the trace's id is the next best",
    ("langchain/states.jsonl", "merge", "ids"): "of two states' metadata, a merge keeps the first",
    ("gemini/cli.jsonl", "drop", "searches"): "a line that replaced or took back others: without it they stand",
    ("gemini/cli.jsonl", "swap", "searches"): "of two lines with one id the later one counts",
    ("turn4/spans/tool_list_", "drop", "searches"): "without the tool's own list, its retriever's is the search's",
    ("tagged_text/search_r1.txt", "repeat", "searches"): "pages may hold the closing tag, so the last one ends results",
}


class _Read(NamedTuple):
    """What was read of a log, its summary, and its notices; without results, it was refused."""

    results: pl.DataFrame | None
    counts: str
    notices: set[str]

    @property
    def searches(self) -> Counter[Any]:
        """Each search: its query, its documents in order, its status."""
        assert self.results is not None
        found: dict[Any, list[Any]] = {}
        for row in self.results.filter(pl.col("iteration") > 0).iter_rows(named=True):
            place = tuple(row[name] for name in ("query_id", "system", "replicate", "turn", "iteration", "search"))
            held = found.setdefault(place, [row["search_query"], row["status"]])
            held += [tuple(row[name] for name in ("doc_id", "url", "title", "snippet"))] if row["rank"] else []
        return Counter(tuple(search) for search in found.values())

    @property
    def ids(self) -> set[str]:
        assert self.results is not None
        return set(self.results["query_id"])


def _read(path: Path, content: bytes, trace_format: str) -> _Read:
    path.write_bytes(content)
    counts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            results = read_traces(
                path, format=trace_format, turns="all", iteration="step", report=lambda one: counts.append(str(one))
            )
        except InputError as error:
            assert str(path) in str(error)
            return _Read(None, "", set())
    return _Read(results.drop("call_id"), counts[0], {str(one.message) for one in caught})


def _find_silent_change(whole: _Read, found: _Read, what: str, member: Any, *, is_ordered_by_ids: bool) -> str:
    """What changed and was neither told nor refused; empty if it is right."""
    if found.results is None or whole.results is None or found.notices - whole.notices:
        return ""
    if found.results.equals(whole.results):
        return ""
    new, lost = found.searches - whole.searches, whole.searches - found.searches
    told = found.counts != whole.counts
    if what == "swap" and is_ordered_by_ids:
        return "order"
    if set(new) - set(whole.searches) and what != "merge":
        return "searches"  # results that no search had

    if what == "drop":
        text = json.dumps(member, ensure_ascii=False, default=str).replace("\\", "")
        documents = [document for search in lost for document in search[2:]]
        if not all(next(filter(None, document), "") in text for document in documents):
            return "searches"  # one is lost that the dropped member does not hold

    if (new or lost) and not told:
        return "searches"
    return "" if told or found.ids == whole.ids else "ids"


def _try_all(folder: Path, names: list[str], tmp_path: Path, count: int) -> Counter[str]:
    chance = random.Random(52)
    wholes: dict[str, tuple[Any, str, _Read]] = {}
    outcomes: Counter[str] = Counter()

    while sum(outcomes.values()) < count:
        name = chance.choice(names)
        path, kind_of = folder / name, Path(name).parent.name
        log, trace_format = tmp_path / path.name.removesuffix(".gz"), "shape" if kind_of == "shape" else "auto"
        if name not in wholes:
            value, kind = members.read_log(path)
            whole = _read(log, members.write_log(value, kind, path), trace_format)
            wholes[name] = value, kind, whole
        value, kind, whole = wholes[name]
        change = members.choose(value, chance)
        changed = change and members.apply(value, kind, change)
        if whole.results is None or change is None or changed is None:
            continue
        found = _read(log, members.write_log(changed[0], kind, path), trace_format)
        silent = _find_silent_change(whole, found, change[2], changed[1], is_ordered_by_ids=name in _ORDERED_BY_IDS)
        right = [one for one in _RIGHT if name.startswith(one[0]) and one[1:] == (change[2], silent)]
        assert not silent or right, f"{name}, at {change[0]}: the member {change[1]}, {change[2]}: {silent}"
        is_same = found.results is not None and found.results.equals(whole.results)
        outcomes["refused" if found.results is None else "same" if is_same else "changed"] += 1

    return outcomes


def test_a_change_of_one_member_is_right_or_refused_or_told(tmp_path: Path) -> None:
    outcomes = _try_all(FIXTURES, sorted(EXPECTED.keys() - _WHOLE), tmp_path, COUNT)
    assert min(outcomes[name] for name in ("refused", "same", "changed")) > COUNT / 20


@pytest.mark.parametrize("name", sorted(EXPECTED.keys() - _WHOLE))
def test_every_fixture_has_members(name: str) -> None:
    assert list(members.search_lists(members.read_log(FIXTURES / name)[0]))


@pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"the samples are not beside the checkout ({SAMPLES})")
def test_a_change_of_one_member_of_a_sample_is_right_or_refused_or_told(tmp_path: Path) -> None:
    names = [
        str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*")
        if path.suffix in (".json", ".jsonl", ".har", ".parquet", ".log") and "strands/session" not in str(path)
        and path.stat().st_size < 60_000
    ]  # fmt: skip
    assert _try_all(SAMPLES, sorted(names), tmp_path, COUNT // 2)["same"] > COUNT / 20
