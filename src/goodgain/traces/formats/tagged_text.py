"""Tagged text: Search-R1, ZeroSearch, StepSearch, ReSearch, R1-Searcher, Search-o1, Tongyi and WebDancer (`<tool_call>`).

Each search in tags is a step; so is an assistant message with `<tool_call>`. A trace is one turn. Tags in system and user
prompts are examples and not calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from goodgain.files.json_text import NotJSONError, loads
from goodgain.traces.conversations.conversation import (
    Conversation,
    find_message_key,
    find_messages,
    find_record_id,
    has_messages,
    is_message_list,
    message_text,
)
from goodgain.traces.conversations.tag_dialects import DIALECTS, NOTES, Dialect, find_dialect, set_found
from goodgain.traces.input.checks import as_word, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import ToolCall, Trace

#: The calls and responses of Tongyi and WebDancer; the last one may be cut off by a limit on tokens.
_CALL = re.compile(r"<tool_call>(?P<call>.*?)(?:</tool_call>|\Z)", re.DOTALL)
_RESPONSE = re.compile(r"\s*<tool_response>(.*?)</tool_response>", re.DOTALL)
_RESPONSES = re.compile(r"<tool_response>(.*)</tool_response>|<tool_response>(.*)\Z", re.DOTALL)
_NEXT_RESPONSE = re.compile(r"</tool_response>\s*<tool_response>")
_QUERY_TAGS = {dialect.query: None for dialect in DIALECTS}
_FOUND_TAGS = [dialect.found for dialect in DIALECTS]
_RESULT_TAGS = re.compile(
    "|".join(
        f"{re.escape(begin)}.*?{re.escape(end)}"
        for begin, end in [*_FOUND_TAGS, ("<tool_response>", "</tool_response>")]
    ),
    re.DOTALL,
)
_CALL_TAGS = re.compile(
    "|".join(f"(?:{re.escape(begin)}.{{0,10000}}?{re.escape(end)})" for begin, end in _QUERY_TAGS) + "|<tool_call>",
    re.DOTALL,
)

#: A text of these dialects has at least one of these tags.
_KNOWN_TAGS = re.compile(r"<(?:search|tool_call|answer|think|\|begin_(?:of|search)_query\|)>|\\boxed\{")
#: Tags of other dialects around a search or what it found.
_OTHER_TAG = re.compile(
    r"<(?:\|\w{0,20}(?:search|query|documents?)\w{0,20}\||\w{0,20}(?:search|query|retriev)\w{0,20}|result)>"
)
_EXPECTED = "tags of a known dialect, such as <search> and <information>, or <tool_call> and <tool_response>"
_MESSAGE_FIELDS = {"role", "content", "reasoning_content"}

#: The marks of who speaks in chat templates (ChatML, Llama 3).
_SPEAKER = re.compile(r"<\|im_start\|>(\w+)[ \t]*\n?|<\|start_header_id\|>(\w+)<\|end_header_id\|>\s*")
_END = re.compile(r"<\|(?:im_end|eot_id|end_of_text|endoftext)\|>")
#: The prompt of Search-R1, for texts without a chat template's mark between prompt and answer.
_PROMPT = re.compile(
    r"\s*(?:Answer the (?:given )?question\b|You (?:are|must|can)\b).{0,8000}?Question:[^\n]*\n", re.DOTALL
)

#: Fields that hold a whole tagged text, the best first.
_TEXT_FIELDS = (
    "text",
    "response",
    "output",
    "completion",
    "generated_text",
    "prediction",
    "trajectory",
    "sequence",
    "full_response",
    "rollout",
    "sequences_str",
    "solution_str",
    "gen_text_store",
    "Output",
)
#: The tool's name in a call that is not quite JSON.
_NAME = re.compile(r"""["']?name["']?\s*:\s*["']([^"'\n]{1,200})["']""")


def sniff(head: FileHead) -> bool:
    """Return whether an assistant's message, or a text, has a search or a call in tags."""
    if head.kind == "text":
        return any(
            _CALL_TAGS.search(speech) for speaker, speech in _split_speeches(head.text) if speaker == "assistant"
        )
    return any(_is_tagged(record) for record in head.conversations)


def _is_tagged(record: Any) -> bool:
    if has_messages(record, _has_structured_calls):
        return False
    if has_messages(record, _is_tagged_message):
        return True
    return (
        isinstance(record, dict)
        and "messages" not in record
        and any(_has_tagged_text(record, key) for key in _TEXT_FIELDS)
    )


def _has_tagged_text(record: dict[str, Any], key: str) -> bool:
    text = record.get(key)
    return isinstance(text, str) and any(
        _CALL_TAGS.search(speech) for speaker, speech in _split_speeches(text) if speaker == "assistant"
    )


def _is_tagged_message(message: dict[str, Any]) -> bool:
    content = message.get("content")
    if not isinstance(content, str):
        return False
    if message.get("role") == "user":
        return content.lstrip().startswith("<tool_response>")
    return message.get("role") == "assistant" and _CALL_TAGS.search(content) is not None


def _has_structured_calls(message: dict[str, Any]) -> bool:
    """Return whether a message has its calls in fields of their own: then it is of another format."""
    return bool(message.get("tool_calls")) or as_word(message.get("role")) in ("tool", "function") or "type" in message


def independent(_: FileHead) -> bool:
    """Return True: each line of a JSON Lines file is a trace of its own."""
    return True


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace an object or, in a text, one from each system prompt to the next."""
    if source.head.kind != "text":
        yield from source.traces(lambda value, at: _read_record(source, value, at), is_one=is_message_list)
        return
    text = source.text()
    for start, speeches in _split_conversations(text):
        line = text.count("\n", 0, start) + 1
        place = f"{source.path}, line {line}, at "
        yield from source.read_numbered(lambda value, at: _read_speeches(source, value, at), speeches, place)


def _read_record(source: Source, value: Any, at: str) -> Trace:
    if isinstance(value, dict) and find_message_key(value) is None:
        key = next((key for key in _TEXT_FIELDS if _has_tagged_text(value, key)), None)
        key = key or next((key for key in _TEXT_FIELDS if isinstance(value.get(key), str)), None)
        if key is None:
            raise unexpected_value(at, f"messages, or a tagged text under {', '.join(_TEXT_FIELDS)}", value)
        trace = _read_speeches(source, list(_split_speeches(value[key])), f"{at}/{key}")
        trace.record = value
        trace.query_id = find_record_id(value)
        return trace
    messages, messages_at = find_messages(value, at)
    reader = _SpeechReader(source)
    for index, message in enumerate(messages):
        message_at = f"{messages_at}/{index}"
        role = expect_text(expect_object(message, message_at).get("role"), f"{message_at}/role")
        source.check_fields(message, _MESSAGE_FIELDS, message_at, of="a message", expected=_EXPECTED)
        content = message.get("content")
        if not isinstance(content, str):
            raise unexpected_value(f"{message_at}/content", "text", content)
        reader.read(role, message_text(content), message_at)
    return reader.conversation.trace(at, value)


def _read_speeches(source: Source, speeches: list[tuple[str, str]], at: str) -> Trace:
    reader = _SpeechReader(source)
    for speaker, text in speeches:
        reader.read(speaker, text, at)
    if not any(speaker == "assistant" and _KNOWN_TAGS.search(text) for speaker, text in speeches):
        source.not_understood("a text without a tag that is known", at, _EXPECTED)
    return reader.conversation.trace(at)


def _find_speaker_marks(text: str) -> list[re.Match[str]]:
    """Return the chat template's marks of who speaks, except those inside results: pages may hold such marks."""
    return list(_SPEAKER.finditer(_RESULT_TAGS.sub(lambda found: " " * len(found.group()), text)))


def _split_speeches(text: str) -> Iterator[tuple[str, str]]:
    """Yield speaker and text in order; without marks, all but Search-R1's prompt is the assistant's."""
    marks = _find_speaker_marks(text)
    if not marks:
        prompt = _PROMPT.match(text)
        yield "assistant", text[prompt.end() :] if prompt else text
        return
    if text[: marks[0].start()].strip("\ufeff \n\r\t") and not text[: marks[0].start()].strip().startswith("<|"):
        yield "system", text[: marks[0].start()]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        speech = text[mark.end() : following.start() if following else len(text)]
        yield (mark[1] or mark[2]), _END.sub("", speech)


def _split_conversations(text: str) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Yield the conversations in a text and where each begins: at a system prompt or, without one, at a user."""
    marks = _find_speaker_marks(text)
    speakers = {mark[1] or mark[2] for mark in marks}
    opener = "system" if "system" in speakers else "user"
    begins = [mark.start() for mark in marks if (mark[1] or mark[2]) == opener]
    if not marks:
        begins = [found.start() for found in _PROMPT.finditer(text)]
    begins = [0, *begins[1:]]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        if text[begin:end].strip():
            yield begin, list(_split_speeches(text[begin:end]))


class _SpeechReader:
    """Reports what is spoken to a `Conversation`, in one turn, as tool responses come in the user's role."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.conversation = Conversation()
        self._asked = False
        self._waiting: list[ToolCall] = []

    def read(self, speaker: str, text: str, at: str) -> None:
        """Report what one speaker says."""
        if speaker == "assistant":
            self._read_assistant(NOTES.sub("", text), at)
        elif speaker in ("user", "tool", "observation", "ipython"):
            if self._waiting and "<tool_response>" in text:
                self._read_responses(text, at)
            elif text.lstrip().startswith("<tool_response>"):
                raise unexpected_value(at, "a tool call before this tool response", text)
            elif not self._asked:
                self.conversation.user(text)
                self._asked = True
            self._waiting = []
        elif speaker not in ("system", "developer"):
            raise unexpected_value(at, "system, user or assistant as speaker", speaker)

    def _read_assistant(self, text: str, at: str) -> None:
        position = 0
        self._waiting = []
        rest = ""
        stepped = False
        while (tag := _CALL_TAGS.search(text, position)) is not None:
            rest += text[position : tag.start()]
            if not tag.group().startswith("<tool_call>"):
                position = self._read_search(text, tag, at)
                stepped = True
                continue
            if not stepped or not self._waiting:
                self.conversation.step()
                stepped = True
            found = _CALL.match(text, tag.start())
            position = found.end() if found else len(text)
            self._waiting.append(_parse_call(found["call"].strip() if found else "", at))
            self.conversation.call(self._waiting[-1])
            inline = _RESPONSE.match(text, position)
            if inline:  # the log has calls and responses in one text
                self._waiting.pop().output = inline[1]
                position = inline.end()
                stepped = False
        rest += text[position:]
        for lost in {tag for dialect in DIALECTS for tag in (dialect.query[0], dialect.found[0])} - {"<result>"}:
            if lost in rest:
                raise unexpected_value(
                    at, "a search in tags and what it found for each <search> and <information>", rest.strip()
                )
        if (other := _OTHER_TAG.search(rest)) is not None:
            self.source.not_understood(f"the tag {other.group()}", at, _EXPECTED)
        if not stepped:
            self.conversation.step()

    def _read_search(self, text: str, tag: re.Match[str], at: str) -> int:
        """Read one search and its results; return where they end, as tags inside the pages found are not calls."""
        begin, end = next(tags for tags in _QUERY_TAGS if tag.group().startswith(tags[0]))
        self.conversation.step()
        query = tag.group().removeprefix(begin).removesuffix(end).strip()
        call = ToolCall("search", at, queries=(query,))
        self.conversation.call(call)
        dialect = find_dialect(text, tag.end(), begin)
        found, position = _read_found(text, tag.end(), dialect)
        if found is not None:
            set_found(call, dialect, found)
        return position

    def _read_responses(self, text: str, at: str) -> None:
        """Read the responses to the open calls: one each, or a last one that is cut off or holds the tag itself."""
        whole = _RESPONSES.search(text)
        found = _NEXT_RESPONSE.split(whole[1] if whole[1] is not None else whole[2]) if whole else []
        if len(found) != len(self._waiting):
            raise unexpected_value(at, f"{len(self._waiting)} tool responses, one for each call", found)
        for call, output in zip(self._waiting, found, strict=True):
            call.output = output.strip("\n")


def _read_found(text: str, start: int, dialect: Dialect) -> tuple[str | None, int]:
    """Return the text of the results and where they end: at the last closing tag before the next search.

    The last one, because the pages found may hold the tag. None if there are no results.
    """
    begin_tag, end_tag = dialect.found
    begin = start + len(text[start:]) - len(text[start:].lstrip())
    if not text.startswith(begin_tag, begin):
        return None, start
    begin += len(begin_tag)
    following = [found for found in (text.find(tag, begin) for tag in (dialect.query[0], begin_tag)) if found >= 0]
    end = text.rfind(end_tag, begin, min(following, default=len(text)))
    if end < 0:
        end = text.find(end_tag, begin)
    if end < 0:
        return None, len(text)  # cut off
    if begin_tag in text[begin:end]:
        return None, begin  # the closing tag is damaged: this one closes the results of a later search
    return text[begin:end].strip(), end + len(end_tag)


def _parse_call(text: str, at: str) -> ToolCall:
    """Read the call in a tag: JSON, or nearly JSON (single quotes, a comma too many), as agents accept both."""
    try:
        value = loads(text)
    except NotJSONError:
        name = _NAME.search(text)
        if name is None:
            raise unexpected_value(at, "a tool call with a name", text) from None
        return ToolCall(name[1], at, arguments=text)
    call = expect_object(value, at)
    return ToolCall(expect_text(call.get("name"), f"{at}, name"), at, arguments=call.get("arguments"))
