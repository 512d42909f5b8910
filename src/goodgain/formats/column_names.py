"""Column names: the user's (`columns=`), common synonyms, and names that look like the iteration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from goodgain.errors import InputError, notice
from goodgain.schema import QRELS, RUN, Table

#: Common names for the column with an agent's round.
_LOOKS_LIKE_ITERATION = ("step", "turn", "round", "search", "call", "hop")
#: PyTerrier's results have both; docid is the index's internal number of the document.
_DOCNO_AND_DOCID = {"docno", "docid"}

#: Name in the source -> our name.
Columns = Mapping[str, str]


@dataclass(frozen=True)
class FoundColumns:
    """Which columns of a source are read.

    Attributes:
        names: name in the source -> our name.
        renamed: the names in the source that `columns` renames.
        likely_iteration: a column that looks like the iteration, if none was read as the iteration.
        understood: the part of `names` found through synonyms.
    """

    names: Columns
    renamed: frozenset[str] = frozenset()
    likely_iteration: str | None = None
    understood: Columns = field(default_factory=dict)


def check_columns(columns: Columns | None) -> dict[str, str]:
    """Check the argument `columns`, and return it as a dict."""
    known = list(dict.fromkeys([*RUN.columns, *QRELS.columns]))
    example = "write columns={'step': 'iteration'}"
    if not isinstance(columns, Mapping | None):
        raise InputError(f"columns={columns!r} does not map your column names to goodgain's. Correct it: {example}")
    for name, ours in (columns or {}).items():
        if not isinstance(name, str) or ours not in known:
            raise InputError(
                f"columns={{{name!r}: {ours!r}}}: goodgain has no column {ours!r}. It has {', '.join(known)}: {example}"
            )
    return dict(columns or {})


def find_columns(names: Iterable[str], table: Table, columns: Columns, *, label: str) -> FoundColumns:
    """Match the columns of a source to those of a table.

    Args:
        names: the source's column names.
        table: the table it is read as.
        columns: the user's names, from `check_columns`; names that this source or table lacks are ignored.
        label: what errors call the source.
    """
    names = list(names)
    renamed = {name: columns[name] for name in names if columns.get(name) in table.columns}
    found = {name: renamed.get(name, name) for name in names if name in renamed or name in table.columns}
    for name, ours in renamed.items():
        others = [other for other, its in found.items() if its == ours and other != name]
        if others:
            raise InputError(
                f"{label} has two columns for {ours}, {name!r} and {others[0]!r}. Rename one, or remove it from columns="
            )
    if found.get("relevance") == "relevance" and "relevance" not in renamed:
        for other in names:
            if other in renamed or table.synonyms.get(str(other).lower()) != "relevance":
                continue
            raise InputError(
                f"{label} has two columns that may be relevance, 'relevance' and {other!r}. Rename or remove one. "
                "To read the first, pass columns={'relevance': 'relevance'}"
            )
    if table.name == QRELS.name and "relevance" not in found.values() and {"judge", "grade"} <= {*names}:
        found["grade"] = "relevance"  # what `goodgain label` writes
    understood = _find_synonyms(names, table, found.values(), label)
    found |= understood
    in_table = sorted(found, key=lambda name: list(table.columns).index(found[name]))
    likely = None
    if table is RUN and "iteration" not in found.values():
        unread = (name for name in names if name not in found)
        likely = next((name for name in unread if str(name).lower() in _LOOKS_LIKE_ITERATION), None)
    return FoundColumns({name: found[name] for name in in_table}, frozenset(renamed), likely, understood)


def _find_synonyms(names: list[str], table: Table, taken: Iterable[str], label: str) -> dict[str, str]:
    """Find synonyms of the table's columns that the source lacks: name in the source -> our name."""
    lacking = set(table.columns) - set(taken)
    understood: dict[str, str] = {}
    for name in names:
        ours = table.synonyms.get(str(name).lower())  # pandas has names that are numbers
        if ours not in lacking:
            continue
        other = next((other for other, its in understood.items() if its == ours), None)
        if other is None:
            understood[name] = ours
        elif {name.lower(), other.lower()} == _DOCNO_AND_DOCID:
            if name.lower() == "docno":
                del understood[other]
                understood[name] = ours
        else:
            raise InputError(
                f"{label} has two columns that may be {ours}, {other!r} and {name!r}. "
                f"Name one of them: columns={{{other!r}: {ours!r}}} or columns={{{name!r}: {ours!r}}}"
            )
    return understood


def warn_of_understood_columns(found: FoundColumns, label: str) -> None:
    """Give a notice of the columns found through synonyms, if any."""
    if found.understood:
        read = ", ".join(f"{name!r} was read as {ours}" for name, ours in found.understood.items())
        notice(f"{label}: {read}. If that is wrong, set columns=")


def check_columns_used(columns: Columns, *sources: Any) -> None:
    """Raise `InputError` if a name in `columns` is not a column of any source."""
    for name in columns:
        if not any(name in source.renamed for source in sources):
            raise InputError(
                f"columns={{{name!r}: {columns[name]!r}}}: there is no column {name!r}. Correct the name. columns= is for tables, "
                "not for TREC text, dicts, or a Run or Qrels already read"
            )
