"""Tests the tests: makes one random change at a time in a copy of the checkout, and runs the tests that should notice it.

    python .ci/mutants.py --seed 7 --count 20 comparing dedup

A change is an operator, a comparison, a number, a condition, `min` for `max`, two exchanged arguments, a dropped step of a
chain or a dropped statement. Docstrings, annotations and messages stay. The tests of the changed module run: its examples and
the files that name it or its functions most, its folder, tests/evaluation; then the same files with all their cases. A test
that notices a change must pass without it.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import itertools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDERS = ("measures", "counting", "ranking", "comparing", "dedup", "formats", "judging", "reporting")

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


#: Test files that run first, of those that name the module or its functions.
NAMING_IT = 5


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


Place = tuple[int, int]


def _start(node: ast.expr | ast.stmt) -> Place:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> Place:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _change_node(node: ast.AST, lines: list[str]) -> Iterator[tuple[Place, Place, str]]:
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


def _change_call(node: ast.Call, lines: list[str]) -> Iterator[tuple[Place, Place, str]]:
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


def _change_operator(a: ast.expr, op: ast.AST, b: ast.expr, lines: list[str]) -> Iterator[tuple[Place, Place, str]]:
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


def _cut(a: Place, b: Place, lines: list[str]) -> str:
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


def find_tests(copy: Path, path: Path) -> list[list[str]]:
    """Return the tests of a module in two runs: its examples and the files that name it most, then those of its folder."""
    folder = path.relative_to(ROOT / "src/goodgain").parts[0]
    top = ast.parse(path.read_bytes()).body
    public = {node.name for node in top if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"}
    named = re.compile(rf"\b({'|'.join(sorted({path.stem, *public}))})\b")
    files = sorted(copy.glob("tests/**/test_*.py"))
    times = {file: len(named.findall(file.read_text(encoding="utf-8"))) for file in files}
    likely = sorted((file for file in files if times[file]), key=lambda file: -times[file])[:NAMING_IT]
    rest = [
        file for where in (folder, "evaluation") for file in files if where in file.parts[-2:] and file not in likely
    ]
    first, others = ([str(file.relative_to(copy)) for file in group] for group in (likely, rest))
    return [[str(path.relative_to(ROOT)), *first], others]


def run_tests(copy: Path, tests: list[str], *, everything: bool, limit: float) -> tuple[str, str]:
    """Return `passed`, `failed` or `no end`, and the first test that failed."""
    environment = os.environ | {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "POLARS_MAX_THREADS": "1"}
    environment |= {"GOODGAIN_TESTS": "all" if everything else ""}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-m",
        "not spark",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        *tests,
    ]
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1)),
    )
    try:
        printed, _ = process.communicate(timeout=20 * limit + 20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "no end", ""
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "no end", ""
    if process.returncode in (0, 5):  # 5: there is no test
        return "passed", ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+(?: .*?\])?)", printed, re.M)
    return "failed", failed[1] if failed else ""


def try_change(copy: Path, change: Change, *, limit: float, everything: bool) -> tuple[str, str]:
    """Return `noticed`, `survived`, `no end` or `fails anyway`, and by which test or in which selection."""
    target = copy / change.path.relative_to(ROOT)
    source = change.path.read_bytes()
    stages = [
        (tests, every)
        for every in ((False, True) if everything else (False,))
        for tests in find_tests(copy, change.path)
    ]
    _write(target, change_text(source, change))
    spent = _find_cpu()
    try:
        for tests, every in stages:
            if not tests:
                continue
            result, test = run_tests(copy, tests, everything=every, limit=limit - _find_cpu() + spent)
            if result == "no end":
                return "no end", f"{'all cases of ' if every else ''}{' '.join(tests)}"[:100]
            if result == "failed":
                _write(target, source)
                anyway = test and run_tests(copy, [test], everything=every, limit=limit)[0] != "passed"
                return ("fails anyway" if anyway else "noticed"), f"{test}{' (all cases)' if every else ''}"
        return "survived", ""
    finally:
        _write(target, source)


def _find_cpu() -> float:
    """Return the processor's seconds of the tests so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
    parser.add_argument("--limit", type=float, default=900, help="seconds of a processor for one change")
    parser.add_argument("--few", action="store_true", help="only the cases of make test")
    options = parser.parse_args()
    paths = [path for name in options.folders for path in _find_files(ROOT / "src/goodgain" / name)]
    changes = list(dict.fromkeys(change for path in paths for change in find_changes(path)))
    random.Random(options.seed).shuffle(changes)
    drawn = list(itertools.islice(filter(is_another_program, changes), options.skip, options.skip + options.count))
    print(f"{len(drawn)} of {len(changes):,} changes of {len(paths)} files, seed {options.seed}", flush=True)
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(Path(folder))
        for change in drawn:
            began = time.monotonic()
            result, by = try_change(Path(folder), change, limit=options.limit, everything=not options.few)
            counts[result] = counts.get(result, 0) + 1
            _print(change, result, by, time.monotonic() - began)
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    judged = len(drawn) - counts.get("fails anyway", 0)
    print(f"noticed: {counts.get('noticed', 0) / judged if judged else 0:.0%}")


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
