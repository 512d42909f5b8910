"""Counts the documents that systems returned, opened and cited, and the good documents lost between these stages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.counting.coverage import join_examples, warn_if_none_is_judged
from goodgain.counting.joined_addresses import spell_like
from goodgain.errors import InputError, count_of, notice
from goodgain.files.notebooks import load_pictures
from goodgain.files.tables import Table, sort_ids, write_html
from goodgain.files.writing import spell_as_known
from goodgain.formats.qrels import Qrels, load_qrels
from goodgain.formats.query_tables import read_uses, select_system
from goodgain.measures.parameters import check_rel
from goodgain.measures.thresholds import warn_of_rel
from goodgain.options import OPTIONS, check_choice, spell
from goodgain.schema import EMPTY_DOC

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Column of a query -> its better direction. The columns of a stage are null where the log does not record the stage.
FUNNEL: dict[str, str | None] = {
    "returned": None,
    "opened": None,
    "cited": None,
    "good_returned": "up",
    "good_opened": "up",
    "good_cited": "up",
    "lost_unopened": "down",
    "lost_uncited": "down",
    "citation_coverage": None,
    "opening_precision": "up",
    "opening_judged": None,
    "opening_recall": "up",
    "citation_precision": "up",
    "citation_judged": None,
    "citation_recall": "up",
    "evidence_recall": "up",
    "opens_per_good": "down",
}
#: The column whose mean is a ratio of sums. A query with opens and no good document counts, but has a null in this column.
RATIO_OF_SUMS = "opens_per_good"
STAGES = ("returned", "opened", "cited")
#: Columns with what the two systems of an explanation did with a document.
USES_OF = ("use_base", "use_new")
_COUNTS = ("opens", "failed_opens")
_RUN = ["system", "replicate"]
_QUERY = ["query_id", *_RUN]
#: Columns that need recorded opens, and columns that need a recorded answer; `lost_uncited` needs both.
_OF_OPENS = ("opened", "good_opened", "lost_unopened", "lost_uncited", "judged_opened", "opens")
_OF_CITATIONS = ("cited", "good_cited", "lost_uncited", "judged_cited")


@dataclass(frozen=True, eq=False, repr=False)
class Funnel:
    """How many documents, and how many good documents, were returned, opened and cited.

    Attributes:
        frame: a row per system: system, queries (judged queries), queries_with_opens (queries whose opens are known),
            queries_with_answer (queries whose citations are known), and the mean of each column in `per_query`. For
            `opens_per_good`, the sum of opens is divided by the sum of good_opened.
        per_query: a frame that `compare(..., outcomes=)` takes: query_id, system, replicate, and a column for each count and share.
        rel: the smallest good label.

    >>> import goodgain as gg
    >>> import polars as pl
    >>> use = {"query_id": "q", "system": "agent", "doc_id": ["a", "b"], "returned_at": 1, "opened_at": [1, None]}
    >>> found = gg.funnel({"q": {"a": 3, "b": 2}}, pl.DataFrame(use | {"opens": [1, 0], "cited": [True, False]}))
    >>> found.frame.select("good_returned", "good_opened", "good_cited").row(0)
    (2.0, 1.0, 1.0)
    """

    frame: pl.DataFrame
    per_query: pl.DataFrame
    rel: float

    def count_queries(self) -> pl.DataFrame:
        """Count the queries behind each mean in `frame`. The result has a row per system and a column per mean."""
        has_value = [pl.col(name).count() > 0 for name in FUNNEL if name != RATIO_OF_SUMS]
        has_ratio = (pl.col("opened").count() > 0).alias(RATIO_OF_SUMS)
        by_query = self.per_query.group_by("query_id", "system", maintain_order=True)
        by_system = by_query.agg(*has_value, has_ratio).group_by("system", maintain_order=True)
        return by_system.agg(pl.col(*FUNNEL).sum().cast(pl.Int64))

    @checks_kinds
    def in_order(self, systems: Sequence[str]) -> Funnel:
        """Return the funnel with the systems in this order. Other systems come last."""
        place_of = {name: k for k, name in enumerate(systems)}
        place = pl.col("system").replace_strict(place_of, default=len(systems))
        return replace(self, frame=self.frame.sort(place, maintain_order=True))

    def __repr__(self) -> str:
        queries = count_of(self.frame.item(0, "queries"), "query", "queries")
        return f"Funnel({', '.join(self.frame['system'])}; {queries}, rel={self.rel:g})"

    def __str__(self) -> str:
        return str(self.frame)

    def plot(self) -> Figure:
        """Return a figure of the documents returned, opened and cited, as `plots.funnel` draws it."""
        figure: Figure = load_pictures().draw_funnel(self)
        return figure

    def tables(self) -> list[Table]:
        """Return the table that a notebook shows: a row per system, a column per mean."""
        return [Table.of_frame(self.frame, places=4)]

    def _repr_html_(self) -> str:
        return write_html(self.tables())


@checks_kinds
def funnel(qrels: Any, uses: Any, rel: float = 2, *, urls: str = "join") -> Funnel:
    """Count the documents that each query returned, opened and cited, and the good documents among them.

    Args:
        qrels: what `read_qrels` takes. A document is good if its largest label is at least `rel`.
        uses: what `convert --uses` wrote or `read_traces(..., uses=True)` returned: a file, a frame, or a list of files and frames.
        rel: the smallest good label.
        urls: with `join`, ids that spell the same URL differently count as one document. With `keep`, each of these ids
            counts as a document.

    Returns:
        A `Funnel`. GoodPool below is the number of good documents in the qrels. The columns for each query:

        - returned, opened, cited, and good_returned, good_opened, good_cited: documents at each stage. A good document
          that was opened by a link counts as opened, and not as returned.
        - lost_unopened: good documents that were returned and never opened. lost_uncited: good documents that were opened
          and not cited.
        - citation_coverage: 1 if the answer cites anything, else 0.
        - opening_precision = good_opened / opened; 0 if nothing was opened. citation_precision = good_cited / cited; 0 if
          nothing was cited.
        - opening_judged: the judged share of the opened documents; null if nothing was opened. citation_judged: the judged
          share of the cited documents; null if nothing was cited.
        - opening_recall = good_opened / GoodPool, citation_recall = good_cited / GoodPool, evidence_recall =
          good_returned / GoodPool; 0 where GoodPool is 0.
        - opens_per_good = opens / good_opened; null where good_opened is 0.

        For a judged query that `uses` lacks, the system counts as having used no document. Values that need opens are null if the
        log records no opens. Values that need citations are null if the log records no answer. Means leave null values out.

    Raises:
        InputError: a table cannot be read, or no judged query has uses.
        MeasureError: rel is not a number above 0.

    >>> qrels = {"q": {"d1": 3, "d2": 2, "d3": 2, "d4": 0}}
    >>> uses = pl.DataFrame({
    ...     "query_id": "q", "system": "agent", "doc_id": ["d1", "d4", "d2", "d9"], "returned_at": [1, 1, 2, None],
    ...     "opened_at": [None, 1, 2, 2], "opens": [0, 1, 1, 1], "cited": [False, True, True, False]})
    >>> funnel(qrels, uses).frame.select("good_returned", "good_opened", "good_cited", "opens_per_good").row(0)
    (2.0, 1.0, 1.0, 3.0)
    """
    check_rel(rel)
    check_choice("urls", urls)
    judged = load_qrels(qrels)
    rows = read_uses(uses)
    labels = judged.largest.filter(pl.col("relevance").is_not_null())
    good = pl.col("relevance") >= rel
    pools = labels.group_by("query_id", maintain_order=True).agg(pool=good.sum())

    spelled = spell_as_known(rows, labels)
    used = _spell_uses(spelled, labels) if urls == "join" else spelled
    same_rows = spelled.join(used, on=[*_QUERY, "doc_id"], how="semi", nulls_equal=True)
    if joined := spelled.height - same_rows.height:
        notice(
            "joined_addresses",
            "ids that spell one web address in several ways count as one document in the table of uses: "
            f"{count_of(joined, 'row')}. {spell('urls', 'keep')} keeps them apart.",
        )

    rows = used.join(pools, on="query_id", how="semi", maintain_order="left")
    if rows.is_empty():
        raise InputError("The uses share no query with the qrels. Check that both have the same query ids.")
    warn_of_rel(labels, rel)
    labelled = rows.join(labels, on=["query_id", "doc_id"], how="left", maintain_order="left")
    without_pool = used.join(pools, on="query_id", how="anti")
    unjudged = without_pool.get_column("query_id").unique().sort()
    if len(unjudged):
        number = count_of(len(unjudged), "query", "queries")
        notice(
            "uses_without_judgments",
            f"The uses of {number} without judgments are left out ({join_examples(unjudged)}).",
        )

    _warn_of_other_spellings(labelled, labels)
    per_query = _count_stages(labelled, pools, good)
    _give_notices(per_query)
    means = _average_funnel(per_query)
    return Funnel(means, sort_ids(per_query.select(*_QUERY, *FUNNEL), within=["system", "replicate"]), rel)


def _average_funnel(per_query: pl.DataFrame) -> pl.DataFrame:
    """Return `Funnel.frame`: means over the runs of each query, then over queries. Nulls are left out of means."""
    by_query = per_query.drop("replicate", "is_absent").group_by("query_id", "system", maintain_order=True)
    by_system = by_query.mean().group_by("system", maintain_order=True)
    return by_system.agg(
        queries=pl.len().cast(pl.Int64),
        queries_with_opens=pl.col("opened").count().cast(pl.Int64),
        queries_with_answer=pl.col("cited").count().cast(pl.Int64),
        **{name: pl.col(name).mean() for name in FUNNEL if name != RATIO_OF_SUMS},
        opens_per_good=_divide(pl.col("opens").sum(), pl.col("good_opened").sum()),
    )


def _spell_uses(uses: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Give each page in `uses` one URL, if possible that of `documents`. Then merge the rows with the same query, run and id."""
    spelled = spell_like(uses, documents)
    key = [*_QUERY, "doc_id"]
    if not spelled.select(key).is_duplicated().any():
        return spelled

    counts = []
    for name in _COUNTS:
        is_known = pl.col(name).count() > 0
        counts.append(pl.when(is_known).then(pl.col(name).sum()).alias(name))
    places = pl.all().exclude(*_COUNTS, "cited").min()
    merged = spelled.group_by(key, maintain_order=True).agg(places, *counts, pl.col("cited").max())
    return merged.select(uses.columns)


