"""The tables of a comparison, independent of their output form: means, pairs, and the legend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from goodgain.measures.declaration import ARROWS
from goodgain.measures.scores import Scores

#: Choices for the rows of the table of means.
ROWS = ("measures", "systems")
#: The smallest and the largest number of decimals; -1 is full precision.
PLACES = (-1, 100)

_ABSENT = "–"

#: Column of the systems -> its heading in a table.
_SPENT = {
    "iterations": "iterations per query",
    "results": "results per query",
    "coverage": "judged share of unique results",
}


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """The frames and notes of a comparison; `Comparison` documents their columns."""

    systems: pl.DataFrame
    coverage: pl.DataFrame
    means: pl.DataFrame
    pairs: pl.DataFrame
    values: pl.DataFrame
    baseline: str | None
    notes: tuple[str, ...]
    signature: dict[str, Any]
    groups: pl.DataFrame | None
    correlations: pl.DataFrame | None
    outcomes: pl.DataFrame | None
    scores: Mapping[str, Scores]


class Layout(NamedTuple):
    """The layout of tables.

    Attributes:
        places: the number of decimals.
        rows: one of `ROWS`.
        spreadsheet: whether a spreadsheet will read them.
        caption, label: those of the table of means.
    """

    places: int = 4
    rows: str = "measures"
    spreadsheet: bool = False
    caption: str = ""
    label: str = ""


class Cell(NamedTuple):
    """A text, whether it is the best of its row, and its verdict (`better`, `worse` ...) if any."""

    text: str
    best: bool = False
    verdict: str = ""


class Grid(NamedTuple):
    """One table; its first `words` columns hold words, the others numbers."""

    title: str
    header: list[str]
    words: int
    rows: list[list[Cell]]

    def drop_column(self, heading: str) -> Grid:
        at = self.header.index(heading)
        rows = [row[:at] + row[at + 1 :] for row in self.rows]
        return self._replace(
            header=self.header[:at] + self.header[at + 1 :], rows=rows, words=self.words - (at < self.words)
        )

    def turn(self, heading: str) -> Grid:
        """Transpose a table with one column of words; `heading` becomes its first heading."""
        columns = zip(*self.rows, strict=True)
        names = next(columns)
        rows = [[Cell(name), *cells] for name, cells in zip(self.header[1:], columns, strict=True)]
        return self._replace(header=[heading, *(cell.text for cell in names)], rows=rows)


def build_grids(comparison: Findings, layout: Layout) -> list[Grid]:
    """Return the tables of means and pairs, and where asked those of groups and correlations."""
    means, pairs = build_means_grid(comparison, layout), _build_pairs_grid(comparison, layout.places)
    return [means, pairs, *build_more_grids(comparison, layout.places)]


def build_more_grids(comparison: Findings, places: int) -> list[Grid]:
    """Return the table of groups and that of correlations; none that was not asked for."""
    grids = []
    if comparison.groups is not None:
        rows = []
        for row in comparison.groups.iter_rows(named=True):
            cells = [
                f"{row['measure']} {ARROWS[row['better']]}",
                *(row[name] for name in ("group", "system", "against")),
                str(row["queries"]),
                *(_format_number(row[name], places) for name in ("mean", "mean_against")),
                _format_signed(row["difference"], places) + (" *" if row["significant"] else ""),
                _format_interval(row["low"], row["high"], places),
                _format_signs(row),
            ]
            rows.append([*map(Cell, cells), Cell(row["verdict"] or _ABSENT, verdict=row["verdict"] or "")])
        header = ["measure", "group", "system", "against", "queries", "mean", "mean against", "difference", "interval"]
        grids.append(Grid("Differences by group", [*header, "wins/ties/losses", "verdict"], 4, rows))
    if comparison.correlations is not None:
        rows = [
            [
                *map(Cell, (row["system"], row["outcome"], row["measure"], str(row["queries"]))),
                Cell(_format_signed(row["tau"], 2)),
                Cell(_format_interval(row["low"], row["high"], 2)),
            ]
            for row in comparison.correlations.iter_rows(named=True)
        ]
        title = "Correlation of outcomes with measures over queries (Kendall's tau-b)"
        grids.append(Grid(title, ["system", "outcome", "measure", "queries", "tau", "interval"], 3, rows))
    return grids


def build_means_grid(comparison: Findings, layout: Layout) -> Grid:
    """Return a row per measure and the costs; or a row per system, with marks for what differs from the baseline."""
    if layout.rows == "measures":
        grid = _build_means_grid(comparison, layout.places)
    else:
        grid = _build_means_grid(comparison, layout.places, with_costs=False, with_marks=True).turn("system")
    return grid._replace(title=layout.caption) if layout.caption else grid


def _build_means_grid(comparison: Findings, places: int, *, with_costs: bool = True, with_marks: bool = False) -> Grid:
    """Return a row per measure with the best mean marked, and below them the cost of each system.

    `with_marks` marks the means that differ significantly from the baseline.
    """
    rows: list[list[Cell]] = []
    bounded = "most" in comparison.means.columns
    queries = comparison.signature["queries"]
    from_baseline = comparison.pairs.filter(
        pl.col("significant") & pl.lit(with_marks), against=comparison.baseline or ""
    )
    marked = set(from_baseline.select("measure", "system").rows())
    for (measure, better), of in comparison.means.group_by("measure", "better", maintain_order=True):
        best = _find_best(of.get_column("mean").drop_nulls().to_list(), better)
        cells = [
            Cell(
                _format_number(row["mean"], places)
                + (_format_bounds(row, places) if bounded else "")
                + (" *" if (measure, row["system"]) in marked else ""),
                row["mean"] is not None and row["mean"] in best,
            )
            for row in of.iter_rows(named=True)
        ]
        rows.append([Cell(_name_row(measure, better, of.item(0, "queries"), queries)), *cells])
    for name, title in _SPENT.items() if with_costs else ():
        rows.append([Cell(title), *(Cell(_format_number(value, 2)) for value in comparison.systems.get_column(name))])
    title = f"Means over {count_queries(queries)}"
    if with_marks and comparison.baseline:
        title += f"; * differs significantly from {comparison.baseline}"
    return Grid(title, ["measure", *comparison.systems.get_column("system")], 1, rows)


def _find_best(means: list[float], better: str | None) -> set[float]:
    """Return the best means, up to rounding; none if all are equal, or the measure has no better direction."""
    if not means or better is None:
        return set()
    top = max(means) if better == "up" else min(means)
    best = {mean for mean in means if math.isclose(mean, top, rel_tol=1e-12, abs_tol=1e-12)}
    return best if any(mean not in best for mean in means) else set()


def build_brief_grids(comparison: Findings, layout: Layout) -> list[Grid]:
    """Return one table for two systems, with their means; for more systems a table of means and a table of pairs."""
    made, names = comparison.signature, comparison.systems.get_column("system").to_list()
    one_pair = len(names) == 2
    system, against = comparison.pairs.select("system", "against").row(0)
    header = ["measure", *((system, against) if one_pair else ("system", "against"))]
    header += ["difference", f"{100 * (1 - made['alpha']):g} % interval", "wins/losses", "verdict"]
    rows = []
    for row in comparison.pairs.iter_rows(named=True):
        means = (_format_number(row[name], layout.places) for name in ("mean", "mean_against"))
        cells = [
            _name_row(row["measure"], row["better"], row["queries"], made["queries"]),
            *(means if one_pair else (row["system"], row["against"])),
            _format_signed(row["difference"], layout.places),
            _format_interval(row["low"], row["high"], layout.places),
            _ABSENT if row["wins"] is None else f"{row['wins']}/{row['losses']}",
        ]
        rows.append([*map(Cell, cells), Cell(row["verdict"] or _ABSENT, verdict=row["verdict"] or "")])
    title = f"{system} against {against}, " if one_pair else "System minus against, "
    pairs = Grid(f"{title}{count_queries(made['queries'])}", header, 1 if one_pair else 3, rows)
    more = build_more_grids(comparison, layout.places)
    if comparison.groups is not None:
        for heading in ("interval", *(("system", "against") if one_pair else ())):
            more[0] = more[0].drop_column(heading)
    if one_pair:
        return [pairs, *more]
    means_grid = _build_means_grid(comparison, layout.places, with_costs=False)
    return [means_grid.turn("system") if layout.rows == "systems" else means_grid, pairs, *more]


def stack_groups(comparison: Findings) -> pl.DataFrame:
    """Return the pairs as rows of data: with groups, those of all queries (`all`) and those of each group."""
    if comparison.groups is None:
        return comparison.pairs
    whole = comparison.pairs.select(pl.lit("all").alias("group"), pl.all())
    return pl.concat([whole, comparison.groups], how="diagonal")


#: Column of the pairs -> its heading in a table.
_P_VALUES = {"p_t": "t-test", "p_randomisation": "randomisation", "p_randomisation_holm": "Holm", "p_tukey": "Tukey"}


def _build_pairs_grid(comparison: Findings, places: int) -> Grid:
    """Return a row per measure and pair; marks significant differences, and p-values under low coverage."""
    shown = _list_p_columns(comparison)
    header = ["measure", "system", "against", "difference", "interval", *(_P_VALUES[name] for name in shown)]
    bounded = "most" in comparison.pairs.columns
    header += ["effect", "wins/ties/losses", "difference in iterations", *(["unjudged"] if bounded else []), "verdict"]
    rows = []
    for row in comparison.pairs.iter_rows(named=True):
        mark = " *" if row["significant"] else ""  # beside the number, as in papers
        cells = [
            _name_row(row["measure"], row["better"], row["queries"], comparison.signature["queries"]),
            row["system"],
            row["against"],
            _format_signed(row["difference"], places) + mark,
            _format_interval(row["low"], row["high"], places),
            *(_format_probability(row[name], places, doubtful=row["low_coverage"]) for name in shown),
            _format_signed(row["effect"], 2),
            _format_signs(row),
            _format_signed(row["more_iterations"], 2),
            *([_format_interval(row["least"], row["most"], places, absent="no bounds")] if bounded else []),
        ]
        turns = ", can turn" if bounded and row["can_turn"] else ""
        rows.append([*map(Cell, cells), Cell((row["verdict"] or _ABSENT) + turns, verdict=row["verdict"] or "")])
    return Grid("Differences, system minus against", header, 3, rows)


def build_column_grid(comparison: Findings, places: int) -> Grid:
    """Return the table of pairs in few columns: difference, interval, and the corrected p of the randomisation test."""
    others = comparison.pairs.get_column("against").unique(maintain_order=True).to_list()
    words = ["measure", "system", *(["against"] if len(others) > 1 else [])]
    rows = []
    for row in comparison.pairs.iter_rows(named=True):
        cells = [
            _name_row(row["measure"], row["better"], row["queries"], comparison.signature["queries"]),
            *(row[name] for name in words[1:]),
            _format_signed(row["difference"], places) + (" *" if row["significant"] else ""),
            _format_interval(row["low"], row["high"], places),
            _format_probability(row["p_randomisation_holm"], places, doubtful=row["low_coverage"]),
        ]
        rows.append([*map(Cell, cells)])
    title = "Differences, system minus against" if len(others) > 1 else f"Differences from {others[0]}"
    return Grid(title, [*words, "difference", "interval", "p"], len(words), rows)


def _list_p_columns(comparison: Findings) -> list[str]:
    """Return the columns of p-values to show: Tukey's only if it exists."""
    many = comparison.pairs.get_column("p_tukey").is_not_null().any()
    return [name for name in _P_VALUES if many or name != "p_tukey"]


