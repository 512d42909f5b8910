"""What other programs write when they import the logs of agents: Inspect Scout's database and VibeLens' trajectories (ATIF)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import goodgain as gg

pytest.importorskip("inspect_scout", reason="Inspect Scout is not installed here: make test-hosts")
pytest.importorskip("vibelens.models", reason="VibeLens is not installed here: make test-hosts")

import inspect_scout as scout
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser
from inspect_ai.tool import ToolCall
from inspect_scout.sources import claude_code
from vibelens.ingest.parsers import ClaudeParser, CodexParser

pytestmark = pytest.mark.filterwarnings("ignore")

LOGS = Path(__file__).parents[1] / "logs" / "traces" / "fixtures"


def _search(number: int, query: str, urls: list[str]) -> list[Any]:
    call = ToolCall(id=f"call-{number}", function="web_search", arguments={"query": query})
    results = json.dumps([{"url": url, "title": url[-1]} for url in urls])
    return [
        ChatMessageAssistant(content="", tool_calls=[call]),
        ChatMessageTool(content=results, tool_call_id=call.id, function=call.function),
    ]


def _make_transcript(task_id: str, repeat: int, searches: list[list[str]]) -> Any:
    messages: list[Any] = [ChatMessageUser(content=f"What is {task_id}?")]
    for number, urls in enumerate(searches, start=1):
        messages += _search(number, f"{task_id} {number}", urls)
    messages.append(ChatMessageAssistant(content="Done."))
    return scout.Transcript(
        transcript_id=f"{task_id}-{repeat}", source_type="test", source_id="1", task_id=task_id, task_repeat=repeat,
        model="a-model", messages=messages,
    )  # fmt: skip


def test_the_database_that_inspect_scout_writes_has_every_search_and_its_urls(tmp_path: Path) -> None:
    found = {
        ("q1", 1): [["https://a.example/1", "https://a.example/2"], ["https://a.example/3"]],
        ("q1", 2): [["https://a.example/4"]],
        ("q2", 1): [],
    }
    transcripts = [_make_transcript(*key, searches) for key, searches in found.items()]

    async def write() -> None:
        async with scout.transcripts_db(str(tmp_path / "db")) as database:
            await database.insert(transcripts)

    asyncio.run(write())
    results = gg.read_traces(tmp_path / "db")
    urls_read: dict[tuple[str, int], list[list[str]]] = {}
    for row in results.sort("query_id", "replicate", "iteration", "rank").iter_rows(named=True):
        searches = urls_read.setdefault((row["query_id"], int(row["replicate"])), [])
        if row["iteration"] > len(searches):
            searches.append([])
        if row["url"] is not None:
            searches[-1].append(row["url"])
    assert urls_read == found


def _import_claude_code(records: list[Any], folder: Path) -> tuple[Path, Path]:
    """Write a session of Claude Code, and import it with Inspect Scout. Return both."""
    session = folder / "project" / "session.jsonl"
    session.parent.mkdir()
    session.write_text("\n".join(map(json.dumps, records)))

    async def write() -> None:
        transcripts = [transcript async for transcript in claude_code(path=str(session.parent))]
        async with scout.transcripts_db(str(folder / "db")) as database:
            await database.insert(transcripts)

    asyncio.run(write())
    return session, folder / "db"


def _read_session() -> list[Any]:
    """Return the records of a session, without those of its subagent."""
    lines = (LOGS / "claude_code" / "session.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if not record.get("isSidechain")]


def _make_session(searches: int) -> list[Any]:
    """Return the records of a session with searches one after another."""
    first = next(record for record in _read_session() if record["type"] == "user")
    contents: list[tuple[str, Any]] = [("user", "Why do dunes move?")]
    for number in range(1, searches + 1):
        links = [{"title": f"Page {number}{rank}", "url": f"https://a.example/{number}{rank}"} for rank in (1, 2)]
        call = {"type": "tool_use", "id": f"c{number}", "name": "WebSearch", "input": {"query": f"dunes {number}"}}
        text = f'Web search results for query: "dunes {number}"\n\nLinks: {json.dumps(links)}'
        answer = {"type": "tool_result", "tool_use_id": f"c{number}", "content": text}
        contents += [("assistant", [call]), ("user", [answer])]
    contents.append(("assistant", [{"type": "text", "text": "The wind."}]))

    records = []
    for number, (role, content) in enumerate(contents):
        message = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"m{number}", "model": "a-model", "type": "message"}
        parent = None if number == 0 else f"u{number - 1}"
        records.append({**first, "type": role, "uuid": f"u{number}", "parentUuid": parent, "message": message})
    return records


def test_a_session_of_claude_code_in_the_database_of_inspect_scout_has_the_results_of_the_log(tmp_path: Path) -> None:
    session, database = _import_claude_code(_make_session(searches=3), tmp_path)
    columns = ["iteration", "search", "rank", "url", "title", "search_query"]
    direct = gg.read_traces(session).select(columns)
    assert direct.height == 6
    assert gg.read_traces(database).select(columns).equals(direct)


def test_inspect_scout_loses_the_answers_of_parallel_calls(tmp_path: Path) -> None:
    session, database = _import_claude_code(_read_session(), tmp_path)
    assert gg.read_traces(session).height == 6
    with pytest.raises(gg.InputError, match="the search with 'WebSearch' was made, but its output is not in the log"):
        gg.read_traces(database, turns="joined")


def _export(parser: Any, log: Path, folder: Path) -> Path:
    """Write what VibeLens exports for a session."""
    exported = folder / f"{log.parent.name}.json"
    exported.write_text(json.dumps([one.model_dump(mode="json") for one in parser.parse(log)]))
    return exported


def test_a_session_of_claude_code_that_vibelens_exports_has_the_results_of_the_log(tmp_path: Path) -> None:
    log = LOGS / "claude_code" / "story.jsonl"
    columns = ["iteration", "search", "rank", "doc_id", "url", "title", "search_query"]
    exported = gg.read_traces(_export(ClaudeParser(), log, tmp_path)).select(columns)
    assert len(exported) > 5
    assert exported.equals(gg.read_traces(log).select(columns))


def test_summaries_and_subagents_in_a_trajectory_of_vibelens_begin_no_turn(tmp_path: Path) -> None:
    """The mark of a summary is lost in the trajectory, but not its first words."""
    text = (LOGS / "claude_code" / "session.jsonl").read_text()
    began = "This session is being continued from a previous conversation that ran out of context."
    log = tmp_path / "session.jsonl"
    log.write_text(text.replace("This session goes on from an earlier one.", began))
    columns = ["rank", "url", "search_query"]
    exported = gg.read_traces(_export(ClaudeParser(), log, tmp_path)).select(columns)
    assert began in log.read_text()
    assert len(exported) == 6
    assert exported.equals(gg.read_traces(log).select(columns))


@pytest.mark.filterwarnings("default")
def test_a_rollout_of_codex_that_vibelens_exports_lacks_searches_and_a_notice_says_so(tmp_path: Path) -> None:
    exported = _export(CodexParser(), LOGS / "codex" / "rollout.jsonl", tmp_path)
    with pytest.warns(gg.GoodgainNotice, match="may lack its web searches"):
        gg.read_traces(exported)
