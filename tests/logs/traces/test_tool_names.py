"""Which tools are searches: every name of tools in use has its decision, and the summary shows the decision on each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import goodgain as gg
from goodgain.logs.traces.tools import decide_tool, is_search_tool
from tests.support.notices import collect_notices

FIXTURES = Path(__file__).parent / "fixtures"
#: The names seen in logs and libraries, by what they are, written down by hand from what is known of each tool.
_NAMES = json.loads(Path(__file__).with_suffix(".json").read_text())


@pytest.mark.parametrize("tools", _NAMES["tools"], ids=lambda tools: tools["what"])
def test_every_name_in_use_has_its_decision(tools: dict[str, str]) -> None:
    names = tools["names"].split()
    for form in ("{}", "mcp__any-server__{}"):  # a server before the name changes nothing
        found = {name: decide_tool(form.format(name)) for name in names}
        assert found == dict.fromkeys(names, tools["decision"])
    upper = {name: decide_tool(name.upper()) for name in names}
    assert upper == dict.fromkeys(names, tools["decision"]), "names are compared in lower case"


def test_names_that_tools_of_both_kinds_have_have_a_decision() -> None:
    by_context = {"file_search": True, "search": True, "query": False, "lookup": False, "deep_research": False}
    assert {name: is_search_tool(name) for name in by_context} == by_context


def test_names_that_the_table_lacks_are_told_by_their_words() -> None:
    searches, opens = _NAMES["searches by words"], _NAMES["opens by words"]
    assert {name: is_search_tool(name) for name in searches} == searches
    assert {name: decide_tool(name) == "open" for name in opens} == opens


def test_a_tool_that_no_log_calls_is_an_error_that_lists_those_they_call_and_nothing_is_written(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes((FIXTURES / "jsonl" / "story.jsonl").read_bytes())
    for tools in (["web_lokup"], "web_lokup", ["a", "b"]):
        with pytest.raises(gg.InputError, match=r"the logs do not call .*, only search"):
            gg.read_traces(log, tools=tools)
    with pytest.raises(gg.InputError, match="the logs do not call"):
        gg.convert_traces(log, tmp_path / "agent.run", tools=["web_lokup"])
    assert not (tmp_path / "agent.run").exists()
    with pytest.warns(gg.GoodgainNotice, match="the logs do not call web_lokup, which tools= names"):
        results = gg.read_traces(log, tools=["search", "web_lokup"])
    assert results.height == gg.read_traces(log, tools=["search"]).height


def test_a_tool_with_open_that_no_log_calls_is_told_and_a_text_may_hold_several_names(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes((FIXTURES / "jsonl" / "story.jsonl").read_bytes())
    with pytest.warns(gg.GoodgainNotice, match="the logs do not call look_at, which tools= names"):
        results = gg.read_traces(log, tools=["look_at=open"])
    with pytest.warns(gg.GoodgainNotice, match="the logs do not call look_at, which tools= names"):
        assert gg.read_traces(log, tools="search, look_at=open").equals(results)


def test_runs_of_unnamed_logs_are_one_run_with_a_notice(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.jsonl").write_text(
            (FIXTURES / "jsonl" / "story.jsonl").read_text().replace('"query_id": "', f'"query_id": "{name}-')
        )
    with pytest.warns(gg.GoodgainNotice, match="the logs name no system, so all of them are one run"):
        gg.convert_traces([tmp_path / "old.jsonl", tmp_path / "new.jsonl"], tmp_path / "{system}.run")


@pytest.mark.parametrize(
    ("tool", "is_told"), [("task", True), ("transfer_to_researcher", True), ("handoff", True), ("create_task", False)]
)
def test_a_query_without_a_search_that_hands_work_to_another_agent_is_told(
    tool: str, is_told: bool, tmp_path: Path
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    search = {"id": "s", "type": "function", "function": {"name": "web_search", "arguments": '{"query": "x"}'}}
    for calls, with_search in (([call], False), ([call, search], True)):
        answers = [
            {"role": "tool", "tool_call_id": one["id"], "content": '[{"url": "https://a.org"}]'} for one in calls
        ]
        asked = [{"role": "user", "content": "What?"}, {"role": "assistant", "content": None, "tool_calls": calls}]
        path = tmp_path / f"{with_search}.json"
        path.write_text(json.dumps([*asked, *answers, {"role": "assistant", "content": "So."}]))
        with collect_notices() as notices:
            gg.read_traces(path)
        texts = [str(notice) for notice in notices if "hands work to another agent" in str(notice)]
        assert len(texts) == (is_told and not with_search), texts
