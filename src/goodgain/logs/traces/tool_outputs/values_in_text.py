"""Finds Python reprs, JSON in code fences or after prose, and tags such as `<search>...</search>` in a text.

Each reader of values returns the value and the text around it, or None. Finding tags takes linear time. A regular expression
such as `<search>.*?</search>` would scan the rest of the text at each unclosed `<search>`.
"""

import ast
import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import orjson

from goodgain.files.json_text import NotJSONError, loads, parse_concatenated, parse_values

#: A longer text in Python's notation is not parsed: the syntax tree takes a hundred times as much memory.
_MAX_PYTHON = 1 << 20
_MAX_NESTING = 60
#: The words of Python's notation: strings, numbers, names, signs. Other words, such as JSON's `\\/` in a string, are not Python.
_PYTHON_WORD = re.compile(
    r"""\s+
      | b?'(?:[^'\\\n]|\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}))*+'
      | b?"(?:[^"\\\n]|\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}))*+"
      | -?(?:\d[\d_]{0,400}(?:\.\d{0,400})?|\.\d{1,400})(?:e[+-]?\d{1,4})?(?![\w.])
      | (?P<name>[A-Za-z_]\w{0,80}(?:\.[A-Za-z_]\w{0,80}){0,4}) | (?P<sign>[\[\](){},:=])""",
    re.VERBOSE,
)
_PYTHON_START = re.compile(r"[\[{(]|[A-Za-z_][\w.]{0,80}\((?![\s)])")
_FIELD_START = re.compile(r"[A-Za-z_]\w{0,80}=[^\s=]")
_CONSTANTS = {"None": None, "True": True, "False": False, "nan": None, "inf": None}
_FENCE = re.compile(r"^[ \t]{0,3}```(?:json|JSON|jsonl|python)?[ \t]*$", re.MULTILINE)
#: Where a value after prose may begin (at the beginning of a line, or after a colon), and how JSON begins.
_VALUE_START = re.compile(r"^[ \t]{0,8}(?=[\[{])|(?<=: )(?=[\[{])", re.MULTILINE)
_JSON_START = re.compile(r'\[\s*(?:[\[{"]|\Z)|\{\s*(?:"|\Z)')
_MAX_STARTS = 20


def read_python(text: str) -> tuple[Any, str] | None:
    """Read the repr of a Python list, dict or object. `Document(id='d1')` becomes a dict of its arguments."""
    if len(text) <= _MAX_PYTHON and _FIELD_START.match(text):
        text = f"Printed({_separate_fields(text)})"

    # pymilvus prints `data: [...]`, then the cost of the search.
    text = text.removeprefix("data: ").partition(",extra_info: ")[0] if text.startswith("data: [") else text
    if _PYTHON_START.match(text) is None or len(text) > _MAX_PYTHON or not _is_python_notation(text):
        return None

    try:
        tree = ast.parse(text, mode="eval")
        value = _evaluate(tree.body)
        orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)  # refuses lone surrogates and huge numbers, as JSON does
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None

    if isinstance(value, (list, dict)):
        return (value, "")
    return None


def _separate_fields(text: str) -> str:
    """Insert commas between the fields of an object that pydantic printed, as in `meta=None content=[..]`."""
    at = depth = 0
    words: list[str] = []
    while word := _PYTHON_WORD.match(text, at):
        sign = word["sign"] or ""
        depth += (sign in "[({" and sign != "") - (sign in "])}" and sign != "")
        words.append("," if depth == 0 and word[0] == " " and words[-1] != "," else word[0])
        at = word.end()
    return "".join(words) + text[at:]


def _is_python_notation(text: str) -> bool:
    """Return whether a text consists only of words of Python's notation, with all brackets closed.

    It may still be no valid Python.
    """
    at = depth = 0
    waits_for = ""  # the signs that may follow a name that is not a constant: of a call or a keyword argument
    size = len(text)

    while at < size:
        match = _PYTHON_WORD.match(text, at)
        if match is None or match.end() == at:
            return False
        sign = match["sign"] or ""
        if waits_for and (not sign or sign not in waits_for):
            return False
        waits_for = "(=" if match["name"] and match["name"] not in _CONSTANTS else ""
        depth += (sign in "[({" and sign != "") - (sign in "])}" and sign != "")
        if not 0 <= depth <= _MAX_NESTING:
            return False
        at = match.end()

    return depth == 0 and not waits_for


