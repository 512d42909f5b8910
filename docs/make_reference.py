"""Writes docs/reference from the code: `make reference`. Each page follows from declarations, docstrings and --help.

A test compares the pages with the code.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner
from python_reference import write_python

import goodgain as gg
from goodgain.cli.program import program
from goodgain.formats.web_identities import IDENTITIES
from goodgain.logs.traces import formats
from goodgain.logs.traces.reading_summary import COUNTER_NOTICES
from goodgain.measures.declaration import Declaration
from goodgain.measures.families import MEASURES, RANKED_MEASURES, SESSION_MEASURES
from goodgain.measures.parameters import read_parameters
from goodgain.options import BESIDE, CORRECTIONS, DOCUMENTS, READING, SCORING, STATISTICS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- docs/make_reference.py writes this page: make reference -->\n"

#: Family -> heading and what its measures have in common.
FAMILIES = {
    "good gain": ("Measures of iterations", "`@i` is an iteration. Without it the value is that of the query's last iteration."),
    "counts": ("Counts of iterations", "`@i` is an iteration, as above."),
    "session": ("Measures of all results", "`@i` is an iteration, as above. They need every result, which the ledger lacks."),
    "classic": ("Classic measures", "`@k` is a rank. Names and values are those of ir_measures (RBP: without ties)."),
    "ranked": ("Measures that ir_measures lacks", "`@k` is a rank. ir_measures takes them as objects: `goodgain.F(beta=2) @ 10`."),
    "graded": (
        "Measures that skip documents without a grade",
        "`@k` is a rank. A query without any grade in its first k results has no value.",
    ),
}  # fmt: skip

FORMATS = """\
[`goodgain convert`](../traces/README.md) recognises these formats. Results that a log lacks are *unrecorded*: an error, unless you
pass `--unrecorded`. Where a log has no query id, use `--query-id` or `--query-ids`.

Show what each format sees in a file:

