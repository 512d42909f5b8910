"""The tables of a comparison: means, pairs, groups, correlations, and the legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from goodgain.analysis.comparing.pairs_table import find_best, find_unranked
from goodgain.analysis.comparing.rendering import (
    ABSENT,
    count_queries,
    format_bounds,
    format_interval,
    format_number,
    format_probability,
    format_signed,
)
from goodgain.analysis.comparing.replicate_tables import build_replicate_tables
from goodgain.files.tables import Cell, Table
from goodgain.measures.declaration import ARROWS

if TYPE_CHECKING:
    from goodgain.analysis.comparing.comparison import Comparison

#: Column of the systems -> its heading in a table.
_SPENT = {
    "iterations": "iterations per query",
    "results": "results per query",
    "coverage": "judged share of unique results",
}
#: Column of the pairs -> its heading in a table.
_P_VALUES = {"p_t": "t-test", "p_randomisation": "randomisation", "p_randomisation_holm": "Holm", "p_tukey": "Tukey"}
#: Columns of the pairs that a narrow terminal leaves out, in this order.
_DROPPED = (
    *("effect", "t-test", "randomisation", "Tukey", "difference in iterations", "wins/losses", "interval"),
    *("wins/ties/losses", "Holm", "mean against", "mean", "queries"),
)
#: Tables of a comparison, after that of the means: what `--label` gets after a hyphen.
DIFFERENCES, GROUPS, CORRELATIONS = "differences", "groups", "correlations"


class Layout(NamedTuple):
    """The layout of tables: arguments of `Comparison.to_text`."""

    places: int = 4
    rows: str | None = None
    spreadsheet: bool = False
    caption: str = ""
    label: str = ""


def name_test(comparison: Comparison, corrected: str) -> str:
    alpha = comparison.signature["alpha"]
    return f"p <= {alpha:g}, randomisation test, corrected by Holm's method over all {corrected} of a measure"


def build_tables(comparison: Comparison, layout: Layout) -> list[Table]:
    """Return the tables of means and pairs, and where asked those of groups and correlations."""
    columns = ["measure", "system", "against", "difference", "interval", *_list_p_values(comparison), "effect"]
    columns += ["wins/ties/losses", "difference in iterations"]
    columns += ["unjudged", "verdict"] if "most" in comparison.pairs.columns else ["verdict"]
    pairs = _build_pairs_table("Differences, system minus against", comparison, columns, 3, layout.places)
    return [_build_means_table(comparison, layout), pairs, *_build_more_tables(comparison, layout.places)]


def build_brief_tables(comparison: Comparison, layout: Layout) -> list[Table]:
    """Return one table for two systems, with their means; for more systems a table of means and a table of pairs."""
    made = comparison.signature
    one_pair = comparison.systems.height == 2
    system, against = comparison.pairs.select("system", "against").row(0)
    title = f"{f'{system} against {against}' if one_pair else 'System minus against'}, {count_queries(made['queries'])}"
    columns = ["measure", *(("mean", "mean against") if one_pair else ("system", "against"))]
    columns += ["plain difference", "interval", "wins/losses", "verdict"]
    pairs = _build_pairs_table(title, comparison, columns, 1 if one_pair else 3, layout.places)
    interval = f"{100 * (1 - made['alpha']):g} % interval"
    shown = {"plain difference": "difference", "interval": interval, "mean": system, "mean against": against}
    header, drop = ([shown.get(name, name) for name in names] for names in (columns, _DROPPED))
    pairs = pairs._replace(header=header, drop=drop)
    left_out = ("interval", *(("system", "against") if one_pair else ()))
    more = _build_more_tables(comparison, layout.places, without=left_out)
    return [pairs, *more] if one_pair else [_build_means_table(comparison, layout, brief=True), pairs, *more]


def build_column_table(comparison: Comparison, places: int) -> Table:
    """Return the table of pairs in few columns: difference, interval, and the corrected p of the randomisation test."""
    others = comparison.pairs.get_column("against").unique().to_list()
    title = "Differences, system minus against" if len(others) > 1 else f"Differences from {others[0]}"
    columns = ["measure", "system", "against", "difference", "interval", "Holm"]
    table = _build_pairs_table(title, comparison, columns, 3, places)._replace(header=[*columns[:-1], "p"])
    return table if len(others) > 1 else table.drop_column("against")


def _build_more_tables(comparison: Comparison, places: int, *, without: Sequence[str] = ()) -> list[Table]:
    """Return the table of groups, without some columns, and that of correlations; none that was not asked for."""
    tables = []
    if comparison.groups is not None:
        columns = ["measure", "group", "system", "against", "queries", "mean", "mean against", "difference", "interval"]
        columns = [name for name in (*columns, "wins/ties/losses", "verdict") if name not in without]
        words = columns.index("queries")
        tables.append(_build_pairs_table("Differences by group", comparison, columns, words, places, of_groups=True))
    if comparison.correlations is not None:
        rows = [
            (*words, str(queries), format_signed(tau, 2), format_interval(low, high, 2))
            for *words, queries, tau, low, high in comparison.correlations.iter_rows()
        ]
        title = "Correlation of outcomes with measures over queries (Kendall's tau-b)"
        header = ["system", "outcome", "measure", "queries", "tau", "interval"]
        tables.append(Table.of(title, header, 3, rows, CORRELATIONS))
    tables += build_replicate_tables(comparison, places, brief=bool(without))
    return tables


def _build_pairs_table(
    title: str, comparison: Comparison, columns: list[str], words: int, places: int, *, of_groups: bool = False
) -> Table:
    """Return a row per measure and pair, or per group, with these columns of `_write_pair`."""
    frame = comparison.groups if of_groups else comparison.pairs
    rows = []
    for row in () if frame is None else frame.iter_rows(named=True):
        written = _write_pair(row, places, None if of_groups else comparison.signature["queries"])
        rows.append([Cell(written[name], verdict=row.get(name) or "" if name == "verdict" else "") for name in columns])
    return Table(title, columns, words, rows, GROUPS if of_groups else DIFFERENCES, drop=_DROPPED)


def _write_pair(row: dict[str, Any], places: int, queries: int | None) -> dict[str, str]:
    """Return all columns of a pair as text; marks a significant difference, and p-values under low coverage."""
    difference = format_signed(row["difference"], places)
    signs = [str(row[name]) for name in ("wins", "ties", "losses")]
    doubtful = row.get("low_coverage", False)
    return {
        "measure": _name_row(row["measure"], row["better"], row["queries"], queries),
        "group": row.get("group", ""),
        "system": row["system"],
        "against": row["against"],
        "queries": str(row["queries"]),
        "mean": format_number(row["mean"], places),
        "mean against": format_number(row["mean_against"], places),
        "plain difference": difference,
        "difference": difference + (" *" if row["significant"] else ""),  # beside the number, as in papers
        "interval": format_interval(row["low"], row["high"], places),
        **{title: format_probability(row[name], places, doubtful=doubtful) for name, title in _P_VALUES.items()},
        "effect": format_signed(row["effect"], 2),
        "wins/ties/losses": ABSENT if row["wins"] is None else "/".join(signs),
        "wins/losses": ABSENT if row["wins"] is None else "/".join(signs[::2]),
        "difference in iterations": format_signed(row.get("more_iterations"), 2),
        "unjudged": format_interval(row.get("least"), row.get("most"), places, absent="no bounds"),
        "verdict": (row["verdict"] or ABSENT) + (", can turn" if row.get("can_turn") else ""),
    }


def _build_means_table(comparison: Comparison, layout: Layout, *, brief: bool = False) -> Table:
    """Return a row per measure with the best mean marked, and below them the cost of each system unless `brief`.

    Or a row per system without costs: unless `brief`, * marks the means that differ significantly from the baseline.
    """
    by_system = layout.rows == "systems"
    rows: list[list[Cell]] = []
    queries, baseline = comparison.signature["queries"], comparison.baseline or ""
    marks = comparison.pairs.filter(pl.col("significant") & (by_system and not brief), against=baseline)
    marked = marks.select("measure", "system").rows()
    unranked = find_unranked(comparison.pairs).get_column("measure").to_list()
    for (measure, better), of in comparison.means.group_by("measure", "better", maintain_order=True):
        # Means over different queries cannot be ranked: their numbers stand beside them.
        is_uneven = of.get_column("queries").n_unique() > 1
        is_ranked = not is_uneven and measure not in unranked
        best = find_best(of.get_column("mean").drop_nulls().to_list() if is_ranked else [], better)
        cells = [
            Cell(
                format_number(row["mean"], layout.places)
                + (f" ({count_queries(row['queries'])})" if is_uneven else "")
                + (format_bounds(row, layout.places) if "most" in row else "")
                + (" *" if (measure, row["system"]) in marked else ""),
                row["mean"] is not None and row["mean"] in best,
            )
            for row in of.iter_rows(named=True)
        ]
        number = queries if is_uneven else of.item(0, "queries")
        rows.append([Cell(_name_row(measure, better, number, queries)), *cells])
    for name, title in _SPENT.items() if not (by_system or brief) else ():
        rows.append([Cell(title), *(Cell(format_number(value, 2)) for value in comparison.systems.get_column(name))])
    title = layout.caption or f"Means over {count_queries(queries)}"
    notes = [f"* differs significantly from {baseline} ({name_test(comparison, 'pairs')})."] * bool(marked)
    table = Table(title, ["measure", *comparison.systems.get_column("system")], 1, rows, notes=notes)
    return table.turn("system") if by_system else table


def _list_p_values(comparison: Comparison) -> list[str]:
    """Return the headings of the p-values to show: Tukey's only if it exists."""
    shown = [*_P_VALUES.values()]
    return shown if comparison.pairs.get_column("p_tukey").count() else shown[:-1]


