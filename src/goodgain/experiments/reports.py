"""The report of an experiment."""

import os
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.analysis.reporting import report as page
from goodgain.analysis.reporting.page_data import Evidence, Findings
from goodgain.analysis.reporting.page_sentences import Opening
from goodgain.analysis.reporting.spends import average_costs, check_costs_of_runs, tabulate_searches
from goodgain.errors import GoodgainNotice, collect_notices
from goodgain.experiments.analyses import OF_OPENED, Analyses
from goodgain.experiments.comparisons import compare
from goodgain.experiments.experiment import Experiment
from goodgain.experiments.shared_steps import repeat
from goodgain.files.opening import make_path
from goodgain.files.writing import atomic_write
from goodgain.formats.query_tables import read_costs
from goodgain.measures.ledger_values import tabulate_ledger
from goodgain.measures.names import Measures

#: The options that the command of a report can say.
_WRITTEN = ("rel", "order", "provider")


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
    """Write a report; arguments, result and errors as in `gg.report`."""
    target = make_path(path, "the file of the report")
    form = page.choose_format(target, format)
    options, command = x.options, None
    # None if files and its options do not say all
    if all(options[name] == default for name, default in OF_OPENED.items() if name not in _WRITTEN):
        shown = {"rel": options["rel"], "details": details, "order": options["order"]}
        shown |= {"provider": options["provider"], "format": format}
        command = page.write_command(*x.sources, path, measures, beside, shown)
    made = gather_evidence(x, measures, **beside, details=details, command=command)
    text = page.write_report(made, form, spreadsheet=spreadsheet)
    with atomic_write(target) as out:
        out.write(text.encode())
    return target


def gather_evidence(x: Experiment, measures: Measures, **beside: Any) -> Evidence:
    """Return what a report shows; `beside` as in `reporting.report.gather_evidence`, and costs."""
    tables: Any = {name: beside[name] for name in ("results", "costs") if beside.get(name) is not None}
    of = x.with_(**tables) if tables else x  # a measure may need them
    with x.tell() as heard:
        made = _gather(of.analyses, measures, **beside)
    return page.add_doubts(made, heard.texts)


def _gather(of: Analyses, measures: Measures, *, costs: Any = None, **beside: Any) -> Evidence:
    check_costs_of_runs(costs, of.systems)
    opened, plan = of.opened, page.Plan.of(measures, of.options["rel"])
    base, firsts = next(iter(of.systems)), {name: runs[0] for name, runs in opened.names.items()}
    searched, ledgers = of.search([plan.explained], firsts), of.count_runs([plan.good])
    cutoff, tiles = plan.list_tiles(pl.concat([run[plan.good].pools.get_column("N") for run in ledgers.values()]))
    comparison, pairs = None, None
    if len(of.systems) > 1:
        comparison = compare(of, plan.measured, {"baseline": base, "groups": beside.get("groups")})
    others = [tile for tile in tiles if tile not in plan.measured]  # apart: the comparison is the one of x.compare
    heard: list[GoodgainNotice] = []
    with collect_notices(heard.append):
        shown = of.evaluate(tiles)
        if comparison is not None:
            more = [compare(of, others, {"baseline": base}).pairs] if others else []
            pairs = pl.concat([comparison.pairs, *more])
    repeat(
        one for one in heard if any(str(tile) in str(one) for tile in others)
    )  # what is said of all measures was said
    counted = {name: ledgers[run][plan.good] for name, run in firsts.items()}
    paid = None if costs is None else read_costs(costs)
    spent = None if paid is None else average_costs(counted, paid)
    recalls = of.draw_recalls(plan.good).join(
        pl.DataFrame({"system": [*firsts.values()], "name": [*firsts]}), on="system", maintain_order="left"
    )
    found = Findings(
        opening=Opening(cutoff, tiles, shown, pairs, spent),
        scores=of.evaluate(plan.measured) if comparison is None else dict(comparison.scores),
        comparison=comparison,
        searched=searched,
        curves=of.curve(plan.curves),
        recalls=recalls.select(pl.col("name").alias("system"), "recall", "precision"),
        ledgers={name: tabulate_ledger(ledgers[run], plan.good) for name, run in firsts.items()},
        searches=tabulate_searches(counted, plan.good, paid),
    )
    return page.gather_evidence(opened.qrels, plan, found, **beside)
