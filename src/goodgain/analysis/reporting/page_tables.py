"""Builds the tables of means and differences on the page of a report."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_tables import (
    Layout,
    build_brief_tables_beside,
    build_means_table,
    build_pairs_table,
    build_tables,
    name_columns_briefly,
)
from goodgain.analysis.comparing.rendering import count_queries
from goodgain.analysis.reporting.page_opening import PLACES, name_count
from goodgain.files.tables import Cell, Table, format_number
from goodgain.measures.declaration import add_arrow
from goodgain.measures.names import find_direction, parse_measure
from goodgain.measures.scores import Scores

#: With more systems, the table of means has a row per system: as columns they would not fit on a page.
_MOST_COLUMNS = 4
#: With more rows, the table of differences is divided by measure.
_MOST_ROWS = 24


def build_means_of_system(system: str, scores: Scores, scores_of_tiles: Scores) -> Table:
    """Return the table of means of a report on one system, with the measures of the tiles."""
    means = {**scores.means, **scores_of_tiles.means}
    rows = []
    for measure, mean in means.items():
        shown = add_arrow(measure, find_direction(parse_measure(measure, complete=False)))
        rows.append([shown, format_number(mean, PLACES)])
    queries = scores.signature["queries"]
    return Table.of(f"Means over {count_queries(queries)}", ["measure", system], 1, rows)


def add_measures(comparison: Comparison, others: Comparison, measures: Sequence[str]) -> Comparison:
    """Return a comparison that also has the means and pairs of some measures of another comparison of the same systems."""
    is_added = pl.col("measure").is_in(measures)
    means = pl.concat([comparison.means, others.means.filter(is_added)])
    pairs = pl.concat([comparison.pairs, others.pairs.filter(is_added)])
    return replace(comparison, means=means, pairs=pairs)


def build_comparison_tables(comparison: Comparison, with_tiles: Comparison) -> list[Table]:
    """Return the tables of means and differences, with the measures of the tiles, and the other tables of the comparison.

    Systems stand in the order in which they were given. The first one, the baseline, is named in the titles.
    """
    beside = [_put_base_first(table, comparison) for table in build_brief_tables_beside(comparison, PLACES)]
    if comparison.systems.height == 2:
        return [_build_pair_table(with_tiles), *beside]
    return [build_page_means(with_tiles), *_build_difference_tables(with_tiles), *beside]


def build_page_means(comparison: Comparison) -> Table:
    """Return the table of means: a row per measure, or a row per system if there are more than four systems."""
    means = build_means_table(comparison, Layout(), brief=True)
    if comparison.systems.height > _MOST_COLUMNS:
        return means.turn("system")
    return means


def build_full_tables(comparison: Comparison) -> list[Table]:
    """Return all tables of a comparison, with the means of many systems as rows."""
    means, *others = build_tables(comparison, Layout())
    if comparison.systems.height > _MOST_COLUMNS:
        means = means.turn("system")
    return [means, *others]


def _build_pair_table(comparison: Comparison) -> Table:
    system, base = comparison.pairs.select("system", "against").row(0)
    columns = ["measure", "mean against", "mean", "plain difference", "interval", "level", "wins/losses", "verdict"]
    title = f"{system} against {base}, {count_queries(comparison.signature['queries'])}"
    table = _say_more_or_fewer(build_pairs_table(title, comparison, columns, 1, PLACES), comparison.pairs)
    return name_columns_briefly(table, comparison, {"mean": system, "mean against": base})


def _put_base_first(table: Table, comparison: Comparison) -> Table:
    """Put the column `mean against` before `mean`, and name both by the two systems if there are only two."""
    if "mean against" not in table.header:
        return table
    mean, against = table.header.index("mean"), table.header.index("mean against")
    names = {}
    if comparison.systems.height == 2:
        system, base = comparison.pairs.select("system", "against").row(0)
        names = {"mean": system, "mean against": base}

    header = list(table.header)
    header[mean], header[against] = header[against], header[mean]
    rows = []
    for row in table.rows:
        cells = list(row)
        cells[mean], cells[against] = cells[against], cells[mean]
        rows.append(cells)
    return table._replace(header=[names.get(name, name) for name in header], rows=rows)


def _build_difference_tables(comparison: Comparison) -> list[Table]:
    """Return a table of all differences from the baseline or, if it would be long, a table for each measure."""
    base = comparison.baseline
    queries = count_queries(comparison.signature["queries"])
    columns = ["measure", "system", "plain difference", "interval", "level", "wins/losses", "verdict"]
    table = build_pairs_table(f"Difference from {base}, {queries}", comparison, columns, 2, PLACES)
    table = name_columns_briefly(_say_more_or_fewer(table, comparison.pairs), comparison)
    if len(table.rows) <= _MOST_ROWS:
        return [table]

    rows_of: dict[str, list[Sequence[Cell]]] = {}
    for row in table.rows:
        rows_of.setdefault(row[0].text, []).append(row[1:])
    tables = []
    for measure, rows in rows_of.items():
        title = f"{measure}: difference from {base} ({_count_verdicts(rows)})"
        tables.append(table._replace(title=title, header=table.header[1:], words=1, rows=rows))
    return tables


def _count_verdicts(rows: Sequence[Sequence[Cell]]) -> str:
    """Return a text such as `2 better, 17 unclear`. The verdict is the last cell of a row."""
    counts = Counter(row[-1].text for row in rows)
    return ", ".join(f"{number:,} {verdict}" for verdict, number in sorted(counts.items()))


def _say_more_or_fewer(table: Table, pairs: pl.DataFrame) -> Table:
    """Write `more` and `fewer` as verdicts on counts, as the tiles do. `pairs` are the rows of the table."""
    verdict_at = len(table.header) - 1
    rows = []
    for row, pair in zip(table.rows, pairs.iter_rows(named=True), strict=True):
        cells = list(row)
        if count := name_count(pair):
            cells[verdict_at] = Cell(count.partition(" ")[0])
        rows.append(cells)
    return table._replace(rows=rows)
