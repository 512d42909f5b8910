"""Names the documents: the groups of records.

The name of a group is a trusted doc_id, else an item id, else a URL, else a hash of the content. A group without any of these may
be named by an untrusted doc_id. Names are the same on every machine, and do not depend on the order of rows.
"""

import polars as pl

from goodgain.logs.dedup.document_types import SEVERAL, TYPES
from goodgain.logs.dedup.rows_and_trusted_ids import (
    CANONICAL,
    CONTENT_COLUMNS,
    URL_NAMES_IT,
    Records,
    name_texts,
    order_records,
)


def name_documents(records: Records, group_of: pl.Series, rows: pl.DataFrame) -> pl.Series:
    """Return the document name of each row. `group_of` has the group of each record; `rows` has the rows with a result."""
    units, group_of_row = _split_vague_records(records, group_of, rows)
    names = _choose_names(units.with_row_index("unit"), records)
    best_name = pl.col("name").sort_by("strength", "name").first()
    best = names.group_by("group").agg(pl.col("scope").first(), best_name)
    documents = _number_collisions(best, units)
    return group_of_row.join(documents, on="group", how="left", maintain_order="left")["document"]


def _split_vague_records(
    records: Records, group_of: pl.Series, rows: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the units that have a name, and the group of each row. A unit is a record, or a row of a vague record.

    Each row of a vague record (`apart`) becomes a group of its own, unless the record was joined to another record.
    """
    units = records.frame.with_columns(group=group_of, twin=pl.lit(0, pl.UInt32))
    group_of_row = rows.select("row", "record", group=group_of.gather(rows["record"]))
    is_alone = pl.len().over("group") == 1
    apart = units.filter(pl.col("apart") & is_alone)
    if apart.is_empty():
        return units, group_of_row

    # one row per row of a vague record
    twins = rows.join(apart.select("record"), on="record", how="semi")
    twin = pl.int_range(pl.len(), dtype=pl.UInt32).over("record")
    twins = twins.select("row", "record", twin=twin)
    new_group = pl.int_range(pl.len(), dtype=pl.Int64) + group_of.max() + 1
    twins = twins.with_columns(group=new_group)
    vague_units = apart.drop("group", "twin")
    copies = twins.drop("row").join(vague_units, on="record").select(units.columns)
    units = pl.concat([units.join(apart, on="record", how="anti"), copies])
    own_groups = twins.select("row", own_group="group")
    group_of_row = group_of_row.join(own_groups, on="row", how="left", maintain_order="left")
    return units, group_of_row.with_columns(group=pl.coalesce("own_group", "group"))


def _choose_names(units: pl.DataFrame, records: Records) -> pl.DataFrame:
    """Return the strongest name of each unit (group, scope, name, strength). The strongest names have the strength 0."""
    item_id = pl.lit(None, pl.String)
    for kind in TYPES.values():
        columns = [name for name in kind.item_ids if name in records.attributes]
        if columns:
            first_ids = [pl.col(name).str.split(SEVERAL).list.first() for name in columns]
            is_of_kind = pl.col("type") == kind.name
            item_id = pl.when(is_of_kind).then(pl.min_horizontal(first_ids)).otherwise(item_id)

    trusted_id = pl.when(pl.lit(records.trusted)).then("doc_id")
    url = pl.when(URL_NAMES_IT).then(CANONICAL)
    has_strong_name = units.select(pl.coalesce(trusted_id, item_id, url).is_not_null()).to_series()
    weakly_named = units.filter(~has_strong_name)
    texts = weakly_named.select("unit", text=name_texts(weakly_named))
    units = units.join(texts, on="unit", how="left", maintain_order="left")

    content = [name for name in CONTENT_COLUMNS if name in units.columns]
    has_content = pl.any_horizontal(pl.col(content).is_not_null())
    text_of_content = pl.when(has_content).then("text")
    start_page = CANONICAL
    # From the strongest name to the weakest. Content is stronger than a doc_id: searches may reuse doc_ids.
    names = (trusted_id, item_id, url, text_of_content, pl.col("doc_id"), start_page, pl.col("text"))
    strength = pl.coalesce(pl.when(name.is_not_null()).then(place) for place, name in enumerate(names))
    return units.select("group", "scope", name=pl.coalesce(names), strength=strength)


def _number_collisions(best: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Append `~2`, `~3` ... to a name that several groups of a scope have. Such groups are sorted by their content hashes."""
    shared = best.filter(pl.struct("scope", "name").is_duplicated())
    if shared.is_empty():
        return best.select("group", document="name")

    members = units.join(shared, on="group", how="semi")
    hashes = members.select("group", "twin", hash=order_records(members)).sort("hash", "twin")
    first_hashes = hashes.unique("group", keep="first")
    numbered = shared.join(first_hashes, on="group").sort("scope", "name", "hash", "twin")
    number = pl.int_range(1, pl.len() + 1).over("scope", "name")
    numbered = numbered.with_columns(number=number)

    used = set(best.select("scope", "name").iter_rows())
    documents = []
    for scope, name, number in numbered.select("scope", "name", "number").iter_rows():
        document = name
        if number > 1:
            document = f"{name}~{number}"
            while (scope, document) in used:  # a URL may itself end in `~2`
                document += "'"
        used.add((scope, document))
        documents.append(document)

    renamed = numbered.select("group", document=pl.Series(documents, dtype=pl.String))
    named = best.join(renamed, on="group", how="left")
    return named.select("group", document=pl.coalesce("document", "name"))
