"""Makes rows comparable, and collapses equal rows into one record, so that they are compared only once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from goodgain.dedup.attributes import USED_NAMES, read_attributes
from goodgain.dedup.texts import normalise_texts, text_length
from goodgain.dedup.types import GENERIC, PARENT, TYPES, canonical_name, list_comparable_types
from goodgain.dedup.urls import parse_url
from goodgain.dedup.values import normalise_ids

__all__ = ["MIN_SNIPPET", "Level", "Records", "collapse_rows", "make_comparable"]

Level = Literal["passage", "document"]

#: A snippet of this many characters is long enough to recognise a text by it.
MIN_SNIPPET = 50
_URL_FORMS = ("url", "page", "item", "choice", "beyond_start")
_NO_URL = (None,) * len(_URL_FORMS)


@dataclass(frozen=True)
class Records:
    """The different records of a results frame.

    `frame` has one row for each record, in an order that does not depend on the order of the rows; `of_row` is the
    record of each row (null: the row has no result); `attributes` are the ids and fields that occur; `trusted` says
    whether equal doc_ids alone decide.
    """

    frame: pl.DataFrame
    of_row: pl.Series
    attributes: tuple[str, ...]
    trusted: bool
    _codes: dict[tuple[str, ...], npt.NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def codes(self, *names: str) -> npt.NDArray[np.int64]:
        """Return a column as numbers, equal for equal values and -1 for null; of several, the first not null."""
        if names not in self._codes:
            values = self.frame.select(value=pl.coalesce(names))
            numbered = values.drop_nulls().unique().with_row_index("code")
            found = values.join(numbered, on="value", how="left", maintain_order="left")["code"]
            self._codes[names] = found.cast(pl.Int64).fill_null(-1).to_numpy()
        return self._codes[names]


def make_comparable(rows: pl.DataFrame, *, trusted: bool, level: Level) -> pl.DataFrame:
    """Return the rows with normalised texts, ids and URLs, and with a column for each id and field in use."""
    names = rows["type"].unique().drop_nulls()
    known = {raw: name for raw in names.to_list() if (name := canonical_name(raw)) in TYPES}
    made = rows.select("row", "scope", "system", "doc_id", raw_url="url").with_columns(
        type=rows["type"].replace_strict(known, default=GENERIC.name, return_dtype=pl.String),
        title=normalise_texts(rows["title"]),
        snippet=normalise_texts(rows["snippet"]),
    )
    for columns in read_attributes(rows):
        made = made.join(columns, on="row", how="left", maintain_order="left")
    made = _fill_parents(_fill_titles(made), level)
    made = pl.concat([made, _parse_urls(made["raw_url"])], how="horizontal").drop("raw_url", "parent_url")
    return made if trusted else made.with_columns(doc_id=normalise_ids(made["doc_id"]))


def collapse_rows(rows: pl.DataFrame, *, trusted: bool) -> Records:
    """Collapse equal rows into one record."""
    attributes = tuple(name for name in rows.columns if name in USED_NAMES and rows[name].null_count() < rows.height)
    # Equal in all of these, two rows cannot be told apart. Sorted, records do not depend on the order of the rows.
    identity = ["scope", "item", "snippet", "title", "type", "doc_id", *attributes, "rest"]
    ordered = (
        rows.filter(pl.col("scope").is_not_null())
        .sort(identity)
        .with_columns(record=pl.struct(identity).rle_id().cast(pl.UInt32))
    )
    frame = ordered.group_by("record", maintain_order=True).agg(
        pl.col(*identity, "page", "choice", "beyond_start").first(),
        pl.col("url").min(),
        pl.len().alias("rows"),
    )
    names = {
        raw: [name for row in list_comparable_types(raw) for name in row.item_ids if name in attributes]
        for raw in TYPES
    }
    has_item_id = pl.any_horizontal(
        pl.lit(False),
        *(
            (pl.col("type") == kind) & pl.any_horizontal(pl.col(ids).is_not_null())
            for kind, ids in names.items()
            if ids
        ),
    )
    frame = frame.with_columns(snippet_length=text_length(pl.col("snippet"))).with_columns(
        # Records with too little content to recognise them by; equal ones are not taken for one document.
        vague=~(
            has_item_id
            | pl.col("doc_id").is_not_null()
            | pl.col("item").is_not_null()
            | (pl.col("snippet_length") >= MIN_SNIPPET)
        )
    )
    frame = frame.with_columns(reissued=_is_reissued(attributes))
    of_row = (
        rows.select("row")
        .join(ordered.select("row", "record"), on="row", how="left", maintain_order="left")["record"]
    )  # fmt: skip
    return Records(frame, of_row, attributes, trusted)


def _is_reissued(attributes: tuple[str, ...]) -> pl.Expr:
    """Return whether a doc_id was given to different documents, as by a search that numbers its results 1, 2, 3.

    Their item ids, pages, or fields that a document has one of, are different. Such a doc_id is not evidence.
    """
    rows = TYPES.values()
    one_each = {name for row in rows for name in (*row.item_ids, *row.reject) if name not in row.lenient_ids}
    named = pl.col("type").is_in([row.name for row in rows if row.url == "item"])
    kinds = pl.when(~pl.col("type").is_in([GENERIC.name, "web_page", "file"])).then("type")
    distinguishing = [pl.when(named).then("page"), kinds, *map(pl.col, sorted(one_each & set(attributes)))]
    several = [(values.drop_nulls().n_unique() > 1).over("scope", "doc_id") for values in distinguishing]
    return pl.col("doc_id").is_not_null() & pl.any_horizontal(several)


def _parse_urls(urls: pl.Series) -> pl.DataFrame:
    unique = urls.unique().drop_nulls()
    found = [parse_url(url) or _NO_URL for url in unique.to_list()]
    columns = zip(*found, strict=True) if found else [()] * len(_URL_FORMS)
    forms = {
        name: pl.Series(column, dtype=pl.Boolean if name == "beyond_start" else pl.String)
        for name, column in zip(_URL_FORMS, columns, strict=True)
    }
    parsed = pl.DataFrame({"raw": unique, **forms})
    return urls.to_frame("raw").join(parsed, on="raw", how="left", maintain_order="left").drop("raw")


def _fill_titles(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill the title from its field for types whose title is one of their fields (the subject of an email)."""
    for row in TYPES.values():
        if row.title in rows.columns and row.title != "title":
            title = pl.when(pl.col("type") == row.name).then(pl.coalesce(row.title, "title")).otherwise("title")
            rows = rows.with_columns(title=title)
    return rows


def _fill_parents(rows: pl.DataFrame, level: Level) -> pl.DataFrame:
    """Give passages the URL of their parent; at level "document", turn them into their parent."""
    passage = pl.col("type") == "passage"
    for name in ("parent", "parent_url", "chunk_id", "offset", "chunk"):
        if name not in rows.columns:
            rows = rows.with_columns(pl.lit(None, pl.String).alias(name))
    rows = rows.with_columns(raw_url=pl.when(passage).then(pl.coalesce("parent_url", "raw_url")).otherwise("raw_url"))
    if level == "document":
        known = pl.col("parent").is_not_null() | pl.col("parent_url").is_not_null()
        rows = rows.with_columns(
            type=pl.when(passage).then(pl.lit(PARENT.name)).otherwise("type"),
            doc_id=pl.when(passage & known).then("parent").otherwise("doc_id"),
            **{name: pl.when(~passage).then(name) for name in ("snippet", "rest", "chunk_id", "offset", "chunk")},
        )
    return rows
