"""The result of a comparison: its frames, and the methods that write them in several forms."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.analysis.comparing.baseline_file import write_baseline
from goodgain.analysis.comparing.comparison_forms import (
    render_briefly,
    render_html,
    render_on_terminal,
    write_comparison,
)
from goodgain.analysis.comparing.comparison_frames import ComparisonFrames
from goodgain.analysis.comparing.comparison_sentences import list_notes
from goodgain.analysis.comparing.comparison_tables import Layout, build_tables
from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, count_of, escape_controls
from goodgain.files.notebooks import load_pictures
from goodgain.files.tables import Table
from goodgain.files.terminal_tables import ANY_WIDTH, write_plain
from goodgain.options import spell

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ComparisonFrames):
    """The comparison of systems on the same queries. A frame is described by the list of its columns.

    Attributes:
        systems: a row per system: system, queries, absent_from_run, without_judgments, iterations, results (means per
            query), coverage (judged share of the unique results; null without results).
        coverage: a row per system and iteration: system, iteration (null: all), judged, unique, coverage (the judged share;
            null without results). The row of an iteration counts the results that this iteration found first.
        means: a row per measure and system: measure, better (`up`, `down`, null), system, mean, queries (the number of
            queries with a value). With `bounds`, also the columns least and most.
        means_with_intervals: a tuple of the frame `means` with the columns low and high, the interval of each mean as in
            `evaluate(..., interval=True)`, and the method of the intervals.
        pairs: a row per measure and pair: measure, better, system, against, queries (the number of queries in which both
            systems have a value), mean, mean_against, difference (system minus against), low, high, level (the interval),
            p_t, p_t_holm, p_randomisation, p_randomisation_holm, p_tukey (three systems or more), effect (d_z), wins, ties,
            losses (numbers of queries in which system is better, equal, worse), verdict, significant (p_randomisation_holm <=
            alpha), low_coverage, more_iterations, more_results (per query, system minus against).
            The interval has all differences that the randomisation test does not reject at alpha divided by the number of the
            measure's pairs that Holm's method does not reject (at least 1): `level` is 1 minus this. So 0 is outside the
            interval exactly if the difference is significant. Low, high and level are null if there are too few queries.
            p_tukey is over the queries in which all systems have a value. A p-value that does not exist is null.
            With `correction="tukey"` or `correct_over="measures"`, the column p_corrected decides: significant is p_corrected <=
            alpha. The interval is then that of this test: `level` is that of the pair's own test, or with `tukey` of all pairs.
            The verdict on system is `better` or `worse` if the difference is significant, `equal` if all differences are zero,
            else `unclear`. The verdict is `no results` if a system has no value because it returned nothing.
            The verdict is `not comparable` if the measure depends on where iterations end and only one of the two systems
            has iterations. It is `not comparable: one-time addresses` if repeats cannot be recognised, because pages get a
            new address in each search. It is `not comparable: pages of one ranking` if the measure counts repeats (SRR, NumDup,
            RepeatedQueries), and `page` cut a system, because pages of one ranking cannot repeat a result. Pairs with these
            three verdicts have no p-values.
            If none of these verdicts applies, because `better` is null or the pair has no queries, the verdict is null. Wins,
            ties and losses are null if `better` is null.
            With `bounds`, also the columns least and most (the range of the difference) and can_turn. The column can_turn is
            true if labels of unjudged documents can reverse the sign of the difference or break a tie. For a measure without
            bounds, least and most are null, and can_turn is null or false.
        values: a frame of the tested values, with the columns query_id, measure, system, value.
        groups: with `groups`, the pairs compared on the queries of each group alone: the column `group`, then the columns of
            `pairs` up to `significant`. Holm's method corrects over the groups and pairs of a measure.
        correlations: with `outcomes`, system, outcome, measure, queries, tau (Kendall's tau-b over the queries of the
            system), low, high (bootstrap interval). A constant column or fewer than 3 queries give null.
        outcomes: with `outcomes`, query_id, system, and a column for each outcome.
        scores: a dict from systems to scores, with NumIter and NumResults. `Scores.replicates` has the scores of single runs.
        replicates: a row per measure and system with several runs: system, measure, replicates (runs), mean, within,
            between (variances), icc, best, worst (mean of a run), oracle_pick (mean of the best value of each query).
        flips: with `require`, a row for each system with several runs and each requirement whose bound is a number: system,
            requirement, k, pass_at_k, pass_all_k, flip_rate, ever_flips.
        noise: system, against, measure, floor (the largest loss that the noise of `against` explains, one-sided 5 %),
            two_single_runs (95 % of the differences between two single runs of `against` are at most this large),
            share_of_reruns (the share of rerun noise in the variance of the differences over queries; null if one of the two
            systems has a single run). A row needs 20 queries or more.
        detectable: two rows for each measure and pair: measure, system, against, difference, queries, power, replicates, pairs.
            The pairs are those with the verdict `unclear` or, with `detect`, those with p-values. A pair needs two queries, and
            enough random signs to be significant. Differences that do not vary have rows only if there are fewer queries than
            the randomisation test needs (6 for one pair at alpha .05). The first row has the smallest difference that these
            queries show with power .8. This difference is null if there are fewer queries than needed. The second row has the
            size of the observed difference (or `detect`). In the second row, `queries` is the number of queries needed to
            detect this difference with power .8, and `replicates` the number of runs of each system needed on the present
            queries. Both are null if no number suffices; `replicates` is also null if a system has a single run. The column
            `pairs` has the number of pairs of the measure that Holm's method corrects. Both rows use the level alpha / pairs.
        baseline: the system that all others are compared with; None if all pairs are compared.
        broke_off: with a column `completed` of outcomes, a dict from systems to the number of judged queries that broke off.
        shared: without labels, what the systems share: `shared.pairs`, `shared.per_query` and `shared.searches`. None with labels.
        next_step: without labels, the command or call that lists what to judge.
        question, matrices, runs, query_ids, members: the inputs of `groups`, `correlations`, `flips` and `noise`. Matrices
            have a column per query and a row per system; matrices of `runs` have a row per run.
        notes: the caveats of this comparison. `warnings` and `warnings_of_runs` were also given as notices.
        signature: the versions and settings behind the numbers.
        rel: the argument `rel` of `compare`.

    >>> import goodgain as gg
    >>> found = gg.compare({"q": {"a": 2, "b": 0}}, {"old": {"q": {"b": 2.0, "a": 1.0}}, "new": {"q": {"a": 1.0}}}, "RR")
    >>> found.means.select("system", "mean").rows()
    [('old', 0.5), ('new', 1.0)]
    """

    @cached_property
    def notes(self) -> tuple[str, ...]:
        return list_notes(self)

    @checks_kinds
    def tables(self, layout: Layout | None = None) -> list[Table]:
        """Return the tables of means and differences and, if computed, of groups, correlations, replicates, noise and flips."""
        return build_tables(self, layout or Layout())

    @checks_kinds
    def to_text(
        self,
        form: str = "markdown",
        *,
        places: int = 4,
        rows: str | None = None,
        spreadsheet: bool = False,
        caption: str = "",
        label: str = "",
        intervals: bool = False,
    ) -> str:
        """Return the comparison as `markdown`, `latex` (booktabs), `csv` (pairs) or `json` (frames, notes, signature).

        Args:
            form: one of these four names. JSON lacks the frames `values` and `outcomes`. CSV also has the rows of `groups`.
            places: the number of decimals, at most 100; -1 for full precision, which CSV and JSON always have.
            rows: the rows of the table of means: `measures`, or `systems` as in papers. None: `systems` in LaTeX without a
                baseline, else `measures`. With `systems` and a baseline, * marks means that differ significantly from the
                baseline, and LaTeX has a table of differences that fits a page column. With `systems` and no baseline, LaTeX
                has no table of differences: letters beside each mean name the systems that are significantly worse.
            spreadsheet: put an apostrophe before texts in CSV that a spreadsheet would read as formulas.
            caption: a title for the table of means in LaTeX and Markdown, instead of the default title.
            label: the label of the table of means in LaTeX, by default `tab:comparison`. The label of the table of
                differences is `<label>-differences`.
            intervals: show the interval of each mean. JSON then has low and high in `means`, and the method in the signature.

        Raises:
            InputError: form, places or rows has an unknown value.
        """
        return write_comparison(self, form, Layout(places, rows, spreadsheet, caption, label, intervals))

    @checks_kinds
    def write_baseline(self, path: str | os.PathLike[str], system: str | None = None) -> None:
        """Write the values of a system to a baseline file, for `compare(..., baseline_file=path)`.

        Args:
            path: the JSON Lines file to write. The name may end in .gz or .zst.
            system: the name of a system. None: the baseline, or the first system if there is no baseline.
        """
        name = system or self.baseline or next(iter(self.scores))
        if name not in self.scores:
            raise InputError(f"{spell('system', name)} is not one of the systems; they are {', '.join(self.scores)}")
        write_baseline(self.scores[name], path, system=name, outcomes=self.outcomes)

    def plot(self) -> Figure:
        """Return a figure of the differences in each query: the plot of `plots.per_query` for each measure and pair."""
        figure: Figure = load_pictures().draw_comparison(self)
        return figure

    def to_polars(self) -> pl.DataFrame:
        """Return `pairs`, a Polars frame."""
        return self.pairs

    def to_pandas(self) -> pd.DataFrame:
        """Return `pairs` as a pandas frame."""
        return self.pairs.to_pandas()

    def __repr__(self) -> str:
        measures = self.means.get_column("measure").n_unique()
        sizes = [
            count_of(self.systems.height, "system"),
            count_of(measures, "measure"),
            count_of(self.signature["queries"], "query", "queries"),
        ]
        return f"Comparison({', '.join(sizes)})"

    def __str__(self) -> str:
        from rich.text import Text

        tables = render_briefly(self, ANY_WIDTH, Layout(), more="to_text()")
        notices = [Text(escape_controls(notice)) for notice in (*self.warnings, *self.warnings_of_runs)]
        return write_plain([*tables, *notices])

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """Yield coloured tables for a terminal: `rich.print(comparison)`."""
        yield from render_on_terminal(self, options.max_width, Layout())

    def _repr_markdown_(self) -> str:
        return self.to_text("markdown")

    def _repr_html_(self) -> str:
        return render_html(self)
