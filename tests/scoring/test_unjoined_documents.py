"""The notices where documents of a run lack a judgment only because the qrels have them under another id."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from goodgain.counting import run_in_blocks, run_opening
from tests.support.command import run_command
from tests.support.tables import in_one_search

PAIRS = [
    ("http://dw.com/a", "https://dw.com/a"),  # scheme
    ("https://www.dw.com/a", "https://dw.com/a"),
    ("https://m.dw.com/a", "https://dw.com/a"),
    ("https://dw.com/a/", "https://dw.com/a"),
    ("https://dw.com/a?utm_source=mail&gclid=1", "https://dw.com/a"),
    ("https://dw.com/a#:~:text=history", "https://dw.com/a"),
]


@pytest.mark.parametrize(("shown", "judged"), PAIRS + [pair[::-1] for pair in PAIRS])
def test_a_variant_of_a_judged_url_is_told_with_number_example_and_remedy(shown: str, judged: str) -> None:
    qrels, run = {"q": {judged: 3}}, in_one_search({"q": {shown: 1.0, "https://dw.com/other": 0.5}})
    said = r"1 of 2 sampled URLs without a judgment.* in the run, .*query q.*Use one spelling, or count both as one"
    with pytest.warns(gg.GoodgainNotice, match=said) as told:
        assert gg.evaluate(qrels, run, "CG", urls="keep").mean() == {"CG": 0.0}
    assert any(f"({shown} in the run, {judged} in the qrels, query q)" in str(one.message) for one in told)
    with pytest.warns(gg.GoodgainNotice, match="judged under another spelling"):
        gg.ledger(qrels, run, urls="keep")
    with pytest.warns(gg.GoodgainNotice, match="count as one document: 1 id"):
        assert gg.evaluate(qrels, run, "CG").mean() == {"CG": 3.0}


def _write(folder: Path, queries: int) -> tuple[Path, Path]:
    """Qrels and a run with 5 judged pages a query, of which the run shows two under a variant."""
    chance = random.Random(3)
    qrels, run = [], []
    for query in range(queries):
        for number in range(5):
            page = f"dw.com/{query}/{chance.randrange(10**9)}"
            qrels.append(f"q{query} 0 https://{page} {number}")
            run.append(f"q{query} 1 {'http://www.' if number < 2 else 'https://'}{page} {number + 1} 1.0 agent")
    (folder / "qrels").write_text("\n".join(qrels) + "\n")
    (folder / "a.run").write_text("\n".join(run) + "\n")
    return folder / "qrels", folder / "a.run"


def _told(qrels: object, run: object) -> str:
    with pytest.warns(gg.GoodgainNotice, match="another spelling") as told:
        gg.evaluate(qrels, run, "CG", urls="keep")
    (said,) = {str(one.message) for one in told if "another spelling" in str(one.message)}
    return said


def test_of_a_large_run_a_sample_is_looked_at(tmp_path: Path) -> None:
    qrels, run = _write(tmp_path, 2_000)
    said = _told(qrels, run)
    matched, looked = (int(said.split()[place].replace(",", "")) for place in (0, 2))
    assert 0 < matched == looked <= 10_000
    assert looked < 4_000, "not all of the 4,000 unjudged URLs"
    assert said == _told(qrels, run), "the same sample every time"


@pytest.mark.parametrize("name", ["a.run", "a.run.gz", "a.parquet"])
def test_large_files_and_lazy_frames_are_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    qrels, run = _write(tmp_path, 300)
    gg.write_run(gg.read_run(run), tmp_path / name)
    lazy = gg.read_run(run).frame.lazy()
    assert "another spelling" in _told(qrels, lazy)
    monkeypatch.setattr(run_opening, "LARGE", 1_000)
    monkeypatch.setattr(run_opening, "LARGE_COMPRESSED", 1_000)
    assert isinstance(run_opening.open_run(tmp_path / name), run_in_blocks.RunFile)
    assert "another spelling" in _told(qrels, tmp_path / name)


def test_a_frame_on_an_engine_is_looked_at_too(tmp_path: Path) -> None:
    import duckdb

    qrels, run = _write(tmp_path, 50)
    frame = gg.read_run(run).frame
    assert isinstance(frame, pl.DataFrame)
    assert "another spelling" in _told(qrels, duckdb.from_arrow(frame.to_arrow()))


def test_every_call_says_that_nothing_is_judged_and_a_query_of_many_results_costs_little() -> None:
    run = gg.read_run(in_one_search({"q": {f"D{k}": float(k) for k in range(5_000)}}))
    qrels = gg.read_qrels({"q": {f"d{k}": 1 for k in range(5_000)}})
    for _ in range(2):
        with pytest.warns(gg.GoodgainNotice, match=r"the run has 'D0', the qrels have 'd0'"):
            assert gg.evaluate(qrels, run, "RR").mean() == {"RR": 0.0}


def test_urls_in_another_spelling_are_told_in_every_call_on_the_same_run() -> None:
    run = gg.read_run(in_one_search({"q": {"http://dw.com/a/": 1.0}}))
    for call in (
        lambda: gg.evaluate(QRELS_OF_URLS, run, "CG", urls="keep"),
        lambda: gg.curve(QRELS_OF_URLS, {"r": run}, "CG", urls="keep"),
    ) * 2:
        with pytest.warns(gg.GoodgainNotice, match="judged under another spelling"):
            call()


QRELS_OF_URLS = {"q": {"https://dw.com/a": 3}}


def test_an_id_that_trec_text_escapes_is_shown_beside_the_same_id_in_the_qrels(tmp_path: Path) -> None:
    with pytest.warns(gg.GoodgainNotice):
        gg.write_run(in_one_search({"q": {"a b": 1.0, "c": 0.5}}), tmp_path / "blank.run")
    with pytest.warns(gg.GoodgainNotice, match=r"the run has 'a%20b', the qrels have 'a b'"):
        gg.evaluate({"q": {"a a": 1, "a b": 2}}, tmp_path / "blank.run", "nDCG@10")


@pytest.mark.parametrize("between", ["#", "_p", "::", "."])
def test_ids_of_chunks_beside_ids_of_documents_get_the_pattern_that_joins_them(between: str, tmp_path: Path) -> None:
    chunks, documents = {"q": {f"doc-1{between}2": 2}}, {"q": {"doc-1": 2}}
    for judged, shown in ((documents, chunks), (chunks, documents)):
        run = in_one_search({query: dict.fromkeys(of, 1.0) for query, of in shown.items()})
        with pytest.warns(gg.GoodgainNotice, match=r"has a label. If 'doc-1.*2' is a chunk of 'doc-1'") as given:
            assert gg.evaluate(judged, run, "CG")["CG"] == 0
        literal = next(filter(None, (re.search("documents=('.*')", str(one.message)) for one in given)))[1]
        pattern = ast.literal_eval(literal)  # as a user pastes it
        assert gg.evaluate(judged, run, "CG", documents=pattern)["CG"] == 2
    gg.write_qrels(gg.read_qrels(documents), tmp_path / "a.qrels")
    gg.write_run(gg.read_run(in_one_search({"q": {f"doc-1{between}2": 1.0}})), tmp_path / "a.run")
    done = run_command("evaluate", tmp_path / "a.qrels", tmp_path / "a.run", "CG")
    assert re.search(r"give --documents ['\"]?\^\(\.\+\)", done.stderr), done.stderr
