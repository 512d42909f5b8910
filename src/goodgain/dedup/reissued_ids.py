"""Finds doc_ids that stand for several documents of a query, as when a tool numbers the hits of each search 1, 2, 3."""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

import narwhals as nw
import polars as pl

from goodgain.dedup.document_types import TYPES
from goodgain.dedup.rows_and_trusted_ids import collapse_rows, make_comparable, read_rows
from goodgain.dedup.verification import PROVEN_DIFFERENT, verify
from goodgain.schema import EMPTY_DOC

_ID = ["query_id", "doc_id"]


class ReissuedId(NamedTuple):
    """An id that stands for two documents of a query, and the URL of each; without URLs, the title or type."""

    query_id: str
    doc_id: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.doc_id!r} of {self.query_id}: {self.first} and {self.second}"


def find_reissued_ids(results: pl.DataFrame) -> tuple[ReissuedId, ...]:
    """Return the first such id of each query that has one; `results` is a results frame with texts and attributes.

    The documents are those that the rules for untrusted ids prove different. Snippets, passages and spellings of a URL
    prove nothing.
    """
    typed = pl.col("type").is_in([*TYPES])
    told = results.filter(~pl.col("doc_id").is_in(["", EMPTY_DOC]), pl.col("url").is_not_null() | typed)
    if told.is_empty():  # as in most logs of a corpus
        return ()
    by_id = told.group_by(_ID).agg(one=pl.col("url").min(), other=pl.col("url").max(), typed=typed.any(), rows=pl.len())
    # An id may stand for several documents if it has several URLs, or several rows and a known type.
    doubtful = by_id.filter((pl.col("one") != pl.col("other")) | (pl.col("typed") & (pl.col("rows") > 1)))
    some = results.join(doubtful, on=_ID, how="semi", maintain_order="left")
    if some.is_empty():
        return ()
    rows, attributes = read_rows(nw.from_native(some.drop("snippet", strict=False)), across=("system",))
    # At level "document" the passages of one document do not differ. There a passage's doc_id would be its parent.
    comparable = make_comparable(rows, attributes, trusted=True, level="document").with_columns(doc_id=rows["doc_id"])
    records = collapse_rows(comparable, trusted=False)
    last = pl.col("record").max().over("scope", "doc_id")  # it has a URL if any has one
    pairs = records.frame.select(left="record", right=last).filter(pl.col("left") < pl.col("right"))
    different = verify(records, pairs, "standard").filter(PROVEN_DIFFERENT)
    shown = some.select(*_ID, text=pl.coalesce("url", "title", "type")).with_columns(record=records.of_row)
    shown = shown.with_row_index("row").unique("record", keep="first")
    both = different.join(shown, left_on="left", right_on="record").join(shown, left_on="right", right_on="record")
    places = "row", "row_right"
    ordered = both.sort(pl.max_horizontal(places), pl.min_horizontal(places))
    earliest = ordered.unique("query_id", keep="first", maintain_order=True)
    found = earliest.select(*_ID, one=pl.struct("row", "text"), other=pl.struct(row="row_right", text="text_right"))
    return tuple(
        ReissuedId(query_id, doc_id, *(held["text"] for held in sorted(both_held, key=itemgetter("row"))))
        for query_id, doc_id, *both_held in found.iter_rows()
    )
