"""Finds tool calls and answers in any JSON by the keys of objects."""

import re
from collections.abc import Callable, Collection
from typing import Any

from msgspec import Struct, field

from goodgain.errors import InputError
from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.replaced_branches import find_replaced
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered
from goodgain.logs.traces.expected_values import format_place, id_or_none, object_or_empty, objects_in
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import UNANSWERED, ToolCall, Trace
from goodgain.logs.traces.tool_outputs.outcomes import is_nothing_found
from goodgain.logs.traces.tool_outputs.readers import read_output
from goodgain.logs.traces.tool_outputs.result_objects import normalise_key, normalise_keys
from goodgain.logs.traces.tool_outputs.service_answers import LIST_KEYS, unwrap_langchain
from goodgain.logs.traces.tool_outputs.text_lists import is_url
from goodgain.logs.traces.tool_outputs.unread_lists import find_question_in
from goodgain.options import spell

#: Keys of calls and answers in order of preference, in lower case and without punctuation.
_TOOLS = ("toolname", "tool", "functionname", "function", "name", "action")
_ARGUMENTS = (
    *("args", "arguments", "input", "parameters", "params", "actioninput", "toolinput", "toolargs", "toolarguments"),
    *("kwargs", "query", "queries", "searchquery"),
)
_OUTPUTS = (
    *("results", "documents", "result", "output", "observation", "observations", "tooloutput", "toolresult"),
    *("toolresponse", "toolreturn", "response", "content"),
)
#: Keys of a tool's whole output, beside the text that the model got.
_RAW_OUTPUTS = ("rawoutput",)
_CALL_IDS = ("toolcallid", "tooluseid", "callid", "functioncallid", "invocationid")
_IDS = (*_CALL_IDS, "id", "runid")
_ERRORS = ("error", "iserror", "errormessage", "toolerror")
#: Keys with the type of an object, and normalised types of answers and calls.
KINDS = ("type", "event", "kind", "role", "from")
_ANSWER = re.compile(
    r"(on)?(tool|function)?(call)?(result|response|output|return|end|finished|observation)s?|tool|function"
)
_CALL = re.compile(r"(on)?(tool|function)(call|use|start|request|invocation)s?")
#: Keys for the output of the calls inside an object.
_BESIDE = tuple(name for name in _OUTPUTS if name not in ("content", "response"))
_AGENTS = {"assistant", "assistantmessage", "ai", "aimessage", "agent", "agentmessage", "model", "bot", "gpt"}
_USERS = {"user", "usermessage", "human", "humanmessage"}
#: Fields with the question of a record. They are never arguments of a call.
ASKED = ("question", "user_query")
_PIECE = re.compile("chunk|delta|partial")
_TEXTS = ("content", "text", "message", "value")
_JSON_FIELDS = {"data", "payload", "body", "event", "record", "trace", "trajectory", "messages", "steps", "toolcalls"}
#: A tool name: one line of at most 80 characters.
_NAME = re.compile(r"(?=.{1,80}$).*\S.*")
_EVENT = re.compile(r"on_(tool|retriever|chat_model|llm|chain|prompt|parser)_(start|stream|end|error)")

Object = dict[str, Any]
#: The keys and positions that lead to a value.
Place = tuple[str | int, ...]
Holders = tuple[tuple[Place, Object], ...]


class Found(Struct):
    """What `CallFinder` finds: a call, an answer, a text of the user, or traces that a known format's reader has read."""

    place: Place
    holders: Holders  # the objects around the value, and the value if it is an object; the outermost first
    call: ToolCall | None = None
    ids: dict[str, str] = field(default_factory=dict)  # by key: the id of a call, and ids that an answer refers to
    is_sure: bool = False  # a type, an id or an output shows that the object is a call or an answer
    is_apart: bool = False  # another object holds the answer to the call
    tool: str | None = None  # the tool that an answer names
    output: Any = UNANSWERED  # of an answer
    failed: bool = False
    perhaps: str = ""  # the key that may hold the output of an answer
    unsure_output: Any = None  # the value under the key that may hold the output of the call or answer
    forms: list[Any] = field(default_factory=list)  # the forms of all records of the call
    content: bytes = b""  # the tool and arguments of an open call
    number: int = 0  # of the open call, in the order of the log
    text: str | None = None  # of the user; empty: the agent spoke
    traces: list[Trace] = field(default_factory=list)
    query: Any = None  # identifies the query; None: unknown


