"""Declares measures over a whole session: DCG, RBP, and the cube test of TREC Dynamic Domain."""

import math
from functools import partial
from typing import Any

import polars as pl
from ir_measures.measures import ParamInfo

from goodgain.measures.declaration import declare
from goodgain.measures.good_gain import AT_I
from goodgain.measures.not_in_ir_measures import MAX_REL
from goodgain.measures.parameters import COMPUTED_RULES, Rule
from goodgain.measures.searches import Searches

#: The default k with conv='jiang': the number of results of an iteration that count.
_JIANGS_K = 9


def _weigh(parameters: dict[str, Any]) -> pl.Expr:
    """Return the discount of a result by its rank and its iteration."""
    b, bq = float(parameters["b"]), float(parameters["bq"])
    rank, iteration = pl.col("rank"), pl.col("iteration")
    if parameters["conv"] == "dd":
        return 1 / ((1 + rank.log(b)) * (1 + iteration.log(bq)))
    discount_of_rank = (rank + b - 1).log(b)
    return 1 / (discount_of_rank * (iteration + bq - 1).log(bq))


def _count_results(parameters: dict[str, Any]) -> Any:
    default = _JIANGS_K if parameters["conv"] == "jiang" else None
    return parameters.get("k", default)


def _compute_dcg(searches: Searches) -> pl.DataFrame:
    """Return the discounted gain of each query. With conv='dd' a repeated document gains nothing; else it gains again."""
    label = pl.col("relevance")
    is_dd = searches.parameters["conv"] == "dd"
    gain = 2.0**label - 1
    if is_dd:
        gain = pl.when("is_new").then(label).otherwise(0.0)

    rows = searches.label_rows(add_subtopics=is_dd)
    results = _count_results(searches.parameters)
    if results is not None:
        rows = rows.filter(pl.col("rank") <= results)
    by_query = rows.group_by("query_id", maintain_order=True)
    return by_query.agg(value=(gain * _weigh(searches.parameters)).sum())


def _normalise_dcg(searches: Searches) -> pl.DataFrame:
    """Return the discounted gain divided by that of an ideal session. Queries without a label above 0 have no row."""
    label = pl.col("relevance")
    is_dd = searches.parameters["conv"] == "dd"
    gain = label if is_dd else 2.0**label - 1

    # one row per query and document with a label above 0, the best first
    documents = searches.find_positive(add_subtopics=is_dd).sort("query_id", label, descending=[False, True])
    place = pl.int_range(1, pl.len() + 1).over("query_id")
    gains = documents.select("query_id", "K", place=place, gain=gain)
    if gains.is_empty():
        return gains.select("query_id", value="gain")

    most = gains["place"].max()
    weights = pl.concat(_weigh_places(number, most, searches.parameters) for number in gains["K"].unique())
    weighted = gains.join(weights, on=["K", "place"]).sort("query_id", "place")
    ideal = weighted.group_by("query_id").agg(ideal=(pl.col("gain") * pl.col("weight")).sum())
    values = _compute_dcg(searches).join(ideal, on="query_id")
    return values.select("query_id", value=pl.col("value") / pl.col("ideal"))


