"""Decides by name whether a tool searches or opens documents, and finds the queries in the arguments of a call."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

from goodgain.errors import InputError
from goodgain.files.json_text import parse_if_json
from goodgain.options import spell

ToolPredicate = Callable[[str], bool]
#: The kinds of tools. A search of code counts only if `tools=` names it.
Decision = Literal["search", "search of code", "open", "not a search"]

#: Known tools by kind. Names are compared in lower case and without punctuation: `WebSearch` is web_search. Search tools that
#: answer in prose are included: their output is an error (unparsed or unrecorded), not a search without results.
_NAMES: dict[Decision, str] = {
    "search": """
        web_search web_search_preview google_web_search google_search browser.search web.run web__run
        tavily_search tavily_search_results_json tavily_answer tavily tavily_research firecrawl_search
        firecrawl_research_search_papers brave_search brave_web_search brave_news_search brave_local_search
        brave_place_search brave_llm_context brave_summarizer brave web_search_exa web_search_advanced_exa deep_search_exa
        people_search_exa linkedin_search_exa company_research_exa exa metaphor_search_results_json duckduckgo_search
        duckduckgo_results_json duckduckgo google_serper google_serper_results_json bing bing_search
        bing_search_results_json searx_search searx_search_results searchapi searchapi_results_json jina_search you_search
        mojeek_search dataforseo_api_search asknews_search reddit_search youtube_search
        perplexity_search perplexity_ask perplexity_research perplexity_reason
        google_scholar arxiv wikipedia wikidata pub_med wikipedia_search
        file_search local_knowledge_base_retrieval VertexAiSearchTool retriever retrieve rag_query vector_search
        query_knowledge_base search bing_grounding bing_custom_search sharepoint_grounding
    """,
    "search of code": """
        grep glob LSP grep_search search_file_content get_code_context_exa codebase_search ripgrep search_files
    """,
    # Tools that show one document or page, given by URL or id. Two are actions of hosted searches.
    "open": """
        WebFetch web_fetch fetch visit visit_webpage open_page open_url browser.open url_context get_document get_content
        get_contents read_page read_url scrape crawl browse extract download tavily_extract tavily_crawl firecrawl_scrape
        firecrawl_crawl firecrawl_extract crawling_exa web_fetch_exa web_search_call_open_page web_search_open_page
    """,
    # Tools that replace text, act inside an open page, or search for other things than documents: tools, the agent's own
    # notes, pictures, the user's mail and calendar, prices.
    "not a search": """
        find_in_page tavily_map firecrawl_map click scroll screenshot
        tool_search tool_search_tool_bm25 tool_search_tool_regex search_tools search_replace mcp_list_tools
        search_memory load_memory brave_image_search brave_video_search search_gmail messages_search events_search
        single_flight_search google_trends google_finance firecrawl_search_feedback
        Task Agent python_interpreter final_answer final_result query lookup deep_research
    """,
}
#: Ambiguous names, by their keys in the table: OpenAI's file_search finds documents, Cursor's finds names of files; code may
#: search, or compute.
_DOUBTFUL = {"filesearch", "search", "query", "lookup", "deepresearch", "pythoninterpreter"}
#: Tools that some agents call with their final answer, by their keys in the table.
_ANSWERING = {"finalanswer", "finalresult"}
#: Tools that search only if their arguments have this key: Codex's web tool also opens pages and finds text in them.
_SEARCHES_WITH = {"webrun": "search_query"}

#: A tool that the table lacks is a search if its name has a word of the first set and none of the second:
#: `fetch_search_result` opens a page, and memories are the agent's own notes.
_SEARCH_WORDS = {"search", "searches", "retrieve", "retrieves", "retriever", "retrieval"}
_OTHER_WORDS = {"visit", "fetch", "find", "memory", "memories"}
#: Any other tool opens a document if its name has a word of each set.
_OPEN_WORDS = {"fetch", "open", "visit", "read", "scrape", "browse"}
_OPENED_WORDS = {
    *("page", "pages", "webpage", "webpages", "url", "urls", "document", "documents", "link", "links"),
    *("site", "website"),
}
#: The decisions that `NAME=open` and `NAME=search` in `tools=` add.
_ADDED: dict[str, Decision] = {"open": "open", "search": "search"}

#: `mcp__brave-search__get_page`: the server's name says nothing about its tool.
_MCP_SERVER = re.compile(r"^mcp__.+?__(?=.)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SIGNS = re.compile(r"[\W_]+")

#: Names of tools that call the tool named in their arguments: `call_tool`, `execute-tool`, `use_mcp_tool`. They have words
#: of both sets and no others: `log_tool_call` and `create_tool` do something else with a tool, `run` runs programs.
_CALL_WORDS = {"call", "execute", "exec", "run", "use", "invoke", "mcp"}
_CALLED_WORDS = {
    *("tool", "tools", "function", "action", "mcp", "server", "proxy", "gateway", "remote", "dynamic", "external"),
}
#: The arguments of a proxy tool that hold the name and the arguments of the called tool.
_CALLED_KEYS = ("toolname", "tool", "functionname", "function", "actionname", "action", "name")
_PASSED_KEYS = (
    *("arguments", "args", "params", "parameters", "input"),
    *("toolinput", "toolarguments", "toolargs", "toolparams"),
)

#: Arguments that hold the query, the best first.
_QUERY_KEYS = ("queries", "query", "q", "search_query", "user_query", "search_queries", "question", "input", "keywords")
#: Values of arguments that say nothing.
_NO_VALUES: tuple[Any, ...] = (None, "", [], {})


@lru_cache(maxsize=4096)
def _normalise_name(name: str) -> str:
    """Return a tool's name as in the table of known tools: in lower case, without punctuation or the MCP server's prefix."""
    return _SIGNS.sub("", _MCP_SERVER.sub("", name).lower())


_TABLE: dict[str, Decision] = {
    _normalise_name(name): decision for decision, names in _NAMES.items() for name in names.split()
}


@lru_cache(maxsize=4096)
def decide_tool(name: str) -> Decision:
    """Return the kind of a tool from the table of known tools. If the table lacks its name, decide by the words in the name.

    >>> [decide_tool(name) for name in ("web_search", "Grep", "tool_search", "search_our_wiki", "fetch_my_page")]
    ['search', 'search of code', 'not a search', 'search', 'open']
    """
    decision = _TABLE.get(_normalise_name(name))
    if decision is not None:
        return decision

    words = _split_name(name)
    is_other = not words or words[0] == "open" or not _OTHER_WORDS.isdisjoint(words)
    if not is_other and not _SEARCH_WORDS.isdisjoint(words):
        return "search"
    if _OPEN_WORDS.isdisjoint(words) or _OPENED_WORDS.isdisjoint(words):
        return "not a search"
    return "open"


def hands_over(name: str) -> bool:
    """Return whether a tool of this name hands work to another agent. The log may lack the calls of that agent.

    >>> hands_over("transfer_to_researcher"), hands_over("task"), hands_over("create_task")
    (True, True, False)
    """
    words = _split_name(name)
    begins = words[:1] in (["handoff"], ["delegate"]) or words[:2] in (["transfer", "to"], ["hand", "off"])
    return begins or words == ["task"]


@lru_cache(maxsize=4096)
def _split_name(name: str) -> list[str]:
    return [word.lower() for run in _WORD.findall(_MCP_SERVER.sub("", name)) for word in _CAMEL.split(run)]


def is_known_tool(name: str) -> bool:
    """Return whether the table of known tools has this name. Ambiguous names, such as `query`, do not count."""
    key = _normalise_name(name)
    return key in _TABLE and key not in _DOUBTFUL


@lru_cache(maxsize=4096)
def is_search_tool(name: str) -> bool:
    """Return whether a tool of this name searches documents. Searches of code do not count.

    >>> [is_search_tool(name) for name in ("web_search", "mcp__brave-search__get_page", "searchMemories", "research")]
    [True, False, False, False]
    """
    return decide_tool(name) == "search"


def has_answer(name: str) -> bool:
    """Return whether the arguments of a tool of this name are the final answer."""
    return _normalise_name(name) in _ANSWERING


def describe_tool(name: str, *, counted: bool, opens: bool) -> str:
    """Describe how the calls of a tool were counted, for the summary."""
    if _normalise_name(name) in _DOUBTFUL:
        decision = "search" if counted else "not a search"
        return f"{decision} (some tools of this name search, others do not; {spell('tools')} decides)"
    if counted:
        return "search"
    if opens:
        return "opens a document"
    if decide_tool(name) == "search of code":
        return f"search of code, counted only if {spell('tools')} names it"
    return "not a search"


@dataclass(frozen=True)
class ChosenTools:
    """A predicate that decides by name whether a tool searches. Unlike a closure, it can be pickled for other processes."""

    decisions: dict[str, Decision]  # the tools that the caller named
    rule: ToolPredicate | None  # decides on all other tools; None: they do not search

    @property
    def is_default(self) -> bool:
        """Whether `tools=` was not given, so that the default rule decides on all tools."""
        return not self.decisions and self.rule is is_search_tool

    @property
    def has_default_rule(self) -> bool:
        """Whether the default rule decides on the tools that `tools=` does not name."""
        return self.rule is is_search_tool

    def find(self, name: str) -> Decision | None:
        """Return the kind that `tools=` gives the tool `name`, or None. `tools=` may omit the MCP server's prefix in the name."""
        if not self.decisions:
            return None
        return self.decisions.get(name) or self.decisions.get(_MCP_SERVER.sub("", name))

    def __call__(self, name: str) -> bool:
        decision = self.find(name)
        if decision is not None:
            return decision == "search"
        return self.rule is not None and self.rule(name)

    def opens(self, name: str) -> bool:
        """Return whether a tool opens documents. What the caller says about it decides; a tool that searches does not open."""
        decision = self.find(name)
        if decision is not None:
            return decision == "open"
        return decide_tool(name) == "open" and not self(name)

    def find_inner_tool(self, name: str, arguments: Any) -> tuple[str, Any] | None:
        """Return the name and the arguments of the tool that a proxy tool is asked to call.

        Return None if the tool is not a proxy, is a search, or was named by the caller.

        >>> BY_NAME.find_inner_tool("execute-tool", '{"server": "wiki", "tool_name": "search_wiki", "params": {"query": "dunes"}}')
        ('search_wiki', {'query': 'dunes'})
        """
        words = _split_name(name)
        is_other = _CALL_WORDS.isdisjoint(words) or _CALLED_WORDS.isdisjoint(words)
        if is_other or not {*words} <= _CALL_WORDS | _CALLED_WORDS or self.find(name) is not None or self(name):
            return None
        fields = parse_if_json(arguments)
        if not isinstance(fields, dict):
            return None

        values = {_normalise_name(key): value for key, value in reversed(fields.items())}
        inner_names = (values.get(key) for key in _CALLED_KEYS)
        inner_name = next((text for text in inner_names if isinstance(text, str) and text.strip()), None)
        inner_values = (parse_if_json(values[key]) for key in _PASSED_KEYS if key in values)
        inner_arguments = next((value for value in inner_values if isinstance(value, dict)), None)
        if inner_name is None or inner_arguments is None:
            return None
        return inner_name, inner_arguments

    def searches_with(self, name: str, arguments: Any) -> bool:
        """Return whether a call searches. Some known tools search only if the call has a certain argument."""
        if not self(name):
            return False
        key = _SEARCHES_WITH.get(_normalise_name(name))
        if key is None or self.rule is not is_search_tool or self.find(name) is not None:
            return True
        fields = parse_if_json(arguments)  # text that cannot be read may hold the argument
        return not isinstance(fields, dict) or bool(fields.get(key))


