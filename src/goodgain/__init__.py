"""goodgain: the Retrieved Good Gain measures for agents that search in several rounds.

`import goodgain` registers the measures with ir_measures.
"""

import importlib
from typing import TYPE_CHECKING, Any

from goodgain.errors import GoodgainError, GoodgainNotice, InputError, MeasureError
from goodgain.evaluation import Scores, evaluate, flatten, ledger
from goodgain.formats import Qrels, Run, read_qrels, read_run, write_qrels, write_run
from goodgain.hosts.ir_measures import register
from goodgain.measures import (
    CG,
    DCGG,
    DRAG,
    DRG,
    RAG,
    RG,
    SRE,
    SRR,
    AvgGain,
    IterationsForAllGoodResults,
    NumDup,
    NumGood,
    NumIter,
    NumResults,
    NumUnique,
    NumUnjudged,
    nCG,
    nDCGG,
)
from goodgain.version import __version__

if TYPE_CHECKING:
    from goodgain.comparison import Comparison, compare

register()

#: Where the names are that cost their libraries only when used.
_LATER = {"Comparison": "goodgain.comparison", "compare": "goodgain.comparison"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


__all__ = [
    "CG",
    "DCGG",
    "DRAG",
    "DRG",
    "RAG",
    "RG",
    "SRE",
    "SRR",
    "AvgGain",
    "Comparison",
    "GoodgainError",
    "GoodgainNotice",
    "InputError",
    "IterationsForAllGoodResults",
    "MeasureError",
    "NumDup",
    "NumGood",
    "NumIter",
    "NumResults",
    "NumUnique",
    "NumUnjudged",
    "Qrels",
    "Run",
    "Scores",
    "__version__",
    "compare",
    "evaluate",
    "flatten",
    "ledger",
    "nCG",
    "nDCGG",
    "read_qrels",
    "read_run",
    "write_qrels",
    "write_run",
]
