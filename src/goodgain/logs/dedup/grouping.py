"""Joins the records that are the same document into groups. The order of rows does not matter."""

from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.errors import InputError
from goodgain.logs.dedup.candidates import SkippedPairs
from goodgain.logs.dedup.document_types import TYPES
from goodgain.logs.dedup.rows_and_trusted_ids import Records, order_records
from goodgain.logs.dedup.said_pairs import Clusters, UserPairs, get_pair
from goodgain.logs.dedup.verification import PROVEN_DIFFERENT, verify


class Grouping(NamedTuple):
    """The groups of records, and what was left out.

    Attributes:
        group_of: the number of the group of each record.
        refused: the number of refused joins.
        skipped: counts of the pairs that were left uncompared in large groups.
        bridges: the number of pairs of earlier documents that were kept apart.
    """

    group_of: pl.Series
    refused: int
    skipped: list[SkippedPairs]
    bridges: int


def group_records(records: Records, pairs: pl.DataFrame, limit: int, earlier: pl.Series) -> Grouping:
    """Group the records that are the same document, joining the most confident pairs first.

    Rules and the user's pairs can keep records apart. `earlier` has the documents of the earlier results, which are the
    first rows. Only groups that are connected to a record in the user's pairs use `earlier`.
    """
    joining = pairs.filter("same")
    component = _connect(records, [joining])
    conflicts, skipped = _find_conflicts(records, component, pairs, limit)

    # Only components with a conflict or a pair of the user are joined again pair by pair. They are few.
    touched = np.isin(component, component[conflicts["left"].to_numpy()])
    earlier_records = pl.DataFrame(schema={"record": pl.UInt32, "document": pl.String})
    if records.user_pairs is not None:
        earlier_records = _find_earlier_records(records, earlier)
        first_of_document = pl.col("record").first().over("scope", "document")
        of_one_document = earlier_records.select(left="record", right=first_of_document)
        wide_component = _connect(records, [joining, records.user_pairs.pairs, of_one_document])
        affected = np.isin(wide_component, wide_component[records.user_pairs.named])
        touched |= affected
        earlier_records = earlier_records.filter(affected[earlier_records["record"]])

    refused = bridges = 0
    if touched.any():
        joins = joining.filter(touched[joining["left"]]).select("left", "right", "confidence")
        refused, bridges = _join_in_order(records, component, joins, conflicts, earlier_records)
    return Grouping(pl.Series(component), refused, skipped, bridges)


