"""The value that stands for qrels in an experiment without labels."""

import polars as pl

from goodgain.formats.qrels import Qrels


class NoLabels:
    """The type of `NO_LABELS`, which stands in the place of qrels: all measures that need no label can be computed.

    >>> import goodgain as gg
    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["a", "b", "a"]})
    >>> gg.evaluate(gg.NO_LABELS, run, "SRR NumUnique").mean()
    {'SRR': 0.3333333333333333, 'NumUnique': 2.0}
    """

    def __repr__(self) -> str:
        return "goodgain.NO_LABELS"

    def __reduce__(self) -> str:  # a copy is the same object
        return "NO_LABELS"


NO_LABELS = NoLabels()


def make_empty_qrels() -> Qrels:
    """Return qrels without a label. The queries of the runs become their queries later."""
    types = {"query_id": pl.String, "iteration": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    return Qrels(pl.DataFrame(schema=types), searched=pl.Series("query_id", [], pl.String))
