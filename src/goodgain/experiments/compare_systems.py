"""Compares the systems of an experiment."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from goodgain.analysis.comparing.compare_scores import compare_scores, read_unread
from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_notes import describe_incomplete
from goodgain.analysis.comparing.comparison_question import Question
from goodgain.analysis.comparing.outcomes import find_incomplete
from goodgain.analysis.comparing.required_lines import BASELINE
from goodgain.analysis.comparing.shared_results import SharedResults, find_shared
from goodgain.counting.run_opening import check_systems, name_runs
from goodgain.errors import GoodgainNotice, collect_notices, without_notices
from goodgain.formats import read_run
from goodgain.measures.bounds import find_largest_label
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.scores import Scores
from goodgain.measures.thresholds import find_queries_without_good
from goodgain.options import CORRECTIONS, SCORING, STATISTICS, spell
from goodgain.scoring.kept import KeyedBy, by_content
from goodgain.scoring.opened import Opened, find_name
from goodgain.scoring.scoring import Scoring, notices_for
from goodgain.scoring.steps import score_runs

#: The arguments of `compare` that are tables; they are read at each call.
_TABLES = ("groups", "outcomes", "baseline_file")


def compare_systems(x: Scoring, measures: Measures | None, arguments: Mapping[str, Any]) -> Comparison:
    """Compare the systems, or return the kept comparison. `arguments` are those of `gg.compare`; None means not given.

    Without labels, `measures` may be None: all measures that need no label, and the share of the queries that searched.
    """
    arguments = {name: value for name, value in arguments.items() if value is not None}
    check_systems(x.sources[1], least=1 if "baseline_file" in arguments else 2)
    options = x.select_options(SCORING, STATISTICS, CORRECTIONS)
    parsed = parse_measures(x.choose_measures(measures), rel=options["rel"])

    if options["bounds"]:
        x.refuse_without_labels(spell("bounds", True))
    settings = options | arguments | {"has_labels": x.has_labels, "with_searched": measures is None}
    question = Question(measures=parsed, runs_of=x.opened.names, **settings)
    tables = [by_content(arguments.get(name)) for name in _TABLES]
    values = [value for name, value in sorted(arguments.items()) if name not in _TABLES]
    keyed_question = KeyedBy(question, [parsed, [*options.values()], [*arguments], [measures is None, *values], tables])

    notices_on_labels: list[GoodgainNotice] = []
    with collect_notices(notices_on_labels.append):
        x.check_labels(question.asked, options["provider"])
    baseline = question.read_baseline(x.opened.qrels)
    with notices_for(question.asked):
        scores = x.score_runs(question.needed)
    x.warn_of_scores(scores if baseline is None else {**scores, BASELINE: baseline}, question.asked)
    nothing = _score_nothing(x, question) if question.incomplete == "zero" else None

    sources, _ = name_runs(x.sources[1])
    unread = {name: read_unread(source) for name, source in sources.items()}
    return x.kept.call(
        _compare,
        keyed_question,
        x.opened,
        scores,
        nothing,
        KeyedBy(baseline, None),  # the table of the question
        KeyedBy(notices_on_labels, [str(notice) for notice in notices_on_labels]),
        KeyedBy(unread, repr(unread)),
        x.next_step,
    )


def _compare(
    question: Question,
    opened: Opened,
    scores: Mapping[str, Scores],
    nothing: Scores | None,
    baseline: Scores | None,
    notices_on_labels: list[GoodgainNotice],
    unread: Mapping[str, Any],
    next_step: str,
) -> Comparison:
    """Compare the systems from the scores of their runs. `nothing` has the scores of a run without a row, if they are needed."""
    query_ids = opened.qrels.query_ids
    other_names = {name: find_name(run) for name, run in opened.runs.items()}
    incomplete = find_incomplete(question.outcome_rows, opened.names, other_names, query_ids, question.incomplete)
    notices = [*notices_on_labels, *describe_incomplete(incomplete, question.incomplete, question.asked)]

    scored = {}
    for name, run in opened.runs.items():
        left_out = incomplete.get(name)
        scored[name] = question.finish_run(opened.qrels, run, scores[name], baseline, left_out, nothing)
    label = find_largest_label(opened.qrels.frame)
    shared = None if question.has_labels else _find_shared(question, opened, incomplete)
    without_good = find_queries_without_good(question.asked, opened.qrels.frame, query_ids)
    return compare_scores(
        question, query_ids, scored, baseline, notices, unread, incomplete, label, without_good, shared, next_step
    )


def _find_shared(question: Question, opened: Opened, incomplete: Mapping[str, pl.Series]) -> SharedResults:
    """Return what the systems share. A baseline file has no results, so its pairs are left out."""
    systems = question.systems
    pairs = [(systems[system], systems[against]) for system, against in question.pairs]
    pairs_with_results = [pair for pair in pairs if set(pair) <= opened.names.keys()]
    runs_of = {name: [opened.runs[run] for run in runs] for name, runs in opened.names.items()}
    left_out = {}
    if question.incomplete != "keep":
        left_out = {name: [incomplete.get(run) for run in runs] for name, runs in opened.names.items()}
    return find_shared(runs_of, pairs_with_results, opened.qrels.query_ids, left_out, question.order)


def _score_nothing(x: Scoring, question: Question) -> Scores:
    """Return the scores of a run without a row: a query that counts as zero has the values of a query without a search."""
    rows = pl.DataFrame(schema={"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String})
    tables = {}
    for option, tables_of_runs in x.read_tables(question.needed).items():
        (table, *_) = tables_of_runs.values()
        tables[option] = {"": table.clear()}

    options = {name: x.options[name] for name in ("rel", "order", "provider")}
    with without_notices():
        empty = Opened(x.opened.qrels, {"": read_run(rows)}, {"": [""]})
        return score_runs(empty, question.needed, tables, **options)[""]
