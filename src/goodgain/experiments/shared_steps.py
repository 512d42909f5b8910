"""The steps that analyses of one experiment share: opened runs, scores, counts and first occurrences.

Each step is computed once. The options that a step depends on are the key of the cached result.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import ir_measures
import polars as pl

from goodgain.analysis.comparing.statistical_tests import KeptDraws
from goodgain.analysis.explaining.causes import Parts, Searched, find_documents
from goodgain.analysis.reporting.curves import find_hits
from goodgain.analysis.reporting.spends import find_spends
from goodgain.counting.coverage import (
    Coverage,
    measure_coverage,
    warn_of_cutoffs,
    warn_of_first_iterations,
    warn_of_low_coverage,
    warn_of_run,
)
from goodgain.counting.joined_addresses import spell_like
from goodgain.counting.ledger import Counts
from goodgain.counting.run_in_blocks import RunFile, read_whole
from goodgain.counting.run_opening import name_runs, open_systems, stack_systems
from goodgain.errors import GoodgainNotice, InputError, NoticesOfSystems, collect_notices, notice
from goodgain.evaluation import count_run, score_run
from goodgain.formats import Qrels, Run
from goodgain.formats.digest import digest_rows
from goodgain.formats.query_tables import read_costs
from goodgain.measures.declaration import IterationMeasure, SessionMeasure
from goodgain.measures.names import add_counts
from goodgain.measures.scores import Scores, leave_out_absent
from goodgain.measures.thresholds import find_thresholds, warn_of_empty_queries, warn_of_ends
from goodgain.options import DOCUMENTS, READING, SCORING, TABLES, spell

T = TypeVar("T")
#: The first occurrences of a larger run are not cached: they take as much memory as the run.
_MOST_ROWS = 2_000_000
MOST_KEPT = 64  # results in the cache of an experiment


class KeptResults:
    """A least-recently-used cache of at most 64 results. The notices of a result are given again with each use."""

    def __init__(self) -> None:
        self._found: dict[Any, tuple[Any, list[GoodgainNotice]]] = {}  # in order of use
        self.draw = KeptDraws()

    def keep(self, key: Any, make: Callable[[], T]) -> T:
        """Return the cached result for `key`. If the cache has none, compute the result with `make` and cache it."""
        found = self._found.pop(key, None)
        if found is None:
            heard: list[GoodgainNotice] = []
            try:
                with collect_notices(heard.append):
                    found = make(), heard
            finally:  # an error does not hide earlier notices
                if found is None:
                    repeat(heard)
        self._found[key] = value, heard = found
        while len(self._found) > MOST_KEPT:
            del self._found[next(iter(self._found))]
        repeat(heard)
        return value


def repeat(notices: Iterable[GoodgainNotice]) -> None:
    for one in notices:
        notice(str(one), minor=one.minor)


class Heard(list[GoodgainNotice]):
    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(str, self)))


class _Same:
    """A key that compares values by identity. The key holds the value, so no other value can get the same `id`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def make_key(value: Any) -> Any:
    """Return a cache key for an option. Tables are compared by identity; numbers, text, paths, measures and lists by value.

    >>> make_key([1, "a"]) == make_key([1, "a"]), make_key({}) == make_key({}), make_key(1) == make_key(True)
    (True, False, False)
    """
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        return type(value), value
    if isinstance(value, os.PathLike):
        return os.PathLike, os.fspath(value)
    if isinstance(value, ir_measures.measures.Measure):
        return type(value), str(value)
    if isinstance(value, (list, tuple)):
        return list, tuple(map(make_key, value))
    return _Same(value)


def find_rels(parts: Iterable[Parts]) -> list[float]:
    return find_thresholds([measure for one in parts for measure in (one.measure, one.numerator)])


def find_name(run: Run | RunFile) -> str:
    """Return the name of a run's file, else the run's only tag, else empty text."""
    if run.name or isinstance(run, RunFile) or "tag" not in run.rows.columns:
        return run.name or ""
    tags = run.rows.get_column("tag").unique().drop_nulls().to_list()
    return tags[0] if len(tags) == 1 else ""


