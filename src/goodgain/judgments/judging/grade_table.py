"""Reads grades from files and frames into long form: one row per (query, document, judge)."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.counting.joined_addresses import describe_spellings, find_spellings
from goodgain.errors import InputError, notice
from goodgain.files.bad_rows import FrameRows, RowSource, check_rows, lacks, quote
from goodgain.files.escaping import check_name
from goodgain.files.opening import check_fork, stem
from goodgain.files.table_reading import cast_texts, read_frame
from goodgain.formats import Qrels
from goodgain.formats.addresses import select_addresses
from goodgain.formats.any_source import open_frame
from goodgain.judgments.judging.grade_files import GRADE, GradesAndRows, name_columns, open_grade_file
from goodgain.judgments.scales import ESCI_LETTERS, SCALES, Scale
from goodgain.options import OPTIONS, check_choice, spell
from goodgain.ranking.dataframe_engines import collect
from goodgain.schema import EMPTY_DOC, QRELS

#: The columns that identify a document, and column 2 of qrels for a whole document.
DOCUMENT = ["query_id", "doc_id"]
WHOLE_DOCUMENT = "0"
_OF_NOTHING = "grades the document '-', which stands for an iteration that returned nothing"


@dataclass(frozen=True)
class Grades:
    """Grades of several judges.

    `frame` has a row per grade, in the order of sources and rows. The columns are query_id, doc_id, subtopic (a nugget's text,
    0 for a whole document), judge, grade (Float64 or null), source and row (where the grade was read), and document (a distinct
    number for each combination of query_id, doc_id and subtopic).
    """

    frame: pl.DataFrame
    sources: list[RowSource]
    names: list[str]  # of the sources: of files and of dict entries; "" for a frame
    ordered: bool  # rows of DuckDB and Spark have no order

    def locate(self, place: int) -> str:
        rows: RowSource = self.sources[self.frame.item(place, "source")]
        return rows.locate(self.frame.item(place, "row"))

    def check_among(self, grades: pl.Series, allowed: Sequence[float], otherwise: str) -> None:
        """Raise `InputError` if a grade is not in `allowed`. The message names the first such grade, and ends with `otherwise`."""
        wrong = (grades.is_not_null() & ~grades.is_in(list(allowed))).arg_true()
        if len(wrong):
            raise InputError(f"{self.locate(wrong[0])} has the grade {grades[wrong[0]]:g}, {otherwise}")


def read_grades(source: Any, *, scale: Scale | None = None, urls: str = OPTIONS["urls"].default) -> Grades:
    """Read grades from a file, a frame, a `Qrels`, a list of such sources, or a dict {judge: source}.

    A source that names no judges counts as one judge, named after the dict key or the stem of the file. All grades must be on
    `scale`. With `urls="join"`, spellings of one web address are one document, with the largest grade of each judge.
    """
    if isinstance(source, Grades):
        return source
    check_fork()
    frames: list[pl.DataFrame] = []
    rows: list[RowSource] = []
    sources = _name_sources(source)
    for number, (judge, table) in enumerate(sources):
        frame, origins = _read_source(table, judge, scale)
        frames.append(frame.with_columns(source=pl.lit(number, pl.Int64)))
        rows.append(origins)
    if not any(map(len, frames)):
        raise InputError(f"{rows[0].label}: has no grades. Give a source that has some")
    check_choice("urls", urls)
    all_grades = pl.concat(frames)
    if urls == "join":
        all_grades = _join_addresses(all_grades)

    # grouping by the number of a document is several times faster than by two texts
    key = [*DOCUMENT, "subtopic"]
    documents = all_grades.select(key).unique(maintain_order=True).with_row_index("document")
    numbered = all_grades.join(documents, on=key, how="left", maintain_order="left")
    has_names = isinstance(source, Mapping)
    names = [name if has_names or is_path(table) else "" for name, table in sources]
    ordered = all(_keeps_order(table) for _, table in sources)
    grades = Grades(numbered, rows, names, ordered)
    if scale is not None:
        listed = ", ".join(f"{grade:g}" for grade in scale.grades[:12])
        if len(scale.grades) > 12:
            listed += ", ..."
        remedy = f"which is not on the scale {scale.name} ({listed}). Correct it, or name another scale"
        grades.check_among(grades.frame.get_column("grade"), scale.grades, remedy)
    _check_once(grades)
    return grades


def _read_source(source: Any, judge: str, scale: Scale | None) -> GradesAndRows:
    """Read the grades of one source: query_id, doc_id, subtopic, judge, grade (Float64 or null) and row."""
    frame, origins = _open(source, judge)
    if "judge" not in frame.columns:
        frame = frame.with_columns(judge=pl.lit(judge))
    frame = cast_texts(frame, (*DOCUMENT, "judge"), origins.label)
    problems = [*map(lacks, (*DOCUMENT, "judge")), (nw.col("doc_id") == EMPTY_DOC, _OF_NOTHING)]
    check_rows(nw.from_native(frame, eager_only=True), origins, problems, show=False)

    subtopic = pl.col("subtopic") if "subtopic" in frame.columns else pl.lit(None, pl.String)
    frame = frame.with_columns(
        subtopic.fill_null(WHOLE_DOCUMENT).alias("subtopic"),
        grade=_parse_grades(frame, origins, scale),
        row=pl.col("row").cast(pl.Int64),
    )
    return frame.select(*DOCUMENT, "subtopic", "judge", "grade", "row"), origins


def _keeps_order(source: Any) -> bool:
    """Return whether the rows of a source have an order: rows of DuckDB and Spark have none."""
    frame = nw.from_native(source, pass_through=True)
    return not isinstance(frame, nw.LazyFrame) or frame.implementation.is_polars()


def _join_addresses(grades: pl.DataFrame) -> pl.DataFrame:
    """Give all spellings of one web address one doc_id. If a judge graded several spellings, keep only the largest grade.

    Two grades of one spelling stay: they are an error later.
    """
    spellings = find_spellings(select_addresses(grades.get_column("doc_id")))
    if spellings.is_empty():
        return grades
    notice("joined_addresses", f"{describe_spellings(spellings)}. {spell('urls', 'keep')} keeps them apart.")
    common_spelling = pl.col("doc_id").replace(spellings.get_column("chunk_id"), spellings.get_column("doc_id"))
    joined = grades.with_columns(common_spelling, own_spelling="doc_id")

    grades_of_judge = [*DOCUMENT, "subtopic", "judge"]
    has_one_spelling = pl.col("own_spelling").n_unique().over(grades_of_judge) == 1
    place = pl.col("grade").fill_null(-math.inf).rank("ordinal", descending=True).over(grades_of_judge)
    return joined.filter(has_one_spelling | (place == 1)).drop("own_spelling")


def _name_sources(source: Any) -> list[tuple[str, Any]]:
    """Return a list of pairs (judge, source). The judge of a pair is used only if the source names no judges."""
    if isinstance(source, Mapping):
        named = [(check_name(str(judge), "judge"), grades) for judge, grades in source.items()]
    else:
        is_list = isinstance(source, (list, tuple)) and not hasattr(source, "_fields")
        sources = list(source) if is_list else [source]
        names = [stem(Path(part)) if is_path(part) else str(number) for number, part in enumerate(sources, start=1)]
        named = []
        for name, part in zip(names, sources, strict=True):
            has_same_stem = is_path(part) and names.count(name) > 1
            named.append((str(part) if has_same_stem else name, part))
    if not named:
        raise InputError("there is no source of grades. Give a file, a data frame, or several")
    return named


def is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike))


def _open(source: Any, judge: str) -> GradesAndRows:
    """Return the rows of one source with goodgain's names. Only a file can have further columns; the grades are not parsed yet."""
    if is_path(source):
        return open_grade_file(Path(source))
    label = f"the grades {quote(judge)}"
    if isinstance(source, Qrels):
        frame = source.frame.drop("iteration")
    elif isinstance(source, Mapping):
        frame = collect(open_frame(source, QRELS).frame)
    else:
        frame = read_frame(source, label, (*DOCUMENT, "judge", *GRADE))
    return name_columns(frame, label), FrameRows(label)


