"""Joins verified pairs to groups, which are the same whatever the order of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.dedup.candidates import SkippedPairs
from goodgain.dedup.hashing import hash_contents
from goodgain.dedup.keys import Policy
from goodgain.dedup.records import Records
from goodgain.dedup.types import TYPES
from goodgain.dedup.verify import Verdicts, verify

__all__ = ["Groups", "group_records"]


@dataclass(frozen=True)
class Groups:
    """The group of each record, the number of joins refused, and the pairs left uncompared within groups."""

    of_record: npt.NDArray[np.int64]
    refused: int
    skipped: list[SkippedPairs]


def group_records(records: Records, pairs: pl.DataFrame, verdicts: Verdicts, policy: Policy, limit: int) -> Groups:
    """Join the pairs that are the same, in order of confidence; refuse joins of records proven different."""
    from scipy.sparse import coo_array  # slow to import, so it is imported only here
    from scipy.sparse.csgraph import connected_components

    size = records.frame.height
    left, right = pairs["left"].to_numpy(), pairs["right"].to_numpy()
    same = verdicts.same
    graph = coo_array((np.ones(same.sum(), dtype=np.int8), (left[same], right[same])), shape=(size, size))
    component: npt.NDArray[np.int64] = connected_components(graph, directed=False)[1].astype(np.int64)

    conflicts = pairs.filter(verdicts.proven_different & (component[left] == component[right])).select("left", "right")
    more, skipped = _find_conflicts(records, component, policy, limit)
    conflicts = pl.concat([conflicts, more]).unique()
    if conflicts.is_empty():
        return Groups(component, 0, skipped)
    # Only components with a conflict, which are few, are joined again pair by pair.
    with_conflict = np.unique(component[conflicts["left"].to_numpy()])
    within = same & np.isin(component[left], with_conflict)
    joins = pl.DataFrame({"left": left[within], "right": right[within], "sure": verdicts.confidence[within]})
    refused = _join_in_order(records, component, joins, conflicts)
    return Groups(component, refused, skipped)


def _find_conflicts(
    records: Records, component: npt.NDArray[np.int64], policy: Policy, limit: int
) -> tuple[pl.DataFrame, list[SkippedPairs]]:
    """Find pairs proven different within a component that share no key, and so are not among the candidates.

    Records are compared with all others in components whose records differ in a field that can prove a difference.
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
    found = pairs.select(left="record", right="record_right")
    verdicts = verify(records, found["left"].to_numpy(), found["right"].to_numpy(), policy)
    return found.filter(verdicts.proven_different), skipped


def _join_in_order(
    records: Records, component: npt.NDArray[np.int64], joins: pl.DataFrame, conflicts: pl.DataFrame
) -> int:
    """Assign groups to the records of the joins in `component`, strongest join first; return the number refused.

    Joins of equal confidence are ordered by the hashes of their records, so that the order of rows changes nothing.
    """
    nodes = pl.concat([joins["left"], joins["right"]]).unique().sort()
    hashes = dict(zip(nodes.to_list(), hash_contents(records.frame[nodes.to_list()]).to_list(), strict=True))
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