class Opened(NamedTuple):
    """The qrels and runs of an experiment. `runs` maps names to runs; `names` maps each system to the names of its runs."""

    qrels: Qrels
    runs: Mapping[str, Run | RunFile]
    names: Mapping[str, list[str]]

    def use_each(self, use: Callable[[str, Run | RunFile], T]) -> dict[str, T]:
        """Call `use(name, run)` for each run. Return the results by name. A notice from `use` contains the name of its run."""
        found = {}
        with NoticesOfSystems() as notices:
            for name, run in self.runs.items():
                run.warned.clear()  # each analysis has its own notes, even if another gave the same notice
                with notices.of(name):
                    found[name] = use(name, run)
        return found


class SharedSteps:
    """The steps of an experiment. Results are cached by the options that a step depends on."""

    def __init__(self, qrels: Any, systems: Mapping[str, Any], options: Mapping[str, Any], kept: KeptResults) -> None:
        self._qrels, self.systems = qrels, systems
        self.options, self._kept, self.draw = options, kept, kept.draw

    def _keep(self, name: str, groups: Sequence[Any], own: Sequence[Any], make: Callable[[], T]) -> T:
        given = [self.options[option.name] for group in groups for option in group]
        return self._kept.keep((name, make_key(given), make_key(own)), make)

    @property
    def opened(self) -> Opened:
        return self._keep("opened", [READING, DOCUMENTS], (), self._open)

    def _open(self) -> Opened:
        named, names = name_runs(self.systems)
        options = {option.name: self.options[option.name] for option in (*READING, *DOCUMENTS)}
        if isinstance(page := options["page"], Mapping):
            options["page"] = {run: size for name, size in page.items() for run in names.get(name, [name])}
        judged, opened = open_systems(self._qrels, named, **options)
        runs = {name: copy(run) for name, run in opened.items()}
        for run in runs.values():  # notices given earlier about the user's run do not count here
            object.__setattr__(run, "warned", set())
            if isinstance(run, Run) and isinstance(run.frame, pl.DataFrame) and run.frame.height <= _MOST_ROWS:
                run.firsts = {}
        return Opened(judged, runs, names)

    def score_runs(
        self, asked: Sequence[ir_measures.Measure], needed: Sequence[ir_measures.Measure] | None = None
    ) -> dict[str, Scores]:
        """Score each run on the measures in `needed`.

        The default is the measures in `asked` and counts such as NumIter, or only `asked` if counts would cause a notice.
        """
        opened = self.opened
        is_unsure = any(run.likely_iteration is not None for run in opened.runs.values())
        needed = needed or (list(asked) if is_unsure else add_counts(asked))

        def make() -> dict[str, Scores]:
            options = {name: self.options[name] for name in ("rel", "order", "provider", "bounds")}
            unasked = [measure for measure in needed if measure not in asked]
            tables = self._read_tables([one for one in asked if isinstance(one, SessionMeasure)])
            digests = {option: digest_rows(stack_systems(of).fill_null("")) for option, of in tables.items()}

            def score(name: str, run: Run | RunFile) -> Scores:
                own = {option: of[name] for option, of in tables.items()}
                found = score_run(opened.qrels, run, needed, **options, low=False, unasked=unasked, tables=own)
                return replace(found, signature=found.signature | digests)

            return opened.use_each(score)

        return self._keep("scores", [READING, DOCUMENTS, SCORING, TABLES], [asked, needed], make)

    def _read_tables(self, measures: Sequence[SessionMeasure]) -> dict[str, dict[str, pl.DataFrame]]:
        opened, tables = self.opened, {}
        # A single run has no name in a call, but may have the name of a file.
        names = {name or run.name or "": name for name, run in opened.runs.items()}
        for option in sorted({one.table for one in measures if one.table and self.options[one.table] is not None}):
            given = self.options[option]
            if any(len(of) > 1 for of in opened.names.values()):
                raise InputError(f"{spell(option)} needs one run of each system. Give one run each.")
            if option == "results":
                from goodgain.analysis.explaining.explanation import read_results_of  # imports the readers of logs

                query_ids = opened.qrels.query_ids.to_frame("query_id")
                read = read_results_of([*names], given).searches
                tables[option] = {names[system]: spell_like(of, query_ids) for system, of in read.items()}
            else:
                counted = self.count_runs(find_thresholds(measures))
                counts = {system: [counted[name]] for system, name in names.items()}
                spent = {one.params["over"] for one in measures if one.table == option}
                found = {over: find_spends(over, counts, read_costs(given)) for over in spent}
                tables[option] = {
                    name: pl.concat(of[system][0].rows.with_columns(over=pl.lit(over)) for over, of in found.items())
                    for system, name in names.items()
                }
        return tables

    def count_runs(self, rels: Sequence[float], *, iterates: bool = True) -> dict[str, dict[float, Counts]]:
        """Return the counts of each run at each threshold. `iterates=False` leaves out the notices on iterations."""
        opened, reading = self.opened, [READING, DOCUMENTS]
        counts = self._keep(
            "counts", reading, rels, lambda: opened.use_each(lambda _, run: count_run(opened.qrels, run, rels))
        )

        def warn(name: str, run: Run | RunFile) -> int | None:
            coverage = measure_coverage(counts[name])
            warn_of_run(opened.qrels, run, coverage, low=False, iterated=run if iterates else None)
            return coverage.find_first_iteration(run)

        warn_of_first_iterations(self._keep("notices on runs", reading, [iterates], partial(opened.use_each, warn)))
        return counts

    def warn_of_coverage(self, coverages: Mapping[str, pl.DataFrame]) -> None:
        labels = self.opened.qrels.labels
        with NoticesOfSystems() as notices:
            for name, coverage in coverages.items():
                with notices.of(name):
                    warn_of_low_coverage(coverage, labels=labels)

    def warn_of_scores(self, scores: Mapping[str, Scores], asked: Sequence[ir_measures.Measure]) -> None:
        """Give notices on low coverage, on the iterations of all runs, and on special values of a measure (`warn_of_ends`)."""
        self.warn_of_coverage({name: of.coverage for name, of in scores.items()})
        warn_of_first_iterations({name: of.first_iteration for name, of in scores.items()})
        iterating = [of.coverage for of in scores.values() if not of.lacks_iterations]
        cutoffs = {str(one): one.cutoff for one in asked if isinstance(one, IterationMeasure) and one.cutoff}
        warn_of_cutoffs(cutoffs, iterating)
        with NoticesOfSystems() as notices:
            for name, of in scores.items():
                with notices.of(name):
                    warn_of_ends(of, asked)

    def warn_of_empty_queries(self, asked: Sequence[ir_measures.Measure]) -> None:
        """Give notices on queries without results, which `evaluate` counts as 0, the best value of shares such as SRR."""
        missing = self.options["missing"]
        with NoticesOfSystems() as notices:
            for name, scores in self.score_runs(asked).items():
                with notices.of(name):
                    of_run = leave_out_absent(scores, asked) if missing == "absent" else scores
                    warn_of_empty_queries(of_run.select(asked), asked)

    def search(self, parts: Sequence[Parts], runs: Mapping[str, str]) -> dict[str, Searched]:
        """Return the documents found by one run of each system. `runs` maps names of systems to names of runs."""
        opened = self.opened
        rels = find_rels(parts)
        counts = self.count_runs(rels)

        def find(run: str) -> Searched:
            return find_documents(opened.qrels, read_whole(opened.runs[run]), counts[run])

        reading = [READING, DOCUMENTS]
        return {
            name: self._keep("found documents", reading, [run, rels], partial(find, run)) for name, run in runs.items()
        }

    def find_hits(self, rel: float) -> dict[str, tuple[pl.DataFrame, Coverage]]:
        """Return the relevant documents in the ranking of each run, and the coverage of the run."""
        opened = self.opened

        def find(_: str, run: Run | RunFile) -> tuple[pl.DataFrame, Coverage]:
            return find_hits(opened.qrels, run, rel, self.options["order"])

        return self._keep("hits", [READING, DOCUMENTS, SCORING], [rel], partial(opened.use_each, find))
