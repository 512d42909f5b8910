"""OpenAI Chat Completions: message lists with `tool_calls`, as vLLM, LiteLLM, Groq, Haystack and most agents log them.

An assistant message is a step, a user message a turn. Also read: `function_call` with the function role, Groq's
`executed_tools`, Haystack's message parts, and recorded exchanges.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from goodgain.traces.conversations.conversation import (
    Conversation,
    count_hosted_searches,
    find_messages,
    find_record_id,
    has_messages,
    message_text,
)
from goodgain.traces.conversations.exchanges import (
    ConversationPart,
    Exchange,
    are_exchanges,
    read_chat_log,
    split_exchange,
)
from goodgain.traces.conversations.executed_tools import read_executed_tools
from goodgain.traces.conversations.usage import read_usage
from goodgain.traces.input.checks import (
    as_word,
    expect_id,
    expect_list,
    expect_object,
    expect_optional_text,
    expect_text,
    unexpected_value,
)
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

#: Types of parts, and keys of messages, in other formats that also write lists of messages with a role.
_OTHER_PART_TYPES = {
    *("tool_use", "tool_result", "server_tool_use", "web_search_tool_result", "mcp_tool_use", "mcp_tool_result"),
    *("tool-call", "tool-result", "input_text", "output_text"),
}
#: Keys of parts without a type, of Bedrock.
_OTHER_PARTS = {"toolUse", "toolResult"}
_OTHER_KEYS = {"function", "tool_type", "lc", "data", "parts", "toolInvocations"}
_ROLES = {"user", "assistant", "system", "developer", "tool", "function"}
_PART_TYPES = {
    "text",
    "image_url",
    "input_audio",
    "file",
    "refusal",
    "image",
    "video_url",
    "audio_url",
    "thinking",
    "reasoning",
}
#: Haystack's parts have no type: each is an object with one of these keys.
_HAYSTACK_PARTS = {"text", "tool_call", "tool_call_result", "image", "reasoning", "file"}
_CALL_FIELDS = {"tool_calls", "function_call", "executed_tools", "tool_call_id"}
_MESSAGE_FIELDS = {
    *("role", "content", "name", "type", "tool_calls", "tool_call_id", "function_call", "executed_tools"),
    *("annotations", "refusal", "audio", "reasoning", "reasoning_content", "reasoning_details", "thinking"),
    *("thinking_blocks", "provider_specific_fields", "images", "prefix", "channel", "parsed", "tool_plan"),
}
_EXPECTED_CONTENT = "a text, or a list of parts of the types text, image_url, input_audio, file, refusal"
#: What LiteLLM keeps in provider_specific_fields: none of it is a call.
_LITELLM_FIELDS = {"thinking_blocks", "reasoning_content", "refusal", "citations", "signature"}
#: The fields of a response of the API and of servers that imitate it.
_RESPONSE_FIELDS = {
    *("choices", "usage", "object", "system_fingerprint", "service_tier", "prompt_filter_results", "timings"),
    *("x_groq", "usage_breakdown", "time_info", "prompt_logprobs", "kv_transfer_params", "request_id"),
}
#: What an answer of the API calls itself.
_ANSWER = "chat.completion"
#: Special tokens with which some models search in the text of their messages.
_SEARCH_TOKEN = re.compile(r"<\|\w{0,20}(?:search|query)\w{0,20}\|>")
#: Parts of the names of models that search before each answer.
_SEARCHING_MODELS = ("search-preview", "search-api")
_REMEDY = "the model searched by itself and logs only what it cites: count the citations as results with citations=True"


def sniff(head: FileHead) -> bool:
    """Return whether there are messages of this format and not of a more specific one, or exchanges with `choices`."""
    if are_exchanges(head):
        return any(_is_exchange(record) for record in head.objects)
    return any(_is_chat(record) for record in head.conversations) and not _is_tagged(head)


def _is_chat(record: Any) -> bool:
    if isinstance(record, dict) and ("samples" in record or "tool_call_counts" in record):
        return False
    if isinstance(record, dict) and record.get("object") == _ANSWER and "choices" in record:
        return True
    if has_messages(record, _is_of_other_format):
        return False
    return has_messages(record, _is_message)


def _is_message(message: dict[str, Any]) -> bool:
    """Return whether a message has a role, and content or calls as only this format has them."""
    if as_word(message.get("role")) not in _ROLES or message.get("type", "message") != "message":
        return False
    content = message.get("content")
    if isinstance(content, str) or not _CALL_FIELDS.isdisjoint(message):
        return True
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and _is_known_part(part) for part in parts)


def _is_known_part(part: dict[str, Any]) -> bool:
    if "type" in part:
        return as_word(part["type"]) in _PART_TYPES
    return not _HAYSTACK_PARTS.isdisjoint(part)


def _is_of_other_format(message: dict[str, Any]) -> bool:
    if ("type" in message and message["type"] not in (None, "message")) or not _OTHER_KEYS.isdisjoint(message):
        return True
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and _is_other_part(part) for part in parts)


def _is_other_part(part: dict[str, Any]) -> bool:
    return as_word(part.get("type")) in _OTHER_PART_TYPES or not _OTHER_PARTS.isdisjoint(part)


def _is_tagged(head: FileHead) -> bool:
    # Tagged text is often logged in messages of this format: the tags decide.
    from goodgain.traces.formats.tagged_text import sniff as is_tagged

    return is_tagged(head)


def independent(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is a trace of its own."""
    return not are_exchanges(head)


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a list of messages, or one a conversation of recorded exchanges."""
    return read_chat_log(source, _read_trace, _read_exchange, _message_key, _read_parts)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    record = value if isinstance(value, dict) else {}
    if "choices" in record and "messages" not in record:
        messages, messages_at = [_read_answer_message(record, at)], f"{at}/choices"
    else:
        messages, messages_at = find_messages(value, at)
    conversation = Conversation()
    model = record.get("model")
    for index, message in enumerate(messages):
        _read_message(source, conversation, message, f"{messages_at}/{index}", model)
    _add_unlogged_searches(conversation, record, conversation.hosted, at)
    trace = conversation.trace(at, value, query_id=find_record_id(record))
    trace.tag = _name_system([model])
    return trace


def _is_exchange(record: Any) -> bool:
    found = split_exchange(record)
    if found is None:
        return False
    request, response = found
    return "messages" in request and "choices" in response


def _read_exchange(record: Any, at: str) -> Exchange | None:
    if not _is_exchange(record):
        return None
    request, response = split_exchange(record) or ({}, {})
    message = _read_answer_message(response, f"{at}/response")
    messages = expect_list(request["messages"], f"{at}/request/messages")
    return Exchange(
        messages, f"{at}/request/messages", [message], f"{at}/response/choices",
        response=response, response_at=f"{at}/response",
    )  # fmt: skip


def _read_answer_message(answer: dict[str, Any], at: str) -> dict[str, Any]:
    """Return the message of the first choice of an answer."""
    choices = expect_list(answer["choices"], f"{at}/choices")
    first = expect_object(choices[0], f"{at}/choices/0") if choices else {}
    return expect_object(first.get("message"), f"{at}/choices/0/message")


def _read_parts(source: Source, parts: list[ConversationPart], at: str) -> Trace:
    conversation = Conversation()
    for part in parts:
        if not part.resent:
            shown = conversation.hosted
            if source.costs:
                conversation.spend(read_usage(part.response.get("usage")))
            for message, message_at in part.messages:
                _read_message(source, conversation, message, message_at, part.response.get("model"))
            source.check_fields(
                part.response, _RESPONSE_FIELDS, part.response_at, of="a response", expected="all in choices"
            )
            _add_unlogged_searches(conversation, part.response, conversation.hosted - shown, part.response_at)
    trace = conversation.trace(at)
    trace.tag = _name_system(part.response.get("model") for part in parts)
    return trace


def _name_system(models: Iterable[Any]) -> str | None:
    """Return the first model that a log names."""
    return next((model for model in models if isinstance(model, str) and model), None)


def _add_unlogged_searches(conversation: Conversation, holder: dict[str, Any], shown: int, at: str) -> None:
    """Add the vendor's searches that a usage counts, if no message shows any, as calls without recorded results."""
    for _ in range(0 if shown else count_hosted_searches(holder.get("usage"))):
        conversation.hosted += 1
        conversation.call(ToolCall("web_search", f"{at}/usage", is_search=True, remedy=_REMEDY))


