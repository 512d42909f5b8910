"""Reads qrels from any source into `Qrels`, which ir_measures and other tools accept, and writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import narwhals as nw
import polars as pl
from ir_measures.util import Qrel

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, count_of, notice
from goodgain.files.bad_rows import Frame, Problem, RowSource, check_rows, find_problems
from goodgain.files.opening import check_fork, container, make_path, stem
from goodgain.files.writing import write_frame
from goodgain.formats import any_source, label_rules
from goodgain.formats.addresses import find_addresses, hash_ids
from goodgain.formats.any_source import Columns
from goodgain.formats.data_sets import read_judged_data_set
from goodgain.formats.digest import digest_rows
from goodgain.formats.pandas_facade import PandasFacade
from goodgain.options import ERRORS, check_choice, spell
from goodgain.ranking.dataframe_engines import collect
from goodgain.ranking.ranking_table import Judgments, find_unit, number_judgments
from goodgain.schema import EMPTY_DOC, NUGGETS, QRELS

#: Meaning of column 2 -> function that selects the rows to keep.
_READINGS = {
    None: label_rules.keep_one_label_per_document,
    "iteration": label_rules.keep_one_label_per_iteration,
    "subtopic": label_rules.keep_one_label_per_subtopic,
}
#: The digest of an experiment without labels.
NO_DIGEST = "none"
_NOTHING: Problem = (
    nw.col("doc_id") == EMPTY_DOC,
    "judges the document '-', which stands for an iteration that returned nothing",
)


@dataclass(eq=False, repr=False)
class Qrels(PandasFacade):
    """Judgments that ir_measures and other tools accept.

    goodgain's measures read the labels of `frame` unchanged. The providers of ir_measures read whole labels from `host_frame`.
    The providers use `columns`, `itertuples()`, or other attributes of a pandas frame, which is built on first use.

    Attributes:
        frame: query_id, iteration, doc_id, relevance (Int64 if all labels are whole, else Float64); one row per (query,
            document). With `labels="iteration"`, one row per (query, document, iteration); a null iteration means any.
        labels: None, or `iteration` if each label applies to one iteration.
        has_subtopics: whether labels are per subtopic. If so, `rows` has all labels; `frame` has the largest label per document.
        vital: query_id and subtopic of each vital nugget; None for qrels without a column vital.
        name: the file's stem; None for frames.
        renamed: the columns of the source that `columns=` renamed.
        ungraded: query_id, iteration, doc_id of rows with a null label. Their documents are unjudged and not in `frame`.
        documents: the options that selected or changed rows of the qrels or the run. These options are in the signature of scores.
        ids_mapped: the number of chunk ids that became documents, each counted once per query.
        searched: the queries of the runs, sorted, in an experiment without labels (`NO_LABELS`); None with labels.

    >>> import goodgain as gg
    >>> qrels = gg.read_qrels({"q": {"a": 2, "b": 0}})
    >>> qrels.frame.select("doc_id", "relevance").rows()
    [('a', 2), ('b', 0)]
    >>> [judgment.relevance for judgment in qrels.itertuples()]
    [2, 0]
    """

    frame: pl.DataFrame
    _: KW_ONLY
    labels: str | None = None
    name: str | None = None
    #: as `frame`, with a row for each subtopic (column 2) of a document
    rows: pl.DataFrame = field(default=None)  # type: ignore[assignment]  # `frame`, if it is not given
    renamed: frozenset[str] = frozenset()
    ungraded: pl.DataFrame | None = None
    has_subtopics: bool = False
    vital: pl.DataFrame | None = None
    documents: Mapping[str, str] = field(default_factory=dict)  # replaced, never changed
    ids_mapped: int = 0
    #: the judgments with their own URLs, if `frame` has those of the runs; they identify the qrels
    given: Qrels | None = None
    searched: pl.Series | None = None
    columns: ClassVar[list[str]] = list(Qrel._fields)

    def __post_init__(self) -> None:
        if self.rows is None:
            self.rows = self.frame

    @property
    def reading(self) -> str | None:
        """The meaning of column 2: `iteration`, `subtopic`, or None if column 2 is ignored."""
        return "subtopic" if self.has_subtopics else self.labels

    def with_rows(self, frame: pl.DataFrame, rows: pl.DataFrame, *, ungraded: pl.DataFrame | None) -> Qrels:
        return replace(self, frame=frame, rows=rows, ungraded=ungraded, given=None)

    @checks_kinds
    def select_queries(self, query_ids: Sequence[str]) -> Qrels:
        is_kept = pl.col("query_id").is_in(query_ids)
        ungraded = None if self.ungraded is None else self.ungraded.filter(is_kept)
        return self.with_rows(self.frame.filter(is_kept), self.rows.filter(is_kept), ungraded=ungraded)

    @property
    def has_labels(self) -> bool:
        return self.searched is None

    @cached_property
    def query_ids(self) -> pl.Series:
        """The ids of the queries, sorted. Without labels, these are the queries of the runs."""
        if self.searched is not None:
            return self.searched
        return self.frame.get_column("query_id").unique().sort()

    @cached_property
    def largest(self) -> pl.DataFrame:
        """The largest label of each document: query_id, doc_id, relevance."""
        if self.labels is None:
            return self.frame.select("query_id", "doc_id", "relevance")
        return self.frame.group_by("query_id", "doc_id", maintain_order=True).agg(pl.col("relevance").max())

    @cached_property
    def addresses(self) -> pl.DataFrame:
        """The ids that are URLs: doc_id, and document (its hash)."""
        return find_addresses(hash_ids(self.rows.get_column("doc_id")))

    @cached_property
    def judgments(self) -> Judgments:
        """The largest label of each document, as `Judgments`."""
        return number_judgments(self.largest, self.searched)

    @cached_property
    def unit(self) -> float:
        """The unit of `find_unit` for all labels, also those of single iterations."""
        return find_unit(self.frame.get_column("relevance"))

    @cached_property
    def digest(self) -> str:
        """Eight hexadecimal digits that identify the judgments: the same labels give the same digits.

        The order of rows does not matter. Column 2 does not matter either, unless it was read as the iteration or the subtopic.
        """
        if not self.has_labels:
            return NO_DIGEST
        if self.given is not None:
            return self.given.digest
        columns = [pl.col("query_id", "doc_id", "relevance")]
        if self.reading is not None:
            columns.append(pl.col("iteration").cast(pl.String).fill_null(""))

        labels = self.rows if self.has_subtopics else self.frame
        digest = digest_rows(labels.select(columns))
        if self.vital is None:
            return digest
        digest_of_vital = digest_rows(self.vital.unique())
        return f"{int(digest, 16) ^ int(digest_of_vital, 16):08x}"

    @cached_property
    def fractional(self) -> float | None:
        """The first label that is not a whole number; None if all are whole."""
        labels = self.frame.get_column("relevance")
        fractional = labels.filter(labels != labels.round())
        return float(fractional[0]) if len(fractional) else None

    @cached_property
    def host_frame(self) -> pl.DataFrame:
        """The labels that tools such as pytrec_eval read, with query_id, doc_id, relevance (Int64), iteration.

        A label below -1 can crash trec_eval, and becomes -1. If all labels of a query are below 0, all of them become 0.

        Raises:
            InputError: a label is too large for trec_eval, or is not a whole number (ranx silently truncates 2.9 to 2).
        """
        if self.fractional is not None:
            problem = f"the label {self.fractional:.15g} is not a whole number"
            need = "classic measures of other tools need whole labels"
            remedy = "use goodgain.evaluate, which computes the measures that are well defined for such labels"
            raise InputError(f"{problem}, and {need}; {remedy}")
        label_rules.check_levels(self.frame)

        rows = self.rows
        if self.labels is not None:
            self._warn_of_differing_labels()
            rows = self.largest.with_columns(iteration=pl.lit("0"))
        whole = pl.col("relevance").cast(pl.Int64)
        return label_rules.clip_for_trec_eval(rows).select("query_id", "doc_id", whole, "iteration")

    def _warn_of_differing_labels(self) -> None:
        differing = label_rules.count_differing_labels(self.frame)
        if differing:
            largest = f"the largest label of a document whose labels differ ({count_of(differing, 'document')})"
            difference = "goodgain.evaluate uses the label at the first occurrence"
            notice(
                "labels_by_iteration",
                f"the qrels have labels by iteration: classic measures of other tools use {largest}; {difference}",
            )

    def itertuples(self, index: bool = False, name: str | None = None) -> Iterator[Qrel]:
        """Return the labels of `host_frame` as named tuples. The arguments are for compatibility with pandas and are ignored."""
        return map(Qrel._make, self.host_frame.iter_rows())

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        labels = f", labels={self.reading!r}" if self.reading else ""
        queries = count_of(self.frame.get_column("query_id").n_unique(), "query", "queries")
        return f"Qrels({name}{queries}, {count_of(len(self), 'label')}{labels})"


@checks_kinds
def read_qrels(
    source: Any,
    *,
    labels: str | None = None,
    errors: str = ERRORS,
    columns: Columns | None = None,
    label: float | None = None,
) -> Qrels:
    """Read judgments from a path, a frame, named tuples, a dict of dicts or an ir_datasets id.

    Args:
        source: a file, a frame that narwhals supports, ir_measures' named tuples, {query_id: {doc_id: relevance}}, the id of an
            ir_datasets data set, or a `Qrels` (returned as it is). Formats of files are TREC text, Parquet, Arrow, JSON Lines,
            and CSV or TSV with a header; text files may be compressed (.gz or .zst). Frames have query_id, doc_id, relevance and
            possibly iteration. Documents with a null relevance are unjudged; one notice counts them. TREC text has no nulls.
        labels: None ignores column 2, as other tools do. `iteration` reads column 2 as the iteration of the label: a positive
            integer is the number of an iteration in the run, and `0` or a word means any iteration. `subtopic` reads column 2
            as the subtopic of the label, as in TREC's diversity tasks. Measures such as SubtopicRecall use subtopics. Most
            other measures take the largest label of a document. Nuggets are read as subtopics, from a table with query_id,
            nugget_id, doc_id, grade and possibly vital (0 or 1), or from autonuggetizer's assignments to documents.
        errors: `raise` stops at the first bad row. `skip` leaves out bad rows with a notice.
        columns: maps names in the source to goodgain's names, such as {"topic": "query_id"}. qid, q_id, docno, docid, did, pid,
            label, gain, grade and rel need no mapping; a notice tells how they were read. In JSON, a doc_id may be a list of
            documents, and a name may be a path into objects and lists, as in {"evidence.url": "doc_id"}.
        label: the label of every row, for a source that only lists the supporting documents of each question. The tasks of
            tau-bench's banking domain need no option: each required document has label 1.

    Returns:
        A `Qrels`.

    Raises:
        InputError: the source or an option is invalid. The message names the problem and the remedy, and often the file and line.

    Source: trec_eval's qrels format.

    >>> read_qrels({"q1": {"d1": 3, "d2": 0}})
    Qrels(1 query, 2 labels)
    """
    judged = load_qrels(source, labels=labels, errors=errors, columns=columns, label=label)
    any_source.check_columns_used(columns or {}, judged)
    return judged


def load_qrels(
    source: Any,
    *,
    labels: str | None = None,
    errors: str = ERRORS,
    columns: Columns | None = None,
    label: float | None = None,
    report_null: bool = True,
) -> Qrels:
    """Read qrels as `read_qrels` does, but without `check_columns_used`: the caller checks the names in `columns`.

    With `report_null=False` the caller also gives the notice about null labels. `labels` says how column 2 is read; `label` is the
    label of every row.
    """
    check_fork()
    if isinstance(source, Qrels):
        _check_same_reading(source, labels)
        return source
    check_choice("errors", errors)
    check_choice("labels", labels)

    dataset_id = None
    if isinstance(source, (str, os.PathLike)) and not any_source.exists(source):
        dataset_id = str(source)
        columns = None
        source = read_judged_data_set(dataset_id)

    assignments = label_rules.read_assignments(source)  # of nuggets, in a file
    has_subtopics = labels == "subtopic"
    name, opened, is_text = any_source.open_source(
        source if assignments is None else assignments,
        QRELS,
        errors=errors,
        columns=any_source.check_columns(columns),
        label=label,
        subtopics=has_subtopics,
    )
    any_source.warn_of_understood_columns(opened.columns, opened.rows.label)
    if dataset_id is not None:
        name = dataset_id
    if assignments is not None:
        name = stem(Path(source))

    # `places` gives the file and line of each row of `judgments`, for errors
    judgments, places = _read_judgments(opened.frame, opened.rows, labels=labels, errors=errors, is_text=is_text)
    judgments, vital = _take_out_vital(judgments)
    judgments, ungraded, places = label_rules.take_out_null_labels(judgments, places, report=report_null)
    label_rules.check_sizes(judgments, places.label)
    judgments = label_rules.keep_whole_labels(judgments)  # as integers, if all are whole
    frame, rows = _READINGS[labels](judgments, places)

    return Qrels(
        frame,
        labels=None if has_subtopics else labels,
        name=name,
        rows=rows,
        renamed=opened.columns.renamed,
        ungraded=ungraded,
        has_subtopics=has_subtopics,
        vital=vital,
    )


def _check_same_reading(qrels: Qrels, labels: str | None) -> None:
    if labels is not None and labels != qrels.reading:
        earlier_option, option = spell("labels", qrels.reading), spell("labels", labels)
        raise InputError(f"these qrels were read with {earlier_option}; read them again with {option}")


def _take_out_vital(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return the rows without the column `vital`, and the vital nuggets as in `Qrels.vital`."""
    if "vital" not in frame.columns:
        return frame, None
    vital = frame.filter(pl.col("vital") > 0).select("query_id", subtopic="iteration").unique(maintain_order=True)
    return frame.drop("vital"), vital