def describe_costs(comparison: Comparison) -> str:
    """Return how much each system searched, and how much of what it found is judged."""
    spent = comparison.systems.select("system", "iterations", "coverage").rows()
    iterations = ", ".join(f"{name} {number:.2f}" for name, number, _ in spent)
    judged = ", ".join(format_number(share, 2) for _, _, share in spent)
    return f"Iterations per query: {iterations}. Judged share of their results: {judged}."


def build_legend(comparison: Comparison) -> list[str]:
    """Return the sentences that explain columns and marks, and the notes."""
    made, shown, doubt = comparison.signature, _list_p_values(comparison), explain_dagger(comparison)
    return [
        f"Intervals: bootstrap, {100 * (1 - made['alpha']):g} %. {shown[0]} to {shown[-1]} are p-values. Holm is the p of "
        f"the randomisation test, corrected over the pairs of a measure. * marks a significant difference "
        f"(Holm <= {made['alpha']:g}); only these have the verdict better or worse. {doubt}"
        f"Effect is the mean of the differences divided by their standard deviation. "
        f"Randomisation and bootstrap: {made['resamples']:,} resamples, seed {made['seed']}.",
        *describe_bounds(made),
        *comparison.notes,
    ]


def explain_dagger(comparison: Comparison) -> str:
    return "† marks p-values under low coverage. " if comparison.pairs.get_column("low_coverage").any() else ""


def describe_bounds(signature: Mapping[str, Any]) -> list[str]:
    if "bounds" not in signature:
        return []
    return [
        "Unjudged: the range of a mean or a difference if each unjudged document gets a label from "
        f"{signature['bounds'].replace('..', ' to ')}, the same one for all systems. A verdict can turn if some of these "
        "labels reverse the sign of the difference, or give a difference of 0 a sign."
    ]


def _name_row(measure: str, better: str | None, queries: int, of_all: int | None) -> str:
    """Return a measure with its arrow, and its number of queries if that is not the number of all queries."""
    return f"{measure} {ARROWS[better]}" + ("" if of_all in (queries, None) else f" ({count_queries(queries)})")