def describe_use(uses: pl.DataFrame) -> pl.Series:
    """Return the use of each document in words: `returned at 2, never opened`.

    >>> uses = pl.DataFrame({"returned_at": [2], "opened_at": [None], "opens": [0], "cited": [False]})
    >>> describe_use(uses).to_list()
    ['returned at 2, never opened']
    """
    has_page = pl.col("opened_at").is_not_null()
    returned = pl.coalesce(pl.format("returned at {}", "returned_at"), pl.lit("never returned"))
    opened = (
        pl.when(has_page)
        .then(pl.format("opened after {}", "opened_at"))
        .when(pl.col("opens") > 0)
        .then(pl.lit("every open failed"))
        .when(pl.col("opens") == 0)
        .then(pl.lit("never opened"))
    )

    could_cite = pl.col("opens").is_null() | has_page
    was_ignored = ~pl.col("cited") & could_cite
    cited = pl.when("cited").then(pl.lit("cited")).when(was_ignored).then(pl.lit("not cited"))
    text = pl.concat_str([returned, opened, cited], separator=", ", ignore_nulls=True)
    return uses.select(text).to_series()


def _divide(numerator: pl.Expr, denominator: pl.Expr, otherwise: float | None = None) -> pl.Expr:
    share = pl.when(denominator > 0).then(numerator / denominator)
    return share.when(denominator == 0).then(otherwise)


