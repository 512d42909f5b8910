"""Reads tables that accompany runs and qrels: texts of queries, groups, outcomes, uses of documents, costs."""

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, count_of, notice
from goodgain.files.bad_rows import BadLines, FrameRows, check_rows, lacks, number_lines
from goodgain.files.json_rows import ObjectRows, iterate_objects, put_on_lines
from goodgain.files.json_text import begins_json
from goodgain.files.opening import Content, container, make_path, read_lines, separator_by_name
from goodgain.files.table_reading import cast_columns, cast_texts, read_frame, read_table
from goodgain.formats.any_source import exists
from goodgain.formats.data_sets import load_data_set
from goodgain.formats.texts import check_texts, open_texts
from goodgain.options import advise_name, spell
from goodgain.schema import BLANKS, COSTS, IDS, USES

_QUERY_TEXT = ("text", "query", "title")  # names of the column with the text of a query
_EXAMPLES = 3  # queries that a notice names
_ONLY_SYSTEM = "goodgain"  # as in runs made from logs
_MOST = 2**53  # larger counts are not exact as floats
#: Columns of numbers. A whole number may be written 12.0.
AMOUNTS = ("calls", "input_tokens", "output_tokens", "seconds", "cost")
_NUMBERS = ("iteration", *AMOUNTS, "cached_tokens", "reasoning_tokens")
_COST_TYPES = {name: pl.Float64() if name in _NUMBERS else dtype for name, dtype in COSTS.polars.items()}
_KEY = ["query_id", "system", "replicate", "iteration"]


def read_queries(source: Any) -> pl.DataFrame:
    """Read the texts of queries into a frame of query_id, text and description (null if unknown).

    The source is a .tsv file (query_id, text[, description], without a header); a .jsonl, .csv or .parquet file with columns
    of these names; {query_id: text}; a frame; or the id of an ir_datasets data set.

    >>> read_queries({"q1": "when was the dam built"}).rows()
    [('q1', 'when was the dam built', None)]
    """
    is_id = isinstance(source, (str, os.PathLike)) and not exists(source)
    data_set = load_data_set(str(source)) if is_id else None
    if data_set is not None:
        source = _read_queries_of_data_set(data_set, str(source))

    frame, rows = open_texts(source, ("query_id", "text", "description", *_QUERY_TEXT), "the queries")
    name = next((name for name in _QUERY_TEXT if name in frame.columns), "text")
    texts = check_texts(frame, {"query_id": "query_id", "text": name, "description": "description"}, rows)
    if "description" not in texts.columns:
        texts = texts.with_columns(description=pl.lit(None, pl.String))
    return texts


def _read_queries_of_data_set(data_set: Any, dataset_id: str) -> pl.DataFrame:
    if not data_set.has_queries():
        raise InputError(f"{dataset_id}: this ir_datasets data set has no queries. Give another data set, or a file")
    queries = []
    for query in data_set.queries_iter():
        fields = query._asdict()
        text = fields.get("text") or fields.get("title") or query.default_text()
        queries.append((query.query_id, text, fields.get("description")))
    return pl.DataFrame(queries, schema=["query_id", "text", "description"], orient="row")


def read_questions(source: Any) -> dict[str, str]:
    """Return a dict from query_id to one-line text, for tables and plots. If queries have equal texts, their ids are appended."""
    one_line = pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()
    texts = read_queries(source).with_columns(one_line)
    is_shared = pl.len().over("text") > 1
    with_id = pl.format("{} ({})", "text", "query_id")
    return dict(texts.select("query_id", pl.when(is_shared).then(with_id).otherwise("text")).iter_rows())


