"""The signature has every option that can change a value, and a baseline file is compared under the same options only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.formats.run import Reading

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

LABELS = {"q1": {"a#1": 3, "b": 0, "c": 2}, "q2": {"a#2": 3, "d": 1}}
BY_ITERATION = pl.DataFrame(
    {
        "query_id": ["q1", "q1", "q2"],
        "iteration": ["1", "2", "1"],
        "doc_id": ["a#1", "a#1", "d"],
        "relevance": [3, 3, 2],
    }
)
RUN = pl.DataFrame(
    {
        "query_id": ["q1", "q1", "q1", "q2"],
        "iteration": [1, 2, 4, 2],
        "turn": [4, 2, 1, 1],
        "doc_id": ["b", "a#1", "c", "a#2"],
    }
)
GROUPS = pl.DataFrame({"query_id": ["q1", "q2"], "group": ["one", "two"]})
SOLVED = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "system": ["old", "new", "new"], "solved": [1, 0, None]})
BROKE_OFF = SOLVED.with_columns(completed=pl.lit(0))
CHUNKS = {"documents": r"^(.+)#\d+$"}

#: Option -> two calls that differ in it alone.
READ: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gaps": ({}, {"gaps": "empty"}),
    "first": ({"gaps": "empty"}, {"gaps": "empty", "first": 0}),
    "errors": ({}, {"errors": "skip"}),
    "columns": ({}, {"columns": {"turn": "iteration"}}),
    "page": ({"page": 1}, {"page": 2}),
}
SCORE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = READ | {
    "labels": ({"labels": None}, {"labels": "iteration"}),
    "rel": ({}, {"rel": 1}),
    "order": ({}, {"order": "last"}),
    "provider": ({}, {"provider": "pytrec_eval"}),
    "bounds": ({}, {"bounds": True}),
    "groups": ({"groups": GROUPS}, {"groups": GROUPS.with_columns(group=pl.lit("one"))}),
    "missing": ({}, {"missing": "absent"}),
    "no_good": ({}, {"no_good": "absent"}),
    "columns": ({}, {"columns": {"turn": "iteration"}}),
    "documents": (CHUNKS, {"documents": {"a#1": "a"}}),
    "documents_of": (CHUNKS, CHUNKS | {"documents_of": "run"}),
    "chunks": (CHUNKS, CHUNKS | {"chunks": "repeat"}),
    "leave_out": ({}, {"leave_out": "own"}),
    "urls": ({}, {"urls": "keep"}),
    "only": ({}, {"only": ["q1"]}),
}
_PLACES = {"query_id": ["q1", "q1"], "iteration": [1, 2]}
#: Tables of one run -> the measure that needs them.
BESIDE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "results": ({"search_query": ["a", "a"]}, {"search_query": ["a", "b"]}, "RepeatedQueries"),
    "costs": ({"input_tokens": [1, 1]}, {"input_tokens": [1, 2]}, "AreaOver(over='tokens',budget=2)"),
}
LENGTHS: tuple[dict[str, Any], dict[str, Any]] = tuple(
    {"lengths": dict.fromkeys(("a#1", "a#2", "b", "c", "d"), length)} for length in (10, 20)
)  # type: ignore[assignment]  # of two members


def make_tables(*systems: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Option -> two calls with tables of these systems that differ in one value."""

    def stack(of: dict[str, Any]) -> pl.DataFrame:
        table = pl.DataFrame(_PLACES | of).with_columns(search=1, rank=0)
        return pl.concat(table.with_columns(system=pl.lit(name)) for name in systems)

    return {name: ({name: stack(one)}, {name: stack(other)}) for name, (one, other, _) in BESIDE.items()}


EVALUATE = SCORE | {
    **make_tables("one"),
    "lengths": LENGTHS,
    "interval": ({}, {"interval": True}),
    **{
        name: ({"interval": True}, {"interval": True, name: value})
        for name, value in {"seed": 1, "resamples": 99, "alpha": 0.1}.items()
    },
}
COMPARE = SCORE | {
    **make_tables("old", "new"),
    "lengths": LENGTHS,
    "baseline": ({}, {"baseline": "old"}),
    "against": ({}, {"against": "previous"}),
    "seed": ({}, {"seed": 1}),
    "resamples": ({}, {"resamples": 99}),
    "alpha": ({}, {"alpha": 0.1}),
    "correction": ({}, {"correction": "tukey"}),
    "correct_over": ({}, {"correct_over": "measures"}),
    "outcomes": ({"outcomes": SOLVED}, {"outcomes": SOLVED.with_columns(solved=pl.Series([1, 1, None]))}),
    "pass_k": ({"require": ["nCG>=0.5"], "pass_k": 2}, {"require": ["nCG>=0.5"], "pass_k": 1}),
    "detect": ({}, {"detect": 0.1}),
    "incomplete": ({"outcomes": BROKE_OFF}, {"outcomes": BROKE_OFF, "incomplete": "zero"}),
}
#: What is scored: not options. Measures and lines name what they ask for.
INPUTS = {"qrels", "run", "systems", "measures", "iterations", "require", "baseline_file", "source"}


def choose_qrels(options: dict[str, Any]) -> Any:
    return BY_ITERATION if "labels" in options else LABELS


def choose_run(options: dict[str, Any]) -> pl.DataFrame:
    return RUN.drop("iteration", *(["turn"] if "page" in options else [])) if {"columns", "page"} & {*options} else RUN


