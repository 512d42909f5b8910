"""Checks the rules of plain words that a machine can hold: part of `make check`.

In code and pages: banned phrases and spelling. In messages: sentences of at most 30 words; notices: at most 40 words.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "qrels_examples/**/*.md", "notebooks/*.ipynb")

#: Pattern -> what to write.
BANNED = {
    r"of which|therein|thereof|whereby|wherein|whereof|thereby": "two sentences",
    r"what (is|has|are) no|such as no|which has none|that has none": "say what it is",
    r"as is (wanted|asked|needed)|so taken|be it": "say it directly",
    r"(?<!there )(is|are|was|were) no (?!longer|more|less|such)[a-z]+": "'is not a' or 'has no'",
    r"anew": "again",
    r"told apart|tell(s|ing)? apart": "distinguished",
    r"but for|save for": "except",
    r"lest|hence|thus|in order to|whilst|albeit|thereafter|henceforth": "the plain word",
    r"(is|are) to be": "must be",
    r"which see|is had": "say what it is",
    r"utili[sz]e|leverage|facilitate": "use, help",
    r"without a word|by way of|what becomes? of|what became of|parted by": "silently, through, the outcome, separated by",
    r"hostile": "malicious",
}
SPELLING = {
    "judgement": "judgment",
    r"normalize(?!\()": "normalise",
    "randomization": "randomisation",
    "recognize": "recognise",
    "behavior": "behaviour",
    "artefact": "artifact",
    "de-duplicat": "deduplicat",
}
#: Where a rule does not hold -> why.
EXCEPTIONS: dict[str, str] = {}

LONGEST_SENTENCE = 30
LONGEST_NOTICE = 40


def find_phrases(text: str) -> Iterator[str]:
    """Yield what is wrong with the words of a text."""
    for pattern, remedy in BANNED.items():
        for found in re.finditer(rf"(?:\b({pattern}))\b", text, flags=re.IGNORECASE):
            yield f"{found[0]!r}: write {remedy}"
    for wrong, right in SPELLING.items():
        if re.search(rf"\b{wrong}", text, flags=re.IGNORECASE):
            yield f"{wrong!r}: write {right!r}"


def read_words(text: str) -> str:
    """Return a page without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`|<!--.*?-->", "CODE", text, flags=re.DOTALL)


def check_pages() -> Iterator[str]:
    """Yield the faults of README, docs, examples and notebooks."""
    for path in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        for number, line in enumerate(re.sub(r"```.*?```", blank, text, flags=re.DOTALL).splitlines(), 1):
            yield from (f"{path.relative_to(ROOT)}:{number}: {fault}" for fault in find_phrases(read_words(line)))


def blank(found: re.Match[str]) -> str:
    """Return the line ends of a match alone, so that later lines keep their numbers."""
    return "\n" * found[0].count("\n")


def check_code() -> Iterator[str]:
    """Yield the faults of docstrings, comments and messages."""
    for path in sorted(ROOT.glob("src/goodgain/**/*.py")):
        where = path.relative_to(ROOT)
        source = path.read_text(encoding="utf-8")
        for number, line in enumerate(source.splitlines(), 1):
            yield from (f"{where}:{number}: {fault}" for fault in find_phrases(line))
        for node in ast.walk(ast.parse(source)):
            for kind, text in read_messages(node):
                words = max((len(sentence.split()) for sentence in re.split(r"[.?!;](?:\s|$)", text)), default=0)
                if words > LONGEST_SENTENCE:
                    yield f"{where}:{node.lineno}: a sentence of {words} words: {text[:60]!r}"  # type: ignore[attr-defined]  # a call has a line
                if kind == "notice" and len(text.split()) > LONGEST_NOTICE:
                    yield f"{where}:{node.lineno}: a notice of {len(text.split())} words: {text[:60]!r}"  # type: ignore[attr-defined]


def read_messages(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each message that a call makes: an error or a notice."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        name = node.func.id
        if name == "notice" or name.endswith(("Error", "Notice")):
            yield ("notice" if name == "notice" else "error"), read_text(node.args[0])


def read_text(node: ast.expr) -> str:
    """Return the text of an expression, with one word for each part that is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(read_text(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return read_text(node.left) + read_text(node.right)
    return "VALUE"


if __name__ == "__main__":
    faults = [
        fault for fault in (*check_pages(), *check_code()) if not any(fault.startswith(known) for known in EXCEPTIONS)
    ]
    print(*faults, sep="\n")
    sys.exit(1 if faults else 0)
