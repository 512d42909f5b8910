"""Makes runs from batches of results, and writes one run per system and replicate.

If results of a query lack ids, or an id stands for several documents, deduplication identifies the documents first.
"""

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
#: Whether a result of the query lacks an id. Deduplication then identifies the documents of the query.
LACKS_IDS = ((pl.col("rank") > 0) & pl.col("doc_id").replace(EMPTY_DOC, None).is_null()).any().over("query_id")
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
    def known(self) -> list[Path]:
        return [*filter(None, [self.run if self.is_one_run else None, self.results]), *self.tables.values()]


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
        needs_texts = self.postpone or self.deduplicate_all or self.files.results is not None
        frame = self._select_system(rows.to_frame() if needs_texts else rows.to_frame(_OF_RUNS))
        if not needs_texts and (frame.select(LACKS_IDS.any()).item() or find_doubtful_ids(frame).height):
            frame = self._select_system(rows.to_frame())
        tables = {name: self._select_system(rows.to_table(name)) for name in self.files.tables}
        mentions = tables.pop("uses", None)
        postponed = ConvertedBatch([], postponed=frame, mentions=mentions)
        batch = postponed if self.postpone else self.convert_rows(frame, mentions)
        return batch._replace(tables={**batch.tables, **tables})

    def _select_system(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the system or run named `self.system` (such as `agent-2`). If `system` is None, return all rows."""
        if self.system is None:
            return frame
        names = [name for name in results_to_run.list_runs(frame) if self.system in (name.system, name.label)]
        return frame.filter(pl.any_horizontal(pl.lit(False), *map(results_to_run.is_of_run, names)))

    def convert_rows(self, frame: pl.DataFrame, mentions: pl.DataFrame | None = None) -> ConvertedBatch:
        """Convert the rows of whole queries. Deduplicate a query if a result lacks an id, or an id stands for several documents."""
        options, trusted, earlier = dict(self.said), bool(self.said), None
        lacking = pl.lit(True) if self.deduplicate_all else LACKS_IDS
        known = frame
        if self.earlier is not None:
            earlier = self.earlier.filter(pl.col("query_id").is_in(frame["query_id"].unique().implode()))
            options["earlier"] = earlier
            known = pl.concat([earlier, frame], how="diagonal_relaxed")
            # An earlier document whose name is not its doc_id needs deduplication, unless the name is another doc_id: then the
            # user joined the two.
            renamed = earlier.filter(pl.col("document").ne_missing(pl.col("doc_id")))
            ids = earlier.select("query_id", document="doc_id", is_id=pl.lit(True)).unique()
            renamed = renamed.join(ids, on=["query_id", "document"], how="left")
            others = renamed.filter(pl.col("is_id").is_null() | pl.col("doc_id").is_null())["query_id"].unique()
            lacking = lacking | pl.col("query_id").is_in(others.implode())
            trusted = trusted or renamed.height > 0
        reissued = {} if self.deduplicate_all else find_reissued_ids(known)
        if self.deduplicate is None:
            return self._encode_rows(frame, mentions)._replace(reissued=reissued)
        lack = set(frame.filter(lacking)["query_id"])
        reissued = {query_id: told for query_id, told in reissued.items() if query_id not in lack}
        in_need = frame["query_id"].is_in([*lack, *reissued])
        if not (in_need.any() or trusted):
            return self._encode_rows(frame, mentions, earlier)
        # In the other queries, doc_ids identify documents, and only the pairs in `same` and `different` change them.
        by_id = {**options, "trust_doc_id": True} if trusted else None
        parts = []
        for is_chosen, given in ((in_need, options), (~in_need, by_id)):
            part = frame.with_columns(place=pl.int_range(pl.len())).filter(is_chosen)
            if given is None or part.is_empty():
                parts.append(part.with_columns(document="doc_id"))
            else:
                found = self.deduplicate(part, **given)
                parts.append(pl.DataFrame(getattr(found, "frame", found)).select(*part.columns, "document"))
        batch = self._encode_rows(pl.concat(parts).sort("place").drop("place"), mentions, earlier)
        return batch._replace(deduplicated=parts[0]["query_id"].n_unique(), reissued=reissued)

    def _encode_rows(
        self, frame: pl.DataFrame, mentions: pl.DataFrame | None, earlier: pl.DataFrame | None = None
    ) -> ConvertedBatch:
        results, tables = None, {}
        if self.files.results is not None or mentions is not None:
            frame = results_to_run.add_documents(frame, self.normalise_url)
        if self.files.results is not None:
            results = writing.encode_rows(frame, self.files.results)
        if mentions is not None:
            tables["uses"] = results_to_run.tabulate_uses(mentions, frame, earlier)
        runs, one_time = [], 0
        for name in results_to_run.list_runs(frame):
            run = results_to_run.to_run(frame.filter(results_to_run.is_of_run(name)), normalise_url=self.normalise_url)
            one_time += run.filter(is_one_time(pl.col("doc_id"))).n_unique(["query_id", "doc_id"])
            runs.append((name, writing.encode_rows(run, self.files.run)))
        return ConvertedBatch(runs, results, tables, one_time=one_time)


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
        self._appends = {path: stack.enter_context(writing.append_rows(path)) for path in files.known}
        self._batches: list[ConvertedBatch] = []  # without the rows that are in files
        self._postponed: list[Path] = []

    def add(self, batch: ConvertedBatch, summary: Summary) -> None:
        chosen = self._list_chosen_runs(summary)
        if self._files.is_one_run and len(chosen) > 1:
            first, second = (name.label or "one without a name" for name in chosen[:2])
            what = "systems" if len({name.system for name in chosen}) > 1 else "runs of a system"
            raise InputError(
                f"the traces hold several {what} ({first}, {second}), but the output holds one run; select a run "
                f"with {spell('system')}, or put {PLACEHOLDER} into the name of the output"
            )
        for name, run in batch.runs:
            self._open_run(name)(run)
            self.rows += run.rows
            self._escaped += run.escaped
        if self._files.results is not None and batch.results is not None:
            self._appends[self._files.results](batch.results)
        if batch.postponed is not None and batch.postponed.height:
            folder = (
                self._postponed[0].parent if self._postponed else self._stack.enter_context(writing.temporary_folder())
            )
            self._postponed.append(folder / f"{len(self._postponed)}.parquet")
            with writing.write_with_polars():
                batch.postponed.write_parquet(self._postponed[-1])
        self.deduplicated += batch.deduplicated
        self._batches.append(batch._replace(runs=[], results=None, postponed=None))

    def finish(self, new_ids: Mapping[str, str], summary: Summary, *, opens_named: bool = False) -> None:
        """Write all tables except runs and results, and rename queries by `new_ids`. `opens_named` is passed to `finish_uses`."""
        if self._system is not None and not self._list_chosen_runs(summary):
            labels = [repr(name.label) for name in list(summary.systems)[:10] if name.label]
            known = ", ".join(labels) or "one without a name"
            raise InputError(f"the traces hold no system {self._system!r}, only {known}")
        for name, path in self._files.tables.items():
            rows = pl.concat([batch.tables[name] for batch in self._batches if name in batch.tables])
            if name != "uses":  # their queries were renamed before
                rows = rename_queries(rows, new_ids)
            if name == "queries":  # a query has the same text in all systems
                rows = rows.filter(pl.col("text").str.strip_chars() != "").select("query_id", "text")
                rows = rows.unique("query_id", keep="first", maintain_order=True)
            elif name == "costs":
                rows = self._name_as_runs(rows)
            elif name == "uses":
                rows = self._name_as_runs(results_to_run.finish_uses(rows, opens_named=opens_named))
            elif name == "outcomes":
                names = rows.get_column("outcome").unique(maintain_order=True).to_list()
                if names == [COMPLETED] and (rows.get_column("value") == 1).all():
                    notice(
                        "no_outcomes",
                        f"{path}: the logs record no scores, rewards or feedback, so the only outcome is {COMPLETED}. Add columns "
                        "by hand.",
                    )
                rows = self._name_as_runs(rows)
                rows = rows.pivot("outcome", on_columns=names, index=results_to_run.OF_RUN, values="value")
            self._appends[path](writing.encode_rows(rows, path))

    def _name_as_runs(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rename each system to the name of its run file, because `curve` and `compare` use the file names too."""
        system = pl.col("system").fill_null(DEFAULT_TAG).map_elements(_make_file_name, pl.String)
        if self._files.is_one_run:
            system = pl.lit(stem(self._files.run))
        return rows.with_columns(system=system)

    def _list_chosen_runs(self, summary: Summary) -> list[RunName]:
        return [name for name in summary.systems if self._system in (None, name.system, name.label)]

    def _open_run(self, name: RunName) -> writing.Append:
        label = name.label or DEFAULT_TAG
        if self._files.is_one_run:
            self.runs[label] = self._files.run
        elif label not in self.runs:
            # The replicate follows a dot: runs/agent.*.run are the runs of one system.
            parts = [name.system or DEFAULT_TAG, *([name.replicate] if name.replicate is not None else [])]
            out = self._files.run
            path = out.with_name(out.name.replace(PLACEHOLDER, ".".join(map(_make_file_name, parts))))
            if path in self.runs.values():
                raise InputError(f"{path}: two systems write to this file; convert each with {spell('system')}")
            self._outputs.add(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.runs[label] = path
            self._appends[path] = self._stack.enter_context(writing.append_rows(path))
        return self._appends[self.runs[label]]

    def read_postponed(self, new_ids: Mapping[str, str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame | None]]:
        """Yield the postponed rows and mentions in batches of whole queries, after renaming the queries by `new_ids`."""
        if not self._postponed:
            return
        found = [batch.mentions for batch in self._batches if batch.mentions is not None]
        mentions = rename_queries(pl.concat(found), new_ids) if found else None
        rows = rename_queries(pl.scan_parquet(self._postponed), new_ids)
        sizes = rows.group_by("query_id", maintain_order=True).len().collect()
        part = (sizes["len"].cum_sum() // _ROWS_A_BATCH).alias("part")
        for _, queries in sizes.with_columns(part).group_by("part", maintain_order=True):
            chosen = queries["query_id"].to_list()
            is_chosen = pl.col("query_id").is_in(chosen)
            yield rows.filter(is_chosen).collect(), None if mentions is None else mentions.filter(is_chosen)

    def give_notices(self, *, deduplication_asked: bool) -> None:
        """Give the notices about the outputs. If `deduplication_asked`, do not say that results without ids were deduplicated."""
        found = [one for batch in self._batches for one in batch.reissued.values()]
        reissued = len(found) if self.deduplicated else 0
        if self.deduplicated > reissued and not deduplication_asked:
            notice(
                "results_without_ids",
                f"the results of {count_of(self.deduplicated - reissued, 'query', 'queries')} lack ids: deduplication "
                f"identified their documents; {spell('deduplicate', None)} names each by its canonical address",
            )
        if found:
            remedy = (
                f"deduplication identified the documents instead; {spell('deduplicate', None)} keeps the ids"
                if reissued
                else f"each id counts as one document; pass {spell('deduplicate')} to identify the documents"
            )
            notice(
                "ids_of_several_documents",
                f"in {count_of(len(found), 'query', 'queries')} an id stands for different documents (first: {found[0]}): {remedy}",
            )
        if one_time := sum(batch.one_time for batch in self._batches):
            notice(
                "one_time_addresses",
                f"{count_of(one_time, 'document')} have addresses that are new for each call: a page that is found again gets "
                "another id, so its duplicates and judgments are missed. Follow these addresses soon after the run, and log "
                "where they redirect.",
            )
        if PLACEHOLDER in self._files.run.name and [*self.runs] == [DEFAULT_TAG]:
            notice(
                "logs_without_system",
                f"the logs name no system, so all of them are one run: {self.runs[DEFAULT_TAG]}. For a run of each system, name "
                "the systems: old=FILE new=FILE, in Python {'old': path, 'new': path}.",
            )
        writing.warn_of_escaped_ids(self._escaped, self._files.run)


def _make_file_name(name: str) -> str:
    """Replace the characters in a system's name that file names may not contain."""
    safe = "".join(sign if sign.isalnum() or sign in "-_.+" else "_" for sign in name)[:_MAX_NAME]
    return safe if safe.strip(".") else "_" * len(safe)  # . and .. are folders
