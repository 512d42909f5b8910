"""Reads agents' traces into frames: results, costs, and uses (which documents were returned, opened and cited)."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal, overload

import polars as pl

from goodgain.errors import notice
from goodgain.formats.urls import canonicalise_url
from goodgain.logs.traces.output.results_to_run import DEFAULT_TAG, add_documents
from goodgain.logs.traces.reading.opened_and_cited import make_page_key
from goodgain.logs.traces.reading.query_ids import QueryNames, read_query_ids, read_repeats, rename_queries
from goodgain.logs.traces.reading.read_options import QueryId, ReadOptions
from goodgain.logs.traces.reading.trace_files_and_tasks import Paths
from goodgain.logs.traces.reading.trace_reading import ResultRows, read_batches
from goodgain.logs.traces.reading_summary import Summary
from goodgain.logs.traces.tool_outputs.readers import Parse
from goodgain.logs.traces.tools import ToolPredicate
from goodgain.options import spell
from goodgain.schema import EMPTY_DOC, USES

_RUN = ["query_id", "system", "replicate"]
_PLACE = ["iteration", "search", "rank"]
_DOCUMENT = [*_RUN, "doc_id"]
_NO_OPENS = "call that opens a document, so opens are unknown (null). If a tool opens them, name it:"
_NO_ANSWER = "final answer, so cited is unknown (null)."


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


def read_traces(  # type: ignore[misc]  # overloads would repeat all options
    paths: Paths, *,
    format: str = "auto",  # noqa: A002  # the usual name for it
    turns: Literal["last", "searching", "all", "joined"] = "last",
    iteration: Literal["step", "call"] | None = None,
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
        paths: a file, a directory, or several; JSON, JSON Lines, text, Inspect's .eval, also as .gz and .zst. A mapping
            has those of each system: `{"old": "old.jsonl", "new": ["a.json", "b.json"]}`. Queries of several systems with
            one question are one query, under the id of the first system, unless a system was asked it twice.
        format: the name of a format, or auto: recognised by the beginning of each file.
        turns: last: the last turn of a trace is the query; searching: its last turn that searched; all: each turn is a
            query, named `<query_id>_<turn>`; joined: all turns are one query, named by the first, and iterations run on.
        iteration: step: calls of a step are one iteration; call: each call is one; None: the best that the format records.
        tools: which tools are searches: names, or a function of a name; None: by a table of known names, else by the words
            search or retrieve in a name. `NAME=open` (it opens documents) and `NAME=search` add to this rule.
        parse: reads a tool's output before our readers: output -> results (objects), or None to leave it to them.
        query_id: a field path, which comes before the trace's own id; for traces without an id also a constant, or a
            function of the trace; None: the file's name.
        query_ids: a table of ids that take precedence, a path or a frame: query_id and text (the question), or query_id
            and log (the id, file name or session of the log). Several logs of one system with one id are one query.
        order: of the searches of such logs: time, or given (log by log).
        query_text: the field path of the question (`/task/question`), for `query_ids` and joining; None: what the user says.
        citations: count the citations of an answer as the results of a search without recorded results.
        unrecorded: searches whose results the log lacks: raise, empty (no results), skip (leave the iteration out).
        errors: raise, or skip (leave out traces that cannot be read, and report them in a notice).
        reranked: a reranker's list replaces its retriever's.
        strict: items that are not understood are an error even in a trace with searches, instead of a notice.
        tag: the name of the system, if `paths` names none; None: the name in the log.
        costs: return the recorded costs of each iteration too.
        uses: return the documents that were returned, opened and cited too.
        jobs: how many processes read in parallel. With more than one, the calling script needs
            `if __name__ == "__main__":`, and functions must be importable.
        report: called with the `Summary` of the reading; for example `print`.

    Returns:
        A frame with the columns of `goodgain.schema.RESULTS`. A search without results is one row without doc_id and
        with rank 0; a query that never searched is one row with iteration 0. With `costs=True`, this frame and one with
        the columns of `goodgain.schema.COSTS`: the tokens, seconds and money that each iteration adds, null if the log
        lacks them; iteration 0 is spending after the last search. With `uses=True`, last one with the columns of
        `goodgain.schema.USES`: its doc_ids are those of `to_run` of the frame.

    Raises:
        InputError: a file cannot be read in its format, results cannot be read or are not in the log, a query has no
            search and something in its trace is not understood, two traces share an id, or one id has two questions in
            two systems. It names the file and the place in it.

    Example:
        >>> import json, pathlib, tempfile
        >>> call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "bm25"}'}}
        >>> chat = [
        ...     {"role": "user", "content": "What is BM25?"},
        ...     {"role": "assistant", "tool_calls": [call]},
        ...     {"role": "tool", "tool_call_id": "c1", "content": '[{"docid": "d1", "snippet": "A ranking one."}]'},
        ... ]
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "q1.json"
        >>> _ = path.write_text(json.dumps(chat))
        >>> read_traces(path).select("query_id", "iteration", "rank", "doc_id").rows()
        [('q1', 1, 1, 'd1')]
    """
    options = ReadOptions(
        format=format, turns=turns, iteration=iteration, tools=tools, parse=parse, query_id=query_id,
        query_ids=None if query_ids is None else read_query_ids(query_ids), order=order, query_text=query_text,
        citations=citations, unrecorded=unrecorded, errors=errors, reranked=reranked, strict=strict, tag=tag, costs=costs,
        uses=uses,
    )  # fmt: skip
    (results, *tables), summary = read_frames(paths, options, ["costs"] * costs + ["uses"] * uses, jobs=jobs)
    if report is not None:
        report(summary)
    if uses:
        found = tabulate_uses(tables.pop(), add_documents(results))
        tables.append(finish_uses(found, opens_named=options.opens_named))
    return (results, *tables) if tables else results


