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
        others = {"documents_of": self.of, "chunks": self.chunks}
        return {"documents": name} | {key: value for key, value in others.items() if value not in ("both", "collapse")}

    @cached_property
    def _names(self) -> Names | None:
        return Names.of(self.source) if isinstance(self.source, pl.DataFrame) else None

    def add_documents(self, frame: Frame) -> Any:
        """Add the column `document` to a frame of any engine: the document of each chunk, null for an id that is not mapped."""
        if isinstance(self.source, nw.Expr):
            return frame.with_columns(self.source.alias("document"))
        if isinstance(self.source, pl.DataFrame):
            table = nw.from_native(self.source.rename({"chunk_id": "doc_id", "doc_id": "document"}))
            if isinstance(frame, nw.DataFrame):
                joined = frame.to_native().join(table.to_native(), on="doc_id", how="left", maintain_order="left")
                return nw.from_native(joined)
            return frame.join(move_to_engine(frame, table), on="doc_id", how="left")
        if not frame.implementation.is_polars():
            wrong = f"{spell('documents')} is a pattern, and this run stays on its engine"
            raise InputError(f"{wrong}; give a table of chunk_id and doc_id")
        found = pl.col("doc_id").str.extract(f"^(?:{self.source})$", 1)
        is_mapped = found.is_in(["", EMPTY_DOC]).not_() & (pl.col("doc_id") != EMPTY_DOC)
        return nw.from_native(frame.to_native().with_columns(document=pl.when(is_mapped).then(found)))

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
            return run.with_frame(run.rows.with_columns(rename(run.rows.get_column("doc_id"), self._names)))
        given = nw.from_native(run.frame if run.lives_on_engine else run.rows)
        columns = given.collect_schema().names()
        document = nw.col("document")
        rows = self.add_documents(given).with_columns((~document.is_null()).cast(nw.Int64).alias("mapped"))
        rows = rows.with_columns(nw.coalesce(document, nw.col("doc_id")).alias("doc_id"))
        if self.chunks == "collapse":
            key = ["query_id", "iteration", "doc_id"]
            best = {"mapped": nw.col("mapped").max(), "rank": nw.col("rank").min(), "score": nw.col("score").max()}
            is_eager = isinstance(rows, nw.DataFrame)
            rows = rows.with_row_index("line") if is_eager else rows
            whole = rows.filter(nw.col("mapped").max().over(*key) == 1)
            whole = whole.sort("rank", "line", nulls_last=True) if is_eager and "rank" in columns else whole
            whole = whole.with_columns(**{name: one.over(*key) for name, one in best.items() if name in whole.columns})
            whole = whole.unique(key, keep="first", maintain_order=True) if is_eager else whole.unique(key)
            rows = nw.concat([rows.filter(nw.col("mapped").max().over(*key) == 0), whole])
            rows = rows.sort("line") if is_eager else rows
        return run.with_frame(rows.select(columns).to_native())

    def _map_rows(self, rows: pl.DataFrame, kept: pl.Series) -> pl.DataFrame:
        """Replace chunks by documents in rows of qrels. Ids in `kept` do not change."""
        if isinstance(self.source, pl.DataFrame):
            names = self._names
            if names is None or len(kept):
                names = Names.of(self.source.filter(~pl.col("chunk_id").is_in(kept.implode())))
            return rows.with_columns(rename(rows.get_column("doc_id"), names))
        found: pl.DataFrame = self.add_documents(nw.from_native(rows)).to_native()
        document = pl.when(~pl.col("doc_id").is_in(kept.implode())).then("document")
        return found.with_columns(doc_id=pl.coalesce(document, "doc_id")).select(rows.columns)

    def map_qrels(self, qrels: Qrels, kept: pl.Series) -> Qrels:
        """Replace chunks by documents, which get the largest label of their chunks. Ids in `kept` do not change."""

        def join(rows: pl.DataFrame, replaced: pl.DataFrame, is_repeated: pl.Series | None, *key: str) -> pl.DataFrame:
            if is_repeated is None:
                return replaced
            mapped = replaced.with_row_index("row")
            changed = mapped.get_column("doc_id").filter(mapped.get_column("doc_id") != rows.get_column("doc_id"))
            meets = is_repeated & mapped.get_column("doc_id").is_in(changed.unique().implode())
            firsts = [] if "iteration" in key else [pl.col("iteration").first()]
            grouped = mapped.filter(meets).group_by("query_id", "doc_id", *key, maintain_order=True)
            joined = grouped.agg(pl.col("row").first(), pl.col("relevance").max(), *firsts).select(mapped.columns)
            if "iteration" in key and qrels.reading is None:  # column 2 is ignored: a document has one label
                joined = joined.with_columns(pl.col("relevance").max().over("query_id", "doc_id"))
            return pl.concat([mapped.filter(~meets), joined]).sort("row").select(rows.columns)

        def replace_and_compare(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series | None]:
            """Return the rows with replaced ids, and whether each row repeats a query and document; None if no row does."""
            replaced = self._map_rows(rows, kept)
            hashed = replaced.select(pl.col("query_id").hash(1) ^ pl.col("doc_id").hash(2)).to_series()
            # numbers are found faster than texts, and counted faster than found
            return replaced, hashed.is_duplicated() if hashed.n_unique() < len(hashed) else None

        def label_by_iteration(frame: pl.DataFrame) -> pl.DataFrame:
            document = self._map_rows(frame, kept).get_column("doc_id").alias("document")
            chunks, place = frame.with_columns(document), ["query_id", "document"]
            any_label = chunks.filter(pl.col("iteration").is_null()).select(*place, "doc_id", of_any="relevance")
            numbers = chunks.filter(pl.col("iteration").is_not_null()).select(*place, "iteration").unique()
            grid = chunks.select(*place, "doc_id").unique(maintain_order=True).join(numbers, on=place)
            own = chunks.select(*place, "doc_id", "iteration", "relevance")
            grid = grid.join(own, on=[*place, "doc_id", "iteration"], how="left")
            grid = grid.join(any_label, on=[*place, "doc_id"], how="left")
            grid = grid.with_columns(relevance=pl.coalesce("relevance", "of_any")).drop_nulls("relevance")
            return pl.concat([grid.select(frame.columns), frame.filter(pl.col("iteration").is_null())])

        by_iteration = ["iteration"] if qrels.labels is not None else []
        rest = qrels.ungraded
        ungraded = None if rest is None else self._map_rows(rest, kept).unique(maintain_order=True)
        given = label_by_iteration(qrels.frame) if by_iteration else qrels.frame
        of_frame = replace_and_compare(given)
        of_rows = of_frame if qrels.rows is given else replace_and_compare(qrels.rows)
        frame, rows = join(given, *of_frame, *by_iteration), join(qrels.rows, *of_rows, "iteration")
        if qrels.has_subtopics:  # a host without subtopics keeps only the last row of a document
            rows = rows.sort("query_id", "relevance")
        return qrels.with_rows(frame, rows, ungraded=ungraded)