def _message_key(message: Any) -> Hashable | None:
    """Return what two copies of a message share: role, ids of calls, text."""
    if not isinstance(message, dict):
        return None
    calls = message.get("tool_calls") or []
    ids = tuple(str(call.get("id")) for call in calls if isinstance(call, dict)) if isinstance(calls, list) else ()
    text = message_text(message.get("content")).strip()
    if message.get("role") == "assistant" and not text and not ids and not message.get("function_call"):
        return None
    return (str(message.get("role")), ids, str(message.get("tool_call_id")), text)


def _read_message(source: Source, conversation: Conversation, message: Any, at: str, model: Any) -> None:
    message = expect_object(message, at)
    role = message.get("role")
    if "content" not in message or not _MESSAGE_FIELDS.issuperset(message):
        source.check_fields(
            message,
            _MESSAGE_FIELDS,
            at,
            of="a message",
            expected="calls in tool_calls, text in content",
            needs="content",
        )
    if role == "tool":
        content, call_id = message.get("content"), message.get("tool_call_id")
        # Nearly all answers are of this kind; the function for the others makes places for their errors.
        if type(content) is str and type(call_id) is str and conversation.has_call(call_id):
            conversation.answer(call_id, content, at)
        else:
            _read_answer(source, conversation, message, at)
    elif role == "assistant":
        if source.costs:
            conversation.spend(read_usage(message.get("usage")))
        conversation.step()
        _read_calls(source, conversation, message, at, model)
    elif role == "function":
        _read_answer(source, conversation, message, at)
    elif role == "user":
        content = message.get("content")
        conversation.user(message_text(content))
        for index, part in enumerate(content if isinstance(content, list) else []):
            if isinstance(part, dict) and not _is_known_part(part):
                _report_part(source, part, f"{at}/content/{index}", "a user message")
    elif role not in ("system", "developer"):
        if not isinstance(role, str):
            raise unexpected_value(f"{at}/role", "a role (user, assistant, tool ...)", role)
        source.not_understood(f"message of role {role!r}", f"{at}/role", ", ".join(sorted(_ROLES)))


