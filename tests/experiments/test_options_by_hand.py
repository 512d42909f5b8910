"""Each option of reading and of documents gives, in every analysis, the values of inputs that were changed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.schema import EMPTY_DOC
from tests.experiments.test_experiment import make_runs

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

MEASURES = "nDCG@10 nCG@3 SRR@3 P@5"
CHUNK = r"^(.+)#\d+$"
#: The frames of an explanation that have values.
EXPLAINED = ("queries", "causes", "documents", "iterations", "wasted", "unjudged", "repeats")


class Inputs(NamedTuple):
    qrels: pl.DataFrame
    runs: dict[str, list[pl.DataFrame]]

    def change_runs(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Inputs:
        return self._replace(runs={name: [change(run) for run in runs] for name, runs in self.runs.items()})

    def replace_ids(self, pattern: str, value: str, *, of_qrels: bool) -> Inputs:
        doc_id = pl.col("doc_id").str.replace(pattern, value)
        changed = self.change_runs(lambda run: run.with_columns(doc_id))
        if not of_qrels:
            return changed
        labels = self.qrels.with_columns(doc_id).group_by("query_id", "doc_id", maintain_order=True)
        return changed._replace(qrels=labels.agg(pl.col("relevance").max()))


def make_inputs(judged: str = "d{}", found: str = "d{}#{}") -> Inputs:
    labels, runs = make_runs(3, judged, found)
    rows = [(query_id, doc_id, label) for query_id, of_query in labels.items() for doc_id, label in of_query.items()]
    qrels = pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row")
    new, third, *several = [run.rename({"step": "iteration"}) for run in runs[1:]]
    return Inputs(qrels, {"new": [new], "third": [third], "several": several})


# Each function below changes the inputs as an option does.


def fill_gaps(inputs: Inputs, first: int) -> Inputs:
    def fill(run: pl.DataFrame) -> pl.DataFrame:
        last = run.group_by("query_id", maintain_order=True).agg(pl.col("iteration").max())
        every = last.with_columns(pl.int_ranges(first, pl.col("iteration") + 1).alias("iteration")).explode("iteration")
        gaps = every.join(run, on=["query_id", "iteration"], how="anti")
        return pl.concat([run, gaps.with_columns(doc_id=pl.lit(EMPTY_DOC), score=pl.lit(0.0))])

    return inputs.change_runs(fill)


def take_queries(inputs: Inputs, query_ids: list[str]) -> Inputs:
    rows = pl.col("query_id").is_in(query_ids)
    return inputs.change_runs(lambda run: run.filter(rows))._replace(qrels=inputs.qrels.filter(rows))


def number_pages(inputs: Inputs, system: str, size: int) -> Inputs:
    (run,) = inputs.runs[system]
    ranking = run.sort("query_id", "score", descending=[False, True])
    rank = pl.int_range(pl.len()).over("query_id")
    return inputs._replace(runs=inputs.runs | {system: [ranking.with_columns(iteration=1 + rank // size)]})


def drop_iterations(inputs: Inputs, system: str) -> Inputs:
    (run,) = inputs.runs[system]
    ranking = run.drop("iteration").unique(["query_id", "doc_id"], maintain_order=True)
    return inputs._replace(runs=inputs.runs | {system: [ranking]})


def map_chunks(inputs: Inputs, *, of_qrels: bool = True, collapse: bool = True) -> Inputs:
    mapped = inputs.replace_ids(CHUNK, "$1", of_qrels=of_qrels)
    return mapped.change_runs(_take_best) if collapse else mapped


def join_urls(inputs: Inputs) -> Inputs:
    return inputs.replace_ids(r"\?gclid=\d+$", "", of_qrels=False)


def _take_best(run: pl.DataFrame) -> pl.DataFrame:
    """Keep the best row of a document in an iteration."""
    return run.sort("score", descending=True).unique(
        ["query_id", "iteration", "doc_id"], keep="first", maintain_order=True
    )


def leave_out_own(inputs: Inputs) -> Inputs:
    def leave_out(run: pl.DataFrame) -> pl.DataFrame:
        rows = run.filter(pl.col("doc_id") != pl.col("query_id"))
        lost = run.unique(["query_id", "iteration"]).join(rows, on=["query_id", "iteration"], how="anti")
        return pl.concat([rows, lost.with_columns(doc_id=pl.lit(EMPTY_DOC), score=pl.lit(0.0))])

    return inputs.change_runs(leave_out)


class Case(NamedTuple):
    options: dict[str, Any]
    by_hand: Callable[[Inputs], Inputs]
    ids: tuple[str, ...] = ()  # of the judged and the found documents
    before: Callable[[Inputs], Inputs] = lambda inputs: inputs  # makes the inputs to which the option applies
    measures: str = MEASURES


URLS = ("https://a.org/{}", "https://a.org/{}?gclid={}")
CASES = {
    "gaps": Case({"gaps": "empty"}, lambda inputs: fill_gaps(inputs, 1)),
    "first": Case({"gaps": "empty", "first": 0}, lambda inputs: fill_gaps(inputs, 0)),
    "columns": Case(
        {"columns": {"step": "iteration"}},
        lambda inputs: inputs.change_runs(lambda run: run.rename({"step": "iteration"})),
        before=lambda inputs: inputs.change_runs(lambda run: run.rename({"iteration": "step"})),
    ),
    "errors": Case(
        {"errors": "skip"},
        lambda inputs: inputs.change_runs(lambda run: run.filter(pl.col("doc_id") != "")),
        before=lambda inputs: inputs.change_runs(lambda run: pl.concat([run, run.head(1).with_columns(doc_id=pl.lit(""))])),
    ),
    "only": Case({"only": ["q1", "q2", "q7", "q9"]}, lambda inputs: take_queries(inputs, ["q1", "q2", "q7", "q9"])),
    "page": Case(
        {"page": {"third": 2}},
        lambda inputs: number_pages(inputs, "third", 2),
        before=lambda inputs: drop_iterations(inputs, "third"),
        measures="nDCG@10 nCG@3 P@5",  # SRR of pages is not comparable
    ),
    "documents": Case({"documents": CHUNK}, map_chunks, ("d{}#0", "d{}#{}")),
    "documents_of": Case(
        {"documents": CHUNK, "documents_of": "run"}, lambda inputs: map_chunks(inputs, of_qrels=False), ("d{}", "d{}#{}")
    ),
    "chunks": Case({"documents": CHUNK, "chunks": "repeat"}, lambda inputs: map_chunks(inputs, collapse=False)),
    "leave_out": Case({"leave_out": "own"}, leave_out_own, ("q{}", "q{}")),
    "urls": Case({"urls": "keep"}, lambda inputs: inputs.replace_ids("^https://", "kept/", of_qrels=True), URLS),
    "urls, joined": Case({"urls": "join"}, join_urls, URLS),
}  # fmt: skip


def analyse(
    qrels: Any, systems: dict[str, Any], folder: Path, measures: str = MEASURES, **options: Any
) -> dict[str, list[pl.DataFrame]]:
    """Return the frames of each analysis."""
    x = gg.Experiment(qrels, systems, resamples=99, **options)
    compared = x.compare(measures, baseline="new")
    of_pair = options | ({"page": {"new": 2}} if "page" in options else {})  # gg.explain calls its systems base and new
    explained = {
        "explain": x.explain("new", "third", "nCG@3 CG SRE"),
        "explain several runs": x.explain("several", "third", "nCG@3 CG"),
        "gg.explain": gg.explain(qrels, systems["new"], systems["third"], "nCG@3 CG SRE", **of_pair),
    }
    page = json.loads(x.report(folder / "report.json", measures).read_text("utf-8"))
    results = {
        "evaluate": [x.evaluate(measures).values],
        "compare": [compared.means, compared.pairs, compared.values, compared.systems],
        "curve": [x.curve("nCG SRR")],
        "ledger": [x.ledger("nCG")],
        "coverage": [x.coverage()],
        "pr_curve": [x.pr_curve()],
        "spend": [x.spend()],
        "report": [pl.DataFrame(page[name]) for name in ("means", "pairs", "queries")],
    }
    for name, explanation in explained.items():
        results[name] = [getattr(explanation, frame) for frame in EXPLAINED]
    return results


def write_files(inputs: Inputs, folder: Path) -> tuple[str, dict[str, Any]]:
    """Write the inputs, with the names of the systems as names of files."""
    folder.mkdir()
    inputs.qrels.write_csv(folder / "qrels.csv")
    systems = {}
    for name, runs in inputs.runs.items():
        paths = [
            str(folder / (f"{name}.csv" if len(runs) == 1 else f"{name}.{k}.csv")) for k in range(1, len(runs) + 1)
        ]
        for path, run in zip(paths, runs, strict=True):
            run.write_csv(path)
        systems[name] = paths[0] if len(paths) == 1 else paths
    return str(folder / "qrels.csv"), systems


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_option_gives_the_values_of_inputs_changed_by_hand(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    inputs = case.before(make_inputs(*case.ids))
    found = analyse(*write_files(inputs, tmp_path / "given"), tmp_path, case.measures, **case.options)
    wanted = analyse(*write_files(case.by_hand(inputs), tmp_path / "by_hand"), tmp_path, case.measures)
    compare_frames(found, wanted)


def compare_frames(found: dict[str, list[pl.DataFrame]], wanted: dict[str, list[pl.DataFrame]]) -> None:
    """Raise unless all frames are equal, up to the spelling of URLs."""
    assert found.keys() == wanted.keys()
    for analysis, frames in wanted.items():
        for of_option, of_hand in zip(found[analysis], frames, strict=True):
            assert_frame_equal(_spell_alike(of_option), _spell_alike(of_hand), abs_tol=1e-12)


def _spell_alike(frame: pl.DataFrame) -> pl.DataFrame:
    texts = pl.selectors.string()
    spelled = frame.with_columns(texts.str.replace("^kept/", "https://").str.replace(r"\?gclid=\d+$", ""))
    return spelled.sort(texts, maintain_order=True)


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["iteration", "subtopic"])
def test_labels_of_column_2_are_those_of_qrels_read_with_them(labels: str, tmp_path: Path) -> None:
    inputs = make_inputs(found="d{}")
    number = 2 * (1 + pl.col("doc_id").str.len_chars() % 2)
    inputs = inputs._replace(qrels=inputs.qrels.with_columns(iteration=number))
    qrels, systems = write_files(inputs, tmp_path / "given")
    found = analyse(qrels, systems, tmp_path, labels=labels)
    compare_frames(found, analyse(gg.read_qrels(qrels, labels=labels), systems, tmp_path))


def test_rel_of_an_experiment_is_that_of_each_measure() -> None:
    inputs = make_inputs(found="d{}")
    x = gg.Experiment(inputs.qrels, inputs.runs, resamples=99)
    of_option = x.with_(rel=3)
    compare_frames(analyse_pair(of_option, "nCG@3 SRR@3"), analyse_pair(x, "nCG(rel=3)@3 SRR(rel=3)@3"))
    assert_frame_equal(of_option.curve("nCG SRR"), x.curve("nCG(rel=3) SRR(rel=3)"))
    labels = inputs.qrels.with_columns(pl.when(pl.col("relevance") >= 3).then("relevance").otherwise(0))
    with_3_only = gg.Experiment(labels, inputs.runs, resamples=99)
    for name in ("ledger", "spend", "pr_curve"):
        found, wanted = (getattr(y, name)() for y in (of_option, with_3_only))
        assert_frame_equal(found, wanted)


def analyse_pair(x: gg.Experiment, measures: str, **options: Any) -> dict[str, list[pl.DataFrame]]:
    """Return the frames of the analyses of the systems new and third."""
    compared = x.compare(measures, baseline="new", **options)
    frames = {"evaluate": [x.evaluate(measures).values], "compare": [compared.pairs, compared.values]}
    explained = x.explain("new", "third", measures.split()[0], **options)
    return frames | {"explain": [getattr(explained, frame) for frame in EXPLAINED]}


@pytest.mark.parametrize("order", ["interleaved", "last"])
def test_an_order_gives_the_values_of_runs_that_were_flattened_by_hand(order: str) -> None:
    inputs = make_inputs(found="d{}")
    flat = inputs.change_runs(lambda run: gg.flatten(run, order=order))
    found, wanted = (
        gg.Experiment(inputs.qrels, runs, resamples=99, **options)
        for runs, options in ((inputs.runs, {"order": order}), (flat.runs, {}))
    )
    measures = "nDCG@10 P@5 AP"
    assert_frame_equal(found.evaluate(measures).values, wanted.evaluate(measures).values)
    assert_frame_equal(found.pr_curve(), wanted.pr_curve())
    costs = ("more_iterations", "more_results")
    pairs = (x.compare(measures).pairs.drop(costs) for x in (found, wanted))
    assert_frame_equal(*pairs)


def test_missing_absent_gives_the_differences_over_the_queries_of_both_runs() -> None:
    inputs = make_inputs(found="d{}")
    pair = {name: inputs.runs[name] for name in ("new", "third")}
    query_ids = set(pair["new"][0]["query_id"]) & set(pair["third"][0]["query_id"])
    both = take_queries(inputs._replace(runs=pair), sorted(query_ids))
    assert len(query_ids) < inputs.qrels["query_id"].n_unique()

    experiment = gg.Experiment(inputs.qrels, pair, resamples=99, missing="absent")
    wanted = gg.Experiment(both.qrels, both.runs, resamples=99)
    pairs = (
        x.compare(MEASURES).pairs.drop("low_coverage", "more_iterations", "more_results") for x in (experiment, wanted)
    )
    assert_frame_equal(*pairs)
    explained, by_hand = (x.explain("new", "third", "nCG@3") for x in (experiment, wanted))
    assert_frame_equal(explained.queries.drop_nulls("difference"), by_hand.queries)
    assert_frame_equal(explained.causes, by_hand.causes)


def test_incomplete_zero_explains_the_difference_to_a_run_without_the_query() -> None:
    inputs = make_inputs(found="d{}")
    pair = {name: inputs.runs[name] for name in ("new", "third")}
    outcomes = pl.DataFrame(
        {"query_id": ["q1", "q2"] * 2, "system": ["new"] * 2 + ["third"] * 2, "completed": [1, 1, 0, 1]}
    )
    never_searched = pl.DataFrame({"query_id": ["q1"]})
    rows = pair["third"][0].filter(pl.col("query_id") != "q1")
    by_hand = pair | {"third": [pl.concat([rows, never_searched], how="diagonal")]}

    experiment = gg.Experiment(inputs.qrels, pair, resamples=99, incomplete="zero")
    wanted = gg.Experiment(inputs.qrels, by_hand, resamples=99)
    explained = (
        experiment.explain("new", "third", "nCG@3", outcomes=outcomes),
        wanted.explain("new", "third", "nCG@3"),
    )
    for frame in ("queries", "causes"):
        names = (
            ["measure", "base", "new", "difference"]
            if frame == "queries"
            else ["measure", "counted_by", "documents", "amount"]
        )
        assert_frame_equal(*(getattr(of, frame).select(names) for of in explained))
