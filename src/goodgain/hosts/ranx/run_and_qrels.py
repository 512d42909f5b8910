"""Subclasses of ranx's Run and Qrels that keep iterations and labels. Functions convert frames to typed dicts and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import polars as pl
import ranx  # type: ignore[import-untyped]  # ranx has no types
from numba import njit
from numba.typed import Dict as TypedDict
from numba.typed import List as TypedList

import goodgain.formats as formats
from goodgain.errors import InputError, count_of, notice
from goodgain.formats.label_rules import count_differing_labels
from goodgain.options import ORDER


def _refuse_call(reason: str) -> Any:
    """Return a method that raises `InputError`. It replaces a method of ranx that does not work with goodgain's measures."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise InputError(reason)

    return staticmethod(refuse)


class Run(ranx.Run):  # type: ignore[misc]  # ranx has no types
    """A `ranx.Run` with iterations. Classic metrics get the flattened ranking, and goodgain's measures get the iterations.

    Args:
        source: any input of `goodgain.read_run`, or a `ranx.Run` (one iteration).
        name: the name of the system; by default the stem of the file.
        order: how the iterations become one ranking: `seen`, `interleaved` or `last`.
        reading: the options `gaps`, `first` and `errors` of `goodgain.read_run`.

    Attributes:
        iterated: the `goodgain.Run`.

    Raises:
        InputError: the run cannot be read.

    >>> Run({"q1": {"d1": 2.0, "d2": 1.0}}, name="agent")["q1"]
    {'d1': 2.0, 'd2': 1.0}
    """

    def __init__(self, source: Any, name: str | None = None, *, order: str = ORDER, **reading: Any) -> None:
        rows = find_iterations(source) if isinstance(source, ranx.Run) else source
        self.iterated: formats.Run = formats.read_run(rows, **reading)
        super().__init__(name=name or self.iterated.name or getattr(source, "name", None))
        ranking = self.iterated.flatten(order).select("query_id", "doc_id", pl.col("score").cast(pl.Float64))
        query_ids = self.iterated.rows.get_column("query_id").unique().sort().to_list()
        if query_ids:
            self.run = _build_typed_dict(ranking, query_ids)
        self.sort()

    def make_comparable(self, qrels: ranx.Qrels) -> Run:
        """Add empty results for queries that the run lacks, and remove queries that the qrels lack, as ranx does."""
        super().make_comparable(qrels)
        rows = self.iterated.rows
        kept = rows.filter(pl.col("query_id").is_in(list(self.run)))
        if kept.height < rows.height:
            self.iterated = self.iterated.with_frame(kept)
        return self

    add = add_score = add_multi = _refuse_call(
        "a goodgain.hosts.ranx.Run cannot change: its iterations would lack the new results; make another from all rows"
    )
    from_dict = from_file = from_df = from_parquet = from_ranxhub = _refuse_call(
        "ranx's readers drop iterations; write goodgain.hosts.ranx.Run(path), which also takes a frame or a dict"
    )


class Qrels(ranx.Qrels):  # type: ignore[misc]  # ranx has no types
    """A `ranx.Qrels` that keeps fractional labels and labels by iteration.

    `ranx.Qrels` truncates the label 2.9 to 2. With this class, metrics of ranx get 2.9.

    Args:
        source: any input of `goodgain.read_qrels`, or a `ranx.Qrels`.
        name: the name of the qrels; by default the stem of the file.
        reading: the options `labels` and `errors` of `goodgain.read_qrels`.

    Attributes:
        judged: the `goodgain.Qrels`.

    Raises:
        InputError: the qrels cannot be read.

    >>> Qrels({"q1": {"d1": 2.9}})["q1"]
    {'d1': 2.9}
    """

    def __init__(self, source: Any, name: str | None = None, **reading: Any) -> None:
        rows = find_judgments(source) if isinstance(source, ranx.Qrels) else source
        self.judged: formats.Qrels = formats.read_qrels(rows, **reading)
        super().__init__(name=name or self.judged.name or getattr(source, "name", None))
        kind = pl.Int64 if self.judged.fractional is None else pl.Float64
        labels = self.judged.largest.with_columns(pl.col("relevance").cast(kind))
        query_ids = labels.get_column("query_id").unique().sort().to_list()
        self.qrels = _build_typed_dict(labels, query_ids)
        self.sort()

    def to_typed_list(self) -> Any:
        """Return the typed list for ranx's metrics. If labels differ by iteration, the largest label of a document counts."""
        differing = count_differing_labels(self.judged.frame) if self.judged.labels else 0
        if differing:
            documents = count_of(differing, "document")
            notice(
                "labels_by_iteration",
                f"labels by iteration: the labels of {documents} differ, and classic metrics of ranx use the largest "
                "label of each. To use the label of the first occurrence, call goodgain.evaluate.",
            )
        return super().to_typed_list()

    add = add_score = add_multi = set_relevance_level = _refuse_call(
        "a goodgain.hosts.ranx.Qrels cannot change: goodgain would not see the change; make another from all labels, and write "
        "-lN after a metric for its threshold"
    )
    from_dict = from_file = from_df = from_parquet = from_ir_datasets = _refuse_call(
        "ranx's readers truncate labels to whole numbers; write goodgain.hosts.ranx.Qrels(path), which also takes a frame, "
        "a dict or an ir_datasets id"
    )


