"""Makes runs from batches of results, and writes one run per system and replicate.

If results of a query lack ids, or an id stands for several documents, deduplication identifies the documents first.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.counting.coverage import is_one_time
from goodgain.errors import InputError, count_of, notice
from goodgain.files import writing
from goodgain.files.opening import stem
from goodgain.formats.results import NormaliseUrl
from goodgain.logs.dedup.deduplication import find_doubtful_ids, find_reissued_ids
from goodgain.logs.traces.output import results_to_run
from goodgain.logs.traces.output.results_to_run import DEFAULT_TAG
from goodgain.logs.traces.reading.query_ids import rename_queries
from goodgain.logs.traces.reading.trace_reading import ResultRows
from goodgain.logs.traces.reading_summary import RunName, Summary
from goodgain.options import spell
from goodgain.schema import COMPLETED, EMPTY_DOC

#: Takes a results frame. Returns the rows with a column `document`, or an object with these rows as `.frame`. The options
#: `earlier=` (earlier results of the same queries), `same=` and `different=` are passed if given; with these pairs also
#: `trust_doc_id=True` for queries whose results all have ids.
Deduplicate = Callable[..., Any]

PLACEHOLDER = "{system}"
_LACKS_ID = (pl.col("rank") > 0) & pl.col("doc_id").replace(EMPTY_DOC, None).is_null()
#: Whether a result of the query lacks an id. Deduplication then identifies the documents of the query.
LACKS_IDS = _LACKS_ID.any().over("query_id")
#: The columns that a run needs if each id is a document.
_OF_RUNS = ("query_id", "system", "replicate", "iteration", "search", "rank", "doc_id", "type", "url", "score")
#: Rows deduplicated at once; a batch may have more, because it has whole queries.
_ROWS_A_BATCH = 200_000
#: File systems allow 255 bytes for a name, and the rest of the name needs some.
_MAX_NAME = 150


class OutputFiles(NamedTuple):
    """The files that a conversion writes: the run (or several, if its name has `{system}`), the results, and further tables."""

    run: Path
    results: Path | None
    tables: dict[str, Path]

    @property
    def is_one_run(self) -> bool:
        return PLACEHOLDER not in self.run.name

    @property
    def named(self) -> list[Path]:
        """The files whose names are known before the traces are read."""
        runs = [self.run] if self.is_one_run else []
        results = [] if self.results is None else [self.results]
        return [*runs, *results, *self.tables.values()]


class ConvertedBatch(NamedTuple):
    runs: list[tuple[RunName, writing.EncodedRows]]
    results: writing.EncodedRows | None = None
    tables: Mapping[str, pl.DataFrame] = {}  # the other requested tables
    postponed: pl.DataFrame | None = None  # rows whose documents or query ids are known only when all traces are read
    mentions: pl.DataFrame | None = None  # what the queries of these rows opened and cited
    deduplicated: int = 0  # queries whose documents deduplication identified
    reissued: Mapping[str, str] = {}  # query id -> the first id that stands for several documents, and two of these
    one_time: int = 0  # documents whose id is an address that is new for each call


@dataclass(frozen=True)
class BatchConverter:
    """Converts the rows of a batch by the options of `convert_traces`, in the process that read the rows."""

    deduplicate: Deduplicate | None
    deduplicate_all: bool
    normalise_url: NormaliseUrl | None
    files: OutputFiles
    system: str | None
    postpone: bool  # return the rows unconverted, because more rows of their queries may come
    earlier: pl.DataFrame | None = None  # results that already have documents
    #: Further options of `deduplicate`: pairs of results that are the same or different.
    said: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, rows: ResultRows) -> ConvertedBatch:
        """Convert the rows of a batch, or only lay them out if their conversion must wait for all batches."""
        tables = {name: self._select_system(rows.to_table(name)) for name in self.files.tables}
        mentions = tables.pop("uses", None)
        frame = self._lay_out(rows)
        if self.postpone:
            batch = ConvertedBatch([], postponed=frame, mentions=mentions)
        else:
            batch = self.convert_rows(frame, mentions)
        return batch._replace(tables={**batch.tables, **tables})

    def _lay_out(self, rows: ResultRows) -> pl.DataFrame:
        """Return the rows of the system, without the texts of results if ids name all documents."""
        needs_texts = self.postpone or self.deduplicate_all or self.files.results is not None
        if not needs_texts:
            frame = self._select_system(rows.to_frame(_OF_RUNS))
            lacks_ids = frame.select(LACKS_IDS.any()).item()
            if not lacks_ids and find_doubtful_ids(frame).is_empty():
                return frame
        return self._select_system(rows.to_frame())

    def _select_system(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the system or run named `self.system` (such as `agent-2`). If `system` is None, return all rows."""
        if self.system is None:
            return frame
        names = [name for name in results_to_run.list_runs(frame) if self.system in (name.system, name.label)]
        return frame.filter(pl.any_horizontal(pl.lit(False), *map(results_to_run.is_of_run, names)))

    def convert_rows(self, frame: pl.DataFrame, mentions: pl.DataFrame | None = None) -> ConvertedBatch:
        """Convert the rows of whole queries. Deduplicate a query if a result lacks an id, or an id stands for several documents."""
        earlier = self._select_earlier(frame)
        rows = frame if earlier is None else pl.concat([earlier, frame], how="diagonal_relaxed")
        reissued = {} if self.deduplicate_all else find_reissued_ids(rows)
        if self.deduplicate is None:
            return self._encode_rows(frame, mentions)._replace(reissued=reissued)

        renamed = None if earlier is None else _find_renamed_documents(earlier)
        queries_without_ids = self._find_queries_without_ids(frame, renamed)
        reissued = {query_id: ids for query_id, ids in reissued.items() if query_id not in queries_without_ids}
        needs_documents = frame["query_id"].is_in([*queries_without_ids, *reissued])
        trusts_ids = bool(self.said) or (renamed is not None and renamed.height > 0)
        if not (needs_documents.any() or trusts_ids):
            return self._encode_rows(frame, mentions, earlier)

        options = {**self.said} if earlier is None else {**self.said, "earlier": earlier}
        placed = frame.with_columns(place=pl.int_range(pl.len()))
        deduplicated = self._add_documents(placed.filter(needs_documents), options)
        # In the other queries, doc_ids identify documents, and only the pairs in `same` and `different` change them.
        others = placed.filter(~needs_documents)
        if trusts_ids:
            others = self._add_documents(others, {**options, "trust_doc_id": True})
        else:
            others = others.with_columns(document="doc_id")

        documents = pl.concat([deduplicated, others]).sort("place").drop("place")
        batch = self._encode_rows(documents, mentions, earlier)
        return batch._replace(deduplicated=deduplicated["query_id"].n_unique(), reissued=reissued)

    def _select_earlier(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        """Return the earlier results of the queries of `frame`."""
        if self.earlier is None:
            return None
        query_ids = frame["query_id"].unique()
        return self.earlier.filter(pl.col("query_id").is_in(query_ids.implode()))

    def _find_queries_without_ids(self, frame: pl.DataFrame, renamed: pl.DataFrame | None) -> set[str]:
        """Return the queries whose documents ids do not identify: a result lacks an id, or an earlier document has another name."""
        if self.deduplicate_all:
            return {*frame["query_id"]}
        lacks_ids = LACKS_IDS
        if renamed is not None:
            # If the name is another doc_id, the user joined the two, and ids still identify documents.
            has_own_name = pl.col("is_id").is_null() | pl.col("doc_id").is_null()
            query_ids = renamed.filter(has_own_name)["query_id"].unique()
            lacks_ids = lacks_ids | pl.col("query_id").is_in(query_ids.implode())
        return {*frame.filter(lacks_ids)["query_id"]}

    def _add_documents(self, rows: pl.DataFrame, options: Mapping[str, Any]) -> pl.DataFrame:
        """Return the rows with a column `document`, from the user's function `deduplicate`."""
        if rows.is_empty() or self.deduplicate is None:
            return rows.with_columns(document="doc_id")
        answer = self.deduplicate(rows, **options)
        return pl.DataFrame(getattr(answer, "frame", answer)).select(*rows.columns, "document")

    def _encode_rows(
        self, frame: pl.DataFrame, mentions: pl.DataFrame | None, earlier: pl.DataFrame | None = None
    ) -> ConvertedBatch:
        """Return the rows as they stand in the files of runs and results. `earlier` names opened documents in `uses`."""
        results = None
        tables = {}
        if self.files.results is not None or mentions is not None:
            frame = results_to_run.add_documents(frame, self.normalise_url)
        if self.files.results is not None:
            results = writing.encode_rows(frame, self.files.results)
        if mentions is not None:
            tables["uses"] = results_to_run.tabulate_uses(mentions, frame, earlier)

        runs = []
        one_time = 0
        for name in results_to_run.list_runs(frame):
            rows = frame.filter(results_to_run.is_of_run(name))
            run = results_to_run.make_run(rows, normalise_url=self.normalise_url)
            # a document of two queries, or of two runs, counts twice
            one_time += run.filter(is_one_time(pl.col("doc_id"))).n_unique(["query_id", "doc_id"])
            runs.append((name, writing.encode_rows(run, self.files.run)))
        return ConvertedBatch(runs, results, tables, one_time=one_time)


def _find_renamed_documents(earlier: pl.DataFrame) -> pl.DataFrame:
    """Return the earlier results whose document is not their doc_id. `is_id` is null unless it is another doc_id of the query."""
    renamed = earlier.filter(pl.col("document").ne_missing(pl.col("doc_id")))
    ids = earlier.select("query_id", document="doc_id", is_id=pl.lit(True)).unique()
    return renamed.join(ids, on=["query_id", "document"], how="left")


class OutputWriter:
    """Writes batches to the outputs of a conversion. The files appear only if `stack` closes without an error."""

    def __init__(self, stack: ExitStack, files: OutputFiles, system: str | None, outputs: writing.Outputs) -> None:
        self.runs: dict[str, Path] = {}  # by their labels
        self.rows = self.deduplicated = 0
        self._stack = stack
        self._files = files
        self._system = system
        self._outputs = outputs
        self._escaped = 0
        self._appends = {path: stack.enter_context(writing.append_rows(path)) for path in files.named}
        self._batches: list[ConvertedBatch] = []  # without the rows that are in files
        self._postponed: list[Path] = []

    def add(self, batch: ConvertedBatch, summary: Summary) -> None:
        """Append the runs and results of a batch to their files. Keep its tables in memory, and postponed rows on disk."""
        self._check_that_the_run_has_one_system(summary)
        for name, run in batch.runs:
            self._open_run(name)(run)
            self.rows += run.rows
            self._escaped += run.escaped
        if self._files.results is not None and batch.results is not None:
            self._appends[self._files.results](batch.results)
        if batch.postponed is not None and batch.postponed.height:
            self._keep_on_disk(batch.postponed)
        self.deduplicated += batch.deduplicated
        self._batches.append(batch._replace(runs=[], results=None, postponed=None))

    def _check_that_the_run_has_one_system(self, summary: Summary) -> None:
        """Raise an InputError if the output is one run, and traces so far are of several systems or runs of a system."""
        chosen = self._list_chosen_runs(summary)
        if not self._files.is_one_run or len(chosen) < 2:
            return
        first, second = (name.label or "one without a name" for name in chosen[:2])
        several = "systems" if len({name.system for name in chosen}) > 1 else "runs of a system"
        raise InputError(
            f"the traces hold several {several} ({first}, {second}), but the output holds one run; select a run "
            f"with {spell('system')}, or put {PLACEHOLDER} into the name of the output"
        )

    def _keep_on_disk(self, rows: pl.DataFrame) -> None:
        """Write rows to a temporary file, which is deleted when the conversion ends."""
        if self._postponed:
            folder = self._postponed[0].parent
        else:
            folder = self._stack.enter_context(writing.temporary_folder())
        path = folder / f"{len(self._postponed)}.parquet"
        self._postponed.append(path)
        with writing.write_with_polars():
            rows.write_parquet(path)

    def finish(self, new_ids: Mapping[str, str], summary: Summary, *, opens_named: bool = False) -> None:
        """Write all tables except runs and results, and rename queries by `new_ids`. `opens_named` is passed to `finish_uses`."""
        if self._system is not None and not self._list_chosen_runs(summary):
            labels = [repr(name.label) for name in list(summary.systems)[:10] if name.label]
            names = ", ".join(labels) or "one without a name"
            raise InputError(f"the traces hold no system {self._system!r}, only {names}")

        for table, path in self._files.tables.items():
            rows = pl.concat([batch.tables[table] for batch in self._batches if table in batch.tables])
            if table == "uses":  # their queries were renamed before
                rows = self._name_as_runs(results_to_run.finish_uses(rows, opens_named=opens_named))
            elif table == "queries":
                rows = _choose_questions(rename_queries(rows, new_ids))
            elif table == "outcomes":
                rows = self._lay_out_outcomes(rename_queries(rows, new_ids), path)
            else:
                rows = self._name_as_runs(rename_queries(rows, new_ids))
            self._appends[path](writing.encode_rows(rows, path))

    def _lay_out_outcomes(self, rows: pl.DataFrame, path: Path) -> pl.DataFrame:
        """Return a row per query and run, with a column for each outcome."""
        names = rows.get_column("outcome").unique(maintain_order=True).to_list()
        if names == [COMPLETED] and (rows.get_column("value") == 1).all():
            notice(
                "no_outcomes",
                f"{path}: the logs record no scores, rewards or feedback, so the only outcome is {COMPLETED}. Add columns "
                "by hand.",
            )
        rows = self._name_as_runs(rows)
        return rows.pivot("outcome", on_columns=names, index=results_to_run.OF_RUN, values="value")

    def _name_as_runs(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rename each system to the name of its run file, because `curve` and `compare` use the file names too."""
        system = pl.col("system").fill_null(DEFAULT_TAG).map_elements(_make_file_name, pl.String)
        if self._files.is_one_run:
            system = pl.lit(stem(self._files.run))
        return rows.with_columns(system=system)

    def _list_chosen_runs(self, summary: Summary) -> list[RunName]:
        return [name for name in summary.systems if self._system in (None, name.system, name.label)]

    def _open_run(self, name: RunName) -> writing.Append:
        """Return the function that appends to the file of a run. Create the file of each system at its first rows."""
        label = name.label or DEFAULT_TAG
        if self._files.is_one_run:
            self.runs[label] = self._files.run
        elif label not in self.runs:
            path = self._place_run(name)
            if path in self.runs.values():
                raise InputError(f"{path}: two systems write to this file; convert each with {spell('system')}")
            self._outputs.add(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.runs[label] = path
            self._appends[path] = self._stack.enter_context(writing.append_rows(path))
        return self._appends[self.runs[label]]

    def _place_run(self, name: RunName) -> Path:
        """Return the file of a run. The replicate follows a dot: runs/agent.*.run are the runs of one system."""
        file_name = _make_file_name(name.system or DEFAULT_TAG)
        if name.replicate is not None:
            file_name = f"{file_name}.{_make_file_name(name.replicate)}"
        run = self._files.run
        return run.with_name(run.name.replace(PLACEHOLDER, file_name))

    def read_postponed(self, new_ids: Mapping[str, str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame | None]]:
        """Yield the postponed rows and mentions in batches of whole queries, after renaming the queries by `new_ids`."""
        if not self._postponed:
            return
        mentions_of_batches = [batch.mentions for batch in self._batches if batch.mentions is not None]
        mentions = rename_queries(pl.concat(mentions_of_batches), new_ids) if mentions_of_batches else None
        rows = rename_queries(pl.scan_parquet(self._postponed), new_ids)

        sizes = rows.group_by("query_id", maintain_order=True).len().collect()
        sizes = sizes.with_columns(part=pl.col("len").cum_sum() // _ROWS_A_BATCH)
        for _, queries in sizes.group_by("part", maintain_order=True):
            is_of_part = pl.col("query_id").is_in(queries["query_id"].to_list())
            yield rows.filter(is_of_part).collect(), None if mentions is None else mentions.filter(is_of_part)

    def give_notices(self, *, deduplication_asked: bool) -> None:
        """Give the notices about the outputs. If `deduplication_asked`, do not say that results without ids were deduplicated."""
        examples = [example for batch in self._batches for example in batch.reissued.values()]
        reissued = len(examples) if self.deduplicated else 0
        without_ids = self.deduplicated - reissued
        if without_ids > 0 and not deduplication_asked:
            notice(
                "results_without_ids",
                f"the results of {count_of(without_ids, 'query', 'queries')} lack ids: deduplication "
                f"identified their documents; {spell('deduplicate', None)} names each by its canonical address, else by its text",
            )
        if examples:
            remedy = (
                f"deduplication identified the documents instead; {spell('deduplicate', None)} keeps the ids"
                if reissued
                else f"each id counts as one document; pass {spell('deduplicate')} to identify the documents"
            )
            results_to_run.report_reissued_ids(examples, remedy)
        one_time = sum(batch.one_time for batch in self._batches)
        if one_time:
            notice(
                "one_time_addresses",
                f"{count_of(one_time, 'document')} have addresses that are new for each call: a page that is found again gets "
                "another id, so its duplicates and judgments are missed. Follow these addresses soon after the run, and log "
                "where they redirect.",
            )
        if not self._files.is_one_run and [*self.runs] == [DEFAULT_TAG]:
            notice(
                "logs_without_system",
                f"the logs name no system, so all of them are one run: {self.runs[DEFAULT_TAG]}. For a run of each system, name "
                "the systems: old=FILE new=FILE, in Python {'old': path, 'new': path}.",
            )
        writing.warn_of_escaped_ids(self._escaped, self._files.run)


def _choose_questions(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per query with its question. A query has the same question in all systems."""
    has_text = pl.col("text").str.strip_chars() != ""
    questions = rows.filter(has_text).select("query_id", "text")
    return questions.unique("query_id", keep="first", maintain_order=True)


def _make_file_name(name: str) -> str:
    """Replace the characters in a system's name that file names may not contain."""
    safe = re.sub(r"[^\w.+-]", "_", name)[:_MAX_NAME]
    is_folder = not safe.strip(".")  # . and ..
    return "_" * len(safe) if is_folder else safe
