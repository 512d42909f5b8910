"""Grades in long form, from any number of files and frames: one row per (query, document, judge)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.forks import check_fork
from goodgain.files.opening import stem
from goodgain.files.row_checks import cast_texts, check_rows, lacks
from goodgain.files.row_origins import FrameRows, RowSource, quote
from goodgain.files.safe_text import check_name
from goodgain.files.tables import read_frame
from goodgain.formats import Qrels
from goodgain.formats.frames import open_frame
from goodgain.judging.grade_files import GRADE, OneSource, name_columns, open_grade_file
from goodgain.judging.scales import SCALES, Scale
from goodgain.ranking.engines import collect
from goodgain.schema import EMPTY_DOC, QRELS

__all__ = ["DOCUMENT", "Grades", "read_grades"]

#: What is judged.
DOCUMENT = ["query_id", "doc_id"]


@dataclass(frozen=True)
class Grades:
    """Grades of several judges.

    Attributes:
        frame: query_id, doc_id, judge, grade (Float64, null where the judge gave none), source and row (their place), and
            document (a number for each (query, document), from 0 in the order in which they first come); in the order of
            the sources, then of their rows.
        sources: how errors name the rows of each source.
        ordered: whether the rows have an order: those of DuckDB and Spark have none.
    """

    frame: pl.DataFrame
    sources: list[RowSource]
    ordered: bool = True

    def locate(self, place: int) -> str:
        """Name a row by its place in `frame`."""
        rows: RowSource = self.sources[self.frame.item(place, "source")]
        return rows.locate(self.frame.item(place, "row"))


def read_grades(source: Any, *, scale: Scale | None = None) -> Grades:
    """Read grades from any source.

    Args:
        source: a file, a frame, a `Qrels`; a list of them; or {judge: file, frame or qrels}, whose names are the judges
            where a source does not say who judged. Files are otherwise named by their stems.
        scale: what the grades must be on.

    Raises:
        InputError: a source cannot be read, a judge gave two grades to one document, or a grade is not on the scale.
    """
    check_fork()
    frames: list[pl.DataFrame] = []
    rows: list[RowSource] = []
    ordered = True
    for number, (judge, one) in enumerate(_name_sources(source)):
        opened = _open(one, judge)
        frame = opened.frame
        if "judge" not in frame.columns:
            frame = frame.with_columns(judge=pl.lit(judge))
        frame = _check_ids(frame, opened.rows).with_columns(
            grade=_parse_grades(frame, opened.rows, scale),
            source=pl.lit(number, pl.Int64),
            row=pl.col("row").cast(pl.Int64),
        )
        frames.append(frame.select(*DOCUMENT, "judge", "grade", "source", "row"))
        rows.append(opened.rows)
        ordered = ordered and _has_order(one)
    if not any(map(len, frames)):
        raise InputError(f"{rows[0].label}: there is no grade in it; give a source that has grades")
    grades = Grades(_number_documents(pl.concat(frames)), rows, ordered)
    _check_scale(grades, scale)
    _check_once(grades)
    return grades


def _name_sources(source: Any) -> list[tuple[str, Any]]:
    """Return the sources, each with the name of its judge where it does not have names of judges itself."""
    if isinstance(source, Mapping):
        found = [(check_name(str(judge), "judge"), one) for judge, one in source.items()]
    else:
        several = [source] if not isinstance(source, (list, tuple)) or hasattr(source, "_fields") else list(source)
        stems = Counter(stem(Path(one)) for one in several if isinstance(one, (str, os.PathLike)))
        found = []
        for number, one in enumerate(several, start=1):
            if isinstance(one, (str, os.PathLike)):
                name = stem(Path(one))
                found.append((name if stems[name] == 1 else str(one), one))
            else:
                found.append((str(number), one))
    if not found:
        raise InputError("there is no source of grades; give a file, a data frame, or several")
    return found


def _open(source: Any, judge: str) -> OneSource:
    if isinstance(source, (str, os.PathLike)):
        return open_grade_file(Path(source))
    label = f"the grades {quote(judge)}"
    if isinstance(source, Qrels):
        return OneSource(name_columns(source.frame.drop("iteration"), label), FrameRows(label))
    if isinstance(source, Mapping):
        frame = open_frame(source, QRELS).frame
        return OneSource(name_columns(collect(frame), label), FrameRows(label))
    found = read_frame(source, label, (*DOCUMENT, "judge", *GRADE))
    if not found.columns:
        raise InputError(f"{label}: there is no column query_id, doc_id or grade; rename the columns of the frame")
    return OneSource(name_columns(found, label), FrameRows(label))


def _has_order(source: Any) -> bool:
    """Tell whether the rows of a source have an order, which those of a database have not."""
    frame = nw.from_native(source, pass_through=True)
    return not isinstance(frame, nw.LazyFrame) or frame.implementation.is_polars()


def _check_ids(frame: pl.DataFrame, rows: RowSource) -> pl.DataFrame:
    """Cast ids and judges to text.

    Raises:
        InputError: one is missing, or a column cannot be an id.
    """
    frame = cast_texts(frame, (*DOCUMENT, "judge"), rows.label)
    nothing = (
        nw.col("doc_id") == EMPTY_DOC,
        "grades the document '-', which stands for an iteration that returned nothing",
    )
    problems = [*map(lacks, (*DOCUMENT, "judge")), nothing]
    check_rows(nw.from_native(frame, eager_only=True), rows, problems, show=False)
    return frame


def _parse_grades(frame: pl.DataFrame, rows: RowSource, scale: Scale | None) -> pl.Series:
    """Return the grades as numbers, null where there is none: an empty cell, or blanks only."""
    grades = frame.get_column("grade")
    if grades.dtype == pl.Null or grades.dtype.is_numeric():
        numbers = grades.cast(pl.Float64)
        wrong = (~numbers.is_finite()).fill_null(False).arg_true()
    elif isinstance(grades.dtype, (pl.String, pl.Categorical, pl.Enum)):
        texts = grades.cast(pl.String).str.strip_chars()
        texts = texts.set(texts == "", None)
        words = scale.words if scale else {}
        numbers = texts.cast(pl.Float64, strict=False)
        if words:
            numbers = numbers.fill_null(texts.replace_strict(list(words), list(words.values()), default=None))
        wrong = (texts.is_not_null() & ~(numbers.is_finite().fill_null(False))).arg_true()
    else:
        raise InputError(f"{rows.label}: has {grades.dtype} in the grades, which are numbers; convert the column")
    if len(wrong):
        value = str(grades[wrong[0]])
        remedy = "correct it, or leave it empty where there is no grade"
        named = next((name for name, known in SCALES.items() if value.strip() in known.words), None)
        if named:
            remedy = f"read such labels with scale={named!r} (--scale {named})"
        raise InputError(
            f"{rows.locate(frame.item(wrong[0], 'row'))} has the grade {quote(value)}, which is not a finite number; {remedy}"
        )
    return numbers.cast(pl.Float64).alias("grade")


def _number_documents(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the number of the document: grouping by it is several times faster than by two texts."""
    documents = frame.select(DOCUMENT).unique(maintain_order=True).with_row_index("document")
    return frame.join(documents, on=DOCUMENT, how="left", maintain_order="left")


