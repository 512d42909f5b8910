"""Scores each search and each query of a log, as annotations of the spans and traces on a trace server.

`annotate` makes the table. `hosts/phoenix.py` and `hosts/langfuse.py` send it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ir_measures
import polars as pl

from goodgain.errors import GoodgainError, InputError, count_of, notice, without_notices
from goodgain.formats import Qrels
from goodgain.formats.qrels import load_qrels
from goodgain.logs.dedup import deduplicate
from goodgain.logs.dedup.deduplication import find_reissued_ids
from goodgain.logs.traces import to_run
from goodgain.logs.traces.output.conversion import read_frames
from goodgain.logs.traces.output.results_to_run import is_of_run, list_runs
from goodgain.logs.traces.output.run_batches import LACKS_IDS
from goodgain.logs.traces.reading.query_ids import read_query_ids
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading.trace_files_and_tasks import Paths
from goodgain.measures.changed_scores import leave_out_empty
from goodgain.measures.ledger_values import tabulate_ledger
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.thresholds import find_thresholds
from goodgain.options import spell
from goodgain.scoring.scoring import Scoring, notices_for

#: Name of an annotation of a search -> column of the ledger.
OF_SEARCHES = {"new_good": "GR", "repeats": "Dup", "unjudged": "Unjudged"}
_SEARCH_KEY = ["query_id", "iteration", "search"]
#: Status of a server -> problem and remedy.
_REMEDIES = {
    401: "the key is not accepted. Set {keys}",
    403: "the key may not write here. Set {keys}",
    404: "it does not know this address, or a span or trace of the log. Check --base-url, and take a log of this server",
    429: "the rate limit is exceeded. Run the command again later",
}


class NotWrittenError(GoodgainError):
    """Raised if a server refuses annotations. The message says how many were written."""

    exit_status = 1

    @classmethod
    def of(cls, reason: str, written: int, total: int, repeating: str) -> NotWrittenError:
        verb = "was" if written == 1 else "were"
        message = f"{reason}. {written:,} of {count_of(total, 'annotation')} {verb} written"
        if written:
            message += f". {repeating}"
        return cls(message)


def annotate(
    qrels: Any,
    traces: Paths,
    measures: Measures = "nCG SRR",
    *,
    rel: float | None = None,
    query_ids: Any = None,
    **options: Any,
) -> pl.DataFrame:
    """Score the searches and the queries in logs of spans.

    Args:
        qrels: any input of `goodgain.read_qrels`.
        traces: logs of spans, as exported by Phoenix, Langfuse or OpenTelemetry.
        measures: the measures of each query, at the last iteration.
        rel: the smallest good label, as in `goodgain.evaluate`.
        query_ids, options: as in `goodgain.read_traces`.

    Returns:
        A frame with query_id, trace_id, span_id, name and score. The span of each search has the scores `new_good`,
        `repeats` and `unjudged`, counted as in a ledger where each search is an iteration. Rows without span_id hold the
        measures of the whole trace, as in `evaluate`. If a query has no results, measures such as SRR have no row. Queries
        without judgments have no rows.

    Raises:
        InputError: the logs or the qrels cannot be read, the logs have no spans, or no query of the logs is judged.

    >>> log = "tests/logs/traces/fixtures/langfuse/story.json"
    >>> for row in annotate({"story": {"d1": 3, "d3": 0}}, log).select("span_id", "name", "score").rows()[-5:]:
    ...     print(*row)
    o16 new_good 0.0
    o16 repeats 1.0
    o16 unjudged 1.0
    None nCG 1.0
    None SRR 0.3333333333333333
    """
    parsed = parse_measures(measures, rel=rel)
    (good,) = find_thresholds(parse_measures("CG", rel=rel))
    table = None if query_ids is None else read_query_ids(query_ids)
    results, trace_ids = _read(traces, ReadOptions(**options, query_ids=table))
    judged = load_qrels(qrels).select_queries(trace_ids.get_column("query_id").unique().to_list())
    judged_traces = _select_judged(trace_ids, judged)

    annotations = []
    for name in list_runs(judged_traces):
        rows = results.filter(is_of_run(name))
        of_searches = _annotate_searches(judged, rows, good)
        of_queries = _annotate_queries(judged, rows, parsed, rel)
        scores = pl.concat([of_searches, of_queries], how="diagonal")
        traces_of_run = judged_traces.filter(is_of_run(name)).select("query_id", "trace_id")
        annotations.append(traces_of_run.join(scores, on="query_id", maintain_order="left_right"))
    return pl.concat(annotations).select("query_id", "trace_id", "span_id", "name", "score")


def _read(traces: Paths, options: ReadOptions) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two frames: the results in logs, deduplicated as in `convert_traces`, and the trace id of each query."""
    (results, ids), summary = read_frames(traces, options, ["traces"])
    if ids.is_empty():
        remedy = "give what Phoenix, Langfuse or OpenTelemetry exported"
        raise InputError(f"the logs have no spans ({', '.join(summary.formats)}): {remedy}")
    reissued = pl.col("query_id").is_in([*find_reissued_ids(results)])
    needs_names = results.select(LACKS_IDS | reissued).to_series()
    if needs_names.any():
        named = deduplicate(results.filter(needs_names)).frame.select(*results.columns, "document")
        results = pl.concat([named, results.filter(~needs_names).with_columns(document="doc_id")])
    return results, ids


