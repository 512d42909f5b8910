"""Explains a difference of two systems: its causes by documents, the queries that changed most, and their searches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from goodgain.comparing.causes import (
    Parts,
    Searched,
    add_up,
    divide_measure,
    find_causes,
    find_documents,
    find_first_difference,
    sum_causes,
    tabulate_values,
)
from goodgain.comparing.comparison_notes import describe_shared_queries
from goodgain.comparing.explanation_screens import render_html, write_explanation
from goodgain.comparing.explanation_sentences import add_sentences
from goodgain.comparing.searches import Results, find_wasted, tabulate_iterations
from goodgain.counting.coverage import measure_coverage
from goodgain.counting.run_in_blocks import RunFile, read_whole
from goodgain.errors import NoticesOfSystems, check_whole_number, notice
from goodgain.evaluation import count_with_notices
from goodgain.formats import Qrels, Run
from goodgain.formats.column_names import Columns, check_columns_used
from goodgain.formats.qrels import load_qrels
from goodgain.formats.run import load_run
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import CG, NumDup
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.thresholds import find_thresholds, warn_of_labels


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a system is better or worse than another, query by query.

    Attributes:
        base, new: the names of the two systems.
        measures: the measures, by name.
        queries: query_id, measure, base, new (its values), difference, numerator_base, numerator_new, denominator_base,
            denominator_new (of a rate, else null), first_differing_iteration (null: none), unjudged_base_only,
            unjudged_new_only (unjudged documents that one system alone found), sentence. One row a query of the qrels.
        causes: query_id, measure, counted_by (`base`, `new`, `both`), cause, documents, amount.
        documents: query_id, measure, doc_id, relevance, iteration_base, iteration_new (null: never), found (`same`
            iteration, `earlier` or `later` in new, `found_by_base_only`, `found_by_new_only`, `found_by_neither`),
            counted_by (also `neither`), cause (null: adds nothing), amount, title (null without results). One row a good
            document.
        iterations: system, query_id, iteration, query_text, searches, new_good, new_other, repeated, unjudged (results),
            failed, empty, repeated_queries (searches), is_repeated_query, brought_nothing_good (while good documents were
            missing). Without results query_text, failed and repeated queries are null, and empty counts failed ones too.
        wasted: system, query_id, iterations, last_good_iteration (0: none), wasted (the iterations after it). Only queries
            that have a good document.

    The amounts of a query and measure add up to its difference: `math.fsum` gives the same float. A rate has the causes of
    its numerator, under the name of that measure. With whole labels the difference of CG and NumGood is new - base to the
    last digit. Else (DCGG, labels such as 2.2) each amount is rounded once, and the two agree up to that rounding.

    The cause is the first one that holds in the system that does not count the document. `later` or `earlier`: new, or base,
    found it after the cutoff. `never_searched`: it stopped before the iteration in which the other found the document.
    `judged_differently`: it found the document in an iteration with a lower label (labels by iteration).
    `not_retrieved`: it searched on, and never found the document. Documents that both count differ where the iteration
    has a weight (DCGG: `earlier`, `later`).
    """

    base: str
    new: str
    measures: tuple[str, ...]
    queries: pl.DataFrame
    causes: pl.DataFrame
    documents: pl.DataFrame
    iterations: pl.DataFrame
    wasted: pl.DataFrame
    parts: Mapping[str, Parts]
    top: int = 5

    def to_text(self, form: str = "markdown", *, query: str | None = None) -> str:
        """Return the first screen as `markdown`, or all tables as `json`; with a query both agents side by side.

        Raises:
            InputError: the form, or the query, is unknown.
        """
        return write_explanation(self, form, query)

    def __repr__(self) -> str:
        return f"Explanation({self.base} -> {self.new}, {', '.join(self.measures)}, {self.queries.height:,} rows)"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_markdown_(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return render_html(self)


def explain(
    qrels: Any,
    base: Any,
    new: Any,
    measures: Measures = "CG",
    *,
    results: Any = None,
    top: int = 5,
    rel: float | None = None,
    columns: Columns | None = None,
) -> Explanation:
    """Explain why a system is better or worse than another: which queries, which searches, which documents.

    Args:
        qrels: what `read_qrels` takes.
        base, new: what `read_run` takes. A system has the name of its file, else that of its tag.
        measures: CG, NumGood, DCGG, with or without a cutoff; or a rate of them: RG, DRG, SRE, SRR, nCG, nDCGG.
        results: what `read_traces` returned, or a file of it, for search strings and titles: one of both systems, or
            a pair of one each.
        top: how many queries to show, in each direction.
        rel: the smallest good label, for measures that name none; None leaves it at 2.
        columns: name in the source -> name here, for columns of runs or qrels with other names: {"step": "iteration"}.

    Returns:
        An `Explanation`. It has all queries of the qrels. It has no test: `compare` says whether a difference is real.

    Raises:
        InputError: input that cannot be read, or two systems that share no judged query.
        MeasureError: a measure is unknown, or has no causes by document.

    >>> qrels = {"q": {"a": 3, "b": 2}}
    >>> old = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
    >>> new = pl.DataFrame({"query_id": "q", "iteration": [1], "doc_id": ["a"]})
    >>> explain(qrels, old, new).causes.rows()
    [('q', 'CG', 'base', 'never_searched', 1, -2.0)]
    """
    judged = load_qrels(qrels, columns=columns)
    runs = [load_run(run, columns=columns) for run in (base, new)]
    for run in runs:
        check_columns_used(columns or {}, run, judged)
    names = [_find_name(run) or "" for run in runs]
    if "" in names or names[0] == names[1]:
        names = ["base", "new"]
    return explain_runs(judged, dict(zip(names, runs, strict=True)), measures, results=results, top=top, rel=rel)


def explain_runs(
    qrels: Qrels,
    runs: Mapping[str, Run | RunFile],
    measures: Measures,
    *,
    results: Any = None,
    top: int = 5,
    rel: float | None = None,
) -> Explanation:
    """Do what `explain` does for runs that were opened, two by name."""
    check_whole_number("top", top, 0)
    parts = {str(measure): divide_measure(measure) for measure in parse_measures(measures, rel=rel)}
    asked = [one.measure for one in parts.values()]
    warn_of_labels(qrels.frame, asked, rel=rel)
    rels = find_thresholds([*asked, *(one.numerator for one in parts.values())])
    opened = None if results is None else Results(results)
    systems: dict[str, Searched] = {}
    with NoticesOfSystems() as notices:
        for name, run in runs.items():
            with notices.of(name):
                whole = read_whole(run)
                systems[name] = find_documents(qrels, whole, count_with_notices(qrels, whole, rels))
    shared = {name: measure_coverage(searched.counts).queries for name, searched in systems.items()}
    if few := describe_shared_queries(shared):
        notice(few)
    base, new = systems
    rel_shown = asked[0].rel if asked[0].rel in rels else rels[0]
    iterations = tabulate_iterations(systems, rel_shown, opened)
    pools = systems[base].counts[rel_shown].pools
    documents = _find_documents_of(qrels, systems, parts.values())
    no_titles = documents.select("query_id", "doc_id", title=pl.lit(None, pl.String)).clear()
    titles = no_titles if opened is None else opened.titles
    documents = documents.join(titles, on=["query_id", "doc_id"], how="left", maintain_order="left")
    causes = sum_causes(documents)
    explained = Explanation(
        base=base,
        new=new,
        measures=tuple(parts),
        queries=pl.concat(_tabulate_queries(one, systems, documents, causes) for one in parts.values()),
        causes=causes,
        documents=documents,
        iterations=iterations,
        wasted=find_wasted(iterations, pools.filter(pl.col("GoodPool") > 0).get_column("query_id")),
        parts=parts,
        top=top,
    )
    return replace(explained, queries=add_sentences(explained))


def _find_documents_of(qrels: Qrels, systems: Mapping[str, Searched], parts: Iterable[Parts]) -> pl.DataFrame:
    """Return the good documents for each sum; a rate of repeats has none."""
    sums = dict.fromkeys(one.numerator for one in parts)
    base, new = systems.values()
    found = [find_causes(qrels, base, new, measure) for measure in sums if measure.NAME != NumDup.NAME]
    return pl.concat(found) if found else find_causes(qrels, base, new, CG(rel=next(iter(base.counts)))).clear()


def _tabulate_queries(
    parts: Parts, systems: Mapping[str, Searched], documents: pl.DataFrame, causes: pl.DataFrame
) -> pl.DataFrame:
    """Return the columns of `Explanation.queries` but sentence, for one measure."""
    measure, (base, new) = parts.measure, systems.values()
    values = tabulate_values(parts, base, new)
    sums = add_up(causes.filter(measure=str(measure)), ["query_id"]).select("query_id", "amount")
    firsts = find_first_difference(documents.filter(measure=str(parts.numerator)), parts, base, new)
    for found in (sums, firsts, _count_unjudged(base, new, measure)):
        values = values.join(found, on="query_id", how="left", maintain_order="left")
    difference = pl.col("amount").fill_null(0.0) if parts.denominator is None else pl.col("new") - pl.col("base")
    unknown = pl.lit(None, pl.Float64)
    sides = [f"{part}_{side}" for part in ("numerator", "denominator") for side in ("base", "new")]
    return values.select(
        "query_id",
        pl.lit(str(measure)).alias("measure"),
        "base",
        "new",
        difference.alias("difference"),
        *(pl.col(side) if side in values.columns else unknown.alias(side) for side in sides),
        pl.col("first_differing_iteration").cast(pl.Int64),
        *(pl.col(f"unjudged_{side}_only").fill_null(0).cast(pl.Int64) for side in ("base", "new")),
    )


def _count_unjudged(base: Searched, new: Searched, measure: GoodGainMeasure) -> pl.DataFrame:
    """Return for each query the unjudged documents that one system alone found up to the cutoff."""
    unjudged: list[pl.DataFrame] = []
    for searched in (base, new):
        is_counted = pl.col("relevance").is_null()
        if measure.cutoff is not None:
            is_counted &= pl.col("iteration") <= measure.cutoff
        unjudged.append(searched.documents.filter(is_counted).select("query_id", "doc_id"))
    counted = []
    for name, mine, other in (("base", unjudged[0], unjudged[1]), ("new", unjudged[1], unjudged[0])):
        alone = mine.join(other, on=["query_id", "doc_id"], how="anti")
        counted.append(alone.group_by("query_id").len(f"unjudged_{name}_only"))
    return counted[0].join(counted[1], on="query_id", how="full", coalesce=True)


def _find_name(run: Run) -> str | None:
    """Return the name of a system: that of its file, else the one tag of its rows."""
    if run.name is not None or "tag" not in run.rows.columns:
        return run.name
    tags = run.rows.get_column("tag").unique().drop_nulls().to_list()
    return str(tags[0]) if len(tags) == 1 else None
