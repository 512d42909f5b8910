"""Grades as they stand in one file: long form, a sheet, qrels, or what a judging tool exports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.cells import read_cells
from goodgain.files.content import read_lines
from goodgain.files.opening import container, plain_name
from goodgain.files.row_origins import RowSource
from goodgain.files.safe_text import unguard_ids
from goodgain.files.tables import check_texts, name_rows_below, pick_columns, read_table, separator_by_name
from goodgain.formats.text import QRELS_TEXT, read_text
from goodgain.judging.tool_exports import is_quepid_book, read_json_grades, read_quepid_book

__all__ = ["GRADE", "OneSource", "name_columns", "open_grade_file"]

_BOM = b"\xef\xbb\xbf"
#: Names of the column with the grade: of grades in long form, and of qrels.
GRADE = ("grade", "relevance")
_TYPES = dict.fromkeys(("query_id", "doc_id", "judge", "grade"), pl.String)


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
    rows: RowSource
    kind = container(path)
    separator = separator_by_name(path)
    if separator is not None:
        return _read_delimited(path, separator)
    if kind == "jsonl" or Path(plain_name(path.name)).suffix.lower() == ".json":
        frame, rows = read_json_grades(path, lines=kind == "jsonl")
    elif kind == "text":
        return _read_trec(path)
    else:
        frame, rows, _ = read_table(path, _TYPES, find=lambda names: find_grades(names, str(path)))
    return OneSource(name_columns(frame, str(path)), rows)


def _read_delimited(path: Path, separator: str) -> OneSource:
    content = read_lines(path)
    if not content.data.removeprefix(_BOM).strip():
        raise InputError(f"{path}: is empty; give a file with a header and a grade a line")
    cells = read_cells(content, separator, path, errors=None)
    if is_quepid_book(cells.names, str(path)):
        rows = name_rows_below(path, cells)
        check_texts(cells.frame.select("0", "1").rename({"0": "query", "1": "docid"}), separator, rows)
        return OneSource(read_quepid_book(cells.frame, cells.names), rows)
    found = pick_columns(cells, separator, path, _TYPES, lambda names: find_grades(names, str(path)))
    return OneSource(name_columns(unguard_ids(found.frame, ["query_id", "doc_id"], str(path)), str(path)), found.rows)


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


def find_grades(names: Sequence[str], label: str) -> dict[str, str]:
    """Return which columns of grades in long form are query_id, doc_id, judge (where there is one) and grade.

    Raises:
        InputError: the source has not these columns.
    """
    both = [name for name in GRADE if name in names]
    if len(both) > 1:
        raise InputError(f"{label}: has two columns that may be the grade, {' and '.join(both)}; remove or rename one")
    missing = [name for name in ("query_id", "doc_id") if name not in names] + ([] if both else ["grade"])
    if missing:
        raise InputError(
            f"{label}: there is no column {', '.join(missing)} (it has {_shorten(names)}); grades stand in the columns query_id, "
            "doc_id, judge, grade, or in a file that a judging tool exported (a Quepid book, an OpenSearch judgment list)"
        )
    return (
        {"query_id": "query_id", "doc_id": "doc_id"}
        | ({"judge": "judge"} if "judge" in names else {})
        | {both[0]: "grade"}
    )


def name_columns(frame: pl.DataFrame, label: str) -> pl.DataFrame:
    """Return query_id, doc_id, judge (where there is one), grade and row of grades in long form.

    Raises:
        InputError: the frame has not these columns.
    """
    found = find_grades(frame.columns, label)
    return frame.select(pl.col(name).alias(ours) for name, ours in found.items()).with_row_index("row")


def _shorten(names: Sequence[Any]) -> str:
    """Name the first columns of a file. Names with an at sign can be people's addresses, which no message shows."""
    shown = ["(an address)" if "@" in str(name) else str(name)[:40] for name in names[:8]]
    return ", ".join(shown) + (" ..." if len(names) > 8 else "")
