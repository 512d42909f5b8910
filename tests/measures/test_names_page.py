"""The page of names elsewhere: it names every measure of the tools, and a measure that it gives has the tool's values."""

from __future__ import annotations

import re
from random import Random

import pytest
import pytrec_eval
import ranx
from ranx.data_structures.report import metric_labels

import goodgain as gg
from goodgain.measures.families import HOST_NAMES
from goodgain.measures.names import parse_measure
from tests.support.tables import ROOT

PAGE = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
SECTIONS = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])
#: Names of pytrec_eval without a value to compare, and those with another value, as the page says.
OTHER = {"11pt_avg", "gm_map", "gm_bpref", "num_q"}


def list_rows(section: str) -> list[tuple[str, list[str]]]:
    """Each first cell, and the names in the second one."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", SECTIONS[section], flags=re.MULTILINE)
    return [(name, re.findall(r"`([^`]+)`", cell)) for name, cell in rows]


def pair_names(section: str) -> dict[str, str]:
    """Name in the tool -> measure here."""
    pairs: dict[str, str] = {}
    for cell, ours in list_rows(section):
        names = cell.split(", ")
        if ours and len(names) == len(ours):
            pairs |= dict(zip(names, ours, strict=True))
    return pairs


RANDOM = Random(1)
QRELS = {f"q{n}": {f"d{k}": RANDOM.randint(0, 1) for k in range(12)} | {"r": 1} for n in range(6)}
RUN = {query: {f"d{k}": RANDOM.random() for k in range(3, 30)} for query in QRELS}


@pytest.mark.parametrize("section", ["The guideline", "trec_eval and pytrec_eval", "BEIR and MTEB", "ranx"])
def test_every_name_of_ours_on_the_page_is_a_measure(section: str) -> None:
    measures = [name.replace("@i", "@2") for name in pair_names(section).values() if not name.startswith("-")]
    of_ledger = {"R", "UR", "Dup", "GR", "G"}
    assert len(measures) >= 8
    for name in measures:
        if name not in of_ledger:
            parse_measure(name)


def test_every_measure_of_pytrec_eval_and_ranx_is_on_the_page() -> None:
    cells = {name for cell, _ in list_rows("trec_eval and pytrec_eval") for name in cell.split(", ")}
    known = {re.sub(r"_[\d.]+$", "", name) for name in cells}
    assert pytrec_eval.supported_measures - {"iprec_at_recall"} <= known and "iprec_at_recall_0.50" in cells
    of_ranx = {name for name in metric_labels if name not in HOST_NAMES and not name.startswith("rbp.")}
    assert of_ranx <= {name.partition("@")[0] for name, _ in list_rows("ranx")}


def test_measures_have_the_values_of_pytrec_eval() -> None:
    pairs = pair_names("trec_eval and pytrec_eval")
    names = [name for name in pairs if re.sub(r"_[\d.]+$", "", name) in pytrec_eval.supported_measures - OTHER]
    names.append("iprec_at_recall_0.50")
    asked = {re.sub(r"_(?=[\d.]+$)", ".", name) for name in names}
    found = pytrec_eval.RelevanceEvaluator(QRELS, asked).evaluate(RUN)
    scores = gg.evaluate(QRELS, RUN, [pairs[name] for name in names])
    for name in names:
        values = {query: of[name] for query, of in found.items()}
        rows = scores.per_query.filter(measure=str(parse_measure(pairs[name])))
        assert dict(rows.select("query_id", "value").iter_rows()) == pytest.approx(values), name


@pytest.mark.slow
def test_measures_have_the_values_of_ranx() -> None:
    pairs = {name: ours for name, ours in pair_names("ranx").items() if not name.startswith("-")}
    found = ranx.evaluate(ranx.Qrels(QRELS), ranx.Run(RUN), [*pairs])
    scores = gg.evaluate(QRELS, RUN, [*pairs.values()])
    means = {
        name: scores.per_query.filter(measure=str(parse_measure(ours)))["value"].mean() for name, ours in pairs.items()
    }
    assert means == pytest.approx(dict(found), rel=1e-6)


def test_a_cutoff_is_the_option_m_of_trec_eval() -> None:
    cut = {query: dict(sorted(docs.items(), key=lambda pair: -pair[1])[:5]) for query, docs in RUN.items()}
    found = pytrec_eval.RelevanceEvaluator(QRELS, {"map", "recip_rank", "ndcg"}).evaluate(cut)
    scores = gg.evaluate(QRELS, RUN, "AP@5 RR@5 nDCG@5").per_query
    for ours, theirs in {"AP@5": "map", "RR@5": "recip_rank"}.items():
        values = dict(scores.filter(measure=ours).select("query_id", "value").iter_rows())
        assert values == pytest.approx({query: of[theirs] for query, of in found.items()}), ours
