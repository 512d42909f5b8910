"""Replaces the ids of chunks by the ids of documents, in a run and in qrels."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import Frame, FrameRows, check_rows, lacks, quote
from goodgain.files.table_reading import cast_texts, read_frame, read_table
from goodgain.formats.any_source import exists
from goodgain.formats.digest import digest_rows
from goodgain.formats.qrels import Qrels
from goodgain.formats.run import Run
from goodgain.options import check_choice, spell
from goodgain.ranking.dataframe_engines import collect, move_to_engine
from goodgain.schema import EMPTY_DOC

_COLUMNS = ("chunk_id", "doc_id")


class MappedIds(NamedTuple):
    """The number of mapped chunk ids (each counted once per query), and the ids of the documents."""

    number: int
    documents: pl.Series


class Names(NamedTuple):
    """A table for `rename`, which replaces each chunk_id by the doc_id in the same row."""

    table: pl.DataFrame  # place (the index of the row), hash (of chunk_id), chunk_id, doc_id
    is_hash_unique: bool

    @classmethod
    def of(cls, table: pl.DataFrame) -> "Names":
        """Make `Names` from a table with the columns chunk_id and doc_id."""
        hashed = table.select("chunk_id", "doc_id", hash=pl.col("chunk_id").hash()).with_row_index("place")
        return cls(hashed, not hashed.get_column("hash").is_duplicated().any())


@dataclass(frozen=True)
class DocumentMap:
    """A mapping from chunks to documents. It applies to the `run`, the `qrels` or `both`.

    The source is a pattern with one group, a table of chunk_id and doc_id, or an expression that returns the document (null for
    an unmapped id). Several chunks of one document in an iteration become one result (`collapse`), or repeats (`repeat`).
    """

    source: str | pl.DataFrame | nw.Expr
    of: str
    chunks: str

    @cached_property
    def signature(self) -> dict[str, str]:
        """The options of the mapping, for the signature of scores."""
        name = digest_rows(self.source) if isinstance(self.source, pl.DataFrame) else str(self.source)
        options = {"documents": name}
        if self.of != "both":
            options["documents_of"] = self.of
        if self.chunks != "collapse":
            options["chunks"] = self.chunks
        return options

    @cached_property
    def _names(self) -> Names | None:
        return Names.of(self.source) if isinstance(self.source, pl.DataFrame) else None

    def add_documents(self, frame: Frame) -> Any:
        """Add the column `document` to a frame of any engine: the document of each chunk, null for an id that is not mapped."""
        if isinstance(self.source, nw.Expr):
            return frame.with_columns(self.source.alias("document"))
        if isinstance(self.source, pl.DataFrame):
            table = self.source.rename({"chunk_id": "doc_id", "doc_id": "document"})
            if isinstance(frame, nw.DataFrame):
                joined = frame.to_native().join(table, on="doc_id", how="left", maintain_order="left")
                return nw.from_native(joined)
            return frame.join(move_to_engine(frame, nw.from_native(table)), on="doc_id", how="left")

        if not frame.implementation.is_polars():
            problem = f"{spell('documents')} is a pattern, and this run stays on its engine"
            raise InputError(f"{problem}; give a table of chunk_id and doc_id")
        document = pl.col("doc_id").str.extract(f"^(?:{self.source})$", 1)
        is_mapped = document.is_in(["", EMPTY_DOC]).not_() & (pl.col("doc_id") != EMPTY_DOC)
        return nw.from_native(frame.to_native().with_columns(document=pl.when(is_mapped).then(document)))

    def find_mapped(self, frame: Frame) -> MappedIds:
        """Count the mapped ids of a frame (columns `query_id` and `doc_id`), and list the documents of these ids."""
        mapped = self.add_documents(frame).filter(~nw.col("document").is_null())
        number = collect(mapped.select("query_id", "doc_id").unique().select(nw.len())).item()
        return MappedIds(number, collect(mapped.select("document").unique()).get_column("document"))

    def find_chunks(self, frame: pl.DataFrame) -> pl.Series:
        """Return the distinct doc_ids of a frame. Leave out ids for which the mapping has no document."""
        mapped = self.add_documents(nw.from_native(frame)).filter(~nw.col("document").is_null())
        return collect(mapped.select("doc_id").unique()).get_column("doc_id")

    def map_run(self, run: Run) -> Run:
        """Replace chunks by documents. With `collapse`, keep the best rank and score of a document's chunks in each iteration."""
        if run.unpaged is not None and run.reading.page is not None:  # pages are cut last
            return self.map_run(run.unpaged).cut_into_pages(run.reading.page)
        if self._names is not None and self.chunks == "repeat" and not run.lives_on_engine:
            doc_ids = rename(run.rows.get_column("doc_id"), self._names)
            return run.with_frame(run.rows.with_columns(doc_ids))

        frame = nw.from_native(run.frame if run.lives_on_engine else run.rows)
        columns = frame.collect_schema().names()
        document = nw.col("document")
        rows = self.add_documents(frame).with_columns((~document.is_null()).cast(nw.Int64).alias("mapped"))
        rows = rows.with_columns(nw.coalesce(document, nw.col("doc_id")).alias("doc_id"))
        if self.chunks == "collapse":
            rows = _collapse_chunks(rows, columns)
        return run.with_frame(rows.select(columns).to_native())

    def map_qrels(self, qrels: Qrels, kept: pl.Series) -> Qrels:
        """Replace chunks by documents, which get the largest label of their chunks. Ids in `kept` do not change."""
        frame = qrels.frame
        if qrels.labels is not None:
            frame = self._spread_labels(frame, kept)
        renamed = self._rename_rows(frame, kept)
        renamed_rows = renamed if qrels.rows is frame else self._rename_rows(qrels.rows, kept)

        key = ["query_id", "doc_id"]
        key_of_frame = key if qrels.labels is None else [*key, "iteration"]
        joined = _join_labels(frame, renamed, key_of_frame, one_label=False)
        # If column 2 is ignored, a document has one label.
        rows = _join_labels(qrels.rows, renamed_rows, [*key, "iteration"], one_label=qrels.reading is None)
        if qrels.has_subtopics:  # a host without subtopics keeps only the last row of a document
            rows = rows.sort("query_id", "relevance")

        ungraded = qrels.ungraded
        if ungraded is not None:
            ungraded = self._map_rows(ungraded, kept).unique(maintain_order=True)
        return qrels.with_rows(joined, rows, ungraded=ungraded)

    def _rename_rows(self, rows: pl.DataFrame, kept: pl.Series) -> "_RenamedRows":
        renamed = self._map_rows(rows, kept)
        hashed = renamed.select(pl.col("query_id").hash(1) ^ pl.col("doc_id").hash(2)).to_series()
        # numbers are found faster than texts, and counted faster than found
        is_repeated = hashed.is_duplicated() if hashed.n_unique() < len(hashed) else None
        return _RenamedRows(renamed, is_repeated)

    def _map_rows(self, rows: pl.DataFrame, kept: pl.Series) -> pl.DataFrame:
        """Replace chunks by documents in rows of qrels. Ids in `kept` do not change."""
        if isinstance(self.source, pl.DataFrame):
            names = self._names
            if names is None or len(kept):
                names = Names.of(self.source.filter(~pl.col("chunk_id").is_in(kept.implode())))
            return rows.with_columns(rename(rows.get_column("doc_id"), names))
        with_documents: pl.DataFrame = self.add_documents(nw.from_native(rows)).to_native()
        document = pl.when(~pl.col("doc_id").is_in(kept.implode())).then("document")
        return with_documents.with_columns(doc_id=pl.coalesce(document, "doc_id")).select(rows.columns)

    def _spread_labels(self, frame: pl.DataFrame, kept: pl.Series) -> pl.DataFrame:
        """Give each chunk a label in each iteration in which a chunk of its document has one.

        A chunk without a label of its own in this iteration gets its label for any iteration. It gets none if it has neither.
        """
        document = self._map_rows(frame, kept).get_column("doc_id").alias("document")
        chunks = frame.with_columns(document)
        of_document = ["query_id", "document"]
        of_chunk = [*of_document, "doc_id"]
        any_iteration = pl.col("iteration").is_null()
        default_labels = chunks.filter(any_iteration).select(*of_chunk, default="relevance")
        iterations = chunks.filter(~any_iteration).select(*of_document, "iteration").unique()

        # one row per (chunk, iteration of its document)
        grid = chunks.select(of_chunk).unique(maintain_order=True).join(iterations, on=of_document)
        own_labels = chunks.select(*of_chunk, "iteration", "relevance")
        grid = grid.join(own_labels, on=[*of_chunk, "iteration"], how="left")
        grid = grid.join(default_labels, on=of_chunk, how="left")
        grid = grid.with_columns(relevance=pl.coalesce("relevance", "default")).drop_nulls("relevance")
        return pl.concat([grid.select(frame.columns), frame.filter(any_iteration)])


