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
from goodgain.files.bad_rows import Frame, FrameRows, RowSource, TextLines, number_lines, number_rows, quote
from goodgain.files.delimited import is_row, read_names, read_text, refuse_other_separator, warn_of_passed_over
from goodgain.files.json_text import begins_json, read_nested
from goodgain.files.opening import Content, container, read_lines, separator_by_name, stem
from goodgain.files.table_reading import cast_columns, read_table, to_polars, wrap_frame
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
    known = list(dict.fromkeys([*RUN.columns, *QRELS.columns]))
    example = f"write {spell('columns', {'step': 'iteration'})}"
    if not isinstance(columns, Mapping | None):
        given = spell("columns", columns)
        raise InputError(f"{given} does not map your column names to goodgain's. Correct it: {example}")
    for name, ours in (columns or {}).items():
        if ours not in known:
            there = f"goodgain has no column {ours!r}. It has {', '.join(known)}"
            raise InputError(f"{spell('columns', {name: ours})}: {there}. Correct it: {example}")
    return {str(name): ours for name, ours in (columns or {}).items()}


def find_columns(names: Iterable[str], table: Table, columns: Columns, *, label: str) -> FoundColumns:
    """Match the columns of a source to the columns of a table.

    `columns` maps the user's names to goodgain's names. Names that the source or the table lacks are ignored.
    """
    names = list(dict.fromkeys(names))
    if table.name == QRELS.name and {*BEIR} <= {*names}:
        columns = {name: ours for name, ours in BEIR.items() if ours not in columns.values()} | {**columns}
    renamed = {name: columns[str(name)] for name in names if columns.get(str(name)) in table.columns}
    found: dict[str, str] = {}
    understood: dict[str, str] = {}
    for ours in table.columns:
        own = [name for name in names if renamed.get(name, name) == ours]
        others = [name for name in names if name not in (*renamed, ours) and table.understand(name) == ours]
        if len(own) > 1:
            name = next(name for name in own if name in renamed)
            other = next(other for other in own if other != name)
            remedy = f"rename one of them, or leave it out of {spell('columns')}"
            raise InputError(f"{label} has two columns for {ours}, {name!r} and {other!r}; {remedy}")
        if ours == "relevance" and own == ["relevance"] and others and "relevance" not in renamed:
            wrong = (
                f"{label} has two columns that may be relevance, 'relevance' and {others[0]!r}. Rename or remove one"
            )
            raise InputError(f"{wrong}. To read 'relevance', pass {spell('columns', {'relevance': 'relevance'})}")
        if ours == "relevance" and not own and {"judge", "grade"} <= {*names}:
            own = ["grade"]  # what `goodgain label` writes
        if not own:
            others = _drop_internal_numbers(others)
        if not own and len(others) > 1:
            remedy = " or ".join(spell("columns", {other: ours}) for other in others[:2])
            wrong = f"{label} has two columns that may be {ours}, {others[0]!r} and {others[1]!r}"
            raise InputError(f"{wrong}. To choose a column, pass {remedy}")
        understood |= dict.fromkeys(() if own else others, ours)
        found |= dict.fromkeys(own or others, ours)
    likely = None
    if table is RUN and "iteration" not in found.values():
        unread = (name for name in names if name not in found)
        likely = next((name for name in unread if re.fullmatch(_LIKE_ITERATION, str(name).lower())), None)
    return FoundColumns(found, frozenset(map(str, renamed)), likely, understood)


def _drop_internal_numbers(names: list[Any]) -> list[Any]:
    """Return the columns without the internal number of an index, if the column of the ids themselves is present."""
    known = {str(name).lower() for name in names}
    for number, document in INTERNAL_NUMBERS.items():
        if known == {number, document}:
            return [name for name in names if str(name).lower() == document]
    return names


def warn_of_understood_columns(found: FoundColumns, label: str) -> None:
    """Give a notice of the columns found through synonyms, if any."""
    if found.understood:
        read = ", ".join(f"{name!r} was read as {ours}" for name, ours in found.understood.items())
        notice("columns_by_other_names", f"{label}: {read}. If that is wrong, set {spell('columns')}")


def check_columns_used(columns: Columns, *sources: Any) -> None:
    """Raise `InputError` if a name in `columns` is not a column of any source."""
    for name in columns:
        if not any(str(name) in source.renamed for source in sources):
            wrong = f"{spell('columns', {name: columns[name]})}: there is no column {name!r}"
            scope = f"{spell('columns')} is for tables, not for TREC text, dicts, or a Run or Qrels already read"
            raise InputError(f"{wrong}. Correct the name. {scope}")


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
        wrong = f"column 3 is {documents[0]!r} in all lines, so the document seems to stand in column 2"
        raise InputError(f"{label}: {wrong}. Write the columns in this order: {' '.join(table.columns)}")


def exists(path: str | os.PathLike[str]) -> bool:
    return os.path.exists(path)  # noqa: PTH110  # Path.exists raises errors for long texts