def _connect(records: Records, links: Iterable[pl.DataFrame]) -> npt.NDArray[np.int64]:
    """Return the number of the connected component of each record. A link is a row of a table (left, right)."""
    from scipy.sparse import coo_array  # slow to import
    from scipy.sparse.csgraph import connected_components

    left = np.concatenate([pairs["left"].to_numpy() for pairs in links])
    right = np.concatenate([pairs["right"].to_numpy() for pairs in links])
    size = records.frame.height
    links_of_records = np.ones(len(left), dtype=np.int8)
    graph = coo_array((links_of_records, (left, right)), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    component_of: npt.NDArray[np.int64] = component.astype(np.int64)
    return component_of


def _find_conflicts(
    records: Records, component: npt.NDArray[np.int64], pairs: pl.DataFrame, limit: int
) -> tuple[pl.DataFrame, list[SkippedPairs]]:
    """Find pairs of records that are connected through other records, but proven to be different documents."""
    different = pairs.filter(PROVEN_DIFFERENT).select("left", "right")
    conflicts = different.filter(component[different["left"]] == component[different["right"]])

    # Pairs without a common key are compared here, in the components whose records have several values of a field.
    members = pl.DataFrame({"component": component, "record": records.frame["record"]})
    members = members.filter(pl.len().over("component") > 2)
    mixed = _find_mixed_components(records, members)
    large = mixed.filter(pl.col("pairs_within") > limit)
    skipped = []
    if large.height:
        pairs_within = int(large["pairs_within"].sum())
        skipped.append(SkippedPairs("group", large.height, pairs_within))

    small = mixed.filter(pl.col("pairs_within") <= limit).select("component")
    members = members.join(small, on="component")
    new_pairs = members.join(members, on="component")
    new_pairs = new_pairs.filter(pl.col("record") < pl.col("record_right"))
    verified = verify(records, new_pairs.select(left="record", right="record_right"))
    new_conflicts = verified.filter(PROVEN_DIFFERENT).select("left", "right")
    return pl.concat([conflicts, new_conflicts]).unique(), skipped


def _find_mixed_components(records: Records, members: pl.DataFrame) -> pl.DataFrame:
    """Return the components (component, pairs_within) in which a distinguishing field has several values."""
    distinguishing = ["type", "page", "choice", "title", *records.attributes]
    if records.trusted:
        distinguishing.append("doc_id")
    if records.policy == "strict":
        distinguishing += ["item", "snippet"]

    values = members.join(records.frame.select("record", *distinguishing), on="record")
    if records.policy != "strict":
        types_with_title = [kind.name for kind in TYPES.values() if kind.title in kind.reject]
        titles_count = pl.col("type").is_in(types_with_title).any().over("component")
        values = values.with_columns(title=pl.when(titles_count).then("title"))

    size = pl.len().cast(pl.Int64)
    distinct_values = pl.col(distinguishing).drop_nulls().n_unique()
    pairs_within = size * (size - 1) // 2
    counts = values.group_by("component").agg(distinct_values, pairs_within=pairs_within)
    is_mixed = pl.any_horizontal(pl.col(distinguishing) > 1)
    return counts.filter(is_mixed).select("component", "pairs_within")


def _find_earlier_records(records: Records, earlier: pl.Series) -> pl.DataFrame:
    """Return a table (record, document, scope) of the records with one earlier document. Records of several are left out."""
    records_of_rows = records.of_row.head(len(earlier))
    documents = pl.DataFrame({"record": records_of_rows, "document": earlier})
    documents = documents.drop_nulls().unique()
    documents = documents.filter(pl.len().over("record") == 1)
    return documents.join(records.frame.select("record", "scope"), on="record").sort("record")


def _join_in_order(
    records: Records,
    component: npt.NDArray[np.int64],
    joins: pl.DataFrame,
    conflicts: pl.DataFrame,
    earlier_records: pl.DataFrame,
) -> tuple[int, int]:
    """Join pairs of records in order of confidence, and write the group number of each record to `component`.

    Returns:
        Two numbers: how many joins were refused, and how many pairs of earlier documents were kept apart.
    """
    different: dict[int, Any] = defaultdict(set)
    for left, right in conflicts.iter_rows():
        different[left].add(right)
        different[right].add(left)
    # The pairs of the user do not make the rules refuse a join: the rules look only at the groups that they made themselves.
    by_rules = Clusters({record: {record} for record in different}, different)
    groups = by_rules
    document_of: dict[int, str] = {}  # head of a group -> its earlier document
    named: list[int] = []
    if records.user_pairs is not None:
        groups, document_of = _begin_groups(records.user_pairs, earlier_records)
        named = np.flatnonzero(records.user_pairs.named).tolist()

    refused = 0
    bridges = set()
    for left, right in _order_joins(records, joins):
        if by_rules.find(left) == by_rules.find(right):
            continue

        heads = groups.find(left), groups.find(right)
        documents = {document_of[head] for head in heads if head in document_of}
        if len(documents) > 1:
            bridges.add(frozenset(documents))
        elif by_rules.find_bars(left, right) or groups.find_bars(left, right):
            refused += heads[0] != heads[1]
        else:
            by_rules.join(left, right)
            groups.join(left, right)
            if documents:
                document_of[groups.find(left)] = documents.pop()

    first_number = int(component.max()) + 1  # new numbers, distinct from those of all components
    joined = {*joins["left"].to_list(), *joins["right"].to_list()}
    for record in {*joined, *named, *earlier_records["record"].to_list()}:
        component[record] = first_number + groups.find(record)
    return refused, len(bridges)


def _order_joins(records: Records, joins: pl.DataFrame) -> list[tuple[int, int]]:
    """Return the joins, the most confident first. The content of records breaks ties, whatever their rows and doc_ids."""
    nodes = pl.concat([joins["left"], joins["right"]]).unique().sort().to_list()
    hashes_of_nodes = order_records(records.frame[nodes]).to_list()
    hash_of = dict(zip(nodes, hashes_of_nodes, strict=True))
    ordered = []
    for left, right, confidence in joins.iter_rows():
        hashes = sorted((hash_of[left], hash_of[right]))
        ordered.append((-confidence, *hashes, left, right))
    return [(left, right) for *_, left, right in sorted(ordered)]


def _begin_groups(user_pairs: UserPairs, earlier_records: pl.DataFrame) -> tuple[Clusters, dict[int, str]]:
    """Return the groups made by the user's pairs and the earlier documents, and the earlier document of the head of each group."""
    groups = deepcopy(user_pairs.clusters)
    document_of: dict[int, str] = {}
    remedy = "Earlier documents stay as they are: remove the pair, or convert all logs in one call"
    for record, document in earlier_records.select("record", "document").iter_rows():
        other = document_of.setdefault(groups.find(record), document)
        if other != document:
            raise InputError(
                f"{user_pairs.lines[record]}: joins the earlier documents {other} and {document}. {remedy}"
            )

    for (_, document), part in earlier_records.group_by("scope", "document", maintain_order=True):
        first, *others = part["record"].to_list()
        for record in others:
            if bars := groups.find_bars(first, record):
                place, name, other_name = get_pair(user_pairs.different, bars)
                raise InputError(
                    f"{place}: {name} and {other_name} would both be in the earlier document {document}. {remedy}"
                )
            groups.join(first, record)
        document_of[groups.find(first)] = str(document)
    return groups, document_of