def read_groups(source: Any, judged: pl.Series) -> pl.DataFrame:
    """Read the distinct pairs (query_id, group) of the judged queries. A query may be in several groups.

    A notice lists queries without a group.
    """
    texts = ("query_id", "group")
    frame, label = _open_table(source, spell("groups"), texts, texts)
    groups = frame.select(texts).drop_nulls().unique()
    groups = groups.filter(pl.col("query_id").is_in(judged.implode())).sort("group", "query_id")
    if groups.is_empty():
        raise InputError(f"{label}: no judged query has a group. Use the query ids of the qrels.")
    if "all" in groups.get_column("group"):
        raise InputError(f"{label}: a group has the name all, reserved for the row of all queries. Rename the group.")

    without_group = judged.filter(~judged.is_in(groups.get_column("query_id").implode())).sort()
    if len(without_group):
        examples = ", ".join(without_group.head(_EXAMPLES))
        if len(without_group) > _EXAMPLES:
            examples += ", ..."
        number = f"{len(without_group):,} of {count_of(len(judged), 'query', 'queries')}"
        verb = "has" if len(without_group) == 1 else "have"
        notice(
            "queries_without_group",
            f"{label}: {number} {verb} no group: {examples}. These queries count in no group.",
        )
    return groups


def read_query_ids(source: Any) -> pl.Series:
    """Read a list of query ids, and return the sorted ids without duplicates.

    The source is a list of ids, or a frame or table with query_id (.csv, .tsv, .jsonl, .parquet). In any other file each line
    is an id.
    """
    argument = spell("only")
    if isinstance(source, pl.Series | list | tuple | set):
        label = argument
        ids = [*map(str, source)]
    else:
        path = make_path(source, argument) if isinstance(source, (str, os.PathLike)) else None
        is_text = path is not None and container(path) == "text" and separator_by_name(path) is None
        content = read_lines(path) if path and is_text else None
        if content is None or begins_json(content):
            table, label = _open_table(source, argument, ["query_id"], ["query_id"])
            ids = table.get_column("query_id").drop_nulls().to_list()
        else:
            label = str(path)
            ids = [line.decode(errors="replace").strip(BLANKS) for _, line in number_lines(content)]

    query_ids = pl.Series("query_id", [query_id for query_id in ids if query_id], pl.String).unique().sort()
    if query_ids.is_empty():
        raise InputError(f"{label}: names no query. Write one id per line.")
    return query_ids


def read_outcomes(source: Any) -> pl.DataFrame:
    """Read outcomes as `read_outcomes_of_runs` does, and average them over replicates."""
    return average_outcomes(read_outcomes_of_runs(source))


