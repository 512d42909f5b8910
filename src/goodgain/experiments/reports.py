"""Writes the report of an experiment: gathers the data of the page, and writes the file."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from goodgain.analysis.comparing.comparison_sentences import list_unknown
from goodgain.analysis.reporting.page_data import Evidence
from goodgain.analysis.reporting.page_opening import describe_choice
from goodgain.analysis.reporting.page_sentences import list_doubts
from goodgain.analysis.reporting.page_without_labels import EvidenceWithoutLabels
from goodgain.analysis.reporting.report import choose_format, write_report
from goodgain.analysis.reporting.report_command import write_command
from goodgain.errors import REASONS, GoodgainNotice
from goodgain.experiments.report_evidence import gather_with_labels
from goodgain.experiments.report_without_labels import are_default, gather_without_labels
from goodgain.files.opening import make_path
from goodgain.files.writing import atomic_write
from goodgain.measures.names import Measures
from goodgain.scoring.scoring import DEFAULTS, Scoring

#: The tables of a report that some measures need.
_TABLES_OF_MEASURES = ("results", "costs", "lengths")


def save_report(
    x: Scoring,
    path: str | os.PathLike[str],
    measures: Measures,
    *,
    details: int,
    format: str | None,  # noqa: A002  # as in gg.report
    spreadsheet: bool,
    **tables: Any,
) -> Path:
    """Write a report. Arguments, result and errors are those of `gg.report`."""
    target = make_path(path, "the file of the report")
    form = choose_format(target, format)

    measures_of_command = measures
    if not x.has_labels and are_default(measures):
        measures_of_command = x.choose_measures(None)
    arguments = {"details": details, "format": format}
    command = write_command(*x.sources, path, measures_of_command, tables, _select_changed_options(x), arguments)

    evidence = gather_evidence(x, measures, tables, details=details, command=command)
    text = write_report(evidence, form, spreadsheet=spreadsheet)
    with atomic_write(target) as out:
        out.write(text.encode())
    return target


def _select_changed_options(x: Scoring) -> dict[str, Any]:
    """Return the options that are not at their default, and `order`, whose default depends on the call."""
    options = {}
    for name, value in x.options.items():
        default = DEFAULTS[name]
        is_default = type(value) is type(default) and value == default
        if name == "order" or not is_default:
            options[name] = value
    return options


def gather_evidence(
    x: Scoring, measures: Measures, tables: Mapping[str, Any], *, details: int, command: str
) -> Evidence | EvidenceWithoutLabels:
    """Return the data of a report. `tables` maps argument names of `gg.report` to the given tables."""
    tables_of_measures: Any = {name: tables[name] for name in _TABLES_OF_MEASURES if tables[name] is not None}
    with_tables = x.with_(**tables_of_measures) if tables_of_measures else x

    # `x` tells the notices, so that an experiment that was asked for several reports tells each notice once.
    if x.has_labels:
        with x.tell() as notices:
            evidence = gather_with_labels(with_tables, measures, tables, details=details, command=command)
        return _add_doubts(evidence, notices)

    with x.tell() as notices:
        evidence_without_labels = gather_without_labels(with_tables, measures, tables, command=command)
    return _add_doubts_without_labels(evidence_without_labels, notices)


def _add_doubts(evidence: Evidence, notices: list[GoodgainNotice]) -> Evidence:
    """Add the notices to the data of a report: those of `REASONS` for the headline, all others as reasons for doubt."""
    reasons = [str(notice) for notice in notices if notice.kind in REASONS]
    texts = [str(notice) for notice in notices]
    choice = describe_choice(evidence.opening)
    doubts = list_doubts(evidence.comparison, texts, of_first_runs=evidence.has_replicates, choice=choice)
    further = tuple(doubt for doubt in doubts if doubt not in reasons)
    return replace(evidence, reasons=tuple(reasons), doubts=further)


def _add_doubts_without_labels(evidence: EvidenceWithoutLabels, notices: list[GoodgainNotice]) -> EvidenceWithoutLabels:
    texts = [str(notice) for notice in notices]
    doubts = list_doubts(evidence.comparison, texts, of_first_runs=False)  # it has neither causes nor searches
    in_headline: list[str] = []
    if evidence.comparison is not None:
        in_headline = list_unknown(evidence.comparison)
    return replace(evidence, doubts=tuple(doubt for doubt in doubts if doubt not in in_headline))