def open_source(
    source: Any, table: Table, *, errors: str, columns: Columns, label: float | None = None, subtopics: bool = False
) -> tuple[str | None, OpenFrame, bool]:
    """Open a run or qrels from a path, or from a source that `open_frame` accepts.

    `label` is the label of every row, for qrels without labels. With `subtopics`, qrels may have the columns of nuggets.
    Returns the name, the frame, and whether the source is TREC text. Lines of TREC text are already checked.
    """
    known = UNLABELLED if label is not None else NUGGETS if subtopics else table
    if not isinstance(source, (str, os.PathLike)):
        return None, _add_label(open_frame(source, known, columns=columns), label), False
    path, is_text = Path(source), False
    content = read_lines(path) if container(path) == "text" else None
    is_json = content is not None and begins_json(content)
    if content is not None and table is QRELS and not columns and is_of_tasks(content):
        columns, known, label = TASKS, UNLABELLED, 1 if label is None else label
    if content is not None and is_json and (nested := read_nested(content)) is not None:
        opened = OpenFrame(nw.from_native(_read_dict(nested, known)), FrameRows(str(path)), FoundColumns({}))
    elif content is not None and not is_json and find_header(content, path, columns) is None:
        frame, lines, passed_over = read_text(content, table, label=str(path), errors=errors)
        warn_of_passed_over(str(path), [passed_over])
        opened, is_text = OpenFrame(nw.from_native(frame), lines, FoundColumns({})), True
    else:
        opened = _open_table(path, table, known, errors=errors, columns=columns, content=content)
    return stem(path), _add_label(opened, label), is_text


def _open_table(
    path: Path, table: Table, known: Table, *, errors: str, columns: Columns, content: Content | None
) -> OpenFrame:
    """Open a file with named columns. `known` declares the columns to read."""

    def find(names: Iterable[str]) -> FoundColumns:
        return find_columns(names, known, columns, label=str(path))

    # pandas writes ranks as floats when one is missing.
    types: dict[str, Any] = {name: pl.Float64 if name in known.numbers else pl.String for name in known.columns}
    frame, rows, names = read_table(
        path,
        types,
        find=lambda names: find(names).names,
        required=known.required,
        errors=errors,
        content=content,
        paths=[name for name in columns if "." in name] if table is QRELS else None,
    )
    found = find(names)
    if isinstance(rows, TextLines) and frame.is_empty():
        frame = pl.DataFrame(schema=types)
    else:
        if content is None or separator_by_name(path) is not None:  # JSON has no row of names
            _check_first_row(names, known, found, str(path), is_text=content is not None)
        _require_columns(names, known, found, str(path))
    if any("." in name for name in columns) and "relevance" in frame.columns and isinstance(rows, TextLines):
        # A record may list a document twice, with a paragraph that supports and one that does not.
        record = pl.Series("record", rows.lines)
        largest = pl.col("relevance").max().over("query_id", "doc_id", "record")
        frame = frame.with_columns(record).with_columns(largest).drop("record")
    return OpenFrame(nw.from_native(frame), rows, found)


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
    if separator == "\t" and not any(
        find_columns(names, table, columns, label=str(path)).names for table in (RUN, QRELS)
    ):
        return None
    return names


def open_frame(source: object, table: Table, *, columns: Columns | None = None) -> OpenFrame:
    """Open a frame, a dict of dicts, or an iterable of named tuples. `columns` maps names in the source to goodgain's.

    Frames in memory become Polars frames. Lazy frames (Polars, DuckDB, PySpark ...) stay on their engine.
    """
    columns = columns or {}
    label = f"the {table.name} frame"
    if isinstance(source, Mapping):
        frame, columns, label = nw.from_native(_read_dict(source, table)), {}, f"the {table.name} dict"
    else:
        frame = wrap_frame(source, label)
    if frame is None:
        if isinstance(source, Iterable):
            return _read_tuples(source, table, columns)
        what, remedy = "a run", "a path, a data frame, named tuples or a dict of dicts"
        if table.name == QRELS.name:
            what, remedy = "qrels", "its qrels_iter()" if hasattr(source, "qrels_iter") else remedy
        raise InputError(f"{type(source).__name__} is not {what}: give {remedy}")
    names = frame.collect_schema().names()
    found = find_columns(names, table, columns, label=label)
    _check_first_row(names, table, found, label)
    _require_columns(names, table, found, label)
    selected = frame.select(nw.col(name).alias(ours) for name, ours in found.names.items())
    if isinstance(selected, nw.DataFrame):
        selected = nw.from_native(to_polars(selected, label))
    return OpenFrame(selected, FrameRows(label), found)


def _check_first_row(
    names: Iterable[Any], table: Table, found: FoundColumns, label: str, *, is_text: bool = False
) -> None:
    if {*map(str, found.names)} - found.renamed:
        return
    used = names if {*table.required} - {*found.names.values()} else found.names if is_text else ()
    if number := next((name for name in used if isinstance(name, str) and re.fullmatch(r"-?\d+(\.\d+)?", name)), None):
        wrong = f"the column {number!r} has a number as its name, so the first row may be data"
        raise InputError(f"{label}: {wrong}. Give the table a header, such as {', '.join(table.required)}")


