"""Reads traces into frames (`read_traces`), and converts them to runs and other files (`convert_traces`).

Traces are read file by file and written batch by batch, so memory does not grow with their number. If each system gets a
run, the results of a query are deduplicated together across systems. Rows that depend on later traces stay on disk until the end.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError
from goodgain.files.writing import Outputs, atomic_write
from goodgain.formats.results import NormaliseUrl, check_results_name, read_results
from goodgain.logs.dedup.said_pairs import Pairs, SaidPairs, read_pairs
from goodgain.logs.traces.output.results_to_run import add_documents, finish_uses, tabulate_uses
from goodgain.logs.traces.output.run_batches import PLACEHOLDER, BatchConverter, Deduplicate, OutputFiles, OutputWriter
from goodgain.logs.traces.reading import query_ids as ids
from goodgain.logs.traces.reading.read_options import QueryId, ReadOptions, check_option_names
from goodgain.logs.traces.reading.trace_files_and_tasks import Paths, find_trace_files
from goodgain.logs.traces.reading.trace_reading import Progress, ResultRows, read_batches
from goodgain.logs.traces.reading_summary import Summary
from goodgain.logs.traces.tool_outputs.readers import Parse
from goodgain.logs.traces.tools import ToolPredicate
from goodgain.options import spell


@overload
def read_traces(paths: Paths, *, uses: Literal[True], **options: Any) -> tuple[pl.DataFrame, ...]: ...


@overload
def read_traces(
    paths: Paths, *, costs: Literal[True], uses: Literal[False] = ..., **options: Any
) -> tuple[pl.DataFrame, pl.DataFrame]: ...


@overload
def read_traces(
    paths: Paths, *, costs: Literal[False] = ..., uses: Literal[False] = ..., **options: Any
) -> pl.DataFrame: ...


@checks_kinds  # type: ignore[misc]  # overloads would repeat all options
def read_traces(
    paths: Paths, *,
    format: str = "auto",  # noqa: A002  # the usual name for it
    turns: Literal["last", "searching", "all", "joined"] = "last",
    iteration: Literal["step", "call", "sequential"] | None = None,
    tools: ToolPredicate | Collection[str] | str | None = None,
    parse: Parse | None = None,
    query_id: QueryId | None = None,
    query_ids: Any = None,
    order: Literal["time", "given"] = "time",
    query_text: str | None = None,
    citations: bool = False,
    unrecorded: Literal["raise", "empty", "skip"] = "raise",
    errors: Literal["raise", "skip"] = "raise",
    reranked: bool = False,
    strict: bool = False,
    tag: str | None = None,
    costs: bool = False,
    uses: bool = False,
    jobs: int = 1,
    report: Callable[[Summary], object] | None = None,
) -> pl.DataFrame | tuple[pl.DataFrame, ...]:  # fmt: skip
    """Read the results of every search in agents' traces, one row per result.

    Args:
        paths: a file, a directory (without its subdirectories), a pattern (`logs/*/*.json`), or several. Files are JSON, JSON
            Lines, text or Inspect's .eval, also as .gz and .zst. A mapping gives the files of each system:
            `{"old": "old.jsonl", "new": ["a.json", "b.json"]}`. Queries with the same question in several systems become one
            query with the first system's id. A question that occurs twice in one run of a system is not joined.
        format: the name of a format. `auto` recognises the format by the beginning of each file.
        turns: which turns become queries. `last`: the last turn of a trace; `searching`: the last turn that searched; `all`: each
            turn, named `<query_id>_<turn>`; `joined`: all turns as one query, with the first turn's question.
        iteration: what an iteration is. `step`: all calls of a step; `call`: each call; `sequential`: as `step`, but in
            spans without a model's span, calls that follow each other are steps; None: the format's default.
        tools: the search tools, as names (a list, or a text with commas), or as a function that takes a name. None: known search
            tools, and unknown tools with search or retrieve in the name. `NAME=search` and `NAME=open` (the tool opens
            documents) add a tool to this default.
        parse: a function that makes result objects from a tool's output. If the function returns None, goodgain reads the output.
        query_id: the path of the field with the query id. This field takes precedence over the trace's own id. A constant, or a
            function of the trace, gives ids to traces without their own. The name of a field, such as `query_id`, is an error if
            no trace has the field. None: a trace without an id is named after its file.
        query_ids: a table of ids that take precedence, as a path or a frame. The columns are query_id and text (the question), or
            query_id and log (the id, file name or session of the log). Logs of one system with the same id are one query.
        order: how searches from several logs of one query are ordered: `time`, or `given` (log by log).
        query_text: the path of the field with the question (`/task/question`). None: the user's text.
        citations: if a log lacks the results of a search, count the answer's citations as results.
        unrecorded: how to treat searches whose results the log lacks: `raise`, `empty` (no results) or `skip` (omit the iteration).
        errors: `raise`, or `skip` (leave out traces that cannot be read, and report them in a notice).
        reranked: use the results of a reranker instead of its retriever's results.
        strict: raise an error for every item that is not understood. By default, such items in traces with searches are only
            reported in a notice.
        tag: the name of the system, if `paths` has no names. None: the name in the log.
        costs: also return the recorded costs of each iteration.
        uses: also return the documents that were returned, opened and cited.
        jobs: how many processes read in parallel. With more than one, the calling script needs
            `if __name__ == "__main__":`, and functions given as options must be importable.
        report: a function, such as `print`, that gets the `Summary` of the traces read.

    Returns:
        A frame with the columns of `goodgain.schema.RESULTS`. A search without results has one row with rank 0 and no doc_id.
        A query that never searched has one row with iteration 0. With `costs=True`, a second frame has the columns of
        `goodgain.schema.COSTS`: the tokens, seconds and money of each iteration, null if the log lacks them. Iteration 0 has
        the costs after the last search. With `uses=True`, the last frame has the columns of `goodgain.schema.USES`. Its doc_ids
        are the same as in the run that `to_run` makes.

    Raises:
        InputError: a file cannot be read in its format; results cannot be read or are not in the log; a query has no search
            and its trace has items that are not understood; two traces share an id; or an id has different questions
            in two systems. The message names the file and the place.

    Example:
        >>> import json, pathlib, tempfile
        >>> call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "bm25"}'}}
        >>> chat = [
        ...     {"role": "user", "content": "What is BM25?"},
        ...     {"role": "assistant", "tool_calls": [call]},
        ...     {"role": "tool", "tool_call_id": "c1", "content": '[{"docid": "d1", "snippet": "Ranks texts."}]'},
        ... ]
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "q1.json"
        >>> _ = path.write_text(json.dumps(chat))
        >>> read_traces(path).select("query_id", "iteration", "rank", "doc_id").rows()
        [('q1', 1, 1, 'd1')]
    """
    options = ReadOptions(
        format=format, turns=turns, iteration=iteration, tools=tools, parse=parse, query_id=query_id,
        query_ids=None if query_ids is None else ids.read_query_ids(query_ids), order=order, query_text=query_text,
        citations=citations, unrecorded=unrecorded, errors=errors, reranked=reranked, strict=strict, tag=tag, costs=costs,
        uses=uses,
    )  # fmt: skip
    table_names = ["costs"] * costs + ["uses"] * uses
    (results, *tables), summary = read_frames(paths, options, table_names, jobs=jobs)
    if report is not None:
        report(summary)
    if uses:
        rows = tabulate_uses(tables.pop(), add_documents(results))
        tables.append(finish_uses(rows, opens_named=options.opens_named))
    return (results, *tables) if tables else results


def read_frames(
    paths: Paths, options: ReadOptions, tables: Sequence[str], *, jobs: int = 1
) -> tuple[list[pl.DataFrame], Summary]:
    """Read traces into frames: the results, and the further tables that `tables` names. Return the frames and the summary."""

    def read(options: ReadOptions) -> tuple[list[pl.DataFrame], Summary]:
        summary = Summary()
        names = ids.QueryNames()
        to_frames = partial(ResultRows.to_frames, tables=tables)
        batches = list(read_batches(paths, options, to_frames, summary, names, jobs=jobs))
        summary.give_notices()
        frames = [pl.concat(of_batches) for of_batches in zip(*batches, strict=True)]
        return [ids.rename_queries(frame, names.new_ids) for frame in frames], summary

    return ids.read_repeats(read, options)


class Conversion(NamedTuple):
    """The outputs of a conversion, and the counts of the traces read.

    Attributes:
        runs: a dict from the name of each system to the file of its run.
        results: the file of the results, if requested.
        rows: the number of rows written to runs.
        deduplicated: the number of queries whose results were deduplicated.
        summary: the counts of the traces read.
    """

    runs: dict[str, Path]
    results: Path | None
    rows: int
    deduplicated: int
    summary: Summary


@checks_kinds
def convert_traces(
    paths: Paths, output: str | os.PathLike[str], *,
    results: str | os.PathLike[str] | None = None,
    costs: str | os.PathLike[str] | None = None,
    queries: str | os.PathLike[str] | None = None,
    outcomes: str | os.PathLike[str] | None = None,
    uses: str | os.PathLike[str] | None = None,
    system: str | None = None,
    deduplicate: Deduplicate | None = None,
    deduplicate_all: bool = False,
    earlier: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    earlier_queries: Any = None,
    same: Pairs | None = None,
    different: Pairs | None = None,
    query_ids: Any = None,
    normalise_url: NormaliseUrl | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Conversion:  # fmt: skip
    """Convert traces to a run, or to one run for each system.

    Args:
        paths: the traces, as for `read_traces`, which also explains `jobs` and all further options. Results of several systems are
            deduplicated together, so a document has one doc_id in all runs.
        output: the file of the run, as TREC text, .jsonl or .parquet, also .gz and .zst. With `{system}` in the name, each
            system gets its own file. Each replicate (repeated run) of a system gets a file `<system>.<replicate>`.
        results: a .jsonl or .parquet file for the results, with the document of each result.
        costs: a .jsonl or .parquet file for the recorded costs of each iteration.
        queries: a .jsonl or .parquet file for query_id and text (the user's question), an input of `label`.
        outcomes: a .jsonl or .parquet file for `compare(..., outcomes=)`. It has the columns query_id, system and replicate, and
            a column for each recorded score, reward or feedback. Systems are named like the files of their runs.
        uses: a .jsonl or .parquet file for the documents that were returned, opened and cited, an input of `funnel`.
        system: the system to convert, if the traces hold several. `agent-2` selects replicate 2 of `agent`.
        deduplicate: a function such as `goodgain.deduplicate`. It identifies the documents of a query if a result lacks an
            id or an id stands for different documents. None: a document is its id, else its normalised URL, else its text.
        deduplicate_all: also deduplicate queries whose results all have ids.
        earlier: files of results that earlier conversions wrote. A result that matches an earlier result gets the same
            document. `deduplicate` is called with the earlier rows as `earlier=`.
        earlier_queries: the file `queries` of an earlier conversion, or a frame. A query with the question of an earlier
            query gets that query's id. Without this table, queries are joined to the queries of `earlier` by id only.
        same, different: as for `goodgain.deduplicate`. In queries whose results all have ids, only these pairs join or separate
            documents.
        query_ids: as for `read_traces`.
        normalise_url: a function from a URL to an id, for results that are not deduplicated. None: URLs are normalised as
            in deduplication.
        progress: a function of two numbers: the bytes read so far, and the total bytes.

    With errors='skip', the known ids of queries that could not be read are written to `<output>.unread`, one per line. In
    this name, `all` replaces `{system}`.

    Raises:
        InputError: as in `read_traces`; there are several systems and one output; an output is one of the traces or
            another output; no trace could be read; or a file cannot be written. After an error, no new file remains, and
            existing files are unchanged.

    >>> import json, pathlib, tempfile
    >>> import goodgain as gg
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> steps = [{"searches": [{"query": "what is bm25", "results": [{"doc_id": "d1"}]}]}]
    >>> _ = (folder / "log.jsonl").write_text(json.dumps({"goodgain_trace": 1, "query_id": "q", "steps": steps}))
    >>> summary = gg.convert_traces(folder / "log.jsonl", folder / "agent.run")
    >>> print((folder / "agent.run").read_text(), end="")
    q 1 d1 1 1.0 goodgain
    """
    tables = {"costs": costs, "queries": queries, "outcomes": outcomes, "uses": uses}
    table_files = {name: Path(path) for name, path in tables.items() if path is not None}
    files = OutputFiles(Path(output), None if results is None else Path(results), table_files)
    earlier_files = [Path(earlier)] if isinstance(earlier, (str, os.PathLike)) else list(map(Path, earlier))
    pairs = {"same": same, "different": different}
    said = {option: read_pairs(given, option) for option, given in pairs.items() if given is not None}
    if deduplicate is None:
        _check_that_nothing_needs_deduplication(earlier_files, said)

    check_option_names("convert_traces", options)
    table_of_ids = None if query_ids is None else ids.read_query_ids(query_ids)
    read_options = ReadOptions(**options, query_ids=table_of_ids, costs=costs is not None, uses=uses is not None)
    # Queries of several runs can be matched only when all traces are read. Only then are the names in pairs that no result
    # has known, too.
    has_earlier = bool(earlier_files) or earlier_queries is not None
    postpone = not files.is_one_run or system is not None or bool(said) or has_earlier
    converter = BatchConverter(deduplicate, deduplicate_all, normalise_url, files, system, postpone, None, said)
    inputs = [table for table in (earlier_queries, query_ids, same, different) if isinstance(table, (str, os.PathLike))]
    conversion = _ConversionOfFiles(
        paths, converter, earlier_files, earlier_queries, [*earlier_files, *map(Path, inputs)], jobs, progress
    )

    writer, summary = ids.read_repeats(conversion.convert, read_options)
    summary.give_notices()
    writer.give_notices(deduplication_asked=deduplicate_all)
    for list_of_pairs in said.values():
        list_of_pairs.give_notice()
    return Conversion(writer.runs, files.results, writer.rows, writer.deduplicated, summary)


def _check_that_nothing_needs_deduplication(earlier_files: Sequence[Path], said: Mapping[str, SaidPairs]) -> None:
    if earlier_files:
        raise InputError(f"joining results with earlier ones needs deduplication; give {spell('deduplicate')}")
    if said:
        both = f"{spell('same')} and {spell('different')}"
        raise InputError(f"{both} need deduplication; give {spell('deduplicate')}")


class _ConversionOfFiles(NamedTuple):
    """Traces in files, and what `convert_traces` makes of them."""

    paths: Paths
    converter: BatchConverter  # without earlier results
    earlier_files: list[Path]
    earlier_queries: Any
    inputs: list[Path]  # files that no output may replace, besides the traces
    jobs: int
    progress: Progress | None

    def convert(self, options: ReadOptions) -> tuple[OutputWriter, Summary]:
        """Read all traces and write all files."""
        files = self.converter.files
        outputs = _check_outputs(self.paths, files, self.inputs)
        earlier = _read_earlier(self.earlier_files)
        names = self._name_queries(earlier)
        summary = Summary(earlier_by_id=bool(self.earlier_files) and self.earlier_queries is None)

        with ExitStack() as stack:
            writer = OutputWriter(stack, files, self.converter.system, outputs)
            # Other processes do not get the earlier results, which may be large. `closing` ends the processes before files
            # are removed, even after an error.
            batches = read_batches(
                self.paths, options, self.converter, summary, names, jobs=self.jobs, progress=self.progress
            )
            with closing(batches):
                for batch in batches:
                    writer.add(batch, summary)
            converter = replace(self.converter, earlier=earlier)
            for rows, mentions in writer.read_postponed(names.new_ids):
                writer.add(converter.convert_rows(rows, mentions), summary)

            if summary.errors and not summary.traces:
                raise InputError(f"no trace could be read. {summary.describe_errors()}")
            if options.errors == "skip":
                _write_lost_ids(files, summary, outputs, stack)
            writer.finish(names.new_ids, summary, opens_named=options.opens_named)
        return writer, summary

    def _name_queries(self, earlier: pl.DataFrame | None) -> ids.QueryNames:
        """Return the queries of earlier conversions. Those from results have only ids."""
        query_ids = [] if earlier is None else earlier["query_id"].drop_nulls().unique().sort().to_list()
        known_queries = dict.fromkeys(query_ids, ids.Question())
        if self.earlier_queries is None:
            return ids.QueryNames(known_queries, "the earlier queries")
        is_file = isinstance(self.earlier_queries, (str, os.PathLike))
        place = str(self.earlier_queries) if is_file else "the earlier queries"
        return ids.QueryNames(known_queries | ids.read_earlier_queries(self.earlier_queries), place)


def _write_lost_ids(files: OutputFiles, summary: Summary, outputs: Outputs, stack: ExitStack) -> None:
    """Write `<output>.unread`, a file with the ids of queries that could not be read. If there are none, empty an existing file."""
    path = files.run.with_name(f"{files.run.name.replace(PLACEHOLDER, 'all')}.unread")
    if summary.lost_ids or path.is_file():
        outputs.add(path)
        stack.enter_context(atomic_write(path)).write(
            "".join(f"{query_id}\n" for query_id in summary.lost_ids).encode()
        )


def _read_earlier(files: list[Path]) -> pl.DataFrame | None:
    """Return the rows of earlier results that have a document, or None without files."""
    frames = []
    for file in files:
        frame = read_results(file)
        if "document" not in frame.columns:
            raise InputError(
                f"{file}: its results have no column document; convert their logs again with {spell('results')}, "
                "or deduplicate the file (goodgain dedup)"
            )
        frames.append(frame.filter(pl.col("document").is_not_null()))
    return pl.concat(frames, how="diagonal_relaxed") if frames else None


def _check_outputs(paths: Paths, files: OutputFiles, inputs: list[Path]) -> Outputs:
    """Check the outputs whose names are known. A run with `{system}` in its name is checked after the system's name is read."""
    outputs = Outputs([*(file.path for file in find_trace_files(paths)), *inputs])
    for path in (files.run, *files.named):
        if path is not files.run:
            check_results_name(path)
        if path.is_dir():
            raise InputError(f"{path}: is a directory; name the file to write")
    for path in files.named:
        outputs.add(path)
    return outputs