def _select_judged(trace_ids: pl.DataFrame, judged: Qrels) -> pl.DataFrame:
    """Return the traces whose query is judged. A notice counts the other traces."""
    judged_traces = trace_ids.filter(pl.col("query_id").is_in(judged.query_ids.implode()))
    if judged_traces.is_empty():
        queries = ", ".join(map(repr, trace_ids.get_column("query_id").unique(maintain_order=True).head(5)))
        problem = f"the qrels have no judgments of the queries in the logs ({queries})"
        raise InputError(f"{problem}; set query ids with {spell('query_ids')}")
    unjudged = trace_ids.height - judged_traces.height
    if unjudged:
        verb, pronoun = ("has", "it gets") if unjudged == 1 else ("have", "they get")
        notice(
            "queries_without_judgments",
            f"{unjudged} of {count_of(trace_ids.height, 'query', 'queries')} {verb} no judgments: {pronoun} no annotations",
        )
    return judged_traces


def _annotate_searches(judged: Qrels, rows: pl.DataFrame, good: float) -> pl.DataFrame:
    """Return the annotations of searches: query_id, span_id, name, score. Each search counts as an iteration."""
    searched = rows.filter(pl.col("iteration") > 0)  # 0: the query has no search
    searches = searched.select(*_SEARCH_KEY, "call_id").unique(_SEARCH_KEY).sort(_SEARCH_KEY)
    searches = searches.with_columns(number=pl.int_range(1, pl.len() + 1).over("query_id"))

    # the n-th search of a query becomes search 1 of iteration n
    renumbered = rows.join(searches.drop("call_id"), on=_SEARCH_KEY)
    renumbered = renumbered.with_columns(iteration=pl.col("number"), search=1)
    system = ""  # a run without a name
    with without_notices():  # those on the queries say the same
        counts = Scoring(judged, {system: to_run(renumbered)}).count_runs([good])[system]

    name_of_column = {column: name for name, column in OF_SEARCHES.items()}
    ledger = tabulate_ledger(counts, good).rename(name_of_column)
    counts_of_searches = searches.join(ledger, left_on=["query_id", "number"], right_on=["query_id", "iteration"])
    counts_of_spans = counts_of_searches.drop_nulls("call_id").rename({"call_id": "span_id"})
    # one row per (search, name)
    index = ["query_id", "number", "span_id"]
    annotations = counts_of_spans.unpivot([*OF_SEARCHES], index=index, variable_name="name", value_name="score")
    annotations = annotations.sort("number", maintain_order=True)
    return annotations.select("query_id", "span_id", "name", pl.col("score").cast(pl.Float64))


def _annotate_queries(
    judged: Qrels, rows: pl.DataFrame, measures: list[ir_measures.Measure], rel: float | None
) -> pl.DataFrame:
    """Return the annotations of queries: query_id, name, score."""
    scoring = Scoring(judged, {"": to_run(rows)}, rel=rel)
    with scoring.tell():
        with notices_for(measures):
            scores = leave_out_empty(scoring.score_runs(measures)[""], measures)
        scoring.warn_of_coverage({"": scores.coverage})
    values = scores.per_query.rename({"measure": "name", "value": "score"})
    return values.filter(pl.col("score").is_finite())


def explain_refusal(address: str, status: int, answer: str, keys: Sequence[str], hide: Callable[[str], str]) -> str:
    """Return a message that says why a server refused a request, and the remedy. `hide` is a function that removes secrets."""
    remedy = _REMEDIES.get(status, "Check the server, and run the command again").format(keys=" and ".join(keys))
    message = f"{address} answers {status}: {remedy}"
    quoted = hide(" ".join(answer.split()))[:300]
    return f"{message} ({quoted})" if quoted else message


def explain_silence(address: str, reason: str) -> str:
    return f"{address}: cannot be reached ({reason}). Start the server, or correct --base-url"
