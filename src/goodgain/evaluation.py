"""Scores of a run: our measures and the hosts', in one call and one table."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import ir_measures
import narwhals as nw
import polars as pl

from goodgain.counting.coverage import Coverage, measure_coverage, warn_if_misleading
from goodgain.counting.ledger import Counts, count
from goodgain.counting.query_batches import QueryBatch, RankingRequest, consume_batches
from goodgain.counting.run_file import RunFile
from goodgain.counting.run_opening import open_run_and_qrels, sample_rows
from goodgain.dedup.urls import find_other_spellings
from goodgain.errors import InputError, notice
from goodgain.formats import Qrels, Run, read_run
from goodgain.formats.column_names import Columns
from goodgain.formats.run import describe_likely_iteration, warn_of_likely_iteration, warn_once
from goodgain.measures.bounds import RaisedScores, find_largest_label, find_rule
from goodgain.measures.declaration import GoodGainMeasure, RankedMeasure
from goodgain.measures.ledger_values import BatchScores, average_queries, make_finite
from goodgain.measures.names import Measures, is_computed_here, parse_measures
from goodgain.measures.parameters import check_parameters
from goodgain.measures.ranking_values import RankedScores, aggregate_values, plan_measures, score_ranking
from goodgain.measures.scores import Scores
from goodgain.measures.thresholds import find_thresholds, warn_of_labels
from goodgain.providers.asking import Classic, HostScores
from goodgain.providers.labels_of_queries import QrelsByQuery
from goodgain.ranking.first_occurrences import check_order
from goodgain.version import __version__

#: URLs without a judgment that are looked at, at most, and judged URLs beside them: to parse one takes 2 µs, and large runs
#: must not take longer.
_UNJUDGED, _JUDGED = 1_500, 3_000


def evaluate(
    qrels: Any,
    run: Any,
    measures: Measures,
    *,
    rel: float | None = None,
    order: str = "seen",
    provider: str | None = None,
    bounds: bool = False,
    columns: Columns | None = None,
) -> Scores:
    """Score a run on any measures, ours and those of ir_measures.

    Args:
        qrels: what `read_qrels` takes.
        run: what `read_run` takes.
        measures: names ("nDCG@10 SRE@3"), measure objects, or a list of both.
        rel: the smallest good label, for measures of ours that name none: 1 where labels are 0 and 1. None leaves it at 2.
            `nCG@6` is then `nCG(rel=1)@6`; classic measures keep their own threshold.
        order: how classic measures get one ranking: `seen`, `interleaved` or `last`.
        provider: the provider of ir_measures that computes the classic measures; None leaves it to ir_measures.
        bounds: also give, for each value, the least and the most that it could be with other labels for the results that
            have none: each of them at 0, and each at the largest label of the qrels. For measures that are computed here
            and only rise with a label; any other has no bounds.
        columns: name in the source -> name here, for columns of run or qrels with other names: {"step": "iteration"}.

    Returns:
        `Scores`. Ours are means over all queries of the qrels, one that the run lacks having no search at all;
        queries without judgments are left out; `signature` has both numbers. A value that is not finite is null, and
        so is the mean of its measure, with a notice.

    Raises:
        InputError: the run or the qrels cannot be read; bounds with labels by iteration.
        MeasureError: a measure is unknown, or cannot be computed from this input.

    Source: the Retrieved Good Gain guideline; ir_measures for everything else.

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
    >>> scores = evaluate({"q": {"a": 3}}, run, "nDCG@10 CG SRE")
    >>> scores.mean()
    {'nDCG@10': 1.0, 'CG': 3.0, 'SRE': 0.5}
    """
    asked = parse_measures(measures, rel=rel)
    searched, judged = open_run_and_qrels(qrels, run, columns=columns)
    warn_of_labels(judged.frame, asked, rel=rel)
    return score_run(judged, searched, asked, rel=rel, order=order, provider=provider, bounds=bounds)


def score_run(
    judged: Qrels,
    searched: Run | RunFile,
    asked: Sequence[ir_measures.Measure],
    *,
    rel: float | None = None,
    order: str,
    provider: str | None,
    bounds: bool = False,
    low: bool = True,
    unasked: Collection[ir_measures.Measure] = (),
) -> Scores:
    """`evaluate` for what has been read, without the notices that are about the qrels alone.

    `rel` is the threshold that the measures were parsed with. A caller that says by itself where coverage is low gives
    `low=False`; `unasked` are the measures that the caller adds to those of the user.
    """
    check_order(order)
    if bounds:
        check_bounds(judged)
    sorted_measures = _Families.of(asked, provider)
    check_iterations(searched, sorted_measures.good_gain)
    found = _score_batches(searched, judged, sorted_measures, order=order, provider=provider, bounds=bounds)
    iterated = searched if any(measure not in unasked for measure in sorted_measures.good_gain) else None
    warn_if_misleading(found.coverage, labels=judged.labels, low=low, iterated=iterated)
    warn_of_url_variants(searched, judged)
    means = _mean_hosts(found.hosts) | sorted_measures.aggregate(found.values)
    scores = Scores(
        {str(measure): means[str(measure)] for measure in asked},
        _sign(found, judged, sorted_measures, order=order),
        found.coverage.tabulate(),
        found.values,
        found.hosts.per_query,
        found.raised,
        None if found.raised is None else sorted_measures.bounded.aggregate(found.raised),
        found.coverage.examples[0],
        rel,
    )
    _warn_if_no_value(scores, sorted_measures.ranked)
    return scores


class _Families(NamedTuple):
    """The measures of a call by what computes them: ledger, ranking table, or a host."""

    good_gain: list[GoodGainMeasure]
    ranked: list[ir_measures.Measure]
    hosts: list[ir_measures.Measure]

    @classmethod
    def of(cls, measures: Sequence[ir_measures.Measure], provider: str | None) -> _Families:
        """Sort measures; a provider that is named computes all that are not ours alone."""
        good_gain = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
        others = [measure for measure in measures if not isinstance(measure, GoodGainMeasure)]
        ranked = [m for m in others if (provider is None or isinstance(m, RankedMeasure)) and is_computed_here(m)]
        hosts = [measure for measure in others if measure not in ranked]
        for measure in hosts:
            check_parameters(measure)
        return cls(good_gain, ranked, hosts)

    def aggregate(self, values: pl.DataFrame) -> dict[str, float | None]:
        """Return the value of each measure of ours over all queries, by name."""
        means = {str(m): average_queries(values.get_column(str(m))) for m in self.good_gain}
        return means | aggregate_values(self.ranked, values)

    @property
    def bounded(self) -> _Families:
        """The measures of which bounds can be given."""
        good_gain = [measure for measure in self.good_gain if find_rule(measure)]
        return _Families(good_gain, [measure for measure in self.ranked if find_rule(measure)], [])

    @property
    def rels(self) -> list[float]:
        """The thresholds of the ledger."""
        return find_thresholds(self.good_gain)


class _Values(NamedTuple):
    """The values of a run: query_id and a column for each measure of ours; the hosts' own; and how far the run reaches.

    `without_good` is the number of judged queries without a good document, for each threshold; `raised` the values of
    measures with bounds, where every unjudged result has the largest label.
    """

    values: pl.DataFrame
    hosts: Classic
    coverage: Coverage
    without_good: list[int]
    raised: pl.DataFrame | None


def _score_batches(
    run: Run | RunFile, qrels: Qrels, families: _Families, *, order: str, provider: str | None, bounds: bool
) -> _Values:
    """Count and score a run, batch by batch."""
    by_iteration = qrels.labels is not None
    request = None
    if families.ranked or families.hosts:
        with_documents = bool(families.hosts) or by_iteration
        with_table = bool(families.ranked) and not by_iteration
        request = RankingRequest(order, with_documents, with_table, plan_measures(families.ranked).positions)

    def score(batches: Iterator[QueryBatch]) -> _Values:
        good_gain = BatchScores(families.good_gain, qrels, families.rels)
        raised = RaisedScores(*families.bounded[:2], qrels, families.rels) if bounds else None
        hosts = HostScores(families.hosts, qrels.frame, provider=provider)
        labels = QrelsByQuery(qrels)
        ranked: RankedScores | None = None
        labelled: list[tuple[pl.DataFrame, pl.DataFrame]] = []
        with ThreadPoolExecutor(1) as beside:
            for number, batch in enumerate(batches):
                if number == 0:  # beside the counting of the next blocks
                    beside.submit(lambda: qrels.digest)
                good_gain.add(batch.tally)
                if raised is not None:
                    raised.add(batch.tally, batch.table)
                if batch.table is not None:
                    ranked = ranked or RankedScores(families.ranked, qrels.judgments)
                    ranked.add(batch.table)
                if batch.ranking is not None:
                    of_batch = labels.take(batch)
                    if families.hosts:
                        hosts.add(of_batch, batch.ranking)
                    if families.ranked and by_iteration:
                        labelled.append((of_batch, batch.ranking))
        values, coverage = good_gain.finish()
        rest = labels.take_rest() if families.hosts or labelled else qrels.frame.clear()
        if labelled:  # the labels depend on the run: those of the iterations in which documents first occur
            of_run, rankings = (pl.concat(frames) for frames in zip(*labelled, strict=True))
            query_ids = values.get_column("query_id")
            found = score_ranking(families.ranked, rankings, pl.concat([of_run, rest]), query_ids)
            values = values.join(found, on="query_id", how="left", maintain_order="left")
        elif ranked is not None:
            values = values.join(ranked.finish(), on="query_id", how="left", maintain_order="left")
        without_good = [int((good_gain.pools.get_column(f"GoodPool{k}") == 0).sum()) for k in range(len(families.rels))]
        classic = hosts.finish(rest)
        classic = classic._replace(per_query=make_finite(classic.per_query))
        most = None if raised is None else make_finite(raised.finish())
        return _Values(make_finite(values), classic, coverage, without_good, most)

    return consume_batches(score, run, qrels, rels=families.rels, ranking=request)


def warn_of_url_variants(run: Run | RunFile, qrels: Qrels) -> None:
    """Give a notice where URLs of a run lack a judgment only because the qrels spell them in another way.

    Two URLs are the same where deduplication joins them by their URL alone: scheme, `www.` and `m.`, trailing slash,
    tracking parameters and fragments do not count. A sample is looked at, so that large runs take no longer.
    """
    judgments = qrels.frame.select("query_id", "doc_id")
    is_url = pl.col("doc_id").str.starts_with("http")
    if not judgments.gather_every(max(judgments.height // _JUDGED, 1)).select(is_url.any()).item():
        return
    rows = sample_rows(run).filter(is_url)
    judged = judgments.filter(pl.col("query_id").is_in(rows["query_id"].unique().implode())).filter(is_url)
    if (every := -(-judged.height // _JUDGED)) > 1:  # fewer queries, chosen by a hash of their ids
        chosen = judged.filter(pl.col("query_id").hash(0) % every == 0)
        judged = chosen if chosen.height else judged.filter(pl.col("query_id") == judged["query_id"][0])
        rows = rows.join(judged, on="query_id", how="semi")
    unjudged = rows.unique(maintain_order=True).join(
        judged, on=["query_id", "doc_id"], how="anti", maintain_order="left"
    )
    unjudged = _take_sample(unjudged, _UNJUDGED)
    pairs = list(find_other_spellings(unjudged, _take_sample(judged, 2 * _JUDGED)))
    if pairs:
        query_id, found, known = pairs[0]
        warn_once(
            run,
            f"{len(pairs):,} of {unjudged.height:,} URLs without a judgment that were looked at are judged under another "
            f"spelling ({found} in the run, {known} in the qrels, query {query_id}), and count as unjudged documents: the logs "
            "were converted apart; convert those of all systems in one call (goodgain convert old=OLD.jsonl new=NEW.jsonl "
            "-o '{system}.run'), or the later ones with --with RESULTS",
        )


def _take_sample(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    """Return rows, or of more than the size those whose documents have the least hashes."""
    if rows.height <= size:
        return rows
    return rows.sort(pl.col("doc_id").hash(0), maintain_order=True).head(size)


def check_bounds(qrels: Qrels) -> None:
    """Raise `InputError` for labels by iteration: a result has several there, and which holds depends on the run."""
    if qrels.labels is not None:
        raise InputError("bounds=True needs one label a document; read the qrels without labels='iteration'")


def check_iterations(run: Run | RunFile, measures: Sequence[GoodGainMeasure]) -> None:
    """Say where a column of a run looks like the iteration, and was not read as one.

    Raises:
        InputError: measures are asked for that look at iterations: all searches would count as one.
    """
    if run.likely_iteration is None:
        return
    if measures:
        raise InputError(f"the run has no column iteration: {describe_likely_iteration(run.likely_iteration)}")
    warn_of_likely_iteration(run)


def count_with_notices(qrels: Qrels, run: Run, rels: Sequence[float]) -> dict[float, Counts]:
    """Threshold -> ledger and pools of a run, with a notice where they mean less than they seem to.

    Raises:
        InputError: a column of the run looks like the iteration, and was not read as one.
    """
    if run.likely_iteration is not None:
        raise InputError(f"the run has no column iteration: {describe_likely_iteration(run.likely_iteration)}")
    counts = count(run.frame, qrels.frame, rels=rels, labels=qrels.labels)
    warn_if_misleading(measure_coverage(counts), labels=qrels.labels, iterated=run)
    return counts


def _mean_hosts(classic: Classic) -> dict[str, float | None]:
    """The hosts' own aggregated values; None where a query has no value, or where there is none to aggregate."""
    lacking = set(classic.per_query.filter(pl.col("value").is_null()).get_column("measure"))
    means = {str(measure): mean for measure, mean in classic.means.items()}
    return {name: mean if name not in lacking and math.isfinite(mean) else None for name, mean in means.items()}


