"""Corrects the means of an experiment, whose qrels are a model's labels, by people's labels of some of its queries."""

from collections.abc import Sequence
from typing import Any

import ir_measures

from goodgain.counting.joined_addresses import join_labels
from goodgain.counting.run_opening import map_documents
from goodgain.formats import Qrels
from goodgain.formats.qrels import load_qrels
from goodgain.judgments.judging.aggregation import aggregate
from goodgain.judgments.judging.conclusions_from_model_labels import PoweredEstimate, estimate_means
from goodgain.scoring.scoring import Scoring


def correct_means(
    x: Scoring, human: Any, measures: Sequence[ir_measures.Measure]
) -> dict[str, dict[str, PoweredEstimate]]:
    """Return the estimate of each mean, by system and measure. `human` has people's grades, in any form that `aggregate` takes."""
    people = _read_people(x, human)
    opened = x.opened
    return {name: estimate_means(people, opened.qrels, run, measures) for name, run in opened.runs.items()}


def _read_people(x: Scoring, human: Any) -> Qrels:
    """Read people's labels, with the ids that documents have in the experiment."""
    people: Qrels = load_qrels(aggregate(human, how="mean"))
    mapping = {name: x.options[name] for name in ("documents", "documents_of", "chunks")}
    if mapping["documents"] is not None:
        unmapped = x.with_(documents=None, documents_of="both", chunks="collapse").opened.runs
        people, _ = map_documents(people, unmapped, **mapping)
    return join_labels(people, x.opened.qrels) if x.options["urls"] == "join" else people
