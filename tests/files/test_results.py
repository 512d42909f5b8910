"""Files of results go through the steps of every table: names, types, checks, and errors that name the row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg

RESULT: dict[str, Any] = {"query_id": "q1", "iteration": 1, "search": 1, "rank": 1, "doc_id": "d1", "score": 1.5}


def written(path: Path, *results: dict[str, Any]) -> Path:
    if path.suffix == ".parquet":
        pl.DataFrame(results, infer_schema_length=None).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(result) + "\n" for result in results))
    return path


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_result_needs_a_query_and_an_iteration(tmp_path: Path, ending: str) -> None:
    for name in ("query_id", "iteration"):
        path = written(tmp_path / f"{name}.{ending}", RESULT, RESULT | {name: None})
        with pytest.raises(gg.InputError, match=rf"{name}.{ending}, (line 2:|row 1) .* has no {name}"):
            gg.read_results(path)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_file_without_ranks_is_refused(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path / f"a.{ending}", {name: value for name, value in RESULT.items() if name != "rank"})
    with pytest.raises(gg.InputError, match=r"lacks the column rank"):
        gg.read_results(path)


def test_types_that_lose_digits_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", RESULT | {"doc_id": 2301.1})
    with pytest.raises(gg.InputError, match=r"a\.parquet: has Float64 in doc_id"):
        gg.read_results(path)
    path = written(tmp_path / "b.parquet", RESULT | {"iteration": 1.0}, RESULT | {"iteration": 1.5})
    with pytest.raises(
        gg.InputError, match=r"b\.parquet, row 1 .* has the iteration 1\.5, which is not a whole number"
    ):
        gg.read_results(path)


def test_other_columns_of_parquet_stay(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", RESULT | {"mine": "x"})
    assert gg.read_results(path).get_column("mine").to_list() == ["x"]