def build_legend(comparison: Findings, *, in_column: bool = False) -> list[str]:
    """Return the sentences that explain columns and marks, and the notes; `in_column`: those of `build_column_grid`."""
    made = comparison.signature
    if in_column:
        told = f"Intervals: bootstrap, {100 * (1 - made['alpha']):g} %. p: randomisation test, corrected by Holm's method; "
        return [f"{told}* marks p <= {made['alpha']:g}.", *comparison.notes]
    shown = [_P_VALUES[name] for name in _list_p_columns(comparison)]
    return [
        f"Intervals: bootstrap, {100 * (1 - made['alpha']):g} %. {shown[0]} to {shown[-1]} are p-values. Holm is the p of "
        f"the randomisation test, corrected over the pairs of a measure. * marks a significant difference "
        f"(Holm <= {made['alpha']:g}); only these have the verdict better or worse. "
        f"Effect is the mean of the differences divided by their standard deviation. "
        f"Randomisation and bootstrap: {made['resamples']:,} resamples, seed {made['seed']}.",
        *describe_bounds(made),
        *comparison.notes,
    ]


def describe_bounds(signature: Mapping[str, Any]) -> list[str]:
    """Return the explanation of the bounds of a table; nothing without bounds."""
    if "bounds" not in signature:
        return []
    return [
        "Unjudged: the range of a mean or a difference if each unjudged document gets a label from "
        f"{signature['bounds'].replace('..', ' to ')}, the same one for all systems. A verdict can turn if some of these "
        "labels reverse the sign of the difference, or give a difference of 0 a sign."
    ]