def _read_judgments(
    opened: Frame, rows: RowSource, *, labels: str | None, errors: str, is_text: bool
) -> tuple[pl.DataFrame, RowSource]:
    """Check and collect the rows, with the columns and types of `NUGGETS`. Without a column `iteration`, its value is 0."""
    problems = [_NOTHING]
    if is_text:
        any_source.check_document_column(opened, QRELS, rows.label)
    else:
        if labels != "iteration":
            opened = _ignore_values_of_column_2(opened)
        opened = any_source.cast_to_table(opened, NUGGETS, rows.label)
        problems = [*find_problems(opened, NUGGETS), _NOTHING]
    opened, rows = check_rows(opened, rows, problems, errors=errors)

    frame = collect(opened)
    if "iteration" not in frame.columns:
        if labels:
            remedy = f"add it, or read the labels without {spell('labels', labels)}"
            raise InputError(f"{rows.label}: has no column iteration; {remedy}")
        frame = frame.with_columns(iteration=pl.lit("0"))
    if frame.is_empty():
        raise InputError(f"{rows.label}: there is no judgment in these qrels; give the file that holds the labels")
    types = {name: dtype for name, dtype in NUGGETS.polars.items() if name in frame.columns}
    return frame.select(pl.col(name).cast(dtype) for name, dtype in types.items()), rows


