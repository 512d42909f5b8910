"""Reads the columns for deduplication from a results or run frame of any data frame engine."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.schema import BLANKS, EMPTY_DOC

__all__ = ["OF_RUNS", "RUN_ORDER", "SCOPES", "has_only_ids", "read_rows"]

#: What keeps results apart unless `across` names it; a run frame has its system in `tag`.
SCOPES = ("query_id", "system")

#: The columns that tell runs of a query apart: a system may have several runs of it.
OF_RUNS = ("query_id", "system", "replicate")

_TEXT_COLUMNS = ("doc_id", "type", "url", "title", "snippet")
#: The columns for the place of a result in a run, from the widest to the narrowest.
RUN_ORDER = ("turn", "iteration", "search", "rank")
_EVIDENCE_COLUMNS = ("url", "title", "snippet", "ids", "fields")


def has_only_ids(frame: nw.DataFrame[Any]) -> bool:
    """Return whether a frame identifies documents by doc_id alone, as a run does."""
    found = set(frame.columns)
    return "doc_id" in found and not found & {*_EVIDENCE_COLUMNS, "type"}


def read_rows(frame: nw.DataFrame[Any], across: Collection[str]) -> pl.DataFrame:
    """Read row, scope, query_id, system, replicate, place in the run, texts, ids and fields, one row a result in order.

    `scope` numbers the sets of rows that are deduplicated together; it is null where the row has no result.
    """
    found = set(frame.columns)
    if "query_id" not in found:
        raise InputError(
            f"No column query_id in the results, only {', '.join(sorted(map(str, found))) or 'none'}: name it so."
        )
    if not found & {*_EVIDENCE_COLUMNS, "doc_id"}:
        raise InputError("The results have no column that says what was found: give doc_id, url, title or snippet.")
    system = "system" if "system" in found else "tag" if "tag" in found else None
    wanted = [name for name in ("replicate", *RUN_ORDER, *_TEXT_COLUMNS, "ids", "fields") if name in found]
    rows = frame.select("query_id", *wanted, *([system] if system else [])).to_polars()
    if system:
        rows = rows.rename({system: "system"})
    _check_columns(rows)
    rows = _add_missing_columns(rows).with_row_index("row")
    if rows["query_id"].null_count():
        place = rows["query_id"].is_null().arg_max()
        raise InputError(f"Row {place} of the results has no query_id: every result belongs to a query.")
    apart = [name for name in SCOPES if name not in across]
    return _add_scope(rows, apart, only_ids=has_only_ids(frame))


def _check_columns(rows: pl.DataFrame) -> None:
    if "iteration" in rows.columns and rows.schema["iteration"].is_float():
        # null stays: it means that there is no iteration; of NaN and inf the remainder is NaN, which is not 0
        broken = rows.filter(((pl.col("iteration") % 1) == 0).not_())
        if broken.height:
            raise InputError(
                f"The column iteration of the results has {broken.item(0, 'iteration')}: give whole numbers."
            )
    for name in ("ids", "fields"):
        if name not in rows.columns:
            continue
        kind = rows.schema[name]
        pairs = isinstance(kind, pl.List) and (kind.inner == pl.Null or _is_pair(kind.inner))
        if not (pairs or isinstance(kind, pl.Struct) or kind == pl.Null):
            raise InputError(
                f"Column {name} of the results holds {kind}: give lists of {{name, value}}, or one struct a row."
            )


def _is_pair(inner: Any) -> bool:
    return isinstance(inner, pl.Struct) and {"name", "value"} <= {part.name for part in inner.fields}


def _add_missing_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Return texts as strings (blank is null) and numbers as floats; columns that the frame lacks are null."""
    texts = {name: _make_text_column(rows, name) for name in (*OF_RUNS, *_TEXT_COLUMNS)}
    numbers = {
        name: pl.col(name).cast(pl.Float64, strict=False) if name in rows.columns else pl.lit(None, pl.Float64)
        for name in RUN_ORDER
    }
    bags = {name: pl.col(name) if name in rows.columns else pl.lit(None) for name in ("ids", "fields")}
    doc_id = pl.col("doc_id").str.strip_chars(BLANKS)
    return rows.select(**texts, **numbers, **bags).with_columns(
        doc_id=pl.when(~doc_id.is_in(["", EMPTY_DOC])).then(doc_id)
    )


def _make_text_column(rows: pl.DataFrame, name: str) -> pl.Expr:
    if name not in rows.columns:
        return pl.lit(None, pl.String)
    text = pl.col(name).cast(pl.String)
    return text if name in (*OF_RUNS, "doc_id") else pl.when(text.str.contains(r"\S")).then(text)


def _add_scope(rows: pl.DataFrame, apart: list[str], *, only_ids: bool) -> pl.DataFrame:
    """Number the scopes in the order of their names; rows without a result have none."""
    evidence = pl.any_horizontal(
        pl.col("doc_id", "url", "title", "snippet").is_not_null(),
        *(_has_pairs(rows, name) for name in ("ids", "fields")),
    )
    # In a run, a doc_id `-` or null means that nothing was found; in results, rank 0 means it.
    a_result = evidence if only_ids else evidence | (pl.col("rank") > 0).fill_null(False)
    if not apart:
        rows = rows.with_columns(scope=pl.lit(0, pl.UInt32))
    else:
        scopes = rows.select(apart).unique().sort(apart, nulls_last=False).with_row_index("scope")
        rows = rows.join(scopes, on=apart, how="left", nulls_equal=True, maintain_order="left")
    return rows.with_columns(scope=pl.when(a_result).then("scope"))


def _has_pairs(rows: pl.DataFrame, name: str) -> pl.Expr:
    kind = rows.schema[name]
    if isinstance(kind, pl.List):
        return (pl.col(name).list.len() > 0).fill_null(False)
    if isinstance(kind, pl.Struct):
        return pl.any_horizontal(pl.col(name).struct.field("*").is_not_null())
    return pl.lit(False)
