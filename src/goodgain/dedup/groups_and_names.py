"""Joins verified pairs to groups, names the groups, and joins new results to earlier documents; the order of rows changes nothing.

All results of a group, a document, get the strongest name of any of them. Names by content are hashes, the same on every
machine.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.dedup.candidates import Policy, SkippedPairs
from goodgain.dedup.document_types import NAMED_BEYOND_START, NAMED_BY_URL, TYPES
from goodgain.dedup.normalisation import SEVERAL
from goodgain.dedup.rows_and_trusted_ids import ITEM_IDS, USED_NAMES, Records
from goodgain.dedup.verification import PROVEN_DIFFERENT, verify
from goodgain.errors import InputError
from goodgain.files.results import open_results

_ENDS = ("left", "right")
#: The columns of content: title, snippet and fields; not the ids and URLs under which it is found.
_CONTENT_COLUMNS = ("title", "snippet", "parent", *sorted(USED_NAMES - {*ITEM_IDS, "parent_url"}), "rest")
_ALL_COLUMNS = ("type", "doc_id", "item", *ITEM_IDS, *_CONTENT_COLUMNS)


def group_records(
    records: Records, pairs: pl.DataFrame, policy: Policy, limit: int
) -> tuple[pl.Series, int, list[SkippedPairs]]:
    """Join the pairs that are the same, in order of confidence; refuse joins of records proven different.

    Returns:
        The group of each record, the number of joins refused, and the pairs left uncompared within groups.
    """
    from scipy.sparse import coo_array  # slow to import
    from scipy.sparse.csgraph import connected_components

    size, same = records.frame.height, pairs.filter("same")
    ends = (same["left"].to_numpy(), same["right"].to_numpy())
    graph = coo_array((np.ones(same.height, dtype=np.int8), ends), shape=(size, size))
    component: npt.NDArray[np.int64] = connected_components(graph, directed=False)[1].astype(np.int64)

    different = pairs.filter(PROVEN_DIFFERENT).select("left", "right")
    conflicts = different.filter(component[different["left"]] == component[different["right"]])
    more, skipped = _find_conflicts(records, component, policy, limit)
    conflicts = pl.concat([conflicts, more]).unique()
    refused = 0
    if conflicts.height:  # only components with a conflict, which are few, are joined again pair by pair
        with_conflict = np.unique(component[conflicts["left"].to_numpy()])
        joins = same.filter(np.isin(component[same["left"]], with_conflict)).select("left", "right", "confidence")
        refused = _join_in_order(records, component, joins, conflicts)
    return pl.Series(component), refused, skipped


def _find_conflicts(
    records: Records, component: npt.NDArray[np.int64], policy: Policy, limit: int
) -> tuple[pl.DataFrame, list[SkippedPairs]]:
    """Find pairs of a component that are proven different but share no key, so they were not candidates.

    If the records of a component differ in a field that can prove a difference, all its pairs are compared.
    """
    members = pl.DataFrame({"component": component, "record": records.frame["record"]})
    members = members.filter(pl.len().over("component") > 2)
    distinguishing = ["type", "page", "choice", "title", *records.attributes, *(["doc_id"] if records.trusted else [])]
    distinguishing += ["item", "snippet"] if policy == "strict" else []
    values = members.join(records.frame.select("record", *distinguishing), on="record")
    if policy != "strict":
        by_title = [row.name for row in TYPES.values() if row.title in row.reject]
        titles_count = pl.col("type").is_in(by_title).any().over("component")
        values = values.with_columns(title=pl.when(titles_count).then("title"))
    kinds = values.group_by("component").agg(pl.len().alias("size"), pl.col(distinguishing).drop_nulls().n_unique())
    mixed = kinds.filter(pl.any_horizontal(pl.col(distinguishing) > 1)).select("component", "size")
    whole = mixed.filter(pl.col("size") * (pl.col("size") - 1) // 2 <= limit)
    large = mixed.join(whole, on="component", how="anti")
    skipped = []
    if large.height:
        left_out = large.select((pl.col("size").cast(pl.Int64) * (pl.col("size") - 1) // 2).sum()).item()
        skipped.append(SkippedPairs("group", large.height, int(left_out)))
    open_members = members.join(whole, on="component")
    pairs = open_members.join(open_members, on="component").filter(pl.col("record") < pl.col("record_right"))
    found = verify(records, pairs.select(left="record", right="record_right"), policy)
    return found.filter(PROVEN_DIFFERENT).select("left", "right"), skipped


def _join_in_order(
    records: Records, component: npt.NDArray[np.int64], joins: pl.DataFrame, conflicts: pl.DataFrame
) -> int:
    """Assign groups to the records of the joins in `component`, strongest join first; return the number refused.

    Joins of equal confidence are ordered by the hashes of their records: the order of rows changes nothing.
    """
    nodes = pl.concat([joins["left"], joins["right"]]).unique().sort()
    hashes = dict(zip(nodes.to_list(), _hash_columns(records.frame[nodes.to_list()]).to_list(), strict=True))
    order = sorted((-sure, *sorted((hashes[one], hashes[two])), one, two) for one, two, sure in joins.iter_rows())
    root = {node: node for node in nodes.to_list()}
    members = {node: [node] for node in root}
    different: dict[int, set[int]] = {node: set() for node in root}
    for one, two in conflicts.iter_rows():
        different[one].add(two)
        different[two].add(one)
    refused = 0
    for *_, one, two in order:
        large, small = sorted((root[one], root[two]), key=lambda node: (len(members[node]), node), reverse=True)
        if large == small:
            continue
        if not different[large].isdisjoint(members[small]):
            refused += 1
            continue
        for node in members[small]:
            root[node] = large
        members[large] += members.pop(small)
        different[large] |= different.pop(small)
    fresh = int(component.max()) + 1  # new numbers, distinct from those of all components
    for node, head in root.items():
        component[node] = fresh + head
    return refused


def name_documents(records: Records, groups: pl.Series, rows: pl.DataFrame) -> pl.Series:
    """Return the document of each row; `groups` is the group of each record, `rows` the rows with a result."""
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

    A unit is a record. A record marked `apart` has a unit for each of its rows, which are separate documents.
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
    item_id = pl.lit(None, pl.String)
    for row in TYPES.values():
        own = [name for name in row.item_ids if name in records.attributes]
        if own:
            firsts = pl.min_horizontal(pl.col(name).str.split(SEVERAL).list.first() for name in own)
            item_id = pl.when(pl.col("type") == row.name).then(firsts).otherwise(item_id)
    kind = pl.col("type")
    url_names_it = kind.is_in(NAMED_BY_URL) | (kind.is_in(NAMED_BEYOND_START) & pl.col("beyond_start"))
    content = [name for name in _CONTENT_COLUMNS if name in units.columns]
    # From the strongest name to the weakest. Content is stronger than a doc_id: searches may reuse doc_ids.
    ranked = {
        "trusted": pl.when(pl.lit(records.trusted)).then("doc_id"),
        "item_id": item_id,
        "url": pl.when(url_names_it).then("url"),
        "text": pl.when(pl.any_horizontal(pl.col(content).is_not_null())).then("text"),
        "doc_id": pl.col("doc_id"),
        "start_page": pl.col("url"),
        "nothing": pl.col("text"),
    }
    strong = units.select(pl.coalesce(ranked["trusted"], ranked["item_id"], ranked["url"]).is_not_null()).to_series()
    texts = units.filter(~strong)
    texts = texts.select("unit", text="text:" + _hash_columns(texts, _CONTENT_COLUMNS, 8))
    units = units.join(texts, on="unit", how="left", maintain_order="left")
    strength = pl.coalesce(pl.when(name.is_not_null()).then(place) for place, name in enumerate(ranked.values()))
    return units.select("group", "scope", name=pl.coalesce(ranked.values()), strength=strength)


def _number_collisions(best: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Number groups of a scope that would share a name: the second in order of content hashes gets `#2`, and so on."""
    shared = best.filter(pl.struct("scope", "name").is_duplicated())
    if shared.is_empty():
        return best.select("group", document="name")
    members = units.join(shared, on="group", how="semi")
    hashes = members.select("group", "twin", hash=_hash_columns(members)).sort("hash", "twin")
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