def _collapse_chunks(rows: Any, columns: list[str]) -> Any:
    """Replace the chunks of a document in an iteration by one row. Rows of ids that are not mapped do not change.

    The row has the best rank and score. In memory, its other columns and its place are those of the best chunk.
    """
    key = ["query_id", "iteration", "doc_id"]
    has_chunk = nw.col("mapped").max().over(*key) == 1
    best = {"mapped": nw.col("mapped").max(), "rank": nw.col("rank").min(), "score": nw.col("score").max()}
    best_of_chunks = {name: value.over(*key) for name, value in best.items() if name in ("mapped", *columns)}
    if not isinstance(rows, nw.DataFrame):
        collapsed = rows.filter(has_chunk).with_columns(**best_of_chunks).unique(key)
        return nw.concat([rows.filter(~has_chunk), collapsed])

    rows = rows.with_row_index("line")
    chunks = rows.filter(has_chunk)
    if "rank" in columns:
        chunks = chunks.sort("rank", "line", nulls_last=True)
    collapsed = chunks.with_columns(**best_of_chunks).unique(key, keep="first", maintain_order=True)
    return nw.concat([rows.filter(~has_chunk), collapsed]).sort("line")


class _RenamedRows(NamedTuple):
    """Rows with documents instead of chunks. `is_repeated`: whether a row repeats a query and document; None if no row does."""

    rows: pl.DataFrame
    is_repeated: pl.Series | None


