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


def _make_keys(records: Records) -> pl.DataFrame:
    found = []
    for kind, name, condition, value in _list_keys(records):
        has = records.frame.lazy().filter(condition & value.is_not_null()).select("scope", "record", value=value)
        if kind == "id":  # each value of an id is a key
            has = has.with_columns(pl.col("value").str.split(SEVERAL)).explode("value")
        key = pl.struct("scope", pl.lit(kind + name).alias("name"), "value").hash()
        found.append(has.select(kind=pl.lit(kind), key=key, record=pl.col("record")))
    keys = pl.concat(pl.collect_all(found))
    return keys.filter(keys["key"].is_duplicated())


def _list_keys(records: Records) -> Iterator[tuple[str, str, pl.Expr, pl.Expr]]:
    ids: dict[str, list[str]] = {}  # item id -> the types of results to which it applies
    fields: dict[tuple[str, ...], list[str]] = {}  # further key -> the types of results to which it applies
    for name in TYPES:
        for row in list_comparable_types(name):
            for item_id in row.item_ids:
                ids.setdefault(item_id, []).append(name)
            for key in row.further_keys:
                fields.setdefault(key, []).append(name)
    for item_id, types in ids.items():
        if item_id in records.attributes:
            yield "id", item_id, pl.col("type").is_in(types), pl.col(item_id)
    has_own_id = has_item_id(records.attributes, lambda name: (TYPES[name],))
    yield "doc_id", "", pl.lit(records.trusted) | ~(has_own_id | pl.col("reissued")), pl.col("doc_id")
    # All messages found in a mail or chat application have the URL of its start page.
    yield "url", "", pl.col("type").is_in(NAMED_BY_URL) | pl.col("beyond_start"), pl.col("page")
    if records.policy == "id":
        return
    snippet_start = pl.col("snippet").str.head(_SNIPPET_START)
    yield "text", "", pl.col("snippet_length") >= MIN_SNIPPET, snippet_start
    yield "title", "", text_length(pl.col("title")) >= _MIN_TITLE, pl.col("title")
    for key, types in fields.items():
        # A parent is known by its doc_id or its URL, and each makes a key.
        for parent in ("parent", "page") if "parent" in key else ("",):
            names = [parent if name == "parent" else name for name in key]
            if set(names) <= {*records.attributes, "title", "snippet", "page"}:
                value = pl.struct(snippet_start if name == "snippet" else name for name in names)
                has_all = pl.all_horizontal(pl.col(names).is_not_null())
                yield "fields", "+".join(names), pl.col("type").is_in(types) & has_all, value


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
        one, several = ("mixed group", "mixed groups") if self.kind == "group" else ("key", "keys")
        kind = "" if self.kind == "group" else f" of kind {self.kind}"
        buckets = f"{count_of(self.buckets, one, several)}{kind} with too many results"
        return f"{buckets}: {count_of(self.pairs, 'pair')} left out"


def form_pairs(records: Records, limit: int) -> tuple[pl.DataFrame, list[SkippedPairs]]:
    """Return the distinct pairs of records that share a key, and counts of the pairs that were left out.

    In each pair, `left` is smaller than `right`. If more than `limit` pairs share a key, the records with this key are sorted
    by similarity, and each record is compared only with its nearest neighbours.
    """
    keys = _make_keys(records)
    # Two settled records are not compared under this key, because their URLs decide. Results of one page share the key of the
    # page. Results of two pages are different, even with the same title.
    by_url = records.frame.select(pl.col("page").is_not_null() & pl.col("type").is_in(NAMED_BY_URL)).to_series()
    decides_first = ["id", "url", *(["doc_id"] if records.trusted else [])]
    is_settled = by_url.gather(keys["record"]) & ~keys["kind"].is_in(decides_first)
    members = keys.with_columns(settled=is_settled if records.policy == "standard" else pl.lit(False))
    size, unsettled = pl.len().cast(pl.Int64), pl.col("settled").not_().sum().cast(pl.Int64)
    buckets = members.group_by("key").agg(
        size=size, open=unsettled, pairs=unsettled * (unsettled - 1) // 2 + unsettled * (size - unsettled)
    )
    members = members.join(buckets.filter(pl.col("pairs") > 0), on="key")
    # Each open (not settled) record of a small bucket is paired with all later records. Open records come first.
    small = _add_places(members.filter(pl.col("pairs") <= limit).sort("key", "settled", "record"))
    found = _make_pairs(small, begin=pl.col("place") + 1, end=pl.col("end"))
    large, skipped = _pair_nearest(members.filter(pl.col("pairs") > limit), records, limit)
    return pl.concat([found.drop("key"), large]).unique(), skipped


def _pair_nearest(members: pl.DataFrame, records: Records, limit: int) -> tuple[pl.DataFrame, list[SkippedPairs]]:
    texts = records.frame.select("record", "snippet", "title").join(members.select("record").unique(), on="record")
    places = texts.sort("snippet", "title", "record").select("record").with_row_index("text_place")
    order = pl.when(pl.col("kind") == "url").then("record").otherwise("text_place")
    members = members.join(places, on="record").with_columns(order=order)
    members = _add_places(members.sort("key", "order"))
    # If all records are open, each pair is formed twice, once from either side, but compared once.
    sides = pl.when(pl.col("open") < pl.col("size")).then(2).otherwise(1)
    reach = limit // (pl.col("open") * sides)
    strong = pl.col("kind").is_in(_STRONG_KINDS) | (pl.int_range(pl.len()).over("key") < limit)
    reach = pl.when(strong).then(pl.max_horizontal(reach, pl.lit(1))).otherwise(reach)
    first = pl.max_horizontal(pl.col("place") - reach, "start")
    pairs = _make_pairs(members, begin=first, end=pl.min_horizontal(pl.col("place") + reach + 1, "end"))
    pairs = pairs.filter(pl.col("left") != pl.col("right")).unique()
    taken = pairs.group_by("key").agg(taken=pl.len().cast(pl.Int64))
    counts = members.group_by("key").agg(pl.col("kind", "pairs").first()).join(taken, on="key", how="left")
    left_out = counts.select("kind", left_out=pl.col("pairs") - pl.col("taken").fill_null(0))
    left_out = left_out.filter(pl.col("left_out") > 0)
    skipped = left_out.group_by("kind").agg(pl.len(), pl.col("left_out").sum()).sort("kind")
    return pairs.drop("key"), [SkippedPairs(*row) for row in skipped.iter_rows()]


def _add_places(members: pl.DataFrame) -> pl.DataFrame:
    members = members.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64))
    start = pl.col("place").first().over("key")
    return members.with_columns(start=start, end=start + pl.col("size"))


def _make_pairs(members: pl.DataFrame, *, begin: pl.Expr, end: pl.Expr) -> pl.DataFrame:
    spans = members.select("key", "settled", one="record", begin=begin, end=end).filter(~pl.col("settled"))
    spans = spans.select("key", "one", other=pl.int_ranges("begin", "end")).explode("other").drop_nulls("other")
    ends = pl.col("one"), pl.lit(members["record"]).gather(pl.col("other"))
    return spans.select("key", left=pl.min_horizontal(ends), right=pl.max_horizontal(ends))
