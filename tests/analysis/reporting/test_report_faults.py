"""Reports where numbers and sentences once contradicted each other: several runs, thresholds, uses, labels by iteration."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.reporting.report import FORMATS
from tests.support.command import run_command
from tests.support.report_cases import read_data

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

#: Four good documents with a label of 2 each.
GOOD = {"q": dict.fromkeys("abcd", 2)}
PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)


def find(number: int) -> dict[str, dict[str, float]]:
    """Return a run that finds so many good documents."""
    return {"q": dict.fromkeys("abcd"[:number], 1.0) | {"other": 0.0}}


def write(path: Path, qrels: Any, runs: dict[str, Any], measures: str, **options: Any) -> str:
    return gg.report(qrels, runs, path, measures, **options).read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b", "difference", "cause"),
    [
        ([1, 3], [3, 1], 0.0, None),  # CG 2 and 6 in the first runs, 4 on average in both
        ([1, 4], [2, 2], -1.0, None),  # 2 and 4 in the first runs, 5 and 4 on average
        ([1, 1], [2, 1], 1.0, "A never retrieved some good documents"),
    ],
)
def test_a_cause_of_the_first_runs_stands_only_where_the_means_differ_the_same_way(
    tmp_path: Path, a: list[int], b: list[int], difference: float, cause: str | None
) -> None:
    runs = {"A": [*map(find, a)], "B": [*map(find, b)]}
    row = pl.read_csv(gg.report(GOOD, runs, tmp_path / "a.csv", "CG")).row(1, named=True)
    at = None if cause is None else 1
    assert (row["difference"], row["cause"], row["first_differing_iteration"]) == (difference, cause, at)
    data = read_data(write(tmp_path / "a.html", GOOD, runs, "CG"))
    assert data["causes"] == ([] if cause is None else [cause])
    assert data["changes"] == [{"cause": [-1 if cause is None else 0], "at": [at]}]


@pytest.mark.slow
def test_sentences_on_the_first_runs_say_so(tmp_path: Path) -> None:
    runs = {"A": [find(1), find(3)], "B": [find(3), find(1)]}
    assert "**Of the first runs: Why B differs from A**" in write(tmp_path / "a.md", GOOD, runs, "CG")
    page = write(tmp_path / "a.html", GOOD, runs, "CG")
    (said,) = read_data(page)["details"]["0"]["said"]
    assert said.startswith("Of the first runs: At iteration 1 A found 1 good document; B found 3 good documents.")
    assert "<p>Of the first runs: A: 1 of 1 iteration found no" not in page  # it found a good one


@pytest.mark.slow
def test_the_pictures_take_the_threshold_of_the_good_documents(tmp_path: Path) -> None:
    """Precision and recall took 1: of the labels 1 and 2 in this order the precision was 1 at each recall, and not .5."""
    qrels, runs = {"q": {"a": 1, "b": 2}}, {"s": {"q": {"a": 2.0, "b": 1.0}}}
    assert gg.pr_curve(qrels, runs, rel=2)["precision"].to_list() == [0.5] * 11
    page = write(tmp_path / "a.html", qrels, runs, "CG")
    assert "Relevant are the good documents: labels of 2 or higher." in page
    assert PICTURE.findall(page) == PICTURE.findall(write(tmp_path / "b.html", qrels, runs, "CG", rel=2))
    higher = [
        write(tmp_path / "c.html", qrels, runs, "CG(rel=3)"),
        write(tmp_path / "d.html", qrels, runs, "CG", rel=3),
    ]
    assert "labels of 3 or higher." in higher[0]
    assert PICTURE.findall(higher[0]) == PICTURE.findall(higher[1]) != PICTURE.findall(page)


USES = pl.DataFrame(
    {"query_id": "q", "system": "agent", "doc_id": ["a", "b"], "returned_at": 1}
    | {"opened_at": [1, None], "opens": [1, 0], "cited": [True, False]}
)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("runs", [{"other": find(2)}, {"agent": find(2), "other": find(1)}])
def test_uses_of_another_system_are_refused_in_every_form(tmp_path: Path, form: str, runs: dict[str, Any]) -> None:
    with pytest.raises(gg.InputError, match="uses= has no rows of the system other, but has rows of agent"):
        gg.report(GOOD, runs, tmp_path / "a", "CG", uses=USES, format=form)


@pytest.mark.slow
def test_the_uses_of_one_system_are_said(tmp_path: Path) -> None:
    expected = "Good documents, mean over queries: 2.00 returned, 1.00 opened and 1.00 cited."
    for form in ("html", "markdown"):
        assert expected in write(tmp_path / "a", GOOD, {"agent": find(2)}, "CG", uses=USES, format=form)


@pytest.mark.slow
def test_results_and_uses_of_one_log_fit_one_run_of_any_name(tmp_path: Path) -> None:
    """convert -o names the system of the uses after the run, and that of the results after the log."""
    steps = [{"searches": [{"query": "dunes", "results": [{"doc_id": "a"}]}]}]
    log = {"goodgain_trace": 1, "query_id": "q", "steps": steps}
    (tmp_path / "log.jsonl").write_text(json.dumps(log | {"system": "agent", "answer": "[a]"}))
    (tmp_path / "q.qrels").write_text("q 0 a 2\n")
    written = ["-o", tmp_path / "mine.run", "--results", tmp_path / "r.jsonl", "--uses", tmp_path / "u.jsonl"]
    assert run_command("convert", tmp_path / "log.jsonl", *written).returncode == 0
    given = [tmp_path / "q.qrels", tmp_path / "mine.run", "-m", "CG", *written[2:]]
    done = run_command("report", *given, "-o", tmp_path / "a.html")
    assert done.returncode == 0, done.stderr
    assert read_data((tmp_path / "a.html").read_text())["details"]["0"]["searches"] == [[["dunes", [0]]]]
    two = [*given[:2], f"other={given[1]}", *given[2:6]]
    assert "the results hold no system 'mine', only 'agent'" in run_command("report", *two, "--format", "csv").stderr


@pytest.mark.slow
def test_the_page_shows_the_label_that_counted_in_an_iteration(tmp_path: Path) -> None:
    """`a` is worth 0 in iteration 1 and 3 in iteration 2: the page had "new, not good" with the label 3."""
    (tmp_path / "q.qrels").write_text("q 1 a 0\nq 2 a 3\nq 0 b 2\n")
    (tmp_path / "s.run").write_text("q 1 a 1 1 s\nq 2 b 1 1 s\nq 3 a 1 1 s\n")
    (tmp_path / "t.run").write_text("q 1 b 1 1 t\nq 2 a 1 1 t\n")
    inputs = (tmp_path / f"{name}" for name in ("q.qrels", "s.run", "t.run"))
    run_command("report", *inputs, "-m", "CG", "--labels", "iteration", "-o", tmp_path / "a.html")
    (detail,) = read_data((tmp_path / "a.html").read_text())["details"].values()
    good, other, _, repeated = range(4)
    shown = [
        [(*detail["documents"][code >> 2], code & 3) for _, (code,) in searches] for searches in detail["searches"]
    ]
    assert shown == [[("a", 0, other), ("b", 2, good), ("a", 0, repeated)], [("b", 2, good), ("a", 3, good)]]
    assert [detail["documents"][place] for place, *_ in detail["good"]] == [["a", 3], ["b", 2]]


@pytest.mark.slow
def test_that_no_label_reaches_the_threshold_is_said_first(tmp_path: Path) -> None:
    qrels, runs = {"q": {"a": 1, "b": 0}}, {"old": {"q": {"a": 1.0}}, "new": {"q": {"b": 1.0}}}
    assert "<h1>No label of the qrels reaches" in write(tmp_path / "a.html", qrels, runs, "nCG")


@pytest.mark.slow
def test_the_page_of_the_command_names_its_options(tmp_path: Path) -> None:
    (tmp_path / "q.qrels").write_text("".join(f"q{k} 0 {doc} 1\n" for k in range(7) for doc in "ab"))
    rows = {"s": "q{0} 1 a 1 1 s\nq{0} 2 x 1 1 s\n", "t": "q{0} 1 {1} 1 1 t\nq{0} 1 y 2 0 t\n"}
    for name, text in rows.items():
        lines = (text.format(k, "x" if k % 3 else "b") for k in range(7))
        (tmp_path / f"{name}.run").write_text("".join(lines))
    inputs = [tmp_path / "q.qrels", tmp_path / "s.run", tmp_path / "t.run"]
    run_command("report", *inputs, "-m", "nCG P@1 P@2 R@2 RR", "-o", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    shown = page.partition('<script type="application/json"')[0]
    assert not re.search(r"\b(bounds|iterations|rel)=|in `detectable`", shown)
    assert "effect with --bounds." in shown and "@i, or --iterations." in shown and "give --rel 1." in shown
    assert re.search(r"; 1 more difference \(power 0\.8\)\.", shown)

    called = gg.report(
        *inputs[:1], {path.stem: path for path in inputs[1:]}, tmp_path / "b.html", "nCG P@1"
    ).read_text()
    assert "effect with bounds=True." in called
