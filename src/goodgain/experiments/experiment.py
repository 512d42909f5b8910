"""One experiment: qrels, systems and options are given once, and the analyses share what they read and count."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.required_lines import Requirement, find_baseline, parse_requirement
from goodgain.analysis.comparing.requirements import Outcome, check_requirements
from goodgain.analysis.comparing.use_of_documents import Funnel, check_uses, funnel
from goodgain.analysis.explaining.explanation import Explanation, add_questions
from goodgain.analysis.reporting.curves import Points, check_curve_options, check_points, parse_curve_measures
from goodgain.analysis.reporting.drawn_frames import CurveFrame, RecallFrame
from goodgain.analysis.reporting.spend_totals import check_spend_options, tabulate_spend
from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError
from goodgain.experiments.compare_systems import compare_systems
from goodgain.experiments.curves import draw_curve, draw_recalls, find_hits_of_runs, join_counts_of_systems
from goodgain.experiments.explanations import explain_pair
from goodgain.formats.query_tables import read_costs, read_outcomes, read_queries
from goodgain.measures.good_gain import NumIter
from goodgain.measures.ledger_values import check_along_iterations
from goodgain.measures.names import Measures, parse_measure
from goodgain.measures.parameters import check_rel
from goodgain.measures.thresholds import find_thresholds, warn_of_rel
from goodgain.scoring.opened import find_name
from goodgain.scoring.scoring import DEFAULTS, Scoring
from goodgain.scoring.shared_arguments import OF_REPORTS, name_options


class Experiment(Scoring):
    """Qrels and systems with options for all analyses. The analyses share what they read and count.

    An experiment does not change. `with_` returns another experiment, which shares results with this experiment. Each notice
    is given once, and is in the `notes` of every result that it concerns. Memory holds runs (not large files), the first
    occurrences in each run of up to 2,000,000 rows (about its size), the last 64 results, and up to 64 MB of bootstrap samples.

    Qrels, runs, `only` and `documents` are read once. All other tables, such as groups, outcomes, costs and a baseline file, are
    read at each call. So the next call sees a table that was written again, or a frame that was changed in place.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        systems: maps names to runs (inputs of `read_run`), or to lists of several runs of a system (replicates).
        {options}

    Raises:
        InputError: no system is given.
        TypeError: an option is unknown.

    >>> folder = "qrels_examples/redundancy/"
    >>> systems = {name: f"{folder}{name}.run" for name in ("repeating", "lean")}
    >>> x = Experiment(folder + "qrels.txt", systems)
    >>> x.evaluate("CG@2 SRR@2")["lean", "SRR@2"]
    0.0
    >>> x.compare("CG@2 SRR@2", baseline="repeating").pairs.select("measure", "verdict").rows()
    [('CG@2', 'equal'), ('SRR@2', 'unclear')]
    """

    @checks_kinds
    def compare(
        self,
        measures: Measures | None = None,
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
        """Compare the systems on any measures, with tests. Arguments, result and errors are those of `gg.compare`.

        Without labels (`NO_LABELS`), `measures` may be left out, as in `gg.compare_unlabelled`.
        """
        arguments: dict[str, Any] = {
            "baseline": baseline, "against": against, "iterations": iterations, "groups": groups, "outcomes": outcomes,
            "baseline_file": baseline_file, "require": [*require] or None, "pass_k": pass_k, "detect": detect,
        }  # fmt: skip
        with self.tell() as notices:
            comparison = compare_systems(self, measures, arguments)
        notes = dict.fromkeys(_write_in_one_line(str(notice)) for notice in notices)
        warnings = {*map(_write_in_one_line, comparison.warnings)}
        further = tuple(note for note in notes if note not in warnings)
        return replace(comparison, warnings_of_runs=further)

    @checks_kinds
    def curve(
        self,
        measures: Measures,
        *,
        upto: int | None = None,
        over: str | None = None,
        costs: Any = None,
        at: Sequence[float] | None = None,
    ) -> CurveFrame:
        """Return the mean of each measure at every iteration, or with `over` at amounts spent, as `gg.curve` does."""
        arguments: dict[str, Any] = {"upto": upto, "over": over, "costs": costs, "at": at}
        parsed = parse_curve_measures(measures, self._options["rel"])
        check_curve_options(self._sources.systems, **arguments)
        self.check_settings(0)
        with self.tell():
            self.check_labels(parsed)
            self.warn_of_counts(self.count_runs(find_thresholds(parsed)))
            return draw_curve(self, parsed, **arguments)

    @checks_kinds
    def pr_curve(self, *, points: Points = "eleven", per_query: bool = False) -> RecallFrame:
        """Return precision over recall for each run, as `gg.pr_curve` does. If `rel` is None, 1 is used."""
        check_points(points, per_query=per_query)
        rel = 1 if self._options["rel"] is None else self._options["rel"]
        check_rel(rel)
        self.refuse_without_labels("precision over recall")
        with self.tell():
            warn_of_rel(self.opened.qrels.frame, rel)
            recalls = draw_recalls(self, rel, points, per_query=per_query)
            hits = find_hits_of_runs(self, rel)
            self.warn_of_coverage({name: coverage.tabulate() for name, (_, coverage) in hits.items()})
        return RecallFrame(recalls)

    @checks_kinds
    def explain(
        self,
        base: str,
        new: str,
        measures: Measures = "CG",
        *,
        results: Any = None,
        queries: Any = None,
        uses: Any = None,
        outcomes: Any = None,
        top: int = 5,
    ) -> Explanation:
        """Explain why the system `new` is better or worse than `base`, query by query, as `gg.explain` does."""
        if unknown := [name for name in (base, new) if name not in self.systems]:
            raise InputError(f"{unknown[0]!r} is not one of the systems; they are {', '.join(self.systems)}")
        with self.tell() as notices:
            tables = {"results": results, "uses": uses, "outcomes": outcomes}
            explained = explain_pair(self, [base, new], measures, top=top, **tables)
        explained = replace(explained, notes=tuple(map(str, notices)))
        return explained if queries is None else add_questions(explained, read_queries(queries))

    @checks_kinds
    def spend(
        self, costs: Any = None, *, outcomes: Any = None, price_per_search: float | None = None, per_query: bool = False
    ) -> pl.DataFrame:
        """Return quantities such as CostPerGood and SearchesFor95 of each system, as `gg.spend` does."""
        check_spend_options(self._sources.systems, price_per_search, costs, outcomes)
        settings = self.check_settings(0)
        gain = check_along_iterations(parse_measure("CG", rel=self._options["rel"]), "spend")
        with self.tell():
            self.check_labels([gain])
            self.warn_of_counts(self.count_runs([gain.rel]))
            return tabulate_spend(
                join_counts_of_systems(self, [gain]),
                gain.rel,
                settings,
                costs=None if costs is None else read_costs(costs),
                outcomes=None if outcomes is None else read_outcomes(outcomes),
                price=price_per_search,
                per_query=per_query,
            )

    @checks_kinds
    def funnel(self, uses: Any) -> Funnel:
        """Count the documents that each query returned, opened and cited, as `gg.funnel` does."""
        self.refuse_without_labels("the funnel")
        with self.tell():
            rel = self._options["rel"]
            check_uses(self.opened.qrels, uses)
            systems = funnel(self.opened.qrels, uses, 2 if rel is None else rel, urls=self._options["urls"])
            return systems.in_order(self.systems)

    @checks_kinds
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
        from goodgain.analysis.reporting.gate_reports import check  # it loads templates

        lines = [lines] if isinstance(lines, str) else [*lines]
        requirements = [parse_requirement(line, rel=self._options["rel"]) for line in lines]
        measures = [line.measure for line in requirements if not isinstance(line.measure, str)] or [NumIter]
        if len(self.systems) > 1:
            baseline = baseline or find_baseline(requirements, self.systems)
            comparison = self.compare(measures, baseline=baseline, require=lines)
            return check(comparison, lines, family=family)

        (scores,) = self.score_systems(measures).values()
        outcomes = check_requirements(scores, lines, alpha=self._options["alpha"], family=family)
        if failed := [str(outcome) for outcome in outcomes if not outcome.holds]:
            raise AssertionError("\n".join(failed))
        return outcomes

    @checks_kinds
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
        lengths: Any = None,
        outcomes: Any = None,
        details: int = 200,
        format: str | None = None,  # noqa: A002  # as in gg.report
        spreadsheet: bool = False,
    ) -> Path:
        """Write a report on all systems. Arguments, result and errors are those of `gg.report`."""
        from goodgain.experiments.reports import save_report  # it loads templates and what reads logs

        tables = {
            "results": results, "queries": queries, "uses": uses, "groups": groups, "costs": costs, "lengths": lengths,
            "outcomes": outcomes,
        }  # fmt: skip
        return save_report(self, path, measures, details=details, format=format, spreadsheet=spreadsheet, **tables)

    def name_by_files(self) -> Self:
        """Return a copy in which each system has the name of its file, or its tag if the system has no file name.

        Return `self` if a system has several runs, if no name is found for a system, or if two systems get the same name.
        """
        opened = self.opened
        names = {system: find_name(opened.runs[system]) for system in self.systems if system in opened.runs}
        if len(set(names.values()) - {""}) < len(self.systems):
            return self
        return self._rename(names)


def _write_in_one_line(text: str) -> str:
    first, *lines = text.split("\n  ")
    return f"{first} {'; '.join(lines)}" if lines else first


Experiment.__doc__ = name_options(Experiment.__doc__ or "", DEFAULTS)
