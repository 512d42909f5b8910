"""What analyses of iterations count: ledgers and pools of each run, and of each system with its runs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from goodgain.comparing.comparison_notes import describe_shared_queries
from goodgain.counting.coverage import Coverage, combine_coverages, measure_coverage
from goodgain.counting.ledger import Counts
from goodgain.counting.run_opening import map_documents, use_each
from goodgain.errors import notice
from goodgain.evaluation import count_with_notices
from goodgain.formats.any_source import Columns
from goodgain.formats.systems import check_systems, name_runs
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.replicate_scores import join_queries
from goodgain.measures.thresholds import find_thresholds, warn_of_labels


class SystemCounts(NamedTuple):
    """Ledgers and pools of each run of a system by threshold, and the coverage of all its runs together."""

    runs: Sequence[Mapping[float, Counts]]
    coverage: Coverage


def count_runs(
    qrels: Any,
    runs: Mapping[str, Any],
    measures: Sequence[GoodGainMeasure],
    documents: Any = None,
    documents_of: str = "both",
    chunks: str = "collapse",
    *,
    columns: Columns | None = None,
    rel: float | None = None,
    iterates: bool = True,
) -> dict[str, dict[float, Counts]]:
    """Open each run, and return name -> ledger and pools for the thresholds of the measures; each run is read once.

    `iterates=False` is for what ignores iterations: it leaves out the notices on them.
    """
    judged, opened = map_documents(qrels, runs, documents, documents_of, chunks, columns=columns)
    warn_of_labels(judged.frame, measures, rel=rel)
    rels = find_thresholds(measures)
    return use_each(
        judged, opened, lambda run: count_with_notices(judged, run, rels, iterates=iterates), columns=columns
    )


def count_systems(
    qrels: Any, runs: Mapping[str, Any], measures: Sequence[GoodGainMeasure], *documents: Any, **options: Any
) -> dict[str, SystemCounts]:
    """Return system -> what its runs found; options as in `count_runs`."""
    systems, names = name_runs(check_systems(runs))
    return join_counts(count_runs(qrels, systems, measures, *documents, **options), names)


def join_counts(
    counts: Mapping[str, Mapping[float, Counts]], names: Mapping[str, Sequence[str]]
) -> dict[str, SystemCounts]:
    """Put the counted runs of each system together, and give a notice if systems share few queries.

    `names` has the names of the runs of each system, as `name_runs` returns them.
    """
    counted = {system: _join_runs([counts[run] for run in of]) for system, of in names.items()}
    if few_shared := describe_shared_queries({name: of.coverage.queries for name, of in counted.items()}):
        notice(few_shared)
    return counted


def _join_runs(runs: Sequence[Mapping[float, Counts]]) -> SystemCounts:
    coverages = [measure_coverage(counts) for counts in runs]
    queries = join_queries([coverage.queries for coverage in coverages])
    return SystemCounts(runs, combine_coverages(coverages)._replace(queries=queries))