class _Fields:
    """The fields of an object, found by normalised keys: in lower case and without punctuation."""

    def __init__(self, item: Object) -> None:
        self.item = item
        self.keys = {name: key for key, name in reversed(normalise_keys(tuple(item)))}

    def select(self, names: Collection[str]) -> list[tuple[str, Any]]:
        """Return (key as written, value) of each field that `names` names, in the order of `names`."""
        return [(self.keys[name], self.item[self.keys[name]]) for name in names if name in self.keys]

    def find(self, names: Collection[str]) -> tuple[str | None, Any]:
        """Return the first key whose value is not null, and this value. If all values are null, return the first key and None."""
        held = self.select(names)
        first = held[0] if held else (None, None)
        return next((pair for pair in held if pair[1] is not None), first)

    @property
    def kind(self) -> str:
        """The normalised type of the object (`toolresult`), under the first of `KINDS` that holds text; empty if none does."""
        kinds = (normalise_key(value) for key in KINDS if isinstance(value := self.item.get(key), str))
        return next(filter(None, kinds), "")

    @property
    def tool(self) -> str | None:
        names = (value.get("name") if isinstance(value, dict) else value for _, value in self.select(_TOOLS))
        return next((name for name in names if isinstance(name, str) and _NAME.fullmatch(name)), None)

    def ids(self, names: Collection[str] = _IDS) -> dict[str, str]:
        """Return the ids under the keys `names`, by normalised key."""
        ids = {name: id_or_none(self.item[self.keys[name]]) for name in names if name in self.keys}
        return {name: text for name, text in ids.items() if text}

    @property
    def failed(self) -> bool:
        """Whether the object reports an error. A message such as "nothing found" is not an error."""
        error = self.find(_ERRORS)[1]
        return error not in (None, "", False, {}, []) and not (isinstance(error, str) and is_nothing_found(error))


