"""The scores of a run: a mean for each measure, the values of each query, and how they were made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ir_measures
import polars as pl

from goodgain.counting.coverage import SharedQueries, list_examples
from goodgain.errors import InputError, MeasureError
from goodgain.files.escaping import HtmlCell, escape_html, write_table
from goodgain.measures.declaration import add_arrow
from goodgain.measures.names import find_direction, parse_measure, parse_measures

#: The ways to average the values of queries.
MEANS = ("arithmetic", "geometric")

#: trec_eval's smallest value in a geometric mean: the logarithm of 0 does not exist.
_LEAST = 1e-5


@dataclass(frozen=True, repr=False)
class Scores:
    """The scores of one run.

    Attributes:
        means: measure by name -> value over all queries, in the order asked for; for a Graded measure over the queries
            that have a value (`num_queries`). None where a query has no finite value, and where no query has one.
        signature: how the values were made; it belongs beside any number that is reported.
        coverage: iteration (null: all), judged, unique, coverage: the judged share of unique results, overall and of the
            results that each iteration found first; null where it found none. Queries without judgments are left out.
        queries: the query ids that run and qrels share, and those that only one of them has.
        ids_mapped: how many ids of the run and of the qrels `documents=` mapped; None without it.
        notes: every notice of the call, minor ones included.
    """

    means: dict[str, float | None]
    signature: dict[str, Any]
    coverage: pl.DataFrame
    _ours: pl.DataFrame
    _classic: pl.DataFrame
    _raised: pl.DataFrame | None
    _most: dict[str, float | None] | None
    queries: SharedQueries
    _rel: float | None
    notes: tuple[str, ...] = ()
    ids_mapped: tuple[int, int] | None = None

    @property
    def unjudged_queries(self) -> list[str]:
        """Three queries of the run that the qrels lack, as examples."""
        return list_examples(self.queries.only_searched)

    @property
    def bounds(self) -> dict[str, tuple[float, float] | None]:
        """Measure by name -> the least and the most of its value over all queries, None where it has no bounds.

        They are what the value would be with every unjudged result at 0, and at the largest label of the qrels.

        Raises:
            InputError: the scores were made without `bounds=True`.

        >>> import goodgain
        >>> run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0, "e": -1.0}}
        >>> goodgain.evaluate({"q": {"a": 2, "b": 0, "c": 0, "d": 0}}, run, "P@5 R@5", bounds=True).bounds
        {'P@5': (0.2, 0.4), 'R@5': None}
        """
        if self._most is None:
            raise InputError("these scores have no bounds; ask for them: evaluate(..., bounds=True)")
        pairs = {name: (least, self._most.get(name)) for name, least in self.means.items()}
        return {name: None if least is None or most is None else (least, most) for name, (least, most) in pairs.items()}

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """query_id, measure, value, for every query of the qrels.

        With bounds also least and most: the value with every unjudged result at 0, and at the largest label of the qrels;
        null for a measure without bounds.

        A value is null where it is not finite, as a function of the user's may give one, and where a Graded measure
        has none, because no document at ranks <= k has a grade.
        """
        names = {name: k for k, name in enumerate(self.means)}
        position = pl.col("measure").replace_strict(names, return_dtype=pl.Int64)
        values = pl.concat([_unpivot(self._ours), self._classic]).sort("query_id", position)
        if self._raised is None:
            return values
        most = _unpivot(self._raised).rename({"value": "most"})
        joined = values.join(most, on=["query_id", "measure"], how="left", maintain_order="left")
        least = pl.when(pl.col("most").is_not_null()).then("value")
        return joined.select("query_id", "measure", "value", least.alias("least"), "most")

    @cached_property
    def num_queries(self) -> dict[str, int]:
        """Measure by name -> the number of queries that have a value, over which its mean is taken."""
        counts = dict(self.per_query.group_by("measure").agg(pl.col("value").count()).iter_rows())
        return {name: counts.get(name, 0) for name in self.means}

    def __repr__(self) -> str:
        shown = {name: "–" if value is None else f"{value:.4f}" for name, value in self.means.items()}
        values = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"Scores({values}; {self.signature['queries']} queries)"

    def _repr_html_(self) -> str:
        rows = [
            [HtmlCell(_name_with_arrow(name)), HtmlCell("–" if value is None else f"{value:.4f}")]
            for name, value in self.means.items()
        ]
        queries = self.signature["queries"]
        title = f"Means over {queries:,} quer{'y' if queries == 1 else 'ies'}"
        made = " ".join(f"{name}={value}" for name, value in self.signature.items() if name != "queries")
        return write_table(title, ["measure", "value"], rows, words=1) + f"<small>{escape_html(made)}</small>"

    def __getitem__(self, measure: str | ir_measures.Measure) -> float | None:
        """The value of one measure, however it is spelled; None where a query has no value.

        With `evaluate(..., rel=1)` the name `nCG@6` finds `nCG(rel=1)@6` too.
        """
        if isinstance(measure, str) and measure in self.means:
            return self.means[measure]
        asked = parse_measure(measure) if isinstance(measure, str) else measure
        names = [str(parse_measures(asked, rel=rel)[0]) for rel in (None, self._rel)]
        for name in names:
            if name in self.means:
                return self.means[name]
        raise MeasureError(f"{names[-1]} was not asked for; there are {', '.join(self.means)}")

    def mean(self, how: str = "arithmetic") -> dict[str, float | None]:
        """Return measure by name -> value over all queries; None where `means` has None.

        Args:
            how: `arithmetic` (for counts, and for what a provider computes, the rule of ir_measures), or `geometric`: the
                exponential of the mean logarithm of the queries' values, each at least 1e-5, which is trec_eval's
                gm_map for AP. It weighs a gain from .05 to .10 as much as one from .4 to .8.

        Raises:
            MeasureError: `how` is neither.

        Source: trec_eval 9, gm_map; Robertson, CIKM 2006.

        >>> import goodgain
        >>> scores = goodgain.evaluate({"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1.0}, "r": {"b": 1.0}}, "AP")
        >>> scores.mean(), scores.mean(how="geometric")
        ({'AP': 0.5}, {'AP': 0.003162277660168379})
        """
        if how not in MEANS:
            raise MeasureError(f"mean(how={how!r}): how is {' or '.join(map(repr, MEANS))}")
        if how == "arithmetic":
            return dict(self.means)
        values = dict(self.per_query.group_by("measure").agg("value").iter_rows())
        return {
            name: None if mean is None else _average_geometrically(values[name]) for name, mean in self.means.items()
        }


def _name_with_arrow(name: str) -> str:
    try:
        return add_arrow(name, find_direction(parse_measure(name)))
    except MeasureError:  # a class of the user's, which has no name
        return name


def _average_geometrically(values: Sequence[float | None]) -> float:
    logarithms = [math.log(max(value, _LEAST)) for value in values if value is not None]
    return math.exp(math.fsum(logarithms) / len(logarithms))


def _unpivot(values: pl.DataFrame) -> pl.DataFrame:
    return values.unpivot(index="query_id", variable_name="measure", value_name="value").with_columns(
        pl.col("measure").cast(pl.String), pl.col("value").cast(pl.Float64)
    )
