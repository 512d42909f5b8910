"""Opens a run or qrels as a frame with goodgain's column names. Columns are recognised by the argument `columns` and by synonyms.

The source is a file, a frame, a dict, named tuples, or the id of a data set of ir_datasets.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.bad_rows import Frame, FrameRows, RowSource, TextLines, number_lines, number_rows
from goodgain.files.delimited import read_names, refuse_other_separator
from goodgain.files.json_text import begins_json, read_nested
from goodgain.files.opening import Content, container, read_lines, separator_by_name, stem
from goodgain.files.table_reading import cast_columns, read_table, to_polars, wrap_frame
from goodgain.files.trec_text import is_row, read_text, warn_of_passed_over
from goodgain.formats.dicts_of_rows import make_columns, read_dict
from goodgain.options import spell
from goodgain.schema import BEIR, INTERNAL_NUMBERS, NUGGETS, QRELS, RUN, TASKS, UNLABELLED, Table

#: Common names for the column with an agent's round, in lower case.
_LIKE_ITERATION = r"(agent_|search_)?(iter(ation)?|step|turn|round|hop|search|call)(_?(idx?|index|no|num|number))?"

#: Name in the source -> goodgain's name. Pandas may have numbers as names; they match as text.
Columns = Mapping[Any, str]


class FoundColumns(NamedTuple):
    """The columns that are read from a source. `names` maps names in the source to goodgain's names.

    `renamed` lists the names that the user's `columns` rename. `understood` is the part of `names` found through synonyms.
    `likely_iteration` is a column that looks like the iteration, if no column was read as the iteration.
    """

    names: Columns
    renamed: frozenset[str] = frozenset()
    likely_iteration: str | None = None
    understood: Columns = MappingProxyType({})


def check_columns(columns: Columns | None) -> dict[str, str]:
    """Return the argument `columns` with texts as keys. Raise `InputError` if goodgain has no column of a given name."""
    example = f"write {spell('columns', {'step': 'iteration'})}"
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise InputError(
            f"{spell('columns', columns)} does not map your column names to goodgain's. Correct it: {example}"
        )
    our_names = list(dict.fromkeys([*RUN.columns, *QRELS.columns]))
    for name, our_name in columns.items():
        if our_name not in our_names:
            problem = f"goodgain has no column {our_name!r}. It has {', '.join(our_names)}"
            raise InputError(f"{spell('columns', {name: our_name})}: {problem}. Correct it: {example}")
    return {str(name): our_name for name, our_name in columns.items()}


def find_columns(names: Iterable[str], table: Table, columns: Columns, *, label: str) -> FoundColumns:
    """Match the columns of a source to the columns of a table.

    `columns` maps the user's names to goodgain's names. Names that the source or the table lacks are ignored.
    """
    names = list(dict.fromkeys(names))
    if table.name == QRELS.name and {*BEIR} <= {*names}:
        columns = {name: our_name for name, our_name in BEIR.items() if our_name not in columns.values()} | {**columns}
    renamed = {name: columns[str(name)] for name in names if columns.get(str(name)) in table.columns}

    our_name_of: dict[str, str] = {}
    understood: dict[str, str] = {}
    for our_name in table.columns:
        exact = [name for name in names if renamed.get(name, name) == our_name]
        synonyms = [name for name in names if name not in (*renamed, our_name) and table.understand(name) == our_name]
        _check_exact(exact, our_name, renamed, label)
        if our_name == "relevance":
            if exact == ["relevance"] and synonyms and "relevance" not in renamed:
                _raise_two_relevances(synonyms[0], label)
            if not exact and {"judge", "grade"} <= {*names}:
                exact = ["grade"]  # what `goodgain label` writes
        if exact:
            our_name_of[exact[0]] = our_name
        else:
            synonyms = _drop_internal_numbers(synonyms)
            _check_synonyms(synonyms, our_name, label)
            our_name_of |= dict.fromkeys(synonyms, our_name)
            understood |= dict.fromkeys(synonyms, our_name)

    likely = None
    if table is RUN and "iteration" not in our_name_of.values():
        unread = (name for name in names if name not in our_name_of)
        likely = next((name for name in unread if re.fullmatch(_LIKE_ITERATION, str(name).lower())), None)
    return FoundColumns(our_name_of, frozenset(map(str, renamed)), likely, understood)


def _check_exact(names: list[str], our_name: str, renamed: Mapping[str, str], label: str) -> None:
    """Raise `InputError` if several columns are renamed to one of goodgain's names, or one beside the column of this name."""
    if len(names) > 1:
        name = next(name for name in names if name in renamed)
        second_name = next(column for column in names if column != name)
        remedy = f"rename one of them, or leave it out of {spell('columns')}"
        raise InputError(f"{label} has two columns for {our_name}, {name!r} and {second_name!r}; {remedy}")