def find_iterations(run: Any) -> formats.Run:
    """Return a run as `goodgain.Run`. A plain `ranx.Run` or a dict becomes one iteration."""
    if isinstance(run, Run):
        return run.iterated
    if not isinstance(run, ranx.Run):
        return formats.read_run(_check_dict(run, "Run"))
    iterated = formats.read_run(_read_typed_dict(run.run, "score"))
    iterated.name = run.name
    return iterated


def find_judgments(qrels: Any) -> formats.Qrels:
    """Return qrels as `goodgain.Qrels`. They may be of ranx, or a dict."""
    if isinstance(qrels, Qrels):
        return qrels.judged
    if isinstance(qrels, ranx.Qrels):
        return formats.read_qrels(_read_typed_dict(qrels.qrels, "relevance"))
    return formats.read_qrels(_check_dict(qrels, "Qrels"))


def _check_dict(source: Any, kind: str) -> Any:
    if not isinstance(source, Mapping):
        remedy = f"give a goodgain.hosts.ranx.{kind}, a ranx.{kind} or a dict"
        raise InputError(f"a {type(source).__name__} has no doc_ids for goodgain's measures; {remedy}")
    return source


# ranx makes typed dicts from arrays of fixed-width text: numba compiles again (10 s or more) for each width of the longest id.
# ranx reads typed dicts in Python at 0.1 ms per id. Here an array of code points has all ids, in both directions.
def _build_typed_dict(rows: pl.DataFrame, query_ids: list[str]) -> Any:
    """Convert a frame with query_id, doc_id and a column of numbers to a typed dict of ranx. `query_ids` must not be empty."""
    query, doc, value = rows.columns
    queries = pl.DataFrame({query: query_ids}, schema={query: pl.String})
    sizes = queries.join(rows.group_by(query).len("size"), on=query, how="left", maintain_order="left")
    counts = sizes.get_column("size").fill_null(0).cast(pl.Int64).to_numpy()  # one per query

    ordered = queries.join(rows, on=query, maintain_order="left_right")
    doc_ids = ordered.get_column(doc)
    codes = np.frombuffer("".join(doc_ids).encode("utf-32-le"), dtype=np.uint32)
    lengths = doc_ids.str.len_chars().cast(pl.Int64).to_numpy()
    values = ordered.get_column(value).to_numpy()
    return _fill_typed_dict(TypedList(query_ids), counts, codes, lengths, values)


def _read_typed_dict(of_queries: Any, value: str) -> pl.DataFrame:
    """Convert a typed dict of ranx to a frame with query_id, doc_id and a Float64 column. `value` is the name of this column."""
    codes, lengths, values, sizes = _unpack_typed_dict(of_queries)
    queries = pl.Series("query_id", list(of_queries), dtype=pl.String)
    query_ids = queries.gather(np.repeat(np.arange(len(sizes)), sizes))
    text = codes.tobytes().decode("utf-32-le")
    ends = np.cumsum(lengths)
    doc_ids = [text[end - length : end] for length, end in zip(lengths, ends, strict=True)]
    return pl.DataFrame([query_ids, pl.Series("doc_id", doc_ids, dtype=pl.String), pl.Series(value, values)])


@njit(cache=True)
def _fill_typed_dict(query_ids, sizes, codes, lengths, values):  # type: ignore[no-untyped-def]  # numba infers the types
    filled = TypedDict()
    row = 0
    start = 0
    for query in range(len(query_ids)):
        docs = TypedDict()
        for _ in range(sizes[query]):
            end = start + lengths[row]
            docs["".join([chr(code) for code in codes[start:end]])] = values[row]
            start = end
            row += 1
        filled[query_ids[query]] = docs
    return filled


@njit(cache=True)
def _unpack_typed_dict(of_queries):  # type: ignore[no-untyped-def]  # numba infers the types
    rows = 0
    characters = 0
    for docs in of_queries.values():
        for doc in docs:
            rows += 1
            characters += len(doc)
    codes = np.empty(characters, np.uint32)
    lengths = np.empty(rows, np.int64)
    values = np.empty(rows, np.float64)
    sizes = np.empty(len(of_queries), np.int64)
    row = 0
    at = 0
    for query, docs in enumerate(of_queries.values()):
        sizes[query] = len(docs)
        for doc, value in docs.items():
            lengths[row] = len(doc)
            values[row] = value
            row += 1
            for character in str(doc):
                codes[at] = ord(character)
                at += 1
    return codes, lengths, values, sizes
