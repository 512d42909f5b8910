"""The command measures: lists the measures that are computed here, by family, from their declarations."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from goodgain.cli.options import make_epilog
from goodgain.measures import MEASURES
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.ranked import RANKED_MEASURES
from goodgain.measures.ranked_declaration import RankedDeclaration

__all__ = ["list_measures"]

#: Width of the tables in a pipe, where the width of a terminal is not known.
_WIDTH = 160

_DIRECTIONS = {"up": "↑ higher", "down": "↓ lower", None: "–"}

#: Title of a table, and its rows: measure, better, bounds, definition.
Family = tuple[str, list[tuple[str, str, str, str]]]


@click.command("measures", epilog=make_epilog("goodgain measures", "goodgain measures | grep lower"))
def list_measures() -> None:
    """List the measures that are computed here; all other measures of ir_measures can be asked for too."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    for title, rows in _list_families():
        table = Table("measure", "better", "bounds", "definition", title=title, title_justify="left")
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)


def _list_families() -> Iterator[Family]:
    """Yield good gain, counts and classic measures, each with its rows."""
    for family, title in (
        ("good gain", "Good gain, from the ledger; @i is a cutoff in iterations, rel= the smallest good label (2)"),
        ("counts", "Counts, from the ledger"),
    ):
        of_family = [measure for measure in MEASURES.values() if measure.declaration.family == family]
        yield title, [_describe_measure(measure) for measure in of_family]
    for family, title in (
        (
            "classic",
            "Classic measures, from the ranking; @k is a cutoff in ranks, rel= the smallest relevant label (1)",
        ),
        ("ranked", "Measures over one ranking that no host has; @k and rel= as above"),
        ("graded", "The same where documents without a grade are known as such; @k and rel= as above"),
    ):
        yield title, [_describe_ranked(declared) for declared in RANKED_MEASURES.values() if declared.family == family]


def _describe_measure(measure: GoodGainMeasure) -> tuple[str, str, str, str]:
    declared = measure.declaration
    own = {name: info.desc for name, info in measure.SUPPORTED_PARAMS.items() if name not in ("rel", "cutoff")}
    return _describe(declared, [f"{name}= says {description}" for name, description in own.items()])


def _describe_ranked(declared: RankedDeclaration) -> tuple[str, str, str, str]:
    own = [f"{name}=" for name in declared.parameters if name != "rel"]
    return _describe(declared, [f"takes {', '.join(own)}"] if own else [])


def _describe(declared: Any, details: list[str]) -> tuple[str, str, str, str]:
    least, most = declared.bounds
    remarks = [declared.remark] if declared.remark else []
    definition = "; ".join([f"{declared.title}: {declared.definition}", *remarks, *details])
    return declared.usage, _DIRECTIONS[declared.better], f"{least}..{most}" if most else f">= {least}", definition
