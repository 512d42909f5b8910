"""Finds the records that the user's pairs name, and joins them."""

from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import polars as pl

from goodgain.errors import InputError
from goodgain.formats.urls import parse_url
from goodgain.logs.dedup.document_types import SEVERAL, TYPES, normalise_kind
from goodgain.logs.dedup.rows_and_trusted_ids import URL_NAMES_IT, Records, name_texts
from goodgain.logs.dedup.said_pairs import Clusters, SaidPairs, UserPairs, get_pair

#: A form of a name that records can have: (`id` or `url`, the value).
_Key = tuple[str, str]


def find_user_pairs(same: SaidPairs, different: SaidPairs, records: Records) -> UserPairs:
    """Find the records that the user's pairs name in each query. Raise InputError if two pairs contradict each other."""
    head_of, head_of_key = _identify_names(same, different)
    names = _join_names(head_of, same, different)
    named_records = _collect_records(records, head_of_key, names)
    occurring = {head for heads in named_records.heads_of.values() for head in heads}
    for source in (same, different):
        for _, left, right in source.pairs:
            source.occurring.update(name for name in (left, right) if head_of[name] in occurring)

    clusters = _begin_clusters(named_records.heads_of, names, different)
    line_of_names = {names.find(head_of[left]): place for place, left, _ in same.pairs}
    spelled_twice = {head_of[left] for _, left, right in same.pairs if head_of[left] == head_of[right]}

    joins = set()
    line_of: dict[int, str] = {}
    for (_, joined_names), records_of_head in named_records.meant.items():
        # Records of one name stay as the rules leave them, unless a pair has two spellings of this name.
        if len(records_of_head) == 1 and spelled_twice.isdisjoint(records_of_head):
            continue

        first, *further_records = dict.fromkeys(record for members in records_of_head.values() for record in members)
        line = line_of_names[joined_names]
        for record in further_records:
            if bars := clusters.find_bars(first, record):
                raise _contradict(line, different, bars)
            clusters.join(first, record)
            joins.add((min(first, record), max(first, record)))
            line_of[first] = line_of[record] = line

    named = np.zeros(records.frame.height, np.bool_)
    named[list(named_records.heads_of)] = True
    pairs = pl.DataFrame(sorted(joins), schema={"left": pl.UInt32, "right": pl.UInt32}, orient="row")
    return UserPairs(same, different, clusters, named_records.heads_of, line_of, pairs, named)


def _identify_names(same: SaidPairs, different: SaidPairs) -> tuple[dict[str, _Key], dict[_Key, _Key]]:
    """Return a key for each name, and for each form of a name. Names with a common form (an id, a URL) get one key, the head."""
    all_pairs = [pair for source in (same, different) for _, *pair in source.pairs]
    names = list(dict.fromkeys(name for pair in all_pairs for name in pair))
    normal_ids = normalise_kind(pl.Series(names, dtype=pl.String), "id")
    clusters = Clusters({}, {})
    keys_of: dict[str, list[_Key]] = {}
    for name, normal in zip(names, normal_ids, strict=True):
        keys = [("id", name), ("id", normal or name)]
        parsed = parse_url(name)
        # Ids may have `#` too: only what has a host or begins with `/` is a URL.
        if parsed is not None and ("://" in parsed.normalised or name.startswith("/")):
            keys.append(("url", parsed.address))
        for key in keys[1:]:
            clusters.join(keys[0], key)
        keys_of[name] = keys

    head_of = {name: clusters.find(keys[0]) for name, keys in keys_of.items()}
    return head_of, {key: clusters.find(key) for keys in keys_of.values() for key in keys}


def _join_names(head_of: dict[str, _Key], same: SaidPairs, different: SaidPairs) -> Clusters:
    """Return the sets of names that pairs of `same` make one document. The marks of a set are as in `UserPairs.clusters`."""
    marks: dict[_Key, Set[Any]] = defaultdict(frozenset)
    barred: dict[_Key, Set[Any]] = defaultdict(frozenset)
    for number, (place, left, right) in enumerate(different.pairs):
        if head_of[left] == head_of[right]:
            raise InputError(f"{place}: {left} and {right} are one id or URL, not two documents; remove the pair")
        for side, name in enumerate((left, right)):
            marks[head_of[name]] |= {(number, side)}
            barred[head_of[name]] |= {(number, 1 - side)}

    clusters = Clusters(marks, barred)
    for place, left, right in same.pairs:
        if bars := clusters.find_bars(head_of[left], head_of[right]):
            raise _contradict(place, different, bars)
        clusters.join(head_of[left], head_of[right])
    return clusters


