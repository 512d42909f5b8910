"""Declares measures of what a reader gains and reads: expected utility, time-biased gain and U-measure.

They need the lengths of documents. A document that comes again gains nothing and is not read again. For formulas, see
`session_measures.py`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo

from goodgain.errors import InputError, count_of
from goodgain.measures.declaration import declare
from goodgain.measures.good_gain import AT_I
from goodgain.measures.parameters import COMPUTED_RULES, Rule, is_number
from goodgain.measures.searches import Searches
from goodgain.options import spell

_SEARCH = ["query_id", "iteration"]
_NUGGET = ["query_id", "nugget"]


def _compute_utility(searches: Searches) -> pl.DataFrame:
    gains, costs = _expect_gains(searches), _expect_costs(searches)
    both = costs.join(gains, on="query_id", how="left", maintain_order="left")
    value = pl.col("gain").fill_null(0.0) - float(searches.parameters["a"]) * pl.col("cost")
    return both.select("query_id", value=value)


def _normalise_utility(searches: Searches) -> pl.DataFrame:
    """Return the utility, moved and scaled so that the lowest possible one is 0 and the highest possible one is 1."""
    highest, lowest = _find_bounds(searches)
    bounds = searches.lengths.select("query_id", "K").join(highest, on="query_id", how="left").join(lowest, on="K")
    upper = pl.col("gain").fill_null(0.0) - pl.col("least_cost")
    lower = -pl.col("most_cost")

    values = _compute_utility(searches).join(bounds, on="query_id", maintain_order="left")
    share = (pl.col("value") - lower) / (upper - lower)
    return values.select("query_id", value=pl.when(upper > lower).then(share).otherwise(0.0))


def _expect_gains(searches: Searches) -> pl.DataFrame:
    """Return query_id and gain: the sum over nuggets of weight * (1 + gamma + gamma^2 + ...), a term per expected reading."""
    going_on = 1 - float(searches.parameters["p"])
    reached = pl.lit(going_on).pow(pl.col("rank") - 1)
    read = searches.label_rows().filter("is_new").select("query_id", "doc_id", reached=reached)

    # one row per query, nugget and document
    nuggets = _list_nuggets(searches).join(read, on=["query_id", "doc_id"], how="left")
    readings = nuggets.group_by(_NUGGET).agg(pl.col("weight").max(), times=pl.col("reached").sum())
    return _add_up_nuggets(readings, searches)


def _list_nuggets(searches: Searches) -> pl.DataFrame:
    """Return a row per nugget and document that has it: query_id, K, nugget, doc_id, weight.

    Without subtopics in the qrels, each document is a nugget.
    """
    positive = searches.find_positive(by_subtopic=True).rename({"relevance": "weight"})
    nugget = "subtopic" if searches.qrels.has_subtopics else "doc_id"
    return positive.select("query_id", "K", "doc_id", "weight", nugget=nugget)


def _add_up_nuggets(readings: pl.DataFrame, searches: Searches) -> pl.DataFrame:
    gamma = float(searches.parameters["gamma"])
    times = pl.col("times")
    discounted = times if gamma == 1 else (1 - pl.lit(gamma).pow(times)) / (1 - gamma)
    gain = (pl.col("weight") * discounted).sum()
    return readings.sort(_NUGGET).group_by("query_id", maintain_order=True).agg(gain=gain)


def _expect_costs(searches: Searches) -> pl.DataFrame:
    """Return query_id and cost: the expected length of the documents read in each iteration, added up."""
    stopping = float(searches.parameters["p"])
    rows = _add_lengths(searches.label_rows(), searches, pl.col("is_new"))
    reached = pl.lit(1 - stopping).pow(pl.col("rank") - 1)
    cost = pl.col("length") * reached

    if searches.parameters["conv"] == "dd":  # its readers have read no length if they stop at a repeat
        is_last = pl.col("rank") == pl.len().over(_SEARCH)
        stops = pl.when(is_last).then(reached).otherwise(reached * stopping)
        read = pl.col("length").cum_sum().over(_SEARCH)
        cost = cost - pl.when(~pl.col("is_new")).then(stops * read).otherwise(0.0)
    by_query = rows.group_by("query_id", maintain_order=True).agg(cost=cost.sum())
    return searches.lengths.select("query_id").join(by_query, on="query_id", how="left").fill_null(0.0)


def _find_bounds(searches: Searches) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the largest gain by query_id, and `least_cost` and `most_cost` (times a) by K, the number of iterations."""
    a, p, depth = (searches.parameters[name] for name in ("a", "p", "depth"))
    weights = (1 - float(p)) ** np.arange(depth)  # the probability of reaching each rank
    is_dd = searches.parameters["conv"] == "dd"

    by_nugget = _list_nuggets(searches).group_by(*_NUGGET, "K")
    nuggets = by_nugget.agg(pl.col("weight").max(), documents=pl.len())
    kinds = nuggets.select("documents", "K").unique()
    times = []
    for documents, iterations in kinds.iter_rows():
        times.append(_count_readings(documents, iterations, weights, is_dd=is_dd))
    kinds = kinds.with_columns(times=pl.Series(times, dtype=pl.Float64))
    readings = nuggets.join(kinds, on=["documents", "K"])

    lengths = searches.tables["lengths"].get_column("length").sort().to_numpy()
    numbers_of_iterations = searches.lengths.get_column("K").unique().to_list()
    costs = {"K": pl.Series(numbers_of_iterations, dtype=pl.Int64)}
    for name, ordered in (("least_cost", lengths), ("most_cost", lengths[::-1])):
        sums = np.concatenate([[0.0], np.cumsum(ordered)])
        values = []
        for iterations in numbers_of_iterations:
            values.append(float(a) * _read_slots(sums, iterations, weights, is_dd=is_dd))
        costs[name] = pl.Series(values, dtype=pl.Float64)
    return _add_up_nuggets(readings, searches), pl.DataFrame(costs)


