"""Which tools are searches: every name of tools in use has its decision, and the summary shows the decision on each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import GoodgainNotice
from goodgain.traces import Summary, read_traces
from goodgain.traces.tools import decide_tool, is_open_tool, is_search_tool
from tests.support.command import run_command

from .conftest import by_iteration
from .logs import Call, Story, Turn, docs, openai_chat

Read = Callable[..., pl.DataFrame]
FIXTURES = Path(__file__).parent / "fixtures"

#: The names seen in logs and libraries, by what they are, written down by hand from what is known of each tool.
WEB = """
    WebSearch web_search web_search_preview google_web_search google_search tavily_search tavily_search_results_json
    tavily_answer brave_search brave_web_search brave_news_search brave_local_search brave_place_search brave_llm_context
    web_search_exa web_search_advanced_exa deep_search_exa people_search_exa linkedin_search_exa company_research_exa
    metaphor_search_results_json duckduckgo_search duckduckgo_results_json google_serper google_serper_results_json
    bing_search bing_search_results_json searx_search searx_search_results searchapi searchapi_results_json jina_search
    you_search mojeek_search dataforseo_api_search asknews_search reddit_search youtube_search firecrawl_search
    firecrawl_research_search_papers perplexity_search web.run web__run webrun browser.search
    websearch tavily bing brave exa
"""
SCHOLAR = "google_scholar arxiv wikipedia wikidata pub_med wikipedia_search"
CORPUS = """
    file_search local_knowledge_base_retrieval VertexAiSearchTool retriever retrieve rag_query vector_search
    query_knowledge_base
"""
#: They search, and answer in prose: their results cannot be read, which is an error rather than a query without search.
PROSE = "perplexity_ask perplexity_research perplexity_reason tavily_research brave_summarizer"
CODE = """
    Grep Glob LSP grep_search search_file_content glob get_code_context_exa codebase_search ripgrep search_files
"""
FETCH = """
    WebFetch web_fetch fetch visit visit_webpage open_page open_url get_document tavily_extract get_content read_page
    tavily_crawl firecrawl_scrape firecrawl_crawl firecrawl_extract crawling_exa web_fetch_exa read_url scrape crawl browse
    extract download url_context browser.open
"""
#: They act inside a page that is open, or list the addresses of a site.
IN_PAGES = "find_in_page click scroll screenshot tavily_map firecrawl_map"
OTHER = """
    ToolSearch tool_search tool_search_tool_bm25 tool_search_tool_regex search_tools search_replace search_memory
    load_memory brave_image_search brave_video_search search_gmail messages_search events_search single_flight_search
    google_trends google_finance Task Agent python_interpreter final_answer final_result firecrawl_search_feedback
