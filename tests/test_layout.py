"""The names of the package's folders and of the folders of its tests, its imports, and the one place for tables."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import goodgain
from goodgain.logs.traces.formats import ENTRY_POINT_GROUP

MODULES = {module.name for module in pkgutil.iter_modules(goodgain.__path__)}


def test_no_module_has_the_name_of_a_public_function() -> None:
    # goodgain.NAME would be the module or the function, whichever was imported last
    assert MODULES.isdisjoint(goodgain.__all__)


def test_every_line_of_the_stub_is_a_public_name() -> None:
    stub = ast.parse(Path(goodgain.__file__).with_suffix(".pyi").read_text())
    named = [
        name.asname for node in stub.body if isinstance(node, ast.ImportFrom) for name in node.names if name.asname
    ]
    assert sorted(named) == goodgain.__all__


def test_tests_stand_in_folders_named_as_those_of_the_package() -> None:
    folders = {path.parent.name for path in Path(__file__).parent.glob("*/__init__.py")}
    assert folders <= MODULES | {"support", "browser"}


#: The files that may know how a form draws a table.
TABLES = ("files/tables.py", "files/terminal_tables.py")
#: The cell border of Markdown, LaTeX and HTML in a string.
BORDER = re.compile(r"^\| | \|$|---:|^ & $|^& | &$| \\\\$|\\(hline|toprule|midrule)|</?(td|th|tr|table)\b")


def find_drawing(source: str) -> Iterator[str]:
    """Yield what draws a table: an import of rich's table or box, or a string constant with the border of a cell."""
    tree = ast.parse(source)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{one.name}" for one in node.names]
            yield from (name for name in names if re.match(r"rich\.(table|box)\b", name))
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if re.match(r"rich\.(table|box)\b", one.name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield from [node.value] * bool(BORDER.search(node.value))


@pytest.mark.slow
def test_only_the_table_module_draws_tables() -> None:
    root = Path(goodgain.__file__).parent
    found = {str(path.relative_to(root)): [*find_drawing(path.read_text())] for path in root.rglob("*.py")}
    assert all(found.pop(name) for name in TABLES)
    assert {name: drawn for name, drawn in found.items() if drawn} == {}


def test_the_check_of_tables_finds_each_way_to_draw_one() -> None:
    ways = ["from rich import box", "from rich.table import Table", "import rich.box"]
    ways += ["x = f'| {y} | {z} |'", "x = '<td>'", r"x + r' \\'", "x = '---:'", "x = ' & '.join(y)"]
    assert all([*find_drawing(way)] for way in ways), [way for way in ways if not [*find_drawing(way)]]
    assert not [*find_drawing("def f():\n    'A | B'\n    return x | y, 'a<b', 'R&D', '-'")]


def test_the_entry_point_group_of_contributing_is_the_one_that_is_read() -> None:
    text = Path("CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"entry point group `([\w.]+)`", text) == [ENTRY_POINT_GROUP]


def find_imports(source: str, modules: Iterable[str]) -> set[str]:
    """Return the modules that a source imports anywhere: at its top, in a function, or for types only."""
    imports = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            imports |= {name if name in modules else str(node.module) for name in names}
    return imports.intersection(modules)


def find_circles(sources: dict[str, str]) -> set[frozenset[str]]:
    """Return each group of modules that import each other, directly or through others. `sources` maps modules to their text."""
    reached = {module: find_imports(source, sources) for module, source in sources.items()}
    for middle in sources:
        for module, others in reached.items():
            if middle in others:
                reached[module] = others | reached[middle]

    in_circles = [module for module in sources if module in reached[module]]
    return {frozenset(other for other in reached[module] if module in reached[other]) for module in in_circles}


def test_no_module_imports_itself_through_others() -> None:
    root = Path(goodgain.__file__).parent
    sources = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(("goodgain", *parts)).removesuffix(".__init__")
        sources[module] = path.read_text(encoding="utf-8")
    del sources["goodgain"]  # its names are imported when they are used

    assert find_circles(sources) == set()


@pytest.mark.parametrize(
    "imports",
    [
        "import p.b",
        "from p.b import x",
        "from p import b",
        "def f():\n    from p.b import x",
        "if TYPE_CHECKING:\n    import p.b",
    ],
)
def test_the_check_of_circles_finds_each_way_to_import(imports: str) -> None:
    circle = {"p.a": imports, "p.b": "from p.c import x", "p.c": "import p.a", "p.d": "import p.a"}
    assert find_circles(circle) == {frozenset(["p.a", "p.b", "p.c"])}
    assert find_circles(circle | {"p.c": ""}) == set()
