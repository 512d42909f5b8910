"""One experiment: qrels, systems and options are given once, and the analyses share what they read and count."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import polars as pl

from goodgain.analysis.reporting.curves import Points, check_curve_options, check_points, parse_curve_measures
from goodgain.analysis.reporting.spend_totals import check_spend_options, tabulate_spend
from goodgain.counting.coverage import measure_coverage
from goodgain.counting.run_opening import check_systems, stack_systems
from goodgain.errors import InputError, collect_notices
from goodgain.experiments.analyses import GROUPS, OF_OPENED, Analyses, SystemScores
from goodgain.experiments.shared_arguments import OF_REPORTS, ExperimentOptions, describe_options, takes_options
from goodgain.experiments.shared_steps import Heard, KeptResults, Opened, find_name, repeat
from goodgain.formats.query_tables import read_costs, read_outcomes
from goodgain.measures.good_gain import NumIter
from goodgain.measures.ledger_values import check_along_iterations, tabulate_ledger
from goodgain.measures.names import Measures, parse_measure, parse_measures
from goodgain.measures.parameters import check_rel
from goodgain.measures.scores import Scores
from goodgain.measures.thresholds import explains_values, find_thresholds, warn_of_rel
from goodgain.options import DOCUMENTS, READING, check_choice

if TYPE_CHECKING:
    from goodgain.analysis.comparing.comparison import Comparison
    from goodgain.analysis.comparing.required_lines import Requirement
    from goodgain.analysis.comparing.requirements import Outcome
    from goodgain.analysis.comparing.use_of_documents import Funnel
    from goodgain.analysis.explaining.explanation import Explanation


class Experiment:
    """Qrels and systems with options for all analyses. The analyses share what they read and count.

    An experiment does not change. `with_` returns another experiment, which shares results with this experiment. Each notice
    is given once, and is in the `notes` of every result that it concerns. Memory holds runs (not large files), the first
    occurrences in each run of up to 2,000,000 rows (about its size), the last 64 results, and up to 64 MB of bootstrap samples.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        systems: maps names to runs (inputs of `read_run`), or to lists of several runs of a system (replicates).
        {options}

    Raises:
        InputError: an option is unknown, or there is no system.

    >>> folder = "qrels_examples/redundancy/"
    >>> systems = {name: f"{folder}{name}.run" for name in ("repeating", "lean")}
    >>> x = Experiment(folder + "qrels.txt", systems)
    >>> x.evaluate("CG@2 SRR@2")["lean", "SRR@2"]
    0.0
    >>> x.compare("CG@2 SRR@2", baseline="repeating").pairs.select("measure", "verdict").rows()
    [('CG@2', 'equal'), ('SRR@2', 'unclear')]
    """

    @takes_options
    def __init__(self, qrels: Any, systems: Mapping[str, Any], **options: Unpack[ExperimentOptions]) -> None:
        self._qrels, self._systems = qrels, check_systems(systems)
        self._kept, self._told = KeptResults(), set[str]()
        self._set_options(OF_OPENED | options)

    def _set_options(self, options: Mapping[str, Any]) -> None:
        for option in (option for group in GROUPS for option in group if option.choices):
            check_choice(option.name, options[option.name])
        self._options = dict(options)
        self.analyses = Analyses(self._qrels, self._systems, self._options, self._kept)

    @property
    def systems(self) -> list[str]:
        """The names of the systems."""
        return [*self._systems]

    @property
    def sources(self) -> tuple[Any, Mapping[str, Any]]:
        """The qrels and systems as they were given."""
        return self._qrels, self._systems

    @property
    def options(self) -> Mapping[str, Any]:
        """The value of each option, by name."""
        return self._options

    @property
    def opened(self) -> Opened:
        """The qrels and runs, after reading."""
        with self.tell():
            return self.analyses.opened

    def with_(self, **options: Unpack[ExperimentOptions]) -> Experiment:
        """Return an experiment with some options changed. Both experiments share results that do not depend on these options.

        >>> folder = "qrels_examples/redundancy/"
        >>> x = Experiment(folder + "qrels.txt", {"lean": folder + "lean.run"})
        >>> x.evaluate("NumGood@2")["NumGood@2"], x.with_(rel=3).evaluate("NumGood@2")["NumGood@2"]
        (2.5, 1.5)
        """
        if unknown := [name for name in options if name not in self._options]:
            raise InputError(f"{unknown[0]}= is not an option of an experiment; options are {', '.join(self._options)}")
        made = Experiment(self._qrels, self._systems)
        made._kept, made._told = self._kept, set(self._told)
        made._set_options(self._options | options)
        return made

    def only(self, queries: Any) -> Experiment:
        """Return an experiment on the given queries only. `queries` is a list of ids, a file or a frame, as for the option `only`.

        >>> folder = "qrels_examples/redundancy/"
        >>> x = Experiment(folder + "qrels.txt", {"lean": folder + "lean.run"})
        >>> x.evaluate("CG")["CG"], x.only(["q1"]).evaluate("CG")["CG"]
        (7.5, 10.0)
        """
        return self.with_(only=queries)

    def name_by_files(self) -> Experiment:
        """Return a copy in which each system has the name of its file, or its tag if the system has no file name.

        Return `self` if a system has several runs, if no name is found for a system, or if two systems get the same name.
        """
        opened = self.opened
        runs = [[opened.runs[run] for run in of] for of in opened.names.values()]
        named = {name: of for of in runs if len(of) == 1 and (name := find_name(of[0]))}
        if len(named) < len(runs):
            return self
        read = [option.name for group in (READING, DOCUMENTS) for option in group]
        own = {name: value for name, value in self._options.items() if name not in read}
        return Experiment(opened.qrels, named, **cast(ExperimentOptions, own))

    def __repr__(self) -> str:
        changed = [f"{name}={value!r}" for name, value in self._options.items() if value is not OF_OPENED[name]]
        return f"Experiment({', '.join([*self._systems, *changed])})"

    def __reduce__(self) -> tuple[Any, ...]:  # a copy keeps no results
        return partial(Experiment, **cast(ExperimentOptions, self._options)), (self._qrels, self._systems)

    def evaluate(self, measures: Measures, *, groups: Any = None, interval: bool = False) -> Scores | SystemScores:
        """Score the systems on any measures.

        Args:
            measures: names, measure objects or both.
            groups: a file or a frame of query_id and group, for values over the queries of each group.
            interval: also compute the bootstrap interval of each mean, for `Scores.intervals`.

        Returns:
            `Scores` for one system, as from `gg.evaluate`. `SystemScores` for several systems: `values` (system, replicate,
            query_id, measure, value), `systems` (the `Scores` by name), and means such as `found["new", "nCG@3"]`.
        """
        scores = self.score_each(measures, groups=groups, interval=interval)
        first = next(iter(scores.values()))
        return first if len(scores) == 1 else SystemScores(scores, first.notes)

    def score_each(self, measures: Measures, *, groups: Any = None, interval: bool = False) -> dict[str, Scores]:
        """Return the `Scores` of each system, by name. The arguments are those of `evaluate`."""
        asked = parse_measures(measures, rel=self._options["rel"])
        with self.tell() as heard:
            found = self.analyses.evaluate(asked, groups, interval=interval)
            self.analyses.warn_of_empty_queries(asked)
        return {name: replace(of, notes=heard.texts) for name, of in found.items()}

    def compare(
        self,
        measures: Measures,
        *,
        baseline: str | None = None,
        against: str | None = None,
        iterations: int | Sequence[int] | None = None,
        groups: Any = None,
        outcomes: Any = None,
        baseline_file: str | os.PathLike[str] | None = None,
        require: Iterable[str | Requirement] = (),
        pass_k: int | None = None,
        detect: float | None = None,
    ) -> Comparison:
        """Compare the systems on any measures, with tests. Arguments, result and errors are those of `gg.compare`."""
        from goodgain.experiments.comparisons import compare_kept

        own: dict[str, Any] = {
            "baseline": baseline, "against": against, "iterations": iterations, "groups": groups, "outcomes": outcomes,
            "baseline_file": baseline_file, "require": [*require] or None, "pass_k": pass_k, "detect": detect,
        }  # fmt: skip
        with self.tell() as heard:
            found = compare_kept(self.analyses, measures, own)
        lines = (re.sub("\n +", "; ", text.replace("\n ", "", 1)) for text in heard.texts)
        others = tuple(dict.fromkeys(line for line in lines if line not in found.warnings))
        return replace(found, warnings_of_runs=others)

    def curve(
        self,
        measures: Measures,
        *,
        upto: int | None = None,
        over: str | None = None,
        costs: Any = None,
        at: Sequence[float] | None = None,
    ) -> pl.DataFrame:
        """Return the mean of each measure at every iteration, or with `over` at amounts spent, as `gg.curve` does."""
        own: dict[str, Any] = {"upto": upto, "over": over, "costs": costs, "at": at}
        asked = parse_curve_measures(measures, self._options["rel"])
        check_curve_options(self._systems, **own)
        self.analyses.check_settings(0)
        with self.tell():
            self.analyses.warn_of_labels(asked)
            self.analyses.count(find_thresholds(asked))
            return self.analyses.curve(asked, **own)

    def ledger(self, measures: Measures | None = None) -> pl.DataFrame:
        """Return the rows of `gg.ledger` for every run, with the name of the run in the added column `system`."""
        with self.tell():
            rel = self._options["rel"]
            found = [] if measures is None else parse_measures(measures, complete=False, rel=rel)
            named = [*parse_measures("CG", rel=rel), *found]
            base, *asked = (check_along_iterations(one, "the ledger") for one in named)
            self.analyses.warn_of_labels([base, *asked])
            counts = self.analyses.count(find_thresholds([base, *asked]))
            return stack_systems({name: tabulate_ledger(of, base.rel, asked) for name, of in counts.items()})

    def coverage(self) -> pl.DataFrame:
        """Return the judged share of the unique results of each run, overall and by iteration, as `gg.coverage` does."""
        with self.tell():
            counts = self.analyses.count_runs(find_thresholds([]), iterates=False)
            return stack_systems({name: measure_coverage(of).tabulate() for name, of in counts.items()})

    def pr_curve(self, *, points: Points = "eleven", per_query: bool = False) -> pl.DataFrame:
        """Return interpolated precision over recall for each run, as `gg.pr_curve` does. If `rel` is None, 1 is used."""
        check_points(points)
        rel = 1 if self._options["rel"] is None else self._options["rel"]
        check_rel(rel)
        with self.tell():
            warn_of_rel(self.analyses.opened.qrels.frame, rel)
            found = self.analyses.draw_recalls(rel, points, per_query=per_query)
            hits = self.analyses.find_hits(rel)
            self.analyses.warn_of_coverage({name: of.tabulate() for name, (_, of) in hits.items()})
        return found

    def explain(
        self,
        base: str,
        new: str,
        measures: Measures = "CG",
        *,
        results: Any = None,
        uses: Any = None,
        outcomes: Any = None,
        top: int = 5,
    ) -> Explanation:
        """Explain why the system `new` is better or worse than `base`, query by query, as `gg.explain` does."""
        if unknown := [name for name in (base, new) if name not in self._systems]:
            raise InputError(f"{unknown[0]!r} is not one of the systems; they are {', '.join(self._systems)}")
        from goodgain.experiments.comparisons import explain_pair

        with self.tell():
            tables = {"results": results, "uses": uses, "outcomes": outcomes}
            return explain_pair(self.analyses, [base, new], measures, top=top, **tables)

    def spend(
        self, costs: Any = None, *, outcomes: Any = None, price_per_search: float | None = None, per_query: bool = False
    ) -> pl.DataFrame:
        """Return quantities such as CostPerGood and SearchesFor95 of each system, as `gg.spend` does."""
        check_spend_options(self._systems, price_per_search, costs, outcomes)
        settings = self.analyses.check_settings(0)
        gain = check_along_iterations(parse_measure("CG", rel=self._options["rel"]), "spend")
        with self.tell():
            self.analyses.warn_of_labels([gain])
            self.analyses.count([gain.rel])
            return tabulate_spend(
                self.analyses.join([gain]),
                gain.rel,
                settings,
                costs=None if costs is None else read_costs(costs),
                outcomes=None if outcomes is None else read_outcomes(outcomes),
                price=price_per_search,
                per_query=per_query,
            )

    def funnel(self, uses: Any) -> Funnel:
        """Count the documents that each query returned, opened and cited, as `gg.funnel` does."""
        from goodgain.analysis.comparing.use_of_documents import funnel

        with self.tell():
            rel = self._options["rel"]
            return funnel(self.analyses.opened.qrels, uses, 2 if rel is None else rel, urls=self._options["urls"])

    def check(
        self, lines: str | Iterable[str], *, baseline: str | None = None, family: str | None = None
    ) -> list[Outcome]:
        """Raise `AssertionError` if a requirement such as `SRR@3<=0.3` does not hold, as `gg.check` does.

        Args:
            lines: one or several requirements: `SRR@3<=0.3`, `nCG@6>=baseline significant`.
            baseline: the system that `baseline` stands for in requirements; it is not checked itself. None: the system called
                `baseline`, else the first. If no requirement names the baseline, all systems are checked.
            family: `holm` corrects the p-values of all tested requirements together.
        """
        from goodgain.analysis.comparing.required_lines import find_baseline, parse_requirement
        from goodgain.analysis.comparing.requirements import check_requirements
        from goodgain.analysis.reporting.gate_reports import check

        listed = [lines] if isinstance(lines, str) else [*lines]
        parsed = [parse_requirement(line, rel=self._options["rel"]) for line in listed]
        measures = [line.measure for line in parsed if not isinstance(line.measure, str)] or [NumIter]
        if len(self._systems) > 1:
            baseline = baseline or find_baseline(parsed, [*self._systems])
            comparison = self.compare(measures, baseline=baseline, require=listed)
            return check(comparison, listed, family=family)
        scores: Any = self.evaluate(measures)
        outcomes = check_requirements(scores, listed, alpha=self._options["alpha"], family=family)
        if failed := [str(one) for one in outcomes if not one.holds]:
            raise AssertionError("\n".join(failed))
        return outcomes

    def report(
        self,
        path: str | os.PathLike[str],
        measures: Measures = OF_REPORTS,
        *,
        results: Any = None,
        queries: Any = None,
        uses: Any = None,
        groups: Any = None,
        costs: Any = None,
        details: int = 200,
        format: str | None = None,  # noqa: A002  # as in gg.report
        spreadsheet: bool = False,
    ) -> Path:
        """Write a report on all systems. Arguments, result and errors are those of `gg.report`."""
        from goodgain.experiments.reports import write_report  # it loads templates and what reads logs

        beside = {"results": results, "queries": queries, "uses": uses, "groups": groups, "costs": costs}
        return write_report(self, path, measures, details=details, format=format, spreadsheet=spreadsheet, **beside)

    @contextmanager
    def tell(self) -> Iterator[Heard]:
        """Collect the notices of a `with` block. At the end, give the notices that this experiment has not given before."""
        heard = Heard()
        try:
            with collect_notices(heard.append):
                yield heard
        finally:
            new = {str(one): one for one in heard if str(one) not in self._told}
            self._told.update(heard.texts)
            repeat(sorted(new.values(), key=explains_values, reverse=True))


Experiment.__doc__ = describe_options(Experiment.__doc__ or "", OF_OPENED)
