"""Reports the outcomes of requirements as JUnit XML for continuous integration, a Markdown comment, or an `AssertionError`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple
from xml.etree import ElementTree

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.lost_queries import describe_lost
from goodgain.analysis.comparing.pairs_table import NO_RESULTS
from goodgain.analysis.comparing.rendering import count_queries, format_interval, format_signed, show
from goodgain.analysis.comparing.requirements import Outcome, check_requirements
from goodgain.analysis.explaining.causes import divide_measure
from goodgain.analysis.explaining.explanation import Explanation
from goodgain.analysis.explaining.query_sentences import describe_queries
from goodgain.analysis.reporting.plots.plot_data import prepare_per_query
from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, MeasureError, escape_controls
from goodgain.files.escaping import break_cutoffs, break_github_links, escape_html
from goodgain.files.tables import ABSENT, Table, escape_markdown, sort_ids, write_markdown
from goodgain.measures.names import parse_measure

#: The first line of a comment: a bot finds its earlier comment by this line, and replaces it.
MARKER = "<!-- goodgain compare -->"
_MOST_LINES = 60  # of a comment


class _Size(NamedTuple):
    most: int  # rows that are shown if there is room
    least: int  # rows that are shown if there is no room


_LINES, _NOTES, _QUERIES, _FOLDED = _Size(10, 3), _Size(6, 2), _Size(5, 5), _Size(12, 2)
_LONGEST = 80  # characters of a question, or of a search string
_SIGNED = ("goodgain", "qrels", "seed", "resamples", "alpha", "signs")
_SPEND = ("system", "quantity", "value")
_DISTRUST = "What to distrust"
_VERDICTS = ("better", "worse", "unclear", "equal", NO_RESULTS)
_COLUMNS = ("measure", "system", "against", "difference", "interval", "verdict")


@checks_kinds
def check(comparison: Comparison, lines: str | Iterable[str], *, family: str | None = None) -> list[Outcome]:
    """Check requirements such as `SRR@3<=0.3` in a unit test.

    Args:
        comparison: what `compare` returns.
        lines: one or more requirements, such as `SRR@3<=0.3` or `nCG@6>=baseline significant`.
        family: `holm` corrects p over all requirements that a statistical test decides (`significant`, `noise`).

    Returns:
        The outcome of each requirement for each system except the baseline.

    Raises:
        AssertionError: a requirement does not hold. The message is a report in Markdown.
        InputError: a requirement cannot be read, needs a measure that was not computed, or needs a baseline and there is none.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/two_agents/"
    >>> systems = {"quick": folder + "quick.run", "late": folder + "late.run"}
    >>> comparison = gg.compare(folder + "qrels.txt", systems, "SRR@3", baseline="quick")
    >>> [outcome.holds for outcome in gg.check(comparison, "SRR@3<=baseline+0.05")]
    [True]
    """
    if not isinstance(comparison, Comparison):
        raise InputError(f"check: {type(comparison).__name__} is not a comparison; give what gg.compare returns")
    outcomes = check_requirements(comparison, [lines] if isinstance(lines, str) else lines, family=family)
    if not all(outcome.holds for outcome in outcomes):
        raise AssertionError(write_comment(comparison, outcomes))
    return outcomes


def write_junit(outcomes: Sequence[Outcome], notes: Sequence[str] = ()) -> str:
    """Return the outcomes as JUnit XML: a test case for each requirement and system, and the notes.

    Source: junit-10.xsd of the xUnit plugin of Jenkins.
    """
    failures = sum(not outcome.holds for outcome in outcomes)
    totals = {"name": "goodgain", "tests": str(len(outcomes)), "failures": str(failures), "errors": "0"}
    suites = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(suites, "testsuite", totals | {"skipped": "0", "time": "0"})
    for row, outcome in zip(_build_outcomes_table(outcomes).rows, outcomes, strict=True):
        system, line, message = (escape_controls(cell.text) for cell in row)
        case = ElementTree.SubElement(suite, "testcase", {"name": line, "classname": system, "time": "0"})
        if outcome.holds:
            ElementTree.SubElement(case, "system-out").text = message
        else:
            ElementTree.SubElement(case, "failure", {"type": "requirement", "message": message})
    if notes:
        lines = [f"{_DISTRUST}:", *notes]
        ElementTree.SubElement(suite, "system-out").text = "\n".join(map(escape_controls, lines))
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _build_outcomes_table(outcomes: Iterable[Outcome]) -> Table:
    rows = []
    for outcome in outcomes:
        rows.append([outcome.system, outcome.requirement.text, f"{outcome.system} {outcome.describe()}"])
    return Table.of("", ["system", "failed line", "what it has"], 3, rows)


def choose_change(comparison: Comparison, outcomes: Sequence[Outcome]) -> tuple[str, str, str, bool]:
    """Return measure, system, against, and whether `explain` takes the measure. Such measures come first, then failed lines."""
    failed = [(str(outcome.requirement.measure), outcome.system) for outcome in outcomes if not outcome.holds]

    def find_place(pair: tuple[str, str, str]) -> int:
        measure, system, _ = pair
        return failed.index((measure, system)) if (measure, system) in failed else len(failed)

    pairs = sorted(comparison.pairs.select("measure", "system", "against").iter_rows(), key=find_place)
    for pair in pairs:
        with suppress(MeasureError):
            divide_measure(parse_measure(pair[0]))
            return *pair, True
    return *pairs[0], False


def write_comment(
    comparison: Comparison,
    outcomes: Sequence[Outcome],
    explanation: Explanation | None = None,
    *,
    questions: Mapping[str, str] | None = None,
    spend: pl.DataFrame | None = None,
) -> str:
    """Return a Markdown comment of at most 60 lines on a comparison. The same comparison gives the same bytes.

    `explanation` explains the pair that `choose_change` returns, and adds causes to the comment. If `explanation` has texts of
    searches, the comment lists searches. `questions` maps query ids to texts shown instead. `spend` is what `gg.spend` returns.
    """
    questions = questions or {}
    failed = [outcome for outcome in outcomes if not outcome.holds]
    first_lines = f"{MARKER}\n{_describe_verdicts(comparison, outcomes, failed)}"
    parts = [_Part(lambda _: first_lines)]
    if failed:
        parts.append(_make_table(_build_outcomes_table(failed).drop_column("system"), _LINES))
    if comparison.notes:
        parts.append(_Part(partial(_write_notes, comparison.notes), len(comparison.notes), _NOTES))

    measure, system, against, _ = choose_change(comparison, outcomes)
    changes = [*_list_changes(comparison, measure, system, against, explanation)]
    if changes:
        rows = [(_shorten(questions.get(query_id, query_id)), *cells) for query_id, *cells in changes]
        title = f"Queries that changed most in {measure}, {system} against {against}"
        header = ["query", against, system, "difference", "cause"]
        parts.append(_make_table(Table.of(title, header, 5, rows), _QUERIES))
        query_id, question = changes[0][0], rows[0][0]
        searches = [] if explanation is None else _list_searches(explanation, query_id)
        if searches:
            header = ["iteration", "system", "search", "new good", "repeated"]
            parts.append(_fold(Table.of(f"Searches of {question}", header, 5, searches)))

    parts.append(_fold(_build_differences_table(comparison)))
    if spend is not None:
        parts.append(_fold(_build_spend_table(spend)))
    settings = [f"{name}={comparison.signature[name]}" for name in _SIGNED if name in comparison.signature]
    signature = escape_markdown(" ".join(settings))
    parts.append(_Part(lambda _: f"<sub>{signature}</sub>"))
    return break_cutoffs(_write_within(parts, _MOST_LINES))


def _describe_verdicts(comparison: Comparison, outcomes: Sequence[Outcome], failed: Sequence[Outcome]) -> str:
    """Return the first line: required lines, numbers of verdicts, queries, and queries that systems lost."""
    required = ""
    if outcomes:
        held = f"{len(outcomes) - len(failed)} held"
        numbers = f"{len(failed)} failed, {held}" if failed else held
        required = f"Required lines: {numbers}. "

    counts = Counter(comparison.pairs.get_column("verdict").drop_nulls())
    names = [*_VERDICTS, *sorted({*counts} - {*_VERDICTS})]  # not comparable, with its reason
    verdicts = ", ".join(f"{counts[name]} {name}" for name in names if counts[name]) or "No verdict"
    queries = count_queries(comparison.signature["queries"])

    lost = "; ".join(describe_lost(comparison.scores, comparison.broke_off))
    lost_queries = f" Queries lost by {escape_markdown(lost)}." if lost else ""
    return f"**{required}{verdicts}, {queries}.{lost_queries}**"


def _build_differences_table(comparison: Comparison) -> Table:
    rows = []
    for pair in comparison.pairs.iter_rows(named=True):
        names = [pair[name] for name in _COLUMNS[:3]]
        difference = format_signed(pair["difference"], 4)
        interval = format_interval(pair["low"], pair["high"], 4)
        rows.append([*names, difference, interval, pair["verdict"] or ABSENT])
    return Table.of("All differences", _COLUMNS, len(_COLUMNS), rows)


def _build_spend_table(spend: pl.DataFrame) -> Table:
    rows = []
    for system, quantity, value in spend.select(_SPEND).iter_rows():
        rows.append([system, quantity, "–" if value is None else f"{value:.4g}"])
    return Table.of("What each system spends", _SPEND, len(_SPEND), rows)


class _Part(NamedTuple):
    """A part of a comment. `write(n)` writes at most n of its rows."""

    write: Callable[[int], str]
    rows: int = 0
    size: _Size = _Size(0, 0)


def _write_within(parts: Sequence[_Part], lines: int) -> str:
    """Join the parts. Leave out rows of the longest parts until the text has at most `lines` lines."""
    rows_of_part = [min(part.rows, part.size.most) for part in parts]
    while True:
        texts = [part.write(rows) for part, rows in zip(parts, rows_of_part, strict=True)]
        text = "\n\n".join(texts) + "\n"
        can_shrink = [k for k, part in enumerate(parts) if rows_of_part[k] > part.size.least]
        if text.count("\n") <= lines or not can_shrink:
            return text
        longest = max(can_shrink, key=lambda k: (rows_of_part[k], k))  # of equally long parts, the last
        rows_of_part[longest] -= 1


def _write_notes(notes: Sequence[str], most: int) -> str:
    lines = [f"**{_DISTRUST}**", *(f"- {escape_markdown(note)}" for note in notes[:most])]
    if len(notes) > most:
        lines.append(f"- {len(notes) - most} more: see the log.")
    return "\n".join(lines)


def _make_table(table: Table, size: _Size) -> _Part:
    return _Part(partial(_write_table, table), len(table.rows), size)


def _fold(table: Table) -> _Part:
    """Return a table that a reader of the comment unfolds."""
    title = break_github_links(escape_html(escape_controls(table.title)))
    untitled = table._replace(title="")

    def write(most: int) -> str:
        return f"<details><summary>{title}</summary>\n\n{_write_table(untitled, most)}\n\n</details>"

    return _Part(write, len(table.rows), _FOLDED)


def _write_table(table: Table, most: int) -> str:
    more = len(table.rows) - most
    text = write_markdown([table._replace(rows=table.rows[:most])]).rstrip("\n")
    if more > 0:
        text += f"\n\n{more} more: see the log."
    return text


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"


def _list_searches(explanation: Explanation, query_id: str) -> list[tuple[str, ...]]:
    """Return iteration, system, search string, new good and repeated results of each search of a query with a string."""
    rows = explanation.iterations.filter(pl.col("query_id") == query_id, pl.col("query_text").is_not_null())
    # an iteration has a row for each threshold
    rows = rows.filter(pl.col("rel") == pl.col("rel").min()).sort("iteration", maintain_order=True)
    searches: list[tuple[str, ...]] = []
    for row in rows.iter_rows(named=True):
        counts = str(row["new_good"]), str(row["repeated"])
        searches.append((str(row["iteration"]), row["system"], _shorten(row["query_text"]), *counts))
    return searches


def _list_changes(
    comparison: Comparison, measure: str, system: str, against: str, explanation: Explanation | None
) -> Iterator[tuple[str, ...]]:
    """Yield the queries that changed most: id, value of `against`, value of `system`, difference, and cause ("" if unknown)."""
    rows = prepare_per_query(comparison, measure, system=system, against=against).filter(pl.col("difference") != 0)
    sentences: Mapping[str, str | None] = {} if explanation is None else describe_queries(explanation, measure)
    by_size = sort_ids(rows).sort(-pl.col("difference").abs(), maintain_order=True)
    most = by_size.head(_QUERIES.most)
    for query_id, new, base, difference, _ in most.iter_rows():
        yield query_id, show(base), show(new), show(difference, "+"), sentences.get(query_id) or ""
