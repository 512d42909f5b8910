"""What ir_measures gives for a case, by the provider of its own choice, one measure at a time; and what it cannot do here."""

from __future__ import annotations

import ir_measures
import polars as pl
import pytest

from goodgain.providers import ProviderScores
from tests.support.ranking_cases import RankedCase
from tests.support.ranking_oracle import in_trec_evals_order


def _reads_names() -> bool:
    try:
        ir_measures.parse_measure("P@1")
    except AttributeError:  # ast.Num
        return False
    return True


#: Marks what needs the parser or the command of ir_measures.
needs_names_in_ir_measures = pytest.mark.skipif(
    not _reads_names(), reason="this ir_measures reads no names of measures under Python 3.14 or later (its issue 80)"
)


def ask_host(measure: ir_measures.Measure, case: RankedCase) -> dict[str, float]:
    """query -> value, for every judged query. Fractional labels reach hosts in the form that goodgain gives to them.

    cwl_eval leaves tied documents in the order of the run: it is given scores without ties, in trec_eval's order.
    """
    if measure.NAME == "RBP":
        case = case._replace(scores={query: _without_ties(docs) for query, docs in case.scores.items()})
    labels = case.qrels.with_columns(iteration=pl.lit("0"))
    hosts = ProviderScores([measure], labels)
    hosts.add(labels, case.ranking)
    scores = hosts.finish(labels.clear())
    return dict(scores.per_query.select("query_id", "value").iter_rows())


def _without_ties(scores: dict[str, float]) -> dict[str, float]:
    return {doc: float(-place) for place, doc in enumerate(in_trec_evals_order(scores))}