```sh
goodgain convert --explain-format qrels_examples/two_logs/old.json
```
"""

ITERATIONS = """\
>>> import goodgain as gg
>>> import polars as pl
>>> qrels = {"q": {"a": 3, "b": 0, "c": 2, "e": 2, "f": 0}}
>>> agent = pl.DataFrame(
...     {"query_id": "q", "iteration": [1, 1, 1, 2, 2, 2], "doc_id": list("abfacd")}
... )
>>> of_subtopics = {"query_id": "q", "iteration": list("123"), "doc_id": list("ace"), "relevance": 2}
>>> subtopics = gg.read_qrels(pl.DataFrame(of_subtopics), labels="subtopic")
>>> asked = {"query_id": "q", "iteration": [1, 2], "search": 1, "rank": 0, "search_query": ["dam", "Dam"]}
>>> results = pl.DataFrame(asked)
>>> lengths = {"a": 100, "b": 400, "c": 200, "d": 300, "f": 500}
>>> spent = {"query_id": "q", "calls": [2], "input_tokens": [600], "seconds": [6.0], "cost": [0.5]}
>>> costs = pl.DataFrame(spent)
"""
RANKING = """\
>>> grades = {"q": {"a": 2, "b": 0, "c": 1, "e": 1, "x": 0}}
>>> ranking = {"q": {"b": 5.0, "a": 4.0, "x": 3.0, "c": 2.0}}
"""
#: What follows @ in the example of a measure over a ranking.
AT = {"cutoff": 3, "recall": 0.5}


def write_measures() -> str:
    """Return the page of all measures."""
    declared = [measure.declaration for measure in MEASURES.values()] + [*(SESSION_MEASURES | RANKED_MEASURES).values()]
    parts = [
        "# All measures\n",
        NOTE,
        "A document is good (in classic measures: relevant) if its label is at least `rel`. Parameters have their defaults. "
        "`help(gg.SessionDCG)` explains the parameters of a measure, but not of classic measures.\n",
        f"The values below are those of two examples:\n\n```pycon\n{ITERATIONS}{RANKING}\n```\n",
    ]
    for family, (heading, common) in FAMILIES.items():
        parts += [f"## {heading}\n", common + "\n"]
        parts += [write_measure(declaration) for declaration in declared if declaration.family == family]
    return "\n".join(parts)


def write_measure(declaration: Declaration) -> str:
    """Return the section of one measure: what it is, then its facts and a value."""
    name, value, data, more = find_example(declaration)
    low, high = declaration.bounds
    facts = {
        "Written": f"`{declaration.usage}`",
        "Better": {"up": "higher", "down": "lower", None: "neither"}[declaration.better],
        "Values": f"{low} to {high}" if high else "any number" if low == "-inf" else f"{low} or more",
        "Parameters": ", ".join(f"`{parameter}`" for parameter in list_parameters(declaration)),
        "Source": declaration.source,
        "Note": declaration.note,
        "Example": f"`gg.evaluate({data}, {name!r}{more})` gives {value:.4f}",
    }
    lines = [f"- {key}: {text if '`' in text else escape(text)}" for key, text in facts.items() if text]
    return (
        f"### {declaration.name}\n\n{declaration.title}: {escape(declaration.definition)}.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def list_parameters(declaration: Declaration) -> list[str]:
    """Return the parameters of a measure, each with its default if it has one."""
    defaults = read_parameters(declaration.measure)
    return [f"{name}={defaults[name]!r}" if defaults.get(name) is not None else name for name in declaration.parameters]


def find_example(declaration: Declaration) -> tuple[str, float, str, str]:
    """Return a measure with its parameters, its value in the example of the page, the names of qrels and run, and a table."""
    more = ""
    if declaration.family == "session" and declaration.example:
        name = declaration.example[0] if declaration.cutoff == "none" else f"{declaration.name}@2"
        more = f", {table}={table}" if (table := declaration.table(read_parameters(declaration.measure))) else ""
    elif declaration.is_over_iterations:
        name = declaration.name if declaration.cutoff == "none" else f"{declaration.name}@2"
    else:
        measure = declaration.measure
        at = {str(measure.AT_PARAM): AT[str(measure.AT_PARAM)]} if "@" in declaration.usage else {}
        is_whole = declaration.takes(read_parameters(measure) | at)
        name = declaration.name + ("" if is_whole else "(rel=1)") + "".join(f"@{value}" for value in at.values())
    names: dict[str, object] = {}
    exec((ITERATIONS + RANKING).replace(">>> ", "").replace("... ", ""), names)
    data = "qrels, agent" if declaration.is_over_iterations else "grades, ranking"
    data = "subtopics, agent" if declaration.labels else data  # it takes no other qrels
    scores: gg.Scores = eval(f"gg.evaluate({data}, {name!r}{more})", names)
    return name, scores[name], data, more


def escape(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return text.replace("*", "\\*").replace("<", "\\<").replace("[", "\\[")


def write_commands() -> str:
    """Return the page of all commands: what each prints with --help."""
    parts = [
        "# Command line\n",
        NOTE,
        "[Commands](../command_line.md) says how they work together.\n",
    ]
    for name in ["", *program.commands]:
        asked = [name, "--help"] if name else ["--help"]
        shown = CliRunner().invoke(program, asked, prog_name="goodgain", terminal_width=100)
        parts.append(f"## goodgain {name}".rstrip() + f"\n\n```text\n{shown.output.rstrip()}\n```\n")
    return "\n".join(parts)


def write_dependencies() -> str:
    """Return the page of what goodgain needs: the lines of pyproject.toml, with their comments."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed, extras = project.partition("\n[project.optional-dependencies]\n")[::2]
    rows = re.findall(r'^  "([\w-]+)>=([\d.]+)", +# (.+); (\d+) MB$', needed, flags=re.MULTILINE)
    more = re.findall(r"^(\w+) = \[[^#]*\] +# (.+); (\d+) MB$", extras, flags=re.MULTILINE)
    total = sum(int(row[-1]) for row in rows)
    return "\n".join(
        [
            "# Dependencies\n",
            NOTE,
            f"`pip install goodgain` brings about {total:,} MB and takes one to three minutes. Two thirds are numba with llvmlite "
            "(for ranx), polars, pyarrow and scipy. The size of a row includes the packages that only it brings.\n",
            "goodgain loads what is heavy when it is needed: `import goodgain` loads neither ranx nor pandas nor matplotlib.\n",
            "| package | lowest version | what for | MB |\n|---|---|---|---|",
            *(f"| {name} | {version} | {escape(what)} | {size} |" for name, version, what, size in rows),
            "\n## Extras\n",
            "An extra is installed on request. `all` is all of them. `dev` and `docs` are for a checkout.\n",
            "| extra | what for | MB more |\n|---|---|---|",
            *(f'| `pip install "goodgain[{name}]"` | {escape(what)} | {size} |' for name, what, size in more),
            "",
        ]
    )