def _weigh_places(number: int, most: Any, parameters: dict[str, Any]) -> pl.DataFrame:
    """Return the weights of the best places of an ideal session of `number` iterations: K, place and weight."""
    results = _count_results(parameters) or most
    slots = []  # (iteration, rank)
    times = 1.0
    if parameters["conv"] == "dd":
        depth = min(results, parameters["depth"])
        # The m * r - 1 slots at earlier iterations and ranks weigh at least as much as a slot.
        for iteration in range(1, min(number, most) + 1):
            ranks = min(depth, most // iteration)
            slots += [(iteration, rank) for rank in range(1, ranks + 1)]
    else:  # each iteration returns the best documents again
        slots = [(1, rank) for rank in range(1, min(results, most) + 1)]
        bq = float(parameters["bq"])
        times = math.fsum(1 / math.log(m + bq - 1, bq) for m in range(1, number + 1))

    frame = pl.DataFrame(slots, schema=["iteration", "rank"], orient="row")
    weights = frame.select(weight=_weigh(parameters) * times).sort("weight", descending=True)
    place = pl.int_range(1, pl.len() + 1)
    return weights.select("weight", K=pl.lit(number, pl.Int64), place=place)


def _compute_rbp(searches: Searches) -> pl.DataFrame:
    """Return session RBP: a result at rank k of iteration i weighs `onwards` ^ (i - 1) * `down` ^ (k - 1)."""
    b, p, max_rel = (float(searches.parameters[name]) for name in ("b", "p", "max_rel"))
    onwards, down = (p - b * p) / (1 - b * p), b * p
    weight_of_iteration = pl.lit(onwards).pow(pl.col("iteration") - 1)
    weight = weight_of_iteration * pl.lit(down).pow(pl.col("rank") - 1)
    gain = (2.0 ** pl.col("relevance") - 1) / 2.0**max_rel
    rows = searches.label_rows().group_by("query_id", maintain_order=True)
    return rows.agg(value=(gain * weight).sum() * (1 - p))


def _average_dcg(searches: Searches) -> pl.DataFrame:
    values = _compute_dcg(searches).join(searches.lengths, on="query_id")
    return values.select("query_id", pl.col("value") / pl.col("T"))


_CONV = {
    "conv": ParamInfo(
        dtype=str,
        choices=["dd", "jiang"],
        default="dd",
        desc="'dd': a document counts its label, once (with subtopics the sum of its labels), and rank r of iteration m is "
        "divided by (1 + log_b r)(1 + log_bq m); 'jiang': it counts 2^label - 1 each time, divided by "
        "log_b(r + b - 1) log_bq(m + bq - 1)",
    ),
    "k": ParamInfo(dtype=int, desc="results of an iteration that count; by default 9 with conv='jiang', else all"),
    "b": ParamInfo(dtype=(int, float), default=2, desc="base of the logarithm of ranks"),
    "bq": ParamInfo(dtype=(int, float), default=4, desc="base of the logarithm of iterations"),
}
_DD = "TREC Dynamic Domain 2017, sDCG and nsDCG of its scorer"
_JIANG = "conv='jiang': Järvelin et al., ECIR 2008, in the form of Jiang and Allan, ICTIR 2016"
_COMMON = {
    "bounds": ("0", ""),
    "family": "session",
    "own": AT_I | _CONV,
    "source": f"{_DD}; {_JIANG}",
    "by_iteration": True,
}
_declare = partial(declare, _COMMON)
SessionDCG = _declare(
    "SessionDCG",
    "Session DCG",
    "sum over iterations m <= i and ranks r of gain / (discount of r * discount of m)",
    _compute_dcg,
    example=("SessionDCG@2", 3.6666666666666665),
    remark="negative labels count 0, and rel has no effect; with labels='subtopic', conv='dd' adds up a document's labels, and "
    "conv='jiang' takes the largest; SDCG of ir_measures is another measure, scaled DCG",
)
nSessionDCG = _declare(  # noqa: N816  # the n of nDCG
    "nSessionDCG",
    "Normalised Session DCG",
    "SessionDCG@i / that of an ideal session of i iterations, also if the query has fewer; 0 without a label above 0",
    _normalise_dcg,
    own=AT_I | _CONV | {"depth": ParamInfo(dtype=int, default=5, desc="results in an ideal iteration, with conv='dd'")},
    # The ideal session has a weight for each iteration.
    rules={
        "cutoff": Rule(
            "a number of iterations, from 1 to 1,000,000", lambda value: type(value) is int and 1 <= value <= 10**6
        )
    },
    example=("nSessionDCG@2", 0.6875),
    remark="the ideal of conv='dd' puts each document into the best slot, that of conv='jiang' returns the best k documents in "
    "every iteration; with more than `depth` results in an iteration a value can be above 1",
)
SessionDCGq = _declare(
    "SessionDCGq",
    "Session DCG per iteration",
    "SessionDCG@i with the same parameters / iterations up to i, iterations without results included",
    _average_dcg,
    own=AT_I | _CONV | {"conv": ParamInfo(**{**vars(_CONV["conv"]), "default": "jiang"})},
    example=("SessionDCGq@2", 7.3299158704764995),
    source="sDCG/q: Kanoulas et al., SIGIR 2011, in the form of Jiang and Allan, ICTIR 2016",
    remark="conv is 'jiang' by default, so SessionDCGq is SessionDCG(conv='jiang') per iteration",
)
SessionRBP = _declare(
    "SessionRBP",
    "Session Rank-Biased Precision",
    "(1 - p) * sum over iterations m <= i and ranks r of ((p - bp) / (1 - bp))^(m - 1) (bp)^(r - 1) j, j = (2^label - 1) / "
    "2^max_rel",
    _compute_rbp,
    bounds=("0", "1"),
    own=AT_I
    | {
        "b": ParamInfo(
            dtype=(int, float), default=0.8, desc="how much a user prefers the next result to the next search"
        ),
        "p": ParamInfo(dtype=(int, float), default=0.9, desc="persistence"),
        "max_rel": MAX_REL,
    },
    rules={"b": COMPUTED_RULES["recall"]},
    example=("SessionRBP@2", 0.0805535714285714),
    source="the user model of session rank-biased precision (Lipani, Carterette and Yilmaz, ICTIR 2019): after each result "
    "the user stops with probability 1 - p, else reads the next result with probability b, or sends the next query",
    remark="the value is (1 - p) times the gain that this user is expected to meet; the gain j is our choice; a document "
    "that comes again counts again; negative labels count 0, and a label above max_rel is an error; with b=1 "
    "only the first iteration counts",
)

_SUBTOPIC = ["query_id", "subtopic"]
_PLACE = ["query_id", "iteration", "rank"]


def _walk(searches: Searches) -> pl.DataFrame:
    """Return the value of the cube test (`speed`) after each document. Queries without a label above 0 have no rows."""
    rows = searches.label_rows()
    positive = searches.find_positive(by_subtopic=True)
    steps = _fill_subtopics(rows, positive, searches)

    # An iteration without results counts as a document without relevance.
    iterations = searches.iterations.join(searches.lengths, on="query_id")
    iterations = iterations.filter(pl.col("iteration") <= pl.col("T")).select("query_id", "iteration")
    places = iterations.join(rows, on=["query_id", "iteration"], how="left").sort(_PLACE)
    walked = places.join(steps, on=_PLACE, how="left", maintain_order="left")
    subtopics = positive.group_by("query_id").agg(subtopics=pl.col("subtopic").n_unique())
    walked = walked.join(subtopics, on="query_id", how="inner", maintain_order="left")

    filled = pl.col("added").fill_null(0.0).cum_sum().over("query_id")
    gain = filled / pl.col("subtopics")
    height = float(searches.parameters["height"])
    return walked.select("query_id", speed=gain / height / pl.col("iteration"))


def _fill_subtopics(rows: pl.DataFrame, positive: pl.DataFrame, searches: Searches) -> pl.DataFrame:
    """Return what each new document adds to its subtopics: query_id, iteration, rank and added."""
    gamma, height = (float(searches.parameters[name]) for name in ("gamma", "height"))
    new = rows.filter("is_new")
    if searches.qrels.has_subtopics:
        new = new.drop("relevance").join(positive, on=["query_id", "doc_id"], maintain_order="left")
    else:
        new = new.filter(pl.col("relevance") > 0).with_columns(subtopic=pl.lit(""))

    discount = pl.lit(gamma).pow(pl.int_range(1, pl.len() + 1).over(_SUBTOPIC))
    steps = new.with_columns(step=discount * pl.col("relevance"))
    filled = pl.col("step").cum_sum().over(_SUBTOPIC).clip(0, height)
    steps = steps.with_columns(filled=filled)
    before = pl.col("filled").shift(fill_value=0.0).over(_SUBTOPIC)
    steps = steps.with_columns(added=pl.col("filled") - before)
    return steps.group_by(_PLACE, maintain_order=True).agg(pl.col("added").sum())


def _compute_speed(searches: Searches) -> pl.DataFrame:
    by_query = _walk(searches).group_by("query_id", maintain_order=True)
    return by_query.agg(value=pl.col("speed").last())


def _average_speed(searches: Searches) -> pl.DataFrame:
    by_query = _walk(searches).group_by("query_id", maintain_order=True)
    return by_query.agg(value=pl.col("speed").mean())


def _normalise_speed(searches: Searches) -> pl.DataFrame:
    """Return the cube test divided by its bound. As in the scorer of TREC, an iteration counts five documents in the bound."""
    gamma, height = (float(searches.parameters[name]) for name in ("gamma", "height"))
    positive = searches.find_positive(by_subtopic=True)
    place = pl.int_range(pl.len()).over(_SUBTOPIC)
    best = positive.sort(*_SUBTOPIC, "relevance", descending=[False, False, True])
    best = best.with_columns(place=place).filter(pl.col("place") <= 5 * pl.col("K"))

    step = pl.lit(gamma).pow(pl.col("place")) * pl.col("relevance")
    by_subtopic = best.group_by(*_SUBTOPIC, "K", maintain_order=True)
    filled = by_subtopic.agg(filled=step.sum().clip(0, height))
    by_query = filled.group_by("query_id", "K", maintain_order=True)
    bounds = by_query.agg(bound=pl.col("filled").mean() / height)

    values = _compute_speed(searches).join(bounds, on="query_id")
    bound_at_end = pl.col("bound") / pl.col("K")
    return values.select("query_id", value=pl.col("value") / bound_at_end)


_OF_CUBES = {
    "bounds": ("0", "1"),
    "source": "TREC Dynamic Domain 2017, ct, act and nct of its scorer",
    "own": AT_I
    | {
        "gamma": ParamInfo(dtype=(int, float), default=0.5, desc="discount of each further document of a subtopic"),
        "height": ParamInfo(dtype=(int, float), default=5, desc="gain that fills a subtopic"),
    },
    "remark": "labels count linearly, negative ones 0, and rel has no effect; qrels without subtopics are one subtopic; a document "
    "that comes again adds nothing",
}
_declare_cube = partial(_declare, **_OF_CUBES)
CT = _declare_cube(
    "CT",
    "Cube Test",
    "gain / (height * iterations up to i): the n-th document of a subtopic adds gamma^n label until the sum reaches height, "
    "and the gain is the mean of these sums over subtopics with a label above 0",
    _compute_speed,
    example=("CT@2", 0.2),
)
ACT = _declare_cube(
    "ACT",
    "Average Cube Test",
    "mean over the results up to i of the value of CT after that result; an iteration without results counts as one result",
    _average_speed,
    example=("ACT@2", 0.2416666666666667),
)
nCT = _declare_cube(  # noqa: N816  # the n of nDCG
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
