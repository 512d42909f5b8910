"""The options of a gate for continuous integration: the required lines, and the reports on them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.required_lines import Requirement, forbids_improvement
from goodgain.analysis.comparing.requirements import Outcome, check_requirements
from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import ExitStatus
from goodgain.cli.printed_tables import write_output
from goodgain.errors import notice
from goodgain.measures.scores import Scores


def require_option(described: str) -> shared.Decorator:
    """Return the options of required lines; the help of --require ends with `described`."""
    line = "A line that must hold, else exit status 3: 'SRR@3<=0.3', 'SRE@3>=0.4 significant'"
    return shared.join_options(
        click.option("--require", "required", metavar="LINE", multiple=True, help=line + described),
        click.option(
            "--family",
            type=click.Choice(["holm"]),
            help="Correct the p of all lines with 'significant' or 'noise' together: 5 % that any fails by chance.",
        ),
    )


junit_option = shared.file_option(
    "--junit", help="Write the required lines as JUnit XML: a test case a line and system."
)
gate_options = shared.join_options(
    junit_option,
    shared.file_option("--comment", help="Write a short Markdown comment for a pull request."),
    shared.file_option(
        "--baseline-file", help="Compare with the system that --write-baseline wrote; it is the baseline."
    ),
    shared.file_option(
        "--write-baseline",
        help="Write the values of a system, for --baseline-file: that of --baseline, else the first RUN. One RUN is enough.",
    ),
)


class GateFiles(NamedTuple):
    junit: Path | None
    comment: Path | None
    write_baseline: Path | None


def check_lines(
    found: Comparison | Mapping[str, Scores], lines: Sequence[Requirement], junit: Path | None, family: str | None
) -> list[Outcome]:
    """Print the outcome of each line on stderr, and write them as JUnit XML if asked; return them."""
    for line in lines:
        if forbids_improvement(line):
            better = "lower" if line.sign.startswith(">") else "higher"
            told = f"{line.measure} is better when {better}"
            notice(f"{line.text!r} fails for a system better than the baseline: {told}")
    outcomes = check_requirements(found, lines, family=family)
    for outcome in outcomes:
        shared.say(outcome)
    if junit is not None:
        from goodgain.analysis.comparing.gate_reports import write_junit  # takes 25 ms to import

        of_all = [found] if isinstance(found, Comparison) else found.values()
        notes = dict.fromkeys(note for one in of_all for note in one.notes)
        write_output(write_junit(outcomes, [*notes]), shared.Output("xml", junit))
    return outcomes


def exit_if_failed(outcomes: Sequence[Outcome]) -> None:
    """End with exit status 3 if a line does not hold."""
    if not all(outcome.holds for outcome in outcomes):
        raise click.exceptions.Exit(ExitStatus.REQUIREMENT_FAILED)
