"""Comparisons and explanations of an experiment; they load more than scores need."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from goodgain.analysis.comparing.causes import divide_measure
from goodgain.analysis.comparing.compare_systems import compare_scores, read_unread
from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_question import BASELINE, Question
from goodgain.analysis.comparing.comparison_sentences import describe_incomplete, describe_shared_queries
from goodgain.analysis.comparing.explanation import Explanation, explain_systems, pair_runs, read_results_of
from goodgain.analysis.comparing.outcomes import find_incomplete
from goodgain.analysis.comparing.use_of_documents import check_uses
from goodgain.counting.coverage import measure_coverage
from goodgain.errors import GoodgainNotice, InputError, collect_notices, notice
from goodgain.experiments.analyses import OF_OPENED, Analyses
from goodgain.experiments.shared_steps import KeptResults, find_name, find_rels
from goodgain.formats.systems import check_systems, name_runs
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.scores import Scores
from goodgain.options import SCORING, STATISTICS, check_whole_number, spell


def compare(of: Analyses, measures: Measures, own: Mapping[str, Any]) -> Comparison:
    """Compare the systems; `own` as in `gg.compare`, None where it is not given."""
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
    return compare_scores(question, query_ids, scored, kept, of_labels, unread, incomplete)


def _score_nothing(of: Analyses, question: Question) -> Scores:
    nothing = pl.DataFrame(schema={"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String})
    options = {name: of.options[name] for name in ("rel", "order", "provider")}
    with collect_notices(lambda _: None):
        alone = Analyses(of.opened.qrels, {"": nothing}, OF_OPENED | options, KeptResults())
        return alone.score_runs(question.asked, question.needed)[""]


def explain(
    of: Analyses, names: Sequence[str], measures: Measures, *, results: Any = None, uses: Any = None, top: int = 5
) -> Explanation:
    """Explain the difference of two systems; arguments as in `gg.explain`."""
    opened, rel = of.opened, of.options["rel"]
    runs = {name: [opened.runs[run] for run in opened.names[name]] for name in names}
    is_paired = any(len(several) > 1 for several in runs.values())
    if is_paired and (results is not None or uses is not None):
        option = spell("uses") if results is None else spell("results")
        raise InputError(f"{option} belongs to one run of each system. Give one run each, or leave out {option}.")
    check_uses(opened.qrels, uses)
    check_whole_number("top", top, 0)
    parts = {str(measure): divide_measure(measure) for measure in parse_measures(measures, rel=rel)}
    of.warn_of_labels([one.measure for one in parts.values()])
    read = read_results_of([*runs], results)
    of.count(find_rels(parts.values()))
    qrels = opened.qrels
    if is_paired:
        qrels, single = pair_runs(qrels, runs)
        with collect_notices(lambda _: None):  # those on each run were given
            alone = Analyses(qrels, single, OF_OPENED, KeptResults())
            searched = alone.search([*parts.values()], dict(zip(names, names, strict=True)))
    else:
        searched = of.search([*parts.values()], {name: opened.names[name][0] for name in names})
    if few := describe_shared_queries({name: measure_coverage(one.counts).queries for name, one in searched.items()}):
        notice(few)
    return explain_systems(qrels, searched, parts, read.spell_as(searched), uses=uses, top=top)
