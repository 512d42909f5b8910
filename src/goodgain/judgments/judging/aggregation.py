"""Aggregates the grades of several judges to one label per document, and maps labels to another scale."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, count_of, notice
from goodgain.files.bad_rows import quote
from goodgain.formats import Qrels
from goodgain.formats.label_rules import keep_whole_labels
from goodgain.formats.qrels import load_qrels
from goodgain.judgments.judging.grade_table import DOCUMENT, WHOLE_DOCUMENT, Grades, read_grades
from goodgain.judgments.scales import SCALES, Scale, ScaleLike, find_scale
from goodgain.options import spell

_GRADE, _WEIGHT = pl.col("grade"), pl.col("weight")
_FOR, _AGAINST = ((_WEIGHT * _GRADE.eq(grade)).sum() for grade in (1.0, 0.0))
_WHOLE = _WEIGHT.filter(_GRADE.is_not_null()).sum()
#: The smallest difference of two grades that is a disagreement.
_APART = 2
_WEIGHTED = ("majority", "mean")

#: Name of a rule -> the label of a document; null if the document has no grade.
RULES: dict[str, pl.Expr] = {
    "majority": pl.when(_FOR > _AGAINST).then(1.0).when(_AGAINST > _FOR).then(0.0),
    "mean": pl.when(_WHOLE > 0).then((_GRADE * _WEIGHT).sum() / _WHOLE),
    "median": _GRADE.median(),
    "max": _GRADE.max(),
    "min": _GRADE.min(),
    "first": _GRADE.drop_nulls().first(),
}


@dataclass(frozen=True)
class ScaleMap:
    """A map from grades to labels: a table, or thresholds. A grade below all thresholds gets the label 0."""

    text: str
    labels: Mapping[float, float]
    is_thresholds: bool

    @property
    def is_binary(self) -> bool:
        return {0.0, *self.labels.values()} <= {0.0, 1.0}

    def apply(self, values: pl.Series, *, remedy: str = "add the value to the table") -> pl.Series:
        """Return the label of each value. Raise `InputError` if a value is not in the table; the message ends with `remedy`."""
        if self.is_thresholds:
            return self._apply_thresholds(values)
        mapped = values.replace_strict(
            list(self.labels), list(self.labels.values()), default=None, return_dtype=pl.Float64
        )
        missing = values.filter(mapped.is_null() & values.is_not_null())
        if len(missing):
            raise InputError(
                f"the value {missing[0]:g} is not in the map {self.text}. Write thresholds, which take any value "
                f"(such as '>=2 -> 1'), or {remedy}"
            )
        return mapped

    def _apply_thresholds(self, values: pl.Series) -> pl.Series:
        thresholds = pl.Series(sorted(self.labels), dtype=pl.Float64)
        labels = pl.Series([0.0, *(self.labels[threshold] for threshold in thresholds)])
        number_reached = thresholds.search_sorted(values.fill_null(0.0), side="right")
        label = pl.when(values.is_not_null()).then(labels.gather(number_reached))
        return pl.select(label=label).to_series()


#: A table {grade: label}, or text: `0:0, 1:0, 2:1, 3:1` or `>=7 -> 1`.
MapLike = Mapping[float, float] | str


def find_map(map_: MapLike) -> ScaleMap:
    """Parse a map of grades to labels: a dict {grade: label}, or a text such as `0:0, 1:0, 2:1` or `>=7 -> 2, >=4 -> 1`.

    >>> find_map(">=7 -> 1").apply(pl.Series([7.5, 6.0, None])).to_list()
    [1.0, 0.0, None]
    """
    is_thresholds = False
    try:
        if isinstance(map_, Mapping):
            pairs = [(float(grade), float(label)) for grade, label in map_.items()]
        else:
            parts = [part.strip() for part in map_.split(",")]
            is_thresholds = all(part.startswith(">=") for part in parts)
            pairs = []
            for part in parts:
                grade, label = part[2:].split("->") if is_thresholds else part.split(":")
                pairs.append((float(grade), float(label)))
    except (TypeError, ValueError, AttributeError):
        pairs = []

    labels = dict(pairs)
    are_finite = all(math.isfinite(value) for pair in pairs for value in pair)
    if not labels or len(labels) < len(pairs) or not are_finite:
        raise InputError(
            f"{map_!r} is not a map of grades. Write a table such as '0:0, 1:0, 2:1, 3:1', or thresholds such as '>=7 -> 1'"
        )
    return ScaleMap(str(map_), labels, is_thresholds)


@checks_kinds
def aggregate(
    grades: Any,
    *,
    how: str | None = None,
    scale: ScaleLike | None = None,
    map: MapLike | None = None,  # noqa: A002  # the word of the field
    map_first: bool = False,
    file_labels: Sequence[float] | None = None,
    weights: Mapping[str, float] | None = None,
    urls: Literal["join", "keep"] = "join",
) -> pl.DataFrame:
    """Return one label per (query, document) from the grades of several judges.

    Args:
        grades: a frame with the columns query_id, doc_id, judge and grade (null for no grade), or a file. The file has the
            same columns (CSV, JSON Lines or Parquet), or is a sheet of `goodgain pool`, qrels, `qrels_jg` (judge in column
            2), a Quepid book or an OpenSearch judgment list. Give several sources as a list, or as {judge: source}.
        how: `majority` (0 or 1 by most votes, null for a tie), `mean`, `median`, `max`, `min`, or `first` (in the order of
            files and rows). Default: `majority` for binary grades (`scale="binary"`, or a map to 0 and 1 with `map_first`),
            else `mean`.
        scale: `binary`, `graded` (0..3), `good-gain` (0..4), `detail` (1..10), `esci`, `umbrela`, `0..4`, a list of grades, or
            {grade: meaning}. Every grade must be on the scale. Default: all numbers are allowed.
        map: a table {0: 0, 1: 0, 2: 1, 3: 1}, or thresholds such as `>=7 -> 1`, applied to the aggregated label.
        map_first: apply the map to each grade, before aggregation.
        file_labels: a label for each source, such as [1, 2] for evidence and answers. The label replaces every grade above
            0 of its source. A document gets its largest label, unless `how` is given.
        weights: {judge: weight above 0}, for a mean or majority. Judges without an entry have the weight 1. If `label`
            wrote the grades, a key can be the name of the model.
        urls: whether different spellings of one web address are one document (`join`) or several documents (`keep`). With
            `join`, the largest grade of each judge counts.

    Returns:
        A frame with query_id, doc_id, relevance (Int64 if all labels are whole, else Float64; null without a grade or a
        majority), n_judges (number of grades), n_null (number of null grades) and tie (whether several grades share the most
        votes). Documents are in the order of first appearance. Each nugget of autonuggetizer has its own row, with its
        text in the column `iteration`. `read_qrels(..., labels="subtopic")` gives a document the largest label of its nuggets.

    Raises:
        InputError: grades cannot be read, a judge gave a document two grades, a grade is not on the scale or not in the
            map, a weight is for an unknown judge, or weights are given for a rule other than `mean` or `majority`.

    Source: the rules of SearchTweak.

    >>> votes = {"anna": {"q": {"a": 1, "b": 1}}, "ben": {"q": {"a": 1, "b": 0}}, "carla": {"q": {"a": 0, "b": None}}}
    >>> aggregate(votes, scale="binary").rows()
    [('q', 'a', 1, 3, 0, False), ('q', 'b', None, 2, 1, True)]
    >>> evidence, answers = {"q": {"a": 1, "b": 1, "c": 0}}, {"q": {"b": 1}}
    >>> aggregate({"evidence": evidence, "answers": answers}, file_labels=[1, 2])["relevance"].to_list()
    [1, 2, 0]
    """
    if map_first and map is None:
        raise InputError(f"{spell('map_first', True)} has no map to apply. Give {spell('map')} too")
    grade_scale = None if scale is None else find_scale(scale)
    labels = None if map is None else find_map(map)
    read = read_grades(grades, scale=grade_scale, urls=urls)
    frame = read.frame
    if scale is None and map is None and file_labels is None:
        _warn_of_scale(frame.get_column("grade"))

    if file_labels is not None:
        frame = _label_by_source(read, file_labels)
        how = how or "max"
    if labels is not None and map_first:
        frame = frame.with_columns(grade=labels.apply(frame.get_column("grade")))
    rule = _choose_rule(how, frame, labels if map_first else grade_scale)
    _check_rule(rule, read, frame)

    weighted = frame.with_columns(weight=_weigh(frame.get_column("judge"), weights, rule))
    aggregated = _aggregate(weighted, rule)
    if labels is not None and not map_first:
        remedy = f"map the grades before they are aggregated ({spell('map_first', True)})"
        relevance = aggregated.get_column("relevance").cast(pl.Float64)
        aggregated = aggregated.with_columns(relevance=labels.apply(relevance, remedy=remedy))
    return keep_whole_labels(aggregated)


def _warn_of_scale(grades: pl.Series) -> None:
    """Give a notice if a grade is above the largest label of good gain: without a map, low grades on a long scale count as good."""
    largest: Any = grades.max()
    if largest is not None and largest > SCALES["good-gain"].grades[-1]:
        notice(
            "scale_of_grades",
            f"the largest grade is {largest:g}, but labels of 2 or more already count as good. Map the grades "
            f"to labels ({spell('map')}). If the grades are already labels, name their scale ({spell('scale')}).",
        )


def _check_rule(rule: str, grades: Grades, frame: pl.DataFrame) -> None:
    """Raise an InputError if the grades do not suit the rule: a majority needs 0 and 1, and `first` needs an order of rows."""
    if rule == "majority":
        remedy = f"map the grades to 0 and 1 first ({spell('map', '>=2 -> 1')}, {spell('map_first', True)})"
        otherwise = f"and a majority vote needs 0 and 1. Choose {spell('how', 'mean')}, or {remedy}"
        grades.check_among(frame.get_column("grade"), (0.0, 1.0), otherwise)
    if rule == "first" and not grades.ordered:
        raise InputError(
            f"{spell('how', 'first')}: rows of a database have no order, so there is no first grade. Choose another rule, or sort "
            "and collect the frame"
        )


def _label_by_source(grades: Grades, labels: Sequence[float]) -> pl.DataFrame:
    """Replace each grade above 0 by the label of its source."""
    if len(labels) != len(grades.sources):
        number = f"{count_of(len(labels), 'label')} for {count_of(len(grades.sources), 'source')} of grades"
        raise InputError(f"{spell('file_labels', [*labels])} has {number}; give one label for each source")
    if not all(isinstance(label, (int, float)) and 0 < label < math.inf for label in labels):
        raise InputError(f"{spell('file_labels', [*labels])}: give numbers above 0; grades of 0 in a file stay 0")
    label = pl.col("source").replace_strict(dict(enumerate(map(float, labels))), return_dtype=pl.Float64)
    return grades.frame.with_columns(grade=pl.when(_GRADE > 0).then(label).otherwise(_GRADE))


def _choose_rule(how: str | None, frame: pl.DataFrame, scale: Scale | ScaleMap | None) -> str:
    """Return `how` or, if it is None, `majority` for a binary scale, else `mean`.

    `scale` is the scale of the grades to aggregate.
    """
    if how is not None:
        if how not in RULES:
            raise InputError(f"{spell('how', how)} is not a rule. Choose {', '.join(RULES)}")
        return how
    if scale is not None:
        return "majority" if scale.is_binary else "mean"
    has_repeats = frame.select(DOCUMENT).is_duplicated().any()
    grades = frame.get_column("grade").drop_nulls()
    if has_repeats and len(grades) and grades.is_in([0.0, 1.0]).all():
        notice(
            "scale_of_grades",
            f"all grades are 0 or 1, and without a scale the label is their mean. Give {spell('scale', 'binary')} for the majority",
        )
    return "mean"


def _weigh(judges: pl.Series, weights: Mapping[str, float] | None, rule: str) -> pl.Series:
    """Return the weight of each row's judge: 1 if `weights` names neither the judge nor its model (the judge's name before `@`)."""
    if weights is not None and rule not in _WEIGHTED:
        raise InputError(
            f"{spell('how', rule)} takes no weights. Choose {' or '.join(_WEIGHTED)}, or leave out {spell('weights')}"
        )

    models = judges.str.split("@").list.first()
    weight_of_row = pl.Series("weight", [1.0]).new_from_index(0, len(judges))
    for judge, weight in (weights or {}).items():
        is_named = (judges == judge) | (models == judge)
        if not is_named.any():
            names = ", ".join(judges.unique(maintain_order=True)[:5])
            raise InputError(f"weights: no judge is called {quote(judge)}. The judges are {names}")
        if not 0 < weight < math.inf:
            raise InputError(f"weights: {quote(judge)} has the weight {weight}. Give a number above 0")
        weight_of_row = weight_of_row.set(is_named, float(weight))
    return weight_of_row


def _aggregate(frame: pl.DataFrame, rule: str) -> pl.DataFrame:
    """Return a row per document and subtopic: its label, the numbers of grades and of missing grades, and whether it is a tie.

    The column `iteration` has the subtopic. It is left out if all grades are of whole documents.
    """
    labels = frame.group_by("document", maintain_order=True).agg(
        pl.col("query_id").first(),
        pl.col("subtopic").first().alias("iteration"),
        pl.col("doc_id").first(),
        RULES[rule].cast(pl.Float64).alias("relevance"),
        _GRADE.count().cast(pl.Int64).alias("n_judges"),
        _GRADE.null_count().cast(pl.Int64).alias("n_null"),
    )
    labels = labels.join(count_ties(frame), on="document", how="left", maintain_order="left")
    labels = labels.drop("document").with_columns(pl.col("tie").fill_null(False))
    has_subtopics = (labels.get_column("iteration") != WHOLE_DOCUMENT).any()
    return labels if has_subtopics else labels.drop("iteration")


def count_ties(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with `document` and `tie` (whether several grades share the most votes). Ungraded documents have no row."""
    vote = pl.col("weight").sum() if "weight" in frame.columns else pl.len()
    votes = frame.filter(_GRADE.is_not_null()).group_by("document", "grade").agg(votes=vote)
    most = votes.group_by("document").agg(pl.col("votes").max())
    leading = votes.join(most, on=["document", "votes"], how="semi")
    return leading.group_by("document").agg(tie=pl.len() > 1)


