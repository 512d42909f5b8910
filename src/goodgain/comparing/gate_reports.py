"""Reports of a gate for other programs: JUnit XML for continuous integration, and a Markdown comment for a bot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

import polars as pl

from goodgain.comparing.causes import divide_measure
from goodgain.comparing.comparison import Comparison
from goodgain.comparing.explanation import Explanation
from goodgain.comparing.rendering import count_queries, escape_markdown
from goodgain.comparing.requirements import Outcome
from goodgain.errors import MeasureError
from goodgain.files.escaping import escape_controls
from goodgain.measures.names import parse_measure

#: The first line of a comment: a bot finds its own comment by it, and replaces it.
MARKER = "<!-- goodgain compare -->"

#: Rows of a comment: failed lines, queries, and measures. It has at most 60 lines.
_FAILED, _QUERIES, _PAIRS = 10, 5, 20


def write_junit(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as JUnit XML: a test case for each required line and system.

    Source: junit-10.xsd of the xUnit plugin of Jenkins.
    """
    failures = sum(not outcome.holds for outcome in outcomes)
    totals = {"name": "goodgain", "tests": str(len(outcomes)), "failures": str(failures), "errors": "0"}
    suites = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(suites, "testsuite", totals | {"skipped": "0", "time": "0"})
    for outcome in outcomes:
        named = {"name": escape_controls(outcome.requirement.text), "classname": escape_controls(outcome.system)}
        case = ElementTree.SubElement(suite, "testcase", named | {"time": "0"})
        message = escape_controls(f"{outcome.system} {outcome.describe()}")
        if outcome.holds:
            ElementTree.SubElement(case, "system-out").text = message
        else:
            ElementTree.SubElement(case, "failure", {"type": "requirement", "message": message})
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


class Change(NamedTuple):
    """What the queries of a comment are about: a measure, a system, the one it is compared with, and whether it has causes."""

    measure: str
    system: str
    against: str
    has_causes: bool


def choose_change(comparison: Comparison, outcomes: Sequence[Outcome]) -> Change:
    """Return the first failed measure, else the first measure; one with causes comes before one without."""
    failed = [(str(one.requirement.measure), one.system) for one in outcomes if not one.holds]
    rows = comparison.pairs.select("measure", "system", "against").iter_rows()
    found = [Change(measure, system, against, _has_causes(measure)) for measure, system, against in rows]
    found.sort(key=lambda one: failed.index(one[:2]) if one[:2] in failed else len(failed))
    return next((change for change in found if change.has_causes), found[0])


def _has_causes(measure: str) -> bool:
    try:
        divide_measure(parse_measure(measure))
    except MeasureError:
        return False
    return True


def write_comment(comparison: Comparison, outcomes: Sequence[Outcome], explanation: Explanation | None = None) -> str:
    """Return a Markdown comment of at most 60 lines; the same comparison gives the same bytes.

    Args:
        comparison: the comparison.
        outcomes: the outcomes of the required lines.
        explanation: the causes of the change that `choose_change` returned; None: its queries have no causes.
    """
    failed = [one for one in outcomes if not one.holds]
    verdicts = Counter(comparison.pairs.get_column("verdict").drop_nulls())
    counted = ", ".join(
        f"{verdicts[name]} {name}" for name in ("better", "worse", "unclear", "equal") if verdicts[name]
    )
    held = f"{len(outcomes) - len(failed)} held"
    required = f"Required lines: {f'{len(failed)} failed, ' if failed else ''}{held}. " if outcomes else ""
    told = f"**{required}{counted or 'No verdict'}, {count_queries(comparison.signature['queries'])}.**"
    parts = [f"{MARKER}\n{told}"]
    if failed:
        rows = [
            (escape_markdown(one.requirement.text), escape_markdown(f"{one.system} {one.describe()}")) for one in failed
        ]
        parts.append(_write_rows(["failed line", "what it has"], rows[:_FAILED]) + _count_more(len(rows) - _FAILED))
    change = choose_change(comparison, outcomes)
    changed = [*_list_changes(comparison, change, explanation)]
    if changed:
        title = f"Queries that changed most in {change.measure}, {change.system} against {change.against}"
        header = ["query", change.against, change.system, "difference", "cause"]
        parts += [f"**{escape_markdown(title)}**", _write_rows([*map(escape_markdown, header)], changed)]
    parts.append(f"<details><summary>All differences</summary>\n\n{_write_pairs(comparison)}\n\n</details>")
    made = " ".join(
        f"{name}={comparison.signature[name]}" for name in ("goodgain", "qrels", "seed", "resamples", "alpha")
    )
    return "\n\n".join([*parts, f"<sub>{escape_markdown(made)}</sub>"]) + "\n"


def _write_rows(header: list[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _count_more(number: int) -> str:
    return f"\n\n{number} more: see the log." if number > 0 else ""


def _list_changes(
    comparison: Comparison, change: Change, explanation: Explanation | None
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the queries that changed most, largest change first: id, both values, difference, cause."""
    values = comparison.values.filter(measure=change.measure)
    sides = [values.filter(system=name).select("query_id", "value") for name in (change.against, change.system)]
    both = sides[0].join(sides[1], on="query_id", suffix="_new").drop_nulls()
    changed = both.with_columns(difference=pl.col("value_new") - pl.col("value")).filter(pl.col("difference") != 0)
    sentences: dict[str, str | None] = {}
    if explanation is not None:
        sentences = dict(explanation.queries.filter(measure=change.measure).select("query_id", "sentence").iter_rows())
    most = changed.sort(-pl.col("difference").abs(), "query_id").head(_QUERIES)
    for query_id, base, new, difference in most.iter_rows():
        cause = sentences.get(query_id) or ""
        yield escape_markdown(query_id), f"{base:.4g}", f"{new:.4g}", f"{difference:+.4g}", escape_markdown(cause)


def _write_pairs(comparison: Comparison) -> str:
    rows = [
        (
            *(escape_markdown(row[name]) for name in ("measure", "system", "against")),
            *("–" if row[name] is None else f"{row[name]:+.4f}" for name in ("difference", "low", "high")),
            row["verdict"] or "–",
        )
        for row in comparison.pairs.iter_rows(named=True)
    ]
    header = ["measure", "system", "against", "difference", "low", "high", "verdict"]
    return _write_rows(header, rows[:_PAIRS]) + _count_more(len(rows) - _PAIRS)
