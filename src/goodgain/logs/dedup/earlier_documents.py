"""Joins new results to the documents of earlier results, whose names stay."""

import heapq
import itertools
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError


def add_earlier_rows(frame: nw.DataFrame[Any], earlier: pl.DataFrame) -> tuple[nw.DataFrame[Any], pl.Series]:
    """Put the earlier results of the same queries above the new ones. Return all rows, and the documents of the earlier rows."""
    if "document" not in earlier.columns or "query_id" not in earlier.columns:
        raise InputError("earlier results lack `query_id` or `document`; convert their logs again, or deduplicate them")
    new = frame.to_polars()
    queries = new.get_column("query_id").cast(pl.String).unique()
    of_queries = pl.col("query_id").cast(pl.String).is_in(queries.implode())
    earlier = earlier.filter(pl.col("document").is_not_null(), of_queries)
    documents = earlier.get_column("document").cast(pl.String)

    shared = [name for name in earlier.columns if name in new.columns or name in ("system", "replicate")]
    try:
        rows = pl.concat([earlier.select(shared), new], how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"the earlier results and the new ones have columns of different types ({reason}); read both with read_results"
        ) from error
    further = [name for name in shared if name not in new.columns]
    return nw.from_native(rows.select(*new.columns, *further)), documents


def keep_earlier_documents(
    documents: pl.DataFrame, earlier: pl.Series, pairs: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Give each new result the name of the earlier document that it matches, if any.

    `documents` has all rows, those of earlier results first, with their groups as `document`. Earlier documents are never
    merged. A result that matches several earlier documents joins the document of the most confident pair. If several pairs
    are equally confident, the document whose name sorts first wins.

    Returns:
        Two things: the new rows with their documents, and the number of bridges. Bridges are new results that match several earlier
        documents, groups of several earlier documents without such a result, and earlier documents that are now in several groups.
    """
    old = documents.filter(pl.col("row") < len(earlier))
    old = old.with_columns(earlier=earlier.gather(old.get_column("row")))
    new = documents.filter(pl.col("row") >= len(earlier))
    groups_of_earlier = old.group_by("scope", "earlier").agg(pl.col("document").n_unique())
    bridges = groups_of_earlier.filter(pl.col("document") > 1).height

    # one row per group with earlier results: its earlier document, if it has only one
    names, name = pl.col("earlier").n_unique(), pl.col("earlier").first()
    only_name = pl.when(names == 1).then(name)
    joined = old.group_by("scope", "document").agg(names=names, joined=only_name)
    new = new.join(joined.drop("names"), on=["scope", "document"], how="left", maintain_order="left")

    merging = joined.filter(pl.col("names") > 1).select("scope", "document")
    if merging.height:
        best, bridges_of_groups = _choose_earlier_documents(merging, old, new, pairs)
        new = new.join(best, on="record", how="left", maintain_order="left")
        new = new.with_columns(joined=pl.coalesce("joined", "best")).drop("best")
        bridges += bridges_of_groups
    return _name_new_documents(new, old), bridges


def _choose_earlier_documents(
    merging: pl.DataFrame, old: pl.DataFrame, new: pl.DataFrame, pairs: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Choose one of the earlier documents for each new record in the groups `merging`, which have several earlier documents.

    Returns:
        Two things: a table (record, best), and the number of bridges of these groups.
    """
    groups = merging.with_row_index("group")
    old = old.join(groups, on=["scope", "document"])
    new = new.join(groups, on=["scope", "document"])
    rows_of_record = new.group_by("record", "group").len()
    edges = _find_edges(pairs, old, new, rows_of_record)

    # An identical result decides first, then the best pair with an earlier result.
    names = old.select("record", name="earlier").unique()
    identical = names.join(rows_of_record, on="record", how="semi")
    identical = identical.select("record", "name", confidence=0.0)
    matches = edges.join(names, left_on="other", right_on="record")
    matches = matches.join(identical, on="record", how="anti")
    matches = pl.concat([identical, matches.select(identical.columns)])
    surest_first = matches.sort("confidence", "name", descending=[True, False])
    direct = surest_first.unique("record", keep="first")
    best = _spread_names(dict(direct.select("record", "name").iter_rows()), edges)

    names_of_record = matches.group_by("record").agg(pl.col("name").n_unique())
    between_documents = names_of_record.filter(pl.col("name") > 1)
    bridged = rows_of_record.join(between_documents, on="record")
    bridged = bridged.group_by("group").agg(pl.col("len").sum())
    # A group counts once or, if new results match several of its earlier documents, as many times as there are such results.
    bridges = groups.height - bridged.height + int(bridged["len"].sum())
    schema: dict[str, Any] = {"record": new.schema["record"], "best": pl.String}
    return pl.DataFrame(list(best.items()), schema=schema, orient="row"), bridges


def _find_edges(
    pairs: pl.DataFrame, old: pl.DataFrame, new: pl.DataFrame, rows_of_record: pl.DataFrame
) -> pl.DataFrame:
    """Return the pairs of a new record with another record of its group, as a table (record, other, confidence)."""
    of_both = [rows.select("record", "group") for rows in (old, new)]
    group_of = pl.concat(of_both).unique("record")
    joining = pairs.filter("same")
    from_left = joining.select("confidence", record="left", other="right")
    from_right = joining.select("confidence", record="right", other="left")
    edges = pl.concat([from_left, from_right]).join(rows_of_record, on="record")
    edges = edges.join(group_of, left_on=["other", "group"], right_on=["record", "group"], how="semi")
    return edges.select("record", "other", "confidence")


def _spread_names(direct: dict[int, str], edges: pl.DataFrame) -> dict[int, str]:
    """Return the earlier document of each new record. `direct` has those of the records that match an earlier result.

    All other records match only new results, and join through these results, in order of confidence.
    """
    best = dict(direct)
    by_record = edges.drop("record").group_by(edges["record"])
    neighbours = {record: part.rows() for (record,), part in by_record}
    waiting: list[tuple[float, str, int]] = []

    def reach(record: int) -> None:
        for neighbour, confidence in neighbours.get(record, ()):
            if neighbour in neighbours and neighbour not in best:
                heapq.heappush(waiting, (-confidence, best[record], neighbour))

    for record in direct:
        reach(record)
    while waiting:
        _, name, record = heapq.heappop(waiting)
        if record not in best:
            best[record] = name
            reach(record)
    return best


def _name_new_documents(new: pl.DataFrame, old: pl.DataFrame) -> pl.DataFrame:
    """Give each row the name of the earlier document that it joined. A new document whose name is taken gets a name with `~2`."""
    earlier_names = old.select("scope", document="earlier").unique()
    not_joined = new.filter(pl.col("joined").is_null())
    new_names = not_joined.select("scope", "document").unique()
    shared = new_names.join(earlier_names, on=["scope", "document"], how="semi").sort("scope", "document")
    used: set[tuple[Any, ...]] = set()
    if shared.height:
        used.update(pl.concat([earlier_names, new_names]).iter_rows())

    unused_names = []
    for scope, document in shared.iter_rows():
        candidates = (f"{document}~{number}" for number in itertools.count(2))
        unused_name = next(name for name in candidates if (scope, name) not in used)
        used.add((scope, unused_name))
        unused_names.append(unused_name)

    shared = shared.with_columns(unused_name=pl.Series(unused_names, dtype=pl.String))
    new = new.join(shared, on=["scope", "document"], how="left", maintain_order="left")
    return new.with_columns(document=pl.coalesce("joined", "unused_name", "document")).drop("joined", "unused_name")
