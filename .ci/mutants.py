"""Tests the tests: makes one random change at a time in a copy of the checkout, and runs the tests that should notice it.

    python .ci/mutants.py --seed 7 --count 20 analysis/comparing logs/dedup

A change is an operator, a comparison, a number, a condition, `min` for `max`, two exchanged arguments, a dropped step of a
chain or a dropped statement. Docstrings, annotations and messages stay. The tests that call the changed function run: examples,
its folder, tests/scoring; survivors run them with all their cases. A test that notices a change must pass without it.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard

sys.path.insert(0, str(Path(__file__).parent))
from mutant_tests import Calls, Place, Recorder, find_seconds, import_packages, run_tests, try_tests, weigh_words

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "measures",
    "counting",
    "ranking",
    "formats",
    "logs/dedup",
    "judgments/judging",
    "analysis/comparing",
    "analysis/explaining",
    "analysis/reporting",
)

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
#: Functions, methods and words that are exchanged, in both directions.
PAIRS = [
    ("min", "max"), ("any", "all"), ("first", "last"), ("head", "tail"), ("floor", "ceil"), ("is_null", "is_not_null"),
    ("min_horizontal", "max_horizontal"), ("any_horizontal", "all_horizontal"), ("cum_sum", "cum_max"), ("append", "extend"),
    ("startswith", "endswith"), ("sum", "max"), ("mean", "median"), ("left", "inner"), ("semi", "anti"), ("lower", "upper"),
    ("is_first_distinct", "is_last_distinct"), ("difference", "intersection"), ("len", "n_unique"),
]  # fmt: skip
EXCHANGED = {b: a for a, b in PAIRS} | dict(reversed(PAIRS))
#: Steps of a chain that can be left out.
STEPS = {
    "filter",
    "sort",
    "unique",
    "drop_nulls",
    "fill_null",
    "fill_nan",
    "over",
    "round",
    "abs",
    "clip",
    "strip",
    "lower",
}
STEPS |= {"casefold", "reverse", "rstrip", "lstrip", "head", "distinct", "drop"}


#: `noticed`: a test fails with the change and passes without it. `no end`: far slower than without it, so noticed too.
ENDINGS = ("noticed", "no end", "survived", "fails anyway")
#: Files of the first run, of those that name the module or its functions most.
AT_ONCE = 3
#: Words of a test's cases, which stand in JSON files and are not counted.
CASES = 5
#: Of a file that no run has ended.
UNKNOWN_SECONDS = 10.0


class Change(NamedTuple):
    """New text for a part of a file, in bytes of UTF-8 as `ast` counts columns."""

    path: Path
    start: int
    end: int
    text: str


def find_changes(path: Path) -> list[Change]:
    """Return every change of one file."""
    source = path.read_bytes()
    starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]
    return [
        Change(path, starts[a[0] - 1] + a[1], starts[b[0] - 1] + b[1], text)
        for node in _walk(ast.parse(source))
        for a, b, text in _change_node(node, source.decode().splitlines())
    ]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes in which a change can matter."""
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr | ast.Import | ast.ImportFrom):
                yield from _walk(child)


Point = tuple[int, int]


def _start(node: ast.expr | ast.stmt) -> Point:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> Point:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _change_node(node: ast.AST, lines: list[str]) -> Iterator[tuple[Point, Point, str]]:
    """Yield the changes of one node: from, to, and the new text."""
    match node:
        case ast.BinOp(left=a, op=op, right=b):
            yield from _change_operator(a, op, b, lines)
        case ast.Compare(left=a, ops=ops, comparators=others):
            for first, op, second in zip([a, *others], ops, others, strict=False):
                yield from _change_operator(first, op, second, lines)
        case ast.BoolOp(op=op, values=values):
            yield from _change_operator(values[0], op, values[1], lines)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield _start(node), _start(operand), ""
        case ast.Constant(value=bool(value)):
            yield _start(node), _end(node), str(not value)
        case ast.Constant(value=int() | float() as value):
            yield _start(node), _end(node), str(value + 1)
            if value:
                yield _start(node), _end(node), "0"
        case ast.keyword(arg="how", value=ast.Constant(value=str(word)) as value) if word in EXCHANGED:
            yield _start(value), _end(value), f'"{EXCHANGED[word]}"'
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield _start(test), _end(test), f"(not ({_text(test, lines)}))"
        case ast.comprehension(ifs=[test, *_]):
            yield _start(test), _end(test), f"(not ({_text(test, lines)}))"
        case ast.Return(value=ast.Tuple(elts=[a, b])):
            yield _start(a), _end(b), f"{_text(b, lines)}, {_text(a, lines)}"
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break() | ast.Raise():
            yield _start(node), _end(node), "pass"
        case ast.Call():
            yield from _change_call(node, lines)


