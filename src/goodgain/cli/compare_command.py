"""The command compare: reads the runs, prints the comparison, and checks requirements."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from goodgain.analysis.comparing.baseline_file import write_baseline
from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_forms import FORMS as COMPARISON_FORMS
from goodgain.analysis.comparing.comparison_forms import ROWS, Layout, render_briefly, render_on_terminal, stack_groups
from goodgain.analysis.comparing.comparison_question import add_fixed_iterations
from goodgain.analysis.comparing.explanation import read_results_of
from goodgain.analysis.comparing.gate_reports import choose_change, write_comment
from goodgain.analysis.comparing.required_lines import Requirement, parse_requirement
from goodgain.analysis.reporting.plots.pictures import draw_comparison, write_picture
from goodgain.cli import shared_options as shared
from goodgain.cli.gate_options import GateFiles, check_lines, exit_if_failed, gate_options, require_option
from goodgain.cli.messages_and_exit_status import notices_after_output, show_progress
from goodgain.cli.printed_tables import format_signature, open_console, print_frame, write_output
from goodgain.errors import InputError, collect_notices
from goodgain.experiments.experiment import Experiment
from goodgain.files.terminal_tables import ANY_WIDTH, print_drawn
from goodgain.formats.query_tables import read_outcomes
from goodgain.formats.texts import read_questions
from goodgain.measures.declaration import SessionMeasure
from goodgain.measures.names import add_counts, parse_measures
from goodgain.measures.scores import leave_out_empty

#: What is compared beside the runs and measures.
_comparison_options = shared.join_options(
    click.option(
        "--baseline", metavar="SYSTEM", help="Compare all others with this system. Default: compare all pairs."
    ),
    click.option("--against", type=click.Choice(["previous"]), help="Compare each system only with the one before it."),
    click.option(
        "--iterations",
        metavar="N|N,N,...",
        callback=shared.parse_numbers("1,2,3,5", int),
        help="Also compare measures of ours without @ at each iteration up to this. 1,2,3,5: at exactly these.",
    ),
    shared.declared_option("groups"),
    shared.declared_option("outcomes", "Each column of numbers is one more measure."),
    shared.declared_options("missing", "incomplete"),
    shared.declared_option("queries", "--comment and --plot show questions in place of ids."),
    shared.declared_option("results", "--comment shows the searches of the query that changed most.", multiple=True),
    shared.declared_option("costs", "--comment shows what each system spends.", multiple=True),
    click.option(
        "--detect", type=float, metavar="D", help="Also say how many queries it takes to show a difference of D."
    ),
    click.option(
        "--pass-k",
        type=shared.COUNT,
        metavar="K",
        help="With several runs of a system and --require lines with a number: the K of pass@k and pass^k.",
    ),
    shared.declared_option("seed"),
    shared.declared_option("resamples", type=shared.COUNT),
    shared.declared_option("alpha"),
)
#: The fields of `Layout`.
_layout_options = shared.join_options(
    shared.places_option("Decimals in markdown and latex."),
    click.option(
        "--rows",
        type=click.Choice(ROWS),
        help="The rows of the table of means. Default: systems in latex without --baseline, else measures.",
    ),
    shared.spreadsheet_option,
    click.option("--caption", default="", help="Caption of the table of means, in latex and markdown."),
    click.option("--label", default="", help="Label of the table of means, in latex."),
)


@shared.command(
    "goodgain compare qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'nDCG@10 SRE@3 SRR@3'",
    "goodgain compare qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run --require 'SRR@3<=.5' --plot srr.png",
)
@shared.qrels_argument
@shared.runs_argument
@shared.measures_option("A measure, or several: -m nDCG@10 -m 'SRE@3 SRR@3'.")
@shared.rel_option
@_comparison_options
@require_option(
    " or 'CG@3>=baseline-noise'. The baseline: that of --baseline, else the run called baseline, or the first."
)
@gate_options
@_layout_options
@shared.plot_option
@shared.declared_options("bounds", "provider")
@shared.output_option("csv")
@shared.full_option
@shared.declared_option("order")
@shared.reading_options
def compare(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    baseline: str | None,
    required: tuple[str, ...],
    family: str | None,
    plot: Path | None,
    output: shared.Output,
    full: bool,
    **settings: Any,
) -> None:
    """Compare two or more runs on any measures, with tests, and say which is better.

    QRELS and RUN are as in evaluate; NAME=RUN names a system. NAME=a.run,b.run and NAME='a.*.run' are several runs of one
    system: their values are averaged query by query.
    """
    gate = GateFiles(*(settings.pop(name) for name in GateFiles._fields))
    layout = Layout(**{name: settings.pop(name) for name in Layout._fields})
    if len(settings["iterations"] or ()) == 1:
        (settings["iterations"],) = settings["iterations"]
    kept, groups, outcomes = (settings[name] for name in ("baseline_file", "groups", "outcomes"))
    beside = _Beside(*(settings.pop(name) for name in _Beside._fields))
    inputs = [qrels, kept, groups, outcomes, beside.queries, *beside.results, *beside.costs, *shared.find_files(runs)]
    shared.check_outputs([plot, output.path, *gate], inputs)
    solved = () if outcomes is None else read_outcomes(outcomes).columns[2:]
    lines = [parse_requirement(text, rel=settings["rel"], outcomes=solved) for text in required]
    wanted = [*measures, *(line.measure for line in lines if line.measure not in solved)]
    beside.check(gate, plot, runs, wanted)
    settings |= {"results": [*beside.results] or None, "costs": [*beside.costs] or None}
    brief = output.form == "table" and not full
    with notices_after_output(full=not brief):
        x = shared.make_experiment(qrels, runs, settings)
        read_results_of(x.systems, beside.results or None)  # what is wrong with them is said before anything is written
        if gate.write_baseline is not None and kept is None and len(x.systems) == 1:
            changes_values = x.options["bounds"] or x.options["incomplete"] != "keep"
            if required or gate.junit or gate.comment or plot or groups or baseline or changes_values:
                raise InputError(
                    "one run can only write a baseline. Leave out --require, --junit, --comment, --plot, --groups, "
                    "--baseline, --bounds and --incomplete, or check one run with goodgain evaluate --require"
                )
            _write_one(x, wanted, gate.write_baseline, settings)
            return
        base = baseline or (None if kept else _find_baseline(lines, x.systems, settings["against"]))
        with show_progress():
            comparison = x.compare(wanted, baseline=base, require=lines, **settings)
        if not brief:
            shared.say(f"signature: {format_signature(comparison.signature)}")
        _print_comparison(comparison, output, layout, brief=brief)
        if plot is not None:
            write_picture(draw_comparison(comparison, beside.questions), plot)
            shared.say(f"picture: {plot}")
    outcomes_of_lines = check_lines(comparison, lines, gate.junit, family)
    if gate.comment is not None:
        measure, system, against, has_causes = choose_change(comparison, outcomes_of_lines)
        explanation = None
        if has_causes and against in x.systems:
            with collect_notices(lambda given: None):  # those of the comparison
                results = beside.find_results(x.systems, against, system)
                explanation = x.explain(against, system, measure, results=results)
        spend = x.spend([*beside.costs]) if beside.costs else None
        comment = write_comment(comparison, outcomes_of_lines, explanation, questions=beside.questions, spend=spend)
        write_output(comment, shared.Output("markdown", gate.comment))
    if gate.write_baseline is not None:
        comparison.write_baseline(gate.write_baseline, baseline or x.systems[0])
        shared.say(f"written: {gate.write_baseline}")
    exit_if_failed(outcomes_of_lines)


class _Beside(NamedTuple):
    """Tables that a comment or a picture shows beside the comparison."""

    queries: str | None
    results: tuple[Path, ...]
    costs: tuple[Path, ...]

    def check(self, gate: GateFiles, plot: Path | None, runs: Sequence[str], measures: Sequence[Any]) -> None:
        """Raise InputError for a table that nothing shows, or that several runs of a system cannot have."""
        asked = {"--results": self.results, "--costs": self.costs, "--queries": self.queries}
        asked |= {f"--{one.table}": None for one in parse_measures(measures) if isinstance(one, SessionMeasure)}
        named = [name for name, of in asked.items() if of and not (plot and of is self.queries)]
        if named and gate.comment is None:
            told = f"{named[0]} is for --comment, and no measure needs it"
            raise InputError(f"{told}. Give --comment FILE too, or leave out {named[0]}.")
        if (self.results or self.costs) and any(len(of) > 1 for of in shared.find_systems(runs).values()):
            raise InputError(
                "--results and --costs belong to one run of each system. Give one run each, or leave them out."
            )

    def find_results(self, systems: Sequence[str], *pair: str) -> list[Path] | None:
        """Return the results of two systems: the file of all, or that of each."""
        if len(self.results) < 2:
            return [*self.results] or None
        of_each = dict(zip(systems, self.results, strict=True))
        return [of_each[name] for name in pair]

    @property
    def questions(self) -> dict[str, str]:
        return {} if self.queries is None else read_questions(self.queries)


def _print_comparison(comparison: Comparison, output: shared.Output, layout: Layout, *, brief: bool) -> None:
    if output.form == "table":
        console = open_console(sys.stdout)
        render, width = (render_briefly, console.width) if brief else (render_on_terminal, ANY_WIDTH)
        print_drawn(console, [*render(comparison, width, layout)])
    elif output.form in COMPARISON_FORMS:
        write_output(comparison.to_text(output.form, **layout._asdict()), output)
    else:
        print_frame(stack_groups(comparison), output)


def _write_one(x: Experiment, measures: list[Any], path: Path, settings: dict[str, Any]) -> None:
    asked = add_counts(add_fixed_iterations(parse_measures(measures, rel=x.options["rel"]), settings["iterations"]))
    ((name, scores),) = x.score_each(asked).items()
    outcomes = None if settings["outcomes"] is None else read_outcomes(settings["outcomes"])
    write_baseline(leave_out_empty(scores, asked), path, system=name, outcomes=outcomes)
    shared.say(f"signature: {format_signature(scores.signature)}")
    shared.say(f"written: {path}")


def _find_baseline(lines: Iterable[Requirement], names: Sequence[str], against: str | None) -> str | None:
    """Return the baseline of requirements without --baseline; None if no requirement needs one."""
    line = next((line for line in lines if line.bound is None), None)
    if line is None:
        return None
    if against is not None:
        raise InputError(
            f"--require {line.text!r} needs a baseline, and --against {against} has none; leave out one of them, or require a "
            "number"
        )
    return "baseline" if "baseline" in names else names[0]
