"""Joins verified pairs into groups (documents), names the groups, and joins new results to earlier documents.

The order of rows does not matter. The name of a group is a trusted doc_id, else an item id, else a URL, else a hash of the
content. A group without any of these may be named by an untrusted doc_id. Names are the same on every machine.
"""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.errors import InputError
from goodgain.logs.dedup.candidates import SkippedPairs
from goodgain.logs.dedup.document_types import SEVERAL, TYPES
from goodgain.logs.dedup.rows_and_trusted_ids import (
    CANONICAL,
    CONTENT_COLUMNS,
    URL_NAMES_IT,
    Records,
    name_texts,
    order_records,
)
from goodgain.logs.dedup.said_pairs import Clusters, Said, get_pair
from goodgain.logs.dedup.verification import PROVEN_DIFFERENT, verify

_ENDS = ("left", "right")


def group_records(
    records: Records, pairs: pl.DataFrame, limit: int, earlier: pl.Series
) -> tuple[pl.Series, int, list[SkippedPairs], int]:
    """Group the records that are the same document, joining the most confident pairs first.

    Rules and the user's pairs can keep records apart. `earlier` has the documents of the earlier results, which are the
    first rows. Only groups that are connected to a record in the user's pairs use `earlier`.

    Returns:
        Four things: the group of each record; the number of refused joins; counts of pairs left uncompared in large groups; and
        the number of pairs of earlier documents that were kept apart.
    """
    same, said = pairs.filter("same"), records.said
    component = _connect(records, [same])
    different = pairs.filter(PROVEN_DIFFERENT).select("left", "right")
    conflicts = different.filter(component[different["left"]] == component[different["right"]])
    more, skipped = _find_conflicts(records, component, limit)
    conflicts = pl.concat([conflicts, more]).unique()
    # Only components with a conflict or a pair of the user are joined again pair by pair. They are few.
    touched = np.isin(component, component[conflicts["left"].to_numpy()])
    frozen = pl.DataFrame(schema={"record": pl.UInt32, "document": pl.String})
    if said is not None:
        known = pl.DataFrame({"record": records.of_row.head(len(earlier)), "document": earlier}).drop_nulls().unique()
        known = known.filter(pl.len().over("record") == 1)  # not the records of several documents
        frozen = known.join(records.frame.select("record", "scope"), on="record").sort("record")
        chains = frozen.select(left="record", right=pl.col("record").first().over("scope", "document"))
        wide = _connect(records, [same, said.pairs, chains])
        affected = np.isin(wide, wide[said.named])
        touched |= affected
        frozen = frozen.filter(affected[frozen["record"]])
    refused = bridges = 0
    if touched.any():
        joins = same.filter(touched[same["left"]]).select("left", "right", "confidence")
        refused, bridges = _join_in_order(records, component, joins, conflicts, frozen)
    return pl.Series(component), refused, skipped, bridges


def _connect(records: Records, links: Iterable[pl.DataFrame]) -> npt.NDArray[np.int64]:
    from scipy.sparse import coo_array  # slow to import
    from scipy.sparse.csgraph import connected_components

    left, right = (np.concatenate([pairs[end].to_numpy() for pairs in links]) for end in _ENDS)
    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(records.frame.height,) * 2)
    component: npt.NDArray[np.int64] = connected_components(graph, directed=False)[1].astype(np.int64)
    return component


def _find_conflicts(
    records: Records, component: npt.NDArray[np.int64], limit: int
) -> tuple[pl.DataFrame, list[SkippedPairs]]:
    """Find pairs of records that are connected through other records, but proven to be different documents."""
    members = pl.DataFrame({"component": component, "record": records.frame["record"]})
    members = members.filter(pl.len().over("component") > 2)
    distinguishing = ["type", "page", "choice", "title", *records.attributes, *(["doc_id"] if records.trusted else [])]
    distinguishing += ["item", "snippet"] if records.policy == "strict" else []
    values = members.join(records.frame.select("record", *distinguishing), on="record")
    if records.policy != "strict":
        by_title = [row.name for row in TYPES.values() if row.title in row.reject]
        titles_count = pl.col("type").is_in(by_title).any().over("component")
        values = values.with_columns(title=pl.when(titles_count).then("title"))
    size = pl.len().cast(pl.Int64)
    kinds = values.group_by("component").agg(
        pl.col(distinguishing).drop_nulls().n_unique(), pairs_within=size * (size - 1) // 2
    )
    mixed = kinds.filter(pl.any_horizontal(pl.col(distinguishing) > 1)).select("component", "pairs_within")
    large = mixed.filter(pl.col("pairs_within") > limit)
    skipped = [SkippedPairs("group", large.height, int(large["pairs_within"].sum()))] if large.height else []
    open_members = members.join(mixed.filter(pl.col("pairs_within") <= limit).select("component"), on="component")
    pairs = open_members.join(open_members, on="component").filter(pl.col("record") < pl.col("record_right"))
    found = verify(records, pairs.select(left="record", right="record_right"))
    return found.filter(PROVEN_DIFFERENT).select("left", "right"), skipped


