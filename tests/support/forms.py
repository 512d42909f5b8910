"""The forms that tables of users have: frames of several engines, and files by their ending."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

import goodgain as gg
from goodgain.counting.run_in_blocks import RunFile
from goodgain.files import opening

FRAMES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "pyarrow": lambda frame: frame.to_arrow(),
    "duckdb": lambda frame: duckdb.connect().from_arrow(frame.to_arrow()),
}


def encode(frame: pl.DataFrame, ending: str) -> bytes:
    """The bytes of a file with this ending; `.txt` has no header."""
    content = io.BytesIO()
    write: dict[str, Callable[[], object]] = {
        "parquet": lambda: frame.write_parquet(content),
        "arrow": lambda: frame.write_ipc(content),
        "jsonl": lambda: frame.write_ndjson(content),
        ".json": lambda: frame.write_json(content),
        ".csv": lambda: frame.write_csv(content),
        ".tsv": lambda: frame.write_csv(content, separator="\t"),
        ".txt": lambda: frame.write_csv(content, separator=" ", include_header=False),
    }
    write[ending if ending in write else opening._CONTAINERS[ending]]()
    return content.getvalue()


def write_table(frame: pl.DataFrame, path: Path) -> Path:
    """Write the frame in the form of the file's ending, and return the path."""
    path.write_bytes(encode(frame, path.suffix))
    return path


def in_blocks(path: Path, *, block: int, **options: object) -> RunFile:
    """A file as a large one is opened, with so few bytes a block."""
    options = {"gaps": "close", "first": 1, "is_text": True} | options
    return RunFile(path, **options, block=block)  # type: ignore[arg-type]  # by name


def in_every_form(run: pl.DataFrame, folder: Path, *, block: int = 20) -> list[Any]:
    """A run as frames, a Run, text that is read at once and in blocks, and a frame of another engine."""
    path = folder / "in_every_form.run"
    gg.write_run(run, path)
    frames = [FRAMES[name](run) for name in ("polars", "lazy", "duckdb")]
    return [*frames, gg.read_run(run), path, in_blocks(path, block=block)]
