"""One experiment: qrels, systems and options are given once; its analyses share what was read and counted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.comparing.comparison import Comparison
from goodgain.comparing.explanation import Explanation
from goodgain.comparing.gate_reports import check as check_lines
from goodgain.comparing.required_lines import Requirement, parse_requirement
from goodgain.comparing.requirements import Outcome, check_requirements
from goodgain.comparing.use_of_documents import Funnel, funnel
from goodgain.counting.coverage import measure_coverage
from goodgain.errors import InputError
from goodgain.experiments.analyses import GROUPS, Analyses
from goodgain.experiments.kept_results import Heard, KeptResults, tell_once
from goodgain.experiments.system_scores import SystemScores
from goodgain.files.opening import make_path
from goodgain.files.writing import atomic_write
from goodgain.formats.any_source import Columns
from goodgain.formats.query_tables import read_costs, read_outcomes
from goodgain.formats.systems import check_systems, stack_systems
from goodgain.measures.ledger_values import check_along_iterations
from goodgain.measures.names import Measures, parse_measure, parse_measures
from goodgain.measures.scores import Scores
from goodgain.measures.thresholds import find_thresholds, warn_of_rel
from goodgain.options import check_choice
from goodgain.reporting import report as page
from goodgain.reporting.iteration_curves import check_curve_options, parse_curve_measures
from goodgain.reporting.ledger_and_coverage import tabulate_ledger
from goodgain.reporting.page_data import Evidence
from goodgain.reporting.precision_recall import Points, check_points
from goodgain.reporting.spend_totals import check_spend_options, tabulate_spend


class Experiment:
    """Qrels and systems with the options of all analyses. Files are read once, and runs counted once, for all of them.

    An experiment does not change; `with_` returns another one that shares what both can use. Each notice is given once, and
    stands in the `notes` of every result that it concerns. Runs, and the results of analyses, stay in memory; of large
    files only counts and scores do.

    Args:
        qrels: what `read_qrels` takes.
        systems: name -> what `read_run` takes, or a list of several runs of the system (replicates).
        gaps, first, labels, columns, errors: how files are read, as in `read_run` and `read_qrels`.
        documents, documents_of, chunks: map ids of chunks to documents, as in `evaluate`.
        rel: the smallest good label, for measures of iterations without their own `rel`. None: 2.
        order, provider, missing, bounds: as in `evaluate`.
        seed, resamples, alpha: as in `compare`.

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

    def __init__(
        self,
        qrels: Any,
        systems: Mapping[str, Any],
        *,
        gaps: str = "close",
        first: int = 1,
        labels: str | None = None,
        columns: Columns | None = None,
        errors: str = "raise",
        documents: Any = None,
        documents_of: str = "both",
        chunks: str = "collapse",
        rel: float | None = None,
        order: str = "seen",
        provider: str | None = None,
        missing: str = "zero",
        bounds: bool = False,
        seed: int = 42,
        resamples: int = 9_999,
        alpha: float = 0.05,
    ) -> None:
        given = locals()
        self._qrels, self._systems = qrels, check_systems(systems)
        self._kept, self._told = KeptResults(), set[str]()
        self._set_options({option.name: given[option.name] for group in GROUPS for option in group})

    def _set_options(self, options: Mapping[str, Any]) -> None:
        for option in (option for group in GROUPS for option in group if option.choices):
            check_choice(option.name, options[option.name])
        self._options = dict(options)
        self._analyses = Analyses(self._qrels, self._systems, self._options, self._kept)

    def with_(self, **options: Any) -> Experiment:
        """Return this experiment with other options; it shares what does not depend on them.

        >>> folder = "qrels_examples/redundancy/"
        >>> x = Experiment(folder + "qrels.txt", {"lean": folder + "lean.run"})
        >>> x.evaluate("NumGood@2")["NumGood@2"], x.with_(rel=3).evaluate("NumGood@2")["NumGood@2"]
        (2.5, 1.5)
        """
        if unknown := [name for name in options if name not in self._options]:
            raise InputError(f"{unknown[0]}= is not an option of an experiment; they are {', '.join(self._options)}")
        made = Experiment(self._qrels, self._systems)
        made._kept, made._told = self._kept, set(self._told)
        made._set_options(self._options | options)
        return made

    def __repr__(self) -> str:
        default = Experiment(self._qrels, self._systems)._options
        changed = [f"{name}={value!r}" for name, value in self._options.items() if value is not default[name]]
        return f"Experiment({', '.join([*self._systems, *changed])})"

    def __getstate__(self) -> dict[str, Any]:
        return {"qrels": self._qrels, "systems": self._systems, "options": self._options}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["qrels"], state["systems"], **state["options"])  # type: ignore[misc]  # results are not kept

    def evaluate(self, measures: Measures, *, groups: Any = None) -> Scores | SystemScores:
        """Score the systems on any measures.

        Args:
            measures: names, measure objects or both.
            groups: a file or a frame of query_id and group, for values over the queries of each group.

        Returns:
            Of one system its `Scores`, as `gg.evaluate` returns them. Of several an object with `values` (system,
            replicate, query_id, measure, value), `systems` (name -> `Scores`) and a mean for each system and measure:
            `found["new", "nCG@3"]`.
        """
        with self._tell() as heard:
            found = self._analyses.evaluate(parse_measures(measures, rel=self._options["rel"]), groups)
            scores = {name: replace(of, notes=heard.texts) for name, of in found.items()}
        return next(iter(scores.values())) if len(scores) == 1 else SystemScores(scores, heard.texts)

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
        """Compare the systems on any measures, with tests; arguments, result and errors as in `gg.compare`."""
        own: dict[str, Any] = {
            "baseline": baseline, "against": against, "iterations": iterations, "groups": groups, "outcomes": outcomes,
            "baseline_file": baseline_file, "require": [*require] or None, "pass_k": pass_k, "detect": detect,
        }  # fmt: skip
        with self._tell() as heard:
            found = self._analyses.compare(measures, **own)
        return replace(found, notes=tuple(dict.fromkeys((*found.notes, *heard.texts))))

    def curve(
        self,
        measures: Measures,
        *,
        upto: int | None = None,
        over: str | None = None,
        costs: Any = None,
        at: Sequence[float] | None = None,
    ) -> pl.DataFrame:
        """Return the mean of each measure at every iteration, or at every spend, as `gg.curve` does."""
        own: dict[str, Any] = {"upto": upto, "over": over, "costs": costs, "at": at}
        asked = parse_curve_measures(measures, self._options["rel"])
        check_curve_options(self._systems, **own)
        with self._tell():
            self._analyses.warn_of_labels(asked)
            self._analyses.count(find_thresholds(asked))
            return self._analyses.curve(asked, **own)

    def ledger(self, measures: Measures | None = None) -> pl.DataFrame:
        """Return system, and what each iteration of each query found, as `gg.ledger` does; a system of several runs has each."""
        with self._tell():
            rel = self._options["rel"]
            found = [] if measures is None else parse_measures(measures, complete=False, rel=rel)
            base, *asked = (
                check_along_iterations(one, "the ledger") for one in (*parse_measures("CG", rel=rel), *found)
            )
            self._analyses.warn_of_labels([base, *asked])
            counts = self._analyses.count(find_thresholds([base, *asked]))
            return stack_systems({name: tabulate_ledger(of, base.rel, asked) for name, of in counts.items()})

    def coverage(self) -> pl.DataFrame:
        """Return the judged share of the unique results of each run, overall and by iteration, as `gg.coverage` does."""
        with self._tell():
            counts = self._analyses.count_runs(find_thresholds([]), iterates=False)
            return stack_systems({name: measure_coverage(of).tabulate() for name, of in counts.items()})

    def pr_curve(self, *, points: Points = "eleven", per_query: bool = False) -> pl.DataFrame:
        """Return interpolated precision over recall for each run, as `gg.pr_curve` does; the default of `rel` is 1."""
        check_points(points)
        rel = 1 if self._options["rel"] is None else self._options["rel"]
        with self._tell():
            warn_of_rel(self._analyses.opened.qrels.frame, rel)
            return self._analyses.draw_recalls(rel, points, per_query=per_query)

    def explain(
        self, base: str, new: str, measures: Measures = "CG", *, results: Any = None, uses: Any = None, top: int = 5
    ) -> Explanation:
        """Explain why the system `new` is better or worse than `base`, query by query; the rest as in `gg.explain`."""
        if unknown := [name for name in (base, new) if name not in self._systems]:
            raise InputError(f"{unknown[0]!r} is not one of the systems; they are {', '.join(self._systems)}")
        with self._tell():
            return self._analyses.explain([base, new], measures, results=results, uses=uses, top=top)

    def spend(
        self,
        costs: Any = None,
        *,
        outcomes: Any = None,
        price_per_search: float | None = None,
        per_query: bool = False,
    ) -> pl.DataFrame:
        """Return what each system spends for what it finds; arguments and result as in `gg.spend`."""
        check_spend_options(self._systems, price_per_search, costs, outcomes)
        settings = self._analyses.check_settings(0)
        gain = check_along_iterations(parse_measure("CG", rel=self._options["rel"]), "spend")
        with self._tell():
            self._analyses.warn_of_labels([gain])
            self._analyses.count([gain.rel])
            return tabulate_spend(
                self._analyses.join([gain]),
                gain.rel,
                settings,
                costs=None if costs is None else read_costs(costs),
                outcomes=None if outcomes is None else read_outcomes(outcomes),
                price=price_per_search,
                per_query=per_query,
            )

    def funnel(self, uses: Any) -> Funnel:
        """Count the documents that each query returned, opened and cited; `uses` and result as in `gg.funnel`."""
        with self._tell():
            rel = self._options["rel"]
            return funnel(self._analyses.opened.qrels, uses, 2 if rel is None else rel)

    def check(
        self, lines: str | Iterable[str], *, baseline: str | None = None, family: str | None = None
    ) -> list[Outcome]:
        """Raise `AssertionError` if a required line does not hold, as `gg.check` does; the measures are those of the lines.

        Args:
            lines: a line that must hold, or several: `SRR@3<=0.3`, `nCG@6>=baseline significant`.
            baseline: the system that lines mean; None: the first one.
            family: `holm` corrects p over all lines that a test decides.
        """
        listed = [lines] if isinstance(lines, str) else [*lines]
        measures = [parse_requirement(line, rel=self._options["rel"]).measure for line in listed]
        if len(self._systems) > 1:
            comparison = self.compare(measures, baseline=baseline or next(iter(self._systems)), require=listed)
            return check_lines(comparison, listed, family=family)
        scores: Any = self.evaluate(measures)
        outcomes = check_requirements(scores, listed, alpha=self._options["alpha"], family=family)
        if failed := [str(one) for one in outcomes if not one.holds]:
            raise AssertionError("\n".join(failed))
        return outcomes

    def report(
        self,
        path: str | os.PathLike[str],
        measures: Measures = page.MEASURES,
        *,
        details: int = 200,
        format: str | None = None,  # noqa: A002  # as in gg.report
        spreadsheet: bool = False,
        results: Any = None,
        queries: Any = None,
        uses: Any = None,
        groups: Any = None,
    ) -> Path:
        """Write a report on all systems; arguments, result and errors as in `gg.report`."""
        target = make_path(path, "the file of the report")
        form = page.choose_format(target, format)
        files = {"results": results, "queries": queries, "uses": uses, "groups": groups}
        with self._tell() as heard:
            command = self._write_command(path, measures, files, {"details": details, "format": format})
            made = self._analyses.gather_evidence(measures, **files, details=details, command=command)
        text = page.write_report(page.add_doubts(made, _list_heard(heard, made)), form, spreadsheet=spreadsheet)
        with atomic_write(target) as out:
            out.write(text.encode())
        return target

    def gather_evidence(self, measures: Measures, **beside: Any) -> Evidence:
        """Return what a report shows, for commands; `beside` as in `reporting.report.gather_evidence`."""
        with self._tell() as heard:
            made = self._analyses.gather_evidence(measures, **beside)
        return page.add_doubts(made, _list_heard(heard, made))

    def _tell(self) -> AbstractContextManager[Heard]:
        return tell_once(self._told)

    def _write_command(self, path: Any, measures: Measures, files: dict[str, Any], own: dict[str, Any]) -> str | None:
        """Return the command that writes the same report; None if files and its options do not say all."""
        written = ("rel", "order", "provider")
        options, default = self._options, {option.name: option.default for group in GROUPS for option in group}
        if any(
            options[name] is not default[name] and options[name] != default[name]
            for name in default
            if name not in written
        ):
            return None
        own = {"rel": options["rel"], "details": own["details"], "order": options["order"]} | {
            "provider": options["provider"],
            "format": own["format"],
        }
        return page.write_command(self._qrels, self._systems, path, measures, files, own)


def _list_heard(heard: Heard, made: Evidence) -> list[str]:
    return [str(one) for one in heard if not one.minor or made.comparison is None]
