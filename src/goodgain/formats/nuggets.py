"""Assignments of nuggets to documents: the files of autonuggetizer, and which nuggets are vital."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import number_lines
from goodgain.files.json_text import begins_json
from goodgain.files.opening import container, read_bytes
from goodgain.schema import NUGGETS

_GRADES = {"support": 2.0, "partial_support": 1.0, "not_support": 0.0}


def read_assignments(source: Any) -> pl.DataFrame | None:
    """Return query_id, iteration (the text of a nugget), doc_id, relevance and vital; None for any other source."""
    if not isinstance(source, (str, os.PathLike)) or container(Path(source)) not in ("text", "jsonl"):
        return None
    path = Path(source)
    content = read_bytes(path)
    if not begins_json(content) or not _has_nuggets(next(number_lines(content), (0, b""))[1]):
        return None
    rows = [row for number, line in number_lines(content) for row in _read_record(line, path, number)]
    return pl.DataFrame(rows, schema=NUGGETS.polars, orient="row")


def _has_nuggets(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "qid" in record and isinstance(record.get("nuggets"), list)


def _read_record(line: bytes, path: Path, number: int) -> Iterator[tuple[str, str, str, float, float]]:
    if not _has_nuggets(line):
        raise InputError(
            f"{path}, line {number}: is not a record of assignments with qid and nuggets; correct the line"
        )
    record = json.loads(line)
    if "docid" not in record:
        raise InputError(
            f"{path}, line {number}: assigns nuggets to an answer, not to a document (docid). Assign them to documents: "
            "nuggetizer assign --input-kind retrieval"
        )
    for nugget in record["nuggets"]:
        named = nugget if isinstance(nugget, dict) else {}
        grade = _GRADES.get(str(named.get("assignment")))
        if grade is None or not isinstance(named.get("text"), str):
            raise InputError(
                f"{path}, line {number}: a nugget needs a text, and one of {', '.join(_GRADES)} as its assignment; correct "
                "the line"
            )
        is_vital = float(named.get("importance") == "vital")
        yield str(record["qid"]), named["text"], str(record["docid"]), grade, is_vital


def take_out_vital(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return judgments without the column vital, and query_id, subtopic of the vital nuggets; None without this column."""
    if "vital" not in frame.columns:
        return frame, None
    vital = frame.filter(pl.col("vital") > 0).select("query_id", subtopic="iteration").unique(maintain_order=True)
    return frame.drop("vital"), vital
