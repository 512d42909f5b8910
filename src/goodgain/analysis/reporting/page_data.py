"""Prepares the data of a report's page, in columns and codes that keep the page small."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.use_of_documents import Funnel, add_uses, find_urls
from goodgain.analysis.explaining.accounts import Account, shorten
from goodgain.analysis.explaining.causes import Parts, Searched
from goodgain.analysis.explaining.explanation import Explanation
from goodgain.analysis.explaining.explanation_sentences import find_main_causes
from goodgain.analysis.reporting.page_opening import PLACES, Opening, describe_query
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
    with_tiles: Comparison | None  # `comparison`, with the measures of the tiles
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
    def has_iterations(self) -> bool:
        """Whether some query of a first run has a second search."""
        most: Any = self.searches.get_column("search").max()
        return most is not None and most > 1

    @property
    def has_replicates(self) -> bool:
        return any(scores.replicates for scores in self.scores.values())

    @cached_property
    def queries(self) -> pl.DataFrame:
        """A row per query, measure and system: query_id, query_text, groups (if groups are given), measure, system and value.

        With several systems, `difference` is the value minus the value of the base. `cause` and `first_differing_iteration`
        describe the first runs. Both are null in measures other than `explained`, or if the first runs differ with another sign.
        """
        columns: dict[str, Any] = {
            "query_id": self.query_ids,
            "query_text": [self.texts.get(query_id) for query_id in self.query_ids],
        }
        if self.groups is not None:
            columns["groups"] = [", ".join(groups) for groups in _list_groups(self)]
        table = pl.DataFrame(columns, schema_overrides={"query_text": pl.String})
        table = table.join(pl.DataFrame({"measure": [*self.measures]}), how="cross", maintain_order="left_right")
        table = table.join(pl.DataFrame({"system": self.systems}), how="cross", maintain_order="left_right")

        key = ["query_id", "measure", "system"]
        values = []
        for system, scores in self.scores.items():
            of_system = scores.per_query.with_columns(system=pl.lit(system))
            values.append(of_system.select(*key, pl.col("value").fill_nan(None)))
        table = table.join(pl.concat(values), on=key, how="left", maintain_order="left")
        if self.comparison is None:
            return table
        return self._add_causes(self._add_differences(table))

    def _add_differences(self, table: pl.DataFrame) -> pl.DataFrame:
        # the base is the first system of each query and measure
        value_of_base = table.select(pl.col("value").first().over("query_id", "measure")).to_series()
        differences = pl.Series(subtract_without_residue(table["value"].to_numpy(), value_of_base.to_numpy()))
        is_other = pl.col("system") != self.systems[0]
        return table.with_columns(difference=pl.when(is_other).then(differences.fill_nan(None)))

    def _add_causes(self, table: pl.DataFrame) -> pl.DataFrame:
        """Add `cause` and `first_differing_iteration`, with null where the first runs do not differ as the systems do."""
        key = ["query_id", "measure", "system"]
        causes = []
        for system, explanation in self.explanations.items():
            main = find_main_causes(Account(explanation), self.explained)
            columns = main.select(
                "query_id", "measure", "cause", "first_differing_iteration", difference_of_runs="difference"
            )
            causes.append(columns.with_columns(system=pl.lit(system)))
        table = table.join(pl.concat(causes), on=key, how="left", maintain_order="left")

        # the causes are those of the first runs, which can differ the other way round
        has_same_sign = pl.col("difference").sign() == pl.col("difference_of_runs").sign()
        is_explained = (pl.col("difference") != 0) & has_same_sign
        shown = pl.when(is_explained).then(pl.col("cause", "first_differing_iteration"))
        return table.with_columns(shown).drop("difference_of_runs")

    @cached_property
    def changed(self) -> list[str]:
        """The query ids, sorted by the size of the change in the explained measure. Losses come before gains of the same size.

        The first id is an exception: the query that changed most for the headline's system. A single system: sorted by value.
        """
        rows = self.queries.filter(measure=str(self.explained.measure))
        if self.comparison is None:
            return rows.sort("value", nulls_last=True, maintain_order=True).get_column("query_id").to_list()
        pairs = rows.filter(pl.col("system") != self.systems[0])
        first = self._sort_by_change(pairs.filter(system=self.opening.lead)).head(1)
        return [*dict.fromkeys([*first, *self._sort_by_change(pairs)])]

    def _sort_by_change(self, pairs: pl.DataFrame) -> pl.Series:
        """Return the query ids by their largest change in any system, the largest first. Of equal changes losses come first."""
        sign = -1 if self.explained.measure.declaration.better == "down" else 1
        change = pairs.group_by("query_id", maintain_order=True).agg(
            largest=pl.col("difference").abs().max(),
            worst=(sign * pl.col("difference")).min(),
        )
        in_order = change.sort("largest", "worst", descending=[True, False], nulls_last=True, maintain_order=True)
        return in_order.get_column("query_id")

    def describe_first_query(self) -> str | None:
        """Return a sentence on the query to look at first, or None if the query has a missing or an unchanged value."""
        measure = str(self.explained.measure)
        query_id = self.changed[0]  # with one system, the query with the lowest value
        # The headline compares `lead` with `base`. In a report on one system they are the same.
        lead, base = self.opening.lead, self.systems[0]
        compared_systems = [lead] if lead == base else [lead, base]

        rows = self.queries.filter(measure=measure, query_id=query_id).rows_by_key("system", named=True, unique=True)
        values = {system: rows[system]["value"] for system in compared_systems}
        if None in values.values():
            return None
        if self.comparison is not None and not rows[lead]["difference"]:
            return None
        return describe_query(measure, query_id, self.texts.get(query_id), values)

    def tell_cause(self, text: str) -> str:
        """Return the text. If a system has several runs, the text gets the prefix `Of the first runs:`."""
        return f"Of the first runs: {text}" if self.has_replicates else text


def build_data(evidence: Evidence) -> dict[str, Any]:
    """Return the data that the script of the page reads. Lists of queries have the order of `query_ids`."""
    systems, query_ids = evidence.systems, evidence.query_ids
    others = systems[1:]
    rows = evidence.queries.partition_by("measure", "system", as_dict=True)
    explained = str(evidence.explained.measure)
    causes: dict[str, int] = {}
    changes = []
    if others:
        causes = _number(evidence.queries.get_column("cause").drop_nulls())
    for system in others:
        changes.append(_code_changes(rows[explained, system], causes))

    texts = None
    if evidence.texts:
        texts = [evidence.texts.get(query_id) for query_id in query_ids]
    absent = []
    for system in systems:
        is_absent = query_ids.is_in(evidence.searched[system].absent.implode())
        absent.append(is_absent.arg_true().to_list())

    data = {
        "systems": systems,
        "measures": [*evidence.measures.items()],
        "explained": explained,
        "queries": query_ids.to_list(),
        "texts": texts,
        "values": [[_round(rows[measure, name], "value") for name in systems] for measure in evidence.measures],
        "differences": [
            [_round(rows[measure, name], "difference") for name in others] for measure in evidence.measures
        ],
        "causes": [*causes],
        "changes": changes,
        "absent": absent,
        **_code_iterations(evidence),
    }
    if evidence.groups is not None:
        number_of_group = _number(evidence.groups.get_column("group"))
        data["groups"] = [*number_of_group]
        data["members"] = [[number_of_group[group] for group in groups] for groups in _list_groups(evidence)]

    number_of_query = _number(query_ids)
    data["first"] = number_of_query[evidence.changed[0]]
    data["lead"] = systems.index(evidence.opening.lead)
    details = _Details(evidence, evidence.changed[: evidence.details])
    data["details"] = {number_of_query[query_id]: details.list_of(query_id) for query_id in details.query_ids}
    data["reasons"] = [*details.reasons]
    return data


def _code_changes(rows: pl.DataFrame, causes: Mapping[str, int]) -> dict[str, Any]:
    """Return the code of the cause (-1 for none) and the first differing iteration of each query. `rows` are of one system."""
    cause = rows.get_column("cause")
    codes = cause.replace_strict([*causes], [*causes.values()], default=-1, return_dtype=pl.Int64)
    return {"cause": codes.to_list(), "at": rows.get_column("first_differing_iteration").to_list()}


def _round(rows: pl.DataFrame, column: str) -> list[float | None]:
    """Return the values of a column with four decimals. Whole numbers become integers, which are shorter on the page."""
    values: list[float | None] = []
    for value in rows.get_column(column):
        rounded = None if value is None else round(value, PLACES)
        if rounded is not None and rounded.is_integer():
            rounded = int(rounded)
        values.append(rounded)
    return values


def _number(words: Iterable[str]) -> dict[str, int]:
    return {word: number for number, word in enumerate(dict.fromkeys(words))}


def _list_groups(evidence: Evidence) -> list[list[str]]:
    """Return the groups of each query."""
    if evidence.groups is None:
        return [[] for _ in evidence.query_ids]
    members = evidence.groups.rows_by_key("query_id")
    return [[group for (group,) in members.get(query_id, [])] for query_id in evidence.query_ids]


def _code_iterations(evidence: Evidence) -> dict[str, Any]:
    """Return the distinct counts of iterations and, for each system, the lengths of the queries and the codes of iterations."""
    rows = evidence.iterations.select("system", "query_id", "iteration", pl.col(KINDS).cast(pl.Int64))
    distinct = rows.select(KINDS).unique(maintain_order=True).with_row_index("code")
    coded = rows.join(distinct, on=KINDS, nulls_equal=True, maintain_order="left")
    coded = sort_ids(coded.sort("iteration"))

    lengths, codes = [], []
    for system in evidence.systems:
        of_system = coded.filter(system=system)
        sizes = dict(of_system.get_column("query_id").value_counts().iter_rows())
        lengths.append([sizes.get(query_id, 0) for query_id in evidence.query_ids])
        codes.append(of_system.get_column("code").to_list())
    return {"counts": [*map(list, distinct.select(KINDS).rows())], "lengths": lengths, "iterations": codes}


class _Details:
    """The searches and documents of chosen queries, in tables by query.

    `reasons` maps texts on causes and uses to their codes. `list_of` adds the texts that it uses.
    """

    def __init__(self, evidence: Evidence, query_ids: Sequence[str]) -> None:
        self.query_ids = query_ids
        self.reasons: dict[str, int] = {}
        self._evidence = evidence
        is_chosen = pl.col("query_id").is_in(pl.Series(query_ids, dtype=pl.String).implode())
        relevance = pl.col("relevance")
        rel = evidence.explained.measure.rel

        # system -> (query_id, iteration) -> (kind, doc_id, relevance), and (query_id, doc_id) -> iteration
        self._results: dict[str, dict[Any, list[tuple[int, str, float | None]]]] = {}
        self._found_at: dict[str, dict[tuple[str, str], int]] = {}
        kind = pl.when(relevance.is_null()).then(_UNJUDGED).when(relevance >= rel).then(_GOOD).otherwise(_OTHER)
        for system, searched in evidence.searched.items():
            firsts = searched.documents.filter(is_chosen).with_columns(kind=kind)
            self._results[system] = _list_results(firsts, searched.repeats.filter(is_chosen))
            self._found_at[system] = _map_documents(firsts, "iteration")

        texts = evidence.iterations.filter(is_chosen).select("system", "query_id", "query_text")
        self._search_texts = texts.rows_by_key(["system", "query_id"])
        titles = evidence.results.titles.filter(is_chosen)
        self._titles, self._urls = _map_documents(titles, "title"), _map_documents(titles, "url")

        is_good = relevance >= rel
        good = evidence.qrels.largest.filter(is_chosen, is_good)
        good = good.sort("relevance", "doc_id", descending=[True, False])
        self._good = good.select("query_id", "doc_id", "relevance").rows_by_key("query_id")

        self._causes, self._sentences = {}, {}
        for system, explanation in evidence.explanations.items():
            self._causes[system] = _describe_causes(evidence, system, is_chosen)
            sentences = explanation.queries.filter(is_chosen).select("query_id", "sentence")
            self._sentences[system] = dict(sentences.iter_rows())
        self._uses: dict[str, dict[tuple[str, str], str]] = {}
        if evidence.uses is not None:
            system_of_column = {f"use in {system}": system for system in evidence.systems}
            documents = good.select("query_id", "doc_id")
            used = add_uses(documents, system_of_column, evidence.uses, find_urls(evidence.qrels))
            self._uses = {system: _map_documents(used, column) for column, system in system_of_column.items()}

    def list_of(self, query_id: str) -> dict[str, Any]:
        """Return what the page shows of a query: a sentence for each pair, documents, searches and good documents."""
        # A document has one place for each label: labels can differ between iterations.
        places: dict[tuple[str, float | None], int] = {}
        searches = [self._list_searches(system, query_id, places) for system in self._evidence.systems]
        good = [self._list_good(query_id, doc_id, label, places) for doc_id, label in self._good.get(query_id, [])]

        documents = []
        for doc_id, label in places:
            key = (query_id, doc_id)
            documents.append(_describe(doc_id, label, self._titles.get(key), self._urls.get(key)))
        sentences = []
        for sentences_of_system in self._sentences.values():
            sentence = sentences_of_system.get(query_id)
            sentences.append(sentence and self._evidence.tell_cause(sentence))
        return {"said": sentences, "documents": documents, "searches": searches, "good": good}

    def _list_searches(
        self, system: str, query_id: str, places: dict[tuple[str, float | None], int]
    ) -> list[list[Any]]:
        """Return the text and the results of each search. A result is coded as 4 * (place of the document) + kind."""
        searches = []
        for iteration, (text,) in enumerate(self._search_texts.get((system, query_id), []), 1):
            codes = []
            for kind, doc_id, label in self._results[system].get((query_id, iteration), []):
                place = places.setdefault((doc_id, label), len(places))
                codes.append(4 * place + kind)
            searches.append([text and shorten(text, _LONGEST), codes])
        return searches

    def _list_good(
        self, query_id: str, doc_id: str, label: float, places: dict[tuple[str, float | None], int]
    ) -> list[Any]:
        """Return the place of a good document, the iterations that found it, and the codes of causes and uses."""
        key = (query_id, doc_id)
        return [
            places.setdefault((doc_id, label), len(places)),
            [self._found_at[system].get(key) for system in self._evidence.systems],
            [self._code(causes.get(key)) for causes in self._causes.values()],
            [self._code(uses.get(key)) for uses in self._uses.values()],
        ]

    def _code(self, reason: str | None) -> int | None:
        return None if reason is None else self.reasons.setdefault(reason, len(self.reasons))


def _list_results(firsts: pl.DataFrame, repeats: pl.DataFrame) -> dict[Any, list[tuple[int, str, float | None]]]:
    """Return the kind, document and label of each result by query and iteration: good documents first."""
    labels = firsts.drop("iteration")
    repeated = repeats.drop("first_iteration").join(labels, on=["query_id", "doc_id"])
    results = pl.concat([firsts, repeated.with_columns(kind=pl.lit(_REPEATED))], how="diagonal_relaxed")
    results = results.sort("query_id", "iteration", "kind", "doc_id")
    return results.select("query_id", "iteration", "kind", "doc_id", "relevance").rows_by_key(["query_id", "iteration"])


def _describe_causes(evidence: Evidence, system: str, is_chosen: pl.Expr) -> dict[tuple[str, str], str]:
    """Map (query_id, doc_id) of good documents to why the system or the base alone counts them, in words."""
    explanation = evidence.explanations[system]
    account = Account(explanation)
    is_caused = pl.col("cause").is_not_null()
    rows = explanation.documents.filter(is_chosen, is_caused, measure=str(evidence.explained.numerator))
    return {
        (row["query_id"], row["doc_id"]): account.describe_cause(evidence.explained, row, "it")
        for row in rows.iter_rows(named=True)
    }


def _map_documents(rows: pl.DataFrame, column: str) -> dict[tuple[str, str], Any]:
    columns = rows.select("query_id", "doc_id", column)
    return {(query_id, doc_id): value for query_id, doc_id, value in columns.iter_rows()}


def _describe(doc_id: str, label: float | None, title: str | None, url: str | None) -> list[Any]:
    """Return a list of id, label, title and link of a document, without nulls at the end. A link is a printable web address."""
    number = label
    if label is not None and float(label).is_integer():
        number = int(label)
    name = None
    if title is not None and title != doc_id:
        name = shorten(title, _LONGEST)
    address = url or doc_id
    described = [shorten(doc_id, _LONGEST), number, name, address if is_web_address(address) else None]
    while described[-1] is None:
        described.pop()
    return described