def _name_row(measure: str, better: str | None, queries: int, of_all: int) -> str:
    """Return a measure with its arrow, and its number of queries if that is not the number of all queries."""
    return f"{measure} {ARROWS[better]}" + ("" if queries == of_all else f" ({count_queries(queries)})")


def count_queries(queries: int) -> str:
    """Return a number of queries as text: 1 query, 2 queries."""
    return f"{queries:,} quer{'y' if queries == 1 else 'ies'}"


def _format_signs(row: Mapping[str, Any]) -> str:
    return _ABSENT if row["wins"] is None else f"{row['wins']}/{row['ties']}/{row['losses']}"


def _format_bounds(row: Mapping[str, Any], places: int) -> str:
    if row["most"] is None:
        return " (no bounds)"
    return f" [{_format_number(row['least'], places)}, {_format_number(row['most'], places)}]"


def _format_interval(low: float | None, high: float | None, places: int, *, absent: str = _ABSENT) -> str:
    return absent if low is None else f"[{_format_signed(low, places)}, {_format_signed(high, places)}]"


def _format_number(value: float | None, places: int) -> str:
    return _ABSENT if value is None else f"{value:.{places}f}" if places >= 0 else str(value)


def _format_signed(value: float | None, places: int) -> str:
    if value is None:
        return _ABSENT
    shown = _format_number(value, places)
    if not value or not float(shown):
        return shown.lstrip("-")
    return shown if value < 0 else f"+{shown}"


def _format_probability(value: float | None, places: int, *, doubtful: bool) -> str:
    if value is None:
        return _ABSENT
    least = 10.0**-places
    shown = f"<{least:.{places}f}" if places > 0 and value < least else _format_number(value, places)
    return f"{shown} †" if doubtful else shown