def _join_in_order(
    records: Records,
    component: npt.NDArray[np.int64],
    joins: pl.DataFrame,
    conflicts: pl.DataFrame,
    frozen: pl.DataFrame,
) -> tuple[int, int]:
    """Join pairs of records in order of confidence, and write the group number of each record to `component`.

    The content of records breaks ties, so neither the order of rows nor the order of doc_ids matters.

    Returns:
        Two numbers: how many joins were refused, and how many pairs of earlier documents were kept apart.
    """
    nodes = pl.concat([joins["left"], joins["right"]]).unique().sort()
    hashes = dict(zip(nodes.to_list(), order_records(records.frame[nodes.to_list()]).to_list(), strict=True))
    order = sorted((-sure, *sorted((hashes[one], hashes[two])), one, two) for one, two, sure in joins.iter_rows())
    different: dict[int, Any] = defaultdict(set)
    for one, two in conflicts.iter_rows():
        different[one].add(two)
        different[two].add(one)
    # The pairs of the user do not make the rules refuse a join: the rules look only at the groups that they made themselves.
    by_rules = Clusters({node: {node} for node in different}, different)
    groups, document_of = (by_rules, {}) if records.said is None else _begin_groups(records.said, frozen)
    refused, bridges = 0, set()
    for *_, one, two in order:
        if by_rules.find(one) == by_rules.find(two):
            continue
        heads = groups.find(one), groups.find(two)
        merged = {document_of[head] for head in heads if head in document_of}
        if by_rules.find_bars(one, two) or groups.find_bars(one, two) or len(merged) > 1:
            refused += heads[0] != heads[1] and len(merged) < 2
            bridges |= {frozenset(merged)} if len(merged) > 1 else set()
            continue
        by_rules.join(one, two)
        groups.join(one, two)
        if merged:
            document_of[groups.find(one)] = merged.pop()
    fresh = int(component.max()) + 1  # new numbers, distinct from those of all components
    said = np.flatnonzero(records.said.named).tolist() if records.said is not None else []
    for node in {*nodes.to_list(), *said, *frozen["record"].to_list()}:
        component[node] = fresh + groups.find(node)
    return refused, len(bridges)


def _begin_groups(said: Said, frozen: pl.DataFrame) -> tuple[Clusters, dict[int, str]]:
    groups = deepcopy(said.clusters)
    document_of: dict[int, str] = {}
    remedy = "Earlier documents stay as they are: remove the pair, or convert all logs in one call"
    for record, document in frozen.select("record", "document").iter_rows():
        other = document_of.setdefault(groups.find(record), document)
        if other != document:
            raise InputError(f"{said.lines[record]}: joins the earlier documents {other} and {document}. {remedy}")
    for (_, document), part in frozen.group_by("scope", "document", maintain_order=True):
        first, *rest = part["record"].to_list()
        for record in rest:
            if bars := groups.find_bars(first, record):
                place, one, two = get_pair(said.different, bars)
                raise InputError(f"{place}: {one} and {two} would both be in the earlier document {document}. {remedy}")
            groups.join(first, record)
        document_of[groups.find(first)] = str(document)
    return groups, document_of


def name_documents(records: Records, groups: pl.Series, rows: pl.DataFrame) -> pl.Series:
    """Return the document name of each row. `groups` has the group of each record; `rows` has the rows with a result."""
    units, of_row = _split_units(records, groups, rows)
    best = (
        _choose_names(units.with_row_index("unit"), records)
        .group_by("group")
        .agg(pl.col("scope").first(), pl.col("name").sort_by("strength", "name").first())
    )
    best = _number_collisions(best, units)
    return of_row.join(best, on="group", how="left", maintain_order="left")["document"]