def _contradict(line: str, different: SaidPairs, bars: Set[tuple[int, int]]) -> InputError:
    place, left, right = get_pair(different, bars)
    return InputError(f"{place} says that {left} and {right} are different, but {line} makes them the same; remove one")


@dataclass
class _NamedRecords:
    """The records that the user's names mean.

    Attributes:
        heads_of: for each record, the heads of its names.
        meant: (scope, set of joined names) -> head of a name -> its records.
    """

    heads_of: dict[int, set[Any]] = field(default_factory=lambda: defaultdict(set))
    meant: dict[tuple[int, Any], dict[_Key, list[int]]] = field(default_factory=dict)


def _collect_records(records: Records, head_of_key: dict[_Key, _Key], names: Clusters) -> _NamedRecords:
    """Find the records of each name, and put together the names that `same` makes one document, in each scope."""
    collected = _NamedRecords()
    for key, scope, record in _find_records(records, head_of_key):
        head = head_of_key[key]
        collected.heads_of[record].add(head)
        records_of_head = collected.meant.setdefault((scope, names.find(head)), {})
        records_of_head.setdefault(head, []).append(record)
    return collected


def _find_records(records: Records, keys: dict[_Key, _Key]) -> Iterator[tuple[_Key, int, int]]:
    """Yield (key, scope, number of the record) for each record that has a key in `keys`.

    Doc_ids that several documents share are ignored, and so are URLs of pages with many items.
    """
    frame = records.frame
    has_several_snippets = pl.col("snippet").n_unique().over("scope", "doc_id") > 1
    is_shared = (pl.col("type") == "passage") & has_several_snippets
    has_own_doc_id = pl.lit(records.trusted) | ~(pl.col("reissued") | is_shared)
    forms: list[tuple[str, pl.Expr]] = [
        ("id", pl.when(has_own_doc_id).then("doc_id")),
        ("url", pl.when(URL_NAMES_IT).then(pl.col("item") + pl.col("anchor"))),
    ]
    for kind in TYPES.values():
        item_ids = [name for name in kind.item_ids if name in records.attributes]
        is_of_kind = pl.col("type") == kind.name
        forms += [("id", pl.when(is_of_kind).then(name)) for name in item_ids]

    ids = [value for form, value in keys if form == "id"]
    urls = [value for form, value in keys if form == "url"]
    if any(name.startswith("text:") for name in ids):
        frame = frame.with_columns(text=name_texts(frame))
        forms.append(("id", pl.col("text")))

    for form, expression in forms:
        values = frame.select("scope", "record", value=expression.str.split(SEVERAL)).explode("value")
        wanted = ids if form == "id" else urls
        for scope, record, value in values.filter(pl.col("value").is_in(wanted)).iter_rows():
            yield (form, value), scope, record

    # Runs without deduplication have URLs as doc_ids.
    addresses = frame.filter(has_own_doc_id, pl.col("doc_id").str.contains("^https?://"))
    for scope, record, doc_id in addresses.select("scope", "record", "doc_id").iter_rows():
        parsed = parse_url(doc_id)
        if parsed and ("url", parsed.address) in keys:
            yield ("url", parsed.address), scope, record


def _begin_clusters(heads_of: dict[int, set[Any]], names: Clusters, different: SaidPairs) -> Clusters:
    """Return one set for each named record, with the marks of all its names."""
    marks, barred = {}, {}
    for record, heads in heads_of.items():
        marks[record] = reduce(or_, map(names.get_marks, heads))
        barred[record] = reduce(or_, map(names.get_barred_marks, heads))
        if bars := marks[record] & barred[record]:
            place, left, right = get_pair(different, bars)
            raise InputError(
                f"{place}: {left} and {right} name the same result, so they cannot be two documents; remove the pair"
            )
    return Clusters(marks, barred)