def _warn_if_no_value(scores: Scores, ranked: Sequence[ir_measures.Measure]) -> None:
    ungraded = [name for name in map(str, ranked) if scores.means[name] is None]
    if ungraded:
        notice(
            f"{', '.join(ungraded)}: no query has a document with a grade among its first results, so there is no value; "
            "check that run and qrels name documents alike, or ask for a larger cutoff"
        )
    names = [name for name, mean in scores.means.items() if mean is None and name not in ungraded]
    if not names:
        return
    of_measure = scores.per_query.group_by("measure").agg(pl.len(), nulls=pl.col("value").null_count())
    counts = {name: f"{nulls:,} of {queries:,} queries" for name, queries, nulls in of_measure.iter_rows()}
    listed = ", ".join(f"{name} in {counts.get(name, 'any query')}" for name in names)
    notice(f"no finite value of {listed}: these values are null, and so is each mean over all queries")


def _count_nulls(measures: Sequence[ir_measures.Measure], values: pl.DataFrame) -> dict[str, int]:
    return {str(measure): values.get_column(str(measure)).null_count() for measure in measures}


def _sign(found: _Values, qrels: Qrels, families: _Families, *, order: str) -> dict[str, Any]:
    """How the values were made: versions, thresholds, who computed the classic measures, and on which judgments."""
    coverage = found.coverage
    signature: dict[str, Any] = {"goodgain": __version__, "ir_measures": ir_measures.__version__}
    has_threshold = any(measure.declaration.uses_rel for measure in families.good_gain)
    if has_threshold:
        signature["rel"] = [int(rel) if rel == int(rel) else rel for rel in families.rels]
    if families.ranked or families.hosts:
        signature["order"] = order
        computed = {host: [str(m) for m in families.hosts if m in of] for host, of in found.hosts.hosts.items()}
        of_hosts = [f"{host}:{'+'.join(names)}" for host, names in computed.items()]
        signature["classic"] = ["goodgain"] * bool(families.ranked) + of_hosts
    without_value = [f"{name}:{n}" for name, n in _count_nulls(families.ranked, found.values).items() if n]
    if without_value:
        signature["without_value"] = without_value
    if qrels.labels is not None:
        signature["labels"] = qrels.labels
    if found.raised is not None:
        signature["bounds"] = f"0..{find_largest_label(qrels.frame):g}"
    without_good = {"without_good": found.without_good} if has_threshold else {}
    return signature | {
        "qrels": qrels.digest,
        "queries": coverage.judged,
        **without_good,
        "absent_from_run": coverage.judged - coverage.both,
        "without_judgments": coverage.searched - coverage.both,
        "unjudged": coverage.unjudged / coverage.unique if coverage.unique else 0.0,
    }