def _change_call(node: ast.Call, lines: list[str]) -> Iterator[tuple[Point, Point, str]]:
    a, b, *_ = [*node.args, None, None]
    words = _is_text(a) and _is_text(b)
    if a and b and not words and not any(isinstance(x, ast.Starred | ast.JoinedStr) for x in (a, b)):
        yield _start(a), _end(b), f"{_text(b, lines)}, {_text(a, lines)}"
    match node.func:
        case ast.Name(id=name) if name in EXCHANGED:
            yield _start(node.func), _end(node.func), EXCHANGED[name]
        case ast.Attribute(value=value, attr=name):
            if name in EXCHANGED:
                line, column = _end(node.func)
                yield (line, column - len(name)), (line, column), EXCHANGED[name]
            if name in STEPS:
                yield _end(value), _end(node), ""


def _change_operator(a: ast.expr, op: ast.AST, b: ast.expr, lines: list[str]) -> Iterator[tuple[Point, Point, str]]:
    if type(op) not in OPERATORS or (isinstance(op, ast.Add) and (_is_text(a) or _is_text(b))):
        return
    old, new = OPERATORS[type(op)]
    between = _cut(_end(a), _start(b), lines)
    if between.count(old) == 1 and "#" not in between:
        yield _end(a), _start(b), between.replace(old, new)


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _text(node: ast.expr, lines: list[str]) -> str:
    return _cut(_start(node), _end(node), lines)


def _cut(a: Point, b: Point, lines: list[str]) -> str:
    part = [line.encode() for line in lines[a[0] - 1 : b[0]]]
    part[-1] = part[-1][: b[1]]
    part[0] = part[0][a[1] :]
    return b"\n".join(part).decode()


def is_another_program(change: Change) -> bool:
    source = change.path.read_bytes()
    try:
        return ast.dump(ast.parse(change_text(source, change))) != ast.dump(ast.parse(source))
    except (SyntaxError, ValueError):
        return False


def change_text(source: bytes, change: Change) -> bytes:
    return source[: change.start] + change.text.encode() + source[change.end :]


# The tests


def find_function(change: Change) -> tuple[str, str, ast.AST]:
    """Return the module of a change, and the function or method it is in: an empty name and the module if in none."""
    source = change.path.read_bytes()
    line = source[: change.start].count(b"\n") + 1
    names: list[str] = []
    around: ast.AST = ast.parse(source)
    module = str(change.path.relative_to(ROOT / "src/goodgain"))
    while inner := [x for x in ast.iter_child_nodes(around) if _has(x, line)]:
        around = inner[0]
        names.append(around.name)
        if isinstance(around, ast.FunctionDef):
            return module, ".".join(names), around
    return module, "", around


def _has(node: ast.AST, line: int) -> TypeGuard[ast.FunctionDef | ast.ClassDef]:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno <= line <= (node.end_lineno or node.lineno)