def _count_stages(rows: pl.DataFrame, pools: pl.DataFrame, good: pl.Expr) -> pl.DataFrame:
    """Return the columns of `Funnel.per_query`, counts of a run and judged query, and `is_absent` (no row in the uses).

    `rows` are labelled uses, and `good` says whether a label is good. Counts that a run does not record are null.
    """
    by_query = rows.group_by(_QUERY).agg(
        **_list_counts(good.fill_null(False)),
        knows_opens=pl.col("opens").count() > 0,
        knows_citations=pl.col("cited").count() > 0,
    )
    counts = [name for name in by_query.columns if name not in (*_QUERY, "knows_opens", "knows_citations")]
    runs = rows.select(_RUN).unique(maintain_order=True)

    # one row per run and judged query
    stages = pools.join(runs, how="cross")
    stages = stages.join(by_query, on=_QUERY, how="left", nulls_equal=True, maintain_order="left")
    # A query without uses counts 0 in the stages that the run records.
    for name in ("knows_opens", "knows_citations"):
        of_run = pl.col(name).any().over(_RUN)
        stages = stages.with_columns(pl.col(name).fill_null(of_run))
    stages = stages.with_columns(pl.col(*counts).fill_null(0).cast(pl.Int64), is_absent=pl.col("returned").is_null())
    stages = stages.with_columns(pl.when("knows_opens").then(pl.col(_OF_OPENS)))
    stages = stages.with_columns(pl.when("knows_citations").then(pl.col(_OF_CITATIONS)))
    return stages.with_columns(**_list_shares()).sort("system", "replicate", maintain_order=True)


