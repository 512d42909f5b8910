"""A baseline file stands in for the baseline's run."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain import compare, read_run
from goodgain.errors import InputError
from tests.analysis.comparing.test_comparison import EXAMPLES, quietly
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
    data = json.loads(kept.read_text(encoding="utf-8").partition("\n")[0])["measures"]
    assert len(data) == len({*data}) > 2
    new = "--baseline-file", path, "--require", "nCG@3>=baseline", "--write-baseline", tmp_path / "next.jsonl"
    done = run_command("compare", QRELS, LATE, *measures, *new, "-o", "csv")
    assert done.returncode == 3
    assert "failed: nCG@3>=baseline: late has 0.3814, 0.3101 below the baseline 0.6916; significant" in done.stderr
    assert '"system": "late"' in (tmp_path / "next.jsonl").read_text(encoding="utf-8")


def test_a_requirement_that_needs_no_measure_needs_none_beside_the_file(kept: Path) -> None:
    for bound, status in (("0.98", 0), ("1.01", 3)):
        arguments = "--baseline-file", kept, "--require", f"searched>={bound}"
        done = run_command("compare", QRELS, LATE, *arguments, "-o", "csv")
        assert done.returncode == status, done.stderr
        assert f"searched>={bound}: late has 1.0000" in done.stderr
        assert {row.split(",")[0] for row in done.stdout.splitlines()} == {"measure", "NumIter"}


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("coverage", [], "its coverage has no row for all iterations"),
        ("coverage", [{"iteration": 1, "judged": 1, "unique": 1, "coverage": 1.0}], "no row for all iterations"),
        ("coverage", [{"iteration": None, "judged": None, "unique": 1}], "no row for all iterations"),
        ("signature", "[" * 2_000 + "]" * 2_000, "recursion"),
        ("signature", {"classic": 5}, "Expected `array`"),
        ("signature", {"classic": [None]}, "Expected `str`"),
        ("signature", {"unjudged": "x"}, "Expected `float`"),
    ],
)
def test_a_file_whose_first_line_is_damaged_is_refused(
    part: str, value: Any, reason: str, kept: Path, tmp_path: Path
) -> None:
    first, _, rest = kept.read_text(encoding="utf-8").partition("\n")
    about = json.loads(first)
    if isinstance(value, str):
        changed = json.dumps(about | {part: {"z": "HERE"}}).replace('"HERE"', value)
    else:
        changed = json.dumps(about | {part: {**about[part], **value} if isinstance(value, dict) else value})
    (tmp_path / "base.jsonl").write_text(f"{changed}\n{rest}", encoding="utf-8")
    with pytest.raises(InputError, match=f"base.jsonl: is not a baseline file .*{reason}.*Write one with"):
        compare(QRELS, {"late": LATE}, "nCG@3", baseline_file=tmp_path / "base.jsonl")


def test_replicates_in_a_file_are_averaged_within_a_query(tmp_path: Path, kept: Path) -> None:
    first, *rows = kept.read_text(encoding="utf-8").splitlines()
    twice = [row.replace('"replicate":null', f'"replicate":"{k}"') for row in rows for k in (1, 2)]
    first = first.replace(f'"rows": {len(rows)}', f'"rows": {len(twice)}')
    (tmp_path / "twice.jsonl").write_text("\n".join([first, *twice]) + "\n", encoding="utf-8")
    found = quietly(QRELS, {"late": LATE}, "nCG@3", baseline_file=tmp_path / "twice.jsonl")
    assert found.pairs.equals(quietly(QRELS, {"late": LATE}, "nCG@3", baseline_file=kept).pairs)


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


def _compare_with(path: Path, lines: list[str], measures: str = "nCG@3") -> str:
    """Return the error of a comparison with these lines as baseline file; empty if there is none."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    try:
        quietly(QRELS, {"late": LATE}, measures, baseline_file=path)
    except InputError as error:
        return str(error)
    return ""


