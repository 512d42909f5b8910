"""Explains the difference between two systems: which documents cause it, which queries changed most, and all searches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from goodgain.analysis.comparing.use_of_documents import USES_OF, add_uses, find_urls
from goodgain.analysis.explaining.causes import Parts, Searched, add_up, find_causes, find_unjudged, tabulate_queries
from goodgain.analysis.explaining.explanation_frames import FRAMES, ExplanationFrames, take_query
from goodgain.analysis.explaining.explanation_screens import FORMS, build_screen, render_on_terminal
from goodgain.analysis.explaining.explanation_sentences import add_sentences
from goodgain.analysis.explaining.iterations_table import tabulate_iterations
from goodgain.argument_kinds import checks_kinds
from goodgain.counting.results_of_systems import Results
from goodgain.counting.run_opening import stack_systems
from goodgain.errors import InputError, count_of
from goodgain.files.notebooks import write_result
from goodgain.files.tables import Table, sort_ids, write_markdown
from goodgain.files.terminal_tables import write_plain
from goodgain.formats import Qrels
from goodgain.measures.good_gain import CG, NumDup


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(ExplanationFrames):
    """Says why a system is better or worse than another, query by query. Each frame is described by the list of its columns.

    Attributes:
        base, new: the names of the two systems.
        measures: the measures, by name.
        queries: query_id, measure, base, new (the values), difference, numerator_base, numerator_new, denominator_base,
            denominator_new, from_numerator and from_denominator (parts of the difference), first_differing_iteration (null:
            none), sentence. One row per measure and judged query. Columns of numerators and denominators are null unless the
            measure is a rate. The parts of the difference are also null if a denominator is 0. As in `compare`, base or new is
            null if the system has no value in the query, and the difference is then null too. If the texts of the queries
            are given, also query_text.
        causes: query_id, measure, counted_by (`base`, `new`, `both`), cause, documents, amount.
        documents: query_id, measure, doc_id, relevance, iteration_base, iteration_new (null: never found), found (`same`
            iteration, `earlier` or `later` in new, `found_by_base_only`, `found_by_new_only`, `found_by_neither`),
            counted_by (`base`, `new`, `both`, `neither`), cause (null: adds nothing), amount (null: a system has no value in
            the query), title (null without results),
            use_base, use_new (such as `returned at 2, never opened`; null without uses). One row per measure and good document.
            A rate such as RG has the rows of its numerator CG. SRR has no rows.
        iterations: system, query_id, iteration, query_text, searches, numbers of results (new_good, new_other, repeated,
            unjudged), numbers of searches (failed, empty, repeated_queries), is_repeated_query, brought_nothing_good (although
            good documents remained to be found), rel (the smallest good label). One row per iteration and rel. Without results,
            `query_text`, `failed`, `repeated_queries`, `is_repeated_query` are null, and `empty` also counts failed searches.
        wasted: system, query_id, iterations, last_good_iteration (0: none), wasted (number of iterations after
            last_good_iteration), rel. Queries without a good document in the qrels are left out.
        unjudged: query_id, measure, system, doc_id, iteration, title: the unjudged documents that one system alone found,
            up to the cutoff of the measure.
        repeats: query_id, system, doc_id, first_iteration, iteration, title. One row per repeated result.
        absent: system, query_id: the queries without a row in the run of a system.
        broke_off: system, query_id: the queries whose results do not count, because their traces broke off (`incomplete`).
        pairs: if a system has several runs, query_id, of_query (the query in the qrels), run_base, run_new. None otherwise.
        notes: all notices of the call, also minor ones.

    For CG, NumGood, DCGG, nCG and nDCGG, the difference of a query is `math.fsum` of the amounts in `causes`, or 0 if only a
    rounding error remains. The causes of RG, DRG and SRE are the causes of their numerators CG, DCGG and NumGood. With integer
    labels, a difference in CG or NumGood is exactly new - base. For DCGG, nCG or labels such as 2.2, rounding errors are possible.

    A cause says why only one system counts a document. The first cause that fits applies:

    - `later`: only base counts the document, and new found it after the cutoff.
    - `earlier`: only new counts the document, and base found it after the cutoff.
    - `broke_off`: the trace of the other system broke off, and counts as a query without a search (`incomplete="zero"`).
    - `absent`: the run of the other system has no row of the query.
    - `never_searched`: the run of the other system says that the query had no search.
    - `stopped_before`: the other system stopped before the iteration in which the first system found the document.
    - `judged_differently`: the other system found the document in an iteration where the document's label is too low or missing.
    - `not_retrieved`: the other system searched on, and never found the document.

    A document that both systems count has a cause if its amount is not 0. The cause is `judged_differently` if the labels of the
    document differ, else `earlier` or `later`.

    >>> import goodgain as gg
    >>> import polars as pl
    >>> new = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
    >>> found = gg.explain({"q": {"a": 3, "b": 2}}, new.head(1), new)
    >>> found.documents.filter(doc_id="b").select("found", "cause", "amount").rows()
    [('found_by_new_only', 'stopped_before', 2.0)]
    """

    @checks_kinds
    def tables(self, query: str | None = None) -> list[Table]:
        """Return the tables of the summary, or of one query if `query` is given. `to_text` also writes sentences."""
        return [part for part in build_screen(self, query) if isinstance(part, Table)]

    @checks_kinds
    def to_text(self, form: str = "markdown", *, query: str | None = None) -> str:
        """Return the explanation as text: a summary in `markdown`, or all tables in `json`. `query` limits the text to one query.

        Raises:
            InputError: the form is unknown, or the query is unknown.
        """
        if form not in FORMS:
            raise InputError(f"form {form!r} is not one of {', '.join(FORMS)}")
        if form == "markdown":
            return write_markdown(build_screen(self, query))
        selected = self if query is None else take_query(self, query)
        frames = {name: getattr(selected, name).to_dicts() for name in FRAMES}
        content = {"base": self.base, "new": self.new, "measures": self.measures, **frames}
        return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"

    def __repr__(self) -> str:
        return f"Explanation({self.base} -> {self.new}, {', '.join(self.measures)}, {count_of(self.queries.height, 'row')})"

    def __str__(self) -> str:
        return write_plain(render_on_terminal(self, None))

    def _repr_markdown_(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return write_result(build_screen(self), self.notes)


def add_questions(explanation: Explanation, texts: pl.DataFrame) -> Explanation:
    """Return the explanation with the column `query_text` in `queries`. `texts` has the columns query_id and text."""
    queries = explanation.queries
    named = dict(texts.select("query_id", "text").iter_rows())
    if explanation.pairs is not None:  # the query of the qrels, for each pair of runs
        of_pairs = explanation.pairs.select("query_id", "of_query").iter_rows()
        named = {query_id: named.get(of_query) for query_id, of_query in of_pairs}
    asked = [named.get(query_id) for query_id in queries.get_column("query_id")]
    return replace(explanation, queries=queries.with_columns(query_text=pl.Series(asked, dtype=pl.String)))


def explain_systems(
    qrels: Qrels,
    systems: Mapping[str, Searched],
    parts: Mapping[str, Parts],
    results: Results,
    *,
    uses: Any = None,
    top: int = 5,
    pairs: pl.DataFrame | None = None,
) -> Explanation:
    """Explain the difference between two systems: the first is the base, the second is new.

    `parts` has the measures by name. `top` queries are listed on each side, and `pairs` is from `list_pairs`.
    """
    (base_name, base), (new_name, new) = systems.items()
    documents = _find_documents(qrels, base, new, parts)
    with_cause = documents.filter(pl.col("cause").is_not_null())
    causes = add_up(with_cause, ["query_id", "measure", "counted_by", "cause"])
    queries = pl.concat(tabulate_queries(part, base, new, causes) for part in parts.values())
    unjudged = pl.concat(find_unjudged(part, systems) for part in parts.values())
    iterations = sort_ids(tabulate_iterations(systems, results), within=["system", "rel"])

    names = dict(zip(USES_OF, systems, strict=True))
    explanation = Explanation(
        base=base_name,
        new=new_name,
        measures=tuple(parts),
        queries=sort_ids(queries, within=["measure"]),
        causes=sort_ids(causes.drop("queries")),
        documents=add_uses(_add_titles(documents, results), names, uses, find_urls(qrels)),
        iterations=iterations,
        wasted=_find_wasted(iterations, base),
        unjudged=_add_titles(sort_ids(unjudged, within=["measure"]), results),
        repeats=_add_titles(sort_ids(_stack_repeats(systems)), results),
        absent=stack_systems({name: searched.absent.to_frame() for name, searched in systems.items()}),
        broke_off=stack_systems({name: searched.broke_off.to_frame("query_id") for name, searched in systems.items()}),
        parts=parts,
        top=top,
        pairs=pairs,
    )
    return replace(explanation, queries=add_sentences(explanation))


def _find_documents(qrels: Qrels, base: Searched, new: Searched, parts: Mapping[str, Parts]) -> pl.DataFrame:
    """Return the good documents of each measure that is a sum over documents, each with its cause."""
    sums = dict.fromkeys(part.numerator for part in parts.values())
    tables = [find_causes(qrels, base, new, measure) for measure in sums if measure.NAME != NumDup.NAME]
    if not tables:
        return find_causes(qrels, base, new, CG(rel=min(new.counts))).clear()
    return pl.concat(map(sort_ids, tables))


def _stack_repeats(systems: Mapping[str, Searched]) -> pl.DataFrame:
    """Return `Explanation.repeats`, without titles."""
    tables = []
    for name, searched in systems.items():
        system = pl.lit(name).alias("system")
        tables.append(searched.repeats.select("query_id", system, "doc_id", "first_iteration", "iteration"))
    return pl.concat(tables).sort("query_id", "system", "iteration", "doc_id")


def _find_wasted(iterations: pl.DataFrame, base: Searched) -> pl.DataFrame:
    """Count the iterations after the last one that found a good document, in the queries that have good documents."""
    with_good = []
    for rel, counts in base.counts.items():
        pools = counts.pools.filter(pl.col("GoodPool") > 0)
        with_good.append(pools.select("query_id", rel=pl.lit(rel)))
    rows = iterations.join(pl.concat(with_good), on=["query_id", "rel"], how="semi", maintain_order="left")

    number = pl.col("iteration")
    last_good = number.filter(pl.col("new_good") > 0).max().fill_null(0)
    queries = rows.group_by("system", "query_id", "rel", maintain_order=True).agg(
        iterations=number.max(), last_good_iteration=last_good
    )
    wasted = (pl.col("iterations") - pl.col("last_good_iteration")).alias("wasted")
    return queries.select(pl.exclude("rel"), wasted, "rel")


def _add_titles(rows: pl.DataFrame, results: Results) -> pl.DataFrame:
    return rows.join(results.titles.drop("url"), on=["query_id", "doc_id"], how="left", maintain_order="left")