def choose_measures(options: dict[str, Any]) -> list[str]:
    measures = [measure for name, (*_, measure) in BESIDE.items() if name in options]
    return ["nCG", "nDCG@10", *measures, *(["U"] if "lengths" in options else [])]


def sign_run(**options: Any) -> dict[str, Any]:
    return gg.evaluate(LABELS, gg.read_run(choose_run(options), **options), "nCG nDCG@10").signature


def sign_scores(**options: Any) -> dict[str, Any]:
    run = choose_run(options)
    several = [run, run.filter(query_id="q1")] if "missing" in options else run
    return gg.evaluate(choose_qrels(options), several, choose_measures(options), **options).signature


def sign_comparison(**options: Any) -> dict[str, Any]:
    run = choose_run(options)
    several = [run, run.filter(query_id="q1")] if {"missing", "pass_k"} & {*options} else run
    return gg.compare(
        choose_qrels(options), {"old": run, "new": several}, choose_measures(options), **options
    ).signature


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "sign", "options"),
    [(gg.read_run, sign_run, READ), (gg.evaluate, sign_scores, EVALUATE), (gg.compare, sign_comparison, COMPARE)],
)
def test_each_option_that_can_change_a_value_changes_the_signature(
    call: Callable[..., Any], sign: Callable[..., dict[str, Any]], options: dict[str, Any]
) -> None:
    assert {*inspect.signature(call).parameters} - INPUTS == {*options}, "say here how a new option shows"
    for name, (one, other) in options.items():
        assert sign(**one) != sign(**other), name


def test_each_option_of_qrels_changes_their_digest(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {"query_id": "q", "iteration": ["1", "2"], "doc_id": ["a", "b"], "relevance": [1, 2], "x": [3, 4]}
    )
    bad = tmp_path / "qrels.txt"
    bad.write_text("q 1 a 1\nq 2 b x\n")
    calls: dict[str, Iterable[tuple[Any, dict[str, Any]]]] = {
        "labels": [(rows, {}), (rows, {"labels": "iteration"})],
        "errors": [(rows, {}), (bad, {"errors": "skip"})],
        "columns": [(rows, {}), (rows.drop("relevance"), {"columns": {"x": "relevance"}})],
        "label": [(rows.drop("relevance"), {"label": 1}), (rows.drop("relevance"), {"label": 2})],
    }
    assert {*inspect.signature(gg.read_qrels).parameters} - INPUTS == {*calls}

    for name, call in calls.items():
        one, other = (gg.read_qrels(source, **options).digest for source, options in call)
        assert one != other, name


def test_the_reading_of_a_run_has_all_options_and_a_large_file_has_the_same(tmp_path: Path) -> None:
    assert {*inspect.signature(gg.read_run).parameters} - {"source"} == {*Reading._fields}
    from goodgain.counting.run_in_blocks import RunFile, read_whole

    path = tmp_path / "a.parquet"
    RUN.drop("iteration").write_parquet(path)
    options: dict[str, Any] = {"gaps": "empty", "first": 0, "columns": {"turn": "iteration"}}
    large = RunFile(path, "empty", 0, is_text=False, columns=options["columns"], renamed=frozenset({"turn"}))
    small = gg.read_run(path, **options)
    assert small.reading == large.reading == read_whole(large).reading
    assert small.reading.signature == {"gaps": "empty", "first": 0, "columns": "turn=iteration"}
    assert small.with_frame(small.frame).reading == small.reading


def test_a_run_with_other_names_of_columns_is_compared_with_a_baseline_file(tmp_path: Path) -> None:
    path, run = tmp_path / "b.jsonl", RUN.drop("turn")
    gg.compare(LABELS, {"old": run, "other": run}, "nCG nDCG@10").write_baseline(path, "old")
    renamed = run.rename({"iteration": "step"})
    comparison = gg.compare(LABELS, {"new": renamed}, "nCG", baseline_file=path, columns={"step": "iteration"})
    assert comparison.signature["columns"] == ["baseline:", "new:step=iteration"]
    assert comparison.pairs.get_column("verdict").to_list() == ["equal"]


@pytest.mark.parametrize("name", sorted({*READ, *SCORE} - {"rel", "groups", "bounds", "columns", "page"}))
def test_what_differs_from_the_options_of_a_baseline_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    one, other = READ.get(name) or SCORE[name]

    def read(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        source = RUN.drop("iteration") if options.get("columns") else RUN
        reading = {key: value for key, value in options.items() if key in READ}
        return gg.read_run(source, **reading), {key: value for key, value in options.items() if key not in READ}

    (old, made), (new, asked) = read(one), read(other)
    several = [new, new] if name == "missing" else new
    labels: Any = {"q1": {"a": 3}, "q2": {"a": 2}} if name in ("chunks", "documents_of") else choose_qrels(asked)
    base = [old, old] if name == "missing" else old
    path = tmp_path / "b.jsonl"
    gg.compare(labels, {"old": base, "other": old}, "nCG nDCG@10", **made).write_baseline(path, "old")
    gg.compare(labels, {"new": base}, "nCG nDCG@10", baseline_file=path, **made, seed=1, alpha=0.1)
    expected = "other qrels" if name in ("documents", "labels") else rf"was made with .*{name}="
    with pytest.raises(gg.InputError, match=expected):
        gg.compare(labels, {"new": several}, "nCG nDCG@10", baseline_file=path, **asked)
