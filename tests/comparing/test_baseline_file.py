"""A baseline file stands in for the baseline's run."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from goodgain.comparing import compare
from goodgain.errors import InputError
from tests.comparing.test_comparison import EXAMPLES, quietly
from tests.support.command import run_command

TWO = EXAMPLES / "two_agents"
QRELS, QUICK, LATE = TWO / "qrels.txt", TWO / "quick.run", TWO / "late.run"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kept") / "baseline.jsonl"
    quietly(QRELS, {"quick": QUICK, "late": LATE}, "nCG@3 nDCG@10", outcomes=TWO / "outcomes.csv").write_baseline(path)
    return path


def test_a_comparison_with_the_file_is_that_with_the_run(kept: Path) -> None:
    options = {"outcomes": TWO / "outcomes.csv", "groups": TWO / "groups.csv"}
    with_file = quietly(QRELS, {"late": LATE}, "nCG@3 nDCG@10", baseline_file=kept, **options)
    with_run = quietly(QRELS, {"quick": QUICK, "late": LATE}, "nCG@3 nDCG@10", baseline="quick", **options)
    assert with_file.baseline == "baseline"
    for name in ("pairs", "means", "systems", "groups", "correlations", "values", "coverage"):
        renamed = getattr(with_run, name).with_columns(pl.selectors.string().replace("quick", "baseline"))
        assert getattr(with_file, name).equals(renamed), name


def test_the_command_writes_the_file_of_one_run_and_compares_another_with_it(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "base.jsonl.gz"
    measures = "-m", "nCG@3 nDCG@10", "--outcomes", TWO / "outcomes.csv"
    written = run_command("compare", QRELS, QUICK, *measures, "--write-baseline", path)
    assert written.returncode == 0 and f"written: {path}" in written.stderr and "qrels=ce3aefb9" in written.stderr
    assert gzip.decompress(path.read_bytes()) == kept.read_bytes()
    new = "--baseline-file", path, "--require", "nCG@3>=baseline", "--write-baseline", tmp_path / "next.jsonl"
    done = run_command("compare", QRELS, LATE, *measures, *new, "-o", "csv")
    assert done.returncode == 3
    assert "failed: nCG@3>=baseline: late has 0.3814, 0.3101 below (baseline 0.6916); significant" in done.stderr
    assert '"system": "late"' in (tmp_path / "next.jsonl").read_text(encoding="utf-8")


def test_replicates_in_a_file_are_averaged_within_a_query(tmp_path: Path, kept: Path) -> None:
    first, *rows = kept.read_text(encoding="utf-8").splitlines()
    twice = [row.replace('"replicate":null', f'"replicate":"{k}"') for row in rows for k in (1, 2)]
    (tmp_path / "twice.jsonl").write_text("\n".join([first, *twice]) + "\n", encoding="utf-8")
    found = quietly(QRELS, {"late": LATE}, "nCG@3", baseline_file=tmp_path / "twice.jsonl")
    assert found.pairs.equals(quietly(QRELS, {"late": LATE}, "nCG@3", baseline_file=kept).pairs)


def test_a_file_of_other_judgments_is_refused(tmp_path: Path, kept: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(QRELS.read_text(encoding="utf-8").replace("q01_d01 2", "q01_d01 3"), encoding="utf-8")
    done = run_command("compare", qrels, LATE, "-m", "nCG@3", "--baseline-file", kept)
    assert done.returncode == 2 and done.stdout == ""
    assert "was made with other judgments (qrels ce3aefb9, here " in done.stderr


def test_what_does_not_fit_the_file_is_one_sentence(tmp_path: Path, kept: Path) -> None:
    def fails(message: str, measures: str = "nCG@3", **options: object) -> None:
        with pytest.raises(InputError, match=message):
            compare(QRELS, {"late": LATE}, measures, **{"baseline_file": kept, **options})  # type: ignore[arg-type]  # by name

    fails(r"has no values of CG@3\. Write it again", "CG@3")
    fails("was made with order='seen'", "nDCG@10", order="last")
    fails("needs the run of every system", bounds=True)
    fails(r"is the baseline\. Leave out", baseline="late")
    fails("is not a baseline file", baseline_file=QRELS)
    (tmp_path / "cut.jsonl").write_bytes(kept.read_bytes()[:-30])
    fails("is not a baseline file", baseline_file=tmp_path / "cut.jsonl")
    about, rows = kept.read_text(encoding="utf-8").split("\n", 1)
    for name in ("signature", "measures", "coverage", "absent_from_run"):
        wrong = json.dumps(json.loads(about) | {name: 5})
        (tmp_path / "wrong.jsonl").write_text(f"{wrong}\n{rows}", encoding="utf-8")
        fails(f"is not a baseline file.*{name}", baseline_file=tmp_path / "wrong.jsonl")
    with pytest.raises(InputError, match="both called baseline"):
        compare(QRELS, {"baseline": LATE}, "nCG@3", baseline_file=kept)
