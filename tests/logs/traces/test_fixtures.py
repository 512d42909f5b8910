"""The fixtures, most of them made by the real libraries, read to what a person counts in them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from goodgain.errors import InputError
from goodgain.logs.traces import convert_traces, formats, read_traces, to_run
from goodgain.logs.traces.formats import detect_format
from goodgain.logs.traces.input.logs_and_archives import read_head

from .conftest import STEPS, by_iteration
from .expected import EXPECTED, NOT_RECORDED

FIXTURES = Path(__file__).parent / "fixtures"
#: The built-in formats, each of which has a folder of fixtures.
FOLDERS = sorted(path.name for path in FIXTURES.iterdir())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_fixture_reads_to_what_a_person_counts(name: str) -> None:
    results = read_traces(FIXTURES / name, **{**STEPS, "format": "shape" if name.startswith("shape/") else "auto"})
    for found in results.partition_by("system", "replicate"):
        assert {query: by_iteration(found, query) for query in found["query_id"].unique()} == EXPECTED[name]


@pytest.mark.parametrize("name", [*EXPECTED, *NOT_RECORDED])
def test_exactly_the_folder_s_format_claims_a_fixture(name: str) -> None:
    path = FIXTURES / name
    claims = [form.name for form in formats().values() if form.sniff(read_head(path))]
    if path.parent.name == "shape":
        assert claims == []
    else:
        assert claims == [path.parent.name] == [detect_format(path, read_head(path)).name]


@pytest.mark.parametrize("name", NOT_RECORDED)
def test_a_log_without_the_results_is_one_error_that_says_what_records_them(name: str) -> None:
    with pytest.raises(InputError, match=NOT_RECORDED[name]):
        read_traces(FIXTURES / name)


def test_every_fixture_and_every_format_is_expected() -> None:
    files = {str(path.relative_to(FIXTURES)) for path in FIXTURES.rglob("*") if path.is_file()}
    assert files == EXPECTED.keys() | NOT_RECORDED.keys()
    built_in = {name for name, form in formats().items() if not form.is_plugin}
    assert {name.split("/")[0] for name in files} == built_in


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_format_whose_fixtures_record_costs_says_where_they_come_from(name: str, tmp_path: Path) -> None:
    form = name.split("/")[0]
    path = tmp_path / "costs.parquet"
    convert_traces(FIXTURES / name, tmp_path / "{system}.run", costs=path, **{**STEPS, "format": form})
    recorded = pl.read_parquet(path).select("input_tokens", "output_tokens", "seconds", "cost")
    if any(column.count() for column in recorded):
        assert "\nCosts: " in (import_module(f"goodgain.logs.traces.formats.{form}").__doc__ or "")


def test_a_langgraph_conversation_and_its_spans_give_one_and_the_same_run() -> None:
    names = [name for name in EXPECTED if name.startswith("langchain/") or name.endswith(("json.gz", "jsonl.gz"))]
    runs = [to_run(read_traces(FIXTURES / name, query_id="talk_2")) for name in names]
    assert len(runs) == 9
    assert all(run.equals(runs[0]) for run in runs)
    # two searches side by side: their scores do not fall from rank to rank
    assert runs[0].rows()[:2] == [("talk_2", 1, "d3", 1, 1.0, "goodgain"), ("talk_2", 1, "d1", 2, 0.5, "goodgain")]


def test_the_epochs_of_an_inspect_log_are_replicates_of_one_system() -> None:
    runs = read_traces(FIXTURES / "inspect_ai/log.json").select("system", "replicate").unique().sort("replicate")
    assert runs.rows() == [("mock/model", "1"), ("mock/model", "2")]


# The samples of the workplace stand beside the checkout, if they are there; none of them may be copied in.
SAMPLES = Path(__file__).parents[3].parent / "shared" / "traces"
#: The number of results in each iteration of each query of a sample, and the error of one without results. Samples that no
#: format reads yet are refused, and never read to a query without a search. Others are read in another way than a person
#: reads them, or with a notice: no expectation holds them yet.
_SAMPLES = json.loads(Path(__file__).with_name("samples.json").read_text("utf-8"))
_COUNTS, _ERRORS, _REFUSED, _NOT_HELD = (_SAMPLES[name] for name in ("counts", "errors", "refused", "not held"))
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"the samples are not beside the checkout ({SAMPLES})")


@needs_samples
@pytest.mark.parametrize("name", _COUNTS)
def test_a_sample_reads_to_what_a_person_counts(name: str) -> None:
    for results in read_traces(SAMPLES / name).partition_by("system", maintain_order=True):
        queries = results["query_id"].unique(maintain_order=True)
        assert [[len(documents) for documents in by_iteration(results, query)] for query in queries] == _COUNTS[name]


@needs_samples
@pytest.mark.parametrize("name", _ERRORS)
def test_a_sample_without_the_results_is_one_error_that_says_so(name: str) -> None:
    with pytest.raises(InputError, match=_ERRORS[name]):
        read_traces(SAMPLES / name)


@needs_samples
@pytest.mark.parametrize("name", _REFUSED)
def test_a_sample_that_no_format_reads_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        read_traces(SAMPLES / name)


@needs_samples
def test_no_sample_is_left_out() -> None:
    paths = [path for path in (*SAMPLES.glob("*/*"), *SAMPLES.glob("turn4/spans/*")) if path.parent.name != "more"]
    logs = {str(path.relative_to(SAMPLES)) for path in paths if path.is_file() and path.suffix not in (".md", ".csv")}
    assert logs == {*_COUNTS, *_ERRORS, *_REFUSED, *_NOT_HELD}


#: What the samples of formats that are not all read hold: for each query the calls of its last turn.
_MORE = SAMPLES / "more"
needs_more = pytest.mark.skipif(not _MORE.is_dir(), reason=f"the samples are not beside the checkout ({_MORE})")


@needs_more
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_a_sample_of_any_format_is_read_to_its_counts_or_refused_and_never_read_to_no_search() -> None:
    expected = json.loads((_MORE / "expected.json").read_text())
    assert len(expected) > 30
    read = {}

    for name, sample in expected.items():
        if name.startswith("payloads/"):
            continue  # each of its lines is a sample of its own, below
        counts = sorted(query["by_step"]["results"] for query in sample["queries"].values())
        try:
            results = read_traces(_MORE / name)
        except InputError as error:
            assert str(_MORE / name) in str(error) and "\n" not in str(error), name
            continue
        found = [by_iteration(results, query) for query in results["query_id"].unique()]
        read[name] = sorted([len(documents) for documents in iterations] for iterations in found)
        assert read[name] == counts, name

    assert "phoenix/spans.jsonl" in read


@pytest.mark.slow
@needs_more
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_no_sample_is_read_to_no_search_whatever_format_is_named() -> None:
    expected = json.loads((_MORE / "expected.json").read_text())
    for name in expected:
        for form in FOLDERS:
            try:
                results = read_traces(_MORE / name, format=form)
            except InputError:
                continue
            assert results["iteration"].to_list() and 0 not in results["iteration"], (name, form)


@needs_more
def test_a_sampled_tool_output_is_read_to_its_counts_or_refused(tmp_path: Path) -> None:
    expected = json.loads((_MORE / "expected.json").read_text())["payloads/payloads.jsonl"]["queries"]
    lines = (_MORE / "payloads" / "payloads.jsonl").read_text().splitlines()
    assert len(lines) == len(expected)

    read = []
    for line in lines:
        name = json.loads(line)["id"]
        (tmp_path / "log.jsonl").write_text(line)
        try:
            results = read_traces(tmp_path / "log.jsonl")
        except InputError as error:
            assert "no results can be read" in str(error), name
            continue
        read.append(name)
        counts = [len(documents) for documents in by_iteration(results)]
        assert counts == expected[name]["by_step"]["results"], name

    assert {"serpapi", "haystack", "bing_langchain_empty"} <= set(read)


@needs_samples
def test_the_sampled_conversation_and_its_spans_are_one_run() -> None:
    names = [name for name in _COUNTS if "langgraph" in name]
    runs = [to_run(read_traces(SAMPLES / name, query_id="q1_2")) for name in names]
    assert len(runs) == 3
    assert all(run.equals(runs[0]) for run in runs)