def _require_columns(names: Iterable[Any], table: Table, found: FoundColumns, label: str) -> None:
    missing = [name for name in table.required if name not in found.names.values()]
    if missing:
        wrong = f"has no column {', '.join(map(repr, missing))} (it has {', '.join(map(str, names)) or 'none'})"
        raise InputError(f"{label}: {wrong}; pass {spell('columns', {'its name': missing[0]})}, or rename the column")


def _read_dict(source: Mapping[Any, Any], table: Table) -> pl.DataFrame:
    value, kind = ("relevance", "label") if table.name == QRELS.name else ("score", "score")
    columns: dict[str, list[Any]] = {"query_id": [], "doc_id": [], value: []}
    for query_id, documents in source.items():
        if not isinstance(documents, Mapping):
            wrong = f"the {table.name} dict has a {type(documents).__name__} for query {query_id!r}"
            raise InputError(f"{wrong}; give {{query_id: {{doc_id: {kind}}}}}")
        columns["query_id"] += [query_id] * len(documents)
        columns["doc_id"] += documents
        columns[value] += documents.values()
    return _make_columns(columns, table)


def to_nested_dict(frame: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
    """Return a frame as {query_id: {doc_id: value}}. Queries keep the order in which they first appear.

    >>> to_nested_dict(pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0]}), "score")
    {'q': {'a': 2.0, 'b': 1.0}}
    """
    queries = frame.group_by("query_id", maintain_order=True).agg("doc_id", value)
    columns = (queries.get_column(name).to_list() for name in queries.columns)
    return {query_id: dict(zip(docs, values, strict=True)) for query_id, docs, values in zip(*columns, strict=True)}


def _read_tuples(source: Iterable[Any], table: Table, columns: Columns) -> OpenFrame:
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
    found = find_columns(fields, table, columns, label=label)
    if any(not hasattr(row, name) for row in rows for name in found.names):
        raise InputError(f"{label} mixes named tuples of different fields; give every row {', '.join(found.names)}")
    frame = _make_columns({ours: [getattr(row, name) for row in rows] for name, ours in found.names.items()}, table)
    _require_columns(fields, table, found, label)
    return OpenFrame(nw.from_native(frame), FrameRows(label), found)


def _make_columns(columns: dict[str, list[Any]], table: Table) -> pl.DataFrame:
    series = []
    for name, values in columns.items():
        try:
            series.append(pl.Series(name, values, strict=True))
        except UnicodeEncodeError:
            raise InputError(f"the {table.name} has a {name} that is not valid Unicode text; correct it") from None
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
                kinds = sorted({type(value).__name__ for value in values})
                mixed = f"the {table.name} mixes {' and '.join(kinds)} in {name}"
                raise InputError(f"{mixed}; give every row the same type") from None
            try:
                series.append(pl.Series(name, [float(value) for value in values]))
            except OverflowError:
                raise InputError(f"the {table.name} has a {name} too large for a float; correct it") from None
    return pl.DataFrame(series)


def cast_to_table(frame: Frame, table: Table, label: str) -> Frame:
    """Cast ids to text, and scores and labels to floats. In a run, iterations that are not integers become text."""
    types, schema = dict(table.columns), frame.collect_schema()
    if table is RUN and isinstance(schema.get("rank"), (nw.Int128, nw.UInt128, nw.Decimal)):
        types["rank"] = nw.Float64()  # the 128 bits of sums in DuckDB are too many for NumPy
    found = schema.get("iteration")
    if table is RUN and found is not None and not found.is_integer() and found != nw.Unknown:
        types["iteration"] = nw.String()
        if found.is_float():
            # Write 3.0 as "3": pandas turns whole numbers into floats when one is missing.
            number = nw.col("iteration").cast(nw.Float64)
            in_range = number.is_finite() & (number.abs() < 2**53)
            whole = nw.when(in_range).then(number).otherwise(nw.lit(0.0)).cast(nw.Int64)
            is_whole = in_range & (whole.cast(nw.Float64) == number)
            text = nw.when(is_whole).then(whole.cast(nw.String)).otherwise(number.cast(nw.String))
            frame = frame.with_columns(text.alias("iteration"))
    cast: Frame = cast_columns(frame, types, label)
    return cast


def load_data_set(dataset_id: str) -> Any:
    """Return a data set of ir_datasets; None if this library is not installed, or has no such data set."""
    try:
        import ir_datasets

        return ir_datasets.load(dataset_id)
    except (ImportError, KeyError, ValueError):
        return None


def read_judged_data_set(dataset_id: str) -> Any:
    """Return the judgments of a data set of ir_datasets as named tuples."""
    dataset = load_data_set(dataset_id)
    if dataset is None:
        remedy = "give the path of a readable file"
        raise InputError(f"{quote(dataset_id)}: no such file, and not an ir_datasets id; {remedy}")
    if not dataset.has_qrels():
        raise InputError(f"{dataset_id}: this ir_datasets data set has no qrels; give another data set, or a file")
    try:
        return list(dataset.qrels_iter())
    except Exception as error:  # any error of a download or a parser
        raise InputError(f"{dataset_id}: ir_datasets did not return its qrels ({error}). Give a file") from error