def read_frames(
    paths: Paths, options: ReadOptions, tables: Sequence[str], *, jobs: int = 1
) -> tuple[list[pl.DataFrame], Summary]:
    """Read the results in traces and other tables of `ResultRows`. Return these and the counts of the reading."""

    def read(options: ReadOptions) -> tuple[list[pl.DataFrame], Summary]:
        summary, names, finish = Summary(), QueryNames(), partial(ResultRows.to_frames, tables=tables)
        frames = list(read_batches(paths, options, finish, summary, names, jobs=jobs))
        summary.give_notices()
        return [rename_queries(pl.concat(of), names.new_ids) for of in zip(*frames, strict=True)], summary

    return read_repeats(read, options)


def tabulate_uses(mentions: pl.DataFrame, results: pl.DataFrame, earlier: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the uses of whole queries. `mentions` is the table `uses` of `ResultRows`; `results` have a column `document`.

    `can_open`: whether the log has a call that opens a document; null if the log hides which documents were opened.
    """
    found = results.filter(pl.col("rank") > 0)
    known = [found] if earlier is None else [found, earlier]
    named, place = mentions.filter(pl.col("kind") != "query"), [*_RUN, *_PLACE]
    of_place = found.select(*place, "document")
    named = named.join(of_place, on=place, how="left", nulls_equal=True, maintain_order="left")
    named = named.with_columns(doc_id=pl.coalesce("document", _name_others(named, known)))
    opened, failed = pl.col("kind") == "open", pl.col("failed")
    used = named.group_by(_DOCUMENT, maintain_order=True).agg(
        opened_at=pl.col("opened_at").filter(opened & ~failed).min(),
        opens=opened.sum().cast(pl.Int64),
        failed_opens=(opened & failed).sum().cast(pl.Int64),
        cited=(pl.col("kind") == "cite").any(),
    )
    returned = (
        found.sort(_PLACE, maintain_order=True)
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over(*_RUN, "iteration"))
        .group_by(*_RUN, doc_id="document", maintain_order=True)
        .agg(returned_at=pl.col("iteration").first(), rank=pl.col("rank").first())
    )
    both = returned.join(used, on=_DOCUMENT, how="full", coalesce=True, nulls_equal=True, maintain_order="left_right")
    queries = mentions.filter(pl.col("kind") == "query").select(*_RUN, "answered", "can_open")
    whole = queries.join(both, on=_RUN, how="left", nulls_equal=True, maintain_order="left_right")
    return whole.select(
        *_RUN,
        pl.col("doc_id").fill_null(EMPTY_DOC),
        "returned_at",
        "rank",
        "opened_at",
        pl.col("opens", "failed_opens").fill_null(0),
        cited=pl.when("answered").then(pl.col("cited").fill_null(False)),
        can_open="can_open",
    )


def _name_others(named: pl.DataFrame, known: list[pl.DataFrame]) -> pl.Series:
    """Return a document for each mention that is not a result of its run.

    Another run of the query may have a document with this id, or one that is this page by the rules of deduplication. Else
    the mention is a document of its own. All URLs of a page have one name.
    """
    names: dict[tuple[str, str], str] = {}
    others = named.filter(pl.col("document").is_null()).select("query_id", "name").unique()
    asked = dict.fromkeys(others["query_id"])
    for frame in known if asked else ():
        columns = [name for name in ("query_id", "document", "doc_id", "url") if name in frame.columns]
        of_queries = frame.filter(pl.col("query_id").is_in([*asked])).select(columns).unique(maintain_order=True)
        for query_id, document, *more in of_queries.iter_rows():
            for name in filter(None, (document, *more)):
                names.setdefault((query_id, name), document)
                names.setdefault((query_id, make_page_key(name) or name), document)
    for query_id, name in others.sort("query_id", "name").iter_rows():
        key = make_page_key(name) or name
        document = names.get((query_id, name)) or names.get((query_id, key))
        if document is None:
            document = (canonicalise_url(name) or name) if key != name else name
            names[query_id, key] = document
        names[query_id, name] = document
    values = [names.get((query_id, name)) for query_id, name in named.select("query_id", "name").iter_rows()]
    return pl.Series(values, dtype=pl.String)


def finish_uses(uses: pl.DataFrame, *, opens_named: bool) -> pl.DataFrame:
    """Return the uses of whole systems. If the logs of a system have no call that opens a document, the opens are null."""
    # If the caller named a tool that opens documents, no call of the tool means zero opens.
    can_open = pl.col("can_open").fill_null(True).any().over("system") | pl.lit(opens_named)
    uses = uses.with_columns(known=can_open & pl.col("can_open").is_not_null())
    unanswered = pl.col("cited").count().over("system") == 0
    for is_unknown, lacking in ((~can_open, f"{_NO_OPENS} {spell('tools', 'NAME=open')}."), (unanswered, _NO_ANSWER)):
        systems = uses.filter(is_unknown).get_column("system").unique(maintain_order=True).to_list()
        if systems:
            notice(f"{', '.join(name or DEFAULT_TAG for name in systems[:5])}: the logs have no {lacking}")
    numbers = [pl.when("known").then(name).alias(name) for name in ("opened_at", "opens", "failed_opens")]
    return uses.with_columns(numbers).select([*USES.columns])