def _split_units(records: Records, groups: pl.Series, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
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
    item_id = pl.lit(None, pl.String)
    for row in TYPES.values():
        own = [name for name in row.item_ids if name in records.attributes]
        if own:
            firsts = pl.min_horizontal(pl.col(name).str.split(SEVERAL).list.first() for name in own)
            item_id = pl.when(pl.col("type") == row.name).then(firsts).otherwise(item_id)
    content = [name for name in CONTENT_COLUMNS if name in units.columns]
    # From the strongest name to the weakest. Content is stronger than a doc_id: searches may reuse doc_ids.
    ranked = {
        "trusted": pl.when(pl.lit(records.trusted)).then("doc_id"),
        "item_id": item_id,
        "url": pl.when(URL_NAMES_IT).then(CANONICAL),
        "text": pl.when(pl.any_horizontal(pl.col(content).is_not_null())).then("text"),
        "doc_id": pl.col("doc_id"),
        "start_page": CANONICAL,
        "nothing": pl.col("text"),
    }
    strong = units.select(pl.coalesce(ranked["trusted"], ranked["item_id"], ranked["url"]).is_not_null()).to_series()
    texts = units.filter(~strong)
    texts = texts.select("unit", text=name_texts(texts))
    units = units.join(texts, on="unit", how="left", maintain_order="left")
    strength = pl.coalesce(pl.when(name.is_not_null()).then(place) for place, name in enumerate(ranked.values()))
    return units.select("group", "scope", name=pl.coalesce(ranked.values()), strength=strength)


def _number_collisions(best: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Append `~2`, `~3` ... to a name that several groups of a scope have. Such groups are sorted by their content hashes."""
    shared = best.filter(pl.struct("scope", "name").is_duplicated())
    if shared.is_empty():
        return best.select("group", document="name")
    members = units.join(shared, on="group", how="semi")
    hashes = members.select("group", "twin", hash=order_records(members)).sort("hash", "twin")
    numbered = (
        shared.join(hashes.unique("group", keep="first"), on="group")
        .sort("scope", "name", "hash", "twin")
        .with_columns(number=pl.int_range(1, pl.len() + 1).over("scope", "name"))
    )
    taken = set(best.select("scope", "name").iter_rows())
    documents = []
    for scope, name, number in numbered.select("scope", "name", "number").iter_rows():
        document = name if number == 1 else f"{name}~{number}"
        while number > 1 and (scope, document) in taken:  # a URL may itself end in `~2`
            document += "'"
        taken.add((scope, document))
        documents.append(document)
    found = numbered.select("group", document=pl.Series(documents, dtype=pl.String))
    return best.join(found, on="group", how="left").select("group", document=pl.coalesce("document", "name"))


def add_earlier_rows(frame: nw.DataFrame[Any], known: pl.DataFrame) -> tuple[nw.DataFrame[Any], pl.Series]:
    """Put the earlier results of the same queries above the new ones. Return all rows, and the documents of the earlier rows."""
    if "document" not in known.columns or "query_id" not in known.columns:
        raise InputError("earlier results lack `query_id` or `document`; convert their logs again, or deduplicate them")
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
            f"the earlier results and the new ones have columns of different types ({reason}); read both with read_results"
        ) from error
    return nw.from_native(both.select(*new.columns, *(name for name in shared if name not in new.columns))), documents


def keep_earlier_documents(found: pl.DataFrame, earlier: pl.Series, pairs: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Give each new result the name of the earlier document that it matches, if any.

    Earlier documents are never merged. A result that matches several earlier documents joins the document of the most
    confident pair. If several pairs are equally confident, the document whose name sorts first wins.

    Returns:
        Two things: the new rows with their documents, and the number of bridges. Bridges are new results that match several earlier
        documents, groups of several earlier documents without such a result, and earlier documents that are now in several groups.
    """
    known = found.filter(pl.col("row") < len(earlier))
    known = known.with_columns(earlier=earlier.gather(known.get_column("row")))
    new = found.filter(pl.col("row") >= len(earlier))
    names, name = pl.col("earlier").n_unique(), pl.col("earlier").first()
    joined = known.group_by("scope", "document").agg(names=names, joined=pl.when(names == 1).then(name))
    several = joined.filter(pl.col("names") > 1).select("scope", "document")
    cut = known.group_by("scope", "earlier").agg(pl.col("document").n_unique()).filter(pl.col("document") > 1)
    new = new.join(joined.drop("names"), on=["scope", "document"], how="left", maintain_order="left")
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
    groups = several.with_row_index("group")
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
    # All other records match only new results, and join through these results, in order of confidence.
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
    """Give each row the name of the earlier document that it joined. A new document whose name is taken gets a name with `~2`."""
    earlier = known.select("scope", document="earlier").unique()
    own = new.filter(pl.col("joined").is_null()).select("scope", "document").unique()
    shared = own.join(earlier, on=["scope", "document"], how="semi").sort("scope", "document")
    taken = set(pl.concat([earlier, own]).iter_rows()) if shared.height else set()
    fresh = []
    for scope, document in shared.iter_rows():
        names = (f"{document}~{number}" for number in itertools.count(2))
        fresh.append(next(name for name in names if (scope, name) not in taken))
        taken.add((scope, fresh[-1]))
    shared = shared.with_columns(fresh=pl.Series(fresh, dtype=pl.String))
    new = new.join(shared, on=["scope", "document"], how="left", maintain_order="left")
    return new.with_columns(document=pl.coalesce("joined", "fresh", "document")).drop("joined", "fresh")
