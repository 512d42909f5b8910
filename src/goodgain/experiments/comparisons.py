"""The public functions that compare and explain systems. Functions that only score are in another file: they need fewer imports."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import polars as pl

from goodgain.analysis.comparing.compare_systems import compare_scores, read_unread
from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_question import Question
from goodgain.analysis.comparing.comparison_sentences import describe_incomplete, describe_shared_queries
from goodgain.analysis.comparing.outcomes import check_completed, find_incomplete
from goodgain.analysis.comparing.required_lines import BASELINE, Requirement
from goodgain.analysis.comparing.use_of_documents import check_uses
from goodgain.analysis.explaining.causes import divide_measure
from goodgain.analysis.explaining.explanation import (
    Explanation,
    explain_systems,
    list_pairs,
    pair_runs,
    read_results_of,
    select_broken,
)
from goodgain.counting.coverage import measure_coverage
from goodgain.counting.run_opening import check_systems, name_runs
from goodgain.errors import GoodgainNotice, InputError, collect_notices, notice
from goodgain.experiments.analyses import OF_OPENED, Analyses
from goodgain.experiments.experiment import Experiment
from goodgain.experiments.shared_arguments import ExperimentOptions, ExplainOptions, takes_options
from goodgain.experiments.shared_steps import KeptResults, find_name, find_rels
from goodgain.formats.query_tables import read_outcomes_of_runs
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.scores import Scores
from goodgain.options import SCORING, STATISTICS, check_whole_number, spell


@takes_options
def compare(
    qrels: Any,
    systems: Mapping[str, Any],
    measures: Measures,
    *,
    baseline: str | None = None,
    against: str | None = None,
    iterations: int | Sequence[int] | None = None,
    groups: Any = None,
    outcomes: Any = None,
    baseline_file: str | os.PathLike[str] | None = None,
    require: Iterable[str | Requirement] = (),
    pass_k: int | None = None,
    detect: float | None = None,
    **options: Unpack[ExperimentOptions],
) -> Comparison:
    """Compare two or more systems on any measures of goodgain and ir_measures.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        systems: maps names of two or more systems to runs (inputs of `read_run`), or to lists of runs (replicates). Values of
            replicates are averaged query by query. All tests are over queries.
        measures: names, measure objects or both. `goodgain measures` lists the better direction of each. For a measure
            that is not listed there, higher is better.
        baseline: the system to compare all others with. With None, each system is compared with all before it.
        against: `previous` compares each system only with the system before it, for the stages of a pipeline. Holm's
            method then corrects over these pairs only.
        iterations: if a measure of goodgain has no @, a number n adds this measure at each of the iterations 1..n. A list of
            numbers replaces the measure by the measure at each of these iterations.
        groups: a file or a frame of query_id and group, to compare on each group of queries too.
        outcomes: a file or a frame of query_id, system and columns of numbers, such as solved (0 or 1). Each column is
            compared like a measure for which higher is better, and is correlated with the measures. The frame
            `funnel(...).per_query` can also be given; goodgain knows the better direction of its columns.
        baseline_file: a file of `Comparison.write_baseline`. Its system is called `baseline`, and one run is enough to
            compare with it.
        require: requirements such as `nCG@3>=0.5`, for `Comparison.flips`. Measures in requirements are compared too. The
            function `check_requirements` checks the requirements.
        pass_k: the number k in `Comparison.flips`. None: the smallest number of runs that a query has.
        detect: the difference for `Comparison.detectable`; None: the observed difference.
        {options}

    Returns:
        A `Comparison` on all queries of the qrels. A query that a run lacks counts as a query without a search (N = 0).
        A pair leaves out queries for which one of the two systems has no value. A query without results has no value of
        SRR, Fallout and Unjudged, for which lower is better. Every mean is over queries.
        A difference is significant if the Holm-corrected p of the randomisation test is at most alpha. With `bounds`, an
        unjudged document gets the same label in all systems, and runs are read into memory.

    Raises:
        InputError: fewer than two systems, an unknown baseline, a baseline together with `against`, unreadable input,
            two systems that share no judged query, or a baseline file made with other judgments.
        MeasureError: a measure is unknown, or cannot be computed from this input.

    Source: Smucker, Allan and Carterette, CIKM 2007 (tests); Carterette, TOIS 30(1), 2012 (many systems).

    >>> qrels = {f"q{number}": {"a": 3, "b": 0} for number in range(6)}
    >>> old, new = ({query_id: {doc_id: 1.0} for query_id in qrels} for doc_id in "ba")
    >>> found = compare(qrels, {"old": old, "new": new}, "RR")
    >>> found.pairs.select("system", "against", "difference", "wins", "p_randomisation_holm", "verdict").rows()
    [('new', 'old', 1.0, 6, 0.03125, 'better')]
    """
    return Experiment(qrels, systems, **options).compare(
        measures, baseline=baseline, against=against, iterations=iterations, groups=groups, outcomes=outcomes,
        baseline_file=baseline_file, require=require, pass_k=pass_k, detect=detect,
    )  # fmt: skip


def compare_kept(of: Analyses, measures: Measures, own: Mapping[str, Any]) -> Comparison:
    """Compare the systems, or return the cached comparison. `own` maps arguments of `gg.compare` to values (None: not given)."""
    asked = parse_measures(measures, rel=of.options["rel"])
    return of.keep_result("compare", {**own, "measures": asked}, lambda: _compare(of, asked, own))


def _compare(of: Analyses, measures: Measures, own: Mapping[str, Any]) -> Comparison:
    check_systems(of.systems, least=2 if own.get("baseline_file") is None else 1)
    opened = of.opened
    shared = {option.name: of.options[option.name] for option in (*SCORING, *STATISTICS)}
    given = {name: value for name, value in own.items() if value is not None}
    question = Question(measures=measures, runs_of=opened.names, **shared, **given)
    of_labels: list[GoodgainNotice] = []
    with collect_notices(of_labels.append):
        of.warn_of_labels(question.asked, shared["provider"])
    kept = question.read_baseline(opened.qrels)
    scores = of.score_runs(question.asked, question.needed)
    of.warn_of_scores(scores if kept is None else {**scores, BASELINE: kept}, question.asked)
    called = {name: find_name(run) for name, run in opened.runs.items()}
    query_ids = opened.qrels.query_ids
    incomplete = find_incomplete(question.outcome_rows, opened.names, called, query_ids, question.incomplete)
    of_labels += describe_incomplete(incomplete, question.incomplete)
    empty = _score_nothing(of, question) if incomplete and question.incomplete == "zero" else None
    scored = {
        name: question.finish_run(opened.qrels, run, scores[name], kept, incomplete.get(name), empty)
        for name, run in opened.runs.items()
    }
    unread = {name: read_unread(source) for name, source in name_runs(of.systems)[0].items()}
    return compare_scores(question, query_ids, scored, kept, of_labels, unread, incomplete, of.draw)


def _score_nothing(of: Analyses, question: Question) -> Scores:
    nothing = pl.DataFrame(schema={"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String})
    options = {name: of.options[name] for name in ("rel", "order", "provider")}
    with collect_notices(lambda _: None):
        alone = Analyses(of.opened.qrels, {"": nothing}, OF_OPENED | options, KeptResults())
        return alone.score_runs(question.asked, question.needed)[""]


@takes_options
def explain(
    qrels: Any,
    base: Any,
    new: Any,
    measures: Measures = "CG",
    *,
    results: Any = None,
    uses: Any = None,
    outcomes: Any = None,
    top: int = 5,
    **options: Unpack[ExplainOptions],
) -> Explanation:
    """Explain why a system is better or worse than another, by queries, searches and documents.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        base, new: runs in any form that `read_run` accepts. A system is named by its file, else by its tag. If several
            runs of a system are given as a list, each run of base is compared with each run of new. The query `q (1, 2)` is
            then query q in the first run of base and the second run of new.
        measures: CG, NumGood, DCGG, nCG, nDCGG, with or without a cutoff; or a rate: RG, DRG, SRE, SRR.
        results: the frame from `read_traces`, or a file of this frame, for search strings and titles. Give one table of both
            systems, or a list with a table of each system.
        uses: the documents that each system used, as in `funnel`, to show which good documents were never opened or cited.
        outcomes: outcomes with a column `completed`, as in `compare`, if `incomplete` is `zero` or `absent`.
        top: how many queries to show, in each direction.
        {options}

    Returns:
        An `Explanation` of all queries of the qrels. Queries and values are those of `compare` with the same options. The
        explanation has no significance tests: `compare` has them.

    Raises:
        InputError: input that cannot be read, or two systems that share no judged query.
        MeasureError: a measure is unknown, or `explain` does not support it.

    >>> import polars as pl
    >>> qrels = {"q": {"a": 3, "b": 2}}
    >>> old = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
    >>> new = pl.DataFrame({"query_id": "q", "iteration": [1], "doc_id": ["a"]})
    >>> explain(qrels, old, new).causes.rows()
    [('q', 'CG', 'base', 'stopped_before', 1, -2.0)]
    """
    x = Experiment(qrels, {"base": base, "new": new}, **options).name_by_files()
    return x.explain(x.systems[0], x.systems[1], measures, results=results, uses=uses, outcomes=outcomes, top=top)


def explain_pair(
    of: Analyses,
    names: Sequence[str],
    measures: Measures,
    *,
    results: Any = None,
    uses: Any = None,
    outcomes: Any = None,
    top: int = 5,
) -> Explanation:
    """Explain the difference of two systems. The arguments are those of `gg.explain`."""
    opened, rel = of.opened, of.options["rel"]
    runs = {name: [opened.runs[run] for run in opened.names[name]] for name in names}
    is_paired = any(len(several) > 1 for several in runs.values())
    if is_paired and (results is not None or uses is not None):
        option = spell("uses") if results is None else spell("results")
        raise InputError(f"{option} needs one run of each system. Give one run each, or leave out {option}.")
    check_uses(opened.qrels, uses)
    check_whole_number("top", top, 0)
    parts = {str(measure): divide_measure(measure) for measure in parse_measures(measures, rel=rel)}
    of.warn_of_labels([one.measure for one in parts.values()])
    read = read_results_of([*runs], results)
    of.count(find_rels(parts.values()))
    runs_of = {name: opened.names[name] for name in names}
    broken = _find_broken(of, runs_of, outcomes)
    qrels, pairs = opened.qrels, None
    if is_paired:
        pairs = list_pairs(qrels.query_ids, *runs_of.values())
        qrels, single = pair_runs(qrels, runs)
        with collect_notices(lambda _: None):  # the notices on each run were given before
            alone = Analyses(qrels, single, OF_OPENED, KeptResults())
            searched = alone.search([*parts.values()], dict(zip(names, names, strict=True)))
    else:
        searched = of.search([*parts.values()], {name: opened.names[name][0] for name in names})
    if few := describe_shared_queries({name: measure_coverage(one.counts).queries for name, one in searched.items()}):
        notice(few)
    broke_off = select_broken(broken, runs_of, pairs)
    missing, incomplete = of.options["missing"], of.options["incomplete"]
    counted = {name: one.apply_options(missing, incomplete, broke_off[name]) for name, one in searched.items()}
    return explain_systems(qrels, counted, parts, read.spell_as(searched), uses=uses, top=top, pairs=pairs)


def _find_broken(of: Analyses, runs_of: Mapping[str, Sequence[str]], outcomes: Any) -> dict[str, pl.Series]:
    """Return the queries of each run whose traces broke off, unless their results count (`incomplete="keep"`)."""
    incomplete = of.options["incomplete"]
    if incomplete == "keep":
        return {}
    rows = None if outcomes is None else read_outcomes_of_runs(outcomes)
    check_completed(rows, incomplete)
    called = {run: find_name(of.opened.runs[run]) for runs in runs_of.values() for run in runs}
    broken = find_incomplete(rows, runs_of, called, of.opened.qrels.query_ids, incomplete)
    for told in describe_incomplete(broken, incomplete):
        notice(told.text)
    return broken
