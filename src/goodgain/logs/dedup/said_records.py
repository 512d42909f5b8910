"""Finds the records that the user's pairs name, and joins them."""

from collections import defaultdict
from collections.abc import Iterator, Set
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import polars as pl

from goodgain.errors import InputError
from goodgain.formats.urls import parse_url
from goodgain.logs.dedup.document_types import SEVERAL, TYPES, normalise_kind
from goodgain.logs.dedup.rows_and_trusted_ids import URL_NAMES_IT, Records, name_texts
from goodgain.logs.dedup.said_pairs import Clusters, Said, SaidPairs, get_pair


def find_said(same: SaidPairs, different: SaidPairs, records: Records) -> Said:
    """Find the records that the user's pairs name in each query. Raise InputError if two pairs contradict each other."""
    name_of, heads = _identify_names(same, different)
    names = _join_names(name_of, same, different)
    lines = {names.find(name_of[one]): place for place, one, _ in same.pairs}
    meant: dict[tuple[int, Any], dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    names_of: dict[int, set[Any]] = defaultdict(set)
    for key, scope, record in _find_records(records, heads):
        names_of[record].add(heads[key])
        meant[scope, names.find(heads[key])][heads[key]].append(record)
    occurring = {head for one in names_of.values() for head in one}
    for said in (same, different):
        said.found.update(name for _, *pair in said.pairs for name in pair if name_of[name] in occurring)

    marks, barred = (
        {record: reduce(or_, (names.get_marks(name)[side] for name in own)) for record, own in names_of.items()}
        for side in (0, 1)
    )
    clusters, joins, line_of = Clusters(marks, barred), set(), {}
    for record in names_of:
        if bars := marks[record] & barred[record]:
            place, one, two = get_pair(different, bars)
            raise InputError(
                f"{place}: {one} and {two} name the same result, so they cannot be two documents; remove the pair"
            )
    spelled_twice = {name_of[one] for _, one, two in same.pairs if name_of[one] == name_of[two]}
    for (_, head), parts in meant.items():
        first, *rest = dict.fromkeys(record for members in parts.values() for record in members)
        for record in rest if len(parts) > 1 or not spelled_twice.isdisjoint(parts) else ():
            if bars := clusters.find_bars(first, record):
                raise _contradict(lines[head], different, bars)
            clusters.join(first, record)
            joins.add((min(first, record), max(first, record)))
            line_of[first] = line_of[record] = lines[head]
    named = np.zeros(records.frame.height, np.bool_)
    named[list(names_of)] = True
    pairs = pl.DataFrame(sorted(joins), schema={"left": pl.UInt32, "right": pl.UInt32}, orient="row")
    return Said(same, different, clusters, names_of, line_of, pairs, named)


def _contradict(line: str, different: SaidPairs, bars: Set[tuple[int, int]]) -> InputError:
    place, one, two = get_pair(different, bars)
    return InputError(f"{place} says that {one} and {two} are different, but {line} makes them the same; remove one")


def _identify_names(same: SaidPairs, different: SaidPairs) -> tuple[dict[str, Any], dict[Any, Any]]:
    names = list(dict.fromkeys(name for said in (same, different) for _, *pair in said.pairs for name in pair))
    clusters = Clusters({}, {})
    keys: dict[str, list[tuple[str, str]]] = {}
    for name, normal in zip(names, normalise_kind(pl.Series(names, dtype=pl.String), "id"), strict=True):
        parsed = parse_url(name)
        # Ids may have `#` too: only what has a host or begins with `/` is a URL.
        is_url = parsed is not None and ("://" in parsed.normalised or name.startswith("/"))
        keys[name] = [("id", name), ("id", normal or name), *([("url", parsed.address)] if parsed and is_url else [])]
        for key in keys[name][1:]:
            clusters.join(keys[name][0], key)
    heads = {key: clusters.find(key) for forms in keys.values() for key in forms}
    return {name: heads[forms[0]] for name, forms in keys.items()}, heads


def _join_names(name_of: dict[str, Any], same: SaidPairs, different: SaidPairs) -> Clusters:
    marks: dict[Any, Set[Any]] = defaultdict(frozenset)
    barred: dict[Any, Set[Any]] = defaultdict(frozenset)
    for number, (place, one, two) in enumerate(different.pairs):
        if name_of[one] == name_of[two]:
            raise InputError(f"{place}: {one} and {two} are one id or URL, not two documents; remove the pair")
        for side, name in enumerate((one, two)):
            marks[name_of[name]] |= {(number, side)}
            barred[name_of[name]] |= {(number, 1 - side)}
    clusters = Clusters(marks, barred)
    for place, one, two in same.pairs:
        if bars := clusters.find_bars(name_of[one], name_of[two]):
            raise _contradict(place, different, bars)
        clusters.join(name_of[one], name_of[two])
    return clusters


def _find_records(records: Records, wanted: dict[Any, Any]) -> Iterator[tuple[Any, int, int]]:
    """Yield (key, scope, number of the record) for each record that has a key in `wanted`.

    Doc_ids that several documents share are ignored, and so are URLs of pages with many items.
    """
    frame = records.frame
    own_doc_id = pl.lit(records.trusted) | ~(
        pl.col("reissued")
        | ((pl.col("type") == "passage") & (pl.col("snippet").n_unique().over("scope", "doc_id") > 1))
    )
    forms: list[tuple[str, pl.Expr]] = [
        ("id", pl.when(own_doc_id).then("doc_id")),
        ("url", pl.when(URL_NAMES_IT).then(pl.col("item") + pl.col("anchor"))),
    ]
    for row in TYPES.values():
        own = [name for name in row.item_ids if name in records.attributes]
        forms += [("id", pl.when(pl.col("type") == row.name).then(name)) for name in own]
    if any(kind == "id" and value.startswith("text:") for kind, value in wanted):
        frame = frame.with_columns(text=name_texts(frame))
        forms.append(("id", pl.col("text")))
    values = {kind: [value for known, value in wanted if known == kind] for kind in ("id", "url")}
    for kind, form in forms:
        held = frame.select("scope", "record", value=form.str.split(SEVERAL)).explode("value").drop_nulls("value")
        for scope, record, value in held.filter(pl.col("value").is_in(values[kind])).iter_rows():
            yield (kind, value), scope, record
    addresses = frame.filter(own_doc_id, pl.col("doc_id").str.contains("^https?://"))
    # Runs without deduplication have URLs as doc_ids.
    for scope, record, value in addresses.select("scope", "record", "doc_id").iter_rows():
        if (parsed := parse_url(value)) and ("url", parsed.address) in wanted:
            yield ("url", parsed.address), scope, record