def _raise_two_relevances(synonym: str, label: str) -> None:
    problem = f"{label} has two columns that may be relevance, 'relevance' and {synonym!r}. Rename or remove one"
    raise InputError(f"{problem}. To read 'relevance', pass {spell('columns', {'relevance': 'relevance'})}")


def _check_synonyms(names: list[str], our_name: str, label: str) -> None:
    if len(names) > 1:
        remedy = " or ".join(spell("columns", {name: our_name}) for name in names[:2])
        problem = f"{label} has two columns that may be {our_name}, {names[0]!r} and {names[1]!r}"
        raise InputError(f"{problem}. To choose a column, pass {remedy}")


def _drop_internal_numbers(names: list[Any]) -> list[Any]:
    """Return the columns without the internal number of an index, if the column of the ids themselves is present."""
    lower_names = {str(name).lower() for name in names}
    for number, document in INTERNAL_NUMBERS.items():
        if lower_names == {number, document}:
            return [name for name in names if str(name).lower() == document]
    return names


def warn_of_understood_columns(matched: FoundColumns, label: str) -> None:
    """Give a notice of the columns found through synonyms, if any."""
    if matched.understood:
        read = ", ".join(f"{name!r} was read as {our_name}" for name, our_name in matched.understood.items())
        notice("columns_by_other_names", f"{label}: {read}. If that is wrong, set {spell('columns')}")


def check_columns_used(columns: Columns, *sources: Any) -> None:
    """Raise `InputError` if a name in `columns` is not a column of any source."""
    for name in columns:
        if not any(str(name) in source.renamed for source in sources):
            problem = f"{spell('columns', {name: columns[name]})}: there is no column {name!r}"
            scope = f"{spell('columns')} is for tables, not for TREC text, dicts, or a Run or Qrels already read"
            raise InputError(f"{problem}. Correct the name. {scope}")


class OpenFrame(NamedTuple):
    """A source as a frame with goodgain's column names, not yet cast or checked. `rows` gives the place of a row for errors."""

    frame: Frame
    rows: RowSource
    columns: FoundColumns


#: What stands in the column that tools ignore, in a file without iterations.
_IGNORED = ("0", "Q0", "q0")


def check_document_column(frame: Any, table: Table, label: str) -> None:
    """Raise `InputError` if TREC text seems to have the document in column 2, and the ignored word or 0 in column 3."""
    columns = frame.to_native()
    documents = columns.get_column("doc_id")
    if documents.is_empty() or documents[0] not in _IGNORED or (documents != documents[0]).any():
        return
    if columns.get_column("iteration").n_unique() > 1:
        problem = f"column 3 is {documents[0]!r} in all lines, so the document seems to stand in column 2"
        raise InputError(f"{label}: {problem}. Write the columns in this order: {' '.join(table.columns)}")


def exists(path: str | os.PathLike[str]) -> bool:
    return os.path.exists(path)  # noqa: PTH110  # Path.exists raises errors for long texts


def open_source(
    source: Any, table: Table, *, errors: str, columns: Columns, label: float | None = None, subtopics: bool = False
) -> tuple[str | None, OpenFrame, bool]:
    """Open a run or qrels from a path, or from a source that `open_frame` accepts.

    `label` is the label of every row, for qrels without labels. With `subtopics`, qrels may have the columns of nuggets.
    Returns the name, the frame, and whether the source is TREC text. Lines of TREC text are already checked.
    """
    readable = NUGGETS if subtopics else table
    if label is not None:
        readable = UNLABELLED
    if not isinstance(source, (str, os.PathLike)):
        return None, _add_label(open_frame(source, readable, columns=columns), label), False

    path = Path(source)
    content = read_lines(path) if container(path) == "text" else None
    if content is not None and table is QRELS and not columns and is_of_tasks(content):
        columns, readable = TASKS, UNLABELLED
        label = 1 if label is None else label

    is_json = content is not None and begins_json(content)
    nested = read_nested(content) if content is not None and is_json else None
    is_text = content is not None and not is_json and find_header(content, path, columns) is None
    if nested is not None:
        opened = OpenFrame(nw.from_native(read_dict(nested, readable)), FrameRows(str(path)), FoundColumns({}))
    elif content is not None and is_text:
        frame, lines, passed_over = read_text(content, table, label=str(path), errors=errors)
        warn_of_passed_over(str(path), [passed_over])
        opened = OpenFrame(nw.from_native(frame), lines, FoundColumns({}))
    else:
        opened = _open_table(path, table, readable, errors=errors, columns=columns, content=content)
    return stem(path), _add_label(opened, label), is_text


