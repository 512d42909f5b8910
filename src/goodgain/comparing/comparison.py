"""Comparisons of systems that know which way is better: means, differences, tests, and what each system spent."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import ir_measures
import polars as pl

from goodgain.batches.run_file import open_run_and_qrels
from goodgain.comparing.caveats import Facts, caveats
from goodgain.comparing.findings import Findings
from goodgain.comparing.matching import complete, matrices, means_frame, systems_frame, values_frame, with_context
from goodgain.comparing.pairing import Matched, Settings, compared, pairs_of
from goodgain.comparing.significance import Matrix
from goodgain.comparing.tables import on_terminal, written
from goodgain.counting.coverage import warn_if_no_label_reaches
from goodgain.errors import GoodgainNotice, InputError, notice
from goodgain.evaluation import Scores, score_run, used_thresholds
from goodgain.formats import Qrels
from goodgain.formats.column_names import Columns
from goodgain.formats.qrels import load_qrels
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import NumIter, NumResults
from goodgain.measures.names import Measures, parse_measures

__all__ = ["Comparison", "compare", "direction"]


#: Ours are compared at each iteration up to the one that is asked for.
_MOST_ITERATIONS = 1_000


class Comparison(Findings):
    """Systems held against each other on the same queries.

    Attributes:
        systems: system, queries, absent_from_run, without_judgments, iterations, results (means per query), coverage
            (judged share of unique results; null without results).
        means: measure, better (`up`, `down`), system, mean, queries.
        pairs: one row a measure and pair: measure, better, system, against, queries, mean, mean_against, difference
            (system minus against), low, high (bootstrap interval), p_t, p_t_holm, p_randomisation,
            p_randomisation_holm, p_tukey (three systems or more), effect (d_z), wins, ties, losses (of system, by
            direction), verdict, significant (p_randomisation_holm <= alpha), low_coverage, more_iterations,
            more_results (per query, system minus against). The verdict on system is `better` or `worse` (by direction)
            where the difference is significant, `unclear` where it is not, `equal` where all differences are zero, null
            where there is no query. A p that does not exist is null.
        values: query_id, measure, system, value: what was tested.
        baseline: the system all others are held against; None where all pairs are compared.
        notes: what to know before believing the numbers, a sentence each.
        signature: how the numbers were made.
    """

    def to_text(self, form: str = "markdown", *, places: int = 4) -> str:
        """The comparison as `markdown`, `latex` (booktabs), `csv` (pairs, full precision) or `json` (all but values).

        Raises:
            InputError: the form is unknown.
        """
        return written(self, form, places=places)

    def __repr__(self) -> str:
        measures = self.means.get_column("measure").n_unique()
        return f"Comparison({self.systems.height} systems, {measures} measures, {self.signature['queries']:,} queries)"

    def __str__(self) -> str:
        return self.to_text("markdown")

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """Coloured tables for a terminal: `rich.print(comparison)`."""
        yield from on_terminal(self, options.max_width)

    def _repr_markdown_(self) -> str:
        return self.to_text("markdown")


def compare(
    qrels: Any,
    systems: Mapping[str, Any],
    measures: Measures,
    *,
    baseline: str | None = None,
    iterations: int | None = None,
    seed: int = 42,
    resamples: int = 9_999,
    alpha: float = 0.05,
    order: str = "seen",
    provider: str | None = None,
    columns: Columns | None = None,
) -> Comparison:
    """Compare two or more systems on any measures, ours and those of ir_measures.

    Args:
        qrels: what `read_qrels` takes.
        systems: name -> what `read_run` takes; two or more.
        measures: names, measure objects or both. Ours know which way is better, classic ones are better when higher.
        baseline: hold all others against this one; None compares all pairs, a later system against an earlier.
        iterations: compare ours named without @ at each fixed iteration 1..iterations too, beside a query's own last.
        seed: of the randomisation test and the bootstrap; the same seed gives the same numbers.
        resamples: sign flips, and bootstrap samples.
        alpha: a difference is significant if the Holm-corrected p of the randomisation test is at most this; 1 - alpha
            is the level of the interval.
        order: how classic measures get one ranking: `seen`, `interleaved` or `last`.
        provider: the provider of ir_measures for the classic measures.
        columns: name in the source -> name here, for columns of runs or qrels with other names: {"step": "iteration"}.

    Returns:
        A `Comparison`. Ours compare all queries of the qrels, one that a run lacks having no search at all (N = 0); any
        measure leaves out queries for which some system has no value. Means are per query, for every measure.

    Raises:
        InputError: fewer than two systems, an unknown baseline, or input that cannot be read.
        MeasureError: a measure is unknown, or cannot be computed from this input.

    Source: Smucker, Allan and Carterette, CIKM 2007 (tests); Carterette, TOIS 30(1), 2012 (many systems).

    >>> qrels = {f"q{number}": {"a": 3, "b": 0} for number in range(6)}
    >>> old, new = ({query_id: {doc_id: 1.0} for query_id in qrels} for doc_id in "ba")
    >>> found = compare(qrels, {"old": old, "new": new}, "SRE@1")
    >>> found.pairs.select("system", "against", "difference", "wins", "p_randomisation_holm", "verdict").rows()
    [('new', 'old', 1.0, 6, 0.03125, 'better')]
    """
    runs = _checked(systems, baseline)
    names = list(runs)
    settings = Settings(_whole("seed", seed, 0), _whole("resamples", resamples, 1), _share(alpha))
    asked = _at_iterations(parse_measures(measures), iterations)
    judged = load_qrels(qrels, columns=columns)
    warn_if_no_label_reaches(judged.frame, used_thresholds(asked))
    needed = parse_measures([*asked, NumIter, NumResults])
    scores = {
        name: _scores(name, judged, run, needed, columns, order=order, provider=provider) for name, run in runs.items()
    }
    full = matrices(scores, needed)
    matched = {str(m): complete(full[str(m)], direction(m)) for m in asked}
    pairs = pairs_of(len(names), None if baseline is None else names.index(baseline))
    about = systems_frame(scores, full)
    found = compared(matched, names, pairs, settings)
    notes = _notes(asked, full, matched, about)
    for sentence in notes:
        notice(sentence)
    return Comparison(
        systems=about,
        means=means_frame(matched, names),
        pairs=with_context(found, about),
        values=values_frame(scores, asked),
        baseline=baseline,
        notes=notes,
        signature=_signature(scores, settings),
    )


def direction(measure: ir_measures.Measure) -> str:
    """`up` or `down`: ours say it themselves, classic measures are better when higher."""
    return measure.declaration.better if isinstance(measure, GoodGainMeasure) else "up"


def _checked(systems: Mapping[str, Any], baseline: str | None) -> dict[str, Any]:
    if not isinstance(systems, Mapping):
        raise InputError(f"systems is a {type(systems).__name__}; give each run a name: {{'old': run, 'new': other}}")
    named = {str(name): run for name, run in systems.items()}
    if len(named) < len(systems):
        raise InputError("two systems have the same name once it is text; give each a name of its own")
    if len(named) < 2:
        there = ", ".join(named) or "none"
        raise InputError(f"a comparison needs two systems or more, and there is {there}; add another run")
    if baseline is not None and baseline not in named:
        raise InputError(f"baseline {baseline!r} is none of the systems; they are {', '.join(named)}")
    return named


def _whole(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}={value!r}: give a whole number from {least}")
    return value


def _share(alpha: float) -> float:
    if not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise InputError(f"alpha={alpha!r}: give a number between 0 and 1, such as 0.05")
    return alpha


def _at_iterations(measures: Iterable[ir_measures.Measure], last: int | None) -> list[ir_measures.Measure]:
    """Ours without @, where they can have one: at 1..last, then at each query's own N."""
    if last is None:
        return list(measures)
    if _whole("iterations", last, 1) > _MOST_ITERATIONS:
        raise InputError(
            f"iterations={last}: that is more than {_MOST_ITERATIONS:,} measures; name the cutoffs you need"
        )
    found: list[ir_measures.Measure] = []
    for measure in measures:
        if isinstance(measure, GoodGainMeasure) and measure.cutoff is None and measure.declaration.cutoff == "optional":
            found += [measure @ i for i in range(1, last + 1)]
        found.append(measure)
    return parse_measures(found)


def _scores(
    name: str, qrels: Qrels, run: Any, measures: list[ir_measures.Measure], columns: Columns | None, **options: Any
) -> Scores:
    """The scores of one system, with notices that say which system they are about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GoodgainNotice)
        searched, judged = open_run_and_qrels(qrels, run, columns=columns)
        scores = score_run(judged, searched, measures, **options)
    for warning in caught:
        if issubclass(warning.category, GoodgainNotice):
            notice(f"{name}: {warning.message}")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return scores


def _notes(
    asked: list[ir_measures.Measure],
    full: Mapping[str, Matrix],
    matched: Mapping[str, Matched],
    systems: pl.DataFrame,
) -> tuple[str, ...]:
    ours = [measure for measure in asked if isinstance(measure, GoodGainMeasure)]
    left_out = {name: full[name].shape[1] - of.values.shape[1] for name, of in matched.items()}
    return tuple(caveats(Facts(ours, full, full[str(NumIter)], systems, left_out)))


def _signature(scores: Mapping[str, Scores], settings: Settings) -> dict[str, Any]:
    of_run = ("absent_from_run", "without_judgments", "unjudged")
    first = next(iter(scores.values())).signature
    return {name: value for name, value in first.items() if name not in of_run} | settings._asdict()