def _count_readings(documents: int, iterations: int, weights: np.ndarray, *, is_dd: bool) -> float:
    """Return how often a nugget of so many documents is read at most in a number of iterations."""
    depth = len(weights)
    if is_dd:  # the documents fill one iteration after the other
        full, remainder = divmod(min(documents, depth * iterations), depth)
        return float(full * weights.sum() + weights[:remainder].sum())
    at_rank = np.clip(documents - iterations * np.arange(depth), 0, iterations)  # first ranks first
    return float((at_rank * weights).sum())


def _read_slots(sums: np.ndarray, iterations: int, weights: np.ndarray, *, is_dd: bool) -> float:
    """Return the expected length read in some iterations. Documents fill rank 1 of all, then rank 2 and so on.

    `sums[k]` is the length of the first k documents.
    """
    depth = len(weights)
    documents = len(sums) - 1
    with_rank = np.full(depth, iterations)  # the iterations that have a document at each rank
    if is_dd:  # full iterations: one of them has only its first documents
        last = min(documents, depth * iterations) % depth
        with_rank[last + 1 :] -= 1

    ends = np.minimum(np.cumsum(with_rank), documents)
    starts = np.concatenate([[0], ends[:-1]])
    length_at_rank = sums[ends] - sums[starts]
    return float((length_at_rank * weights).sum())


def _bias_gain(searches: Searches) -> pl.DataFrame:
    """Return time-biased gain: the gain of a good document halves with each `half_life` of seconds spent before it."""
    parameters = searches.parameters
    click, click_other, save = (float(parameters[name]) for name in ("click", "click_other", "save"))
    summary, word, opening = (float(parameters[name]) for name in ("summary", "word", "opening"))
    half_life = float(parameters["half_life"])

    rows = _add_lengths(_label_good(searches), searches, pl.col("is_new"))
    clicks = pl.when("is_good").then(click).when("is_new").then(click_other).otherwise(0.0)
    seconds_if_opened = word * pl.col("length") + opening
    seconds = summary + clicks * seconds_if_opened

    before = seconds.cum_sum().over("query_id") - seconds
    gain = click * save * pl.lit(2.0).pow(-before / half_life)
    return _add_up_good(rows, gain)