def _list_counts(good: pl.Expr) -> dict[str, pl.Expr]:
    """Return the counts of a query: column -> expression over its documents."""
    is_document = pl.col("doc_id") != EMPTY_DOC
    reached = {
        "returned": is_document & pl.col("returned_at").is_not_null(),
        "opened": is_document & pl.col("opened_at").is_not_null(),
        "cited": is_document & pl.col("cited"),
    }
    counts = {stage: has_reached.sum() for stage, has_reached in reached.items()}
    counts |= {f"good_{stage}": (has_reached & good).sum() for stage, has_reached in reached.items()}
    counts["lost_unopened"] = (good & reached["returned"] & ~reached["opened"]).sum()
    counts["lost_uncited"] = (good & reached["opened"] & ~reached["cited"]).sum()
    counts["opens"] = pl.col("opens").sum()
    for stage in STAGES[1:]:
        is_judged = pl.col("relevance").is_not_null()
        counts[f"judged_{stage}"] = (reached[stage] & is_judged).sum()
    return counts


def _list_shares() -> dict[str, Any]:
    """Return the shares of a query: column -> expression over its counts."""
    opened, cited = pl.col("opened"), pl.col("cited")
    shares: dict[str, Any] = {
        "citation_coverage": (cited > 0).cast(pl.Float64),
        "opening_precision": _divide(pl.col("good_opened"), opened, 0.0),
        "opening_judged": _divide(pl.col("judged_opened"), opened),
        "citation_precision": _divide(pl.col("good_cited"), cited, 0.0),
        "citation_judged": _divide(pl.col("judged_cited"), cited),
        "opens_per_good": _divide(pl.col("opens"), pl.col("good_opened")),
    }
    recalls = {"opening_recall": "good_opened", "citation_recall": "good_cited", "evidence_recall": "good_returned"}
    for name, count in recalls.items():
        is_known = pl.col(count).is_not_null()
        shares[name] = pl.when(is_known).then(_divide(pl.col(count), pl.col("pool"), 0.0))
    return shares


