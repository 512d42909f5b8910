"""Queries that were lost: those that a run lacks, and those that broke off in it; how they count, and the notes on them."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import polars as pl

from goodgain.analysis.comparing.comparison_notes import Note
from goodgain.analysis.comparing.pairs_table import DECIDED
from goodgain.analysis.comparing.rendering import count_queries
from goodgain.counting.coverage import SharedQueries, join_examples
from goodgain.errors import InputError
from goodgain.files.opening import stem
from goodgain.formats.query_tables import lack_rows
from goodgain.measures.scores import Scores, average_values
from goodgain.options import spell
from goodgain.schema import COMPLETED

_COUNTED = {"keep": "counted as they are", "zero": "counted as having no results", "absent": "left out"}
_KEY = ["measure", "system", "against"]
#: Verdicts that a note lists.
_EXAMPLES = 3


class Unread(NamedTuple):
    """The queries that convert could not read for a run: the name of the file that lists them, and their ids."""

    file: str = ""
    query_ids: Collection[str] = ()


class LostQueries(NamedTuple):
    """The name of a run -> the queries that convert could not read for it, and those that broke off in it."""

    unread: Mapping[str, Unread]
    incomplete: Mapping[str, pl.Series]


def read_unread(source: Any) -> Unread:
    """Return the queries in `RUN.unread` beside a run; convert names the file of several systems after `all`."""
    if not isinstance(source, (str, os.PathLike)):
        return Unread()
    path = Path(source)
    for name in (path.name, path.name.replace(stem(path) or path.name, "all", 1)):
        with suppress(OSError, ValueError):
            lines = path.with_name(f"{name}.unread").read_text(encoding="utf-8").splitlines()
            return Unread(f"{name}.unread", frozenset(lines))
    return Unread()


def describe_absent(name: str, of: SharedQueries, missing: str, unread: Unread) -> Iterator[Note]:
    """Yield the notes on queries without a search: the run says that they never searched, or has no row of them."""
    if idle := len(of.never_searched):
        shown = join_examples(of.never_searched)
        yield Note(f"{count_queries(idle)} never searched in {name}: {shown} (counted as having no results).")
    if number := len(of.only_judged):
        lost = int(of.only_judged.is_in([*unread.query_ids]).sum())
        told = f" convert could not read {lost:,} of them ({unread.file})." if lost else ""
        if unread.query_ids and not lost:
            unknown = count_queries(len(unread.query_ids))
            told = f" {unknown} could not be read by convert, with other ids ({unread.file})."
        counted = "counted as having no results" if missing == "zero" else "left out"
        one = number == 1
        yield Note(
            f"{count_queries(number)} {'is' if one else 'are'} absent from {name}, whose run has no row of "
            f"{'it' if one else 'them'}: {join_examples(of.only_judged)} ({counted}).{told}"
        )


def describe_verdicts(pairs: pl.DataFrame, without: pl.DataFrame) -> Note:
    """Return the note on the verdicts that rest on absent queries; `without` has the pairs without these."""
    both = pairs.select(*_KEY, "verdict").join(without.select(*_KEY, other="verdict"), on=_KEY, maintain_order="left")
    changed = both.filter(pl.col("verdict").ne_missing(pl.col("other")))
    if changed.is_empty() and not {*both.get_column("verdict")} & {*DECIDED}:
        return Note("With and without the queries absent from a run, no verdict is better or worse.", minor=True)
    if changed.is_empty():
        return Note("No verdict rests on the queries absent from a run: without them each stays the same.", minor=True)
    shown = [
        f"{measure} of {system} against {against} is {verdict or 'without a verdict'}, without them {other or 'none'}"
        for measure, system, against, verdict, other in changed.head(_EXAMPLES).rows()
    ]
    shown += [f"and {changed.height - _EXAMPLES:,} more"] * (changed.height > _EXAMPLES)
    return Note(
        f"Verdicts that rest on queries absent from a run: {'; '.join(shown)}. {spell('missing', 'absent')} leaves such "
        "queries out."
    )


def find_incomplete(
    outcomes: pl.DataFrame | None,
    runs_of: Mapping[str, Sequence[str]],
    called: Mapping[str, str],
    query_ids: pl.Series,
    how: str,
) -> dict[str, pl.Series]:
    """Return the name of each run with judged queries that broke off -> these queries.

    With `how` keep, a system whose runs cannot be matched stands for its runs: its values do not depend on them. `called` has
    the name of the file of each run, which `convert` ends with the replicate.
    """
    if outcomes is None or COMPLETED not in outcomes.columns:
        return {}
    found = {}
    for system, runs in runs_of.items():
        of = outcomes.filter(system=system)
        if of.is_empty():
            raise lack_rows(spell("outcomes"), system, outcomes.get_column("system").unique().sort().to_list())
        broken = of.filter((pl.col(COMPLETED) == 0) & pl.col("query_id").is_in(query_ids.implode()))
        matched = _match_runs(runs, called, of.get_column("replicate"))
        if matched is None and how != "keep":
            there = ", ".join(of.get_column("replicate").unique().drop_nulls().sort()) or "none"
            raise InputError(
                f"{spell('outcomes')} does not say which run of {system} a row is about: its replicates are {there}. Name the "
                f"runs {system}.1.run and so on by their replicates, as goodgain convert does."
            )
        for run, replicate in (matched or {system: None}).items():
            rows = broken if replicate is None else broken.filter(replicate=replicate)
            if len(rows):
                found[run] = rows.get_column("query_id").unique().sort()
    return found


def _match_runs(
    runs: Sequence[str], called: Mapping[str, str], replicates: pl.Series
) -> Mapping[str, str | None] | None:
    """Return the name of each run -> its replicate (None: all rows), by the ends of the names of files, else in order."""
    numbers = replicates.unique().drop_nulls().to_list()
    if len(runs) == 1 and len(numbers) < 2 and not (numbers and replicates.null_count()):
        return {runs[0]: None}
    by_file = {run: called[run].rpartition(".")[2] for run in runs}
    in_order = {run: str(k) for k, run in enumerate(runs, 1)}
    for matched in (by_file, in_order) if not any(called.values()) else (by_file,):
        if not replicates.null_count() and {*numbers} <= {*matched.values()} and len({*matched.values()}) == len(runs):
            return matched
    return None


def describe_incomplete(incomplete: Mapping[str, pl.Series], how: str) -> Iterator[Note]:
    for run, query_ids in incomplete.items():
        other = f" {spell('incomplete', 'absent')} leaves them out." if how == "keep" else ""
        shown = join_examples(query_ids)
        yield Note(f"{count_queries(len(query_ids))} broke off in {run}: {shown} ({_COUNTED[how]}).{other}")


def count_as_empty(of: Scores, empty: Scores, query_ids: pl.Series, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores of a run with these queries as in `empty`, the scores of a run without results."""
    is_there = pl.col("query_id").is_in(query_ids.implode())
    ours, classic = (
        pl.concat([there.filter(~is_there), none.filter(is_there).select(there.columns)]).sort("query_id")
        for there, none in ((of._ours, empty._ours), (of._classic, empty._classic))
    )
    return average_values(replace(of, _ours=ours, _classic=classic), measures)