def find_disputed(grades: Any) -> pl.DataFrame:
    """Return `query_id` and `doc_id` of documents with grades (of one subtopic) that differ by 2 or more, or tie for most votes.

    >>> find_disputed({"anna": {"q": {"a": 0, "b": 3, "c": 2}}, "ben": {"q": {"a": 4, "b": 3, "c": 1}}}).rows()
    [('q', 'a'), ('q', 'c')]
    """
    frame = read_grades(grades).frame
    documents = frame.group_by("document", maintain_order=True).agg(
        pl.col(DOCUMENT).first(), difference=_GRADE.max() - _GRADE.min()
    )
    documents = documents.join(count_ties(frame), on="document", how="left", maintain_order="left")
    disputed = documents.filter(pl.col("tie") | (pl.col("difference") >= _APART))
    return disputed.select(DOCUMENT).unique(maintain_order=True)


@checks_kinds
def rescale(qrels: Any, map: MapLike) -> Qrels:  # noqa: A002  # the word of the field
    """Return qrels with the labels of another scale.

    Args:
        qrels: any input of `read_qrels`.
        map: a table {0: 0, 1: 0, 2: 1, 3: 1}, or thresholds such as `>=7 -> 1`. A label below all thresholds becomes 0.

    Raises:
        InputError: the qrels cannot be read, or a label is not in the table.

    >>> rescale({"q": {"a": 7.5, "b": 3}}, ">=7 -> 1").frame.rows()
    [('q', '0', 'a', 1), ('q', '0', 'b', 0)]
    """
    source = load_qrels(qrels)
    labels = find_map(map)
    remedy = (
        f"aggregate the grades with {spell('map')} and {spell('map_first', True)}, to map grades before aggregation"
    )

    def apply(frame: pl.DataFrame) -> pl.DataFrame:
        mapped = labels.apply(frame.get_column("relevance").cast(pl.Float64), remedy=remedy)
        return keep_whole_labels(frame.with_columns(relevance=mapped))

    return source.with_rows(apply(source.frame), apply(source.rows), ungraded=source.ungraded)
