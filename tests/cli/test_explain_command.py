"""The command explain: its forms, its names, and what it says where its arguments are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.tables import ROOT

EXAMPLE = ROOT / "qrels_examples" / "lost_documents"
QRELS, OLD, NEW, RESULTS = (EXAMPLE / name for name in ("qrels.txt", "old.run", "new.run", "results.jsonl"))


def explain(*arguments: object, status: int = 0) -> tuple[str, str]:
    done = run_command("explain", QRELS, *arguments)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_the_first_screen_of_a_terminal_fits_and_begins_with_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out, _ = explain(OLD, NEW, "-m", "CG@3", "--results", RESULTS, "--top", "1", "-o", "table")
    text = " ".join(out.split())
    assert text.startswith(
        "CG@3: new has a lower mean than old, 4 → 3.2500 (-0.7500); new is worse in 2 of 4 queries and better in 2."
    )
    assert "new repeated its search “Harbour bridge: cost?” and got only results that it had" in text
    assert "dam: CG@3" not in text  # --top 1
    assert max(map(len, out.splitlines())) <= 80


def test_the_text_of_a_query_stands_beside_its_id(tmp_path: Path) -> None:
    queries = tmp_path / "queries.tsv"
    queries.write_text("query_id\ttext\ndam\tHow high is the dam?\n")
    out, _ = explain(OLD, NEW, "-m", "CG@3", "--queries", queries, "-o", "markdown")
    assert "dam “How high is the dam?”: CG@3" in out


def test_each_system_can_have_its_own_file_of_results(tmp_path: Path) -> None:
    results = pl.read_ndjson(RESULTS)
    for name in ("old", "new"):
        results.filter(system=name).drop("system").write_ndjson(tmp_path / f"{name}.jsonl")
    both = ("--results", tmp_path / "old.jsonl", "--results", tmp_path / "new.jsonl")
    assert explain(OLD, NEW, *both) == explain(OLD, NEW, "--results", RESULTS)
    _, err = explain(OLD, NEW, *both, "--results", RESULTS, status=2)
    assert "--results was given more than twice" in err


@pytest.mark.parametrize("query", [(), ("--query", "dam")], ids=["all", "one query"])
def test_data_forms_hold_the_good_documents_and_json_all_frames(query: tuple[str, ...], tmp_path: Path) -> None:
    explained = gg.explain(QRELS, OLD, NEW)
    expected = explained.documents if not query else explained.documents.filter(query_id="dam")
    explain(OLD, NEW, *query, "-o", tmp_path / "documents.parquet")
    assert pl.read_parquet(tmp_path / "documents.parquet").equals(expected)
    content = json.loads(explain(OLD, NEW, *query, "-o", "json")[0])
    assert content["documents"] == expected.to_dicts()
    assert [content["base"], content["new"], content["measures"]] == ["old", "new", ["CG"]]


@pytest.mark.parametrize("ending", ["md", "json", "jsonl", "csv", "tsv", "parquet"])
def test_every_form_can_be_written_to_a_file(ending: str, tmp_path: Path) -> None:
    out, err = explain(OLD, NEW, "--top", "0", "-o", tmp_path / f"causes.{ending}")
    assert out == "" and "written: " in err
    assert (tmp_path / f"causes.{ending}").stat().st_size > 100


def test_control_characters_of_a_log_do_not_reach_the_terminal(tmp_path: Path) -> None:
    results = pl.read_ndjson(RESULTS).with_columns(search_query=pl.lit("\x1b[31mred"), title=pl.lit("\x1b[2J"))
    results.write_ndjson(tmp_path / "results.jsonl")
    for form in ("table", "markdown"):
        for query in ((), ("--query", "dam")):
            assert "\x1b" not in explain(OLD, NEW, "--results", tmp_path / "results.jsonl", "-o", form, *query)[0]