class CallFinder:
    """Finds tool calls and their answers in parsed JSON.

    `locate` converts a place to text. `read_known` returns the traces of a value, or None if no known format reads the value.
    """

    def __init__(
        self, source: Source, locate: Callable[[Place], str], read_known: Callable[[Any, Place], list[Trace] | None]
    ) -> None:
        self._locate = locate
        self._read_known = read_known
        self._summary = source.summary
        self._is_search = source.is_search
        self._is_named = not source.is_search.is_default
        self._takes_lists = False

    def find_with_lists(self, value: Any) -> list[Found]:
        """Find calls and, as calls of searches, the lists whose keys `tools=` names."""
        self._takes_lists = True
        return self.find(value)

    def find(self, value: Any, place: Place = (), holders: Holders = ()) -> list[Found]:
        """Return the calls, answers, texts and known traces in an object or a list, in the order of the log."""
        if isinstance(value, dict):
            holders = (*holders, (place, value))
        if (traces := self._read_known(value, place)) is not None:
            return [Found(place, holders, traces=traces)]
        if isinstance(value, dict):
            lists = self._find_named_lists(value, place, holders) if self._takes_lists else []
            if not lists:
                return self._find_in_object(_Fields(value), place, holders)

            keys_of_lists = {list_event.call.tool for list_event in lists if list_event.call}
            other_fields = _Fields({key: inner for key, inner in value.items() if key not in keys_of_lists})
            events = self._find_in_object(other_fields, place, holders)
            if other_fields.kind in _USERS:  # the user's text comes first: it begins the turn of these searches
                return [*events, *lists]
            return [*lists, *events]

        replaced = find_replaced(value)
        if replaced:
            at = format_place(self._locate((*place, replaced[0])))
            self._summary.count("replaced_messages", at, len(replaced))

        skipped = set(replaced)
        members = [(index, member) for index, member in enumerate(_read_events(value)) if index not in skipped]
        return [event for index, member in members for event in self._find_inner(member, (*place, index), holders)]

    def _find_named_lists(self, holder: Object, place: Place, holders: Holders) -> list[Found]:
        """Return a call for each list, or object with results, whose key `tools=` names."""
        question = next(filter(None, (find_question_in(around) for _, around in reversed(holders))), "")
        # A query beside a list is an argument of the search, but a question is that of a record around the search.
        is_record = any(isinstance(holder.get(name), str) for name in ASKED)
        lists: list[Found] = []
        for key, value in holder.items():
            if self._is_search.find(key) == "search" and (isinstance(value, list) or _holds_results(value)):
                output = _read_texts(value) if isinstance(value, list) else value
                call = ToolCall(key, self._locate((*place, key)), output=output, is_search=True)
                call.queries = (question,) if question else ()
                at = (*place, key) if is_record else place
                lists.append(Found(at, holders, call, is_sure=True))
        return lists

    def _find_inner(self, value: Any, place: Place, holders: Holders) -> list[Found]:
        """Find events in a field's value, or in a list's member. Parse JSON text only under `_JSON_FIELDS`; other text has none."""
        if isinstance(value, str) and value.startswith(("{", "[")) and normalise_key(str(place[-1])) in _JSON_FIELDS:
            value = parse_if_json(value)
        if isinstance(value, (dict, list)):
            return self.find(value, place, holders)
        return []

    def _find_fields(
        self, own: _Fields, skipped: Collection[str | None], place: Place, holders: Holders
    ) -> list[Found]:
        """Find events inside the fields of an object, except the fields `skipped`."""
        unread = ((key, value) for key, value in own.item.items() if key not in skipped)
        return [event for key, value in unread for event in self._find_inner(value, (*place, key), holders)]

    def _find_in_object(self, own: _Fields, place: Place, holders: Holders) -> list[Found]:
        """Return what an object is, followed by the events inside it.

        An object is a text of the user, a call (a tool with arguments), an answer (an output with an id, a tool or the type of
        an answer), or a text of the agent. Any other object is only searched.
        """
        item = own.item
        at = self._locate(place)
        tool = own.tool
        if _PIECE.search(own.kind):
            return []  # the whole call comes later

        # `key` leads to an inner object with the arguments of the call, and perhaps with its output.
        fields, key = _find_call_fields(own)
        arguments_key, arguments = fields.find(_ARGUMENTS)
        if isinstance(arguments, dict) and "properties" in arguments:
            return []  # the definition of a tool

        output_key, output = own.find(_OUTPUTS)
        if output_key is None and fields is not own:
            output_key = key
            output = fields.find(_OUTPUTS)[1]

        says_answer = _ANSWER.fullmatch(own.kind) is not None
        names_call = bool(own.ids(_CALL_IDS))
        if own.kind in _USERS:
            return self._read_user(own, place, holders)
        if tool is not None and arguments_key is not None:
            call_id = next(iter(own.ids().values()), None)
            call = ToolCall(tool, at, call_id, arguments, failed=own.failed)
            _set_output(call, output, own, (arguments_key, key))
            inner = self._find_inside_call(own, call, (arguments_key, key), (output_key, output), place, holders)
            is_listed = len(place) > 1 and normalise_key(str(place[-2])) == "toolcalls"
            has_mark_of_call = is_listed or _CALL.fullmatch(own.kind) is not None or "id" in own.keys
            is_sure = names_call or call.answered or has_mark_of_call
            request = Found(place, holders, call, own.ids(), is_sure, is_apart=not call.answered)
            request.unsure_output = item.get(call.perhaps)
            return [request, *inner]
        if output_key is not None and (says_answer or names_call or tool is not None):
            is_sure = says_answer or names_call
            answer = Found(place, holders, ids=own.ids(), is_sure=is_sure, tool=tool, failed=own.failed)
            answer.output = mark_unanswered(output)
            return [answer, *self._find_fields(own, [output_key] if is_sure else [], place, holders)]
        if says_answer and own.ids() and (perhaps := _find_perhaps(own, ())):
            answer = Found(place, holders, ids=own.ids(), is_sure=True, tool=tool, perhaps=perhaps)
            answer.unsure_output = item.get(perhaps)
            return [answer, *self._find_fields(own, [], place, holders)]

        output_key, output = own.find(_BESIDE)
        inner = self._find_fields(own, [output_key], place, holders)
        makes_no_call = own.kind in _AGENTS and not inner
        if makes_no_call and any(isinstance(item.get(key), str) and item[key] for key in _TEXTS):
            return [Found(place, holders, text="")]  # the agent spoke
        return inner + self._answer_inner_calls(output, (*place, output_key or ""), inner, holders)

    def _read_user(self, own: _Fields, place: Place, holders: Holders) -> list[Found]:
        """Return the text of the user, followed by the events in the object: an answer of a tool may be in the user's name."""
        text_key, text = own.find(_TEXTS)
        skipped = [text_key] if isinstance(text, str) else []
        spoken = Found(place, holders, text=message_text(text))
        return [spoken, *self._find_fields(own, skipped, place, holders)]

    def _find_inside_call(
        self, own: _Fields, call: ToolCall, read: tuple[str, str | None], output: tuple[str | None, Any], place: Place,
        holders: Holders,
    ) -> list[Found]:  # fmt: skip
        """Return the calls inside a call. Raise an InputError for a search inside a search, or inside the output of a tool.

        `read` holds the key of the arguments, and the key of the inner object with the arguments (or None).
        """
        output_key, value = output
        is_search = self._is_search(call.tool)
        skipped = [*read, output_key if is_search else None]
        inner = self._find_fields(own, skipped, place, holders)
        if output_key is not None and not is_search and not self._is_named:
            is_in_inner_object = output_key == read[1]
            events = self._find_inner(value, (*place, output_key), holders) if is_in_inner_object else inner
            self._check_output(call, (*place, output_key), events)

        calls = [event.call for event in inner if event.call]
        inside = next((inner_call for inner_call in calls if self._is_search(inner_call.tool)), None)
        if inside is not None and is_search:
            twice = f"{call.at}: the search {call.tool} contains the search {inside.tool} ({inside.at})"
            raise InputError(f"{twice}; use {spell('tools')} to name the search that counts")
        return inner

    def _check_output(self, call: ToolCall, place: Place, events: list[Found]) -> None:
        """Raise an InputError if a tool's output contains a search call. The call may be a subagent's, or part of a quoted text."""
        for event in events:
            is_inside = event.place[: len(place)] == place
            if is_inside and event.call is not None and self._is_search(event.call.tool):
                raise InputError(
                    f"{call.at}: the output of {call.tool} contains a call of {event.call.tool} ({event.call.at}). If an agent "
                    f"made this call, name the search tools with {spell('tools')}"
                )

    def _answer_inner_calls(self, output: Any, place: Place, inner: list[Found], holders: Holders) -> list[Found]:
        """Give `output` to the unanswered call, or its items to as many unanswered calls. Else look for calls in `output`."""
        waiting = [event for event in inner if event.call is not None and not event.call.answered]
        answers = output if isinstance(output, list) and len(waiting) > 1 else [output]
        if not waiting or output is None or len(answers) != len(waiting):
            return self._find_inner(output, place, holders)
        for event, answer in zip(waiting, answers, strict=True):
            assert event.call is not None
            event.call.output = answer
            event.is_sure = True
            event.is_apart = len(waiting) > 1
        return []