def find_words(change: Change) -> re.Pattern[str]:
    """Return what a test of a change may have in its text: names of the module and its functions, the function's sentences."""
    _, function, around = find_function(change)
    top = ast.parse(change.path.read_bytes()).body
    public = {node.name for node in top if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"}
    texts = [x.value.strip() for x in ast.walk(around) if isinstance(x, ast.Constant) and isinstance(x.value, str)]
    phrases = [text for text in texts if function and " " in text and "\n" not in text]
    words = sorted({change.path.stem, *public, *function.split(".")} - {""})
    return re.compile("|".join([rf"\b{re.escape(word)}\b" for word in words] + [re.escape(text) for text in phrases]))


def order_files(copy: Path, change: Change, calls: Calls, *, everything: bool) -> list[str]:
    """Return the files that may notice a change: its examples, then those that have most of its words, cheap ones first.

    What calls the change is known of few cases: with `everything`, slow tests of the module's own folder may call it too.
    """
    module, function, _ = find_function(change)
    examples, words = str(change.path.relative_to(ROOT)), find_words(change)
    calls.of(examples)
    own_folder = copy / "tests" / Path(module).parent
    folders = {copy / "tests" / Path(module).parts[0], copy / "tests/scoring"}
    counts = {}
    for file in sorted(
        set((copy / "tests").rglob("test_*.py")) - set((copy / "tests/browser").iterdir())
    ):  # no memory for it
        name, weight = str(file.relative_to(copy)), weigh_words(words, file.read_text(encoding="utf-8"))
        known = calls.find_known(name, module, function).values()
        cost = sum(x or 0.0 for x in known) if calls.of(name)["whole"] else UNKNOWN_SECONDS
        nearby = bool(folders.intersection(file.parents))
        is_own = own_folder in file.parents
        if (cost or (everything and is_own)) and (weight or nearby):
            factor = 10 if is_own else 3 if nearby else 1
            counts[name] = -(weight + CASES) * factor, cost
    return [examples, *sorted(counts, key=lambda name: counts[name])]


def try_change(copy: Path, change: Change, calls: Calls, *, most: float, everything: bool) -> tuple[str, str]:
    """Return how a change ends (`ENDINGS`), and by which test, or how many files were tried."""
    target = copy / change.path.relative_to(ROOT)
    source = change.path.read_bytes()
    files = order_files(copy, change, calls, everything=everything)
    stages = [files[:AT_ONCE], *([file] for file in files[AT_ONCE:])]
    tried, began = 0, find_seconds()
    place = Place(*find_function(change)[:2], find_words(change))
    for stage in stages:
        if tried and find_seconds() - began > most:
            break
        _write(target, change_text(source, change))
        try:
            outcome = try_tests(copy, calls, stage, place, everything=everything)
        finally:
            _write(target, source)
        if not outcome.ended:
            if try_tests(copy, calls, stage, place, everything=everything).ended:
                return "no end", " ".join(stage)
        elif outcome.failed:
            return ("noticed" if passes(copy, calls, outcome.failed, everything) else "fails anyway"), outcome.failed
        else:
            tried += len(stage)
    return "survived", f"{tried} of {len(files)} files: {' '.join(files[:tried])}"


_passing: dict[str, bool] = {}


def passes(copy: Path, calls: Calls, name: str, everything: bool) -> bool:
    """Tell whether a test passes without a change. A whole file failed if it could not be imported."""
    file, _, test = name.partition("::")
    if name not in _passing:
        _passing[name] = not test or name in calls.of(file)["tests"]
    if not _passing[name]:
        outcome = run_tests(copy, [file], Recorder({}, only=name, everything=everything), 600)
        _passing[name] = outcome.ended and not outcome.failed
    return _passing[name]


_written = int(time.time())


def _write(path: Path, content: bytes) -> None:
    """Write a file with a time of its own: Python compares whole seconds to decide whether its bytecode is old."""
    global _written
    _written += 1
    path.write_bytes(content)
    os.utime(path, (_written, _written))


def copy_checkout(to: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, to / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="*", default=FOLDERS, help=f"folders or files of src/goodgain; default: {' '.join(FOLDERS)}"
    )
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="changes of the same seed that were tried before")
    parser.add_argument("--most", type=float, default=60, help="seconds of a processor for one change")
    parser.add_argument("--few", action="store_true", help="do not try the survivors with all cases")
    options = parser.parse_args()
    paths = [path for name in options.folders for path in _find_files(ROOT / "src/goodgain" / name)]
    changes = list(dict.fromkeys(change for path in paths for change in find_changes(path)))
    random.Random(options.seed).shuffle(changes)
    drawn = list(itertools.islice(filter(is_another_program, changes), options.skip, options.skip + options.count))
    print(f"{len(drawn)} of {len(changes):,} changes of {len(paths)} files, seed {options.seed}", flush=True)
    import_packages()
    results: dict[Change, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(copy := Path(folder))
        calls = Calls(copy, ROOT / "build/mutants.json")
        for everything in (False,) if options.few else (False, True):
            for change in drawn:
                if results.get(change, "survived") == "survived":
                    before = find_seconds()
                    results[change], by = try_change(copy, change, calls, most=options.most, everything=everything)
                    _print(change, f"{results[change]}{' (all cases)' * everything}", by, find_seconds() - before)
    counts = {name: list(results.values()).count(name) for name in ENDINGS}
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    judged = len(results) - counts["fails anyway"]
    print(f"noticed: {(counts['noticed'] + counts['no end']) / judged if judged else 0:.0%}")
    print(f"{find_seconds() / max(len(results), 1):.1f} s of the processor for each")


def _find_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def _print(change: Change, result: str, by: str, seconds: float) -> None:
    before = change.path.read_bytes()
    after = change_text(before, change)
    line = before[: change.start].count(b"\n") + 1
    print(f"{result:9} {seconds:4.0f} s  {change.path.relative_to(ROOT)}:{line}  {by}")
    for text in difflib.unified_diff(before.decode().splitlines(), after.decode().splitlines(), n=0, lineterm=""):
        if not text.startswith(("---", "+++", "@@")):
            print(f"    {text}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
