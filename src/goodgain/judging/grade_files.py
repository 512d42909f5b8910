"""Grades as they stand in one file: long form, a sheet, qrels, or what a judging tool exports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.cells import read_cells
from goodgain.files.containers import read_container
from goodgain.files.content import read_bytes, read_lines
from goodgain.files.opening import container, plain_name
from goodgain.files.row_origins import FrameRows, RowSource
from goodgain.files.safe_text import unguard_ids
from goodgain.formats.delimited import check_texts, separator_by_name
from goodgain.formats.text import QRELS_TEXT, read_text
from goodgain.judging.tool_exports import is_quepid_book, read_json_grades, read_quepid_book

__all__ = ["GRADE", "OneSource", "name_columns", "open_grade_file"]

_BOM = b"\xef\xbb\xbf"
#: Names of the column with the grade: of grades in long form, and of qrels.
GRADE = ("grade", "relevance")


class OneSource(NamedTuple):
    """Grades as they stand in one source.

    Attributes:
        frame: query_id, doc_id, judge (only where the source says who judged), grade (of any type), row (its place).
        rows: how errors name a row.
    """

    frame: pl.DataFrame
    rows: RowSource


def open_grade_file(path: Path) -> OneSource:
    """Read the grades of a file, by the ending of its name: .csv, .tsv, .json, JSON Lines, Parquet, Arrow, or TREC text.

    Raises:
        InputError: the file cannot be read, or is not one of grades.
    """
    suffix = Path(plain_name(path.name)).suffix.lower()
    separator = separator_by_name(path)
    if separator is not None:
        return _read_delimited(path, separator)
    kind = "json" if suffix == ".json" else container(path)
    if kind in ("json", "jsonl"):
        frame, rows = read_json_grades(path, lines=kind == "jsonl")
        return OneSource(name_columns(frame, str(path)), rows)
    if kind in ("parquet", "arrow"):
        frame = read_container(read_bytes(path), path, kind)
        return OneSource(name_columns(frame, str(path)), FrameRows(str(path)))
    return _read_trec(path)


def _read_delimited(path: Path, separator: str) -> OneSource:
    content = read_lines(path)
    if not content.data.removeprefix(_BOM).strip():
        raise InputError(f"{path}: is empty; give a file with a header and a grade a line")
    names, frame, numbers = read_cells(content, separator, path, errors=None)
    below = range(frame.height) if numbers is None else numbers
    rows = FrameRows(f"{path}, counting the header as row 1", [number + 2 for number in below])
    if is_quepid_book(names, str(path)):
        check_texts(frame.select("0", "1").rename({"0": "query", "1": "docid"}), separator, rows)
        return OneSource(read_quepid_book(frame, names), rows)
    read = [name for name in ("query_id", "doc_id", "judge", *GRADE) if name in names]
    twice = [name for name in read if names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: has two columns {twice[0]}; rename or remove one")
    others = [name for name in dict.fromkeys(names) if name not in read]  # for messages alone
    found = name_columns(
        frame.select(pl.col(str(names.index(name))).alias(name) for name in [*read, *others]), str(path)
    )
    check_texts(found.drop("grade"), separator, rows)
    return OneSource(unguard_ids(found, ["query_id", "doc_id"], str(path)), rows)


def _read_trec(path: Path) -> OneSource:
    """Read qrels in TREC text; where column 2 differs between lines, it is the judge (trec_eval's `qrels_jg`)."""
    content = read_lines(path)
    frame, lines, *_ = read_text(content, QRELS_TEXT, label=str(path), errors="raise")
    judges = frame.get_column("iteration")
    frame = frame.rename({"relevance": "grade", "iteration": "judge"}).with_row_index("row")
    if judges.n_unique() < 2:
        return OneSource(frame.drop("judge"), lines)
    if judges.str.contains(r"^\+?[0-9]+$").all():
        notice(
            f"{path}: column 2 holds different numbers and is read as the judge (trec_eval's qrels_jg); if it is the iteration "
            "or subtopic, write 0 into it"
        )
    return OneSource(frame, lines)


def name_columns(frame: pl.DataFrame, label: str) -> pl.DataFrame:
    """Return query_id, doc_id, judge (where there is one), grade and row of grades in long form.

    Raises:
        InputError: the frame has not these columns.
    """
    names = frame.columns
    both = [name for name in GRADE if name in names]
    if len(both) > 1:
        raise InputError(f"{label}: has two columns that may be the grade, {' and '.join(both)}; remove or rename one")
    grade = both[0] if both else None
    missing = [name for name in ("query_id", "doc_id") if name not in names] + ([] if grade else ["grade"])
    if missing or grade is None:
        raise InputError(
            f"{label}: there is no column {', '.join(missing)} (it has {_shorten(names)}); grades stand in the columns query_id, "
            "doc_id, judge, grade, or in a file that a judging tool exported (a Quepid book, an OpenSearch judgment list)"
        )
    kept = ["query_id", "doc_id", *(["judge"] if "judge" in names else []), pl.col(grade).alias("grade")]
    return frame.select(kept).with_row_index("row")


def _shorten(names: Sequence[Any]) -> str:
    """Name the first columns of a file. Names with an at sign can be people's addresses, which no message shows."""
    shown = ["(an address)" if "@" in str(name) else str(name)[:40] for name in names[:8]]
    return ", ".join(shown) + (" ..." if len(names) > 8 else "")