"""
#: Names that tools of both kinds have.
BY_CONTEXT = {"file_search": True, "search": True, "query": False, "lookup": False, "deep_research": False}


@pytest.mark.parametrize(
    ("names", "decision"),
    [
        (WEB, "search"), (SCHOLAR, "search"), (CORPUS, "search"), (PROSE, "search"), (CODE, "search of code"),
        (FETCH, "open"), (IN_PAGES, "not a search"), (OTHER, "not a search"),
    ],
)  # fmt: skip
def test_every_name_in_use_has_its_decision(names: str, decision: str) -> None:
    found = {name: decide_tool(name) for name in names.split()}
    assert found == dict.fromkeys(names.split(), decision)
    served = {name: decide_tool(f"mcp__any-server__{name}") for name in names.split()}
    assert served == dict.fromkeys(names.split(), decision), "a server before the name changes nothing"
    upper = {name: decide_tool(name.upper()) for name in names.split()}
    assert upper == dict.fromkeys(names.split(), decision), "names are compared in lower case"


def test_names_that_say_little_have_a_decision_and_the_summary_says_so(read: Read) -> None:
    assert {name: is_search_tool(name) for name in BY_CONTEXT} == BY_CONTEXT
    seen: list[Summary] = []
    read("openai_chat", [[Call(docs("d1"), tool="search"), Call("42", tool="lookup")]], report=seen.append)
    lines = str(seen[0]).splitlines()
    assert "  search 1: search (some tools of this name search, others do not; tools= decides)" in lines
    assert "  lookup 1: not a search (some tools of this name search, others do not; tools= decides)" in lines


def test_names_that_the_table_lacks_are_told_by_their_words() -> None:
    words = {
        "search_our_wiki": True, "acmeRetrieval": True, "mcp__acme-search__get_page": False, "research": False,
        "open_search": False, "find_search_results": False, "searchMemories": False, "": False, "42": False,
    }  # fmt: skip
    assert {name: is_search_tool(name) for name in words} == words
    opens = {
        "fetch_web_page": True, "openLink": True, "mcp__acme__read_document": True, "browse_site": True, "open_mail": False,
        "search_and_open_page": False, "read_file": False, "page_screenshot": False, "browser_click": False,
    }  # fmt: skip
    assert {name: is_open_tool(name) for name in opens} == opens


def test_the_summary_lists_every_tool_with_its_count_and_the_decision(read: Read) -> None:
    story = [
        [Call(docs("d1"), tool="web_search"), Call("4", tool="calculator")],
        [Call("src/a.py:1: def f", tool="Grep"), Call(docs("d2"), tool="web_search"), Call("hm", tool="WebFetch")],
        *[[Call("x", tool=f"tool_{number}")] for number in range(30)],
    ]
    seen: list[Summary] = []
    assert by_iteration(read("openai_chat", story, report=seen.append)) == [["d1"], ["d2"]]
    lines = str(seen[0]).splitlines()
    begin = lines.index("2 searches; tools by name:")
    assert lines[begin + 1 : begin + 5] == [
        "  web_search 2: search", "  calculator 1: not a search",
        "  Grep 1: search of code, counted only if tools= names it", "  WebFetch 1: opens a document",
    ]  # fmt: skip
    assert [f"  tool_{number} 1: not a search" for number in range(30)] == lines[begin + 5 : begin + 35]


def test_a_search_of_code_counts_if_it_is_named(read: Read) -> None:
    story = [[Call(docs("d1"), tool="Grep")], [Call(docs("d2"), tool="web_search")]]
    assert by_iteration(read("openai_chat", story)) == [["d2"]]
    assert by_iteration(read("openai_chat", story, tools=["Grep", "web_search"])) == [["d1"], ["d2"]]


def test_tools_whose_answers_look_like_results_are_named(read: Read) -> None:
    story = [
        [Call(docs("d1"), tool="search")],
        [Call(docs("d2", "d3"), tool="ask_the_library"), Call("nothing", tool="ask_the_library")],
        [Call([{"url": "https://a.example/1", "title": "A"}, {"url": "https://a.example/2", "title": "B"}], tool="visit")],
        [Call([{"name": "no id"}, {"name": "no URL"}], tool="list_users"), Call(["a", "b"], tool="list_names")],
    ]  # fmt: skip
    seen: list[Summary] = []
    with pytest.warns(
        GoodgainNotice, match=r"look like lists of results: ask_the_library \(1 of 2\); if they search, pass tools="
    ):
        read("openai_chat", story, report=seen.append)
    lines = str(seen[0]).splitlines()
    assert "  ask_the_library 2: not a search; 1 of its answers look like lists of results" in lines
    assert "  visit 1: opens a document; 1 of its answers look like lists of results" in lines
    assert {"  list_users 1: not a search", "  list_names 1: not a search"} <= set(lines)


def test_a_caller_who_names_the_tools_gets_no_notice_of_the_others(read: Read) -> None:
    story = [[Call(docs("d1"), tool="search")], [Call(docs("d2", "d3"), tool="ask_the_library")]]
    assert by_iteration(read("openai_chat", story, tools=["search"])) == [["d1"]]


def test_a_web_tool_that_also_opens_pages_searches_where_its_arguments_say_so(tmp_path: Path) -> None:
    story = Story([Turn([[Call(docs("d1"), tool="web__run")], [Call("a page", tool="web__run")]])])
    messages = json.loads(openai_chat(story))
    calls = [message["tool_calls"][0]["function"] for message in messages if "tool_calls" in message]
    calls[0]["arguments"] = json.dumps({"search_query": [{"q": "bm25"}]})
    calls[1]["arguments"] = json.dumps({"open": [{"ref_id": "turn0search0"}]})
    (tmp_path / "q.json").write_text(json.dumps(messages))
    assert by_iteration(read_traces(tmp_path / "q.json")) == [["d1"]]


def test_a_tool_that_no_log_calls_is_an_error_that_lists_those_they_call_and_nothing_is_written(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes((FIXTURES / "jsonl" / "story.jsonl").read_bytes())
    for tools in (["web_lokup"], "web_lokup", ["a", "b"]):
        with pytest.raises(gg.InputError, match=r"no tool in these logs is called .*; they call search"):
            gg.read_traces(log, tools=tools)
    with pytest.raises(gg.InputError, match="no tool in these logs is called"):
        gg.convert_traces(log, tmp_path / "agent.run", tools=["web_lokup"])
    assert not (tmp_path / "agent.run").exists()
    assert gg.read_traces(log, tools=["search", "web_lokup"]).height == gg.read_traces(log, tools=["search"]).height


def test_several_tools_can_be_named_with_commas(tmp_path: Path) -> None:
    log = FIXTURES / "jsonl" / "story.jsonl"
    for number, tools in enumerate((["--tools", "search, other"], ["--tools", "other", "--tools", "search"])):
        assert run_command("convert", log, "-o", tmp_path / f"{number}.run", *tools).returncode == 0
    assert (tmp_path / "0.run").read_bytes() == (tmp_path / "1.run").read_bytes() != b""


def test_runs_of_unnamed_logs_are_one_run_with_a_notice(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.jsonl").write_text(
            (FIXTURES / "jsonl" / "story.jsonl").read_text().replace('"query_id": "', f'"query_id": "{name}-')
        )
    with pytest.warns(gg.GoodgainNotice, match="the logs name no system, so all of them are one run"):
        gg.convert_traces([tmp_path / "old.jsonl", tmp_path / "new.jsonl"], tmp_path / "{system}.run")


def test_a_named_tool_that_only_an_earlier_turn_calls_is_not_an_error(tmp_path: Path) -> None:
    story = Story([Turn([[Call(docs("d1"), tool="my_find")]]), Turn([[Call("4", tool="calculator")]])])
    path = tmp_path / "story.json"
    path.write_text(openai_chat(story))
    with pytest.warns(GoodgainNotice, match="turns='searching'"):
        assert read_traces(path, tools=["my_find"]).get_column("doc_id").to_list() == [None]
    assert read_traces(path, tools=["my_find"], turns="searching").get_column("doc_id").to_list() == ["d1"]