#: Replaces a query's own document by `-`, the doc_id of an iteration without results.
OWN_LEFT_OUT = DocumentMap(
    nw.when(nw.col("doc_id") == nw.col("query_id")).then(nw.lit(EMPTY_DOC)), of="run", chunks="repeat"
)


def rename(ids: pl.Series, names: Names) -> pl.Series:
    """Replace each id that is a chunk_id by the doc_id in the same row."""
    old, new = names.table.select("chunk_id", "doc_id").get_columns()
    if not names.is_hash_unique:
        return ids.replace(old, new)
    hashes, of_hash = ids.hash().alias("hash").to_frame(), names.table.select("hash", "place")
    place = hashes.join(of_hash, on="hash", how="left", maintain_order="left").get_column("place")
    found = place.is_not_null().arg_true()
    if len(found) < len(ids) // 4:  # a few rows are written over faster than all rows are gathered
        places = place.gather(found)
        is_chunk = old.gather(places) == ids.gather(found)
        return ids.clone().scatter(found.filter(is_chunk), new.gather(places.filter(is_chunk)))
    is_chunk = old.gather(place) == ids  # another id may have the same hash
    own = pl.int_range(len(new), len(new) + len(ids), dtype=pl.get_index_type())
    texts = pl.concat([new, ids.alias(new.name)], rechunk=True)  # texts are gathered faster than written over
    return texts.gather(pl.select(pl.when(is_chunk).then(place).otherwise(own)).to_series())


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
    if missing := [name for name in _COLUMNS if name not in frame.columns]:
        raise InputError(f"{rows.label}: has no column {', '.join(missing)}; a table of chunks has chunk_id and doc_id")
    frame = cast_texts(frame.select(_COLUMNS), _COLUMNS, rows.label)
    nothing = (
        (nw.col("chunk_id") == EMPTY_DOC) | (nw.col("doc_id") == EMPTY_DOC),
        "has '-', which stands for an iteration without results",
    )
    check_rows(nw.from_native(frame, eager_only=True), rows, [*map(lacks, _COLUMNS), nothing])
    twice = (~frame.get_column("chunk_id").is_first_distinct()).arg_true()
    if len(twice):
        chunk = quote(frame.item(twice[0], "chunk_id"))
        raise InputError(f"{rows.locate(twice[0])} lists the chunk {chunk} a second time; keep one row for each chunk")
    return DocumentMap(frame, of, chunks)


def _check_pattern(pattern: str) -> None:
    wrong = f"{spell('documents', pattern)} is not a file, and not a pattern with one group"
    remedy = r"give a table of chunk_id and doc_id, or a regular expression such as '^(.+)-\d+$'"
    try:
        groups = pl.select(pl.lit("").str.extract_groups(f"^(?:{pattern})$")).to_series().struct.fields
    except pl.exceptions.ComputeError as error:
        raise InputError(f"{wrong} ({str(error).splitlines()[-1]}); {remedy}") from None
    if len(groups) != 1:
        raise InputError(f"{wrong} (it has {len(groups)}); {remedy}")
