"""Declares measures of iterations that need all results, not only the ledger (counts per iteration).

A formula gets the results of whole queries (`Searches`), and returns a frame with the columns query_id and value. A query without
a row has the value 0, or null if the measure declares `null_if`. NaN becomes null.
"""

from functools import partial
from typing import Any

import polars as pl
from ir_measures.measures import ParamInfo

from goodgain.errors import InputError
from goodgain.measures.declaration import SessionMeasure, declare, find_meaning
from goodgain.measures.good_gain import AT_I, GOOD
from goodgain.measures.names import is_computed_here, parse_if_measure, parse_inner, parse_measure
from goodgain.measures.parameters import Rule
from goodgain.measures.searches import Searches

_KEY = ["query_id", "iteration"]
#: Supporting documents that cover a nugget.
ENOUGH = 3


def _score_each_search(searches: Searches) -> pl.DataFrame:
    """Return the value of PerIteration: that of `measure` in each iteration as a ranking of its own, joined as `how` says."""
    inner = parse_measure(searches.parameters["measure"])
    value_of_search = _score_rankings(inner, searches)
    last = pl.col("K")
    joined = searches.lengths.join(value_of_search, on="query_id", how="left")
    joined = joined.filter(pl.col("iteration").is_null() | (pl.col("iteration") <= last))

    value = pl.col("value").fill_null(0.0)
    # An iteration without results has no row here, and counts as 0.
    lacks = pl.len() < last.first()
    rules = {
        "mean": value.sum() / last.first(),
        "sum": value.sum(),
        "max": pl.max_horizontal(value.max(), pl.when(lacks).then(0.0)),
        "min": pl.min_horizontal(value.min(), pl.when(lacks).then(0.0)),
        "first": value.filter(pl.col("iteration") == 1).sum(),
        "last": value.filter(pl.col("iteration") == last).sum(),
    }

    by_query = joined.sort(_KEY).group_by("query_id")
    return by_query.agg(value=rules[searches.parameters["how"]])


def _score_rankings(inner: Any, searches: Searches) -> pl.DataFrame:
    """Return the value of `inner` for each iteration with results, as a ranking of its own: query_id, iteration and value."""
    from goodgain.measures.ranking_values import score_ranking  # narwhals takes long to import, and waits

    # each iteration is a query called `search`
    numbered = searches.iterations.select(*_KEY, search=pl.format("{} {}", "iteration", "query_id"))
    ranking, labels = (
        frame.join(numbered, on=_KEY, maintain_order="left").drop("query_id").rename({"search": "query_id"})
        for frame in (searches.rows, searches.label())
    )
    ranking = ranking.select("query_id", "doc_id", "score")
    values = score_ranking([inner], ranking, labels, numbered.get_column("search"))
    values = values.select(search="query_id", value=str(inner))

    with_results = searches.rows.select(_KEY).unique()
    return numbered.join(values, on="search").join(with_results, on=_KEY, how="semi")


def _count_nuggets(searches: Searches) -> pl.DataFrame:
    """Return how many documents support each nugget (`documents`), and how many of them were retrieved (`seen`).

    Queries without a supported nugget are left out.
    """
    labels = searches.qrels.rows.select("query_id", "doc_id", "relevance", subtopic="iteration")
    if searches.parameters.get("vital"):
        if searches.qrels.vital is None:
            raise InputError(
                "NuggetRecall(vital=True): these qrels have no column vital, so no nugget is known to be vital. Add the column, "
                "or leave out vital=True"
            )
        labels = labels.join(searches.qrels.vital, on=["query_id", "subtopic"], how="semi")

    rows = searches.rows
    if searches.upto:
        rows = rows.filter(pl.col("iteration") <= searches.upto)
    seen = rows.select("query_id", "doc_id").unique().with_columns(seen=True)
    labels = labels.join(searches.lengths, on="query_id")
    labels = labels.join(seen, on=["query_id", "doc_id"], how="left")

    supports = pl.col("relevance") >= searches.parameters["rel"]
    was_seen = pl.col("seen").fill_null(False)
    by_nugget = labels.group_by("query_id", "subtopic", maintain_order=True)
    nuggets = by_nugget.agg(documents=supports.sum(), seen=(supports & was_seen).sum())
    return nuggets.filter((pl.col("documents") > 0).any().over("query_id"))