def _parse_grades(frame: pl.DataFrame, rows: RowSource, scale: Scale | None) -> pl.Series:
    """Return the grades as numbers, null for blank texts. On the scale `esci`, letters are grades too."""
    grades = frame.get_column("grade")
    if not grades.dtype.is_numeric():
        texts = cast_texts(frame.select("grade"), ["grade"], rows.label).to_series().str.strip_chars()
        grades = texts.set(texts == "", None)
    numbers = grades.cast(pl.Float64, strict=False)
    if scale == SCALES["esci"] and grades.dtype == pl.String:
        numbers = numbers.fill_null(grades.replace_strict(ESCI_LETTERS, default=None, return_dtype=pl.Float64))
    wrong = (grades.is_not_null() & ~numbers.is_finite().fill_null(False)).arg_true()
    if len(wrong):
        value = str(grades[wrong[0]])
        of_esci = f"Read such labels with {spell('scale', 'esci')}"
        remedy = of_esci if value in ESCI_LETTERS else "Correct it, or leave it empty for no grade"
        raise InputError(
            f"{rows.locate(frame.item(wrong[0], 'row'))} has the grade {quote(value)}, which is not a finite number. {remedy}"
        )
    return numbers.alias("grade")


def _check_once(grades: Grades) -> None:
    """Raise an InputError if a judge graded one document twice, even with the same grade. It names the first two such rows."""
    numbered = grades.frame.select("document", pl.col("judge").cast(pl.Categorical).to_physical())
    if numbered.n_unique() == numbered.height:
        return
    first = numbered.is_duplicated().arg_true()[0]
    equals_first = [pl.col(name) == numbered.item(first, name) for name in numbered.columns]
    first, second = numbered.select(pl.all_horizontal(equals_first)).to_series().arg_true()[:2]
    query_id, doc_id = grades.frame.row(first)[:2]
    raise InputError(
        f"{grades.locate(first)} and {grades.locate(second)} are two grades of one judge for query {quote(query_id)}, document "
        f"{quote(doc_id)}. Keep one, or give different judges different names (column judge)"
    )
