"""Scores systems: what is opened, counted and scored once, and the analyses that need no more than that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Self, Unpack, cast

import ir_measures
import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.counting.coverage import (
    measure_coverage,
    warn_of_cutoffs,
    warn_of_first_iterations,
    warn_of_low_coverage,
)
from goodgain.counting.ledger import Counts
from goodgain.counting.run_opening import check_systems, list_runs, stack_systems
from goodgain.errors import (
    REASONS,
    GoodgainNotice,
    InputError,
    collect_notices,
    give,
    join_notices,
    notices_about,
    without_notices,
)
from goodgain.files.tables import sort_ids
from goodgain.formats.no_labels import NO_LABELS
from goodgain.formats.query_tables import read_groups
from goodgain.measures.bounds import find_largest_label
from goodgain.measures.changed_scores import average_scores, leave_out_absent, leave_out_no_good
from goodgain.measures.declaration import IterationMeasure
from goodgain.measures.ledger_values import check_along_iterations, tabulate_ledger
from goodgain.measures.names import Measures, add_counts, parse_measures
from goodgain.measures.scores import Scores
from goodgain.measures.thresholds import find_queries_without_good, find_thresholds, warn_of_labels
from goodgain.measures.without_labels import (
    NEXT_STEP,
    list_measures_without_labels,
    refuse_without_labels,
    write_next_step,
)
from goodgain.options import CORRECTIONS, DOCUMENTS, READING, SCORING, STATISTICS, TABLES, Option, check_choice, spell
from goodgain.scoring.kept import KeptResults, KeyedBy, by_content
from goodgain.scoring.opened import Opened, Sources, open_inputs, rename_systems
from goodgain.scoring.shared_arguments import ExperimentOptions, takes_options
from goodgain.scoring.special_values import warn_of_empty_queries, warn_of_ends
from goodgain.scoring.steps import TablesOfRuns, count_runs, list_table_options, read_tables, score_runs
from goodgain.scoring.system_scores import SystemScores, add_groups, add_intervals, sign_queries_of_means
from goodgain.statistics.statistical_tests import KeptDraws, Settings, check_settings

#: The options of an experiment, and the default value of each.
OPTIONS_OF_EXPERIMENT = (*READING, *DOCUMENTS, *SCORING, *TABLES, *STATISTICS, *CORRECTIONS)
DEFAULTS = {option.name: option.default for option in OPTIONS_OF_EXPERIMENT}
#: The kinds of notices for analyses that use the iterations of a run.
OF_ITERATIONS = ("no_iterations", "one_time_addresses")
#: One empty dict: the results of steps are kept by the identity of tables.
_NO_TABLES: TablesOfRuns = {}
#: The results of the experiments whose notices are collected.
_TELLING: ContextVar[tuple[KeptResults, ...]] = ContextVar("_TELLING", default=())
_NO_COUNTS: dict[str, dict[float, Counts]] = {}


class Scoring:
    """Qrels and systems with options. Runs are opened, counted and scored once. `Experiment` adds further analyses."""

    @takes_options
    def __init__(self, qrels: Any, systems: Mapping[str, Any], **options: Unpack[ExperimentOptions]) -> None:
        if qrels is None:  # a failed load must not become a report without labels
            raise InputError(
                "qrels is None. Give the judgments or, if there are none, goodgain.NO_LABELS; goodgain.compare_unlabelled "
                "compares runs without labels."
            )
        self._sources = Sources(qrels, check_systems(systems))
        self._set_options(DEFAULTS | options)
        self._texts_given = set[str]()
        self._new_names: dict[str, str] | None = None  # system -> its name, if the systems were renamed after reading
        self.kept = KeptResults()
        self.draw = KeptDraws()

    def _set_options(self, options: Mapping[str, Any]) -> None:
        for option in OPTIONS_OF_EXPERIMENT:
            if option.choices:
                check_choice(option.name, options[option.name])
        self._options = dict(options)

    # What was given

    @property
    def systems(self) -> list[str]:
        """The names of the systems."""
        if self._new_names is None:
            return [*self._sources.systems]
        return [*self._new_names.values()]

    @property
    def sources(self) -> tuple[Any, Mapping[str, Any]]:
        """The qrels and systems as they were given."""
        return self._sources.qrels, self._sources.systems

    @property
    def has_labels(self) -> bool:
        return self._sources.qrels is not NO_LABELS

    @property
    def options(self) -> Mapping[str, Any]:
        """The value of each option, by name."""
        return self._options

    def select_options(self, *groups: Sequence[Option]) -> dict[str, Any]:
        return {option.name: self._options[option.name] for group in groups for option in group}

    def check_settings(self, least: int = 1) -> Settings:
        """Check and return the options of the tests. `least` is the smallest allowed number of resamples."""
        return check_settings(**self.select_options(STATISTICS), least=least)._replace(draw=self.draw)

    # The analyses

    @checks_kinds
    def evaluate(self, measures: Measures, *, groups: Any = None, interval: bool = False) -> SystemScores:
        """Score the systems on any measures.

        Args:
            measures: names, measure objects or both.
            groups: a file or a frame of query_id and group, for values over the queries of each group.
            interval: also compute the interval of each mean, for `Scores.intervals`.

        Returns:
            `SystemScores`: `values` (system, replicate, query_id, measure, value), `systems` (the `Scores` by name), and means
            such as `scores["new", "nCG@3"]`. If there is one system, `scores["nCG@3"]` is its mean too, and attributes such as
            `per_query` are those of its `Scores`.
        """
        scores = self.score_systems(measures, groups=groups, interval=interval)
        first = next(iter(scores.values()))
        return SystemScores(scores, first.notes)

    def score_systems(
        self, measures: Measures | None, *, groups: Any = None, interval: bool = False
    ) -> dict[str, Scores]:
        """Return the `Scores` of each system, by name. The arguments are those of `evaluate`."""
        parsed = parse_measures(self.choose_measures(measures), rel=self._options["rel"])
        with self.tell() as notices:
            self._check_bounds()
            self.check_labels(parsed, provider=self._options["provider"])
            with notices_for(parsed):
                runs = self.score_runs(self._add_counts(parsed))
            self.warn_of_scores(runs, parsed)

            scores = self._average_runs(runs, parsed)
            if groups is not None:
                members = read_groups(groups, self.opened.qrels.query_ids)
                scores = {name: add_groups(system, parsed, members) for name, system in scores.items()}
            if interval:
                settings, label = self.check_settings(), find_largest_label(self.opened.qrels.frame)
                scores = {
                    name: add_intervals(system, parsed, settings, largest_label=label)
                    for name, system in scores.items()
                }
            self.warn_of_empty_queries(runs, parsed)
        notes = tuple(map(str, notices))
        return {name: replace(system, notes=notes) for name, system in scores.items()}

    @checks_kinds
    def ledger(self, measures: Measures | None = None) -> pl.DataFrame:
        """Return the rows of `gg.ledger` for every run, with the name of the run in the added column `system`."""
        return self.count_ledgers(measures)

    def count_ledgers(self, measures: Measures | None) -> pl.DataFrame:
        """Return the ledgers of all runs, below each other. CG gives the threshold of the columns GR and G."""
        rel = self._options["rel"]
        with self.tell():
            self.refuse_without_labels("the ledger")
            parsed = [] if measures is None else parse_measures(measures, complete=False, rel=rel)
            gain, *columns = [
                check_along_iterations(measure, "the ledger") for measure in (*parse_measures("CG", rel=rel), *parsed)
            ]
            self.check_labels([gain, *columns])
            counts = self.count_runs(find_thresholds([gain, *columns]))
            self.warn_of_counts(counts)
            ledgers = {name: tabulate_ledger(of_run, gain.rel, columns) for name, of_run in counts.items()}
            return stack_systems({name: sort_ids(ledger) for name, ledger in ledgers.items()})

    def coverage(self) -> pl.DataFrame:
        """Return the judged share of the unique results of each run, overall and by iteration, as `gg.coverage` does."""
        self.refuse_without_labels("coverage")
        with self.tell(), without_notices(*OF_ITERATIONS):
            counts = self.count_runs(find_thresholds([]))
        return stack_systems({name: measure_coverage(of_run).tabulate() for name, of_run in counts.items()})

    # The steps that analyses share. The results of equal arguments are kept.

    @property
    def opened(self) -> Opened:
        """The qrels and runs, after reading."""
        with self.tell():
            return self._open()

    def _open(self) -> Opened:
        opened = self.kept.call(open_inputs, self._sources, **self.select_options(READING, DOCUMENTS))
        if self._new_names is None:
            return opened
        return self.kept.call(rename_systems, opened, KeyedBy(self._new_names, [*self._new_names.items()]))

    def count_runs(self, rels: Sequence[float]) -> dict[str, dict[float, Counts]]:
        """Return the counts of each run at each threshold."""
        return self.kept.call(count_runs, self.opened, rels)

    def score_runs(self, measures: Sequence[ir_measures.Measure]) -> dict[str, Scores]:
        """Return the scores of each run."""
        options = {name: self._options[name] for name in ("rel", "order", "provider", "bounds")}
        return self.kept.call(score_runs, self.opened, measures, self.read_tables(measures), **options)

    def read_tables(self, measures: Sequence[ir_measures.Measure]) -> TablesOfRuns:
        """Return the tables that the measures need beside each run: spends and search strings."""
        sources = {name: self._options[name] for name in list_table_options(measures)}
        tables = {name: by_content(source) for name, source in sources.items() if source is not None}
        if not tables:
            return _NO_TABLES
        counts = self.count_runs(find_thresholds(measures)) if "costs" in tables else _NO_COUNTS
        return self.kept.call(read_tables, self.opened, measures, counts, **tables)

    # Parts of evaluate

    def _check_bounds(self) -> None:
        if self._options["bounds"]:
            self.refuse_without_labels(spell("bounds", True))
        if self._options["bounds"] and self.opened.has_replicates:
            bounds = spell("bounds", True)
            raise InputError(f"{bounds} needs one run of each system. Leave out {bounds}, or give one run each.")

    def _add_counts(self, measures: Sequence[ir_measures.Measure]) -> list[ir_measures.Measure]:
        """Add counts such as NumIter, so that `compare` can use the scores, unless the runs may lack iterations."""
        is_unsure = any(run.likely_iteration is not None for run in self.opened.runs.values())
        return list(measures) if is_unsure else add_counts(measures)

    def _average_runs(self, runs: Mapping[str, Scores], measures: Sequence[ir_measures.Measure]) -> dict[str, Scores]:
        """Return the scores of each system: the means over its runs, query by query."""
        missing = self._options["missing"]
        scores = {}
        for system, names in self.opened.names.items():
            of_runs = [runs[name].select(measures) for name in names]
            averaged = average_scores(of_runs, measures, missing=missing)
            if missing == "absent":
                averaged = sign_queries_of_means(averaged, measures, self.opened.qrels.judgments)
            if self._options["no_good"] == "absent":
                averaged = leave_out_no_good(averaged, self.find_queries_without_good(measures), measures)
            scores[system] = averaged
        return scores

    # Labels

    def choose_measures(self, measures: Measures | None) -> Measures:
        """Return the measures. Without labels, None stands for all measures that need no label."""
        if measures is None and not self.has_labels:
            tables = [option.name for option in TABLES if self._options[option.name] is not None]
            return list_measures_without_labels(tables)
        return [] if measures is None else measures

    @property
    def next_step(self) -> str:
        """Without labels, the command or call that lists what to judge; empty text with labels."""
        if self.has_labels:
            return ""
        runs = [run for system in self._sources.systems.values() for run in list_runs(system)]
        return write_next_step(runs, len(self.opened.qrels.query_ids))

    def refuse_without_labels(self, analysis: str) -> None:
        """Raise `InputError` if there are no labels. `analysis` names what needs them."""
        if not self.has_labels:
            raise InputError(f"{analysis} needs relevance labels, and there are none. {NEXT_STEP}")

    def find_queries_without_good(self, measures: Sequence[ir_measures.Measure]) -> dict[str, pl.Series]:
        """Map measures to the judged queries without a good document, by the threshold of the measure."""
        qrels = self.opened.qrels
        return find_queries_without_good(measures, qrels.frame, qrels.query_ids)

    # Notices

    def check_labels(self, measures: Sequence[ir_measures.Measure], provider: str | None = None) -> None:
        """Give notices if the labels do not fit the measures. Raise `MeasureError` if measures need labels that do not exist."""
        if not self.has_labels:
            refuse_without_labels(measures)
            return
        warn_of_labels(self.opened.qrels.frame, measures, rel=self._options["rel"], provider=provider)

    def warn_of_scores(self, scores: Mapping[str, Scores], measures: Sequence[ir_measures.Measure]) -> None:
        """Give notices on low coverage, on the iterations of all runs, and on special values of a measure (`warn_of_ends`)."""
        self.warn_of_coverage({name: of_run.coverage for name, of_run in scores.items()})
        warn_of_first_iterations({name: of_run.first_iteration for name, of_run in scores.items()})
        with_iterations = [of_run.coverage for of_run in scores.values() if not of_run.lacks_iterations]
        self.warn_of_cutoffs(with_iterations, measures)
        opened, missing = self.opened, self._options["missing"]  # each use of `opened` looks it up by all systems
        without_good = self.find_queries_without_good(measures) if self._options["no_good"] == "absent" else {}
        for name, of_run in scores.items():
            with notices_about(opened.find_subject(name)):
                warn_of_ends(of_run, measures, missing=missing, without_good=without_good)

    def warn_of_cutoffs(self, coverages: Sequence[pl.DataFrame], measures: Sequence[ir_measures.Measure]) -> None:
        """Give a notice on cutoffs that were probably meant as ranks. `coverages` are those of the runs with iterations."""
        cutoffs = {
            str(measure): measure.cutoff
            for measure in measures
            if isinstance(measure, IterationMeasure) and measure.cutoff
        }
        warn_of_cutoffs(cutoffs, coverages)

    def warn_of_empty_queries(self, scores: Mapping[str, Scores], measures: Sequence[ir_measures.Measure]) -> None:
        """Give notices on queries without results, which count as 0, the best value of shares such as SRR."""
        opened = self.opened
        for name, of_run in scores.items():
            counted = leave_out_absent(of_run, measures) if self._options["missing"] == "absent" else of_run
            with notices_about(opened.find_subject(name)):
                warn_of_empty_queries(counted.select(measures), measures)

    def warn_of_counts(
        self, counts: Mapping[str, Mapping[float, Counts]], measures: Sequence[ir_measures.Measure] = ()
    ) -> None:
        """Give a notice if coverage is low, or if a cutoff was probably meant as a rank. `counts` are what `count_runs` returns."""
        runs = self.opened.runs
        coverages = {name: measure_coverage(of_run) for name, of_run in counts.items()}
        tables = {name: coverage.tabulate() for name, coverage in coverages.items()}
        self.warn_of_coverage(tables)
        with_iterations = [tables[name] for name, of in coverages.items() if not of.lacks_iterations(runs[name])]
        self.warn_of_cutoffs(with_iterations, measures)

    def warn_of_coverage(self, coverages: Mapping[str, pl.DataFrame]) -> None:
        """Give a notice on each run whose coverage is low. Without labels there is none."""
        if not self.has_labels:
            return
        opened = self.opened
        for name, coverage in coverages.items():
            with notices_about(opened.find_subject(name)):
                warn_of_low_coverage(coverage, labels=opened.qrels.labels)

    @contextmanager
    def tell(self) -> Iterator[list[GoodgainNotice]]:
        """Collect the notices of a `with` block. At its end, list each text once, and give those that were not given before.

        A block inside another passes all of its notices to the outer block.
        """
        told: list[GoodgainNotice] = []
        notices: list[GoodgainNotice] = []
        is_inner = self.kept in _TELLING.get()
        token = _TELLING.set((*_TELLING.get(), self.kept))
        try:
            with collect_notices(notices.append):
                yield told
        finally:
            _TELLING.reset(token)
            reasons_first = sorted(join_notices(notices), key=lambda notice: notice.kind not in REASONS)
            joined = {str(notice): notice for notice in reasons_first}
            told += joined.values()
            for text, notice in joined.items():
                if is_inner or text not in self._texts_given:
                    give(notice)
            if not is_inner:
                self._texts_given |= joined.keys()

    # Other experiments

    def with_(self, **options: Unpack[ExperimentOptions]) -> Self:
        """Return an experiment with some options changed. Both experiments share results that do not depend on these options.

        >>> import goodgain as gg
        >>> folder = "qrels_examples/redundancy/"
        >>> x = gg.Experiment(folder + "qrels.txt", {"lean": folder + "lean.run"})
        >>> x.evaluate("NumGood@2")["NumGood@2"], x.with_(rel=3).evaluate("NumGood@2")["NumGood@2"]
        (2.5, 1.5)
        """
        if unknown := [name for name in options if name not in self._options]:
            raise InputError(f"{unknown[0]}= is not an option of an experiment; options are {', '.join(self._options)}")
        changed = self._copy()
        changed._set_options(self._options | options)
        return changed

    def _copy(self) -> Self:
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__
        copied._texts_given = set(self._texts_given)
        return copied

    def _rename(self, names: dict[str, str]) -> Self:
        """Return the same experiment with other names of the systems. Each system must have a single run."""
        renamed = self._copy()
        renamed._new_names = names
        return renamed

    @checks_kinds
    def only(self, queries: Any) -> Self:
        """Return an experiment on the given queries only. `queries` is a list of ids, a file or a frame, as for the option `only`.

        >>> import goodgain as gg
        >>> folder = "qrels_examples/redundancy/"
        >>> x = gg.Experiment(folder + "qrels.txt", {"lean": folder + "lean.run"})
        >>> x.evaluate("CG")["CG"], x.only(["q1"]).evaluate("CG")["CG"]
        (7.5, 10.0)
        """
        return self.with_(only=queries)

    def __repr__(self) -> str:
        changed = [f"{name}={value!r}" for name, value in self._options.items() if value is not DEFAULTS[name]]
        return f"{type(self).__name__}({', '.join([*self.systems, *changed])})"

    def __reduce__(self) -> tuple[Any, ...]:  # a copy keeps no results
        return partial(type(self), **cast(ExperimentOptions, self._options)), self.sources


def notices_for(measures: Sequence[ir_measures.Measure]) -> AbstractContextManager[None]:
    """Leave out notices on iterations inside a `with` block, unless one of the measures uses iterations."""
    has_iterations = any(isinstance(measure, IterationMeasure) for measure in measures)
    return nullcontext() if has_iterations else without_notices(*OF_ITERATIONS)
