"""Prepares the data of a report's page, in columns and codes that keep the page small."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.use_of_documents import Funnel, add_uses, find_urls
from goodgain.analysis.explaining.causes import Parts, Searched
from goodgain.analysis.explaining.explanation import Explanation
from goodgain.analysis.explaining.explanation_sentences import Account, find_main_causes, shorten
from goodgain.analysis.reporting.page_sentences import PLACES, Opening, describe_query
from goodgain.counting.results_of_systems import Results
from goodgain.files.pages import is_web_address
from goodgain.files.tables import sort_ids
from goodgain.formats import Qrels
from goodgain.measures.scores import Scores
from goodgain.statistics.statistical_tests import subtract_without_residue

#: The counts of an iteration, in the order of their codes.
KINDS = ("new_good", "new_other", "unjudged", "repeated", "failed", "empty", "brought_nothing_good")
#: The kinds of a result, in the order of their codes.
_GOOD, _OTHER, _UNJUDGED, _REPEATED = range(4)
#: Characters of a text or an address that the page keeps.
_LONGEST = 400


@dataclass(frozen=True)
class Evidence:
    """The data of a report. The first system is the base. `searched`, `recalls` and `ledgers` cover only a system's first run."""

    opening: Opening  # what the page says first
    scores: Mapping[str, Scores]
    comparison: Comparison | None  # of the other systems with the first system
    searched: Mapping[str, Searched]
    curves: pl.DataFrame
    recalls: pl.DataFrame
    ledgers: Mapping[str, pl.DataFrame]
    searches: pl.DataFrame  # what `tabulate_searches` returns
    qrels: Qrels
    measures: Mapping[str, str | None]  # name -> better direction, of the measures to list
    explained: Parts  # the measure whose differences are explained
    explanations: Mapping[str, Explanation]  # each other system -> the explanation of its difference from the base
    iterations: pl.DataFrame  # the columns of `Explanation.iterations`, of all systems
    results: Results
    uses: Any  # what `funnel` takes, or None
    funnel: Funnel | None
    texts: Mapping[str, str]  # query_id -> text
    groups: pl.DataFrame | None  # query_id, group
    details: int  # for how many queries all results are listed
    words: Mapping[str, str]  # word -> its meaning
    command: str  # how to make the report again
    reasons: tuple[str, ...] = ()  # notices that explain values of 0 and verdicts
    doubts: tuple[str, ...] = ()  # what else to distrust

    @property
    def systems(self) -> list[str]:
        return [*self.scores]

    @cached_property
    def query_ids(self) -> pl.Series:
        """The judged queries, as people count: the order of all lists of the page."""
        return sort_ids(self.qrels.query_ids.to_frame()).to_series()

    @property
    def has_replicates(self) -> bool:
        return any(of.replicates for of in self.scores.values())

    @cached_property
    def queries(self) -> pl.DataFrame:
        """A row per query, measure and system: query_id, query_text, groups (if groups are given), measure, system and value.

        With several systems, `difference` is the value minus the value of the base. `cause` and `first_differing_iteration`
        describe the first runs. Both are null in measures other than `explained`, or if the first runs differ with another sign.
        """
        ids, names, key = self.query_ids, self.systems, ["query_id", "measure", "system"]
        about: dict[str, Any] = {"query_id": ids, "query_text": [self.texts.get(one) for one in ids]}
        if self.groups is not None:
            about["groups"] = [", ".join(groups) for groups in _list_groups(self)]
        table = pl.DataFrame(about, schema_overrides={"query_text": pl.String})
        for column, words in (("measure", self.measures), ("system", names)):
            table = table.join(pl.DataFrame({column: [*words]}), how="cross", maintain_order="left_right")
        of_systems = (scores.per_query.with_columns(system=pl.lit(name)) for name, scores in self.scores.items())
        values = pl.concat(frame.select(*key, pl.col("value").fill_nan(None)) for frame in of_systems)
        table = table.join(values, on=key, how="left", maintain_order="left")
        if self.comparison is None:
            return table
        of_base = table.select(pl.col("value").first().over("query_id", "measure")).to_series()
        differences = pl.Series(subtract_without_residue(table["value"].to_numpy(), of_base.to_numpy()))
        table = table.with_columns(difference=pl.when(pl.col("system") != names[0]).then(differences.fill_nan(None)))
        causes = pl.concat(
            find_main_causes(Account(one), self.explained).select(
                "query_id", "measure", "cause", "first_differing_iteration", system=pl.lit(name), of_runs="difference"
            )
            for name, one in self.explanations.items()
        )
        table = table.join(causes, on=key, how="left", maintain_order="left")
        is_told = (pl.col("difference") != 0) & (pl.col("difference").sign() == pl.col("of_runs").sign())
        told = pl.when(is_told).then(pl.col("cause", "first_differing_iteration"))
        return table.with_columns(told).drop("of_runs")

    @cached_property
    def changed(self) -> list[str]:
        """The query ids, sorted by the size of the change in the explained measure. Losses come before gains of the same size.

        The first id is an exception: the query that changed most for the headline's system. A single system: sorted by value.
        """
        rows = self.queries.filter(measure=str(self.explained.measure))
        if self.comparison is None:
            return rows.sort("value", nulls_last=True, maintain_order=True).get_column("query_id").to_list()
        sign = -1 if self.explained.measure.declaration.better == "down" else 1
        others = rows.filter(pl.col("system") != self.systems[0])

        def sort(pairs: pl.DataFrame) -> pl.Series:
            sizes = {"largest": pl.col("difference").abs().max(), "worst": (sign * pl.col("difference")).min()}
            change = pairs.group_by("query_id", maintain_order=True).agg(**sizes)
            by = change.sort("largest", "worst", descending=[True, False], nulls_last=True, maintain_order=True)
            return by.get_column("query_id")

        first = sort(others.filter(system=self.opening.lead)).head(1)
        return [*dict.fromkeys([*first, *sort(others)])]

    def describe_query(self) -> str | None:
        """Return a sentence on the query to look at first, or None if the query has a missing or an unchanged value."""
        measure, first = str(self.explained.measure), self.changed[0]
        rows = self.queries.filter(measure=measure, query_id=first).rows_by_key("system", named=True, unique=True)
        shown = {name: rows[name]["value"] for name in dict.fromkeys([self.opening.lead, self.systems[0]])}
        if None in shown.values() or (self.comparison is not None and not rows[self.opening.lead]["difference"]):
            return None
        return describe_query(measure, first, self.texts.get(first), shown)

    def tell_cause(self, text: str) -> str:
        """Return the text. If a system has several runs, the text gets the prefix `Of the first runs:`."""
        return f"Of the first runs: {text}" if self.has_replicates else text