def _check_scale(grades: Grades, scale: Scale | None) -> None:
    """Raise `InputError` for the first grade that is not on the scale."""
    if scale is None:
        return
    column = grades.frame.get_column("grade")
    beyond = (column.is_not_null() & ~column.is_in(list(scale.grades))).arg_true()
    if len(beyond):
        shown = ", ".join(f"{grade:g}" for grade in scale.grades[:12]) + (", ..." if len(scale.grades) > 12 else "")
        raise InputError(
            f"{grades.locate(beyond[0])} has the grade {column[beyond[0]]:g}, which is not on the scale {scale.name} ({shown}); "
            "correct it, or name another scale"
        )


def _check_once(grades: Grades) -> None:
    """Raise `InputError` where a judge gave two grades to one document; the message does not name the judge."""
    key = ["document", "judge"]
    numbered = grades.frame.select("document", pl.col("judge").cast(pl.Categorical).to_physical())
    if numbered.n_unique() == numbered.height:
        return
    first = grades.frame.row(numbered.is_duplicated().arg_true()[0], named=True)
    same = grades.frame.with_row_index("place").filter(pl.all_horizontal(pl.col(name) == first[name] for name in key))
    one, other = same.get_column("place").to_list()[:2]
    raise InputError(
        f"{grades.locate(one)} and {grades.locate(other)} are two grades of one judge for query "
        f"{quote(first['query_id'])}, document {quote(first['doc_id'])}; keep one, or give different judges different names "
        "(column judge)"
    )