def _measure_trail(searches: Searches) -> pl.DataFrame:
    """Return the U-measure: the label of a good document falls linearly to 0 at `L` characters read."""
    parameters = searches.parameters
    snippet, share, most = (float(parameters[name]) for name in ("snippet", "share", "L"))
    rows = _label_good(searches)
    is_opened = pl.col("is_new" if parameters["opened"] == "all" else "is_good")
    rows = _add_lengths(rows, searches, is_opened)

    read = snippet + share * pl.col("length")
    position = read.cum_sum().over("query_id")
    gain = pl.col("relevance") * (1 - position / most).clip(0)
    return _add_up_good(rows, gain)


def _label_good(searches: Searches) -> pl.DataFrame:
    is_good = pl.col("is_new") & (pl.col("relevance") >= searches.parameters["rel"])
    return searches.label_rows().with_columns(is_good=is_good)


def _add_up_good(rows: pl.DataFrame, gain: pl.Expr) -> pl.DataFrame:
    gains = rows.with_columns(gain=pl.when("is_good").then(gain).otherwise(0.0))
    by_query = gains.group_by("query_id", maintain_order=True)
    return by_query.agg(value=pl.col("gain").sum())


def _add_lengths(rows: pl.DataFrame, searches: Searches, is_read: pl.Expr) -> pl.DataFrame:
    """Add the column `length` to results: that of the document where it is read, else 0."""
    lengths = searches.tables["lengths"]
    documents = rows.filter(is_read).select("doc_id").unique()
    documents = documents.join(lengths, on="doc_id", how="left", maintain_order="left")
    without_length = documents.filter(pl.col("length").is_null()).select("doc_id")
    if without_length.height:
        by_spelling = _find_other_spellings(without_length, lengths)
        documents = pl.concat([documents.drop_nulls(), by_spelling.select(documents.columns)])

    joined = rows.join(documents, on="doc_id", how="left", maintain_order="left")
    return joined.with_columns(length=pl.when(is_read).then("length").otherwise(0.0))


def _find_other_spellings(documents: pl.DataFrame, lengths: pl.DataFrame) -> pl.DataFrame:
    """Return doc_id and length of documents whose lengths have another spelling of the same address."""
    from goodgain.counting.joined_addresses import spell_like  # imported when something is scored

    spelled = spell_like(lengths, documents).join(documents, on="doc_id", how="semi")
    by_document = spelled.group_by("doc_id", maintain_order=True)
    with_length = by_document.agg(pl.col("length").max())
    unknown = documents.join(with_length, on="doc_id", how="anti").get_column("doc_id").sort()
    if len(unknown):
        from goodgain.files.bad_rows import quote  # its library takes long to import

        retrieved = count_of(len(unknown), "retrieved document")
        example = quote(unknown[0])
        raise InputError(
            f"{spell('lengths')} has no length of {retrieved}, such as {example}. Add a row for each document of the runs."
        )
    return with_length


def _is_from_0(value: Any) -> bool:
    return is_number(value) and value >= 0


_FROM_0 = Rule("a number from 0", _is_from_0)
_ABOVE_0 = Rule("a number above 0", COMPUTED_RULES["rel"].allows)
_SHARE = COMPUTED_RULES["recall"]


def _number(default: float, description: str) -> ParamInfo:
    return ParamInfo(dtype=(int, float), default=default, desc=description)


def _follow(rule: Rule, names: Sequence[str]) -> dict[str, Rule]:
    return dict.fromkeys(names, rule)


