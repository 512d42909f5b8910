"""Declares measures of iterations that need all results or a second table, not only the ledger (counts per iteration).

A formula gets the results of whole queries, and returns a frame with the columns query_id and value. A query without a row has
the value 0, or null if the measure declares `null_if`. NaN becomes null.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import polars as pl
from ir_measures.measures import ParamInfo

from goodgain.errors import InputError
from goodgain.measures.declaration import NOT_SEARCHED, Declaration, SessionMeasure, declare
from goodgain.measures.good_gain import AT_I, GOOD
from goodgain.measures.parameters import read_parameters
from goodgain.options import spell

if TYPE_CHECKING:
    from goodgain.formats import Qrels

_KEY = ["query_id", "iteration"]
#: The most searches in a budget: the measure is computed after each search.
_MOST_SEARCHES = 1_000
#: Supporting documents that cover a nugget.
_ENOUGH = 3


@dataclass(frozen=True)
class Searches:
    """The results of judged queries.

    `rows` has the columns `query_id`, `iteration` (1..N), `number` (the iteration in the run file), `doc_id` and `score`, in the
    order of ranks. `iterations` has `query_id`, `iteration` and `number`. Iterations without results have a row too.
    `tables["results"]` has one row per search: `query_id`, `iteration`, `search_query` and `arguments`. `tables["costs"]` has
    `query_id`, `iteration`, `over` ("tokens", "cost" or "seconds") and `spend` (the sum up to this iteration).
    """

    rows: pl.DataFrame
    iterations: pl.DataFrame
    qrels: Qrels
    upto: int | None  # the iteration after @; None: the last iteration of each query
    parameters: dict[str, Any]  # the parameters of the measure that are given or have a default value
    tables: Mapping[str, pl.DataFrame]

    @cached_property
    def lengths(self) -> pl.DataFrame:
        """A frame with `query_id`, `T` (number of iterations up to `upto`) and `K` (`upto`, or `T` if `upto` is None)."""
        n = pl.col("iteration").max()
        lengths = self.iterations.group_by("query_id", maintain_order=True).agg(T=n, K=n)
        upto = pl.lit(self.upto, pl.Int64)
        return lengths if self.upto is None else lengths.with_columns(T=pl.min_horizontal("T", upto), K=upto)

    def find_positive(self, *, add_subtopics: bool = False, by_subtopic: bool = False) -> pl.DataFrame:
        """Return the labels above 0, with the columns `query_id`, `K`, `doc_id` and `relevance`.

        A document with several subtopics has its largest label, or with `add_subtopics` the sum of its labels. With
        `by_subtopic`, each label has its own row, with a column `subtopic` (empty texts if the qrels have no subtopics).
        """
        has_subtopics = self.qrels.has_subtopics
        labels = self.qrels.rows if has_subtopics else self.qrels.largest
        positive = labels.filter(pl.col("relevance") > 0).join(self.lengths, on="query_id", maintain_order="left")
        key, relevance = ["query_id", "K", "doc_id"], pl.col("relevance").cast(pl.Float64)
        if by_subtopic:
            return positive.select(*key, relevance, subtopic="iteration" if has_subtopics else pl.lit(""))
        return positive.group_by(key, maintain_order=True).agg(relevance.sum() if add_subtopics else relevance.max())

    def label_rows(self, *, add_subtopics: bool = False) -> pl.DataFrame:
        """Return `rows` up to iteration `upto`, with `rank`, `is_new` and `relevance` (0 for a negative or missing label)."""
        rows = self.rows if self.upto is None else self.rows.filter(pl.col("iteration") <= self.upto)
        rank = pl.int_range(1, pl.len() + 1).over("query_id", "iteration")
        rows = rows.with_columns(rank=rank, is_new=pl.struct("query_id", "doc_id").is_first_distinct())
        if self.qrels.labels is None:
            labels, key = self.find_positive(add_subtopics=add_subtopics), ["query_id", "doc_id"]
        else:
            labels, key = self.label(), ["query_id", "number", "doc_id"]
        labelled = rows.join(labels.select(*key, "relevance"), on=key, how="left", maintain_order="left")
        return labelled.with_columns(pl.col("relevance").cast(pl.Float64).clip(0).fill_null(0.0))

    def label(self) -> pl.DataFrame:
        """Return a label per iteration and document, with query_id, iteration and number (as in `rows`), doc_id and relevance.

        If the qrels have labels per iteration, a label for one iteration takes precedence over a label for all iterations.
        """
        labels = self.qrels.frame.select("query_id", "doc_id", "relevance", at="iteration")
        joined = self.iterations.join(labels, on="query_id")
        if self.qrels.labels is None:
            return joined
        here = joined.filter(pl.col("at").is_null() | (pl.col("at") == pl.col("number"))).sort("at", nulls_last=True)
        return here.unique(["query_id", "number", "doc_id"], keep="first")


def _score_each_search(searches: Searches) -> pl.DataFrame:
    from goodgain.measures.names import parse_measure  # which imports this module, as the next one does
    from goodgain.measures.ranking_values import score_ranking

    inner = parse_measure(searches.parameters["measure"])
    named = searches.iterations.select(*_KEY, search=pl.format("{} {}", "iteration", "query_id"))
    ranking, labels = (
        frame.join(named, on=_KEY, maintain_order="left").drop("query_id").rename({"search": "query_id"})
        for frame in (searches.rows, searches.label())
    )
    values = score_ranking([inner], ranking.select("query_id", "doc_id", "score"), labels, named.get_column("search"))
    found = named.join(values.select(search="query_id", value=str(inner)), on="search")
    found = found.join(searches.rows.select(_KEY).unique(), on=_KEY, how="semi")
    value, last = pl.col("value").fill_null(0.0), pl.col("K")
    joined = searches.lengths.join(found, on="query_id", how="left").filter(
        pl.col("iteration").is_null() | (pl.col("iteration") <= last)
    )
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
    return joined.sort(_KEY).group_by("query_id").agg(value=rules[searches.parameters["how"]])


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
    rows = searches.rows.filter(pl.col("iteration") <= searches.upto) if searches.upto else searches.rows
    seen = rows.select("query_id", "doc_id").unique().with_columns(seen=True)
    labels = labels.join(searches.lengths, on="query_id").join(seen, on=["query_id", "doc_id"], how="left")
    supports = pl.col("relevance") >= searches.parameters["rel"]
    nuggets = labels.group_by("query_id", "subtopic", maintain_order=True).agg(
        documents=supports.sum(), seen=(supports & pl.col("seen").fill_null(False)).sum()
    )
    return nuggets.filter((pl.col("documents") > 0).any().over("query_id"))


def _recall_subtopics(searches: Searches) -> pl.DataFrame:
    supported = _count_nuggets(searches).filter(pl.col("documents") > 0)
    return supported.group_by("query_id").agg(value=(pl.col("seen") > 0).mean())


def _cover_nuggets(searches: Searches) -> pl.DataFrame:
    supported = _count_nuggets(searches).filter(pl.col("documents") > 0)
    share = pl.col("seen").clip(upper_bound=_ENOUGH) / pl.col("documents").clip(upper_bound=_ENOUGH)
    return supported.sort("query_id", "subtopic").group_by("query_id").agg(value=share.mean())


def _share_repeated(searches: Searches) -> pl.DataFrame:
    rows = searches.tables["results"].join(searches.lengths, on="query_id", how="semi", maintain_order="left")
    number, text = pl.col("iteration").rank("dense").over("query_id"), pl.col("search_query")
    rows = rows.filter(number <= searches.upto) if searches.upto else rows
    normalised = text.map_elements(
        lambda given: " ".join(unicodedata.normalize("NFKC", given).casefold().split()) or None, pl.String
    )
    rows = rows.with_columns(text=normalised)
    is_repeated = pl.col("text").is_not_null() & ~pl.struct("query_id", "text", "arguments").is_first_distinct()
    by_query = rows.with_columns(repeated=is_repeated).group_by("query_id", maintain_order=True)
    return by_query.agg(value=pl.when(pl.col("text").count() > 0).then(pl.col("repeated").mean()))


def _find_area(searches: Searches) -> pl.DataFrame:
    from goodgain.counting.ledger import count  # what counts is imported when something is scored
    from goodgain.measures.ledger_values import final_values, running_values
    from goodgain.measures.names import find_inner
    from goodgain.schema import EMPTY_DOC

    over, budget = searches.parameters["over"], searches.parameters["budget"]
    inner: Any = find_inner(AreaOver(**searches.parameters))
    rows = searches.iterations.join(searches.rows.select(*_KEY, "doc_id"), on=_KEY, how="left")
    run = rows.select("query_id", pl.col("doc_id").fill_null(EMPTY_DOC), iteration="number")
    qrels = searches.qrels.frame.join(searches.lengths, on="query_id", how="semi")
    counts = count(qrels, run, rels=[inner.rel], labels=searches.qrels.labels)
    if over == "searches":
        values = final_values([inner(cutoff=i) for i in range(1, budget + 1)], counts)
        return values.select("query_id", value=pl.mean_horizontal(pl.exclude("query_id")))
    of_ledger = counts[inner.rel].ledger.select(*_KEY, spend=pl.col("R").cum_sum().over("query_id").cast(pl.Float64))
    spends = of_ledger if over == "results" else searches.tables["costs"].filter(over=over).select(*_KEY, "spend")
    values = running_values([inner], counts).join(spends, on=_KEY, how="left").sort(_KEY)
    begin, end = pl.col("spend"), pl.col("spend").shift(-1).over("query_id").fill_null(budget)
    steps = values.with_columns(step=pl.col(str(inner)) * (end.clip(0, budget) - begin.clip(0, budget)))
    area = pl.when(begin.is_not_null().all()).then(pl.col("step").sum() / budget).otherwise(math.nan)
    return steps.group_by("query_id", maintain_order=True).agg(value=area)


DECLARED: dict[str, Declaration] = {}
_declare = partial(declare, DECLARED, {"family": "session"})
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

_NUGGETS = {"rel": ParamInfo(dtype=(int, float), default=1, desc="smallest grade that supports a nugget")} | AT_I
_declare_of_nuggets = partial(
    _declare,
    own=_NUGGETS,
    labels="subtopic",
    remark="it needs qrels that were read with labels='subtopic': column 2 is the nugget",
    null_if="no document supports a nugget of a query",
)
NuggetRecall = _declare_of_nuggets(
    "NuggetRecall",
    "Nugget Recall",
    "nuggets with a document seen by iteration i whose grade is at least rel / nuggets; with vital=True only vital nuggets",
    lambda searches: _count_nuggets(searches).group_by("query_id").agg(value=(pl.col("seen") > 0).mean()),
    source="nuggets of TREC RAG (autonuggetizer), with the union of the documents seen",
    own=_NUGGETS | {"vital": ParamInfo(dtype=bool, default=False, desc="only vital nuggets count")},
    example=("NuggetRecall@1", 0.5),
)
NuggetCoverage = _declare_of_nuggets(
    "NuggetCoverage",
    "Nugget Coverage",
    "mean over nuggets of min(supporting documents seen by iteration i, 3) / min(supporting documents of the qrels, 3); nuggets "
    "without a supporting document do not count",
    _cover_nuggets,
    source="RAVine (arXiv 2507.16725)",
    example=("NuggetCoverage@1", 0.5),
)

#: Name -> declaration: the measures that need a table beside run and qrels, with search strings or costs.
BESIDE_THE_RUN: dict[str, Declaration] = {}
_declare_beside = partial(declare, BESIDE_THE_RUN, {"family": "session", "by_iteration": True})
RepeatedQueries = _declare_beside(
    "RepeatedQueries",
    "Repeated Queries",
    "search calls up to iteration i that repeat an earlier one of the query / search calls up to i; a call repeats another if its "
    "search string is equal in NFKC, case-folded, with white space collapsed, and all other arguments are equal",
    _share_repeated,
    better="down",
    source="searches that repeat a search, as in the loop detection of agents",
    own=AT_I,
    example=("RepeatedQueries@2", 0.5),
    counts_repeats=True,
    null_if=f"{NOT_SEARCHED}, or its searches have no strings",
    table=lambda _parameters: "results",
    remark="it needs results=, and labels and rel have no effect on it",
)
AreaOver = _declare_beside(
    "AreaOver",
    "Area Over a Budget",
    "with over='searches' the mean of the measure at iterations 1..budget; else (1/budget) * the integral of the measure over "
    "spends from 0 to budget: its value at the last iteration that is paid, 0 before the first",
    _find_area,
    bounds=("0", ""),
    source="the area under `curve` with over=, as anytime evaluation takes it",
    own={
        "measure": ParamInfo(dtype=str, default="nCG", desc="a good-gain measure or count without @"),
        "over": ParamInfo(
            dtype=str,
            choices=["searches", "results", "tokens", "cost", "seconds"],
            default="searches",
            desc="what is spent; tokens, cost and seconds need costs=",
        ),
        "budget": ParamInfo(dtype=(int, float), required=True, desc="the most that is spent"),
        "rel": ParamInfo(dtype=(int, float), desc=GOOD["rel"].desc),
    },
    example=("AreaOver(measure='CG',budget=2)", 4.0),
    takes=lambda given: (
        given["over"] != "searches" or (type(given["budget"]) is int and given["budget"] <= _MOST_SEARCHES)
    ),
    null_if=f"costs= is needed and {NOT_SEARCHED}, or costs= lacks the query",
    table=lambda given: "" if given["over"] in ("searches", "results") else "costs",
    remark="the better direction is that of the measure; if lower is better, a query that was not searched has no value; a "
    "budget of searches is a whole number up to 1,000",
)


#: The columns of `Searches.rows`.
_ROWS = {
    "query_id": pl.String,
    "number": pl.Int64,
    "doc_id": pl.String,
    "rank": pl.Int64,
    "score": pl.Float64,
    "iteration": pl.Int64,
}


class SessionScores:
    """Computes session measures (from all results of all iterations) for a run that is read in batches of whole queries."""

    def __init__(self, measures: Sequence[SessionMeasure], qrels: Qrels, tables: Mapping[str, pl.DataFrame]) -> None:
        for measure in (one for one in measures if one.table and one.table not in tables):
            told = f"{measure} needs {spell(measure.table)}"
            raise InputError(f"{told}: give the table that goodgain convert --{measure.table} writes.")
        if lacking := [one.NAME for one in measures if one.declaration.labels and not qrels.has_subtopics]:
            raise InputError(
                f"{lacking[0]}: these qrels have no subtopics, so each value would be 1 or 0. Give "
                f"qrels whose column 2 is the subtopic, and read them with {spell('labels', 'subtopic')}; or use Success"
            )
        for measure in measures:
            measure.declaration.check_scale(measure, qrels.frame.get_column("relevance"))
        self._measures, self._qrels, self._tables = measures, qrels, tables
        self._values: dict[str, list[pl.DataFrame]] = {str(measure): [] for measure in measures}
        self._searched: list[pl.Series] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Add all rows of a batch of queries. The columns are query_id, iteration, doc_id, rank and score."""
        from goodgain.schema import EMPTY_DOC  # narwhals takes long to import, and waits

        rows = rows.filter(pl.col("query_id").is_in(self._qrels.query_ids.implode()))
        rows = rows.rename({"iteration": "number"}).sort("query_id", "number", "rank", maintain_order=True)
        rows = rows.with_columns(iteration=pl.col("number").rank("dense").over("query_id").cast(pl.Int64))
        results = rows.filter(pl.col("doc_id") != EMPTY_DOC)
        iterations = rows.select("query_id", "iteration", "number").unique()
        self._searched.append(iterations.get_column("query_id").unique())
        for measure in self._measures:
            self._compute(measure, results, iterations)

    def _compute(self, measure: SessionMeasure, results: pl.DataFrame, iterations: pl.DataFrame) -> None:
        parameters = read_parameters(measure)
        searches = Searches(results, iterations, self._qrels, measure.cutoff, parameters, self._tables)
        self._values[str(measure)].append(measure.declaration.formula(searches))

    def finish(self) -> pl.DataFrame:
        """Return a frame with the column `query_id` (all queries of the qrels, sorted), and a Float64 column per measure.

        A query that was not searched has the value of one search without results. `evaluation.py` removes values that the rule
        in `is_null_without_search` excludes.
        """
        from goodgain.measures.names import is_null_without_search  # which imports this module

        query_ids = self._qrels.query_ids
        searched = pl.concat([query_ids.clear(), *self._searched])
        not_searched = query_ids.filter(~query_ids.is_in(searched.implode())).to_frame("query_id")
        one_search = not_searched.with_columns(iteration=pl.lit(1, pl.Int64), number=pl.lit(1, pl.Int64))
        no_results = pl.DataFrame(schema=_ROWS)

        values = query_ids.to_frame("query_id")
        for measure in self._measures:
            name, has_nulls = str(measure), bool(measure.declaration.null_if)
            if has_nulls and not_searched.height and not is_null_without_search(measure):
                self._compute(measure, no_results, one_search)
            parts = [pl.DataFrame(schema={"query_id": pl.String, "value": pl.Float64}), *self._values[name]]
            of_measure = pl.concat(parts).rename({"value": name})
            values = values.join(of_measure, on="query_id", how="left", maintain_order="left")
            if not has_nulls:
                values = values.with_columns(pl.col(name).fill_null(0.0))
        return values