def _set_output(call: ToolCall, output: Any, own: _Fields, read: tuple[str | None, ...]) -> None:
    """Set the output of a call. If there is a raw output too, it replaces the output, which becomes the spare one.

    Without an output, `call.perhaps` names the key that may hold it. `read` holds keys that are read already.
    """
    call.output = mark_unanswered(output)
    call.remedy = "no key that goodgain knows holds its answer"
    call.perhaps = _find_perhaps(own, read)
    raw = own.find(_RAW_OUTPUTS)[1]
    if call.answered and isinstance(raw, (dict, list)):  # the output is the text for the model
        call.spare = call.output
        call.output = raw


def _holds_results(value: Any) -> bool:
    """Return whether an object holds results in a known layout."""
    if not isinstance(value, dict):
        return False
    try:
        return bool(read_output(value, "").results)
    except InputError:
        return False


def _read_texts(members: list[Any]) -> list[Any]:
    """Return texts as results: passages if a text has a space, else ids. Return URLs and other lists unchanged."""
    are_texts = bool(members) and all(isinstance(member, str) for member in members)
    if not are_texts or any(map(is_url, members)):
        return members
    name = "snippet" if any(" " in member for member in members) else "doc_id"
    return [{name: member} for member in members]


def _find_call_fields(own: _Fields) -> tuple[_Fields, str | None]:
    """Return the fields of a call, and the key of the inner object that holds them. The key is None without an inner object.

    Example of an inner object: `{"tool": "search", "state": {"input": ..., "output": ...}}`.
    """
    if own.tool is None or own.find(_ARGUMENTS)[0] is not None or _ANSWER.fullmatch(own.kind):
        return own, None
    named = own.find(_TOOLS)[1]
    for key, value in own.item.items():
        if isinstance(value, dict):
            inner = _Fields(value)
            if (inner.tool is None or value is named) and inner.find(_ARGUMENTS)[0] is not None:
                return inner, key
    return own, None


