"""goodgain: the Retrieved Good Gain measures for agents that search in several rounds.

`import goodgain` registers the measures with ir_measures.
"""

import importlib
from typing import TYPE_CHECKING, Any

import goodgain.interrupts  # noqa: F401  # isort: skip  # first: what follows takes long

import ir_measures  # noqa: F401  # first: one that loads entry points imports all of goodgain from there

from goodgain.errors import GoodgainError, GoodgainNotice, InputError, MeasureError
from goodgain.hosts.ir_measures import register
from goodgain.measures.beside_the_run import AreaOver, RepeatedQueries
from goodgain.measures.classic import ERR, nDCG
from goodgain.measures.good_gain import (
    CG,
    DCGG,
    DRAG,
    DRG,
    RAG,
    RG,
    SRE,
    SRR,
    AllGood,
    AvgGain,
    EvidenceRecall,
    IterationsForAllGoodResults,
    NoProgress,
    NumDup,
    NumGood,
    NumIter,
    NumResults,
    NumUnique,
    NumUnjudged,
    OverSearch,
    SearchGain,
    SearchPrecision,
    nCG,
    nDCGG,
)
from goodgain.measures.not_in_ir_measures import (
    ElevenPointAP,
    F,
    Fallout,
    GradedAP,
    GradedCG,
    GradedDCG,
    GradednDCG,
    GradedP,
    GradedRR,
    InterpolatedPrecision,
    RankDCG,
    RankIDCG,
    RBPResidual,
    RelativeP,
    TruncatedAP,
    Unjudged,
)
from goodgain.measures.session_gain import ACT, CT, SessionDCG, SessionDCGq, SessionRBP, nCT, nSessionDCG
from goodgain.measures.session_measures import NuggetCoverage, NuggetRecall, PerIteration, SubtopicRecall
from goodgain.version import __version__, show_versions

if TYPE_CHECKING:
    from goodgain.analysis.comparing.comparison import Comparison
    from goodgain.analysis.comparing.explanation import Explanation
    from goodgain.analysis.comparing.gate_reports import check
    from goodgain.analysis.comparing.use_of_documents import Funnel, funnel
    from goodgain.analysis.reporting import plots
    from goodgain.evaluation import flatten
    from goodgain.experiments.doors_for_comparisons import compare, explain, report
    from goodgain.experiments.doors_for_scores import coverage, curve, evaluate, ledger, pr_curve, spend
    from goodgain.experiments.experiment import Experiment
    from goodgain.formats import Qrels, Run, read_qrels, read_run, write_qrels, write_run
    from goodgain.judgments.judging.aggregation import aggregate, rescale
    from goodgain.judgments.judging.judge_agreement import Agreement, agreement
    from goodgain.judgments.judging.pooling import pool
    from goodgain.judgments.labelling.model_labels import label
    from goodgain.logs.dedup import Deduplication, deduplicate
    from goodgain.logs.traces import convert_traces, read_results, read_traces, to_run, write_results
    from goodgain.measures.scores import Scores

register()

#: Where the names are that cost their libraries only when used.
_LATER = (
    {"Comparison": "goodgain.analysis.comparing.comparison", "Explanation": "goodgain.analysis.comparing.explanation"}
    | {"check": "goodgain.analysis.comparing.gate_reports"}
    | dict.fromkeys(("Funnel", "funnel"), "goodgain.analysis.comparing.use_of_documents")
    | dict.fromkeys(("Deduplication", "deduplicate"), "goodgain.logs.dedup")
    | {
        "plots": "goodgain.analysis.reporting",
        "flatten": "goodgain.evaluation",
        "Experiment": "goodgain.experiments.experiment",
    }
    | dict.fromkeys(("compare", "explain", "report"), "goodgain.experiments.doors_for_comparisons")
    | dict.fromkeys(
        ("coverage", "curve", "evaluate", "ledger", "pr_curve", "spend"), "goodgain.experiments.doors_for_scores"
    )
    | dict.fromkeys(("Qrels", "Run", "read_qrels", "read_run", "write_qrels", "write_run"), "goodgain.formats")
    | dict.fromkeys(("aggregate", "rescale"), "goodgain.judgments.judging.aggregation")
    | dict.fromkeys(("Agreement", "agreement"), "goodgain.judgments.judging.judge_agreement")
    | {
        "label": "goodgain.judgments.labelling.model_labels",
        "pool": "goodgain.judgments.judging.pooling",
        "Scores": "goodgain.measures.scores",
    }
    | dict.fromkeys(
        ("convert_traces", "read_results", "read_traces", "to_run", "write_results"), "goodgain.logs.traces"
    )
)


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "ACT",
    "CG",
    "CT",
    "DCGG",
    "DRAG",
    "DRG",
    "ERR",
    "RAG",
    "RG",
    "SRE",
    "SRR",
    "Agreement",
    "AllGood",
    "AreaOver",
    "AvgGain",
    "Comparison",
    "Deduplication",
    "ElevenPointAP",
    "EvidenceRecall",
    "Experiment",
    "Explanation",
    "F",
    "Fallout",
    "Funnel",
    "GoodgainError",
    "GoodgainNotice",
    "GradedAP",
    "GradedCG",
    "GradedDCG",
    "GradedP",
    "GradedRR",
    "GradednDCG",
    "InputError",
    "InterpolatedPrecision",
    "IterationsForAllGoodResults",
    "MeasureError",
    "NoProgress",
    "NuggetCoverage",
    "NuggetRecall",
    "NumDup",
    "NumGood",
    "NumIter",
    "NumResults",
    "NumUnique",
    "NumUnjudged",
    "OverSearch",
    "PerIteration",
    "Qrels",
    "RBPResidual",
    "RankDCG",
    "RankIDCG",
    "RelativeP",
    "RepeatedQueries",
    "Run",
    "Scores",
    "SearchGain",
    "SearchPrecision",
    "SessionDCG",
    "SessionDCGq",
    "SessionRBP",
    "SubtopicRecall",
    "TruncatedAP",
    "Unjudged",
    "__version__",
    "aggregate",
    "agreement",
    "check",
    "compare",
    "convert_traces",
    "coverage",
    "curve",
    "deduplicate",
    "evaluate",
    "explain",
    "flatten",
    "funnel",
    "label",
    "ledger",
    "nCG",
    "nCT",
    "nDCG",
    "nDCGG",
    "nSessionDCG",
    "plots",
    "pool",
    "pr_curve",
    "read_qrels",
    "read_results",
    "read_run",
    "read_traces",
    "report",
    "rescale",
    "show_versions",
    "spend",
    "to_run",
    "write_qrels",
    "write_results",
    "write_run",
]
