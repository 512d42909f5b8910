"""Adds our measures to `ranx.evaluate` and `ranx.compare`, beside nDCG@10, MRR@10 and Recall@100.

Importing this module registers them. `Run` and `Qrels` are subclasses of ranx's: classic metrics use them as they use
ranx's own, and our measures get the iterations and the labels as they are. A plain `ranx.Run` is one iteration.

>>> import polars as pl
>>> import ranx
>>> run = pl.DataFrame({"query_id": "q1", "iteration": [1, 2], "doc_id": ["d1", "d2"]})
>>> ranx.evaluate(Qrels({"q1": {"d1": 3}}), Run(run), "sre")
np.float64(0.5)
"""

from goodgain.hosts.ranx.registration import register, unregister
from goodgain.hosts.ranx.run_and_qrels import Qrels, Run

register()

__all__ = ["Qrels", "Run", "register", "unregister"]
