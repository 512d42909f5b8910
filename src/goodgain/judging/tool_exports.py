"""What judging tools export: Quepid books (CSV), OpenSearch judgment lists (JSON), and JSON in long form."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import polars as pl

from goodgain.errors import InputError

__all__ = ["is_quepid_book", "read_json_objects", "read_quepid_book"]

_KEY = ["query", "docid"]
_COLUMNS = ["query_id", "doc_id", "judge", "grade"]
#: Objects that are held at a time; more of them cost Python's garbage collector more than they cost to read.
_BLOCK = 5_000


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


def read_json_objects(content: bytes, label: str, *, lines: bool) -> tuple[pl.DataFrame, list[int]]:
    """Return the columns of objects in long form or of OpenSearch's judgment lists, and the place of each row.

    Raises:
        InputError: something is neither.
    """
    frames: list[pl.DataFrame] = []
    places: list[int] = []
    has_judge = False
    for first, block in _blocks(content, label, lines=lines):
        has_judge = has_judge or any("judge" in value for value in block)
        plain = _read_plain_objects(block)
        if plain is not None:
            frames.append(plain)
            places += range(first, first + len(block))
        else:
            frame, numbers = _read_any_objects(block, first, label, lines=lines)
            frames.append(frame)
            places += numbers
    if not frames:
        raise InputError(f"{label}: there is no grade in this file; give one that has grades")
    whole = pl.concat(frames, how="vertical_relaxed")
    return (whole if has_judge else whole.drop("judge")), places


def _read_plain_objects(objects: list[dict[str, Any]]) -> pl.DataFrame | None:
    """Return the columns of objects in long form with text as ids and numbers as grades; None for any others."""
    is_judged = "judge" in objects[0]
    if not is_judged and any("judge" in value for value in objects):
        return None
    try:
        columns = {name: [value[name] for value in objects] for name in _COLUMNS if name != "judge" or is_judged}
    except KeyError:
        return None
    kinds = {name: set(map(type, column)) - {type(None)} for name, column in columns.items()}
    if not kinds.pop("grade") <= {int, float} or not all(found <= {str} for found in kinds.values()):
        return None
    schema = {name: pl.Float64 if name == "grade" else pl.String for name in columns}
    frame = pl.DataFrame(columns, schema=schema, strict=False)
    return (frame if is_judged else frame.with_columns(judge=pl.lit(None, pl.String))).select(_COLUMNS)


def _read_any_objects(
    objects: list[dict[str, Any]], first: int, label: str, *, lines: bool
) -> tuple[pl.DataFrame, list[int]]:
    columns: dict[str, list[str | None]] = {name: [] for name in _COLUMNS}
    places: list[int] = []
    for number, value in enumerate(objects, start=first):
        place = f"{label}, {'line' if lines else 'object'} {number}"
        for query_id, doc_id, grade in _grades_of(value, place):
            columns["query_id"].append(_text(query_id, "query", place))
            columns["doc_id"].append(_text(doc_id, "document", place))
            columns["judge"].append(_text(value.get("judge"), "judge", place))
            columns["grade"].append(_text(grade, "grade", place))
            places.append(number)
    return pl.DataFrame(columns, schema=dict.fromkeys(_COLUMNS, pl.String)), places


def _blocks(content: bytes, label: str, *, lines: bool) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield the objects of a file some at a time, each time with the number of the first, from 1."""
    if not lines:
        value = _load(content, label)
        values = value if isinstance(value, list) else [value]
        if values:
            yield 1, _check_objects(values, 1, label)
        return
    parts = [line for line in content.splitlines() if line.strip()]
    for start in range(0, len(parts), _BLOCK):
        some = parts[start : start + _BLOCK]
        together = _load_together(some)
        if together is None:
            together = [_load(line, f"{label}, line {start + place}") for place, line in enumerate(some, start=1)]
        yield start + 1, _check_objects(together, start + 1, label)


def _load_together(lines: list[bytes]) -> list[Any] | None:
    """Return the values of lines, parsed at once in half the time of as many calls; None where a line is not one value.

    A mark that no file can foresee stands between the lines: only where each line is one value do all marks stand between
    two values, and none within an object that is cut over two lines.
    """
    mark = secrets.token_hex(16)
    try:
        values = orjson.loads(b"[" + f',"{mark}",'.encode().join(lines) + b"]")
    except orjson.JSONDecodeError:
        return None
    is_one_each = len(values) == 2 * len(lines) - 1 and all(value == mark for value in values[1::2])
    return values[::2] if is_one_each else None


def _load(text: bytes, place: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{place}: is not JSON ({error}); write it again") from error


def _check_objects(values: list[Any], first: int, label: str) -> list[dict[str, Any]]:
    for number, value in enumerate(values, start=first):
        if not isinstance(value, dict):
            raise InputError(f"{label}: object {number} is not a JSON object; give one with query_id, doc_id, grade")
        if "grade" in value and "relevance" in value:
            raise InputError(
                f"{label}: object {number} has two values that may be the grade, grade and relevance; remove or rename one"
            )
    return values


def _grades_of(value: dict[str, Any], place: str) -> Iterator[tuple[Any, Any, Any]]:
    """Yield query, document and grade of one object."""
    if isinstance(value.get("judgmentRatings"), list):
        for entry in value["judgmentRatings"]:
            yield from _grades_of(entry if isinstance(entry, dict) else {}, place)
        return
    if isinstance(value.get("ratings"), list) and "query" in value:
        for rating in value["ratings"]:
            if not isinstance(rating, dict) or not {"docId", "rating"} <= rating.keys():
                raise InputError(
                    f"{place}: a rating has no docId and rating; export the OpenSearch judgment list again"
                )
            yield value["query"], rating["docId"], rating["rating"]
        return
    name = "grade" if "grade" in value else "relevance"
    missing = [key for key in ("query_id", "doc_id", name) if key not in value]
    if missing:
        raise InputError(
            f"{place}: there is no {', '.join(missing).replace('relevance', 'grade')}; an object has query_id, doc_id, judge, "
            'grade, or is an entry of an OpenSearch judgment list ({"query": ..., "ratings": [...]})'
        )
    yield value["query_id"], value["doc_id"], value[name]


def _text(value: Any, what: str, place: str) -> str | None:
    """Return an id or grade as text; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{place}: the {what} {str(value)[:80]!r} is neither text nor a number; correct it")
    if isinstance(value, float) and what != "grade":  # 2301.10 would become 2301.1
        raise InputError(f"{place}: the {what} {value!r} is neither text nor a whole number; write the id as text")
    return str(value)
