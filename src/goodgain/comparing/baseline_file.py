"""The file of a baseline: the values of a system by query, and how they were made. It stands in for the baseline's run.

The first line is a JSON object about the system; each other line has query_id, replicate, measure and value.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ir_measures
import msgspec
import polars as pl

from goodgain.counting.coverage import COVERAGE, SharedQueries
from goodgain.errors import InputError
from goodgain.files.opening import make_path, read_lines
from goodgain.files.writing import atomic_write
from goodgain.formats import Qrels
from goodgain.measures.ledger_values import average_queries
from goodgain.measures.replicate_scores import find_values, leave_out_empty
from goodgain.measures.scores import Scores

_VERSION = 1
_COLUMNS = {"query_id": pl.String, "replicate": pl.String, "measure": pl.String, "value": pl.Float64}


class _About(msgspec.Struct):
    """The first line."""

    goodgain_baseline: int  # the version of its form
    signature: dict[str, Any]
    rows: int
    measures: list[str]
    coverage: list[dict[str, Any]]
    absent_from_run: list[str]
    without_judgments: list[str]


def write_baseline(
    scores: Scores, path: str | os.PathLike[str], *, system: str, outcomes: pl.DataFrame | None = None
) -> None:
    """Write the scores of a system to a file for `compare(..., baseline_file=path)`.

    `scores` have NumIter and NumResults for the costs of the system. Outcomes of other systems are left out.
    """
    missing = scores.signature.get("missing", "zero")
    runs = [
        find_values(of, scores.queries, missing).with_columns(replicate=pl.lit(str(k)))
        for k, of in enumerate(scores.replicates, 1)
    ]
    rows = pl.concat(runs or [scores.per_query.with_columns(replicate=pl.lit(None, pl.String))]).select(*_COLUMNS)
    if outcomes is not None:
        own = outcomes.filter(system=system).drop("system").unpivot(index="query_id", variable_name="measure")
        rows = pl.concat([rows, own.with_columns(replicate=pl.lit(None, pl.String)).select(*_COLUMNS)])
    about = {
        "goodgain_baseline": _VERSION,
        "system": system,
        "signature": scores.signature,
        "rows": rows.height,
        "measures": rows.get_column("measure").unique(maintain_order=True).to_list(),
        "coverage": scores.coverage.to_dicts(),
        "absent_from_run": scores.queries.only_judged.sort().to_list(),
        "without_judgments": scores.queries.only_searched.sort().to_list(),
    }
    with atomic_write(make_path(path, "the baseline file")) as file:
        file.write(json.dumps(about, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        file.write(rows.write_ndjson().encode())


def read_baseline(
    path: Any, qrels: Qrels, measures: Sequence[ir_measures.Measure], *, order: str, missing: str = "zero"
) -> Scores:
    """Read the scores that `write_baseline` wrote, for a comparison with these qrels, measures and options.

    Raises:
        InputError: it is not such a file, was made with other judgments or in another order, or lacks a measure.
    """
    path = make_path(path, "baseline_file=")
    first, _, rest = bytes(read_lines(path).data).partition(b"\n")
    try:
        about = msgspec.json.decode(first, type=_About)
        if about.goodgain_baseline != _VERSION:
            raise ValueError(f"its version is {about.goodgain_baseline}")
        rows = pl.read_ndjson(rest, schema=_COLUMNS)
        if rows.height < about.rows:
            raise ValueError(f"it has {rows.height:,} of {about.rows:,} rows")
        coverage = pl.DataFrame(about.coverage, schema=COVERAGE)
    except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(f"{path}: is not a baseline file ({reason}). Write one with --write-baseline.") from error
    signature, known = about.signature, about.measures
    if signature.get("qrels") != qrels.digest:
        raise InputError(
            f"{path}: was made with other judgments (qrels {signature.get('qrels')}, here {qrels.digest}). Write it again with "
            "these qrels."
        )
    if signature.get("order", order) != order:
        raise InputError(f"{path}: was made with order={signature['order']!r}. Use the same order, or write it again.")
    if "replicates" in signature and (known_as := signature.get("missing", "zero")) != missing:
        raise InputError(f"{path}: was made with missing={known_as!r}. Use the same, or write it again.")
    if any(signature.get(name) != qrels.documents.get(name) for name in ("documents", "documents_of", "chunks")):
        raise InputError(
            f"{path}: was made with other documents=, documents_of= or chunks=. Write it again with these."
        )
    lacking = [name for name in map(str, measures) if name not in known]
    if lacking:
        raise InputError(f"{path}: has no values of {', '.join(lacking)}. Write it again with these measures.")
    rows = leave_out_empty(rows, measures, by=("query_id", "replicate"))
    values = rows.group_by("query_id", "measure", maintain_order=True).agg(pl.col("value").mean())
    query_ids = values.get_column("query_id").unique()
    absent, unknown = (pl.Series(ids, dtype=pl.String) for ids in (about.absent_from_run, about.without_judgments))
    queries = SharedQueries(query_ids.filter(~query_ids.is_in(absent.implode())), unknown, absent)
    means = {name: average_queries(of.get_column("value")) for (name,), of in values.group_by("measure")}
    none = values.select("query_id").clear()
    scores = Scores(
        {name: means.get(name) for name in known}, signature, coverage, none, values, None, None, queries, None
    )
    runs = rows.drop_nulls("replicate").partition_by("replicate", maintain_order=True, include_key=False)
    whole = queries._replace(only_judged=absent.clear())  # the rows lack what its run lacked
    return replace(scores, replicates=tuple(replace(scores, _classic=of, queries=whole) for of in runs))
