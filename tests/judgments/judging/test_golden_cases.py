"""The cases of qrels_examples/judges come out as worked by hand, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.tables import ROOT

FOLDER = ROOT / "qrels_examples" / "judges"
AGGREGATED: dict[str, Any] = json.loads((FOLDER / "aggregated.json").read_text(encoding="utf-8"))
AGREEMENT: dict[str, Any] = json.loads((FOLDER / "agreement.json").read_text(encoding="utf-8"))
COLUMNS = ["query_id", "doc_id", "relevance", "n_judges", "n_null", "tie"]


@pytest.mark.each
@pytest.mark.parametrize("name", AGGREGATED)
def test_aggregate_gives_what_was_worked_by_hand(name: str) -> None:
    case = AGGREGATED[name]
    labels = gg.aggregate([FOLDER / file for file in case["files"]], **case["options"])
    assert labels.columns == COLUMNS
    assert labels.rows() == [tuple(row) for row in case["rows"]]


@pytest.mark.parametrize("name", AGGREGATED)
def test_the_command_writes_what_was_worked_by_hand(name: str, tmp_path: Path) -> None:
    case = AGGREGATED[name]
    output = tmp_path / "out.jsonl"
    options = [f"--{option.replace('_', '-')}" for option in case["options"]]
    arguments = [
        part
        for option, value in zip(options, case["options"].values(), strict=True)
        for part in ([option] if value is True else [option, value])
    ]
    done = run_command("judge", *(FOLDER / file for file in case["files"]), *arguments, "-o", output)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [[row[name] for name in COLUMNS] for row in rows] == case["rows"]


@pytest.mark.parametrize("form", ["frame", "parquet", "jsonl", "long csv.gz"])
def test_every_form_of_long_grades_gives_the_same(form: str, tmp_path: Path) -> None:
    case = AGGREGATED["mean of the grades that are not null"]
    frame = pl.read_csv(FOLDER / "grades.csv")
    source: Any = frame
    if form == "parquet":
        frame.write_parquet(source := tmp_path / "g.parquet")
    elif form == "jsonl":
        frame.write_ndjson(source := tmp_path / "g.jsonl")
    elif form == "long csv.gz":
        frame.write_csv(source := tmp_path / "g.csv.gz", compression="gzip")
    assert gg.aggregate(source, scale="graded").rows() == [tuple(row) for row in case["rows"]]


def test_agreement_of_the_published_example() -> None:
    case = AGREEMENT["four_judges.csv"]
    agreement = gg.agreement(FOLDER / "four_judges.csv", scale=case["scale"])
    assert agreement.overall == pytest.approx(case["overall"], rel=1e-12)


def test_kappa_counts_the_categories_of_the_whole_scale() -> None:
    case = AGREEMENT["two_judges.csv"]
    agreement = gg.agreement(FOLDER / "two_judges.csv", scale=case["scale"], names=True)
    (row,) = agreement.pairs.rows()
    wanted = case["pairs"][0]
    assert row[:3] == tuple(wanted[:3])
    assert row[3:] == pytest.approx(tuple(wanted[3:]), rel=1e-12)
    # the grades that were seen, each a step from the next: Cohen's quadratic kappa is another
    steps = pl.read_csv(FOLDER / "two_judges.csv").with_columns(pl.col("grade").replace({4: 2}))
    assert gg.agreement(steps, scale=[0, 1, 2]).pairs["kappa_quadratic"].to_list() == pytest.approx([2 / 3], rel=1e-12)