def _read_answer(source: Source, conversation: Conversation, message: dict[str, Any], at: str) -> None:
    content = message.get("content")
    if isinstance(content, list) and any(isinstance(part, dict) and "tool_call_result" in part for part in content):
        for index, part in enumerate(content):
            found = expect_object(part, f"{at}/content/{index}").get("tool_call_result")
            if found is not None:
                _read_haystack_answer(conversation, found, f"{at}/content/{index}/tool_call_result")
        return
    for index, part in enumerate(content if isinstance(content, list) else []):
        expect_object(part, f"{at}/content/{index}")
    call_id = expect_id(message.get("tool_call_id"), f"{at}/tool_call_id")
    name = expect_optional_text(message.get("name"), f"{at}/name") if message["role"] == "function" else None
    if content is None:
        content = UNANSWERED
    elif not isinstance(content, (str, list, dict)):
        raise unexpected_value(f"{at}/content", "text or parts", content)
    if call_id is not None and not conversation.has_call(call_id):
        expected = f"the answer to a call made before (no call has the id {call_id!r})"
        source.not_understood("answer without a call", at, expected)
        return
    conversation.answer(call_id, content, f"{at}/content", name=name)


def _read_haystack_answer(conversation: Conversation, found: Any, at: str) -> None:
    result = expect_object(found, at)
    origin = expect_object(result.get("origin"), f"{at}/origin")
    call_id = expect_id(origin.get("id"), f"{at}/origin/id")
    name = expect_optional_text(origin.get("tool_name"), f"{at}/origin/tool_name")
    output = result.get("result")
    conversation.answer(
        call_id, UNANSWERED if output is None else output, at, name=name, failed=result.get("error") is True
    )


