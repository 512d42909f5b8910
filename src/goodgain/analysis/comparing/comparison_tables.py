"""Builds the tables of a comparison: means, differences, groups, correlations, and repeated runs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.analysis.comparing.comparison_frames import ComparisonFrames
from goodgain.analysis.comparing.comparison_sentences import (
    CORRELATIONS,
    DIFFERENCES,
    GROUPS,
    explain_intervals_of_means,
    list_levels,
    name_test,
)
from goodgain.analysis.comparing.pairs_table import find_best, find_unranked
from goodgain.analysis.comparing.rendering import (
    count_queries,
    format_bounds,
    format_interval,
    format_level,
    format_probability,
    format_signed,
)
from goodgain.analysis.comparing.shared_tables import build_shared_tables
from goodgain.files.tables import ABSENT, Cell, Table, format_number
from goodgain.measures.declaration import ARROWS

#: Column of the systems -> its heading in a table.
_SPENT = {
    "iterations": "iterations per query",
    "results": "results per query",
    "coverage": "judged share of unique results",
}
#: Column of the pairs -> its heading in a table.
_P_VALUES = {
    "p_t": "t-test",
    "p_randomisation": "randomisation",
    "p_randomisation_holm": "Holm",
    "p_tukey": "Tukey",
    "p_corrected": "corrected",
}
#: Columns of the pairs that a narrow terminal leaves out, in this order.
_DROPPED = (
    *("d_z", "t-test", "randomisation", "Tukey", "difference in iterations", "wins/losses", "level", "interval"),
    *("wins/ties/losses", "Holm", "corrected", "p", "mean against", "mean", "queries"),
)
#: Columns of groups that short tables leave out.
_LEFT_OUT_BRIEFLY = ("interval", "level", "p")


class Layout(NamedTuple):
    """The layout of tables: arguments of `Comparison.to_text`."""

    places: int = 4
    rows: str | None = None
    spreadsheet: bool = False
    caption: str = ""
    label: str = ""
    intervals: bool = False


def build_tables(frames: ComparisonFrames, layout: Layout) -> list[Table]:
    """Return all tables: means first, then pairs, then the others."""
    has_column = {
        "Tukey": frames.pairs.get_column("p_tukey").count() > 0,
        "corrected": "p_corrected" in frames.pairs.columns,
        "unjudged": "most" in frames.pairs.columns,
    }
    columns = ["measure", "system", "against", "difference", *_name_intervals(frames.pairs)]
    columns += [*_P_VALUES.values(), "d_z", "wins/ties/losses", "difference in iterations", "unjudged", "verdict"]
    columns = [name for name in columns if has_column.get(name, True)]
    pairs = build_pairs_table("Differences, system minus against", frames, columns, 3, layout.places)
    return [build_means_table(frames, layout), pairs, *_build_more_tables(frames, layout.places)]


def build_brief_tables(frames: ComparisonFrames, layout: Layout) -> list[Table]:
    """Return short tables: pairs, and any other tables (such as groups).

    Three systems or more also have a table of means, and so have two with `layout.intervals`.
    """
    if frames.systems.height == 2 and not layout.intervals:
        return _build_brief_tables_of_pair(frames, layout.places)
    title = f"System minus against, {count_queries(frames.signature['queries'])}"
    columns = ["measure", "system", "against", "plain difference", "interval", "level", "wins/losses", "verdict"]
    pairs = build_pairs_table(title, frames, columns, 3, layout.places)
    pairs = name_columns_briefly(pairs, frames)
    means = build_means_table(frames, layout, brief=True)
    return [means, pairs, *build_brief_tables_beside(frames, layout.places)]


def _build_brief_tables_of_pair(frames: ComparisonFrames, places: int) -> list[Table]:
    """Return short tables of two systems. The means stand in the table of pairs, under the names of the systems."""
    system, against = frames.pairs.select("system", "against").row(0)
    title = f"{system} against {against}, {count_queries(frames.signature['queries'])}"
    columns = ["measure", "mean", "mean against", "plain difference", "interval", "level", "wins/losses", "verdict"]
    pairs = build_pairs_table(title, frames, columns, 1, places)
    pairs = name_columns_briefly(pairs, frames, {"mean": system, "mean against": against})
    return [pairs, *build_brief_tables_beside(frames, places)]


def build_brief_tables_beside(frames: ComparisonFrames, places: int) -> list[Table]:
    """Return the short tables other than those of means and pairs. With two systems, their columns of systems are left out."""
    without = [*_LEFT_OUT_BRIEFLY]
    if frames.systems.height == 2:
        without += ["system", "against"]
    return _build_more_tables(frames, places, without=without)


def _name_intervals(pairs: pl.DataFrame) -> list[str]:
    """Return the columns of intervals: their levels have a column if one of them is not 95 %."""
    levels = list_levels(pairs)
    return ["interval"] if levels in ([], ["95 %"]) else ["interval", "level"]


def name_columns_briefly(pairs: Table, frames: ComparisonFrames, names: dict[str, str] | None = None) -> Table:
    """Rename columns. If all intervals have one level, it stands in the heading instead of its column."""
    brief = {"plain difference": "difference", **(names or {})}
    levels = list_levels(frames.pairs) or [format_level(1 - frames.signature["alpha"])]
    if len(levels) == 1:
        pairs = pairs.drop_column("level")
        brief["interval"] = f"{levels[0]} interval"
    header = [brief.get(name, name) for name in pairs.header]
    drop = [brief.get(name, name) for name in pairs.drop]
    return pairs._replace(header=header, drop=drop)


def build_column_table(frames: ComparisonFrames, places: int, *, of_groups: bool = False) -> Table:
    """Return a narrow table with a row per pair and measure, or per group, pair and measure."""
    pairs = frames.groups if of_groups and frames.groups is not None else frames.pairs
    against = frames.pairs.get_column("against").unique().to_list()
    title = "Differences, system minus against"
    if len(against) == 1:
        title = f"Differences from {against[0]}"
    title += " by group" if of_groups else f" over {count_queries(frames.signature['queries'])}"

    columns = ["measure", "system", "against"]
    if of_groups:
        columns = ["measure", "group", "system", "against", "queries"]
    if len(against) == 1:
        columns.remove("against")
    words = len(columns) - of_groups  # `queries` is a number
    columns += ["difference", *_name_intervals(pairs), "p"]
    return build_pairs_table(title, frames, columns, words, places, of_groups=of_groups)


def _build_more_tables(frames: ComparisonFrames, places: int, *, without: Collection[str] = ()) -> list[Table]:
    """Return the tables after those of means and pairs. `without` has columns of groups to leave out; then all tables are short."""
    brief = bool(without)
    tables = build_shared_tables(frames, places, brief=brief)
    if frames.groups is not None:
        columns = ["measure", "group", "system", "against", "queries", "mean", "mean against", "difference"]
        columns += [*_name_intervals(frames.groups), "p", "wins/ties/losses", "verdict"]
        columns = [name for name in columns if name not in without]
        words = columns.index("queries")
        tables.append(build_pairs_table("Differences by group", frames, columns, words, places, of_groups=True))
    if frames.correlations is not None:
        tables.append(_build_correlations_table(frames.correlations))
    return tables + _build_replicate_tables(frames, places, brief=brief)


def _build_correlations_table(correlations: pl.DataFrame) -> Table:
    rows = []
    for *names, queries, tau, low, high in correlations.iter_rows():
        rows.append((*names, str(queries), format_signed(tau, 2), format_interval(low, high, 2)))
    title = "Correlation of outcomes with measures over queries (Kendall's tau-b)"
    header = ["system", "outcome", "measure", "queries", "tau", "interval"]
    return Table.of(title, header, 3, rows, CORRELATIONS)


def _build_replicate_tables(frames: ComparisonFrames, places: int, *, brief: bool) -> list[Table]:
    """Return the tables of replicates, noise and flips; empty tables are left out. `brief` leaves out variances."""
    replicates = frames.replicates
    if brief:
        replicates = replicates.drop("within", "between", "icc")
    title_of_noise = "Noise of reruns (floor: one-sided 5 %, two single runs: 95 %)"

    # title, frame, number of columns with words, name of the table
    parts = [
        ("Repeated runs", replicates.rename({"replicates": "runs"}), 2, "runs"),
        (title_of_noise, frames.noise, 3, "noise"),
        ("Runs that pass a line", frames.flips, 2, "flips"),
    ]
    tables = []
    for title, frame, words, name in parts:
        if frame.is_empty():
            continue
        header = [column.replace("_", " ") for column in frame.columns]
        rows = [[format_number(value, places) for value in row] for row in frame.iter_rows()]
        tables.append(Table.of(title, header, words, rows, name))
    return tables


def build_pairs_table(
    title: str, frames: ComparisonFrames, columns: Sequence[str], words: int, places: int, *, of_groups: bool = False
) -> Table:
    """Return a table of pairs, or of groups and pairs. `columns` are keys of `_write_pair`; the first `words` of them are texts."""
    pairs = frames.groups if of_groups else frames.pairs
    queries = None if of_groups else frames.signature["queries"]
    rows = []
    for row in [] if pairs is None else pairs.iter_rows(named=True):
        texts = _write_pair(row, places, queries)
        cells = [Cell(texts[name]) for name in columns]
        if "verdict" in columns:
            at = columns.index("verdict")
            cells[at] = cells[at]._replace(verdict=row["verdict"] or "")
        rows.append(cells)

    name = GROUPS if of_groups else DIFFERENCES
    if of_groups and "p" in columns:
        title += f". {name_test(frames, of_groups=True)}"
    return Table(title, list(columns), words, rows, name, drop=_DROPPED)


def _write_pair(row: dict[str, Any], places: int, queries: int | None) -> dict[str, str]:
    """Return all columns of a pair as text. * marks a significant difference, † a p-value under low coverage."""
    difference = format_signed(row["difference"], places)
    wins, ties, losses = row["wins"], row["ties"], row["losses"]
    has_signs = wins is not None
    p_values = {}
    for name, title in _P_VALUES.items():
        p_values[title] = format_probability(row.get(name), places, doubtful=row.get("low_coverage", False))
    can_turn = ", can turn" if row.get("can_turn") else ""

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
        "level": ABSENT if row["level"] is None else format_level(row["level"]),
        **p_values,
        "p": p_values["corrected" if "p_corrected" in row else "Holm"],
        "d_z": format_signed(row["effect"], 2),
        "wins/ties/losses": f"{wins}/{ties}/{losses}" if has_signs else ABSENT,
        "wins/losses": f"{wins}/{losses}" if has_signs else ABSENT,
        "difference in iterations": format_signed(row.get("more_iterations"), 2),
        "unjudged": format_interval(row.get("least"), row.get("most"), places, absent="no bounds"),
        "verdict": (row["verdict"] or ABSENT) + can_turn,
    }


def build_means_table(frames: ComparisonFrames, layout: Layout, *, brief: bool = False) -> Table:
    """Return the table of means: a row per measure, or a row per system with `layout.rows`. `brief` leaves out costs and signs."""
    by_system = layout.rows == "systems"
    queries = frames.signature["queries"]
    baseline = frames.baseline or ""
    marked: set[tuple[str, str]] = set()  # (measure, system)
    if by_system and not brief:
        significant = frames.pairs.filter(pl.col("significant"), against=baseline)
        marked.update(significant.select("measure", "system").iter_rows())
    unranked = find_unranked(frames.pairs).get_column("measure").to_list()

    rows = []
    all_means, method = frames.means_with_intervals if layout.intervals else (frames.means, "")
    for (measure, better), means in all_means.group_by("measure", "better", maintain_order=True):
        # Means over different queries cannot be ranked; each mean shows the number of queries.
        is_uneven = means.get_column("queries").n_unique() > 1
        is_ranked = not is_uneven and measure not in unranked
        ranked_means = means.get_column("mean").drop_nulls().to_list() if is_ranked else []
        best = find_best(ranked_means, better)
        number = queries if is_uneven else means.item(0, "queries")
        cells = [Cell(_name_row(measure, better, number, queries))]
        for row in means.iter_rows(named=True):
            text = _write_mean(row, layout.places, with_queries=is_uneven)
            if (measure, row["system"]) in marked:
                text += " *"
            is_best = row["mean"] is not None and row["mean"] in best
            cells.append(Cell(text, is_best))
        rows.append(cells)

    if not by_system and not brief:
        rows += _build_spent_rows(frames)

    title = f"Means over {count_queries(queries)}"
    if layout.caption:
        title = f"{layout.caption.rstrip('.')}. {title}"
    if by_system and baseline and not brief:
        title += f". {name_test(frames)}"
    notes = [f"* differs significantly from {baseline}."] if marked else []
    if method:
        notes.append(explain_intervals_of_means(frames.signature["alpha"], method))
    header = ["measure", *frames.systems.get_column("system")]
    table = Table(title, header, 1, rows, notes=notes)
    return table.turn("system") if by_system else table


def _write_mean(row: Mapping[str, Any], places: int, *, with_queries: bool) -> str:
    """Return a mean with the number of its queries, its interval and its bounds. `row` is of the frame of means."""
    text = format_number(row["mean"], places)
    if with_queries:
        text += f" ({count_queries(row['queries'])})"
    if row.get("low") is not None:
        text += f" [{format_number(row['low'], places)}, {format_number(row['high'], places)}]"
    if "most" in row:
        text += format_bounds(row, places)
    return text


def _build_spent_rows(frames: ComparisonFrames) -> list[list[Cell]]:
    """Return the rows of iterations, results and, with labels, coverage below the means."""
    rows = []
    for name, title in _SPENT.items():
        if name == "coverage" and not frames.question.has_labels:
            continue
        numbers = [format_number(value, 2) for value in frames.systems.get_column(name)]
        rows.append([Cell(title), *map(Cell, numbers)])
    return rows


def _name_row(measure: str, better: str | None, queries: int, all_queries: int | None) -> str:
    name = f"{measure} {ARROWS[better]}"
    if all_queries in (queries, None):
        return name
    return f"{name} ({count_queries(queries)})"