def _recall_subtopics(searches: Searches) -> pl.DataFrame:
    supported = _count_nuggets(searches).filter(pl.col("documents") > 0)
    value = (pl.col("seen") > 0).mean()
    return supported.group_by("query_id").agg(value=value)


def _recall_nuggets(searches: Searches) -> pl.DataFrame:
    value = (pl.col("seen") > 0).mean()
    return _count_nuggets(searches).group_by("query_id").agg(value=value)


def _cover_nuggets(searches: Searches) -> pl.DataFrame:
    supported = _count_nuggets(searches).filter(pl.col("documents") > 0)
    seen = pl.col("seen").clip(upper_bound=ENOUGH)
    share = seen / pl.col("documents").clip(upper_bound=ENOUGH)
    return supported.sort("query_id", "subtopic").group_by("query_id").agg(value=share.mean())


def _is_over_one_ranking(name: Any) -> bool:
    measure = parse_if_measure(name)
    if measure is None or isinstance(measure, SessionMeasure):
        return False
    return is_computed_here(measure) and find_meaning(measure).family != "graded"


_declare = partial(declare, {"family": "session"})
PerIteration = _declare(
    "PerIteration",
    "A measure per iteration",
    "the measure of each iteration 1..i as a ranking of its own, then their mean, max, min, sum, first or last; 0 for an "
    "iteration without results",
    _score_each_search,
    bounds=("0", ""),
    source="Jiang and Allan, ICTIR 2016; TREC iKAT, mean over turns",
    own=AT_I
    | {
        "measure": ParamInfo(dtype=str, default="nDCG@10", desc="a measure over one ranking that is computed here"),
        "how": ParamInfo(
            dtype=str,
            choices=["mean", "max", "min", "sum", "first", "last"],
            default="mean",
            desc="what is made of the values",
        ),
    },
    rules={
        "measure": Rule(
            "a measure over one ranking that is computed here, and not a Graded one, such as 'nDCG@10'",
            _is_over_one_ranking,
        )
    },
    inner=parse_inner,
    example=("PerIteration(measure='P@2')@2", 0.75),
    by_iteration=True,
    remark="the better direction and the threshold are those of the measure; if lower is better, a query that was not searched "
    "has no value; a document that comes again counts again; "
    "scores order an iteration, as they order a run with one iteration",
)
SubtopicRecall = _declare(
    "SubtopicRecall",
    "Subtopic Recall",
    "subtopics with a good document by iteration i / subtopics with one in the qrels (0 where none has one)",
    _recall_subtopics,
    source="Zhai, Cohen and Lafferty, SIGIR 2003, with documents found so far for the first k",
    own=GOOD,
    example=("SubtopicRecall@1", 0.5),
    labels="subtopic",
    remark="it needs qrels that were read with labels='subtopic': column 2 is the subtopic",
)

NUGGETS = {"rel": ParamInfo(dtype=(int, float), default=1, desc="smallest grade that supports a nugget")} | AT_I
declare_of_nuggets = partial(
    _declare,
    own=NUGGETS,
    labels="subtopic",
    remark="it needs qrels that were read with labels='subtopic': column 2 is the nugget",
    null_if="no document supports a nugget of a query",
)
NuggetRecall = declare_of_nuggets(
    "NuggetRecall",
    "Nugget Recall",
    "nuggets with a document seen by iteration i whose grade is at least rel / nuggets; with vital=True only vital nuggets",
    _recall_nuggets,
    source="nuggets of TREC RAG (autonuggetizer), with the union of the documents seen",
    own=NUGGETS | {"vital": ParamInfo(dtype=bool, default=False, desc="only vital nuggets count")},
    example=("NuggetRecall@1", 0.5),
    remark="it needs qrels that were read with labels='subtopic': column 2 is the nugget; with vital=True, null if no document "
    "supports a vital nugget",
)
NuggetCoverage = declare_of_nuggets(
    "NuggetCoverage",
    "Nugget Coverage",
    "mean over nuggets of min(supporting documents seen by iteration i, 3) / min(supporting documents of the qrels, 3); nuggets "
    "without a supporting document do not count",
    _cover_nuggets,
    source="RAVine (arXiv 2507.16725)",
    example=("NuggetCoverage@1", 0.5),
)
