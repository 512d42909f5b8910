"""goodgain: the Retrieved Good Gain measures for agents that search in several rounds.

`import goodgain` registers the measures with ir_measures.
"""

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

register()

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
