"""What the keys of a log say about the values under them: searched for, cited, judged, a question, or no results at all."""

from functools import lru_cache
from typing import NamedTuple

from goodgain.logs.dedup.document_types import snake_case
from goodgain.logs.traces.tool_outputs.overlooked_results import NO_RESULTS

#: Keys of passages that a pipeline retrieved, in order of preference, in lower case and without punctuation. Under these
#: keys, texts are results too.
PASSAGE_KEYS = (
    *("ctxs", "retrievedcontexts", "retrievedpassages", "retrieveddocuments", "retrieveddocs", "retrievedchunks"),
    *("retrievedcontext", "retrievednodes", "retrievalresults", "retrievalcontext", "contexts", "searchresults"),
    *("sourcedocuments", "sourcenodes"),
)
#: Keys of the outputs of tools and programs.
OUTPUT_KEYS = {
    *("observation", "observations", "output", "outputs", "result", "tooloutput", "toolresult", "toolreturn"),
    *("returnvalue", "stdout", "logs"),
}
#: Keys of the citations of an answer.
_CITATION_KEYS = {"citations", "citation", "citedsources", "citationsources"}
#: Keys of values that hold no results of a search: settings, examples, what the user attached, parts of messages, calls
#: (which the formats read) and judgments.
_PASSED_OVER = (NO_RESULTS - {"values"}) | {
    *("system", "systemprompt", "systeminstruction", "systeminstructions", "instructions", "config"),
    *(
        "tools",
        "functions",
        "tooldefinitions",
        "toolchoice",
        "toolconfig",
        "availabletools",
        "toolschemas",
        "mcpservers",
    ),
    *("example", "examples", "fewshot", "fewshotexamples", "demos", "demonstrations"),
    *("attachment", "attachments", "experimentalattachments", "files", "uploadedfiles", "fileids"),
    *("arguments", "args", "annotations", "assessments", "feedback", "scores", "score", "evaluations", "grades"),
    *("ratings", "logprobs"),
}
#: Keys of parts of messages and of calls, which the formats read.
_PARTS = {"content", "contents", "parts", "text", "toolcalls", "functioncall", "executedtools"}
#: Keys of lists whose members may hold results, but are none.
_HOLDERS = {"spans", "steps", "events", "turns", "runs", "calls", "toolcalls", "claims"}
#: Words of keys that name judged documents, such as `gold_documents` and `reference_contexts`.
_JUDGED_WORDS = {
    *(
        "gold",
        "golden",
        "expected",
        "target",
        "truth",
        "groundtruth",
        "relevant",
        "irrelevant",
        "positive",
        "positives",
    ),
    *("negative", "negatives", "qrels", "label", "labels", "oracle", "supporting", "reference", "judged", "ideal"),
    *(f"judg{e}ment{plural}" for e in ("", "e") for plural in ("", "s")),
}
#: Words of keys whose values were searched for.
_SEARCHED_WORDS = {"search", "searched", "searches", "retrieve", "retrieved", "retrieves", "retriever", "retrieval"}
#: Last words of keys with a question or query, and whole keys.
_QUESTION_WORDS = {"question", "query", "questions", "queries"}
_QUESTION_KEYS = {"q", "input", "user_input"}
#: A limit against malicious logs.
_LONGEST_KEY = 200


class KeyTraits(NamedTuple):
    """What a key says about the value under it."""

    is_passed_over: bool  # the value holds no results
    is_part: bool  # the value is a part of a message, which the formats read
    is_holder: bool  # the members of the list are not results, but may hold some
    is_judged: bool  # the documents are judged, not retrieved
    was_searched: bool
    is_question: bool
    is_cited: bool
    has_ids: bool


@lru_cache(maxsize=4096)
def read_key(key: str) -> KeyTraits:
    """Return what the words of a key say about its value. A key that is too long has no words, so it says nothing."""
    words = snake_case(key).split("_") if len(key) <= _LONGEST_KEY else [""]
    name = "".join(words)
    is_question = words[-1] in _QUESTION_WORDS or "_".join(words) in _QUESTION_KEYS
    is_answers_reference = words == ["reference"]  # what an answer refers to
    return KeyTraits(
        is_passed_over=name in _PASSED_OVER,
        is_part=name in _PARTS,
        is_holder=name in _HOLDERS,
        is_judged=not _JUDGED_WORDS.isdisjoint(words) and not is_answers_reference,
        was_searched=not _SEARCHED_WORDS.isdisjoint(words),
        is_question=is_question,
        is_cited=name in _CITATION_KEYS,
        has_ids=words[-1] == "ids",
    )