def _hash_columns(frame: pl.DataFrame, names: Iterable[str] = _ALL_COLUMNS, size: int = 16) -> pl.Series:
    # Nulls are left out with their names: a column that only other rows have must not change the hash of a row.
    values = [pl.lit(f"{name}=") + pl.col(name) for name in names if name in frame.columns]
    lines = frame.select(pl.concat_str(values, separator="\x1e", ignore_nulls=True)).to_series()
    digests = [hashlib.blake2b(line.encode(), digest_size=size).hexdigest() for line in lines.to_list()]
    return pl.Series(digests, dtype=pl.String)


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


def keep_earlier_documents(found: pl.DataFrame, earlier: pl.Series, pairs: pl.DataFrame) -> tuple[pl.DataFrame, int]:
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
        by_record, crossing = _join_best(several, known, new, pairs)
        new = new.join(by_record, on="record", how="left", maintain_order="left")
        new = new.with_columns(joined=pl.coalesce("joined", "best")).drop("best")
        bridges += crossing
    return _name_new_documents(new, known), bridges


def _join_best(
    several: pl.DataFrame, known: pl.DataFrame, new: pl.DataFrame, pairs: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Choose the earlier document for each new record that could join several; return these and the number of bridges."""
    groups = several.select("scope", "document").with_row_index("group")
    members, rows = (part.join(groups, on=["scope", "document"]) for part in (known, new))
    own = members.select("record", name="earlier").unique()
    counts = rows.group_by("record", "group").len()
    ends = pl.concat([pairs.select("same", "confidence", record=a, other=b) for a, b in (_ENDS, _ENDS[::-1])])
    group_of = pl.concat([part.select("record", "group") for part in (members, rows)]).unique("record")
    edges = ends.filter("same").join(counts, on="record")
    edges = edges.join(group_of, left_on=["other", "group"], right_on=["record", "group"], how="semi")
    edges = edges.select("record", "other", "confidence")
    # An identical result decides first, then the best pair with an earlier result.
    identical = own.join(counts, on="record", how="semi").select("record", "name", confidence=0.0)
    matched = edges.join(own, left_on="other", right_on="record").join(identical, on="record", how="anti")
    matched = pl.concat([identical, matched.select(identical.columns)])
    chosen = matched.sort("confidence", "name", descending=[True, False]).unique("record", keep="first")
    best: dict[int, str] = dict(chosen.select("record", "name").iter_rows())
    # The others match only new results: they join through these, the most confident pair first.
    neighbours = {record: part.rows() for (record,), part in edges.drop("record").group_by(edges["record"])}
    waiting: list[tuple[float, str, int]] = []

    def reach(record: int) -> None:
        for other, sure in neighbours.get(record, ()):
            if other in neighbours and other not in best:
                heapq.heappush(waiting, (-sure, best[record], other))

    for record in list(best):
        reach(record)
    while waiting:
        _, name, record = heapq.heappop(waiting)
        if record not in best:
            best[record] = name
            reach(record)
    two = matched.group_by("record").agg(pl.col("name").n_unique()).filter(pl.col("name") > 1)
    bridged = counts.join(two, on="record").group_by("group").agg(pl.col("len").sum())
    bridges = groups.height - bridged.height + int(bridged["len"].sum())
    schema: dict[str, Any] = {"record": new.schema["record"], "best": pl.String}
    return pl.DataFrame(list(best.items()), schema=schema, orient="row"), bridges


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