def flatten(run: Any, *, order: str = "seen", columns: Columns | None = None) -> Any:
    """One classic ranking per query: the run without repeats and with one iteration.

    A query with one iteration and no repeat keeps its scores; any other gets n, n-1, ..., 1.

    Args:
        run: what `read_run` takes.
        order: `seen` (iteration, then rank), `interleaved` (position in the iteration, then iteration) or `last` (the
            last iteration alone).
        columns: name in the source -> name here, for columns with other names.

    Returns:
        A frame of the run's columns, of the kind that was given (Polars for anything but a frame); a lazy frame is
        flattened by its engine, one of Polars at once, and comes back lazy.

    Raises:
        InputError: the run cannot be read, or the order is unknown.

    >>> flatten({"q": {"a": 1.0, "b": 2.0}})["doc_id"].to_list()
    ['a', 'b']
    """
    searched = read_run(run, columns=columns)
    if isinstance(nw.from_native(run, pass_through=True), nw.LazyFrame):
        return searched.flatten_lazily(order)
    return _convert_like(searched.flatten(order), run)


def _convert_like(frame: pl.DataFrame, source: Any) -> Any:
    native = nw.from_native(source, pass_through=True) if not isinstance(source, Run) else source
    if not isinstance(native, nw.DataFrame):
        return frame
    if native.implementation.is_pandas():
        return frame.to_pandas()
    return frame.to_arrow() if native.implementation.is_pyarrow() else frame
