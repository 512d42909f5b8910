"""What judging tools export: Quepid books (CSV), OpenSearch judgment lists (JSON), and JSON in long form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.files.content import read_bytes, read_lines
from goodgain.files.json_lines import ObjectRows, iterate_objects
from goodgain.files.json_text import NotJSONError, loads_exactly
from goodgain.files.row_origins import FrameRows

__all__ = ["is_quepid_book", "read_json_grades", "read_quepid_book"]

_BOM = b"\xef\xbb\xbf"
_KEY = ["query", "docid"]
_TYPES = dict.fromkeys(("query_id", "doc_id", "judge", "grade"), pl.String)


def is_quepid_book(columns: Sequence[str], label: str) -> bool:
    """Tell whether the columns are those of a Quepid book: query, docid, and one for each rater.

    Raises:
        InputError: they are those of a Quepid case, whose ratings are averages.
    """
    names = [name.strip().lower() for name in columns]
    if names[:2] == _KEY and names[2:] == ["rating"]:
        raise InputError(
            f"{label}: is the export of a Quepid case, whose ratings are averaged over the raters and rounded already; export "
            "the book, which has a column for each rater"
        )
    if names[:2] == _KEY and len(names) == 2:
        raise InputError(f"{label}: is a Quepid book without a rater; export it again when documents have been judged")
    return names[:2] == _KEY


def read_quepid_book(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return query_id, doc_id, judge, grade, row of a book: one row for each rater of each line.

    A cell `1|3` holds two grades: each is of a judge of its own, because a column such as Unknown stands for several
    raters. Two raters of one name are two judges, too. The blank that Quepid writes before `= + - @`, with which a formula
    begins, is no part of a value of CSV.

    Args:
        frame: the book, every column text.
        names: of its columns; two raters may have one name.
    """
    judges = _tell_apart(list(names[2:]))
    frame.columns = ["query_id", "doc_id", *(f"column {place}" for place in range(len(judges)))]
    long = (
        frame.with_row_index("row")
        .unpivot(index=["row", "query_id", "doc_id"], variable_name="column", value_name="grade")
        .with_columns(
            judge=pl.col("column").replace_strict([f"column {k}" for k in range(len(judges))], judges),
            grade=pl.col("grade").fill_null("").str.split("|"),
        )
        .with_columns(number=pl.int_ranges(1, pl.col("grade").list.len() + 1))
        .explode("grade", "number")
    )
    further = pl.format("{} [{}]", "judge", "number")
    return long.select(
        "row",
        "query_id",
        "doc_id",
        pl.when(pl.col("number") > 1).then(further).otherwise(pl.col("judge")).alias("judge"),
        "grade",
    ).sort("row", maintain_order=True)


def _tell_apart(names: list[str]) -> list[str]:
    """Add a number to a name that stood before."""
    before: Counter[str] = Counter()
    found = []
    for name in names:
        found.append(f"{name} ({before[name] + 1})" if before[name] else name)
        before[name] += 1
    return found


def read_json_grades(path: Path, *, lines: bool) -> tuple[pl.DataFrame, FrameRows]:
    """Return the columns of objects in long form or of OpenSearch's judgment lists, and how errors name their rows.

    Args:
        path: the file.
        lines: whether it is JSON Lines; otherwise it is one object, or a list of them.

    Raises:
        InputError: something is neither.
    """
    rows = ObjectRows(_TYPES, partial(_refuse, f"{path}, {'line' if lines else 'object'}"))
    objects = (
        iterate_objects(read_lines(path), rows.refuse) if lines else _list_objects(read_bytes(path).data, rows.refuse)
    )
    for number, value in objects:
        try:
            found = [*_grades_of(value)]
        except ValueError as error:
            rows.refuse(number, str(error))
            continue
        for row in found:
            rows.add(number, row)
    frame, numbers = rows.to_frame()
    if frame.is_empty():
        raise InputError(f"{path}: there is no grade in this file; give one that has grades")
    return frame, FrameRows(str(path), numbers, f"counting {'lines' if lines else 'objects'} from 1")


def _list_objects(data: bytes, refuse: Callable[[int, str], None]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON file, each with its number from 1."""
    try:
        value = loads_exactly(data.removeprefix(_BOM))
    except NotJSONError as error:
        refuse(1, f"is not JSON ({error})")
        return
    for number, one in enumerate(value if isinstance(value, list) else [value], start=1):
        if isinstance(one, dict):
            yield number, one
        else:
            refuse(number, "is not a JSON object")


def _refuse(label: str, number: int, wrong: str) -> None:
    """Raise `InputError` without the text of the object: it may name a judge, which no message shows."""
    raise InputError(f"{label} {number}: {wrong}; correct it")


def _grades_of(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield query_id, doc_id, judge (where it is said) and grade of one object, for each grade in it.

    Raises:
        ValueError: it has none.
    """
    judge = {"judge": value["judge"]} if "judge" in value else {}
    if isinstance(value.get("judgmentRatings"), list):
        for entry in value["judgmentRatings"]:
            yield from (judge | row for row in _grades_of(entry if isinstance(entry, dict) else {}))
        return
    if isinstance(value.get("ratings"), list) and "query" in value:
        for rating in value["ratings"]:
            if not isinstance(rating, dict) or not {"docId", "rating"} <= rating.keys():
                raise ValueError("has a rating without docId and rating (an OpenSearch judgment list has both)")
            yield judge | {"query_id": value["query"], "doc_id": rating["docId"], "grade": rating["rating"]}
        return
    if "grade" in value and "relevance" in value:
        raise ValueError("has two values that may be the grade, grade and relevance")
    name = "relevance" if "relevance" in value else "grade"
    missing = [key for key in ("query_id", "doc_id", name) if key not in value]
    if missing:
        raise ValueError(
            f"has no {', '.join(missing)}: an object has query_id, doc_id, judge, grade, or is an entry of an OpenSearch "
            'judgment list ({"query": ..., "ratings": [...]})'
        )
    yield value if name == "grade" else {**value, "grade": value[name]}