def _join_labels(rows: pl.DataFrame, renamed: _RenamedRows, key: list[str], *, one_label: bool) -> pl.DataFrame:
    """Keep the largest label of the rows that renaming made equal in `key`. `rows` has the chunks.

    With `one_label`, all rows of such a document have its largest label.
    """
    if renamed.is_repeated is None:
        return renamed.rows
    mapped = renamed.rows.with_row_index("row")
    doc_id = mapped.get_column("doc_id")
    new_ids = doc_id.filter(doc_id != rows.get_column("doc_id")).unique()
    meets = renamed.is_repeated & doc_id.is_in(new_ids.implode())

    largest = pl.col("relevance").max()
    values = [pl.col("row").first(), largest]
    if "iteration" not in key:
        values.append(pl.col("iteration").first())
    joined = mapped.filter(meets).group_by(key, maintain_order=True).agg(values).select(mapped.columns)
    if one_label:
        joined = joined.with_columns(largest.over("query_id", "doc_id"))
    return pl.concat([mapped.filter(~meets), joined]).sort("row").select(rows.columns)


#: Replaces a query's own document by `-`, the doc_id of an iteration without results.
OWN_LEFT_OUT = DocumentMap(
    nw.when(nw.col("doc_id") == nw.col("query_id")).then(nw.lit(EMPTY_DOC)), of="run", chunks="repeat"
)