BY_NAME = ChosenTools({}, is_search_tool)


def make_tool_predicate(tools: ToolPredicate | Collection[str] | str | None) -> ChosenTools:
    """Return the predicate for a value of the option `tools=`: a function, one or several names, or None for the default."""
    if tools is None:
        return BY_NAME
    if callable(tools):
        return ChosenTools({}, partial(_call_predicate, tools))
    texts: list[Any] = [tools]
    if isinstance(tools, str):
        texts = [name.strip() for name in tools.split(",")]
    elif isinstance(tools, Iterable):
        texts = list(tools)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{spell('tools')} takes names of search tools, or a function that returns a bool for a name")

    # `NAME=open` and `NAME=search` each add a decision to the default; bare names replace it.
    additions = {}
    for text in texts:
        name, _, word = text.rpartition("=")
        if name and word in _ADDED:
            additions[name] = _ADDED[word]
    bare_names = [text for text in texts if text.rpartition("=")[0] not in additions]
    decisions = dict.fromkeys(bare_names, _ADDED["search"]) | additions
    return ChosenTools(decisions, None if bare_names else is_search_tool)


def _call_predicate(tools: ToolPredicate, name: str) -> bool:
    try:
        return tools(name)
    except Exception as error:
        raise InputError(f"{spell('tools')} failed with {type(error).__name__} ({error}) for {name!r}") from error