def build_data(of: Evidence) -> dict[str, Any]:
    (_, *others), ids, table = of.systems, of.query_ids, of.queries
    rows = table.partition_by("measure", "system", as_dict=True)
    explained = str(of.explained.measure)
    causes = _number(table.get_column("cause").drop_nulls()) if others else {}
    changes = []
    for name in others:
        one = rows[explained, name]
        codes = one.get_column("cause").replace_strict([*causes], [*causes.values()], default=-1, return_dtype=pl.Int64)
        changes.append({"cause": codes.to_list(), "at": one.get_column("first_differing_iteration").to_list()})
    data = {
        "systems": of.systems,
        "measures": [*of.measures.items()],
        "explained": explained,
        "queries": ids.to_list(),
        "texts": [of.texts.get(one) for one in ids] if of.texts else None,
        "values": [[_round(rows[measure, name], "value") for name in of.systems] for measure in of.measures],
        "differences": [[_round(rows[measure, name], "difference") for name in others] for measure in of.measures],
        "causes": [*causes],
        "changes": changes,
        "absent": [ids.is_in(of.searched[name].absent.implode()).arg_true().to_list() for name in of.systems],
        **_code_iterations(of, ids),
    }
    if of.groups is not None:
        names = _number(of.groups.get_column("group"))
        data |= {"groups": [*names], "members": [[names[one] for one in groups] for groups in _list_groups(of)]}
    numbers, reasons = _number(ids), dict[str, int]()
    chosen = of.changed[: of.details]
    data["first"] = numbers[of.changed[0]]
    data["lead"] = of.systems.index(of.opening.lead)
    data["details"] = {numbers[query_id]: detail for query_id, detail in _list_details(of, chosen, reasons)}
    data["reasons"] = [*reasons]
    return data


def _round(rows: pl.DataFrame, column: str) -> list[float | None]:
    shown = (None if value is None else round(value, PLACES) for value in rows.get_column(column))
    return [int(value) if value is not None and value.is_integer() else value for value in shown]


def _number(words: Iterable[str]) -> dict[str, int]:
    return {word: k for k, word in enumerate(dict.fromkeys(words))}


def _list_groups(of: Evidence) -> list[list[str]]:
    members = {} if of.groups is None else of.groups.rows_by_key("query_id")
    return [[name for (name,) in members.get(query_id, [])] for query_id in of.query_ids]


def _code_iterations(of: Evidence, ids: pl.Series) -> dict[str, Any]:
    rows = of.iterations.select("system", "query_id", "iteration", pl.col(KINDS).cast(pl.Int64))
    distinct = rows.select(KINDS).unique(maintain_order=True).with_row_index("code")
    coded = rows.join(distinct, on=KINDS, nulls_equal=True, maintain_order="left")
    coded = sort_ids(coded.sort("iteration"))
    lengths, codes = [], []
    for name in of.systems:
        of_one = coded.filter(system=name)
        sizes = dict(of_one.get_column("query_id").value_counts().iter_rows())
        lengths.append([sizes.get(query_id, 0) for query_id in ids])
        codes.append(of_one.get_column("code").to_list())
    return {"counts": [*map(list, distinct.select(KINDS).rows())], "lengths": lengths, "iterations": codes}


