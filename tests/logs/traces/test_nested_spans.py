"""Nested and parallel spans in four formats: the search that the agent saw counts, and a model between two splits nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodgain.logs.traces import Summary, read_traces

from .conftest import by_iteration

Json = Any
FORMATS = ("openinference", "otel", "langfuse", "langsmith")
_OTEL = {"LLM": "chat", "TOOL": "execute_tool", "RETRIEVER": "retrieval", "AGENT": "invoke_agent", "CHAIN": "chain"}


def _list(*names: str) -> list[Json]:
    return [{"docid": name, "title": f"T {name}", "snippet": f"Text of {name}"} for name in names]


_TEN = _list(*(f"d{number}" for number in range(10)))
_TWO = _list("d3", "d7")


def _time(second: float) -> str:
    return f"2026-05-01T10:00:{second:06.3f}000+00:00"


def _span(form: str, number: int, parent: int, kind: str, name: str, start: float, end: float, output: Json) -> Json:
    """Write a span in a format; its parent 0 is none."""
    if form == "langfuse":
        kind = {"LLM": "GENERATION"}.get(kind, kind)
        return {
            "id": f"o{number}", "traceId": "t", "type": kind, "name": name, "startTime": _time(start), "endTime": _time(end),
            "parentObservationId": f"o{parent}" if parent else None, "input": {"query": name}, "output": output,
        }  # fmt: skip

    if form == "langsmith":
        return {
            "id": f"o{number}", "trace_id": "o1", "parent_run_id": f"o{parent}" if parent else None, "name": name,
            "run_type": {"AGENT": "chain"}.get(kind, kind.lower()), "start_time": _time(start), "end_time": _time(end),
            "inputs": {"query": name}, "outputs": None if output is None else {"output": output},
        }  # fmt: skip

    text = output if isinstance(output, str) or output is None else json.dumps(output)
    if form == "otel":
        attributes = {"gen_ai.operation.name": _OTEL[kind], "gen_ai.tool.name": name, "gen_ai.tool.call.result": text}
        if kind == "RETRIEVER":
            attributes = {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.data_source.id": name,
                "gen_ai.retrieval.documents": text,
            }
    else:
        attributes = {"openinference.span.kind": kind, "input.value": name, "output.value": text}

    return {
        "name": name, "context": {"trace_id": f"{1:032x}", "span_id": f"{number:016x}"}, "start_time": _time(start),
        "parent_id": f"{parent:016x}" if parent else None, "end_time": _time(end), "status_code": "OK",
        "attributes": {key: value for key, value in attributes.items() if value is not None},
    }  # fmt: skip


def _read(form: str, folder: Path, *spans: tuple[Any, ...], **options: Any) -> tuple[list[list[str]], str]:
    """Read spans below a root; each is (number, parent, kind, name, start, end, output)."""
    rows = [_span(form, 1, 0, "AGENT", "agent", 0, 30, None), *(_span(form, *span) for span in spans)]
    path = folder / ("log.json" if form == "langfuse" else "log.jsonl")
    log = json.dumps({"id": "t", "input": "Who?", "observations": rows})
    path.write_text(log if form == "langfuse" else "\n".join(map(json.dumps, rows)))
    seen: list[Summary] = []
    return by_iteration(read_traces(path, report=seen.append, **options)), str(seen[0])


_MODEL = (2, 1, "LLM", "llm", 1, 2, None)
_INNER = (4, 3, "RETRIEVER", "dense", 3.1, 4, _TEN)


def _ids(documents: list[Json]) -> list[str]:
    return [document["docid"] for document in documents]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("name", "output", "expected"),
    [
        ("search", _TWO, _ids(_TWO)),
        ("ask_docs", _TWO, _ids(_TWO)),
        ("search", [], []),
        ("search", "No results found.", []),
        ("search", "The bridge was built in 1932.", _ids(_TEN)),
        ("search", None, _ids(_TEN)),
        ("ask_docs", [], _ids(_TEN)),
    ],
)
def test_a_tool_with_a_list_counts_and_any_other_gives_way_to_its_retriever(
    form: str, name: str, output: Json, expected: list[str], tmp_path: Path
) -> None:
    tool = (3, 1, "TOOL", name, 3, 6, output)
    below_chain = (5, 3, "CHAIN", "fuse", 3.05, 5, None), (4, 5, *_INNER[2:])
    for inner in ([_INNER], below_chain):
        found, told = _read(form, tmp_path, _MODEL, tool, *inner)
        assert found == [expected]
        assert name in told and "dense" in told
        assert "1 search; tools by name" in told


@pytest.mark.parametrize("form", FORMATS)
def test_the_caller_may_choose_the_inner_retriever(form: str, tmp_path: Path) -> None:
    tool = (3, 1, "TOOL", "search", 3, 6, _TWO)
    assert _read(form, tmp_path, _MODEL, tool, _INNER, tools=["dense"])[0] == [_ids(_TEN)]


@pytest.mark.parametrize("form", FORMATS)
def test_an_answer_with_links_of_an_agent_inside_a_tool_is_no_list(form: str, tmp_path: Path) -> None:
    answer = "1. [One](https://a.example/1)\n2. [Two](https://a.example/2)"
    outer = (3, 1, "TOOL", "search", 3, 9, answer)
    model = (5, 3, "LLM", "llm", 3.05, 3.08, None)
    assert _read(form, tmp_path, _MODEL, outer, model, _INNER)[0] == [_ids(_TEN)]


@pytest.mark.parametrize("form", FORMATS)
def test_a_list_above_the_same_tool_on_a_server_counts_once(form: str, tmp_path: Path) -> None:
    outer, inner = (3, 1, "TOOL", "search", 3, 9, _TWO), (5, 3, "TOOL", "search", 3.05, 8, _list("d1", "d2", "d3"))
    below = (4, 5, "RETRIEVER", "dense", 3.1, 4, _TEN)
    assert _read(form, tmp_path, _MODEL, outer, inner, below)[0] == [_ids(_TWO)]


@pytest.mark.parametrize("form", FORMATS)
def test_a_model_between_two_parallel_searches_does_not_split_their_step(form: str, tmp_path: Path) -> None:
    title = (4, 1, "LLM", "title", 3.5, 4, None)
    pair = [(3, 1, "TOOL", "search", 3, 6, _TWO), (5, 1, "TOOL", "search", 4.5, 6, _list("d5"))]
    last = [(6, 1, "LLM", "llm", 7, 8, None), (7, 1, "TOOL", "search", 9, 10, _list("d9"))]
    assert _read(form, tmp_path, _MODEL, pair[0], title, pair[1], *last)[0] == [["d3", "d7", "d5"], ["d9"]]
