"""Scores the searches of one query at a time, fast enough for rewards while an agent is trained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Unpack

import ir_measures
import numpy as np
import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.counting.ledger import count_pools
from goodgain.counting.run_opening import open_systems
from goodgain.errors import GoodgainNotice, InputError, collect_notices, without_notices
from goodgain.formats import Qrels
from goodgain.formats.qrels import load_qrels
from goodgain.measures.declaration import Declaration, GoodGainMeasure, IterationMeasure, find_declaration
from goodgain.measures.ledger_table import LedgerTable
from goodgain.measures.names import Measures, is_computed_here, is_null_without_search, parse_measures
from goodgain.measures.parameters import read_parameters
from goodgain.measures.rows_of_queries import Array
from goodgain.measures.terms import Documents, Ranks
from goodgain.measures.thresholds import find_thresholds, warn_of_labels
from goodgain.measures.users_values import MeasureOfUser
from goodgain.options import DOCUMENTS, READING, check_choice
from goodgain.ranking.ranking_table import POSITIONS, Gains
from goodgain.schema import EMPTY_DOC
from goodgain.scoring.scoring import DEFAULTS, Scoring
from goodgain.scoring.shared_arguments import RankingOptions, takes_options

#: The searches of a query in order. A search is the list of the documents that it returned, best first.
Searches = Sequence[Sequence[str]]

#: Options that change documents or iterations. With one of them, `evaluate` scores the query, which takes a hundred times as long.
_OF_EVALUATE = ("documents", "leave_out", "page")


class _Label(NamedTuple):
    """The label of a document, and its two parts, which are added up apart (see `find_unit`)."""

    label: float
    whole: float
    rest: float


class Scorer:
    """Scores the searches of one query at a time. The judgments are looked up once.

    Attributes:
        measures: the measures, as names.
        notices: the texts of the notices on qrels and measures. Calls give no notices.

    Values are equal to those of `evaluate` to the last digit. A scorer can be pickled, and used by several threads.

    >>> scorer = Scorer({"q": {"a": 3, "b": 2}}, "nCG@6 SRR@6")
    >>> scorer.score("q", [["a", "x"], ["a", "b"]])
    {'nCG@6': 1.0, 'SRR@6': 0.25}
    >>> scorer.score("q", [["a", "x"], ["a", "b"]], step=True)  # what the second search added
    {'nCG@6': 0.4, 'SRR@6': 0.25}
    """

    @takes_options
    def __init__(self, qrels: Any, measures: Measures, **options: Unpack[RankingOptions]) -> None:
        """Look up the judgments.

        Args:
            qrels: judgments in any form that `read_qrels` accepts.
            measures: names of measures, measure objects or both, as for `evaluate`.
            {options}

        Raises:
            InputError: the qrels cannot be read.
            MeasureError: a measure is unknown, or cannot be computed from these qrels.
        """
        self._options: dict[str, Any] = {**options}
        values: dict[str, Any] = {**DEFAULTS, **options}
        check_choice("order", values["order"])
        self._order = values["order"]
        self._measures = parse_measures(measures, rel=values["rel"])
        self.measures = [str(measure) for measure in self._measures]

        notices: list[GoodgainNotice] = []
        reading = {option.name: values[option.name] for option in (*READING, *DOCUMENTS)}
        with collect_notices(notices.append):
            self._given = _read(qrels, reading)
            self._qrels = self._given
            # whether `_ShortWay` computes the values, and not `evaluate`, which applies the options on documents itself
            self._is_short = self._can_be_short(values)
            if self._is_short:
                self._qrels, _ = open_systems(self._given, {}, **reading)
            warn_of_labels(self._qrels.frame, self._measures, rel=values["rel"])
        self.notices = tuple(map(str, notices))

        self._numbers = {query_id: number for number, query_id in enumerate(self._qrels.query_ids)}
        if self._is_short:
            self._short = _ShortWay(self._qrels, self._measures, self._order, joins=values["urls"] == "join")

    @checks_kinds
    def score(self, query_id: str, searches: Searches, *, step: bool = False) -> dict[str, float | None]:
        """Return the value of each measure for the searches of a query.

        Args:
            query_id: a query of the qrels.
            searches: for each search, in order, the list of the documents that it returned, best first. A search without results
                is an empty list. Without any search, the values are those of a query without a search.
            step: return what the last search added: the values minus those without the last search. A measure that has no value
                before or after the search gets None.

        Returns:
            A dict from each measure to its value, or to None for no value.

        Raises:
            InputError: the qrels lack the query, or a document is not a text.
        """
        if query_id not in self._numbers:
            known = ", ".join(list(self._numbers)[:3])
            raise InputError(f"query {query_id!r} has no judgments; the qrels have {known}, ... Leave the query out.")
        searches = _check_searches(searches)
        values = self._score(query_id, searches)
        if not step:
            return values
        if not searches:
            raise InputError("step=True: give at least one search, whose gain is wanted")

        before = self._score(query_id, searches[:-1])
        added: dict[str, float | None] = {}
        for name, value in values.items():
            earlier = before[name]
            added[name] = None if value is None or earlier is None else value - earlier
        return added

    @checks_kinds
    def score_many(
        self, rollouts: Iterable[tuple[str, Searches]], *, step: bool = False
    ) -> list[dict[str, float | None]]:
        """Return the result of `score` for each pair of query_id and searches.

        >>> Scorer({"q": {"a": 3}}, "nCG").score_many([("q", [["a"]]), ("q", [["x"]])])
        [{'nCG': 1.0}, {'nCG': 0.0}]
        """
        values = []
        for rollout in rollouts:
            if not isinstance(rollout, Sequence) or len(rollout) != 2:
                raise InputError(f"rollouts={rollout!r}: give pairs of a query_id and its searches")
            query_id, searches = rollout
            values.append(self.score(query_id, searches, step=step))
        return values

    def __repr__(self) -> str:
        return f"Scorer({' '.join(self.measures)}; {len(self._numbers):,} queries)"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._options), (self._given, self._measures)

    def _can_be_short(self, values: Mapping[str, Any]) -> bool:
        """Return whether all measures come from the ledger or the ranking, and no option changes documents or iterations."""
        if self._given.labels is not None or any(values[option] is not None for option in _OF_EVALUATE):
            return False
        return all(map(_has_formula, self._measures))

    def _score(self, query_id: str, searches: list[list[str]]) -> dict[str, float | None]:
        if self._is_short:
            values = self._short.score(self._numbers[query_id], searches)
            if values is not None:
                return dict(zip(self.measures, values, strict=True))
        return self._evaluate(query_id, searches)

    def _evaluate(self, query_id: str, searches: list[list[str]]) -> dict[str, float | None]:
        """Return the values of `evaluate` for a run with this query alone."""
        rows = []
        for number, results in enumerate(searches, 1):
            for doc_id in results or [EMPTY_DOC]:
                rows.append((query_id, number, doc_id))
        run = pl.DataFrame(rows, {"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String}, orient="row")
        with without_notices():
            scores = Scoring(self._given, {"": run}, **self._options).score_systems(self._measures)[""]
        of_query = scores.per_query.filter(query_id=query_id)
        return dict(of_query.select("measure", "value").iter_rows())


def _read(qrels: Any, reading: Mapping[str, Any]) -> Qrels:
    """Return the qrels as they were given. Options on documents apply later."""
    options = {name: reading[name] for name in ("labels", "errors", "columns")}
    return qrels if isinstance(qrels, Qrels) else load_qrels(qrels, **options)


def _has_formula(measure: ir_measures.Measure) -> bool:
    if isinstance(measure, GoodGainMeasure):
        return not isinstance(measure, MeasureOfUser)
    return not isinstance(measure, IterationMeasure) and is_computed_here(measure)


def _check_searches(searches: Any) -> list[list[str]]:
    """Return the searches as lists. Raise `InputError` for a document that is not a text: a text alone is not a search."""
    if isinstance(searches, (str, bytes)) or not isinstance(searches, Iterable):
        raise InputError("searches: give a list of searches, each a list of documents")
    checked = []
    for search in searches:
        if isinstance(search, (str, bytes)) or not isinstance(search, Iterable):
            raise InputError(f"searches: {search!r} is not a list of documents")
        results = list(search)
        if not (all(results) and {*map(type, results)} <= {str}):
            wrong = next(doc_id for doc_id in results if not doc_id or type(doc_id) is not str)
            raise InputError(f"searches: the document {wrong!r} is not an id; give texts")
        if EMPTY_DOC in results:
            results = [doc_id for doc_id in results if doc_id != EMPTY_DOC]
        checked.append(results)
    return checked


class _LedgerTerm(NamedTuple):
    """A measure of the ledger: its place among the measures, and what its value needs."""

    place: int
    rel: float
    cutoff: int | None
    formula: Any
    parameters: dict[str, Any]


class _RankedTerm(NamedTuple):
    place: int
    declared: Declaration
    parameters: dict[str, Any]
    position: str
    gains: Gains


class _ShortWay:
    """Computes the values of one query from its lists of documents, by the formulas that `evaluate` uses."""

    def __init__(self, qrels: Qrels, measures: Sequence[ir_measures.Measure], order: str, *, joins: bool) -> None:
        self._judgments = qrels.judgments
        self._unit = qrels.unit
        self._order = order
        self._joins = joins and not qrels.addresses.is_empty()
        self._labels: dict[int, dict[str, _Label]] = {}  # number of a query -> document -> label
        self._pages: dict[str, str] = {}  # document -> its web page, or itself
        self._rels = find_thresholds(measures)
        self._null_places = [place for place, measure in enumerate(measures) if is_null_without_search(measure)]
        self._count = len(measures)

        pools = count_pools(self._judgments, rels=self._rels)
        self._pools = {
            rel: {name: pools.get_column(f"{name}{k}").to_numpy() for name in ("GoodPool", "GainPool")}
            for k, rel in enumerate(self._rels)
        }
        self._of_ledger: list[_LedgerTerm] = []
        self._of_ranking: list[_RankedTerm] = []
        for place, measure in enumerate(measures):
            self._add(place, measure)

    def _add(self, place: int, measure: ir_measures.Measure) -> None:
        """Add a measure to those of the ledger or those of the ranking. `place` is its place among all measures."""
        parameters = read_parameters(measure)
        if isinstance(measure, GoodGainMeasure):
            rel = measure.rel if measure.declaration.uses_rel else self._rels[0]  # else the same at any threshold
            self._of_ledger.append(_LedgerTerm(place, rel, measure.cutoff, measure.declaration.formula, parameters))
            return
        declared = find_declaration(measure)
        assert declared is not None  # `_has_formula` was true
        declared.check_scale(measure, self._judgments.labels.get_column("relevance"))
        gains: Gains = tuple(sorted(parameters.get("gains", {}).items()))
        self._of_ranking.append(_RankedTerm(place, declared, parameters, declared.position(parameters), gains))

    def score(self, number: int, searches: list[list[str]]) -> list[float | None] | None:
        """Return the value of each measure; None if labels are too large to add up, which `evaluate` tells."""
        if self._joins:
            searches = [list(map(self._find_page, search)) for search in searches]
        labels = self._labels.get(number)
        if labels is None:
            labels = self._labels[number] = self._list_labels(number)

        values = [math.nan] * self._count
        with np.errstate(all="ignore"):
            if self._of_ledger:
                self._score_ledger(number, searches, labels, values)
            if self._of_ranking and not self._score_ranking(number, searches, labels, values):
                return None
        if not searches:
            for place in self._null_places:
                values[place] = math.nan
        return [value if math.isfinite(value) else None for value in values]

    def _find_page(self, doc_id: str) -> str:
        page = self._pages.get(doc_id)
        if page is None:
            page = self._pages[doc_id] = _name_page(doc_id)
        return page

    def _list_labels(self, number: int) -> dict[str, _Label]:
        """Return the labels of a query by document, or by web page if ids of one page are joined."""
        starts = self._judgments.starts
        rows = self._judgments.labels[int(starts[number]) : int(starts[number + 1])]
        labels: dict[str, _Label] = {}
        for doc_id, label in rows.select("doc_id", "relevance").iter_rows():
            whole = math.floor(label / self._unit) * self._unit if self._unit else label
            labels[self._find_page(doc_id) if self._joins else doc_id] = _Label(label, whole, label - whole)
        return labels

    def _score_ledger(
        self, number: int, searches: list[list[str]], labels: Mapping[str, _Label], values: list[float]
    ) -> None:
        """Write the values of the measures of the ledger into `values`, at their places."""
        met: set[str] = set()
        unique, unjudged = [], []
        labels_of_searches: list[list[_Label]] = []  # of the new documents of each search
        for search in searches:
            new = [doc_id for doc_id in dict.fromkeys(search) if doc_id not in met]
            met.update(new)
            labels_of_new = [labels[doc_id] for doc_id in new if doc_id in labels]
            unique.append(len(new))
            unjudged.append(len(new) - len(labels_of_new))
            labels_of_searches.append(labels_of_new)

        n = len(searches)
        results = np.array([len(search) for search in searches], np.float64)
        new_results = np.array(unique, np.float64)
        columns = {
            "iteration": np.arange(1, n + 1),
            "R": results,
            "UR": new_results,
            "Dup": results - new_results,
            "Unjudged": np.array(unjudged, np.float64),
        }
        tables: dict[float, LedgerTable] = {}
        for rel in self._rels:
            good = [[label for label in of_search if label.label >= rel] for of_search in labels_of_searches]
            pools = {name: pool[number : number + 1] for name, pool in self._pools[rel].items()}
            counts = {
                "GR": np.array([len(labels_of_search) for labels_of_search in good], np.float64),
                "G": np.array(list(map(self._add_up, good)), np.float64),
            }
            tables[rel] = LedgerTable(
                columns | counts,
                np.array([n]),
                pools | {"N": np.array([n])},
                judgments=self._judgments,
                queries=np.array([number]),
            )
        for term in self._of_ledger:
            value = tables[term.rel].cut(term.cutoff).apply(term.formula, term.parameters)
            values[term.place] = float(value[0])

    def _add_up(self, labels: list[_Label]) -> float:
        whole = rest = 0.0
        for label in labels:
            whole += label.whole
            rest += label.rest
        return whole + rest if self._unit else whole

    def _score_ranking(
        self, number: int, searches: list[list[str]], labels: Mapping[str, _Label], values: list[float]
    ) -> bool:
        """Write the values of measures over the ranking into `values`, at their places. Return whether all are finite or null."""
        ranking = _flatten(searches, self._order)
        judged = [(k, labels[doc_id].label) for k, doc_id in enumerate(ranking, 1) if doc_id in labels]
        k = np.array([rank for rank, _ in judged], np.float64)
        documents = self._make_documents(number, k, np.array([label for _, label in judged]), len(ranking))

        ideals: dict[Gains, Documents] = {}
        for term in self._of_ranking:
            if not ranking and term.declared.family == "classic":  # as in ir_measures
                values[term.place] = 0.0
                continue
            if term.gains not in ideals:
                ideals[term.gains] = self._make_ideal(number, term.gains, len(ranking))
            ideal = Ranks(ideals[term.gains], term.parameters, "k")
            value = float(term.declared.formula(Ranks(documents, term.parameters, term.position, ideal=ideal))[0])
            if math.isinf(value) or (math.isnan(value) and not term.declared.null_if):
                return False
            values[term.place] = value
        return True

    def _make_ideal(self, number: int, gains: Gains, num_ret: int) -> Documents:
        gained, lengths = self._judgments.rank_ideally(gains)
        start = int(lengths[:number].sum())
        label = gained[start : start + int(lengths[number])]
        return self._make_documents(number, np.arange(1.0, len(label) + 1), label, num_ret)

    def _make_documents(self, number: int, k: Array, label: Array, num_ret: int) -> Documents:
        """Return the judged documents of one query: their ranks `k` and labels. `num_ret` also counts unjudged documents."""
        place = slice(number, number + 1)
        return Documents(
            np.array([len(label)]),
            dict.fromkeys(POSITIONS, k),
            label.astype(np.float64),
            num_ret=np.array([float(num_ret)]),
            num_judged=self._judgments.num_judged[place],
            count_relevant=lambda rel: self._judgments.count_relevant(rel)[place],
        )


def _name_page(doc_id: str) -> str:
    from goodgain.formats.urls import find_page  # the rules for URLs take 12 ms to import

    is_address = doc_id.startswith(("http", "HTTP"))
    return (find_page(doc_id) if is_address else None) or doc_id


def _flatten(searches: list[list[str]], order: str) -> list[str]:
    """Return the distinct documents in the order of the option `order`."""
    if order == "last":
        searches = searches[-1:]
    if order == "interleaved":
        places = sorted(
            (position, number, doc_id)
            for number, search in enumerate(searches)
            for position, doc_id in enumerate(search)
        )
        return list(dict.fromkeys(doc_id for _, _, doc_id in places))
    return list(dict.fromkeys(doc_id for search in searches for doc_id in search))