def _find_perhaps(own: _Fields, read: Collection[str | None]) -> str:
    """Return the first unread key that may hold the output of the tool, else an empty text."""
    held = ((key, value) for key, value in own.select(LIST_KEYS) if key not in read)
    return next((key for key, value in held if value and isinstance(value, (list, dict, str))), "")


def find_opening(value: Any) -> str:
    """Return the user's text at the beginning of a list of messages. Only system messages may precede the text."""
    texts = []
    for item in objects_in(value):
        kinds = {normalise_key(kind) for key in KINDS if isinstance(kind := item.get(key), str)}
        if kinds & _USERS:
            texts.append(message_text(_Fields(item).find((*_TEXTS, "parts"))[1]))
        elif texts or not kinds & {"system", "systemmessage", "developer"}:
            break
    return "\n".join(filter(None, texts))


def _read_events(members: list[Any]) -> list[Any]:
    """Replace the events of LangChain's `astream_events` with calls and answers. Return other lists unchanged.

    A call and its answer have the same run id. Calls below a tool are in `children` of the tool. A retriever below a tool
    replaces the tool. Events of models and chains only repeat calls, and become None.
    """
    events = {
        index: event_kind
        for index, member in enumerate(members)
        if (event_kind := _read_event_kind(member)) is not None
    }
    calls = {
        index: (subject, stage)
        for index, (subject, stage) in events.items()
        if subject in ("tool", "retriever") and stage != "stream"
    }
    if not calls:
        return members

    tools = {members[index]["run_id"] for index, (what, _) in calls.items() if what == "tool"}
    above: dict[int, list[str]] = {}  # the tools above each call, the outermost first
    for index in calls:
        runs = members[index].get("parent_ids")
        parents = runs if isinstance(runs, list) else []
        above[index] = [run for run in parents if isinstance(run, str) and run in tools]

    replaced = {run for index, runs in above.items() if calls[index][0] == "retriever" for run in runs[-1:]}
    merged: list[Any] = [None if index in events else member for index, member in enumerate(members)]
    begun: dict[Any, Any] = {}

    for index, (_, stage) in calls.items():
        run = members[index]["run_id"]
        data = members[index]["data"]
        if run in replaced:
            continue
        call = {key: value for key, value in members[index].items() if key not in ("event", "data")}
        if run in begun:
            call["type"] = "tool_result"
        else:
            call |= {"type": "tool_call", "input": data.get("input") or {}}
        if stage != "start":
            call["output"], call["error"] = _read_event_output(data)
        begun.setdefault(run, call)
        holder = next((begun[parent] for parent in reversed(above[index]) if parent in begun), None)
        if holder is None:
            merged[index] = call
        else:
            holder.setdefault("children", []).append(call)

    return merged


def _read_event_kind(member: Any) -> tuple[str, str] | None:
    """Return the subject (such as `tool`) and the stage (such as `start`) of a LangChain event. Return None for other values."""
    if not isinstance(member, dict) or not isinstance(member.get("data"), dict):
        return None
    match = _EVENT.fullmatch(event) if isinstance(event := member.get("event"), str) else None
    if match and isinstance(member.get("run_id"), str):
        return (match[1], match[2])
    return None


def _read_event_output(data: dict[str, Any]) -> tuple[Any, Any]:
    """Return the output of an event and its error, or None for no error. The output may be a message that wraps a tool's output."""
    if (error := data.get("error")) is not None:
        return "", error
    output = data.get("documents") if data.get("output") is None else data["output"]
    message = unwrap_langchain(object_or_empty(output))
    if message.get("type") != "tool":
        return output, None
    content = message.get("content")
    return message.get("artifact") or content, content if message.get("status") == "error" else None
