"""Phase 1 of deduplication: form pairs of records that share a key, such as a URL. The number of pairs per key is limited."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from goodgain.errors import count_of
from goodgain.logs.dedup.document_types import NAMED_BY_URL, SEVERAL, TYPES, list_comparable_types, text_length
from goodgain.logs.dedup.rows_and_trusted_ids import MIN_SNIPPET, Records, has_item_id

#: Unrelated pages share shorter titles (`Home`, `Login`).
_MIN_TITLE = 12
#: How many characters of a snippet make a key: engines cut the same text at different lengths.
_SNIPPET_START = 500
#: Kinds of key that almost prove identity: each record is compared with a neighbour, however many share the key.
_STRONG_KINDS = ("id", "doc_id", "url")


@dataclass(frozen=True)
class SkippedPairs:
    """Counts of the pairs that were not compared for one kind of key, because a key or group had more pairs than the limit.

    Attributes:
        kind: the kind of key; or `group`, for groups with more pairs than the limit.
        buckets: how many keys (or groups) the pairs come from.
        pairs: how many pairs of these keys were not compared; for groups, the number of all pairs within these groups.
    """

    kind: str
    buckets: int
    pairs: int

    def __str__(self) -> str:
        buckets = f"{count_of(self.buckets, 'key')} of kind {self.kind}"
        if self.kind == "group":
            buckets = count_of(self.buckets, "mixed group")
        return f"{buckets} with too many results: {count_of(self.pairs, 'pair')} left out"


def form_pairs(records: Records, limit: int) -> tuple[pl.DataFrame, list[SkippedPairs]]:
    """Return the distinct pairs of records that share a key, and counts of the pairs that were left out.

    In each pair, `left` is smaller than `right`. If more than `limit` pairs share a key, the records with this key are sorted
    by similarity, and each record is compared only with its nearest neighbours.
    """
    members = _mark_settled(_make_keys(records), records)  # one row per (key, record)

    # one row per key, with the number of pairs that have an open (not settled) record
    size = pl.len().cast(pl.Int64)
    unsettled = pl.col("settled").not_().sum().cast(pl.Int64)
    pairs_of_key = unsettled * (unsettled - 1) // 2 + unsettled * (size - unsettled)
    keys = members.group_by("key").agg(size=size, open=unsettled, pairs=pairs_of_key)
    members = members.join(keys.filter(pl.col("pairs") > 0), on="key")

    # Each open record of a small key is paired with all later records. Open records come first.
    members_of_small = members.filter(pl.col("pairs") <= limit).sort("key", "settled", "record")
    members_of_small = _add_places(members_of_small)
    all_pairs = _make_pairs(members_of_small, begin=pl.col("place") + 1, end=pl.col("end"))

    nearest_pairs, skipped = _pair_nearest(members.filter(pl.col("pairs") > limit), records, limit)
    return pl.concat([all_pairs.drop("key"), nearest_pairs]).unique(), skipped


def _make_keys(records: Records) -> pl.DataFrame:
    """Return a table (kind, key, record) of the keys that several records share."""
    parts = []
    for kind, name, condition, value in _list_keys(records):
        has_key = condition & value.is_not_null()
        holders = records.frame.lazy().filter(has_key).select("scope", "record", value=value)
        if kind == "id":  # each value of an id is a key
            holders = holders.with_columns(pl.col("value").str.split(SEVERAL)).explode("value")
        name_of_key = pl.lit(kind + name).alias("name")
        key = pl.struct("scope", name_of_key, "value").hash()
        parts.append(holders.select(kind=pl.lit(kind), key=key, record=pl.col("record")))
    keys = pl.concat(pl.collect_all(parts))
    return keys.filter(keys["key"].is_duplicated())


def _list_keys(records: Records) -> Iterator[tuple[str, str, pl.Expr, pl.Expr]]:
    """Yield the kind and the name of each key, which records have it, and its value."""
    types_of_id: dict[str, list[str]] = {}
    types_of_fields: dict[tuple[str, ...], list[str]] = {}
    for type_name in TYPES:
        for kind in list_comparable_types(type_name):
            for item_id in kind.item_ids:
                types_of_id.setdefault(item_id, []).append(type_name)
            for fields in kind.further_keys:
                types_of_fields.setdefault(fields, []).append(type_name)

    for item_id, types in types_of_id.items():
        if item_id in records.attributes:
            yield "id", item_id, pl.col("type").is_in(types), pl.col(item_id)
    has_own_id = has_item_id(records.attributes, lambda type_name: (TYPES[type_name],))
    is_trusted = pl.lit(records.trusted) | ~(has_own_id | pl.col("reissued"))
    yield "doc_id", "", is_trusted, pl.col("doc_id")
    # All messages found in a mail or chat application have the URL of its start page.
    has_own_url = pl.col("type").is_in(NAMED_BY_URL) | pl.col("beyond_start")
    yield "url", "", has_own_url, pl.col("page")
    if records.policy == "id":
        return

    snippet_start = pl.col("snippet").str.head(_SNIPPET_START)
    yield "text", "", pl.col("snippet_length") >= MIN_SNIPPET, snippet_start
    yield "title", "", text_length(pl.col("title")) >= _MIN_TITLE, pl.col("title")
    columns = {*records.attributes, "title", "snippet", "page"}
    for fields, types in types_of_fields.items():
        for names in _replace_parent(fields):
            if columns.issuperset(names):
                value = pl.struct(snippet_start if name == "snippet" else name for name in names)
                has_all = pl.all_horizontal(pl.col(names).is_not_null())
                yield "fields", "+".join(names), pl.col("type").is_in(types) & has_all, value


def _replace_parent(fields: tuple[str, ...]) -> list[list[str]]:
    """Return the columns of each key made from `fields`. A parent is known by its doc_id or its URL, and each makes a key."""
    if "parent" not in fields:
        return [list(fields)]
    return [[parent if name == "parent" else name for name in fields] for parent in ("parent", "page")]


def _mark_settled(keys: pl.DataFrame, records: Records) -> pl.DataFrame:
    """Add the column `settled`. Two settled records are not compared under this key, because their URLs decide.

    Results of one page share the key of the page. Results of two pages are different, even with the same title.
    """
    if records.policy != "standard":
        return keys.with_columns(settled=pl.lit(False))
    has_url = pl.col("page").is_not_null() & pl.col("type").is_in(NAMED_BY_URL)
    record_has_url = records.frame.select(has_url).to_series()
    decides_before_url = ["id", "url"]
    if records.trusted:
        decides_before_url.append("doc_id")
    decides = ~keys["kind"].is_in(decides_before_url)
    return keys.with_columns(settled=record_has_url.gather(keys["record"]) & decides)


def _add_places(members: pl.DataFrame) -> pl.DataFrame:
    """Add three row numbers: `place` of the row, and `start` and `end` of the rows with the same key."""
    members = members.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64))
    start = pl.col("place").first().over("key")
    return members.with_columns(start=start, end=start + pl.col("size"))


def _make_pairs(members: pl.DataFrame, *, begin: pl.Expr, end: pl.Expr) -> pl.DataFrame:
    """Pair each open record with the records in the rows from `begin` up to `end`. Return a table (key, left, right)."""
    spans = members.select("key", "record", "settled", begin=begin, end=end)
    spans = spans.filter(~pl.col("settled"))
    spans = spans.select("key", "record", partner_place=pl.int_ranges("begin", "end"))
    pairs = spans.explode("partner_place").drop_nulls("partner_place")
    partner = pl.lit(members["record"]).gather(pl.col("partner_place"))
    ends = pl.col("record"), partner
    return pairs.select("key", left=pl.min_horizontal(ends), right=pl.max_horizontal(ends))


def _pair_nearest(members: pl.DataFrame, records: Records, limit: int) -> tuple[pl.DataFrame, list[SkippedPairs]]:
    """Pair each open record with as many neighbours as the limit allows. Count the pairs that are left out, by kind of key."""
    texts = records.frame.select("record", "snippet", "title")
    texts = texts.join(members.select("record").unique(), on="record")
    text_places = texts.sort("snippet", "title", "record").select("record").with_row_index("text_place")
    order = pl.when(pl.col("kind") == "url").then("record").otherwise("text_place")
    members = members.join(text_places, on="record").with_columns(order=order)
    members = _add_places(members.sort("key", "order"))

    # If all records are open, each pair is formed twice, once from either side, but compared once.
    are_all_open = pl.col("open") >= pl.col("size")
    sides = pl.when(are_all_open).then(1).otherwise(2)
    reach = limit // (pl.col("open") * sides)
    is_near_start = pl.int_range(pl.len()).over("key") < limit
    needs_neighbour = pl.col("kind").is_in(_STRONG_KINDS) | is_near_start
    at_least_one = pl.max_horizontal(reach, pl.lit(1))
    reach = pl.when(needs_neighbour).then(at_least_one).otherwise(reach)
    begin = pl.max_horizontal(pl.col("place") - reach, "start")
    end = pl.min_horizontal(pl.col("place") + reach + 1, "end")
    pairs = _make_pairs(members, begin=begin, end=end)
    pairs = pairs.filter(pl.col("left") != pl.col("right")).unique()

    # one row per key, then one row per kind of key
    formed = pairs.group_by("key").agg(formed=pl.len().cast(pl.Int64))
    counts = members.group_by("key").agg(pl.col("kind", "pairs").first())
    counts = counts.join(formed, on="key", how="left")
    not_formed = pl.col("pairs") - pl.col("formed").fill_null(0)
    left_out = counts.select("kind", left_out=not_formed)
    left_out = left_out.filter(pl.col("left_out") > 0)
    by_kind = left_out.group_by("kind").agg(pl.len(), pl.col("left_out").sum())
    skipped = by_kind.sort("kind")
    return pairs.drop("key"), [SkippedPairs(*row) for row in skipped.iter_rows()]
