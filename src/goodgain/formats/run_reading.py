"""Reads runs from any source into a `Run`, which ir_measures and other tools accept, and writes them."""

import os
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, notice
from goodgain.files.bad_rows import Frame, RowSource, check_rows, find_problems
from goodgain.files.opening import check_fork, container, make_path
from goodgain.files.writing import write_frame
from goodgain.formats import any_source, iterations
from goodgain.formats.any_source import Columns, OpenFrame
from goodgain.formats.equal_rows import check_copies, select_identity
from goodgain.formats.run import Reading, Run
from goodgain.options import ERRORS, FIRST, GAPS, check_choice, spell
from goodgain.ranking.dataframe_engines import collect
from goodgain.ranking.first_occurrences_and_flattening import add_ranks
from goodgain.schema import EMPTY_DOC, RUN

_LARGEST_FIRST = 10**15
EMPTY_RUN = "the run is empty; every judged query counts as a query without a search"


@checks_kinds
def read_run(
    source: Any,
    *,
    gaps: str = GAPS,
    first: int = FIRST,
    errors: str = ERRORS,
    columns: Columns | None = None,
    page: int | None = None,
) -> Run:
    """Read a run from a path, a frame, named tuples or a dict of dicts.

    Args:
        source: a file, a frame that narwhals supports, ir_measures' named tuples, {query_id: {doc_id: score}}, or a `Run`
            (returned as it is). Formats of files are TREC text (column 2 is the iteration), Parquet, Arrow, JSON Lines, and CSV
            or TSV with a header; text files may be compressed (.gz or .zst). Frames have query_id, doc_id and possibly iteration,
            rank, score, tag. A lazy frame (Polars, DuckDB, PySpark ...) stays on its engine.
        gaps: `close` ignores missing numbers, and measures renumber the iterations of a query. `empty` treats each missing
            number, from `first` to the query's largest number, as a search with no results.
        first: the number of the first iteration of a query: 1, or 0 (TREC Dynamic Domain).
        errors: `raise` stops at the first bad row. `skip` leaves out bad rows with a notice.
        columns: maps names in the source to goodgain's names, such as {"step": "iteration"}. qid, q_id, docno, docid, did and pid
            need no mapping; a notice tells how they were read.
        page: cut the ranking of each query into iterations of this many results. The run must have no iterations. The classic
            ranking does not change.

    Returns:
        A `Run`. Without `page`, the iteration numbers are those of the source.

    Raises:
        InputError: the source or an option is invalid. The message names the problem and the remedy, and often the file and line.

    Source: trec_eval's run format; TREC Dynamic Domain for the iteration in column 2.

    >>> run = read_run({"q1": {"d1": 2.0, "d2": 1.0}})
    >>> run.frame["doc_id"].to_list()
    ['d1', 'd2']
    """
    run = load_run(source, gaps=gaps, first=first, errors=errors, columns=columns)
    any_source.check_columns_used(columns or {}, run)
    is_new = not isinstance(source, Run)  # the notices on a `Run` were given when it was read
    if is_new:
        iterations.warn_of_likely_iteration(run.likely_iteration)
    if page is not None:
        iterations.check_pages(page, [run.iteration_numbers], of_run=run.name or "the run")
        return run.cut_into_pages(page)
    if is_new:
        warn_of_repeats(run)
    return run


def load_run(
    source: Any, *, gaps: str = GAPS, first: int = FIRST, errors: str = ERRORS, columns: Columns | None = None
) -> Run:
    """Read a run as `read_run` does, but do not cut it into pages, and leave three checks to the caller.

    The checks are `check_columns_used` (a name in `columns` may belong to the qrels), `warn_of_likely_iteration` (only some
    measures need iterations) and `warn_of_repeats` (not needed for a run that is cut into pages).
    """
    check_run_options(source, gaps=gaps, first=first, errors=errors)
    if isinstance(source, Run):
        return source
    columns = any_source.check_columns(columns)
    name, opened, is_text = any_source.open_source(source, RUN, errors=errors, columns=columns)
    any_source.warn_of_understood_columns(opened.columns, opened.rows.label)
    return make_run(opened, Reading(gaps, first, errors), name=name, is_text=is_text)


def check_run_options(source: Any, *, gaps: str, first: int, errors: str) -> None:
    """Raise `InputError` for an invalid option, for options given with a `Run`, and in a forked process (see `check_fork`)."""
    check_fork()
    if isinstance(source, Run) and Reading(gaps, first, errors) != Reading():
        options = f"{spell('gaps')}, {spell('first')} and {spell('errors')}"
        raise InputError(f"this run has been read already; give {options} when you read its file")
    check_choice("errors", errors)
    if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first <= _LARGEST_FIRST:
        raise InputError(f"{spell('first', first)}: give the number of the first iteration, usually 1 or 0")
    check_choice("gaps", gaps)