def _open_table(
    path: Path, table: Table, readable: Table, *, errors: str, columns: Columns, content: Content | None
) -> OpenFrame:
    """Open a file with named columns. `readable` declares the columns to read."""

    def find(names: Iterable[str]) -> FoundColumns:
        return find_columns(names, readable, columns, label=str(path))

    # pandas writes ranks as floats when one is missing.
    types: dict[str, Any] = {name: pl.Float64 if name in readable.numbers else pl.String for name in readable.columns}
    inner_paths = [name for name in columns if "." in name]
    frame, rows, names = read_table(
        path,
        types,
        find=lambda names: find(names).names,
        required=readable.required,
        errors=errors,
        content=content,
        paths=inner_paths if table is QRELS else None,
    )
    matched = find(names)

    if isinstance(rows, TextLines) and frame.is_empty():
        frame = pl.DataFrame(schema=types)
    else:
        if content is None or separator_by_name(path) is not None:  # JSON has no row of names
            _refuse_numbers_as_names(names, readable, matched, str(path), is_text=content is not None)
        _require_columns(names, readable, matched, str(path))

    if inner_paths and "relevance" in frame.columns and isinstance(rows, TextLines):
        # A record may list a document twice, with a paragraph that supports and one that does not.
        record = pl.Series("record", rows.lines)
        largest = pl.col("relevance").max().over("query_id", "doc_id", "record")
        frame = frame.with_columns(record).with_columns(largest).drop("record")
    return OpenFrame(nw.from_native(frame), rows, matched)


def is_of_tasks(content: Content) -> bool:
    """Return whether a text contains tasks that list the documents they need: the declaration `TASKS`."""
    *_, documents = TASKS
    return begins_json(content) and f'"{documents}"'.encode() in content.data


def _add_label(opened: OpenFrame, label: float | None) -> OpenFrame:
    if label is None:
        return opened
    if "relevance" in opened.frame.collect_schema().names():
        raise InputError(f"{opened.rows.label}: has labels already; leave out label={label:g}")
    return opened._replace(frame=opened.frame.with_columns(nw.lit(float(label)).alias("relevance")))


def find_header(content: Content, path: Path, columns: Columns) -> list[str] | None:
    """Return the column names of a .csv or .tsv file; None for other files and for TREC text.

    A .tsv file may contain TREC text, so the header must contain a known name.
    """
    separator = separator_by_name(path)
    if separator is None:
        return None
    first_row = next(number_rows(content), (0, b""))[1]
    line = next(number_lines(content), (0, b""))[1].decode("utf-8", "replace")
    if is_row(first_row, RUN) or is_row(first_row, QRELS):
        return None
    if separator not in line:
        refuse_other_separator(line, separator, path)
        return None
    names = read_names(line, separator, path)
    has_known_name = any(find_columns(names, table, columns, label=str(path)).names for table in (RUN, QRELS))
    return names if has_known_name or separator != "\t" else None


def open_frame(source: object, table: Table, *, columns: Columns | None = None) -> OpenFrame:
    """Open a frame, a dict of dicts, or an iterable of named tuples. `columns` maps names in the source to goodgain's.

    Frames in memory become Polars frames. Lazy frames (Polars, DuckDB, PySpark ...) stay on their engine.
    """
    columns = columns or {}
    if isinstance(source, Mapping):
        label = f"the {table.name} dict"
        frame = nw.from_native(read_dict(source, table))
        columns = {}
    else:
        label = f"the {table.name} frame"
        frame = wrap_frame(source, label)
    if frame is None:
        if isinstance(source, Iterable):
            return _read_tuples(source, table, columns)
        raise _refuse_kind(source, table)

    names = frame.collect_schema().names()
    matched = find_columns(names, table, columns, label=label)
    _refuse_numbers_as_names(names, table, matched, label)
    _require_columns(names, table, matched, label)
    selected = frame.select(nw.col(name).alias(our_name) for name, our_name in matched.names.items())
    if isinstance(selected, nw.DataFrame):
        selected = nw.from_native(to_polars(selected, label))
    return OpenFrame(selected, FrameRows(label), matched)


