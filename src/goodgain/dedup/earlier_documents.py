"""Joins new results to the documents of earlier ones, which keep their names and their results."""

from __future__ import annotations

import heapq
import itertools
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.dedup.verification import Verdicts
from goodgain.errors import InputError
from goodgain.files.results import open_results


def add_earlier_rows(frame: nw.DataFrame[Any], earlier: Any) -> tuple[nw.DataFrame[Any], pl.Series]:
    """Return the earlier results of the same queries followed by the new results, and the documents of the earlier ones."""
    opened = nw.from_native(open_results(getattr(earlier, "frame", earlier)))
    known = (opened.collect() if isinstance(opened, nw.LazyFrame) else opened).to_polars()
    if "document" not in known.columns or "query_id" not in known.columns:
        raise InputError(
            "the earlier results have no column document; convert their logs again, which writes it, or deduplicate them"
        )
    new = frame.to_polars()
    queries = new.get_column("query_id").cast(pl.String).unique()
    known = known.filter(pl.col("document").is_not_null(), pl.col("query_id").cast(pl.String).is_in(queries.implode()))
    documents = known.get_column("document").cast(pl.String)
    shared = [name for name in known.columns if name in new.columns or name in ("system", "replicate")]
    try:
        both = pl.concat([known.select(shared), new], how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"the earlier results have columns of other types than the new ones ({reason}); read both with read_results"
        ) from error
    return nw.from_native(both.select(*new.columns, *(name for name in shared if name not in new.columns))), documents


def keep_earlier_documents(
    found: pl.DataFrame, earlier: pl.Series, pairs: pl.DataFrame, verdicts: Verdicts
) -> tuple[pl.DataFrame, int]:
    """Name each new result by the earlier document that it matches, if any.

    Earlier documents are never merged: a result that matches several joins the one of its best pair (by confidence, then
    name).

    Returns:
        The new rows with their documents, and the number of bridges: new results that match two earlier documents, and
        earlier documents that prove to be several. Without bridges, deduplicating all results together would give the same
        documents, under other names.
    """
    known = found.filter(pl.col("row") < len(earlier))
    known = known.with_columns(earlier=earlier.gather(known.get_column("row")))
    new = found.filter(pl.col("row") >= len(earlier))
    joined = known.group_by("scope", "document").agg(names=pl.col("earlier").unique().sort())
    several = joined.filter(pl.col("names").list.len() > 1)
    cut = known.group_by("scope", "earlier").agg(pl.col("document").n_unique()).filter(pl.col("document") > 1)

    one = joined.filter(pl.col("names").list.len() == 1)
    one = one.select("scope", "document", joined=pl.col("names").list.first())
    new = new.join(one, on=["scope", "document"], how="left", maintain_order="left")
    bridges = cut.height
    if several.height:
        by_record, crossing = _join_best(several, known, new, pairs, verdicts)
        new = new.join(by_record, on="record", how="left", maintain_order="left")
        new = new.with_columns(joined=pl.coalesce("joined", "best")).drop("best")
        bridges += crossing
    return _name_new_documents(new, known), bridges


def _join_best(
    several: pl.DataFrame, known: pl.DataFrame, new: pl.DataFrame, pairs: pl.DataFrame, verdicts: Verdicts
) -> tuple[pl.DataFrame, int]:
    """Choose the earlier document for each new record that could join several; return these and the number of bridges."""
    groups = several.select("scope", "document").with_row_index("group")
    members = known.join(groups, on=["scope", "document"])
    own: dict[int, list[str]] = dict(members.group_by("record").agg(pl.col("earlier").unique().sort()).iter_rows())
    new_rows = new.join(groups, on=["scope", "document"])
    rows_of: dict[int, int] = dict(new_rows.group_by("record").len().iter_rows())
    group_of: dict[int, int] = dict(
        pl.concat([part.select("record", "group") for part in (members, new_rows)]).unique("record").iter_rows()
    )
    edges = pairs.with_columns(sure=pl.Series(verdicts.confidence)).filter(verdicts.same)
    within = edges.filter(pl.all_horizontal(pl.col(end).is_in(list(group_of)) for end in ("left", "right")))
    neighbours: dict[int, list[tuple[float, int]]] = {record: [] for record in group_of}
    for left, right, sure in within.select("left", "right", "sure").iter_rows():
        if group_of[left] == group_of[right]:
            neighbours[left].append((sure, right))
            neighbours[right].append((sure, left))

    best: dict[int, str] = {}
    bridged: dict[int, int] = dict.fromkeys(range(groups.height), 0)  # new results that match two documents, by group
    for record, rows in rows_of.items():
        matched = [(0.0, name) for name in own.get(record, ())]  # an identical result decides first
        matched = matched or [(-sure, name) for sure, other in neighbours[record] for name in own.get(other, ())]
        if matched:
            best[record] = min(matched)[1]
        if len({name for _, name in matched}) > 1:
            bridged[group_of[record]] += rows
    _join_through_others(best, rows_of.keys() - best.keys(), neighbours)
    found = pl.DataFrame(
        {"record": list(best), "best": list(best.values())}, schema={"record": new.schema["record"], "best": pl.String}
    )
    return found, sum(max(count, 1) for count in bridged.values())


def _join_through_others(best: dict[int, str], rest: set[int], neighbours: dict[int, list[tuple[float, int]]]) -> None:
    """Add to `best` the records that match only new records, the most confident pair first."""
    waiting = [(-sure, best[other], record) for record in rest for sure, other in neighbours[record] if other in best]
    heapq.heapify(waiting)
    while waiting:
        _, name, record = heapq.heappop(waiting)
        if record in best:
            continue
        best[record] = name
        for sure, other in neighbours[record]:
            if other in rest and other not in best:
                heapq.heappush(waiting, (-sure, name, other))


def _name_new_documents(new: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Name each row by the document it joined; a document of only new results gets `#2` if an earlier one has its name."""
    earlier = known.select("scope", document="earlier").unique()
    own = new.filter(pl.col("joined").is_null()).select("scope", "document").unique()
    shared = own.join(earlier, on=["scope", "document"], how="semi").sort("scope", "document")
    taken = set(pl.concat([earlier, own]).iter_rows()) if shared.height else set()
    fresh = []
    for scope, document in shared.iter_rows():
        names = (f"{document}#{number}" for number in itertools.count(2))
        fresh.append(next(name for name in names if (scope, name) not in taken))
        taken.add((scope, fresh[-1]))
    shared = shared.with_columns(fresh=pl.Series(fresh, dtype=pl.String))
    new = new.join(shared, on=["scope", "document"], how="left", maintain_order="left")
    return new.with_columns(document=pl.coalesce("joined", "fresh", "document")).drop("joined", "fresh")