def make_run(source: OpenFrame, reading: Reading, *, name: str | None, is_text: bool, is_part: bool = False) -> Run:
    """Make a run from an opened source: check rows, number iterations, add ranks.

    With `is_part`, the caller gives the notices that concern the whole run.
    """
    frame, rows, matched = source
    gaps, first, errors, *_ = reading
    columns = frame.collect_schema().names()
    has_column = "iteration" in columns
    run = Run(None, name=name, likely_iteration=matched.likely_iteration, renamed=matched.renamed)
    run.reading = reading.with_columns(matched.names, matched.renamed)
    run.lacks_order = not {"rank", "score"} & {*columns}

    if is_text:  # lines of TREC text are already checked
        any_source.check_document_column(frame, RUN, rows.label)
    else:
        frame = any_source.cast_to_table(frame, RUN, rows.label)
        run.unnamed = iterations.find_unnamed_rows(frame, rows)
        frame = iterations.mark_empty_iterations(frame)
        frame, rows = check_rows(frame, rows, find_problems(frame, RUN), errors=errors)
    if not is_part:
        _check_copies(frame, rows.label)

    if has_column:
        frame, rows, run.never_searched = iterations.take_never_searched(frame, rows, errors=errors)
    else:
        frame = frame.with_columns(nw.lit(first).cast(nw.Int64).alias("iteration"))
    frame, rows, has_numbers = iterations.number_iterations(frame, rows, first=first, errors=errors)
    run.has_iterations = has_column and has_numbers
    if "tag" in columns:
        _check_tags(frame, rows)

    run.keeps_order = isinstance(frame, nw.DataFrame) or frame.implementation.is_polars()
    frame = frame.select([column for column in RUN.columns if column in (*columns, "iteration")])
    if isinstance(frame, nw.DataFrame):
        frame = nw.from_native(add_ranks(frame.to_native()))
    if gaps == "empty" and run.has_iterations:
        frame = iterations.add_empty_iterations(frame, first=first)
    run.frame = frame.to_native()

    if not is_part:
        run.lacks_column = not has_column
        iterations.warn_of_unnamed_rows(rows.label, [run.unnamed])
        if run.never_searched.is_empty() and not len(collect(frame.select("query_id").head(1))):
            notice("empty_run", f"{rows.label}: {EMPTY_RUN}")
    return run


def _check_copies(frame: Frame, label: str) -> None:
    """Raise an InputError if a run in memory was appended to itself. Runs on an engine are checked part by part, later."""
    if isinstance(frame, nw.DataFrame):
        identity = select_identity(frame.to_native())
        if identity is not None:
            check_copies(identity, label)


def _check_tags(frame: Frame, rows: RowSource) -> None:
    """Raise `InputError` if a query has rows of several systems."""
    if isinstance(frame, nw.DataFrame):  # almost every run has one tag
        column = frame.get_column("tag").drop_nulls()
        if not len(column) or (column == column.item(0)).all():
            return

    tag = nw.col("tag")
    tagged: Any = frame.filter(~tag.is_null())
    tags = tagged.group_by("query_id").agg(tag.min().alias("tag"), tag.max().alias("other_tag"))
    differing = collect(tags.filter(tag != nw.col("other_tag")).sort("query_id").head(1))
    if differing.is_empty():
        return

    query_id, first_tag, other_tag = differing.row(0)
    place = rows.label
    if isinstance(frame, nw.DataFrame):
        rows_of_query = frame.with_row_index("row").filter(nw.col("query_id") == query_id, ~tag.is_null())
        first_tag = rows_of_query.get_column("tag").item(0)
        row, other_tag = rows_of_query.filter(tag != first_tag).select("row", "tag").row(0)
        place = rows.locate(row)
    problem = f"{place} has the tag {other_tag!r} where query {query_id!r} has {first_tag!r} in another row"
    raise InputError(f"{problem}; a run holds one system: give each system its own file")


def warn_of_repeats(run: Run) -> None:
    """Give the notice on missing iterations if a query repeats a document and no column looks like the iteration."""
    if not run.lacks_column or run.likely_iteration is not None:
        return
    results = nw.from_native(run.frame).filter(nw.col("doc_id") != EMPTY_DOC).select("query_id", "doc_id")
    number = collect(results.select(nw.len())).item()
    different = collect(results.unique().select(nw.len())).item()
    if different < number:
        iterations.warn_of_missing_iterations(run.name)


@checks_kinds
def write_run(run: Any, path: str | os.PathLike[str], *, tag: str | None = None) -> None:
    """Write a run as TREC text, or in the format of the file extension: Parquet, Arrow or JSON Lines (also .gz or .zst).

    In TREC text, white space and control characters in ids, and a `#` at the start of a line, become %XX. One notice counts the
    changed ids. Other formats keep ids unchanged. Column 6 of TREC text is `tag`, else the run's tag, else the run's name, else
    `goodgain`. The file is written whole or not at all.

    Raises:
        InputError: the file cannot be written.

    >>> import pathlib, tempfile
    >>> import goodgain as gg
    >>> import polars as pl
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "agent.run"
    >>> gg.write_run(pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"], "rank": 1, "score": 1.0}), path)
    >>> print(path.read_text(), end="")
    q 1 a 1 1.0 goodgain
    q 2 b 1 1.0 goodgain
    """
    source = read_run(run)
    target = make_path(path, "the file of the run")
    frame = iterations.add_never_searched(source.rows, source.never_searched)
    if container(target) == "text":
        name = tag or source.name or "goodgain"
        keeps_tags = "tag" in frame.columns and tag is None
        tags = pl.col("tag").fill_null(name) if keeps_tags else pl.lit(name)
        frame = frame.select("query_id", "iteration", "doc_id", "rank", "score", tags.alias("tag"))
    write_frame(frame, target)
