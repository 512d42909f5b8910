"""Measures coverage, ties, leniency and agreement beyond chance (Cohen, Krippendorff, Gwet) of several judges.

AC1 and AC2 depend on all grades of the scale, even on grades that no judge gave. A coefficient that is 0/0 is None.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, count_of
from goodgain.files.tables import Table, format_cell, write_html
from goodgain.judgments.judging.aggregation import count_ties
from goodgain.judgments.judging.grade_table import Grades, read_grades
from goodgain.judgments.scales import Scale, ScaleLike, find_scale
from goodgain.ranking.dataframe_engines import divide_rows

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]
_ROUNDS = 1_000
#: Krippendorff's thresholds for alpha: reliable, and good enough for tentative conclusions.
_RELIABLE, _TENTATIVE = 0.8, 0.667
#: With fewer documents, there is no verdict.
_FEWEST_DOCUMENTS = 5
#: With fewer queries, the bootstrap resamples documents.
_FEWEST_QUERIES = 10
#: A coefficient: the name, the numbers of two judges (None: all judges), a function of the frequencies of kinds of documents,
#: and the data: the unit and the kind of each document, and the number of kinds.
Coefficient = tuple[str, Any, Any, Callable[[Matrix], float | None], tuple[Numbers, Numbers, int]]


@dataclass(frozen=True)
class Agreement:
    """The agreement of several judges. An undefined value is None, or null in a frame.

    Attributes:
        scale: the name of the scale.
        overall: a dict with the keys `documents`, `coverage` (share of documents with a grade), `several` (number of documents
            with two grades or more), `tie_rate` (share of these documents where judges tie), `alpha_nominal` and
            `alpha_ordinal` (Krippendorff), `ac1` and `ac2` (Gwet; `ac2` has quadratic weights).
        judges: a frame with judge, grades (their number), coverage (share of the documents that the judge graded) and leniency (the
            judge's grade minus the mean grade of the other judges, averaged over documents with several grades).
        pairs: a frame with judge, other, documents (graded by both), agreement (share with equal grades), kappa,
            kappa_quadratic.
        confusion: a frame with judge, other, grade, other_grade, documents (how many documents got this pair of grades).
        verdict: a sentence: whether the judges agree enough, by Krippendorff's thresholds for alpha_ordinal.
        intervals: a frame with the 95 % intervals of kappa and alpha; None if intervals were not requested. The columns are
            coefficient, judge, other, low and high. For alpha, which covers all judges, judge and other are null. The bootstrap
            resamples queries, or documents if there are fewer than ten queries.

    >>> import goodgain as gg
    >>> found = gg.agreement({"anna": {"q": {"a": 0, "b": 4}}, "ben": {"q": {"a": 0, "b": 4}}}, scale="0..4")
    >>> found.overall["documents"], found.overall["alpha_nominal"]
    (2, 1.0)
    """

    scale: str
    overall: dict[str, float | None]
    judges: pl.DataFrame
    pairs: pl.DataFrame
    confusion: pl.DataFrame
    verdict: str
    intervals: pl.DataFrame | None = None

    def tables(self) -> list[Table]:
        """Return the tables that `goodgain judge --agreement` prints."""
        grades = pl.col("grade", "other_grade").map_elements("{:g}".format, pl.String)
        frames = {"Judges": self.judges, "Pairs of judges": self.pairs, "Intervals": self.intervals}
        frames["Grades given together"] = self.confusion.with_columns(grades)
        texts = [(name, format_cell(value, 4)) for name, value in self.overall.items()]
        texts.append(("verdict", self.verdict))
        tables = [Table.of("All judges", ["measure", "value"], 1, texts)]
        for title, frame in frames.items():
            if frame is not None:
                tables.append(Table.of_frame(frame, title, places=4))
        return tables

    def _repr_html_(self) -> str:
        return write_html(self.tables())

    def __repr__(self) -> str:
        judges = count_of(self.judges.height, "judge")
        documents = count_of(int(self.overall["documents"] or 0), "document")
        return f"Agreement({judges}, {documents}, scale={self.scale!r})"


@checks_kinds
def agreement(grades: Any, *, scale: ScaleLike, names: bool = False, intervals: bool = False) -> Agreement:
    """Measure the agreement of several judges.

    Args:
        grades: grades in any form that `aggregate` takes.
        scale: the scale of the grades. `ac1` and `ac2` depend on all grades of the scale, even on grades that no judge gave.
        names: show the judges' names. By default judges are called after their files or keys, or `judge 1`, `judge 2` ... in
            one source.
        intervals: also compute intervals of kappa and alpha.

    Raises:
        InputError: the grades cannot be read or are not on the scale, or there is only one judge.

    Source: Cohen 1960, 1968; Krippendorff 2004 (thresholds), 2011; Gwet 2014.

    >>> report = agreement({"anna": {"q": {"a": 0, "b": 1, "c": 4}}, "ben": {"q": {"a": 0, "b": 4, "c": 4}}}, scale="0..4")
    >>> report.pairs.select("judge", "other", "documents", "agreement").rows()
    [('anna', 'ben', 3, 0.6666666666666666)]
    """
    grade_scale = find_scale(scale)
    read = read_grades(grades, scale=grade_scale)
    judges = read.frame.get_column("judge").unique(maintain_order=True)
    if len(judges) < 2:
        raise InputError(
            f"{read.sources[0].label}: all grades are of one judge, and agreement needs two. Give a file for each judge, or "
            "grades with the column judge"
        )
    names_shown = judges if names else _name_after_files(read, judges)
    graded, documents = _number_grades(read.frame, judges)
    weights = _weigh_grades(grade_scale)
    grades_used = sorted(graded.get_column("grade").unique())
    places = [grade_scale.grades.index(grade) for grade in grades_used]  # unused grades have zero counts
    used_weights = {name: matrix[np.ix_(places, places)] for name, matrix in weights.items()}

    counts = _count_patterns(graded, grades_used)
    find_alpha = partial(_krippendorff_alpha, counts.patterns)
    alphas = {"alpha_nominal": partial(find_alpha, ordinal=False), "alpha_ordinal": partial(find_alpha, ordinal=True)}
    ac1, ac2 = (
        _gwet_ac(counts.patterns, counts.documents, used_weights[name], matrix) for name, matrix in weights.items()
    )
    overall = _describe_coverage(counts, documents, read.frame)
    overall |= {name: find(counts.documents) for name, find in alphas.items()}
    overall |= {"ac1": ac1, "ac2": ac2}

    pairs_of_grades = _pair_grades(graded)
    pairs, coefficients_of_pairs = _describe_pairs(pairs_of_grades, used_weights)
    cell = ["judge", "other", "grade", "other_grade"]
    confusion = pairs_of_grades.group_by(cell).agg(documents=pl.len().cast(pl.Int64)).sort(cell)
    judge_name, other_name = (
        pl.col(name).replace_strict(range(len(names_shown)), names_shown) for name in ("judge", "other")
    )
    interval_table = None
    if intervals:
        kinds = (counts.units, counts.pattern_of, len(counts.patterns))
        coefficients: list[Coefficient] = [(name, None, None, find, kinds) for name, find in alphas.items()]
        interval_table = _find_intervals([*coefficients, *coefficients_of_pairs]).with_columns(judge_name, other_name)
    return Agreement(
        scale=grade_scale.name,
        overall=overall,
        verdict=_write_verdict(overall, interval_table),
        judges=_describe_judges(graded, len(judges), documents).with_columns(judge_name),
        pairs=pairs.with_columns(judge_name, other_name),
        confusion=confusion.with_columns(judge_name, other_name),
        intervals=interval_table,
    )


def _number_grades(grades: pl.DataFrame, judges: pl.Series) -> tuple[pl.DataFrame, int]:
    """Return a row per grade, and the number of documents, also of those without a grade.

    The columns are document, query_id, judge (the number in `judges`), grade, place (the number of the grade among those given)
    and unit (the number of what the bootstrap draws: the query, or the document if there are few queries).
    """
    judge = pl.col("judge").replace_strict(judges, pl.int_range(len(judges), eager=True), return_dtype=pl.Int64)
    numbered = grades.select("document", "query_id", judge, "grade")
    query_ids = numbered.unique("document").sort("document").get_column("query_id")
    units = query_ids.rank("dense").cast(pl.Int64).to_numpy()
    if len(np.unique(units)) < _FEWEST_QUERIES:
        units = np.arange(len(query_ids))

    grades_used = sorted(numbered.get_column("grade").drop_nulls().unique())
    place = pl.col("grade").replace_strict(grades_used, range(len(grades_used)), return_dtype=pl.Int64)
    unit = pl.lit(pl.Series(units)).gather(pl.col("document"))
    graded = numbered.drop_nulls("grade").with_columns(place=place, unit=unit)
    # a fixed order, so that rounding in sums does not vary
    return graded.sort("document", "grade"), len(query_ids)


class _Patterns(NamedTuple):
    """Which grades the documents got: documents with the same numbers of grades have one pattern."""

    patterns: Matrix  # a row per pattern: how many judges gave each grade
    documents: Matrix  # the number of documents of each pattern, as floats for the coefficients
    pattern_of: Numbers  # the pattern of each document
    units: Numbers  # the unit of each document


def _count_patterns(graded: pl.DataFrame, grades: Sequence[float]) -> _Patterns:
    """Count how many judges gave a document each grade, and how many documents have each pattern of such counts."""
    counts = []
    for grade in grades:
        is_grade = pl.col("grade") == grade
        counts.append(is_grade.sum().cast(pl.Float64).alias(f"{grade:g}"))
    by_document = graded.group_by("document", "unit").agg(counts)
    patterns, pattern_of = np.unique(by_document.drop("document", "unit").to_numpy(), axis=0, return_inverse=True)
    documents = np.bincount(pattern_of.ravel()).astype(np.float64)
    return _Patterns(patterns, documents, pattern_of.ravel(), by_document.get_column("unit").to_numpy())


def _describe_coverage(counts: _Patterns, documents: int, grades: pl.DataFrame) -> dict[str, float | None]:
    """Return the first four values of `Agreement.overall`.

    `counts` has only documents with a grade, `documents` is the number of all.
    """
    has_several = counts.patterns.sum(axis=1) > 1
    with_several = int(counts.documents[has_several].sum())
    tie_rate = None
    if with_several:
        ties = int(count_ties(grades).get_column("tie").sum())
        tie_rate = ties / with_several
    return {
        "documents": documents,
        "coverage": float(counts.documents.sum() / documents),
        "several": with_several,
        "tie_rate": tie_rate,
    }


def _pair_grades(graded: pl.DataFrame) -> pl.DataFrame:
    """Return a row per document and pair of judges. The first judge has the smaller number."""
    of_other = graded.select("document", other="judge", other_grade="grade", other_place="place")
    pairs = graded.join(of_other, on="document").filter(pl.col("judge") < pl.col("other"))
    return pairs.sort("judge", "other")


def _weigh_grades(scale: Scale) -> dict[str, Matrix]:
    """Return the weights of pairs of grades: 1 for equal grades; for quadratic weights, less the further they are apart."""
    grades = np.asarray(scale.grades, dtype=np.float64)
    distance = grades[:, None] - grades[None, :]
    distance = distance / (grades.max() - grades.min())
    return {"kappa": np.eye(len(grades)), "kappa_quadratic": np.asarray(1 - distance**2)}


def _name_after_files(grades: Grades, judges: pl.Series) -> pl.Series:
    """Return a name for each judge that is not the judge's own: the file's, with a number if the file has several judges."""
    firsts = grades.frame.unique("judge", keep="first", maintain_order=True)
    sources = firsts.get_column("source").to_list()  # in the order of `judges`
    names: list[str] = []
    for place, source in enumerate(sources):
        of_source = sources[: place + 1].count(source)
        is_alone = sources.count(source) == 1
        file = grades.names[source] if len(set(sources)) > 1 else ""
        if not file:
            names.append(f"judge {place + 1}")
        else:
            names.append(file if is_alone else f"{file} {of_source}")
    return pl.Series(names)


def _write_verdict(overall: Mapping[str, float | None], intervals: pl.DataFrame | None) -> str:
    """Return whether the judges agree enough, by the thresholds of Krippendorff (2004) for alpha."""
    alpha, ac2 = overall["alpha_ordinal"], overall["ac2"]
    documents = int(overall["several"] or 0)
    if documents < _FEWEST_DOCUMENTS:
        return f"no verdict: only {count_of(documents, 'document')} with grades of two judges; {_FEWEST_DOCUMENTS} are needed"
    if alpha is None:
        return "no verdict: alpha is undefined, because the judges gave one grade only"

    fact = f"alpha_ordinal {alpha:.2f} over {count_of(documents, 'document')}"
    if alpha >= _RELIABLE:
        verdict = f"the judges agree: {fact} is at least {_RELIABLE:.2f}"
    elif alpha >= _TENTATIVE:
        verdict = f"the judges agree in part: {fact} is between {_TENTATIVE:.3f} and {_RELIABLE:.2f}, for tentative conclusions"
    else:
        verdict = f"the judges do not agree enough: {fact} is below {_TENTATIVE:.3f}"

    low, high = (None, None)
    if intervals is not None:
        low, high = intervals.filter(coefficient="alpha_ordinal").select("low", "high").row(0)
    if low is not None and high is not None:
        crossed = [f"{threshold:g}" for threshold in (_TENTATIVE, _RELIABLE) if low < threshold <= high]
        if crossed:
            interval = f"Its 95 % interval, {low:.2f} to {high:.2f}, crosses {' and '.join(crossed)}"
            verdict += f". {interval}: judge more documents to be sure"
    if alpha < _RELIABLE and ac2 is not None and ac2 >= _RELIABLE:
        verdict += f". But ac2 is {ac2:.2f}: grades are mostly equal, and alpha is low because some grades are rare"
    return verdict


def _describe_judges(grades: pl.DataFrame, judges: int, documents: int) -> pl.DataFrame:
    """Return one row per judge. `grades` has document, judge and grade, without null grades."""
    total = pl.col("grade").sum().over("document")
    number = pl.len().over("document")
    mean_of_others = (total - pl.col("grade")) / (number - 1)
    difference = pl.when(number > 1).then(pl.col("grade") - mean_of_others)
    by_judge = grades.select("judge", difference=difference).group_by("judge")
    leniency = pl.col("difference").sort().mean()  # a fixed order, so that rounding does not vary
    described = by_judge.agg(grades=pl.len().cast(pl.Int64), leniency=leniency)

    all_judges = pl.DataFrame({"judge": range(judges)}, schema={"judge": pl.Int64})
    described = all_judges.join(described, on="judge", how="left", maintain_order="left")
    number_of_grades = pl.col("grades").fill_null(0)
    coverage = divide_rows(number_of_grades, documents).alias("coverage")
    return described.select("judge", number_of_grades, coverage, "leniency")


def _describe_pairs(paired: pl.DataFrame, weights: Mapping[str, Matrix]) -> tuple[pl.DataFrame, list[Coefficient]]:
    """Return one row per pair of judges, and the coefficients whose intervals may be needed.

    `paired` has a row per document and pair: judge, place (of the judge's grade), other, other_place and unit.
    """
    grades = len(weights["kappa"])
    rows: list[tuple[Any, ...]] = []
    coefficients: list[Coefficient] = []
    for (judge, other), documents in paired.group_by("judge", "other", maintain_order=True):
        cells = (documents.get_column("place") * grades + documents.get_column("other_place")).to_numpy()
        units = documents.get_column("unit").to_numpy()
        confusion = np.bincount(cells, minlength=grades**2).astype(np.float64)
        kappas = []
        for name, matrix in weights.items():
            find_kappa = partial(_pair_kappa, weights=matrix)
            kappas.append(find_kappa(confusion))
            coefficients.append((name, judge, other, find_kappa, (units, cells, grades**2)))
        agreeing = float(np.trace(confusion.reshape(grades, grades))) / documents.height
        rows.append((judge, other, documents.height, agreeing, *kappas))

    whole_numbers = dict.fromkeys(("judge", "other", "documents"), pl.Int64)
    shares = dict.fromkeys(("agreement", *weights), pl.Float64)
    return pl.DataFrame(rows, schema={**whole_numbers, **shares}, orient="row"), coefficients


def _find_intervals(coefficients: Iterable[Coefficient]) -> pl.DataFrame:
    """Return a row per coefficient with its bootstrap interval over units (queries or documents); null if it is undefined."""
    rows = []
    for name, judge, other, find, (units, kinds, number) in coefficients:
        unit_rows = np.unique(units, return_inverse=True)[1].ravel()
        table = np.zeros((unit_rows.max(initial=-1) + 1, number))  # how often each unit has each kind
        np.add.at(table, (unit_rows, kinds), 1.0)
        low, high = bootstrap_interval(table, find) or (None, None)
        rows.append((name, judge, other, low, high))
    types = {"coefficient": pl.String, "judge": pl.Int64, "other": pl.Int64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema=types, orient="row")


def bootstrap_interval(units: Matrix, statistic: Callable[[Matrix], float | None]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap percentile interval of `statistic`. Each sample is the sum of rows drawn from `units`.

    The seed is fixed. Return None for fewer than two rows, or if the statistic is undefined in most of 1,000 samples.
    """
    rows, counts = np.unique(units, axis=0, return_counts=True)
    if counts.sum() < 2:
        return None

    random = np.random.default_rng(0)
    shares = counts / counts.sum()
    values = []
    for _ in range(_ROUNDS):
        value = statistic(random.multinomial(counts.sum(), shares) @ rows)
        if value is not None:
            values.append(value)
    if 2 * len(values) < _ROUNDS:
        return None
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _pair_kappa(confusion: Matrix, weights: Matrix) -> float | None:
    """Return Cohen's weighted kappa (1968) of two judges, or kappa (1960) if `weights` is the identity matrix."""
    confusion = confusion.reshape(weights.shape)
    disagreement = 1 - weights
    # exact sums: the order of the two judges does not matter
    by_chance = np.outer(confusion.sum(axis=1), confusion.sum(axis=0))
    expected = math.fsum((disagreement * by_chance / confusion.sum()).flat)
    observed = math.fsum((disagreement * confusion).flat)
    return None if expected == 0 else 1 - observed / expected


def _krippendorff_alpha(patterns: Matrix, documents: Matrix, *, ordinal: bool) -> float | None:
    """Return Krippendorff's alpha (2011): 1 - observed / expected disagreement, over documents with two grades or more.

    `patterns` has a row per kind of document: how many judges gave each grade. `documents` has the number of each kind.
    """
    grades_of_kind = patterns.sum(axis=1)
    pairable = grades_of_kind > 1
    counts = patterns[pairable]
    share = (documents / np.maximum(grades_of_kind - 1, 1))[pairable]
    # axes: the two grades of a pair
    together = counts.T @ (counts * share[:, None]) - np.diag(share @ counts)
    totals = together.sum(axis=1)

    if ordinal:  # distance: n_a/2 + n_b/2 + the grades between a and b
        middle = np.cumsum(totals) - totals / 2
        gaps = middle[:, None] - middle[None, :]
        distance = gaps**2
    else:
        distance = 1 - np.eye(len(totals))
    expected = float((distance * np.outer(totals, totals)).sum())
    observed = float((distance * together).sum())
    if expected == 0:
        return None
    pairable_grades = float(totals.sum())
    return 1 - (pairable_grades - 1) * observed / expected


def _gwet_ac(patterns: Matrix, documents: Matrix, weights: Matrix, scale: Matrix) -> float | None:
    """Return Gwet's AC2 (2014), or AC1 for identity weights. `weights` covers the given grades, `scale` covers the whole scale."""
    grades_of_kind = patterns.sum(axis=1)
    has_several = grades_of_kind > 1
    if not has_several.any():
        return None
    counts, number = patterns[has_several], grades_of_kind[has_several]
    agreeing_pairs = (counts * (counts @ weights - 1)).sum(axis=1)
    agreeing = agreeing_pairs / (number * (number - 1))
    observed = float(agreeing @ documents[has_several] / documents[has_several].sum())

    share_of_grade = documents @ (patterns / grades_of_kind[:, None]) / documents.sum()
    spread = (share_of_grade * (1 - share_of_grade)).sum()
    kinds = len(scale)
    chance = float(scale.sum() * spread / (kinds * (kinds - 1)))
    return None if chance == 1 else (observed - chance) / (1 - chance)