def _refuse_kind(source: object, table: Table) -> InputError:
    """Return the error for an object of a kind that is neither read as a run nor as qrels."""
    remedy = "a path, a data frame, named tuples or a dict of dicts"
    if table.name != QRELS.name:
        return InputError(f"{type(source).__name__} is not a run: give {remedy}")
    if hasattr(source, "qrels_iter"):
        remedy = "its qrels_iter()"
    return InputError(f"{type(source).__name__} is not qrels: give {remedy}")


def _refuse_numbers_as_names(
    names: Iterable[Any], table: Table, matched: FoundColumns, label: str, *, is_text: bool = False
) -> None:
    """Raise `InputError` if a column that matters has a number as its name, and no column is known by its own name."""
    if {*map(str, matched.names)} - matched.renamed:
        return
    suspects: Iterable[Any] = matched.names if is_text else ()
    if {*table.required} - {*matched.names.values()}:
        suspects = names
    for name in suspects:
        if isinstance(name, str) and re.fullmatch(r"-?\d+(\.\d+)?", name):
            problem = f"the column {name!r} has a number as its name, so the first row may be data"
            raise InputError(f"{label}: {problem}. Give the table a header, such as {', '.join(table.required)}")


def _require_columns(names: Iterable[Any], table: Table, matched: FoundColumns, label: str) -> None:
    """Raise an InputError if a required column of the table was not found. `names` are those of the source."""
    missing = [name for name in table.required if name not in matched.names.values()]
    if missing:
        present = ", ".join(map(str, names)) or "none"
        problem = f"has no column {', '.join(map(repr, missing))} (it has {present})"
        raise InputError(f"{label}: {problem}; pass {spell('columns', {'its name': missing[0]})}, or rename the column")


def _read_tuples(source: Iterable[Any], table: Table, columns: Columns) -> OpenFrame:
    """Open an iterable of named tuples, all of the same fields. Without a row, the frame has the required columns only."""
    label = f"the {table.name}"
    rows = list(source)
    if not rows:
        empty = pl.DataFrame(schema=dict.fromkeys(table.required, pl.Null))
        return OpenFrame(nw.from_native(empty), FrameRows(label), FoundColumns({}))
    if isinstance(rows[0], pl.Series):
        remedy = f"give ir_measures goodgain.read_{table.name}(frame)"
        raise InputError(f"{label}: got the columns of a Polars frame instead of its rows; {remedy}")
    fields = getattr(rows[0], "_fields", None)
    if fields is None:
        remedy = f"give named tuples with {', '.join(table.required)}, a data frame, a dict of dicts, or a path"
        raise InputError(f"{label} holds a {type(rows[0]).__name__}, not a named tuple; {remedy}")
    matched = find_columns(fields, table, columns, label=label)
    if any(not hasattr(row, name) for row in rows for name in matched.names):
        raise InputError(f"{label} mixes named tuples of different fields; give every row {', '.join(matched.names)}")
    values = {our_name: [getattr(row, name) for row in rows] for name, our_name in matched.names.items()}
    frame = make_columns(values, table)
    _require_columns(fields, table, matched, label)
    return OpenFrame(nw.from_native(frame), FrameRows(label), matched)


def cast_to_table(frame: Frame, table: Table, label: str) -> Frame:
    """Cast ids to text, and scores and labels to floats. In a run, iterations that are not integers become text."""
    types = dict(table.columns)
    schema = frame.collect_schema()
    if table is RUN:
        if isinstance(schema.get("rank"), (nw.Int128, nw.UInt128, nw.Decimal)):
            types["rank"] = nw.Float64()  # the 128 bits of sums in DuckDB are too many for NumPy
        kind = schema.get("iteration")
        if kind is not None and not kind.is_integer() and kind != nw.Unknown:
            types["iteration"] = nw.String()
            if kind.is_float():
                frame = frame.with_columns(_write_whole_numbers(nw.col("iteration")).alias("iteration"))
    cast: Frame = cast_columns(frame, types, label)
    return cast


def _write_whole_numbers(floats: nw.Expr) -> nw.Expr:
    """Write 3.0 as "3": pandas turns whole numbers into floats when one is missing."""
    number = floats.cast(nw.Float64)
    in_range = number.is_finite() & (number.abs() < 2**53)
    whole = nw.when(in_range).then(number).otherwise(nw.lit(0.0)).cast(nw.Int64)
    is_whole = in_range & (whole.cast(nw.Float64) == number)
    return nw.when(is_whole).then(whole.cast(nw.String)).otherwise(number.cast(nw.String))