def _give_notices(per_query: pl.DataFrame) -> None:
    """Give notices on the queries of each system without a row of uses, and on those with unknown opens or citations."""
    for (system,), rows in per_query.group_by("system", maintain_order=True):
        queries = rows.get_column("query_id").n_unique()
        absent = rows.filter("is_absent").get_column("query_id").unique(maintain_order=True)
        if len(absent):
            notice(
                "queries_without_uses",
                f"{system}: the table of uses has no rows for {len(absent):,} of {queries:,} judged queries: "
                f"{join_examples(absent)}. There, the system counts as having used no document.",
            )
        for subject, name in (("opens are", "opened"), ("the final answer is", "cited")):
            is_unknown = pl.col(name).is_null()
            unknown = rows.filter(is_unknown).get_column("query_id").n_unique()
            if unknown:
                all_queries = count_of(queries, "query", "queries")
                notice(
                    "unknown_uses",
                    f"{system}: {subject} unknown in {unknown:,} of {all_queries}. Means omit unknown values.",
                )


def _warn_of_other_spellings(rows: pl.DataFrame, labels: pl.DataFrame) -> None:
    """Give a notice if used documents have labels under another URL, or if no used document has a label."""
    used = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    is_unjudged = pl.col("relevance").is_null()
    unjudged = used.filter(is_unjudged).select("query_id", "doc_id").unique(maintain_order=True)
    if unjudged.is_empty():
        return
    from goodgain.formats.urls import find_other_spellings  # deduplication takes 12 ms to import

    is_url = pl.col("doc_id").str.contains("://", literal=True)
    judged = labels.select("query_id", "doc_id")
    pairs = list(find_other_spellings(unjudged.filter(is_url), judged.filter(is_url)))
    if not pairs and used.get_column("relevance").null_count() == used.height:
        warn_if_none_is_judged(judged, unjudged, count_of(unjudged.height, "document"))
    if pairs:
        query_id, spelling_of_uses, spelling_of_qrels = pairs[0]
        number = count_of(len(pairs), "URL in the table of uses is", "URLs in the table of uses are")
        notice(
            "spellings_of_addresses",
            f"{number} spelled differently in the qrels. In query {query_id}, the uses have {spelling_of_uses}, and the qrels "
            f"have {spelling_of_qrels}. {spell('urls', 'join')} counts both spellings as one document.",
        )


def check_uses(qrels: Qrels, uses: Any) -> None:
    """Raise `InputError` if uses are given and the run was mapped to documents: a table of uses has ids of chunks."""
    if uses is not None and "documents" in qrels.documents and qrels.documents.get("documents_of") != "qrels":
        raise InputError(
            f"{spell('uses')} has ids of chunks, but {spell('documents')} maps the run to documents. "
            f"Leave out {spell('uses')} or {spell('documents')}."
        )


def read_uses_of(systems: Iterable[str], uses: Any) -> pl.DataFrame:
    """Read a table of what systems opened and cited. Raise `InputError` unless it has one replicate of each given system."""
    table = read_uses(uses)
    for system in systems:
        select_system(table, spell("uses"), system)
    return table


def find_urls(qrels: Qrels) -> str:
    """Return the option `urls` of an experiment with these qrels: whether spellings of a URL are joined."""
    return str(qrels.documents.get("urls", OPTIONS["urls"].default))


def add_uses(documents: pl.DataFrame, systems: Mapping[str, str], uses: Any, urls: str) -> pl.DataFrame:
    """Add columns that say how systems used each document (null: a query without uses). `systems` maps columns to systems."""
    if uses is None:
        return documents.with_columns(pl.lit(None, pl.String).alias(name) for name in systems)
    table = read_uses_of(systems.values(), uses)
    if urls == "join":
        table = _spell_uses(table, documents)
    table = table.with_columns(use=describe_use(table))
    for name, system in systems.items():
        of_system = select_system(table, spell("uses"), system)
        uses_of_system = of_system.select("query_id", "doc_id", pl.col("use").alias(name))
        documents = documents.join(uses_of_system, on=["query_id", "doc_id"], how="left", maintain_order="left")
        is_met = pl.col("query_id").is_in(uses_of_system["query_id"].unique().implode())
        use = pl.col(name).fill_null("never returned")
        documents = documents.with_columns(pl.when(is_met).then(use).alias(name))
    return documents