def _evaluate(node: ast.expr) -> Any:
    """Return the value of a syntax tree of constants, lists, dicts and calls. A call never runs: its value is its arguments."""
    match node:
        case ast.Constant(value=bytes() as raw):
            return raw.decode("utf-8", "replace")
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=members) | ast.Tuple(elts=members) | ast.Set(elts=members):
            return [_evaluate(member) for member in members]
        case ast.Dict(keys=keys, values=values):
            return {_read_key(key): _evaluate(value) for key, value in zip(keys, values, strict=True)}
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Call(args=[], keywords=keywords):  # Document(id='d1', ..) is an object with these fields
            return {word.arg: _evaluate(word.value) for word in keywords if word.arg is not None}
        case ast.Call(args=[argument], keywords=[]):  # UUID('..'), ObjectId('..'), array([..])
            return _evaluate(argument)
        case ast.Call(args=arguments, keywords=[]):  # datetime.datetime(2024, 1, 1)
            return [_evaluate(argument) for argument in arguments]
    raise ValueError("more than a value")


def _read_key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float)):
        return str(node.value)
    raise ValueError("a dict key is neither a string nor a number")


def _read_fences(text: str) -> tuple[Any, str] | None:
    """Read the JSON or Python values in code fences. Several values become one list."""
    marks = list(_FENCE.finditer(text))
    if not marks or len(marks) % 2:
        return None

    values = []
    around = []
    at = 0
    for opening, closing in zip(marks[::2], marks[1::2], strict=True):
        around.append(text[at : opening.start()])
        at = closing.end()
        inside = text[opening.end() : closing.start()].strip()
        try:
            value = loads(inside)
        except NotJSONError:
            many = parse_concatenated(inside)
            found = (many, "") if many is not None else read_python(inside)
            if found is None:
                return None
            value = found[0]
        if not isinstance(value, (list, dict)):
            return None
        values.append(value)

    around.append(text[at:])
    return _join_values(values), "\n".join(around)


def _join_values(values: list[Any]) -> Any:
    """Return a single value unchanged. Join several values into one list; a value that is itself a list adds its members."""
    if len(values) == 1:
        return values[0]
    return [member for value in values for member in (value if isinstance(value, list) else [value])]


def _read_behind_prose(text: str) -> tuple[Any, str] | None:
    """Read the first JSON at the beginning of a line or after a colon, and values that follow it. Return None if it is cut off."""
    for start in islice(_VALUE_START.finditer(text), _MAX_STARTS):
        if _JSON_START.match(text, start.end()) is None:
            continue  # a mark such as [1] or [Note]
        if (found := parse_values(text, start.end(), _JSON_START)) is None:
            return None  # cut off or damaged
        values, end = found
        return _join_values(values), text[: start.start()] + "\n" + text[end:]
    return None


#: The readers by their names in the docs, in the order tried.
NOTATIONS: dict[str, Callable[[str], tuple[Any, str] | None]] = {
    "Python's notation": read_python,
    "JSON in a code fence": _read_fences,
    "JSON behind prose": _read_behind_prose,
}

#: An opening tag and its closing tag: `<search>` and `</search>`.
Tags = tuple[str, str]


class Tagged(NamedTuple):
    """A text between two tags. `begin` and `end` include the tags; `inner_begin` and `inner_end` do not."""

    tags: Tags
    begin: int
    inner_begin: int
    inner_end: int
    end: int


class TaggedText:
    """A text to search for tags, with a cache of the position at which each tag was last found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, tuple[int, int]] = {}

    def find(self, words: str, start: int) -> int:
        """Return the first position of `words` at or after `start`, or -1. The cache helps only if `start` grows between calls."""
        asked, place = self._found.get(words, (len(self.text) + 1, -1))
        if asked <= start and (place < 0 or start <= place):
            return place
        place = self.text.find(words, start)
        self._found[words] = (start, place)
        return place

    def find_span(self, kinds: Iterable[Tags], start: int) -> Tagged | None:
        """Find the first pair of an opening tag and a later closing tag. Return the positions of both tags; None without a pair."""
        best: Tagged | None = None
        for opening, closing in kinds:
            begin = self.find(opening, start)
            inner = begin + len(opening)
            end = self.find(closing, inner) if begin >= 0 else -1
            if end >= 0 and (best is None or begin < best.begin):
                best = Tagged((opening, closing), begin, inner, end, end + len(closing))
        return best

    def skip_white(self, start: int) -> int:
        while start < len(self.text) and self.text[start].isspace():
            start += 1
        return start
