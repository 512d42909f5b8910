"""Writes reports: the public function `report`, and the steps that gather the data of a page."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from goodgain.analysis.comparing.use_of_documents import check_uses, funnel, read_uses_of
from goodgain.analysis.explaining.explanation import explain_systems, read_results_of, tabulate_iterations
from goodgain.analysis.reporting import report as page
from goodgain.analysis.reporting.page_data import Evidence
from goodgain.analysis.reporting.page_sentences import Opening, describe_words, list_doubts
from goodgain.analysis.reporting.spends import average_costs, check_costs_of_runs, tabulate_searches
from goodgain.errors import GoodgainNotice, collect_notices
from goodgain.experiments.analyses import OF_OPENED, Analyses
from goodgain.experiments.comparisons import compare_kept
from goodgain.experiments.experiment import Experiment
from goodgain.experiments.shared_arguments import OF_REPORTS, ReportOptions, takes_options
from goodgain.experiments.shared_steps import repeat
from goodgain.files.opening import make_path
from goodgain.files.writing import atomic_write
from goodgain.formats.query_tables import read_costs, read_groups, read_queries
from goodgain.measures.ledger_values import tabulate_ledger
from goodgain.measures.names import Measures, find_direction, parse_measures
from goodgain.options import check_whole_number


@takes_options
def report(
    qrels: Any,
    runs: Mapping[str, Any],
    path: str | os.PathLike[str],
    measures: Measures = OF_REPORTS,
    *,
    results: Any = None,
    queries: Any = None,
    uses: Any = None,
    groups: Any = None,
    costs: Any = None,
    details: int = 200,
    format: str | None = None,  # noqa: A002  # as in read_traces
    spreadsheet: bool = False,
    **options: Unpack[ReportOptions],
) -> Path:
    """Write a report that compares systems on measures, with significance tests and the causes of differences.

    The page is one file and needs no network. It has sentences, tables, plots and every query. For the queries that changed
    most, it shows each search with its results. All systems are compared with the first system. A single system is shown
    without a comparison.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        runs: maps names of systems to runs (inputs of `read_run`), or to lists of runs (replicates). Values are means over
            the runs of a system. Causes and searches are those of the first run.
        path: the file to write: .html, .md, .csv or .json, or any name if `format` is given.
        measures: names, measure objects or both. The page explains the first measure that `explain` supports, else CG.
        results: the frame from `read_traces`, or a file of this frame, to show search strings, titles and addresses. Give one
            table of all systems, or a list with a table of each system.
        queries: the texts of the queries, as a file of query_id and text, {query_id: text}, or a frame.
        uses: the documents that each system used, as in `funnel`, to show which good documents were never opened or cited.
        groups: a file or a frame of query_id and group, to compare and filter by groups of queries.
        costs: costs as in `curve`, to show tokens, cost and seconds of each query and each search.
        details: the number of queries for which the page lists all results. The page chooses the queries that changed
            most or, for a single system, the queries with the lowest values.
        format: `html`, `markdown`, `csv` (a row for each query, measure and system) or `json`. None: the ending of `path`
            decides.
        spreadsheet: put an apostrophe before texts in CSV that a spreadsheet would read as formulas.
        {options}

    Returns:
        The path of the file.

    Raises:
        InputError: input that cannot be read, or a file that cannot be written.
        MeasureError: a measure is unknown.

    >>> import tempfile
    >>> examples = "qrels_examples/redundancy/"
    >>> runs = {name: f"{examples}{name}.run" for name in ("repeating", "lean")}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(examples + "qrels.txt", runs, f"{folder}/report.html", "CG@2 SRR@2").name
    'report.html'
    """
    tables = {"results": results, "queries": queries, "uses": uses, "groups": groups, "costs": costs}
    x = Experiment(qrels, runs, **options)
    return x.report(path, measures, details=details, format=format, spreadsheet=spreadsheet, **tables)


def write_report(
    x: Experiment,
    path: str | os.PathLike[str],
    measures: Measures,
    *,
    details: int,
    format: str | None,  # noqa: A002  # as in gg.report
    spreadsheet: bool,
    **beside: Any,
) -> Path:
    """Write a report. Arguments, result and errors are those of `gg.report`."""
    target = make_path(path, "the file of the report")
    form = page.choose_format(target, format)
    options = {
        name: value
        for name, value in x.options.items()
        if name == "order" or type(value) is not type(OF_OPENED[name]) or value != OF_OPENED[name]
    }
    own = {"details": details, "format": format}
    command = page.write_command(*x.sources, path, measures, beside, options, own)
    made = gather_evidence(x, measures, beside, details=details, command=command)
    text = page.write_report(made, form, spreadsheet=spreadsheet)
    with atomic_write(target) as out:
        out.write(text.encode())
    return target


def gather_evidence(
    x: Experiment, measures: Measures, beside: Mapping[str, Any], *, details: int, command: str
) -> Evidence:
    """Return the data of a report. `beside` maps argument names of `gg.report` to the given tables."""
    tables: Any = {name: beside[name] for name in ("results", "costs") if beside[name] is not None}
    of = x.with_(**tables) if tables else x  # some measures need these tables
    with x.tell() as heard:
        made = _gather(of.analyses, measures, beside, details, command)
    doubts = list_doubts(made.comparison, heard.texts, has_replicates=made.has_replicates)
    return replace(made, doubts=tuple(doubts))


def _gather(of: Analyses, measures: Measures, beside: Mapping[str, Any], details: int, command: str) -> Evidence:
    groups, queries, uses, costs = (beside[name] for name in ("groups", "queries", "uses", "costs"))
    check_costs_of_runs(costs, of.systems)
    opened, plan = of.opened, page.Plan.of(measures, of.options["rel"])
    base, firsts = next(iter(of.systems)), {name: runs[0] for name, runs in opened.names.items()}
    searched, ledgers = of.search([plan.explained], firsts), of.count_runs([plan.good])
    cutoff, tiles = plan.list_tiles(pl.concat([run[plan.good].pools.get_column("N") for run in ledgers.values()]))
    comparison, pairs = None, None
    if len(of.systems) > 1:
        comparison = compare_kept(of, plan.measured, {"baseline": base, "groups": groups})
    others = [tile for tile in tiles if tile not in plan.measured]  # not in x.compare
    heard: list[GoodgainNotice] = []
    with collect_notices(heard.append):
        shown = of.evaluate(tiles)
        if comparison is not None:
            more = [compare_kept(of, others, {"baseline": base}).pairs] if others else []
            pairs = pl.concat([comparison.pairs, *more])
    # The notices about all measures were given.
    repeat(one for one in heard if any(str(tile) in str(one) for tile in others))
    counted = {name: ledgers[run][plan.good] for name, run in firsts.items()}
    paid = None if costs is None else read_costs(costs)
    spent = None if paid is None else average_costs(counted, paid)
    recalls = of.draw_recalls(plan.good).join(
        pl.DataFrame({"system": [*firsts.values()], "name": [*firsts]}), on="system", maintain_order="left"
    )
    if comparison is None:
        of.warn_of_empty_queries(plan.measured)
    qrels, scores = opened.qrels, of.evaluate(plan.measured) if comparison is None else dict(comparison.scores)
    check_uses(qrels, uses)
    check_whole_number("details", details, 0)
    explained = {str(plan.explained.measure): plan.explained}
    found = read_results_of([*scores], beside["results"]).spell_as(searched)
    counted_queries = {name: one.apply_options(of.options["missing"]) for name, one in searched.items()}
    pairs_searched = {name: {one: counted_queries[one] for one in (base, name)} for name in [*scores][1:]}
    uses = None if uses is None else read_uses_of([*scores], uses)
    used = None
    if uses is not None:
        used = funnel(qrels, uses, plan.good, urls=str(qrels.documents.get("urls", "join"))).in_order([*scores])
    texts = None if queries is None else read_queries(queries)
    return Evidence(
        qrels=qrels,
        opening=Opening(cutoff, tiles, shown, pairs, spent),
        scores=scores,
        comparison=comparison,
        measures={str(measure): find_direction(measure) for measure in plan.measured},
        explained=plan.explained,
        explanations={
            name: explain_systems(qrels, pair, explained, found, uses=uses, top=1)
            for name, pair in pairs_searched.items()
        },
        searched=searched,
        iterations=tabulate_iterations(searched, found),
        curves=of.curve(plan.curves),
        recalls=recalls.select(pl.col("name").alias("system"), "recall", "precision"),
        ledgers={name: tabulate_ledger(ledgers[run], plan.good) for name, run in firsts.items()},
        searches=tabulate_searches(counted, plan.good, paid),
        results=found,
        uses=uses,
        funnel=used,
        texts={} if texts is None else dict(texts.select("query_id", "text").iter_rows()),
        groups=None if groups is None else read_groups(groups, qrels.query_ids),
        details=min(details, len(qrels.query_ids)),
        words=dict(describe_words(parse_measures([*plan.measured, *tiles]), plan.good)),
        command=command,
    )
