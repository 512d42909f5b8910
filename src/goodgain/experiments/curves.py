"""Draws the curves of an experiment: means over iterations or spends, and precision over recall."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from goodgain.analysis.reporting.curves import Points, SystemCounts, find_hits, interpolate, join_counts, tabulate_curve
from goodgain.analysis.reporting.drawn_frames import CurveFrame
from goodgain.counting.coverage import Coverage
from goodgain.counting.run_opening import stack_systems
from goodgain.counting.spends import OVER
from goodgain.errors import notices_about, without_notices
from goodgain.files.tables import sort_ids
from goodgain.formats.query_tables import read_costs
from goodgain.measures.bounds import find_largest_label
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.thresholds import find_thresholds
from goodgain.scoring.kept import by_content
from goodgain.scoring.opened import Opened
from goodgain.scoring.scoring import OF_ITERATIONS, Scoring

#: The relevant documents in the ranking of a run, and the coverage of the run.
Hits = tuple[pl.DataFrame, Coverage]


def join_counts_of_systems(x: Scoring, measures: Sequence[GoodGainMeasure]) -> dict[str, SystemCounts]:
    """Combine the counts of each system's runs. Give no notices on labels and coverage."""
    return x.kept.call(join_counts, x.count_runs(find_thresholds(measures)), x.opened.names)


def draw_curve(x: Scoring, measures: Sequence[GoodGainMeasure], *, costs: Any = None, **arguments: Any) -> CurveFrame:
    """Return the rows of `gg.curve`. `arguments` are those of `gg.curve`."""
    counts = join_counts_of_systems(x, measures)
    arguments = {name: value for name, value in arguments.items() if value is not None}
    arguments["largest_label"] = find_largest_label(x.opened.qrels.frame)
    settings = x.check_settings(0)  # resamples=0: without intervals
    return x.kept.call(_tabulate, counts, measures, settings, costs=by_content(costs), **arguments)


def _tabulate(
    counts: dict[str, SystemCounts], measures: Sequence[GoodGainMeasure], settings: Any, *, costs: Any, **arguments: Any
) -> CurveFrame:
    over = arguments.get("over")
    paid = read_costs(costs) if over is not None and OVER[over] is None else None
    return tabulate_curve(counts, measures, settings, costs=paid, **arguments)


def draw_recalls(x: Scoring, rel: float, points: Points = "eleven", *, per_query: bool = False) -> pl.DataFrame:
    """Return the rows of `gg.pr_curve` for each run, without a notice on low coverage."""
    query_ids = x.opened.qrels.query_ids
    points_of_runs = {}
    for name, (hits, _) in find_hits_of_runs(x, rel).items():
        points_of_run = interpolate(hits, query_ids, points=points, per_query=per_query)
        points_of_runs[name] = sort_ids(points_of_run) if per_query else points_of_run
    return stack_systems(points_of_runs)


def find_hits_of_runs(x: Scoring, rel: float) -> dict[str, Hits]:
    """Return the relevant documents in the ranking of each run, and the coverage of the run."""
    with without_notices(*OF_ITERATIONS):
        return x.kept.call(_find_hits, x.opened, rel, x.options["order"])


def _find_hits(opened: Opened, rel: float, order: str) -> dict[str, Hits]:
    hits = {}
    for name, run, subject in opened.list_runs():
        with notices_about(subject):
            hits[name] = find_hits(opened.qrels, run, rel, order)
    return hits
