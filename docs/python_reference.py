"""Writes the page of public functions and classes, docs/reference/python.md, from signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cached_property
from typing import Any

import griffe

import goodgain as gg
from goodgain.formats.run import PandasFacade
from goodgain.measures.families import MEASURES
from goodgain.scoring.scoring import Scoring
from goodgain.scoring.shared_arguments import OPTIONS_PAGE

#: Modules with public names that `goodgain` does not have.
MODULES = (
    *(f"goodgain.hosts.{name}" for name in ("ranx", "pytrec_eval", "inspect", "mlflow")),
    "goodgain.analysis.reporting.plots",
)
#: The folders that most readers look for.
FIRST = ("scoring", "experiments", "analysis", "formats", "logs", "judgments")
#: Part of a docstring -> its title on the page.
TITLES = {
    "parameters": "Arguments",
    "attributes": "Attributes",
    "returns": "Returns",
    "yields": "Yields",
    "raises": "Raises",
}
INTRODUCTION = """\
`help(goodgain.evaluate)` prints the same texts. [All measures](measures.md) are listed apart, and so are the
[options](options.md) that several functions share.
"""
_WIDTH = 100


def write_python(note: str) -> str:
    parts: list[str] = ["# Python\n", note, INTRODUCTION]
    for folder, names in _list_public_names().items():
        parts.append(f"## {folder.rpartition('.')[2].capitalize()}\n\n{_read_title(folder)}.\n")
        for name in names:
            parts += _describe(f"goodgain.{name}", getattr(gg, name))
    for name in MODULES:
        module = importlib.import_module(name)
        parts.append(f"## {name}\n")
        parts += _write_docstring(inspect.getdoc(module) or "")
        for member in module.__all__:
            value = getattr(module, member)
            if inspect.isclass(value) or inspect.isfunction(value):
                parts += _describe(f"{name}.{member}", value)
    return "\n".join(parts)


def _list_public_names() -> dict[str, list[str]]:
    """Return the public functions and classes of each folder, without measures."""
    folders: dict[str, list[str]] = {f"goodgain.{folder}": [] for folder in FIRST}
    for name in gg.__all__:
        value = getattr(gg, name)
        if name not in MEASURES and (inspect.isclass(value) or inspect.isfunction(value) or value is gg.NO_LABELS):
            folder = ".".join(value.__module__.split(".")[:2])
            folders.setdefault(folder, []).append(name)
    return folders


def _read_title(module: str) -> str:
    """Return the first sentence of a module's docstring."""
    said = inspect.getdoc(importlib.import_module(module)) or module
    return said.splitlines()[0].rstrip(".")


def _describe(name: str, value: Any) -> Iterator[str]:
    """Yield the heading, the signature and the docstring of a function or class, and then of the methods of a class."""
    yield f"### {name}\n"
    yield _write_signature(name.rpartition(".")[2], value)
    yield from _write_docstring(inspect.getdoc(value) or "")
    if inspect.isclass(value) and not _is_exception(value):
        for method, member in _list_methods(value):
            yield f"#### {name}.{method}\n"
            yield _write_signature(method, member)
            yield from _write_docstring(inspect.getdoc(member) or "")


def _list_methods(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that the class or another class of goodgain defines, and that say what they do."""
    found: dict[str, Any] = {}
    for owner in value.__mro__:
        if owner.__module__.startswith("goodgain"):
            found = {name: member for name, member in vars(owner).items() if _is_described(name, member)} | found
    for name, member in found.items():
        # Other modules call the steps of an experiment, and those of a run. Readers need the methods that `goodgain` has too,
        # and those with an example.
        if (
            not issubclass(value, (Scoring, PandasFacade))
            or name in gg.__all__
            or ">>>" in (inspect.getdoc(member) or "")
        ):
            yield name, member


def _is_described(name: str, member: Any) -> bool:
    is_method = inspect.isroutine(member) or isinstance(member, (property, cached_property))
    return is_method and not name.startswith("_") and bool(inspect.getdoc(member))


def _write_signature(name: str, value: Any) -> str:
    """Return the signature in a block of code, on one line if it fits, else with an argument on each line.

    Options that functions share stay together, as `**options`.
    """
    is_result = is_dataclass(value)  # nobody makes one by hand
    if isinstance(value, (property, cached_property)) or is_result or _is_exception(value) or value is gg.NO_LABELS:
        return ""
    function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    if inspect.isclass(value):
        function = value.__init__
    signature = inspect.signature(inspect.unwrap(function))

    given = [parameter for parameter in signature.parameters.values() if parameter.name not in ("self", "cls")]
    shown = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in given]
    arguments = str(inspect.Signature(shown))
    if len(name + arguments) > _WIDTH:
        one_each = [*map(str, shown)]
        first_named = next((i for i, one in enumerate(shown) if one.kind is one.KEYWORD_ONLY), None)
        if first_named is not None:
            one_each.insert(first_named, "*")
        arguments = "".join(["(\n", *(f"    {argument},\n" for argument in one_each), ")"])
    return f"```python\n{name}{arguments}\n```\n"


def _is_exception(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def _write_docstring(text: str) -> Iterator[str]:
    docstring = griffe.Docstring(text)
    options: Any = {"returns_multiple_items": False, "returns_named_value": False, "warnings": False}
    for part in docstring.parse("google", **options):
        kind = part.kind.value
        if kind == "text":
            yield _fence_examples(part.value)
        elif kind in ("returns", "yields"):
            yield f"**{TITLES[kind]}**: {_join_lines(_find_words(part.value[0]))}\n"
        elif kind == "admonition":  # a heading of our own, such as Source
            yield f"**{part.title}**: {_join_lines(part.value.description)}\n"
        elif kind in TITLES:
            rows = [f"- `{_name(entry)}`: {_join_lines(entry.description)}" for entry in part.value]
            yield "\n".join([f"**{TITLES[kind]}**\n", *rows, ""])
        else:
            raise ValueError(f"a docstring has a part {kind!r}, which this page does not know: {text[:60]}")


def _name(entry: Any) -> str:
    """Return the name of an argument or attribute, or the class of an error."""
    name = str(getattr(entry, "name", None) or entry.annotation)
    if name.endswith(","):  # griffe takes the second of two attributes, `base, new`, for a type
        return f"{name} {entry.annotation}"
    return name


def _find_words(returned: Any) -> str:
    """Return the words on a returned value. griffe takes the words before a colon for a type."""
    type_words = "" if returned.annotation is None else f"{returned.annotation}: "
    return f"{type_words}{returned.description}"


def _join_lines(text: str) -> str:
    """Return a paragraph on one line. Items of lists and further paragraphs begin lines of their own."""
    joined = re.sub(r"\n(?=\S)(?!- )", " ", text.strip())
    return joined.replace(OPTIONS_PAGE, "[Options](options.md)")


def _fence_examples(text: str) -> str:
    """Put examples into blocks of code. A line that begins with `>>>` begins an example, which ends at an empty line."""
    shown = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if paragraph.startswith(">>>"):
            shown.append(f"```pycon\n{paragraph}\n```\n")
        else:
            shown.append(paragraph + "\n")
    return "\n".join(shown)
