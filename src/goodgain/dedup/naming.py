"""Names documents: all results of a document get the strongest name that one of them has."""

from __future__ import annotations

import polars as pl

from goodgain.dedup.hashing import CONTENT_COLUMNS, hash_contents, name_by_text
from goodgain.dedup.records import Records
from goodgain.dedup.types import TYPES
from goodgain.dedup.values import SEVERAL

__all__ = ["name_documents"]


def name_documents(records: Records, groups: pl.Series, rows: pl.DataFrame) -> pl.Series:
    """Return the document of each row; `groups` is the group of each record, `rows` the rows that hold a result."""
    units, of_row = _split_units(records, groups, rows)
    best = (
        _choose_names(units.with_row_index("unit"), records)
        .group_by("group")
        .agg(pl.col("scope").first(), pl.col("name").sort_by("strength", "name").first())
    )
    best = _number_collisions(best, units)
    return of_row.join(best, on="group", how="left", maintain_order="left")["document"]


def _split_units(records: Records, groups: pl.Series, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the units that get a name, with their groups, and the group of each row.

    A unit is a record, but for a record `apart` there is a unit for each row, as each of its rows is a document.
    """
    units = records.frame.with_columns(group=groups, twin=pl.lit(0, pl.UInt32))
    of_row = rows.select("row", "record", group=groups.gather(rows["record"]))
    apart = units.filter(pl.col("apart") & (pl.len().over("group") == 1))
    if apart.is_empty():
        return units, of_row
    twins = rows.join(apart.select("record"), on="record", how="semi").select(
        "row", "record", twin=pl.int_range(pl.len(), dtype=pl.UInt32).over("record")
    )
    twins = twins.with_columns(group=pl.int_range(pl.len(), dtype=pl.Int64) + groups.max() + 1)
    copies = twins.drop("row").join(apart.drop("group", "twin"), on="record").select(units.columns)
    units = pl.concat([units.join(apart, on="record", how="anti"), copies])
    of_row = of_row.join(twins.select("row", own="group"), on="row", how="left", maintain_order="left")
    return units, of_row.with_columns(group=pl.coalesce("own", "group"))


def _choose_names(units: pl.DataFrame, records: Records) -> pl.DataFrame:
    """Return the strongest name of each unit, and its strength (0 is the strongest)."""
    item_id, url_names_it = pl.lit(None, pl.String), pl.lit(False)
    for kind, row in TYPES.items():
        of_type = pl.col("type") == kind
        own = [name for name in row.item_ids if name in records.attributes]
        if own:
            firsts = pl.min_horizontal(pl.col(name).str.split(SEVERAL).list.first() for name in own)
            item_id = pl.when(of_type).then(firsts).otherwise(item_id)
        by_url = pl.col("beyond_start") if row.url == "item beyond the start page" else pl.lit(row.url == "item")
        url_names_it = url_names_it | (of_type & by_url)
    content = [name for name in CONTENT_COLUMNS if name in units.columns]
    trusted = pl.lit(records.trusted)
    # From the strongest name to the weakest. The content comes before a doc_id, as searches issue doc_ids anew.
    ranked = {
        "trusted": pl.when(trusted).then("doc_id"),
        "item_id": item_id,
        "url": pl.when(url_names_it).then("url"),
        "text": pl.when(pl.any_horizontal(pl.col(content).is_not_null())).then("text"),
        "doc_id": pl.col("doc_id"),
        "start_page": pl.col("url"),
        "nothing": pl.col("text"),
    }
    strong = units.select(pl.coalesce(ranked["trusted"], ranked["item_id"], ranked["url"]).is_not_null()).to_series()
    texts = units.filter(~strong)
    units = units.join(texts.select("unit", text=name_by_text(texts)), on="unit", how="left", maintain_order="left")
    names = units.select("group", "scope", **ranked)
    strength = pl.lit(0)
    for place, name in reversed(list(enumerate(ranked))):
        strength = pl.when(pl.col(name).is_not_null()).then(place).otherwise(strength)
    return names.select("group", "scope", name=pl.coalesce(*ranked), strength=strength)


def _number_collisions(best: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Number groups of a scope that would share a name: the second in order of content hashes gets `#2`, and so on."""
    shared = best.filter(pl.struct("scope", "name").is_duplicated())
    if shared.is_empty():
        return best.select("group", document="name")
    members = units.join(shared, on="group", how="semi")
    hashes = members.select("group", "twin", hash=hash_contents(members)).sort("hash", "twin")
    numbered = (
        shared.join(hashes.unique("group", keep="first"), on="group")
        .sort("scope", "name", "hash", "twin")
        .with_columns(number=pl.int_range(1, pl.len() + 1).over("scope", "name"))
    )
    taken = set(best.select("scope", "name").iter_rows())
    documents = []
    for scope, name, number in numbered.select("scope", "name", "number").iter_rows():
        document = name if number == 1 else f"{name}#{number}"
        while number > 1 and (scope, document) in taken:  # a URL may itself end in `#2`
            document += "'"
        taken.add((scope, document))
        documents.append(document)
    found = numbered.select("group", document=pl.Series(documents, dtype=pl.String))
    return best.join(found, on="group", how="left").select("group", document=pl.coalesce("document", "name"))
