"""The pages of docs/reference say what the code says."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.logs.traces import formats
from tests.judgments.labelling.endpoint import good, serve
from tests.support.tables import ROOT

sys.path.insert(0, str(ROOT / "docs"))

import make_reference


@pytest.mark.parametrize(("file", "text"), [*make_reference.write_pages()], ids=lambda part: part[:12])
def test_a_page_of_the_reference_is_up_to_date(file: str, text: str) -> None:
    if file == "command_line.md" and tuple(map(int, version("click").split(".")[:2])) < (8, 5):
        pytest.skip("click before 8.5 lays help out in another way; the page is that of 8.5")
    written = (make_reference.FOLDER / file).read_text(encoding="utf-8")
    assert written == text, f"docs/reference/{file} is out of date: run `make reference`"


def test_every_trace_format_says_what_a_step_is_what_its_log_lacks_and_where_query_ids_come_from() -> None:
    page = make_reference.write_trace_formats()
    tables = re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    said = {name: re.findall(r"^\| ([A-Z][^|]*) \| \S", table, flags=re.MULTILINE)[:3] for name, table in tables}
    built_in = [name for name, form in formats().items() if not form.is_plugin]
    assert said == {name: ["Steps", "Lost", "Query id"] for name in built_in}


@pytest.mark.slow
def test_every_kind_of_notice_has_a_text() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", make_reference.write_notices(), flags=re.MULTILINE)
    assert len(rows) > 100
    assert [kind for kind, text in rows if not re.search(r"\w{3}", text)] == []
    assert any("Judge more of them" in text and "none of the" in text for kind, text in rows if kind == "low_coverage")


def test_every_public_name_has_an_example() -> None:
    """Doctest runs those of functions and classes; the pages of measures have a value each."""
    public = {name: getattr(gg, name) for name in gg.__all__}
    named = {name: value for name, value in public.items() if inspect.isclass(value) or inspect.isfunction(value)}
    assert [name for name, value in named.items() if ">>> " not in (inspect.getdoc(value) or "")] == ["label"]
    measures = (make_reference.FOLDER / "measures.md").read_text(encoding="utf-8")
    assert [
        name
        for name in public.keys() - named.keys() - {"__version__", "plots", "NO_LABELS"}
        if f"### {name}\n" not in measures
    ] == []


def test_the_example_of_label_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = textwrap.dedent((inspect.getdoc(gg.label) or "").partition("::\n")[2])
    (tmp_path / "agent.run").write_text("q 1 d1 1 1.0 agent\n")
    (tmp_path / "queries.tsv").write_text("q\twhat is bm25\n")
    found = {
        "query_id": "q",
        "iteration": [1],
        "search": 1,
        "rank": 1,
        "doc_id": "d1",
        "title": "BM25, a ranking function",
    }
    gg.write_results(pl.DataFrame(found), tmp_path / "results.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-example")
    names: dict[str, Any] = {"gg": gg}
    with serve(lambda call: good()) as server:
        exec(example.replace("http://localhost:8000/v1", server.url), names)

    assert names["qrels"].height == 1