#: What begins a line in the docstring of a format: each is a row of its table, if the format has it.
OF_FORMATS = ("Lost", "Query id", "Record", "Costs")


def write_trace_formats() -> str:
    """Return the page of all trace formats: a table of them, and what each says of itself in its docstring."""
    known = [form for form in formats().values() if not form.is_plugin]
    names = [f"| [`{form.name}`](#{form.name}) | {form.title} |" for form in known]
    head = ["# Trace formats\n", NOTE, FORMATS, "\n".join(["| format | what it is |", "|---|---|", *names])]
    parts = []
    for form in known:
        doc = inspect.getdoc(importlib.import_module(f"goodgain.logs.traces.formats.{form.name}")) or ""
        about, *said = re.split(rf"^({'|'.join(OF_FORMATS)}): ", doc, flags=re.MULTILINE)
        steps = about.strip().split("\n\n")[1:]
        rows = [
            ("Steps", " ".join(rule for rule in steps if not rule.startswith(" "))),
            *zip(said[::2], said[1::2], strict=True),
        ]
        table = "\n".join(f"| {label} | {' '.join(text.split())} |" for label, text in rows)
        blocks = [textwrap.dedent(rule) for rule in steps if rule.startswith(" ")]
        parts += [f"## {form.name}", f"| | |\n|---|---|\n{table}", *(f"```\n{block}\n```" for block in blocks)]
    return "\n\n".join(part.rstrip("\n") for part in [*head, *parts]) + "\n"


def write_web_identities() -> str:
    """Return the page of the addresses that name one page: the declarations of web identities."""
    rows = [
        [identity.name, identity.canonical, identity.drops.replace("*", "all"), *identity.same, *identity.different]
        for identity in IDENTITIES
    ]
    return "\n".join(
        [
            "# Addresses of one page\n",
            NOTE,
            "For these sites goodgain knows which addresses lead to one page. The canonical address decides equality.\n",
            "`{host}` is the host without `www.` and `m.`. `{url}` is the address inside: goodgain reads this one instead.\n",
            "| page | canonical address | parameters dropped | same | different |\n|---|---|---|---|---|",
            *(
                f"| {name} | `{canonical}` | {drops} | `{one}`<br>`{two}` | `{first}`<br>`{second}` |"
                for name, canonical, drops, one, two, first, second in rows
            ),
            "",
        ]
    )


#: Heading -> the options below it.
OPTION_GROUPS = {
    "Reading": READING,
    "Documents": DOCUMENTS,
    "Scoring": SCORING,
    "Tables beside the runs": BESIDE,
    "Statistics": (*STATISTICS, *CORRECTIONS),
}


