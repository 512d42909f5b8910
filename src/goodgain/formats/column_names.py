"""Names of columns: those that the user gives with `columns=`, and those that look like the iteration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from goodgain.errors import InputError
from goodgain.schema import QRELS, RUN, Table

__all__ = ["Columns", "FoundColumns", "check_columns", "check_columns_used", "find_columns"]

#: What people call the column that numbers the rounds of an agent.
_LOOKS_LIKE_ITERATION = ("step", "turn", "round", "search", "call", "hop")

#: The user's name of a column -> the name it has here.
Columns = Mapping[str, str]


@dataclass(frozen=True)
class FoundColumns:
    """Which columns of a source are read.

    Attributes:
        names: name in the source -> name here, for the columns that the table has.
        renamed: the names in the source that `columns` renames.
        likely_iteration: a column that looks like the iteration, where no column is one.
    """

    names: Columns
    renamed: frozenset[str] = frozenset()
    likely_iteration: str | None = None


def check_columns(columns: Columns | None) -> dict[str, str]:
    """Return `columns` as a dict.

    Raises:
        InputError: it does not map names to names of columns that a run or qrels have.
    """
    known = list(dict.fromkeys([*RUN.columns, *QRELS.columns]))
    example = "write columns={'step': 'iteration'}"
    if not isinstance(columns, Mapping | None):
        raise InputError(f"columns={columns!r} does not map the names in the source to the names here; {example}")
    for name, ours in (columns or {}).items():
        if not isinstance(name, str) or ours not in known:
            raise InputError(
                f"columns={{{name!r}: {ours!r}}}: a run and qrels have no column {ours!r}, only {', '.join(known)}; {example}"
            )
    return dict(columns or {})


def find_columns(names: Iterable[str], table: Table, columns: Columns, *, label: str) -> FoundColumns:
    """Tell which columns of a source are those of a table.

    Args:
        names: of the source's columns.
        table: the table it is read as.
        columns: the user's names, as `check_columns` gives them; what is not in this source or table is passed over.
        label: what errors call the source.

    Raises:
        InputError: two columns of the source would have one name.
    """
    names = list(names)
    renamed = {name: columns[name] for name in names if columns.get(name) in table.columns}
    found = {name: renamed.get(name, name) for name in names if name in renamed or name in table.columns}
    for name, ours in renamed.items():
        others = [other for other, its in found.items() if its == ours and other != name]
        if others:
            raise InputError(
                f"{label} has two columns for {ours}, {name!r} and {others[0]!r}; rename one of them, or leave it out of columns="
            )
    in_table = sorted(found, key=lambda name: list(table.columns).index(found[name]))
    likely = None
    if table is RUN and "iteration" not in found.values():
        likely = next((name for name in names if name.lower() in _LOOKS_LIKE_ITERATION and name not in found), None)
    return FoundColumns({name: found[name] for name in in_table}, frozenset(renamed), likely)


def check_columns_used(columns: Columns, *sources: Any) -> None:
    """Raise `InputError` where a name in `columns` is not a column of any source that was read with it."""
    for name in columns:
        if not any(name in source.renamed for source in sources):
            raise InputError(
                f"columns={{{name!r}: {columns[name]!r}}}: there is no column {name!r} in what was read with it; correct the "
                "name (text in TREC's form and dicts have no names of columns, and what was read before keeps its own)"
            )