def check_tools_called(is_search: ChosenTools, called: Collection[str]) -> None:
    """If `tools=` lists all search tools, raise InputError if the logs call tools but none of the listed tools."""
    if is_search.rule is None and called and not any(map(is_search.find, called)):
        option = spell("tools", [*is_search.decisions])
        names = ", ".join(sorted(is_search.decisions))
        called_names = ", ".join(sorted(filter(None, called)))
        raise InputError(f"{option}: the logs do not call {names}, only {called_names}")


def find_unused_tools(is_search: ChosenTools, called: Collection[str]) -> list[str]:
    """Return the tools in `tools=` that no call has. If a name such as visit opens by default, its log is one without opens."""
    names = {name for tool in called for name in (tool, _MCP_SERVER.sub("", tool))}
    unused = {name: kind for name, kind in is_search.decisions.items() if name not in names}
    return [name for name, kind in unused.items() if kind == "search" or decide_tool(name) != "open"]


def extract_queries(arguments: Any) -> tuple[str, ...]:
    """Return the queries in the arguments of a call; an empty tuple if there are none."""
    return split_arguments(arguments)[0]


def split_arguments(arguments: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the queries in the arguments of a call, and the other arguments, such as the number of a page.

    Arguments without a value are left out.

    >>> split_arguments('{"query": "dam", "page": 2, "site": null}'), split_arguments("dam")
    ((('dam',), {'page': 2}), (('dam',), {}))
    """
    arguments = _parse_arguments(arguments)
    if not isinstance(arguments, dict):
        return _collect_texts(arguments), {}
    arguments = _take_keywords(arguments)
    query_key = _find_query_key(arguments)
    queries = () if query_key is None else _collect_texts(arguments[query_key])
    further = {key: value for key, value in arguments.items() if key != query_key and value not in _NO_VALUES}
    return queries, further


def _parse_arguments(arguments: Any) -> Any:
    """Return arguments in JSON text as values. Other texts are queries; a blank text is None."""
    if not isinstance(arguments, str):
        return arguments
    if arguments.lstrip().startswith(("{", "[", '"')):
        return parse_if_json(arguments)
    return arguments if arguments.strip() else None


def _take_keywords(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with those in `kwargs` beside the others, if `kwargs` has the query."""
    keywords = arguments.get("kwargs")
    if not isinstance(keywords, dict) or any(arguments.get(key) for key in _QUERY_KEYS):
        return arguments
    if not any(keywords.get(key) for key in _QUERY_KEYS):
        return arguments
    without_keywords = {key: value for key, value in arguments.items() if key != "kwargs"}
    return without_keywords | keywords


def _find_query_key(arguments: dict[str, Any]) -> str | None:
    """Return the first known key of a query that has a value. If there is none, return the key of the only argument that is a text.

    Return None if several arguments are texts.
    """
    for key in _QUERY_KEYS:
        if arguments.get(key):
            return key
    keys_of_texts = [key for key, value in arguments.items() if isinstance(value, str)]
    return keys_of_texts[0] if len(keys_of_texts) == 1 else None


def _collect_texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(text for text in value if isinstance(text, str))
    return ()