def write_options() -> str:
    """Return the page of the options that several analyses share."""
    parts = [
        "# Options that analyses share\n",
        NOTE,
        "In Python they are keyword arguments of each function that needs them. `goodgain.Experiment` takes all of them except "
        "`queries`, `uses`, `outcomes` and `groups`: give these to its methods. The command line has them with two hyphens.\n",
    ]
    for heading, options in OPTION_GROUPS.items():
        parts.append(f"## {heading}\n\n| Python | command line | default | meaning |\n|---|---|---|---|")
        for option in options:
            cells = (f"`{option.name}`", f"`{option.flag}`", f"`{option.default!r}`", escape(option.description))
            parts.append(f"| {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def write_notices() -> str:
    """Return the page of the kinds of notices, with the texts of each as they stand in the code."""
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in sorted((ROOT / "src" / "goodgain").rglob("*.py"))]
    defined = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    times = Counter(node.name for node in defined)
    known: dict[str, Known] = {node.name: node for node in defined if times[node.name] == 1}
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                known.setdefault(node.targets[0].id, node.value)
    texts: dict[str, list[str]] = {}
    seen: set[ast.Call] = set()  # a call in a nested function is also in the outer one
    for tree in trees:
        for scope in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            for node in ast.walk(scope):
                is_notice = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("notice", "GoodgainNotice")
                if not is_notice or node in seen:
                    continue
                seen.add(node)
                kind, *others = node.args
                if isinstance(kind, ast.Constant):
                    found = find_texts(others[0], scope, known) if others else []
                    texts.setdefault(kind.value, []).extend(found)
    for kind, text in COUNTER_NOTICES.items():
        several = re.sub(r"\{\w+:(~?)[^|}]*\|([^}]*)\}", lambda part: part[2] if part[1] else f"… {part[2]}", text)
        texts.setdefault(kind, []).append(re.sub(r"\{[^}]*\}", "…", several))

    parts = [
        "# Notices\n",
        NOTE,
        "A notice is a `goodgain.GoodgainNotice`. Its attribute `kind` names the fact, so that a program can look for it. `…` "
        "stands for figures and names.\n",
        "| kind | text |\n|---|---|",
    ]
    for kind in sorted(texts):
        plain = [re.sub(r"…( …)+", "…", text) for text in texts[kind]]
        shown = "<br>".join(escape(text) for text in dict.fromkeys(plain) if re.search(r"\w", text))
        parts.append(f"| `{kind}` | {shown} |")
    return "\n".join([*parts, ""])


Known = ast.FunctionDef | ast.expr  # a function of the package, or the value of a name of a module


def find_texts(node: ast.expr, scope: ast.FunctionDef, known: dict[str, Known]) -> list[str]:
    """Return the texts that an expression can have, with … in place of values.

    A name has the texts that its function assigns. A function has the texts that it returns or yields.
    """
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        return ["".join(find_one(part, scope, known) for part in parts)]
    if isinstance(node, ast.Name):
        values = [*find_values(node.id, scope)] or [known.get(node.id)]
        return [text for value in values if isinstance(value, ast.expr) for text in find_texts(value, scope, known)]
    if not isinstance(node, ast.Call):
        return []
    if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        parts = [find_one(argument, scope, known) for argument in node.args]
        return [text.format(*parts) for text in find_texts(node.func.value, scope, known)]
    called = known.get(getattr(node.func, "attr", getattr(node.func, "id", "")))
    if not isinstance(called, ast.FunctionDef):
        return []
    given = [part for part in ast.walk(called) if isinstance(part, (ast.Return, ast.Yield, ast.YieldFrom))]
    given.sort(key=lambda part: part.lineno)
    return [text for part in given if part.value for text in find_texts(part.value, called, known) if text]


def find_one(node: ast.expr, scope: ast.FunctionDef, known: dict[str, Known]) -> str:
    """Return the text of a string, or of a name that is assigned only once; else …."""
    if isinstance(node, ast.Name):
        names = [part.id for part in ast.walk(scope) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
        names += [part.arg for part in ast.walk(scope) if isinstance(part, ast.arg)]
        if names.count(node.id) > 1:
            return "…"
    texts = find_texts(node, scope, known) if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Name)) else []
    return texts[0] if len(texts) == 1 else "…"


def find_values(name: str, scope: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield the expressions that a function assigns to a name, and those whose members a loop assigns to it."""
    for node in ast.walk(scope):
        targets, value = getattr(node, "targets", [getattr(node, "target", None)]), getattr(node, "value", None)
        if isinstance(node, ast.For):
            value = node.iter
        is_assigned = isinstance(node, (ast.Assign, ast.NamedExpr, ast.AnnAssign, ast.For))
        if is_assigned and value and any(isinstance(target, ast.Name) and target.id == name for target in targets):
            yield value


def write_pages() -> Iterator[tuple[str, str]]:
    """Yield the file and the text of each page."""
    yield "measures.md", write_measures()
    yield "command_line.md", write_commands()
    yield "python.md", write_python(NOTE)
    yield "options.md", write_options()
    yield "notices.md", write_notices()
    yield "dependencies.md", write_dependencies()
    yield "trace_formats.md", write_trace_formats()
    yield "web_identities.md", write_web_identities()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in write_pages():
        (FOLDER / file).write_text(text, encoding="utf-8")
