"""The cube test of TREC Dynamic Domain: how fast a session fills its subtopics. Each measure is one declaration."""

from __future__ import annotations

from functools import partial

import polars as pl
from ir_measures.measures import ParamInfo

from goodgain.measures.declaration import Declaration, declare
from goodgain.measures.good_gain import AT_I
from goodgain.measures.session_measures import Searches

_SUBTOPIC = ["query_id", "subtopic"]
_PLACE = ["query_id", "iteration", "rank"]


def _walk(searches: Searches) -> pl.DataFrame:
    """Return query_id, speed: CT after each document, for queries with a label above 0."""
    gamma, height = (float(searches.parameters[name]) for name in ("gamma", "height"))
    rows, positive = searches.label_rows(), searches.find_positive(by_subtopic=True)
    new = rows.filter("is_new")
    if searches.qrels.has_subtopics:
        new = new.drop("relevance").join(positive, on=["query_id", "doc_id"], maintain_order="left")
    else:
        new = new.filter(pl.col("relevance") > 0).with_columns(subtopic=pl.lit(""))
    step = pl.lit(gamma).pow(pl.int_range(1, pl.len() + 1).over(_SUBTOPIC)) * pl.col("relevance")
    filled = new.with_columns(step=step).with_columns(filled=pl.col("step").cum_sum().over(_SUBTOPIC).clip(0, height))
    added = pl.col("filled") - pl.col("filled").shift(fill_value=0.0).over(_SUBTOPIC)
    steps = filled.with_columns(added=added).group_by(_PLACE, maintain_order=True).agg(pl.col("added").sum())
    # An iteration without results counts as a document without relevance.
    upto = searches.iterations.join(searches.lengths, on="query_id").filter(pl.col("iteration") <= pl.col("T"))
    places = upto.select("query_id", "iteration").join(rows, on=["query_id", "iteration"], how="left").sort(_PLACE)
    walked = places.join(steps, on=_PLACE, how="left", maintain_order="left")
    subtopics = positive.group_by("query_id").agg(subtopics=pl.col("subtopic").n_unique())
    gain = pl.col("added").fill_null(0.0).cum_sum().over("query_id") / pl.col("subtopics")
    walked = walked.join(subtopics, on="query_id", how="inner", maintain_order="left")
    return walked.select("query_id", speed=gain / height / pl.col("iteration"))


def _compute_speed(searches: Searches) -> pl.DataFrame:
    return _walk(searches).group_by("query_id", maintain_order=True).agg(value=pl.col("speed").last())


def _average_speed(searches: Searches) -> pl.DataFrame:
    return _walk(searches).group_by("query_id", maintain_order=True).agg(value=pl.col("speed").mean())


def _normalise_speed(searches: Searches) -> pl.DataFrame:
    gamma, height = (float(searches.parameters[name]) for name in ("gamma", "height"))
    positive = searches.find_positive(by_subtopic=True)
    place = pl.int_range(pl.len()).over(_SUBTOPIC)
    best = positive.sort(*_SUBTOPIC, "relevance", descending=[False, False, True]).with_columns(place=place)
    step = pl.lit(gamma).pow(pl.col("place")) * pl.col("relevance")
    reached = best.filter(pl.col("place") <= 5 * pl.col("K")).group_by(*_SUBTOPIC, "K", maintain_order=True)
    bound = reached.agg(filled=step.sum().clip(0, height)).group_by("query_id", "K", maintain_order=True)
    bounds = bound.agg(bound=pl.col("filled").mean() / height)
    values = _compute_speed(searches).join(bounds, on="query_id")
    return values.select("query_id", value=pl.col("value") / (pl.col("bound") / pl.col("K")))


#: The declaration of every measure below, by name.
DECLARED: dict[str, Declaration] = {}
_COMMON = {
    "better": "up",
    "bounds": ("0", "1"),
    "family": "session",
    "source": "TREC Dynamic Domain 2017, ct, act and nct of its scorer",
    "own": AT_I
    | {
        "gamma": ParamInfo(dtype=(int, float), default=0.5, desc="discount of each further document of a subtopic"),
        "height": ParamInfo(dtype=(int, float), default=5, desc="gain that fills a subtopic"),
    },
    "by_iteration": True,
    "remark": "labels count linearly, negative ones 0, and rel has no effect; qrels without subtopics are one subtopic; a document "
    "that comes again adds nothing",
}
_declare = partial(declare, DECLARED, _COMMON)
CT = _declare(
    "CT",
    "Cube Test",
    "gain / (height * iterations up to i): the n-th document of a subtopic adds gamma^n label until the sum reaches height, "
    "and the gain is the mean of these sums over subtopics with a label above 0",
    _compute_speed,
    example=("CT@2", 0.2),
)
ACT = _declare(
    "ACT",
    "Average Cube Test",
    "mean over the results up to i of the value of CT after that result; an iteration without results counts as one result",
    _average_speed,
    example=("ACT@2", 0.2416666666666667),
)
nCT = _declare(  # noqa: N816  # the n of nDCG
    "nCT",
    "Normalised Cube Test",
    "CT@i / bound: the labels of each subtopic by descending size, the first 5 i + 1 of them, the n-th with gamma^(n-1), at most "
    "height; their mean over subtopics / (height * i)",
    _normalise_speed,
    bounds=("0", ""),
    example=("nCT@2", 0.4444444444444445),
    remark="the bound divides by i, CT by the iterations that the query has, so a value can be above 1; qrels without "
    "subtopics are one subtopic",
)
