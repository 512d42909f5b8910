"""Tagged text of Search-R1, ZeroSearch, StepSearch, ReSearch, R1-Searcher, Search-o1, Tongyi and WebDancer.

A search in tags is a step, and so is an assistant message with `<tool_call>`. A trace is one turn. Tags in prompts are ignored.

Lost: The ids of Search-R1 documents that have no line `URL: ...`, and Search-o1 results that a summary replaces.
Query id: The `id` beside the text, else none. `--query-id question` uses the field `question`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from goodgain.files.json_text import NotJSONError, loads, parse_if_json
from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import (
    PLAIN_PARTS,
    find_message_key,
    find_messages,
    has_messages,
    is_message,
    message_text,
)
from goodgain.logs.traces.expected_values import (
    as_word,
    expect_object,
    expect_text,
    find_record_id,
    objects_in,
    unexpected_value,
)
from goodgain.logs.traces.tool_outputs.values_in_text import Tagged, TaggedText

#: The calls and responses of Tongyi and WebDancer. A limit on tokens may cut off the last response.
_CALL, _CALL_END = "<tool_call>", "</tool_call>"
_RESPONSE = ("<tool_response>", "</tool_response>")
_RESPONSES = re.compile(r"<tool_response>(.*)</tool_response>|<tool_response>(.*)\Z", re.DOTALL)
#: The labels of ReCall's responses, below the repeated call.
_RECALL = re.compile(r"\s*(result|output|error):\s*")
_NEXT_RESPONSE = re.compile(r"</tool_response>\s*<tool_response>")
#: A text of these dialects has at least one of these tags; the second finds tags of other dialects.
_KNOWN_TAGS = re.compile(r"<(?:search|tool_call|answer|think|\|begin_(?:of|search)_query\|)>|\\boxed\{")
_OTHER_TAG = re.compile(
    r"<(?:\|\w{0,20}(?:search|query|documents?)\w{0,20}\||\w{0,20}(?:search|query|retriev)\w{0,20}|result)>"
)
#: How UI-TARS tells the model what a tool returned.
_TOLD = re.compile(r"Tool: \S{1,100}\nResult:\n")
_EXPECTED = "tags of a known dialect, such as <search> and <information>, or <tool_call> and <tool_response>"
#: The marks of speakers in chat templates (ChatML, Llama 3).
_SPEAKER = re.compile(r"<\|im_start\|>(\w+)[ \t]*\n?|<\|start_header_id\|>(\w+)<\|end_header_id\|>\s*")
_END = re.compile(r"<\|(?:im_end|eot_id|end_of_text|endoftext)\|>")
#: Search-R1's prompt in texts without a chat template: the beginning, the label at the end, and the largest distance.
_PROMPT = re.compile(r"Answer the (?:given )?question\b|You (?:are|must|can)\b")
_QUESTION, _LONGEST_PROMPT = "Question:", 8000
#: The final answer, and thoughts, which may be cut off.
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)|\A.*?</think>", re.DOTALL)
#: Fields that hold a whole tagged text, in order of preference.
_TEXT_FIELDS = (
    *("text", "response", "output", "completion", "generated_text", "prediction", "trajectory", "sequence"),
    *("full_response", "rollout", "sequences_str", "solution_str", "gen_text_store", "Output"),
)
#: The tool's name in a call that is not valid JSON.
_NAME = re.compile(r"""["']?name["']?\s*:\s*["']([^"'\n]{1,200})["']""")
#: The note that a program adds to the model's text after an invalid action: its tags are examples.
_NOTES = re.compile(r"My (?:previous )?action is (?:invalid|not correct)\..{0,600}?Let me try again\.", re.DOTALL)
#: Beginnings of texts in place of results: the search was not run.
_REFUSALS = ("You have searched this query", "The maximum search limit is exceeded", "<warning>")
_SUMMARY = "a model summarised what the search found; log the pages that it was given"
_NUMBER = re.compile(r"^\((\d{1,4})\)", re.MULTILINE)
_PASSAGE = re.compile(r"\n[ \t]*\n(?=[ \t]*\")")


class _Dialect(NamedTuple):
    query: tuple[str, str]  # the tags around a search
    found: tuple[str, str]  # the tags around the results
    read: Callable[[str], Any]  # reads the results


def _read_passages(text: str) -> Any:
    """Read ReSearch's results: passages separated by blank lines. The first line of a passage is its title in quotes."""
    passages = [passage.strip().partition("\n") for passage in _PASSAGE.split(text) if passage.strip()]
    if not all(title.startswith('"') for title, _, _ in passages):
        return text
    return [{"title": title.strip().strip('"'), "text": body.strip() or None} for title, _, body in passages]


def _read_numbers(text: str) -> Any:
    """Read R1-Searcher's results, numbered `(1)`, `(2)` ... The text `None` means that the search found nothing."""
    starts: list[re.Match[str]] = []
    for match in _NUMBER.finditer(text):
        if int(match[1]) == len(starts) + 1:
            starts.append(match)
    if not starts or starts[0].start() != 0:
        return [] if text == "None" else text
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return [{"title": None, "text": text[match.end() : end].strip()} for match, end in zip(starts, ends, strict=True)]


def _read_list(text: str) -> Any:
    """Read the JSON list of Search-o1's RagAgent. Drop the ids, which are list positions. For a summary, return UNANSWERED."""
    value = parse_if_json(text)
    for item in objects_in(value):
        item.pop("id", None)
    return value if isinstance(value, list) else UNANSWERED


def _mark(name: str) -> tuple[str, str]:
    return f"<|begin_{name}|>", f"<|end_{name}|>"


_DIALECTS = (
    _Dialect(("<search>", "</search>"), ("<information>", "</information>"), str),
    _Dialect(("<search>", "</search>"), ("<result>", "</result>"), _read_passages),
    _Dialect(_mark("of_query"), _mark("of_documents"), _read_numbers),
    _Dialect(_mark("search_query"), _mark("search_result"), _read_list),
)
_QUERY_TAGS = tuple(dict.fromkeys(dialect.query for dialect in _DIALECTS))
_RESULT_TAGS = (*(dialect.found for dialect in _DIALECTS), _RESPONSE)
#: Tags that must not remain outside the searches and results that were read.
_TAGS = {tag for dialect in _DIALECTS for tag in (dialect.query[0], dialect.found[0])} - {"<result>"}


def sniff(head: FileHead) -> bool:
    if head.kind == "text":
        return _has_said_call(head.text)
    return any(map(_is_tagged, head.conversations))


def _is_tagged(record: Any) -> bool:
    if has_messages(record, _has_structured_calls):
        return False
    has_field = isinstance(record, dict) and "messages" not in record and _find_tagged_field(record) is not None
    return has_field or has_messages(record, _is_tagged_message)


def _find_tagged_field(record: dict[str, Any]) -> str | None:
    """Return the first field whose text has a search or call that the assistant, not a prompt, wrote; else None."""
    texts = ((key, record.get(key)) for key in _TEXT_FIELDS)
    return next((key for key, text in texts if isinstance(text, str) and _has_said_call(text)), None)


def _has_said_call(text: str) -> bool:
    speeches = (TaggedText(speech) for speaker, speech in _split_speeches(text) if speaker == "assistant")
    return any(_find_call(speech, 0)[0] >= 0 for speech in speeches)


def _is_tagged_message(message: dict[str, Any]) -> bool:
    """Return whether a message has a call or a response written as tags in its text."""
    role = message.get("role")
    content = message.get("content")
    if not isinstance(content, str):
        return False
    is_answer = role == "user" and content.lstrip().startswith("<tool_response>")
    return is_answer or (role == "assistant" and _find_call(TaggedText(content), 0)[0] >= 0)


def _has_structured_calls(message: dict[str, Any]) -> bool:
    return bool(message.get("tool_calls")) or as_word(message.get("role")) in ("tool", "function") or "type" in message


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per conversation of a text file, or per record of a JSON file."""
    if source.head.kind != "text":
        read_one = partial(_read_record, source)
        yield from source.traces(read_one, is_one=lambda value: not value or any(map(is_message, value)))
        return
    text = source.text()
    line, counted = 1, 0
    for start, speeches in _split_conversations(text):
        line, counted = line + text.count("\n", counted, start), start
        yield from source.read_numbered(_Speeches(source).read_text, speeches, f"{source.path}, line {line}, at ")


def _read_record(source: Source, value: Any, at: str) -> Trace:
    """Read messages, or the first text field of a record that has tags, else any text field."""
    reader = _Speeches(source, value)
    if not isinstance(value, dict) or find_message_key(value) is not None:
        return reader.read_record(value, find_messages(value, at), at).trace(at)
    key = _find_tagged_field(value) or next((key for key in _TEXT_FIELDS if isinstance(value.get(key), str)), None)
    if key is None:
        raise unexpected_value(at, f"messages, or a tagged text under {', '.join(_TEXT_FIELDS)}", value)
    reader.query_id = find_record_id(value)
    return reader.read_text(list(_split_speeches(value[key])), f"{at}/{key}")


def _find_speaker_marks(text: str) -> list[tuple[str, int, int]]:
    """Return speaker, start and end of each mark such as `<|im_start|>user`. Ignore marks in results: they belong to pages."""
    tagged = TaggedText(text)
    pieces = []
    at = 0
    while (span := tagged.find_span(_RESULT_TAGS, at)) is not None:
        pieces += [text[at : span.begin], " " * (span.end - span.begin)]
        at = span.end
    marks = _SPEAKER.finditer("".join([*pieces, text[at:]]))
    return [(mark[1] or mark[2], mark.start(), mark.end()) for mark in marks]


def _find_prompts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each Search-R1 prompt. White space before a prompt belongs to the prompt."""
    tagged, at = TaggedText(text), 0
    for match in _PROMPT.finditer(text):
        if match.start() < at:
            continue
        question = tagged.find(_QUESTION, match.end())
        end = tagged.find("\n", question) + 1 if question >= 0 else 0
        if not end:
            return
        if question - match.end() > _LONGEST_PROMPT:
            continue
        yield at + len(text[at : match.start()].rstrip()), end
        at = end


def _find_call(tagged: TaggedText, start: int) -> tuple[int, Tagged | None]:
    """Return the position of the next search or `<tool_call>` (-1 if none), and the tags of the search (None for a call)."""
    search = tagged.find_span(_QUERY_TAGS, start)
    call = tagged.find(_CALL, start)
    if search is not None and (call < 0 or search.begin < call):
        return search.begin, search
    return call, None


def _split_speeches(text: str) -> Iterator[tuple[str, str]]:
    """Yield the speaker and text of each speech. Without speaker marks, all text after Search-R1's prompt is the assistant's."""
    marks = _find_speaker_marks(text)
    if not marks:
        begin, end = next(_find_prompts(text), (1, 0))
        yield "assistant", text if begin else text[end:]
        return
    before = text[: marks[0][1]]
    if before.strip("\ufeff \n\r\t") and not before.strip().startswith("<|"):
        yield "system", before
    ends = [*(begin for _, begin, _ in marks[1:]), len(text)]
    for (speaker, _, begin), end in zip(marks, ends, strict=True):
        yield speaker, _END.sub("", text[begin:end])


def _split_conversations(text: str) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Yield the start and the speeches of each conversation. A conversation begins at a system prompt, else at a user's text."""
    marks = _find_speaker_marks(text)
    opener = "system" if any(speaker == "system" for speaker, _, _ in marks) else "user"
    begins = [begin for speaker, begin, _ in marks if speaker == opener]
    if not marks:
        begins = [begin for begin, _ in _find_prompts(text)]
    begins = [0, *begins[1:]]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        if text[begin:end].strip():
            yield begin, list(_split_speeches(text[begin:end]))


class _Speeches(Conversation):
    """Reads all messages as one turn, because tool responses have the role `user`."""

    _asked = False
    _waiting: Sequence[tuple[ToolCall, str]] = ()  # each with its text

    def read(self, message: dict[str, Any], at: str) -> None:
        self.report_unread("a message", message, at, ("content",))
        role = expect_text(message.get("role"), f"{at}/role")
        content = message.get("content")
        if isinstance(content, list):  # pages and screenshots come as parts
            self.report_parts("a message", content, f"{at}/content", PLAIN_PARTS)
            content = message_text(content)
        self._read_speech(role, expect_text(content, f"{at}/content"), at)

    def read_text(self, speeches: list[tuple[str, str]], at: str) -> Trace:
        for speaker, text in speeches:
            self._read_speech(speaker, text, at)
        if not any(speaker == "assistant" and _KNOWN_TAGS.search(text) for speaker, text in speeches):
            self.source.not_understood("a text without a known tag", at, _EXPECTED)
        return self.trace(at)

    def _read_speech(self, speaker: str, text: str, at: str) -> None:
        """Read what a speaker said.

        The user's first text is the question, unless it answers the open calls; later ones are not read.
        """
        if speaker == "assistant":
            self._read_assistant(_NOTES.sub("", text), at)
        elif speaker in ("user", "tool", "observation", "ipython"):
            if self._waiting and "<tool_response>" in text:
                # One response for each open call. The last response may be cut off, or contain the tag.
                whole = _RESPONSES.search(text)
                pieces = _NEXT_RESPONSE.split(whole[1] if whole[1] is not None else whole[2]) if whole else []
                if len(pieces) != len(self._waiting):
                    raise unexpected_value(at, f"{len(self._waiting)} tool responses, one for each call", pieces)
                for (call, written), output in zip(self._waiting, pieces, strict=True):
                    _answer(call, written, output.strip("\n"))
            elif len(self._waiting) == 1 and (prefix := _TOLD.match(text)) is not None:
                self._waiting[0][0].output = text[prefix.end() :]
            elif text.lstrip().startswith("<tool_response>"):
                self.report_orphan(at, "no <tool_call> is before this <tool_response>")
            elif not self._asked:
                self.user(text)
                self._asked = True
            self._waiting = ()
        elif speaker not in ("system", "developer"):
            raise unexpected_value(at, "system, user or assistant as speaker", speaker)

    def _read_assistant(self, text: str, at: str) -> None:
        """Read the searches and calls in a text of the model. What follows the last of them is the answer.

        A search in tags is a step. Calls in tags form one step, until a response to one stands in the same text. Calls without
        a response wait for the next message. A text without either is a step too.
        """
        position = 0
        self._waiting = waiting = list[tuple[ToolCall, str]]()
        pieces: list[str] = []  # the text between the calls
        stepped = False  # whether the next call belongs to the step of the call before
        tagged = TaggedText(text)

        while (begin := _find_call(tagged, position))[0] >= 0:
            start, search = begin
            pieces.append(text[position:start])
            if search is not None:
                end_of_results = self._read_search(tagged, search, at)
                position, stepped = end_of_results or search.end, stepped or end_of_results is not None
                continue
            if not stepped or not waiting:
                self.step()
                stepped = True
            end = tagged.find(_CALL_END, start)
            position = end + len(_CALL_END) if end >= 0 else len(text)
            written = text[start + len(_CALL) : end if end >= 0 else len(text)].strip()
            waiting.append((self.call(_parse_call(written, at)), written))
            inline = tagged.find_span([_RESPONSE], position)
            if inline and inline.begin == tagged.skip_white(position):  # calls and responses are in one text
                _answer(*waiting.pop(), text[inline.inner_begin : inline.inner_end])
                position = inline.end
                stepped = False

        ending = "".join([*pieces, text[position:]])
        if any(tag in ending for tag in _TAGS):
            expected = "a search in tags and what it found for each <search> and <information>"
            raise unexpected_value(at, expected, ending.strip())

        if (other := _OTHER_TAG.search(ending)) is not None:
            self.source.not_understood(f"the tag {other.group()}", at, _EXPECTED)
        if not stepped:
            self.step()

        last = _ANSWER.findall(text, position)
        self.say(last[-1] if last else _THOUGHT.sub("", text[position:]))

    def _read_search(self, tagged: TaggedText, search: Tagged, at: str) -> int | None:
        """Read a search and its results. Return the position where the results end.

        Return None if the tags are empty and no results follow, as in a warning that only mentions the tags.
        """
        query = tagged.text[search.inner_begin : search.inner_end].strip()
        begin = tagged.skip_white(search.end)
        possible = [dialect for dialect in _DIALECTS if tagged.text.startswith(dialect.found[0], begin)]
        if not query and not possible:
            return None

        self.step()
        call = self.call(ToolCall("search", at, queries=(query,)))
        dialect = next((candidate for candidate in possible if candidate.query == search.tags), None)
        if dialect is None:
            return search.end

        results, position = _find_results(tagged, begin + len(dialect.found[0]), dialect)
        if results is not None and results.startswith(_REFUSALS):
            call.output, call.failed = results, True
        elif results is not None:
            call.output = dialect.read(results)
            call.remedy = _SUMMARY if call.output is UNANSWERED else ""
        return position


def _answer(call: ToolCall, written: str, output: str) -> None:
    """Set the output of a call. In ReCall's logs, a copy of the call precedes the output: remove the copy."""
    if (text := output.lstrip()).startswith(written) and (label := _RECALL.match(text, len(written))) is not None:
        call.output = _read_passages(text[label.end() :])
        call.failed = label[1] == "error"
    else:
        call.output = output


def _find_results(tagged: TaggedText, begin: int, dialect: _Dialect) -> tuple[str | None, int]:
    """Return two things: the text of the results (None if cut off or damaged), and the position where reading continues."""
    begin_tag, end_tag = dialect.found
    places = [tagged.find(tag, begin) for tag in (dialect.query[0], begin_tag)]
    following = [place for place in places if place >= 0]
    last = tagged.text.rfind(end_tag, begin, min(following, default=len(tagged.text)))
    end = last if last >= 0 else tagged.find(end_tag, begin)
    if end < 0:
        return None, len(tagged.text)  # cut off
    if 0 <= tagged.find(begin_tag, begin) < end:
        return None, begin  # the closing tag is damaged: the tag found belongs to a later search
    return tagged.text[begin:end].strip(), end + len(end_tag)


def _parse_call(text: str, at: str) -> ToolCall:
    """Read the call in a `<tool_call>` tag. Accept JSON with errors such as single quotes."""
    try:
        call = expect_object(loads(text), at)
    except NotJSONError:
        name = _NAME.search(text)
        call = {"name": name and name[1], "arguments": text}
    if not isinstance(call.get("name"), str):
        raise unexpected_value(at, "a tool call with a name", text)
    return ToolCall(call["name"], at, arguments=call.get("arguments", call.get("parameters")))
