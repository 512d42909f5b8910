"""A page has the same id whatever is converted beside it: its canonical address."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import goodgain as gg
from goodgain.logs.traces import convert_traces
from tests.support.tables import no_notices

from .conftest import STEPS
from .expected import EXPECTED
from .test_fixtures import FIXTURES, SAMPLES


def read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:  # compressed
        return ""


def convert_beside(log: Path, folder: Path, **options: Any) -> dict[str, str]:
    """The runs of a log, alone and beside one with the same queries that spells all addresses in another way."""
    other = folder / log.name
    other.write_text(read_text(log).replace("https://", "http://www."), "utf-8")
    written = {}
    for name, logs in (("alone", {"one": str(log)}), ("beside", {"one": str(log), "other": str(other)})):
        convert_traces(logs, folder / f"{name}-{{system}}.run", **STEPS, **options)
        written[name] = "".join(path.read_text() for path in sorted(folder.glob(f"{name}-one*.run")))
    return written


WITH_PAGES = [name for name in EXPECTED if "https://" in read_text(FIXTURES / name) and not name.startswith("shape/")]


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("name", WITH_PAGES)
def test_a_log_has_the_same_ids_alone_and_beside_other_spellings(name: str, tmp_path: Path) -> None:
    written = convert_beside(FIXTURES / name, tmp_path)
    assert written["alone"] and written["alone"] == written["beside"]


@pytest.mark.slow
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples stand beside the checkout of the workplace")
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_samples_have_the_same_ids_alone_and_beside_other_spellings(tmp_path: Path) -> None:
    logs = [path for path in SAMPLES.rglob("*") if path.is_file() and "https://" in read_text(path)]
    read, differing = 0, []
    for number, log in enumerate(logs):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            written = convert_beside(log, folder)
        except gg.InputError:  # not a log, refused, or of several runs
            continue
        read += written["alone"] != ""
        if written["alone"] != written["beside"]:
            differing.append(log)

    assert not differing and read > 20


def convert_searches(folder: Path, searches: list[dict[str, Any]]) -> None:
    steps = [{"searches": [search]} for search in searches]
    (folder / "q.jsonl").write_text(json.dumps({"goodgain_trace": 1, "query_id": "q", "steps": steps}) + "\n")
    convert_traces(folder / "q.jsonl", folder / "a.run", deduplicate=None)


def test_ids_of_pages_are_canonical_addresses_and_meet_qrels_of_another_spelling(tmp_path: Path) -> None:
    convert_searches(tmp_path, [{"query": "x", "results": [{"url": "http://www.a.org/x/?utm_source=b#top"}]}])
    assert (tmp_path / "a.run").read_text().split()[2] == "https://a.org/x"
    with pytest.warns(gg.GoodgainNotice, match="spell one web address in several ways"):
        assert gg.evaluate({"q": {"http://www.a.org/x/?utm_source=b": 2}}, tmp_path / "a.run", "CG")["CG"] == 2
    with no_notices():
        assert gg.evaluate({"q": {"https://a.org/x": 2}}, tmp_path / "a.run", "CG")["CG"] == 2


def test_addresses_that_are_made_anew_for_each_call_are_told(tmp_path: Path) -> None:
    start = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"
    searches = [{"query": q, "results": [{"url": f"{start}{q}{k}"} for k in (1, 2)]} for q in "ab"]
    with pytest.warns(gg.GoodgainNotice, match="4 documents have addresses that are new for each call"):
        convert_searches(tmp_path, searches)
    with pytest.warns(gg.GoodgainNotice, match=r"new for each call. .* are not comparable"):
        gg.evaluate({"q": {f"{start}a1": 2}}, tmp_path / "a.run", "SRR")