def _read_calls(source: Source, conversation: Conversation, message: dict[str, Any], at: str, model: Any) -> None:
    shown = conversation.hosted
    if message.get("tool_calls") is not None:
        for index, call in enumerate(expect_list(message["tool_calls"], f"{at}/tool_calls")):
            call_at = f"{at}/tool_calls/{index}"
            conversation.call(_read_call(expect_object(call, call_at), call_at))
    if (legacy := message.get("function_call")) is not None:
        function = expect_object(legacy, f"{at}/function_call")
        name = expect_text(function.get("name"), f"{at}/function_call/name")
        conversation.call(ToolCall(name, f"{at}/function_call", arguments=function.get("arguments")))
    content = message.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            _read_part(source, conversation, part, f"{at}/content/{index}")
    elif isinstance(content, str):
        if "<|" in content and (tag := _SEARCH_TOKEN.search(content)) is not None:
            source.not_understood(f"the tag {tag.group()}", f"{at}/content", "calls in tool_calls")
    elif content is not None:
        raise unexpected_value(f"{at}/content", "text or parts", content)
    if message.get("executed_tools") is not None:
        for call in read_executed_tools(message["executed_tools"], f"{at}/executed_tools"):
            conversation.hosted += 1
            conversation.call(call)
    if "provider_specific_fields" in message and isinstance(kept := message["provider_specific_fields"], dict):
        kept_at = f"{at}/provider_specific_fields"
        source.check_fields(
            kept, _LITELLM_FIELDS, kept_at, of="provider_specific_fields", expected="thoughts or citations"
        )
    if "annotations" in message and not message.get("tool_calls") and not message.get("executed_tools"):
        _read_citations(
            source, conversation, message["annotations"], f"{at}/annotations", message.get("model") or model
        )
    if "usage" in message:
        _add_unlogged_searches(conversation, message, conversation.hosted - shown, at)


def _read_call(call: dict[str, Any], at: str) -> ToolCall:
    plain, call_id = call.get("function"), call.get("id")
    if type(plain) is dict and type(call_id) is str and call_id and type(name := plain.get("name")) is str:
        return ToolCall(name, at, call_id, plain.get("arguments"))
    kind = "custom" if "custom" in call and "function" not in call else "function"
    function = expect_object(call.get(kind), f"{at}/{kind}")
    name = expect_text(function.get("name"), f"{at}/{kind}/name")
    arguments = function.get("arguments" if kind == "function" else "input")
    return ToolCall(name, at, expect_id(call.get("id"), f"{at}/id"), arguments)


def _read_part(source: Source, conversation: Conversation, part: Any, at: str) -> None:
    part = expect_object(part, at)
    if isinstance(part.get("tool_call"), dict):
        call = part["tool_call"]
        name = expect_text(call.get("tool_name"), f"{at}/tool_call/tool_name")
        conversation.call(ToolCall(name, at, expect_id(call.get("id"), f"{at}/tool_call/id"), call.get("arguments")))
    elif not _is_known_part(part):
        _report_part(source, part, at, "an assistant message")


def _report_part(source: Source, part: dict[str, Any], at: str, of: str) -> None:
    kind = f"of type {part['type']!r}" if "type" in part else f"with {', '.join(map(str, list(part)[:3]))!r}"
    source.not_understood(f"part {kind} in {of}", at, _EXPECTED_CONTENT)


def _read_citations(source: Source, conversation: Conversation, annotations: Any, at: str, model: Any) -> None:
    """Add the search behind an answer with citations, or by a model that always searches, as the log lacks it."""
    urls = [
        citation for note in expect_list(annotations, at)
        if isinstance(note, dict) and isinstance(citation := note.get("url_citation"), dict)
    ]  # fmt: skip
    searched = annotations is not None and any(part in as_word(model) for part in _SEARCHING_MODELS)
    if urls or searched:
        unique = {str(citation.get("url")): citation for citation in urls}
        found = list(unique.values()) if source.citations and urls else UNANSWERED
        conversation.hosted += 1
        conversation.call(ToolCall("web_search", at, output=found, is_search=True, remedy=_REMEDY))