def _list_details(of: Evidence, chosen: Sequence[str], reasons: dict[str, int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each chosen query id with its searches and documents. New texts on causes and uses are added to `reasons`."""

    def code(said: str | None) -> int | None:
        return None if said is None else reasons.setdefault(said, len(reasons))

    wanted = pl.col("query_id").is_in(pl.Series(chosen, dtype=pl.String).implode())
    rel = of.explained.measure.rel
    found: dict[str, dict[Any, list[tuple[int, str, float | None]]]] = {}
    at: dict[str, dict[tuple[str, str], int]] = {}
    relevance = pl.col("relevance")
    kind = pl.when(relevance.is_null()).then(_UNJUDGED).when(relevance >= rel).then(_GOOD).otherwise(_OTHER)
    for name, searched in of.searched.items():
        firsts = searched.documents.filter(wanted).with_columns(kind=kind)
        again = searched.repeats.filter(wanted).drop("first_iteration")
        again = again.join(firsts.drop("iteration"), on=["query_id", "doc_id"]).with_columns(kind=pl.lit(_REPEATED))
        ordered = pl.concat([firsts, again], how="diagonal_relaxed").sort("query_id", "iteration", "kind", "doc_id")
        ordered = ordered.select("query_id", "iteration", "kind", "doc_id", "relevance")
        found[name] = ordered.rows_by_key(["query_id", "iteration"])
        at[name] = _map_documents(firsts, "iteration")
    texts = of.iterations.filter(wanted).select("system", "query_id", "query_text").rows_by_key(["system", "query_id"])
    titles, urls = (_map_documents(of.results.titles.filter(wanted), column) for column in ("title", "url"))
    good = of.qrels.largest.filter(wanted, relevance >= rel).sort("relevance", "doc_id", descending=[True, False])
    good_of = good.select("query_id", "doc_id", "relevance").rows_by_key("query_id")
    causes = {name: _describe_causes(of, name, wanted) for name in of.explanations}
    sentences = {
        name: dict(one.queries.filter(wanted).select("query_id", "sentence").iter_rows())
        for name, one in of.explanations.items()
    }
    uses = {}
    if of.uses is not None:
        columns = {f"use in {name}": name for name in of.systems}
        used = add_uses(good.select("query_id", "doc_id"), columns, of.uses, find_urls(of.qrels))
        uses = {name: _map_documents(used, column) for column, name in columns.items()}
    for query_id in chosen:
        # A document has one place for each label: labels can differ between iterations.
        documents: dict[tuple[str, float | None], int] = {}
        searches = []
        for name in of.systems:
            iterations = []
            for k, (text,) in enumerate(texts.get((name, query_id), []), 1):
                results = found[name].get((query_id, k), [])
                codes = [4 * documents.setdefault((one, label), len(documents)) + kind for kind, one, label in results]
                iterations.append([text and shorten(text, _LONGEST), codes])
            searches.append(iterations)
        rows = [
            [
                documents.setdefault((doc_id, label), len(documents)),
                [at[name].get((query_id, doc_id)) for name in of.systems],
                [code(causes[name].get((query_id, doc_id))) for name in of.explanations],
                [code(uses[name].get((query_id, doc_id))) for name in uses],
            ]
            for doc_id, label in good_of.get(query_id, [])
        ]
        described = [
            _describe(doc_id, label, titles.get((query_id, doc_id)), urls.get((query_id, doc_id)))
            for doc_id, label in documents
        ]
        said = [told and of.tell_cause(told) for told in (sentences[name].get(query_id) for name in of.explanations)]
        yield query_id, {"said": said, "documents": described, "searches": searches, "good": rows}


def _describe_causes(of: Evidence, name: str, wanted: pl.Expr) -> dict[tuple[str, str], str]:
    explanation, account = of.explanations[name], Account(of.explanations[name])
    rows = explanation.documents.filter(wanted, pl.col("cause").is_not_null(), measure=str(of.explained.numerator))
    return {
        (row["query_id"], row["doc_id"]): account.describe_cause(of.explained, row, "it")
        for row in rows.iter_rows(named=True)
    }


def _map_documents(rows: pl.DataFrame, column: str) -> dict[tuple[str, str], Any]:
    columns = rows.select("query_id", "doc_id", column)
    return {(query_id, doc_id): value for query_id, doc_id, value in columns.iter_rows()}


def _describe(doc_id: str, label: float | None, title: str | None, url: str | None) -> list[Any]:
    """Return a list of id, label, title and link of a document, without nulls at the end. A link is a printable web address."""
    address = url or doc_id
    number = int(label) if label is not None and float(label).is_integer() else label
    named = shorten(title, _LONGEST) if title is not None and title != doc_id else None
    described = [shorten(doc_id, _LONGEST), number, named, address if is_web_address(address) else None]
    while described[-1] is None:
        described.pop()
    return described