def rename(ids: pl.Series, names: Names) -> pl.Series:
    """Replace each id that is a chunk_id by the doc_id in the same row."""
    chunk_ids = names.table.get_column("chunk_id")
    documents = names.table.get_column("doc_id")
    if not names.is_hash_unique:
        return ids.replace(chunk_ids, documents)

    # `place[k]` is the row of `names` whose hash is that of id k; another id may have the same hash
    hashes = ids.hash().alias("hash").to_frame()
    places_of_hashes = names.table.select("hash", "place")
    place = hashes.join(places_of_hashes, on="hash", how="left", maintain_order="left").get_column("place")
    matches = place.is_not_null().arg_true()
    if len(matches) < len(ids) // 4:  # a few rows are written over faster than all rows are gathered
        places = place.gather(matches)
        is_chunk = chunk_ids.gather(places) == ids.gather(matches)
        return ids.clone().scatter(matches.filter(is_chunk), documents.gather(places.filter(is_chunk)))

    is_chunk = chunk_ids.gather(place) == ids
    own_place = pl.int_range(len(documents), len(documents) + len(ids), dtype=pl.get_index_type())
    texts = pl.concat([documents, ids.alias(documents.name)], rechunk=True)
    new_place = pl.select(pl.when(is_chunk).then(place).otherwise(own_place)).to_series()
    return texts.gather(new_place)  # texts are gathered faster than written over


def read_document_map(source: Any, *, of: str = "both", chunks: str = "collapse") -> DocumentMap:
    """Read a mapping of chunks to documents: a pattern with one group, or a table of chunk_id and doc_id (file, frame or dict)."""
    check_choice("documents_of", of)
    check_choice("chunks", chunks)
    if isinstance(source, str) and not exists(source):
        _check_pattern(source)
        return DocumentMap(source, of, chunks)
    if isinstance(source, (str, os.PathLike)):
        frame, rows, _ = read_table(Path(source), dict.fromkeys(_COLUMNS, pl.String), errors=None)
    else:
        if isinstance(source, Mapping):
            source = pl.DataFrame({"chunk_id": [*source], "doc_id": [*source.values()]})
        frame, rows = read_frame(source, "documents", _COLUMNS), FrameRows("documents")

    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(f"{rows.label}: has no column {', '.join(missing)}; a table of chunks has chunk_id and doc_id")
    frame = cast_texts(frame.select(_COLUMNS), _COLUMNS, rows.label)

    names_nothing = (nw.col("chunk_id") == EMPTY_DOC) | (nw.col("doc_id") == EMPTY_DOC)
    nothing = names_nothing, "has '-', which stands for an iteration without results"
    check_rows(nw.from_native(frame, eager_only=True), rows, [*map(lacks, _COLUMNS), nothing])
    repeats = (~frame.get_column("chunk_id").is_first_distinct()).arg_true()
    if len(repeats):
        chunk = quote(frame.item(repeats[0], "chunk_id"))
        raise InputError(
            f"{rows.locate(repeats[0])} lists the chunk {chunk} a second time; keep one row for each chunk"
        )
    return DocumentMap(frame, of, chunks)


def _check_pattern(pattern: str) -> None:
    """Raise `InputError` unless a text is a regular expression with one group, which is the document's id."""
    problem = f"{spell('documents', pattern)} is not a file, and not a pattern with one group"
    remedy = r"give a table of chunk_id and doc_id, or a regular expression such as '^(.+)-\d+$'"
    try:
        groups = pl.select(pl.lit("").str.extract_groups(f"^(?:{pattern})$")).to_series().struct.fields
    except pl.exceptions.ComputeError as error:
        raise InputError(f"{problem} ({str(error).splitlines()[-1]}); {remedy}") from None
    if len(groups) != 1:
        raise InputError(f"{problem} (it has {len(groups)}); {remedy}")
