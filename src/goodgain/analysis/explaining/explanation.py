"""Explains the difference between two systems: which documents cause it, which queries changed most, and all searches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import polars as pl

from goodgain.analysis.comparing.use_of_documents import USES_OF, add_uses
from goodgain.analysis.explaining.causes import Parts, Searched, add_up, find_causes, find_unjudged, tabulate_queries
from goodgain.analysis.explaining.explanation_screens import FORMS, build_screen, render_on_terminal
from goodgain.analysis.explaining.explanation_sentences import FRAMES, add_sentences, take_query
from goodgain.counting.results_of_systems import Results
from goodgain.counting.run_in_blocks import RunFile, read_whole
from goodgain.counting.run_opening import stack_systems
from goodgain.errors import InputError, count_of, notice
from goodgain.files.tables import Table, write_html, write_markdown
from goodgain.files.terminal_tables import write_plain
from goodgain.formats import Qrels, Run
from goodgain.logs.dedup.document_types import normalise_texts
from goodgain.measures.good_gain import CG, NumDup
from goodgain.scoring.score_run import refuse_likely_iteration

_KEY = ["query_id", "iteration"]
#: Columns of an iteration that need results.
_FROM_RESULTS = {"query_text": pl.String, **dict.fromkeys(("searches", "failed", "repeated_queries"), pl.Int64)}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Says why a system is better or worse than another, query by query. Each frame is described by the list of its columns.

    Attributes:
        base, new: the names of the two systems.
        measures: the measures, by name.
        queries: query_id, measure, base, new (the values), difference, numerator_base, numerator_new, denominator_base,
            denominator_new, from_numerator and from_denominator (parts of the difference), first_differing_iteration (null:
            none), sentence. One row per measure and judged query. Columns of numerators and denominators are null unless the
            measure is a rate. The parts of the difference are also null if a denominator is 0. As in `compare`, base or new is
            null if the system has no value in the query, and the difference is then null too.
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

    base: str
    new: str
    measures: tuple[str, ...]
    queries: pl.DataFrame
    causes: pl.DataFrame
    documents: pl.DataFrame
    iterations: pl.DataFrame
    wasted: pl.DataFrame
    unjudged: pl.DataFrame
    repeats: pl.DataFrame
    absent: pl.DataFrame
    broke_off: pl.DataFrame
    parts: Mapping[str, Parts]
    top: int = 5
    pairs: pl.DataFrame | None = None

    def tables(self, query: str | None = None) -> list[Table]:
        """Return the tables of the summary, or of one query if `query` is given. `to_text` also writes sentences."""
        return [part for part in build_screen(self, query) if isinstance(part, Table)]

    def to_text(self, form: str = "markdown", *, query: str | None = None) -> str:
        """Return the explanation as text: a summary in `markdown`, or all tables in `json`. `query` limits the text to one query.

        Raises:
            InputError: the form is unknown, or the query is unknown.
        """
        if form not in FORMS:
            raise InputError(f"form {form!r} is not one of {', '.join(FORMS)}")
        if form == "markdown":
            return write_markdown(build_screen(self, query))
        shown = self if query is None else take_query(self, query)
        frames = {name: getattr(shown, name).to_dicts() for name in FRAMES}
        content = {"base": self.base, "new": self.new, "measures": self.measures, **frames}
        return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"

    def __repr__(self) -> str:
        return f"Explanation({self.base} -> {self.new}, {', '.join(self.measures)}, {count_of(self.queries.height, 'row')})"

    def __str__(self) -> str:
        return write_plain(render_on_terminal(self, None))

    def _repr_markdown_(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return write_html(build_screen(self))


def normalise_queries(texts: pl.Series) -> pl.Series:
    """Return search strings in lower case, without punctuation and extra blanks. Empty strings become null.

    >>> normalise_queries(pl.Series(["  River-Dam,  COST? ", "river dam cost", "?"])).to_list()
    ['river dam cost', 'river dam cost', None]
    """
    bare = normalise_texts(texts).str.replace_all(r"[\p{P}\s]+", " ").str.strip_chars()
    return bare.replace("", None)


def _describe_searches(name: str, searches: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    failed = pl.col("status") == "error" if searches.get_column("status").count() else pl.lit(None, pl.Boolean)
    asked = normalise_queries(searches.get_column("search_query")).alias("asked")
    repeated = pl.col("asked").is_not_null() & ~pl.struct("query_id", "asked", "arguments").is_first_distinct()
    rows = searches.with_columns(asked).with_columns(repeated=repeated, failed=failed)
    described = rows.group_by(_KEY, maintain_order=True).agg(
        query_text=pl.col("search_query").drop_nulls().unique(maintain_order=True).str.join("; ").replace("", None),
        searches=pl.len(),
        failed=pl.when(pl.col("failed").count() > 0).then(pl.col("failed").sum()),
        repeated_queries=pl.col("repeated").sum(),
        empty=((pl.col("results") == 0) & ~pl.col("failed").fill_null(False)).sum(),
    )
    numbers = _shift_numbers(name, numbers, described)
    found = numbers.join(described, left_on=["query_id", "number"], right_on=_KEY, how="inner")
    if numbers.height and not found.height:
        notice(
            "results_of_other_queries",
            f"{name}: the results and the run share no query. Give the results that the run was made from.",
        )
    return found.drop("number")


def _shift_numbers(name: str, numbers: pl.DataFrame, described: pl.DataFrame) -> pl.DataFrame:
    """Renumber the iterations of a run to match its results, for example if the run begins with 0 and the results with 1."""
    run, results = pl.col("run").list, pl.col("results").list
    given = described.group_by("query_id").agg(results="iteration")
    both = numbers.group_by("query_id").agg(run="number").join(given, on="query_id").sort("query_id")
    ends = both.select(low=results.min() - run.min(), high=results.max() - run.max())
    shifts = {shift for row in ends.iter_rows() for shift in row}
    if len(shifts) == 1:
        return numbers.with_columns(pl.col("number") + shifts.pop())
    apart = both.filter(run.set_difference("results").list.len() > 0, results.set_difference("run").list.len() > 0)
    for row in apart.head(1).iter_rows(named=True):
        ranges = [f"iterations {min(row[side])} to {max(row[side])}" for side in ("run", "results")]
        raise InputError(
            f"{name}: query {row['query_id']} has {ranges[0]} in the run and {ranges[1]} in the results. Give the results "
            "that the run was made from, or leave out the results."
        )
    return numbers


def tabulate_iterations(systems: Mapping[str, Searched], results: Results) -> pl.DataFrame:
    tables = []
    for name, searched in systems.items():
        rows = pl.concat(
            ledger.join(pools.select("query_id", "GoodPool", rel=pl.lit(rel)), on="query_id").sort(_KEY)
            for rel, (ledger, pools, *_) in searched.counts.items()
        )
        if not results.searches:
            nothing = (pl.lit(None, kind).alias(column) for column, kind in _FROM_RESULTS.items())
            rows = rows.with_columns(*nothing, empty=(pl.col("R") == 0).cast(pl.Int64))
        else:
            described = _describe_searches(name, results.searches[name], searched.numbers)
            rows = rows.join(described, on=_KEY, how="left", maintain_order="left")
        found_before = (pl.col("GR").cum_sum() - pl.col("GR")).over("query_id", "rel")
        columns = {
            "searches": pl.col("searches").fill_null(1),
            "new_good": pl.col("GR"),
            "new_other": pl.col("UR") - pl.col("GR") - pl.col("Unjudged"),
            "repeated": pl.col("Dup"),
            "unjudged": pl.col("Unjudged"),
            **{column: pl.col(column) for column in ("failed", "empty", "repeated_queries")},
        }
        tables.append(
            rows.select(
                pl.lit(name).alias("system"),
                *_KEY,
                "query_text",
                *(column.cast(pl.Int64).alias(title) for title, column in columns.items()),
                is_repeated_query=pl.col("repeated_queries") > 0,
                brought_nothing_good=(pl.col("GR") == 0) & (found_before < pl.col("GoodPool")),
            ).with_columns(rows.get_column("rel"))
        )
    return pl.concat(tables)


def pair_runs(qrels: Qrels, runs: Mapping[str, Sequence[Run | RunFile]]) -> tuple[Qrels, dict[str, Run]]:
    """Repeat each query for each pair of a base run and a new run. Return two things: qrels and a dict with a run per system."""
    (base, of_base), (new, of_new) = runs.items()
    positions = [*product(range(len(of_base)), range(len(of_new)))]
    pairs = pl.DataFrame(positions, schema=["b", "n"], orient="row")
    query_id = _name_pair(pl.col("query_id"), pl.col("b"), pl.col("n"))

    def repeat(frame: pl.DataFrame, of: pl.DataFrame) -> pl.DataFrame:
        return frame.join(of, how="cross").with_columns(query_id=query_id).drop("b", "n")

    notice(
        "pairs_of_runs",
        f"{base} has {count_of(len(of_base), 'run')} and {new} has {len(of_new)}. Each query is explained for each of the "
        f"{pairs.height} pairs, as QUERY (run of {base}, run of {new}).",
    )
    paired = Qrels(repeat(qrels.frame, pairs), labels=qrels.labels, name=qrels.name)
    single: dict[str, Run] = {}
    for name, of, column in ((base, of_base, "b"), (new, of_new, "n")):
        whole = [read_whole(run) for run in of]
        for run in whole:
            refuse_likely_iteration(run)
        frames = [repeat(run.rows, pairs.filter(pl.col(column) == k)) for k, run in enumerate(whole)]
        frame = pl.concat(frames, how="diagonal")  # not every run has a tag
        single[name] = whole[0].with_frame(frame)
        idle = (repeat(run.never_searched.to_frame(), pairs.filter(pl.col(column) == k)) for k, run in enumerate(whole))
        single[name].never_searched = pl.concat(idle).get_column("query_id")
    return paired, single


def _name_pair(query_id: pl.Expr, base_run: pl.Expr, new_run: pl.Expr) -> pl.Expr:
    return pl.format("{} ({}, {})", query_id, base_run + 1, new_run + 1)


def list_pairs(query_ids: pl.Series, base_runs: Sequence[str], new_runs: Sequence[str]) -> pl.DataFrame:
    """Return the frame `Explanation.pairs`, with the names of `pair_runs`."""
    rows = [
        (base_run, new_run, b, n) for (b, base_run), (n, new_run) in product(enumerate(base_runs), enumerate(new_runs))
    ]
    schema = {"run_base": pl.String, "run_new": pl.String, "b": pl.Int64, "n": pl.Int64}
    queries = query_ids.to_frame("of_query").join(pl.DataFrame(rows, schema=schema, orient="row"), how="cross")
    query_id = _name_pair(pl.col("of_query"), pl.col("b"), pl.col("n"))
    return queries.select(query_id.alias("query_id"), "of_query", "run_base", "run_new")


def select_broken(
    broken: Mapping[str, pl.Series], runs_of: Mapping[str, Sequence[str]], pairs: pl.DataFrame | None
) -> dict[str, pl.Series]:
    """Return the queries of each system whose traces broke off, with the names of `pairs`. `broken` maps runs to queries."""
    none = pl.Series("query_id", [], pl.String)
    if pairs is None:
        return {name: broken.get(run, none) for name, (run,) in runs_of.items()}
    found = {}
    for side, (name, runs) in zip(("run_base", "run_new"), runs_of.items(), strict=True):
        rows = [(query_id, run) for run in runs for query_id in broken.get(run, none)]
        of_runs = pl.DataFrame(rows, schema={"of_query": pl.String, side: pl.String}, orient="row")
        found[name] = pairs.join(of_runs, on=["of_query", side], how="semi").get_column("query_id")
    return found


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
    names, (base, new) = [*systems], systems.values()
    sums = dict.fromkeys(one.numerator for one in parts.values())
    found = [find_causes(qrels, base, new, measure) for measure in sums if measure.NAME != NumDup.NAME]
    documents = pl.concat(found) if found else find_causes(qrels, base, new, CG(rel=min(new.counts))).clear()
    causes = add_up(documents.filter(pl.col("cause").is_not_null()), ["query_id", "measure", "counted_by", "cause"])
    unjudged = pl.concat(find_unjudged(one, systems) for one in parts.values())
    repeats = pl.concat(
        one.repeats.select("query_id", pl.lit(name).alias("system"), "doc_id", "first_iteration", "iteration")
        for name, one in systems.items()
    ).sort("query_id", "system", "iteration", "doc_id")
    iterations = tabulate_iterations(systems, results)
    with_good = pl.concat(
        of.pools.filter(pl.col("GoodPool") > 0).select("query_id", rel=pl.lit(rel)) for rel, of in base.counts.items()
    )
    number = pl.col("iteration")
    searched = iterations.join(with_good, on=["query_id", "rel"], how="semi", maintain_order="left")
    wasted = searched.group_by("system", "query_id", "rel", maintain_order=True).agg(
        iterations=number.max(), last_good_iteration=number.filter(pl.col("new_good") > 0).max().fill_null(0)
    )
    after = pl.col("iterations") - pl.col("last_good_iteration")
    documents, unjudged, repeats = (
        frame.join(results.titles.drop("url"), on=["query_id", "doc_id"], how="left", maintain_order="left")
        for frame in (documents, unjudged, repeats)
    )
    documents = add_uses(documents, dict(zip(USES_OF, names, strict=True)), uses)
    explained = Explanation(
        base=names[0],
        new=names[1],
        measures=tuple(parts),
        queries=pl.concat(tabulate_queries(one, base, new, causes) for one in parts.values()),
        causes=causes.drop("queries"),
        documents=documents,
        iterations=iterations,
        wasted=wasted.select(pl.exclude("rel"), after.alias("wasted"), "rel"),
        unjudged=unjudged,
        repeats=repeats,
        absent=stack_systems({name: one.absent.to_frame() for name, one in systems.items()}),
        broke_off=stack_systems({name: one.broke_off.to_frame("query_id") for name, one in systems.items()}),
        parts=parts,
        top=top,
        pairs=pairs,
    )
    return replace(explained, queries=add_sentences(explained))
