"""Declares measures of nuggets with half credit, and RAVine's gain. For formulas, see `session_measures.py`."""

import polars as pl
from ir_measures.measures import ParamInfo

from goodgain.errors import InputError
from goodgain.measures.parameters import COMPUTED_RULES
from goodgain.measures.searches import Searches
from goodgain.measures.session_measures import ENOUGH, NUGGETS, declare_of_nuggets

_NUGGET = ["query_id", "nugget"]


def _label_nuggets(searches: Searches) -> pl.DataFrame:
    """Return a row per nugget and graded document: query_id, K, nugget, doc_id, grade, and `seen`, whether it was retrieved."""
    rows = searches.rows
    if searches.upto is not None:
        rows = rows.filter(pl.col("iteration") <= searches.upto)
    seen = rows.select("query_id", "doc_id", seen=True).unique()
    graded = searches.qrels.rows.select("query_id", "doc_id", nugget="iteration", grade="relevance")
    graded = graded.join(searches.lengths.select("query_id", "K"), on="query_id")
    labelled = graded.join(seen, on=["query_id", "doc_id"], how="left")
    return labelled.with_columns(pl.col("seen").fill_null(False))


def _score_nuggets(searches: Searches) -> pl.DataFrame:
    """Return the value of NuggetScore. A query in which no document has the grade `rel` for any nugget has no row."""
    half, full = searches.parameters["rel"], searches.parameters["full"]
    graded = _label_nuggets(searches)
    _check_grades(searches, half, full)

    best = pl.col("grade").filter(pl.col("seen")).max().fill_null(-1.0)  # the best document counts
    half_credit = 0.0 if searches.parameters["strict"] else 0.5
    credit = pl.when(best >= full).then(1.0).when(best >= half).then(half_credit)
    is_supported = (pl.col("grade") >= half).any()
    nuggets = graded.group_by(_NUGGET).agg(credit=credit.otherwise(0.0), is_supported=is_supported)

    nuggets = _weigh_nuggets(nuggets, searches).sort(_NUGGET)
    nuggets = nuggets.filter(pl.col("is_supported").any().over("query_id"))
    weight = pl.col("weight")
    value = (pl.col("credit") * weight).sum() / weight.sum()
    return nuggets.group_by("query_id", maintain_order=True).agg(value=value)


def _check_grades(searches: Searches, half: float, full: float) -> None:
    """Raise `InputError` if grades mean partial support, and none means full support: half credit would be the best value."""
    largest = float(searches.qrels.rows.get_column("relevance").max() or 0)  # type: ignore[arg-type]  # a number
    if half <= largest < full:
        raise InputError(
            f"NuggetScore: no grade of the qrels reaches full={full:g}, so no nugget can have full credit. If the grade "
            f"{largest:g} means full support, write NuggetScore(full={largest:g})"
        )


def _weigh_nuggets(nuggets: pl.DataFrame, searches: Searches) -> pl.DataFrame:
    """Add the column `weight`. With of='vital' all other nuggets are dropped; with of='weighted' they have the weight 0.5."""
    choice = searches.parameters["of"]
    if choice == "all":
        return nuggets.with_columns(weight=1.0)
    vital = searches.qrels.vital
    if vital is None:
        raise InputError(
            f"NuggetScore(of={choice!r}): these qrels have no column vital, so no nugget is known to be vital. Add the column, or "
            "leave out of="
        )

    is_vital = vital.select("query_id", nugget="subtopic", weight=1.0)
    if choice == "vital":
        return nuggets.join(is_vital, on=_NUGGET)
    weighted = nuggets.join(is_vital, on=_NUGGET, how="left")
    return weighted.with_columns(pl.col("weight").fill_null(0.5))


def _share_gain(searches: Searches) -> pl.DataFrame:
    """Return all supporting documents seen / (the pool * K iterations). The pool has at most `ENOUGH` documents of a nugget."""
    supporting = _label_nuggets(searches).filter(pl.col("grade") >= searches.parameters["rel"])
    # numbers in their order, then texts
    number = pl.col("nugget").cast(pl.Int64, strict=False)
    ordered = supporting.sort("query_id", number, "nugget", nulls_last=True)
    # a document counts for its first nugget
    documents = ordered.unique(["query_id", "doc_id"], keep="first", maintain_order=True)

    by_nugget = documents.group_by("query_id", "K", "nugget")
    counted = by_nugget.agg(documents=pl.len(), seen=pl.col("seen").sum())
    pool = pl.col("documents").clip(upper_bound=ENOUGH).sum()
    value = pl.col("seen").sum() / pool / pl.col("K").first()
    return counted.group_by("query_id").agg(value=value)


_FULL = ParamInfo(
    dtype=(int, float), default=2, desc="smallest grade of full support; a grade from rel to below it is partial"
)
_OF = ParamInfo(
    dtype=str,
    choices=["all", "vital", "weighted"],
    default="all",
    desc="the nuggets that count: 'all' (TREC's A), only 'vital' ones (V), or 'weighted', where a nugget that is not vital has "
    "half the weight (W)",
)
NuggetScore = declare_of_nuggets(
    "NuggetScore",
    "Nugget Score",
    "mean over nuggets of the credit of the best document seen by iteration i: 1 for full support, 1/2 for partial support (0 "
    "with strict=True), else 0",
    _score_nuggets,
    source="A, V and W of the TREC RAG track and their strict forms (autonuggetizer), with the documents seen for the answer",
    own=NUGGETS
    | {
        "of": _OF,
        "strict": ParamInfo(dtype=bool, default=False, desc="partial support has no credit"),
        "full": _FULL,
    },
    rules={"strict": COMPUTED_RULES["judged_only"], "full": COMPUTED_RULES["rel"]},
    example=("NuggetScore@1", 0.5),
    remark="it needs qrels that were read with labels='subtopic': column 2 is the nugget; with of='vital', null if no document "
    "supports a vital nugget, where autonuggetizer writes 0",
)
NuggetGain = declare_of_nuggets(
    "NuggetGain",
    "Nugget Gain",
    "documents seen by iteration i that support a nugget / (pool * i), pool = the sum over nuggets of min(supporting documents of "
    "the qrels that no earlier nugget has, 3)",
    _share_gain,
    bounds=("0", ""),
    by_iteration=True,
    source="RAVine (arXiv 2507.16725), search gain; SearchGain is its raw search gain",
    example=("NuggetGain@1", 0.3333333333333333),
    remark="it needs qrels that were read with labels='subtopic': column 2 is the nugget; nuggets count in the order of their ids; "
    "a value can be above 1, because only the pool is capped",
)
