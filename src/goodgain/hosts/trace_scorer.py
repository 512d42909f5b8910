"""Scores one trace at a time, for hosts such as Inspect and MLflow."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from goodgain.errors import GoodgainNotice, InputError, collect_notices, count_of
from goodgain.formats import read_qrels
from goodgain.logs.traces import Summary, read_traces, to_run
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.tools import make_tool_predicate
from goodgain.measures.ledger_values import tabulate_ledger
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.thresholds import find_thresholds, warn_of_labels
from goodgain.scoring.scoring import Scoring, notices_for


class TraceScores(NamedTuple):
    """The scores of one trace. `explanation` describes each iteration; `notes` are notices. A value that is not finite is None."""

    values: dict[str, float | None]
    explanation: str
    notes: list[str]
    signature: dict[str, Any]


class TraceScorer:
    """Scores traces of one format with one table of qrels.

    `query_ids_are` says in error messages what the host's query ids are, such as "the ids of the samples". `options` are options
    of `goodgain.read_traces`. `errors` is ignored, because every error is raised.
    """

    def __init__(
        self,
        qrels: Any,
        measures: Measures,
        *,
        format: str,  # noqa: A002  # as in read_traces
        query_ids_are: str,  # words for an error message
        rel: float | None = None,
        **options: Any,
    ) -> None:
        self._qrels = read_qrels(qrels)
        self._measures = parse_measures(measures, rel=rel)
        self.names = [str(measure) for measure in self._measures]
        self._query_ids_are = query_ids_are
        self._options = {**options, "format": format, "errors": "raise"}
        if "tools" in options:
            # Names would raise an error in each trace that lacks these tools. A predicate raises none.
            self._options["tools"] = make_tool_predicate(options["tools"])
        ReadOptions(**self._options)  # checks the options now, not in every trace
        warn_of_labels(self._qrels.frame, self._measures, rel=rel)

    def score(self, log: bytes) -> TraceScores:
        """Return the scores of the trace in a log. With turns="all" the scores are means over turns."""
        notices: list[GoodgainNotice] = []
        summaries: list[Summary] = []
        with collect_notices(notices.append), tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            path.write_bytes(log)
            results = read_traces(path, report=summaries.append, **self._options)
            ids = results.get_column("query_id").unique(maintain_order=True).to_list()
            judged = self._qrels.select_queries(ids)
            if not len(judged):
                problem = f"the qrels have no judgments of the query {', '.join(map(repr, ids))}"
                raise InputError(f"{problem}; the query ids of the qrels must be {self._query_ids_are}")

            scoring = Scoring(judged, {"": to_run(results)})
            rel = find_thresholds(self._measures)[0]
            with notices_for(self._measures):
                scores = scoring.score_runs(self._measures)[""]
                counts = scoring.count_runs([rel])
                scoring.warn_of_counts(counts)
            ledger = tabulate_ledger(counts[""], rel)

        lines = [
            f"iteration {row['iteration']}: {count_of(row['R'], 'result')}, {row['GR']} new and good, "
            f"{row['Dup']} repeated, {row['Unjudged']} unjudged"
            for row in ledger.iter_rows(named=True)
        ]
        if not lines:
            called_tools = ", ".join(sorted(filter(None, summaries[0].called_tools)))
            lines = [f"no search; tools called: {called_tools}" if called_tools else "no search"]
        notes = list(dict.fromkeys(map(str, notices)))
        return TraceScores(scores.means, "\n".join(lines), notes, scores.signature)
