"""What the agent saw: a tool's own list before the retrievers below it; models beside a running tool begin no step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.logs.traces import Summary, read_traces

LIST = json.dumps([{"docid": "c3", "title": "T"}, {"docid": "c7", "title": "T"}])
LINKS = "I found 1. [One](https://a.example/1) and 2. [Two](https://a.example/2)."
FOUND = ["c1", "c3", "c7"]


class Log:
    """Spans in the order of their starts, each a second after the one before."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.agent = self.add("AGENT", "run", None, lasts=60)

    def add(self, kind: str, name: str, parent: str | None, *, lasts: float = 0.5, **attributes: Any) -> str:
        number = len(self.spans) + 1
        span_id = f"{number:016x}"
        self.spans.append(
            {
                "name": name,
                "context": {"trace_id": f"{1:032x}", "span_id": span_id},
                "parent_id": parent,
                "start_time": f"2026-05-01T10:00:{number:02d}.000+00:00",
                "end_time": f"2026-05-01T10:{int(number + lasts) // 60:02d}:{(number + lasts) % 60:06.3f}+00:00",
                "status_code": "OK",
                "attributes": {"openinference.span.kind": kind, "session.id": "q", **attributes},
            }
        )
        return span_id

    def tool(self, output: str | None, *, name: str = "search", parent: str | None = None, lasts: float = 0.5) -> str:
        given = {} if output is None else {"output.value": output}
        return self.add(
            "TOOL", name, parent or self.agent, lasts=lasts, **{"tool.name": name, "input.value": "bridge", **given}
        )

    def retriever(self, parent: str) -> str:
        documents = {f"retrieval.documents.{k}.document.id": doc for k, doc in enumerate(FOUND)}
        return self.add("RETRIEVER", "dense", parent, **documents)

    def model(self, parent: str | None = None, *, call: str = "") -> str:
        calls = {"llm.output_messages.0.message.tool_calls.0.tool_call.function.name": call} if call else {}
        return self.add("LLM", "llm", parent or self.agent, **calls)

    def read(self, folder: Path, **options: Any) -> tuple[pl.DataFrame, Summary]:
        path, seen = folder / "spans.jsonl", list[Summary]()
        path.write_text("".join(json.dumps(span) + "\n" for span in self.spans))
        return read_traces(path, report=seen.append, **options), seen[0]

    def documents(self, folder: Path, **options: Any) -> list[str | None]:
        return self.read(folder, **options)[0].filter(pl.col("rank") > 0)["doc_id"].to_list()


def test_two_retrievers_below_one_tool_are_told_and_their_names_choose_them(tmp_path: Path) -> None:
    log = Log()
    log.model()
    tool = log.tool(LIST, lasts=5)
    log.retriever(tool)
    log.retriever(tool)
    _, summary = log.read(tmp_path)
    assert "dense (inside search, which counts) 2: not a search" in str(summary)
    assert log.documents(tmp_path, tools=["dense"]) == FOUND * 2


def test_searches_of_a_sub_agent_count_although_its_answer_has_links(tmp_path: Path) -> None:
    log = Log()
    log.model()
    sub = log.tool(LINKS, name="search_agent", lasts=9)
    log.model(sub)
    log.retriever(log.tool(None, parent=sub, lasts=3))
    assert log.documents(tmp_path) == FOUND


def test_retrievers_below_a_chain_count(tmp_path: Path) -> None:
    log = Log()
    log.model()
    log.retriever(log.add("CHAIN", "search", log.agent, lasts=3, **{"output.value": LIST}))
    assert log.documents(tmp_path) == FOUND


@pytest.mark.parametrize("call", ["", "search"])
def test_a_model_beside_a_running_tool_begins_a_step_only_if_it_calls_a_tool(call: str, tmp_path: Path) -> None:
    log = Log()
    log.model()
    log.tool(LIST, lasts=2.5)
    log.model(call=call)  # writes a title, or goes on without waiting
    log.tool('[{"docid": "d1"}]')
    log.model()
    log.tool('[{"docid": "d2"}]')
    results, _ = log.read(tmp_path)
    iterations = dict(results.select("doc_id", "iteration").rows())
    assert iterations == ({"c3": 1, "c7": 1, "d1": 2, "d2": 3} if call else {"c3": 1, "c7": 1, "d1": 1, "d2": 2})


def test_a_model_after_the_tools_of_a_step_begins_the_next(tmp_path: Path) -> None:
    log = Log()
    for output in (LIST, '[{"docid": "d1"}]'):
        log.model()
        log.tool(output)
    assert log.read(tmp_path)[0]["iteration"].to_list() == [1, 1, 2]


#: The 128 bits of two traces that are one as floating-point numbers.
LONG = 100000000000000000000000000000000000007, 100000000000000000000000000000000000008


def make_numbered_spans(trace_id: int | str, *documents: str) -> list[dict[str, Any]]:
    called = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_web", "gen_ai.tool.args": '{"query": "x"}',
        "gen_ai.output": json.dumps([{"docid": name, "title": name} for name in documents]),
    }  # fmt: skip
    attributes = [{"gen_ai.operation.name": "call_llm"}, called, {"gen_ai.operation.name": "call_llm"}]

    def number(span: int) -> int | str:
        return span if isinstance(trace_id, int) else f"{span:016x}"

    return [
        {
            "name": str(of["gen_ai.operation.name"]), "parent": {"trace_id": trace_id, "span_id": number(5)},
            "context": {"trace_id": trace_id, "span_id": number(100 + k)},
            "start_time": 10**9 * (k + 1), "end_time": 10**9 * (k + 1) + 5, "attributes": of,
        }
        for k, of in enumerate(attributes)
    ]  # fmt: skip


@pytest.mark.parametrize("ids", [LONG, tuple(f"{number:032x}" for number in LONG)], ids=["numbers", "hexadecimal"])
@pytest.mark.parametrize("in_lines", [True, False])
def test_ids_of_spans_may_be_whole_numbers_of_128_bits(ids: tuple[Any, Any], in_lines: bool, tmp_path: Path) -> None:
    path, seen = tmp_path / "spans.json", list[Summary]()
    spans = [span for k, trace_id in enumerate(ids) for span in make_numbered_spans(trace_id, f"a{k}", f"b{k}")]
    path.write_text("\n".join(map(json.dumps, spans)) if in_lines else json.dumps({"spans": spans}))
    found = read_traces(path, report=seen.append)
    assert found.select("query_id", "iteration", "doc_id").rows() == [
        (f"{number:032x}", 1, name) for k, number in enumerate(LONG) for name in (f"a{k}", f"b{k}")
    ]
    assert not seen[0].unknown