_NEEDS = "it needs lengths="
_declare = partial(declare, {"family": "session", "by_repeats": True, "table": lambda _parameters: "lengths"})
_OF_UTILITY: dict[str, Any] = {
    "bounds": ("-inf", ""),
    "by_iteration": True,
    "rules": _follow(_FROM_0, ["a"]) | _follow(_SHARE, ["p"]),
}
_UTILITY = AT_I | {
    "a": _number(0.001, "cost of a unit of length"),
    "gamma": _number(0.5, "what a nugget is worth each further time that it is read"),
    "p": _number(0.5, "probability of stopping after each result of an iteration"),
    "conv": ParamInfo(
        dtype=str,
        choices=["paper", "dd"],
        default="paper",
        desc="'dd' has the numbers of TREC Dynamic Domain's scorer: a reader who stops at a repeat has read no length, and the "
        "bounds of nEU put the documents of a nugget into one iteration after the other",
    ),
}
_NUGGETS = (
    f"{_NEEDS}; with labels='subtopic' column 2 of the qrels is the nugget, otherwise each document is a nugget; a nugget that two "
    "passages of a document have counts once; values can be negative"
)
EU = _declare(
    "EU",
    "Expected Utility",
    "sum over nuggets of label * (1 - gamma^n) / (1 - gamma) - a * (expected length read), n = the expected number of new "
    "documents read by iteration i that have the nugget; rank r of an iteration is reached with probability (1 - p)^(r - 1)",
    _compute_utility,
    own=_UTILITY,
    source="Yang and Lad, ICTIR 2009; conv='dd': TREC Dynamic Domain 2017, EU of its scorer",
    example=("EU@1", 2.825),
    remark=_NUGGETS,
    **_OF_UTILITY,
)
nEU = _declare(  # noqa: N816  # the n of nDCG
    "nEU",
    "Normalised Expected Utility",
    "(EU@i - lower) / (upper - lower) for i iterations of `depth` results: upper has each nugget's documents at the best ranks "
    "and the shortest documents of lengths=, lower has no nugget and the longest documents",
    _normalise_utility,
    own=_UTILITY | {"depth": ParamInfo(dtype=int, default=5, desc="results of an iteration in the bounds")},
    source="conv='dd': TREC Dynamic Domain 2017, nEU of its scorer",
    example=("nEU@1", 0.43125),
    remark=f"{_NUGGETS}; the bounds depend on all rows of lengths=, so give the lengths of the whole collection",
    **_OF_UTILITY,
)
TBG = _declare(
    "TBG",
    "Time-Biased Gain",
    "sum over new good documents by iteration i of click * save * 2^(-t / half_life), t = the seconds for the results before: "
    "summary + P(click) * (word * length + opening), P(click) = click if good, click_other if not, 0 for a repeat",
    _bias_gain,
    bounds=("0", ""),
    own=AT_I
    | {
        "rel": _number(1, "smallest good label"),
        "half_life": _number(224, "seconds after which half of the readers have stopped"),
        "click": _number(0.64, "probability of opening a good document"),
        "click_other": _number(0.39, "probability of opening another document"),
        "save": _number(0.77, "probability of recognising an opened good document"),
        "summary": _number(4.4, "seconds for the summary of a result"),
        "word": _number(0.018, "seconds for a unit of length, a word"),
        "opening": _number(7.8, "seconds for an opened document besides its words"),
    },
    rules=_follow(_SHARE, ["click", "click_other", "save"])
    | _follow(_FROM_0, ["summary", "word", "opening"])
    | _follow(_ABOVE_0, ["half_life"]),
    source="Smucker and Clarke, SIGIR 2012, with their parameters for TREC 2005 Robust",
    example=("TBG@1", 0.4928),
    remark=f"{_NEEDS}, in words with these parameters",
)
U = _declare(
    "U",
    "U-measure",
    "sum over new good documents by iteration i of label * max(0, 1 - position / L), position = the characters read up to the "
    "end of the document: `snippet` of each result, and `share` of the length of each opened document",
    _measure_trail,
    bounds=("0", ""),
    own=AT_I
    | {
        "rel": _number(1, "smallest good label"),
        "L": _number(132_000, "characters after which nothing is gained"),
        "snippet": _number(200, "characters that are read of each result"),
        "share": _number(0.2, "share of an opened document that is read"),
        "opened": ParamInfo(
            dtype=str, choices=["good", "all"], default="good", desc="the documents that are opened; repeats are not"
        ),
    },
    rules=_follow(_FROM_0, ["snippet"]) | _follow(_SHARE, ["share"]) | _follow(_ABOVE_0, ["L"]),
    source="Sakai and Dou, SIGIR 2013; what is read of a result is a choice",
    example=("U@1", 2.995),
    remark=f"{_NEEDS}, in characters with these parameters; for an agent that reads its results in full, write "
    "U(snippet=0,share=1,opened='all')",
)