def average_outcomes(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with query_id, system and the mean of each outcome over replicates."""
    by_system = outcomes.drop("replicate").group_by("query_id", "system", maintain_order=True)
    return by_system.agg(pl.all().mean())


def read_outcomes_of_runs(source: Any) -> pl.DataFrame:
    """Read outcomes into a frame with query_id, system, replicate (null if missing), and a column of numbers per outcome.

    The source, a file or a frame, has query_id, system, and columns of numbers or truth values. With a column
    `replicate`, a system may have several rows for one query.
    """
    texts = ("query_id", "system")
    frame, label = _open_table(source, spell("outcomes"), texts, texts)
    names = [name for name in frame.columns if name not in (*texts, "replicate")]
    if not names:
        raise InputError(f"{label}: has no outcome. Add a column of numbers, such as `solved` (0 or 1).")
    repeats = frame.filter(frame.select("query_id", "system").is_duplicated())
    if len(repeats) and "replicate" not in frame.columns:
        query_id, system = repeats.select("query_id", "system").row(0)
        raise InputError(f"{label}: has several rows of query {query_id} and system {system}. Add a column replicate.")

    for name in names:
        column, number = _read_numbers(frame.get_column(name))
        _refuse(column.filter(number.is_null()), f"{label}: {name}", "is not a number. Leave the column out.")
        frame = frame.with_columns(number.fill_nan(None))
    replicate = pl.col("replicate") if "replicate" in frame.columns else pl.lit(None)
    return frame.select("query_id", "system", replicate.cast(pl.String).alias("replicate"), *names)


def read_uses(source: Any) -> pl.DataFrame:
    """Read the documents that queries returned, opened and cited, with the columns of `USES`.

    The source is a file, a frame, or a list of files and frames, with query_id, doc_id, returned_at, opened_at, opens and
    cited. Rows without a system belong to the system `goodgain`.
    """
    sources = source if isinstance(source, (list, tuple)) else [source]
    tables = [pl.DataFrame(schema=USES.polars), *map(_read_uses_table, sources)]
    uses = pl.concat(tables, how="diagonal").with_columns(pl.col("system").fill_null(_ONLY_SYSTEM))
    if uses.is_empty():
        raise InputError(f"{spell('uses')}: the table has no rows. Give the file that goodgain convert --uses writes.")

    key = ["query_id", "system", "replicate", "doc_id"]
    repeats = uses.filter(uses.select(key).is_duplicated())
    if len(repeats):
        query_id, system, _, doc_id = repeats.select(key).row(0)
        subject = f"document {doc_id} of query {query_id} and system {system}"
        raise InputError(f"{spell('uses')}: two rows have {subject}. Keep one.")
    return uses


def _read_uses_table(source: Any) -> pl.DataFrame:
    """Read one table of uses. Blank ids become null. Numbers must be whole and not negative, and `cited` 0 or 1."""
    types = USES.polars
    ids = [name for name in types if types[name] == pl.String]
    remedy = "Give the file that goodgain convert --uses writes."
    frame, label = _open_table(source, spell("uses"), ids, USES.required, remedy)
    frame = frame.select(name for name in types if name in frame.columns)

    texts = pl.col([name for name in frame.columns if name in ids])
    is_blank = texts.str.strip_chars(BLANKS) == ""
    frame = frame.with_columns(pl.when(~is_blank).then(texts))  # an id keeps its blanks, as in qrels
    for name in frame.columns:
        if name not in ids:
            column, number = _read_numbers(frame.get_column(name))
            is_valid = (number == number.round()) & number.is_between(0, 1 if name == "cited" else _MOST)
            invalid = column.filter(~is_valid.fill_null(False))
            _refuse(invalid, f"{label}: {name}", "is not a valid value. Correct the row.")
            frame = frame.with_columns(number.cast(types[name]))
    if frame.get_column("query_id").null_count() or frame.get_column("doc_id").null_count():
        raise InputError(f"{label}: a row has no query_id or no doc_id. Write - for a query that used no document.")
    return frame


def _read_numbers(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the column, without blanks if it has texts, and its numbers. A value that is not a number is null."""
    number = column
    if column.dtype == pl.String:
        column = column.str.strip_chars().replace("", None)
        number = column.str.to_lowercase().replace({"true": "1", "false": "0"})
    elif not column.dtype.is_numeric() and column.dtype != pl.Boolean:
        number = pl.Series(column.name, [None] * len(column), pl.Float64)
    return column, number.cast(pl.Float64, strict=False)


def _refuse(values: pl.Series, subject: str, reason: str) -> None:
    """Raise `InputError` if there is a value that is not null."""
    values = values.drop_nulls()
    if len(values):
        raise InputError(f"{subject} has {str(values[0])[:80]!r}, which {reason}")


def _open_table(
    source: Any, argument: str, texts: Sequence[str], required: Sequence[str], remedy: str = "Rename its columns."
) -> tuple[pl.DataFrame, str]:
    """Read a file or a frame, with the columns `texts` cast to text. Return the table, and its name for error messages."""
    if isinstance(source, (str, os.PathLike)):
        path = make_path(source, argument)
        label = str(path)
        frame = _read_file(path, argument, texts, remedy)
    else:
        label = argument
        frame = read_frame(source, argument)

    missing = [name for name in required if name not in frame.columns]
    if missing:
        raise _lack_columns(label, ", ".join(missing), frame.columns, remedy)
    return cast_texts(frame, texts, label), label


def _read_file(path: Path, argument: str, texts: Sequence[str], remedy: str) -> pl.DataFrame:
    """Read a file as a table of texts, except Parquet and Arrow, which keep their types.

    A text without names may be JSON objects.
    """
    content = read_lines(path) if container(path) in ("jsonl", "text") else None
    has_columns = content is None or separator_by_name(path) is not None
    if content is not None and not has_columns and begins_json(content):
        return _read_objects(content, path, texts)
    if not has_columns and container(path) == "text" and argument == spell("uses"):
        raise InputError(f"{path}: is not a table of uses. {remedy}")
    types: dict[str, Any] = defaultdict(lambda: pl.String)
    return read_table(path, types, find=lambda names: {name: name for name in names}, content=content).frame


def _read_objects(content: Content, path: Path, texts: Sequence[str]) -> pl.DataFrame:
    """Read a table from JSON objects. All values become text."""
    content, label = put_on_lines(content, path)
    refuse = BadLines(label, content, None).refuse
    objects = [*iterate_objects(content, refuse)]
    names = dict.fromkeys(name for _, fields in objects for name in fields)
    rows = ObjectRows(dict.fromkeys(names, pl.String), refuse)
    for number, fields in objects:
        rows.add(number, {name: _write_value(value, name, texts) for name, value in fields.items()})
    return rows.to_frame()[0]


def _write_value(value: Any, name: str, texts: Sequence[str]) -> Any:
    """Return a value for a table of texts: values that are not text are written as JSON.

    In the columns `texts`, values stay as they are, because `ObjectRows` reads numbers as text and refuses the rest.
    """
    must_be_text = name in texts and (name in IDS or not isinstance(value, bool))
    return value if must_be_text or isinstance(value, str | None) else json.dumps(value)


def _lack_columns(label: str, missing: str, names: Sequence[str], remedy: str = "Rename its columns.") -> InputError:
    return InputError(f"{label}: has no column {missing} (it has {', '.join(names) or 'none'}). {remedy}")


def read_costs(source: Any) -> pl.DataFrame:
    """Read the costs of queries, with the columns of `COSTS` and `tokens` (input plus output). Unknown costs are null.

    The source is a file, a frame, or a list of files and frames. The columns are query_id[, system][, replicate][, iteration],
    and any of calls, input_tokens, output_tokens, seconds and cost. The costs of a single run need no system. A row without an
    iteration (or with iteration 0) has costs outside of iterations.
    """
    sources = source if isinstance(source, (list, tuple)) else [source]
    if not sources:
        raise InputError(f"{spell('costs')} is empty. Give a file or a frame.")
    frame = pl.concat([pl.DataFrame(schema=_COST_TYPES), *map(_read_cost_table, sources)], how="diagonal")

    repeats = frame.filter(frame.select(_KEY).is_duplicated())
    if len(repeats):
        query_id, system, _, iteration = repeats.select(_KEY).row(0)
        subject = f"query {query_id}"
        if system is not None:
            subject += f" of {system}"
        if iteration is not None:
            subject += f", iteration {iteration:g}"
        raise InputError(f"{spell('costs')}: two rows have {subject}. Write one row with the sum.")

    _report_half_tokens(frame)
    tokens = pl.sum_horizontal("input_tokens", "output_tokens", ignore_nulls=True)
    is_known = pl.any_horizontal(pl.col("input_tokens", "output_tokens").is_not_null())
    return frame.with_columns(tokens=pl.when(is_known).then(tokens))


def _report_half_tokens(costs: pl.DataFrame) -> None:
    """Give a notice if some rows have input and output tokens, and others one of the two: their sums are not comparable."""
    has_input, has_output = costs["input_tokens"].is_not_null(), costs["output_tokens"].is_not_null()
    half = int((has_input ^ has_output).sum())
    if half and (has_input & has_output).any():
        rows = "1 row has" if half == 1 else f"{half} rows have"
        fact = f"{spell('costs')}: {rows} input_tokens or output_tokens alone, and others have both"
        notice(
            "half_tokens",
            f"{fact}. The tokens of such a row are that number alone. Add the other number, or empty both",
        )


def _read_cost_table(source: Any) -> pl.DataFrame:
    """Read one table of costs.

    Raise an InputError for a value that is negative or not finite, or an iteration that is not whole.
    """
    if isinstance(source, (str, os.PathLike)):
        path = make_path(source, spell("costs"))
        read, rows, names = read_table(path, _COST_TYPES)
    else:
        read = read_frame(source, spell("costs"))
        rows, names = FrameRows(spell("costs")), read.columns
        read = read.select(name for name in _COST_TYPES if name in names)
    if "query_id" not in names:
        raise _lack_columns(rows.label, "query_id", names)
    if not set(AMOUNTS) & set(names):
        raise _lack_columns(rows.label, f"of {', '.join(AMOUNTS)}", names)

    types = {name: COSTS.columns[name] if dtype == pl.String else nw.Float64() for name, dtype in _COST_TYPES.items()}
    frame: pl.DataFrame = cast_columns(nw.from_native(read), types, rows.label).to_native()
    numbers = [name for name in _NUMBERS if name in frame.columns]
    frame = frame.with_columns(pl.col(name).fill_nan(None) for name in numbers)

    problems = [lacks("query_id")]
    for name in numbers:
        number = nw.col(name)
        problems.append((~number.is_finite() | (number < 0), f"has the {name} {{{name}}}, which is not a valid value"))
    if "iteration" in frame.columns:
        number = nw.col("iteration")
        problems.append((number != number.round(), "has the iteration {iteration}, which is not a whole number"))
    checked: pl.DataFrame = check_rows(nw.from_native(frame), rows, problems)[0].to_native()
    return checked


def select_costs(costs: pl.DataFrame, system: str, systems: Sequence[str]) -> pl.DataFrame:
    """Select the costs of a system as `select_system` does. Rows without a system are allowed if the call has a single run."""
    rows_without_system = costs.get_column("system").null_count()
    if rows_without_system and (len(systems) > 1 or rows_without_system < len(costs)):
        reason = "there are several runs" if len(systems) > 1 else "other rows have one"
        problem = f"{spell('costs')}: some rows have no system, and {reason}"
        raise InputError(f"{problem}. Give the system of each row in the column `system`.")
    if not system and costs.get_column("system").n_unique() == 1:  # the only run of a call without names
        system = costs.item(0, "system") or ""
    return select_system(costs.with_columns(pl.col("system").fill_null(system)), spell("costs"), system)


def lack_rows(argument: str, system: str, systems: Sequence[str]) -> InputError:
    """Return the error for a system that has no rows in a table. `systems` are those that have some."""
    if not systems:
        return InputError(f"{argument} has no rows. Add rows whose system is {system}.")
    names = ", ".join(systems[:10])
    return InputError(
        f"{argument} has no rows of the system {system}, but has rows of {names}. {advise_name(systems[0])}."
    )


def select_system(table: pl.DataFrame, argument: str, system: str) -> pl.DataFrame:
    """Return the rows of a system. A name such as `agent.1`, which `convert` gives to a replicate, selects only this replicate."""
    rows = table.filter(system=system)
    if rows.is_empty():
        rows = table.filter(pl.concat_str("system", "replicate", separator=".") == system)
    if rows.is_empty():
        raise lack_rows(argument, system, table.get_column("system").unique(maintain_order=True).to_list())

    replicates = rows.get_column("replicate").unique().sort(nulls_last=True).to_list()
    if len(replicates) > 1:
        remedy = f"Name the run after one of them: {system}.{replicates[0]}."
        raise InputError(f"{argument} has {len(replicates)} replicates of {system}. {remedy}")
    return rows