def test_a_row_that_no_write_can_have_made_is_refused_with_its_number(tmp_path: Path, kept: Path) -> None:
    first, *rows = kept.read_text(encoding="utf-8").splitlines()
    path = tmp_path / "changed.jsonl"
    assert not _compare_with(path, [first, *rows])

    at = next(k for k, row in enumerate(rows) if '"nCG@3"' in row)
    appended = f"row {len(rows) + 2} "
    for wrong, place, sentence in (
        ([*rows, rows[at]], appended, "repeats the query, replicate and measure of an earlier row"),
        ([*rows, rows[at].replace('"replicate":null', '"replicate":"2"')], "", f"{len(rows) + 1} of {len(rows)} rows"),
        ([*rows, first, *rows], appended, "has a measure that the first line of the file does not list"),
        ([*rows, rows[at].replace("nCG@3", "nCG@4")], appended, "has a measure that the first line"),
        ([*rows, rows[at].replace("q01", "q99")], appended, "has a query that the qrels lack"),
    ):
        said = _compare_with(path, [first, *wrong])
        assert place in said and sentence in said, said

    for value in ("null", "1.5", "-0.1"):
        changed = json.loads(rows[at]) | {"value": json.loads(value)}
        said = _compare_with(path, [first, *rows[:at], json.dumps(changed), *rows[at + 1 :]])
        expected = "has no value of nCG@3" if value == "null" else f"has {value}, but nCG@3 ranges from 0 to 1"
        assert f"row {at + 2} " in said and expected in said, said

    assert "of 125 rows" in _compare_with(path, [first, *rows[:-1]])


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, lambda data: b"\x28\xb5\x2f\xfd" + data])
def test_a_file_whose_rows_look_like_compressed_data_is_refused(
    tmp_path: Path, kept: Path, pack: Callable[[bytes], bytes]
) -> None:
    """Polars unpacks such rows by itself, without any limit."""
    first, rows = kept.read_bytes().split(b"\n", 1)
    path = tmp_path / "packed.jsonl"
    path.write_bytes(first + b"\n" + pack(rows))
    with pytest.raises(
        InputError, match=r"packed\.jsonl: is not a baseline file \(its second line is not a JSON object\)"
    ):
        quietly(QRELS, {"late": LATE}, "nCG@3", baseline_file=path)


def test_a_graded_measure_without_a_value_is_read_back(tmp_path: Path) -> None:
    labels = {f"q{k}": {"a": 1, "b": 0} for k in range(3)}
    runs = {"old": {"q0": {"a": 1.0}, "q1": {"x": 1.0}}, "new": {"q0": {"b": 1.0}, "q2": {"a": 1.0}}}
    found = quietly(labels, runs, "GradedP@1", baseline="old")
    assert found.values.get_column("value").null_count() == 1
    found.write_baseline(tmp_path / "b.jsonl")
    again = quietly(labels, {"new": runs["new"]}, "GradedP@1", baseline_file=tmp_path / "b.jsonl")
    assert again.means.get_column("mean").equals(found.means.get_column("mean"))


def test_a_file_of_version_1_is_read_unless_it_has_evidence_recall(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    quietly(QRELS, {"quick": QUICK, "late": LATE}, "nCG@3 EvidenceRecall@3").write_baseline(path)
    first, *rows = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(first)["goodgain_baseline"] == 2

    old = first.replace('"goodgain_baseline": 2', '"goodgain_baseline": 1')
    said = _compare_with(path, [old, *rows])
    assert "version 1, and values of EvidenceRecall@3 have changed" in said and "Write it again" in said
    assert "SRR have changed since" in _compare_with(
        path, [old, *(row for row in rows if "Evidence" not in row)], "SRR"
    )

    kept = [row for row in rows if "EvidenceRecall" not in row]
    about = json.loads(old)
    about |= {"rows": len(kept), "measures": [name for name in about["measures"] if "Evidence" not in name]}
    assert not _compare_with(path, [json.dumps(about), *kept])


@pytest.mark.parametrize("missing", ["zero", "absent"])
@pytest.mark.parametrize("outcomes", [None, TWO / "outcomes.csv"])
def test_a_file_with_more_than_is_compared_fits_a_run_that_lacks_queries(
    tmp_path: Path, missing: str, outcomes: Path | None
) -> None:
    cut = {
        name: _leave_out_query(path, query_id)
        for name, path, query_id in (("quick", QUICK, "q01"), ("late", LATE, "q02"))
    }
    with_outcomes = {"outcomes": TWO / "outcomes.csv", "missing": missing}
    quietly(QRELS, cut, "nCG@3 nDCG@10", **with_outcomes).write_baseline(tmp_path / "old.jsonl", "quick")

    options = {"outcomes": outcomes, "missing": missing}
    found = quietly(QRELS, {"late": cut["late"]}, "nCG@3", baseline_file=tmp_path / "old.jsonl", **options)
    wanted = quietly(QRELS, cut, "nCG@3", baseline="quick", **options)
    for name in ("pairs", "means", "systems", "values"):
        renamed = getattr(wanted, name).with_columns(pl.selectors.string().replace("quick", "baseline"))
        assert getattr(found, name).equals(renamed), name


def _leave_out_query(run: Path, query_id: str) -> pl.DataFrame:
    return read_run(run).frame.filter(pl.col("query_id") != query_id)