def _ignore_values_of_column_2(frame: Frame) -> Frame:
    """Make texts of the column `iteration`, if there is one: no value of an ignored column is an error."""
    kind = frame.collect_schema().get("iteration")
    if kind is None:
        return frame
    text = nw.lit("0")
    if kind == nw.String or kind.is_integer():
        text = nw.col("iteration").cast(nw.String).fill_null("0")
    return frame.with_columns(text.alias("iteration"))


@checks_kinds
def write_qrels(qrels: Any, path: str | os.PathLike[str]) -> None:
    """Write judgments as TREC text, or in the format of the file extension: Parquet, Arrow or JSON Lines (also .gz or .zst).

    TREC text leaves out null labels. White space and control characters in ids, and a `#` at the start of a line, become %XX.
    Notices count null labels and changed ids. Other formats keep ids and null labels. The file is written whole or not at all.

    Raises:
        InputError: the file cannot be written.

    >>> import pathlib, tempfile
    >>> import goodgain as gg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> gg.write_qrels({"q": {"a": 3}}, path)
    >>> print(path.read_text(), end="")
    q 0 a 3
    """
    source = load_qrels(qrels, report_null=False)
    target = make_path(path, "the file of the qrels")
    frame = source.rows if source.has_subtopics else source.frame
    frame = frame.with_columns(pl.col("iteration").cast(pl.String).fill_null("0"))

    if source.ungraded is not None and container(target) == "text":
        count = source.ungraded.height
        unjudged = f"{count} document{'s' * (count != 1)} without a label stay unjudged: TREC text has no row for them"
        left_out = label_rules.describe_queries_left_out(source.ungraded, source.frame)
        notice("ungraded_rows", f"{target}: {unjudged}{left_out}; Parquet and JSON Lines keep them")
    elif source.ungraded is not None:
        ungraded = source.ungraded.with_columns(pl.col("iteration").cast(pl.String))
        frame = pl.concat([frame, ungraded], how="diagonal")
    write_frame(frame, target)
