"""Lists the measures that need no labels, and refuses the others where there are no labels."""

import shlex
from collections.abc import Collection, Iterable
from typing import Any

import ir_measures

from goodgain.errors import MeasureError
from goodgain.measures.declaration import DECLARATIONS, Declaration, SessionMeasure, find_meaning
from goodgain.options import FOR_COMMANDS

#: What to do for labels, at the end of a message.
NEXT_STEP = "To get labels: goodgain pool lists the documents to judge."
#: The number of queries to judge first. The correction of a model's labels by people's needs as many.
_FIRST_QUERIES = 30


def needs_labels(measure: ir_measures.Measure) -> bool:
    """Return whether labels change the value of a measure. `AreaOver` and `ValueAt` need labels if their inner measure does.

    >>> from goodgain.measures.names import parse_measure
    >>> [needs_labels(parse_measure(name)) for name in ("SRR@3", "nCG", "AreaOver(measure='NumUnique',budget=3)")]
    [False, True, False]
    """
    return find_meaning(measure).needs_labels


def list_measures_without_labels(tables: Collection[str] = ()) -> list[ir_measures.Measure]:
    """Return the measures that need no labels and no parameters. `tables` are the tables that were given, such as `results`."""
    return [declared.measure for declared in _find_declarations() if _can_be_computed(declared, tables)]


def _find_declarations() -> list[Declaration]:
    import goodgain.measures.families  # noqa: F401  # declares all measures

    return [declared for declared in DECLARATIONS.values() if not declared.needs_labels]


def _can_be_computed(declared: Declaration, tables: Collection[str]) -> bool:
    measure = declared.measure
    if declared.total:  # the costs may lack this column
        return False
    is_without_table = not isinstance(measure, SessionMeasure) or not measure.table or measure.table in tables
    return is_without_table and not any(info.required for info in measure.SUPPORTED_PARAMS.values())


def write_next_step(runs: Iterable[Any], queries: int) -> str:
    """Return the command, or the call in Python, that lists what to judge: a draw if there are more than 30 queries.

    >>> write_next_step([], 500), write_next_step([], 25)
    ('goodgain.pool(runs, sample_queries=30)', 'goodgain.pool(runs)')
    """
    draws = queries > _FIRST_QUERIES
    if not FOR_COMMANDS.get():
        return f"goodgain.pool(runs, sample_queries={_FIRST_QUERIES})" if draws else "goodgain.pool(runs)"
    sample = ["--sample-queries", str(_FIRST_QUERIES)] if draws else []
    return shlex.join(["goodgain", "pool", *map(str, runs), *sample, "-o", "sheet.csv"])


def describe_unknown(next_step: str, systems: int) -> str:
    """Say what is not known without labels, and what to do. `next_step` is the result of `write_next_step`."""
    unknown = "how much of what users need is found"
    if systems > 1:
        unknown = "which system finds more of what users need"
    return f"Without labels no number says {unknown}. Next, judge results: {next_step}"


def refuse_without_labels(measures: Iterable[ir_measures.Measure]) -> None:
    """Raise `MeasureError` if one of the measures needs labels."""
    refused = [str(measure) for measure in measures if needs_labels(measure)]
    if refused:
        verb = "needs" if len(refused) == 1 else "need"
        without_labels = ", ".join(declared.name for declared in _find_declarations())
        raise MeasureError(
            f"{', '.join(refused)}: {verb} relevance labels, and there are none. Without labels: {without_labels}, and AreaOver or "
            f"ValueAt of these. {NEXT_STEP}"
        )
