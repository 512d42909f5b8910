"""Doors of one line: functions that make an experiment for a single analysis."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goodgain.experiments.experiment import Experiment
from goodgain.formats.any_source import Columns
from goodgain.measures.names import Measures
from goodgain.reporting.report import MEASURES


def report(
    qrels: Any,
    runs: Mapping[str, Any],
    path: str | os.PathLike[str],
    measures: Measures = MEASURES,
    *,
    rel: float | None = None,
    results: Any = None,
    queries: Any = None,
    uses: Any = None,
    groups: Any = None,
    details: int = 200,
    format: str | None = None,  # noqa: A002  # as in read_traces
    spreadsheet: bool = False,
    order: str = "seen",
    provider: str | None = None,
    columns: Columns | None = None,
    documents: Any = None,
    documents_of: str = "both",
    chunks: str = "collapse",
) -> Path:
    """Write a report: which system is better at what, whether that is beyond noise, and where and why.

    The page is one file without a network: sentences, tables, plots, every query, and for the queries that changed most each
    search with its results. All systems are compared with the first one. One system alone is shown without a comparison.

    Args:
        qrels: what `read_qrels` takes.
        runs: name -> what `read_run` takes, or a list of several runs of the system (replicates). Values are means over
            them; causes and searches are those of the first run.
        path: the file to write: .html, .md, .csv or .json, or any name with `format`.
        measures: names, measure objects or both. The first one with causes (see `explain`) is explained; without one, CG is.
        rel: the smallest good label, for measures of iterations without their own `rel`. None: 2.
        results: what `read_traces` returned, or a file of it, for search strings, titles and addresses: one of all
            systems, or a list of one each.
        queries: the texts of the queries: a file of query_id and text, {query_id: text}, or a frame.
        uses: what `funnel` takes: says which good documents were never opened, or never cited.
        groups: a file or a frame of query_id and group, to compare and filter by groups of queries.
        details: for how many queries the page lists all results: those that changed most.
        format: `html`, `markdown`, `csv` (a row for each query, measure and system) or `json`; None: by the name's ending.
        spreadsheet: put an apostrophe before texts in CSV that a spreadsheet would read as formulas.
        order, provider: as in `compare`.
        columns, documents, documents_of, chunks: as in `evaluate`.

    Returns:
        The path of the file.

    Raises:
        InputError: input that cannot be read, a file that cannot be written, or jinja2 is not installed (for the page).
        MeasureError: a measure is unknown.

    >>> import tempfile
    >>> examples = "qrels_examples/redundancy/"
    >>> runs = {name: f"{examples}{name}.run" for name in ("repeating", "lean")}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(examples + "qrels.txt", runs, f"{folder}/report.html", "CG@2 SRR@2").name
    'report.html'
    """
    shared = {"rel": rel, "order": order, "provider": provider, "columns": columns, "documents": documents}
    experiment = Experiment(qrels, runs, **shared, documents_of=documents_of, chunks=chunks)
    tables = {"results": results, "queries": queries, "uses": uses, "groups": groups}
    return experiment.report(path, measures, details=details, format=format, spreadsheet=spreadsheet, **tables)
