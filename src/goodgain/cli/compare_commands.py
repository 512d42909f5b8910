"""The commands `compare` and `report`."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from goodgain.analysis.comparing.baseline_file import write_baseline
from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_forms import FORMS as COMPARISON_FORMS
from goodgain.analysis.comparing.comparison_forms import render_briefly, render_on_terminal, stack_groups
from goodgain.analysis.comparing.comparison_question import add_fixed_iterations
from goodgain.analysis.comparing.comparison_sentences import describe_many_measures, describe_power, list_unknown
from goodgain.analysis.comparing.comparison_tables import Layout
from goodgain.analysis.comparing.required_lines import Requirement, find_baseline, parse_requirement
from goodgain.analysis.comparing.requirements import Outcome
from goodgain.analysis.reporting.gate_reports import choose_change, write_comment
from goodgain.analysis.reporting.plots.pictures import draw_comparison, write_picture
from goodgain.analysis.reporting.report import FORMATS, choose_format, write_report
from goodgain.cli import shared_options as shared
from goodgain.cli.evaluate_command import check_lines, exit_if_failed, junit_option, require_option
from goodgain.cli.messages_and_exit_status import notices_after_output, show_progress
from goodgain.cli.named_runs import find_files, find_systems
from goodgain.cli.printed_tables import find_table_width, format_signature, open_console, print_frame, write_output
from goodgain.counting.results_of_systems import read_results_of
from goodgain.errors import InputError, without_notices
from goodgain.experiments.experiment import Experiment
from goodgain.experiments.reports import gather_evidence
from goodgain.files.terminal_tables import ANY_WIDTH, print_drawn
from goodgain.formats.query_tables import read_outcomes, read_questions
from goodgain.measures.changed_scores import leave_out_empty
from goodgain.measures.declaration import SessionMeasure
from goodgain.measures.good_gain import NumIter
from goodgain.measures.names import add_counts, parse_measures
from goodgain.measures.without_labels import list_measures_without_labels
from goodgain.options import ROWS
from goodgain.scoring.shared_arguments import OF_REPORTS

_comparison_options = shared.join_options(
    click.option(
        "--baseline", metavar="SYSTEM", help="Compare all other systems with this one. Default: compare all pairs."
    ),
    click.option("--against", type=click.Choice(["previous"]), help="Compare each system only with the one before it."),
    click.option(
        "--iterations",
        metavar="N|N,N,...",
        callback=shared.parse_numbers("1,2,3,5", int),
        help="N: also compare goodgain measures without @ at iterations 1 to N. 1,2,3,5: compare these measures only at 1,2,3,5.",
    ),
    shared.declared_option("groups"),
    shared.declared_option("outcomes", "Each column of numbers is one more measure."),
    shared.declared_options("missing", "incomplete", "no_good"),
    shared.declared_option("queries", "--comment and --plot show questions in place of ids."),
    shared.declared_option("results", "--comment shows the searches of the query that changed most.", multiple=True),
    shared.declared_option("costs", "--comment shows what each system spends.", multiple=True),
    shared.declared_option("lengths"),
    click.option(
        "--detect", type=float, metavar="D", help="Also say how many queries are needed to detect a difference of D."
    ),
    click.option(
        "--pass-k",
        type=shared.COUNT,
        metavar="K",
        help="The K of pass@k and pass^k. Needs --require with a number, and several runs of a system.",
    ),
    shared.declared_option("seed"),
    shared.declared_option("resamples", type=shared.COUNT),
    shared.declared_options("alpha", "correction", "correct_over"),
)
_layout_options = shared.join_options(
    shared.places_option("Decimals in markdown and latex."),
    click.option(
        "--rows",
        type=click.Choice(ROWS),
        help="The rows of the table of means. Default: measures, but systems in latex tables without a baseline.",
    ),
    shared.spreadsheet_option,
    click.option("--caption", default="", help="Caption of the table of means, in latex and markdown."),
    click.option("--intervals", is_flag=True, help="Show the interval of each mean, as --full does."),
    click.option("--label", default="", help="Label of the table of means, in latex."),
)
_gate_options = shared.join_options(
    junit_option,
    shared.file_option("--comment", help="Write a short Markdown comment for a pull request."),
    shared.file_option("--baseline-file", help="Use a file that --write-baseline wrote as the baseline."),
    shared.file_option(
        "--write-baseline",
        help="Write a baseline file, from the system of --baseline, else from the first RUN. One RUN is enough.",
    ),
)


@shared.command(
    "goodgain compare qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'nDCG@10 SRE@3 SRR@3'",
    "goodgain compare qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run --require 'SRR@3<=.5' --plot srr.png",
)
@shared.qrels_argument
@shared.runs_argument
@shared.no_labels_option
@shared.measures_option("A measure, or several: -m nDCG@10 -m 'SRE@3 SRR@3'.")
@shared.rel_option
@_comparison_options
@require_option(
    " or 'CG@3>=baseline-noise' or 'searched>=0.98'. The baseline is the system of --baseline, else the run called baseline, else "
    "the first run. Without --baseline, lines that compare with numbers only are checked for all runs."
)
@_gate_options
@_layout_options
@shared.plot_option
@shared.declared_options("bounds", "provider")
@shared.output_option("csv")
@shared.full_option
@shared.declared_option("order")
@shared.reading_options
def compare(options: shared.Options) -> None:
    """Compare two or more runs on any measures, with tests, and say which run is better.

    QRELS and RUN are as in evaluate; NAME=RUN names a system. NAME=a.run,b.run and NAME='a.*.run' are several runs of one
    system: the values of these runs are averaged query by query.
    """
    if options.iterations is not None and len(options.iterations) == 1:
        (options.iterations,) = options.iterations
    output = options.output
    _check_files(options)
    outcome_names = () if options.outcomes is None else read_outcomes(options.outcomes).columns[2:]
    lines = [parse_requirement(text, rel=options.rel, outcomes=outcome_names) for text in options.required]
    measures = _choose_measures(options, lines)
    _check_tables(options, measures or list_measures_without_labels(shared.list_tables(options)))
    questions = {} if options.queries is None else read_questions(options.queries)

    is_brief = output.form == "table" and not options.full
    with notices_after_output(full=not is_brief):
        experiment = shared.make_experiment(options)
        systems = experiment.systems
        read_results_of(systems, options.results)  # raises errors in results before anything is written
        if options.write_baseline is not None and options.baseline_file is None and len(systems) == 1:
            _check_only_baseline(experiment, options)
            _write_baseline_of_one_run(experiment, measures, options)
            return

        comparison = _compare(experiment, measures, lines, options)
        if not is_brief:
            shared.say(f"signature: {format_signature(comparison.signature)}")
        _print_comparison(comparison, output, _choose_layout(options), is_brief=is_brief)
        if output.form != "table":
            for sentence in list_unknown(comparison):
                shared.say(sentence)
        if options.plot is not None:
            write_picture(draw_comparison(comparison, questions), options.plot)
            shared.say(f"picture: {options.plot}")

    outcomes = check_lines(comparison, lines, options)
    if options.comment is not None:
        comment = _write_comment(experiment, comparison, outcomes, options, questions)
        write_output(comment, shared.Output("markdown", options.comment))
    if options.write_baseline is not None:
        comparison.write_baseline(options.write_baseline, options.baseline or systems[0])
        shared.say(f"written: {options.write_baseline}")
    exit_if_failed(outcomes)


def _check_files(options: shared.Options) -> None:
    """Raise an InputError if an output is an input or another output."""
    outputs = [options.plot, options.output.path, options.junit, options.comment, options.write_baseline]
    names = ("baseline_file", "groups", "outcomes", "queries", "lengths")
    tables = [options.qrels or None, *(getattr(options, name) for name in names)]
    tables += [*(options.results or ()), *(options.costs or ())]
    shared.check_outputs(outputs, [*tables, *find_files(options.runs)])


def _choose_measures(options: shared.Options, lines: Sequence[Requirement]) -> list[Any]:
    """Return the named measures and those of required lines.

    With --no-labels, an empty list stands for all measures that need no label.
    """
    # A requirement on an outcome, or on the share of searched queries, has a text in place of a measure.
    measures_of_lines = [line.measure for line in lines if not isinstance(line.measure, str)]
    measures = [*options.measures, *measures_of_lines]
    if measures:
        return measures
    if lines:
        return [NumIter]  # a comparison needs a measure; each run and each baseline file has this one
    if not options.no_labels:
        raise InputError("no measure was named; name some with -m, such as -m 'nDCG@10 SRE@3 SRR'")
    return []


def _check_tables(options: shared.Options, measures: Sequence[Any]) -> None:
    """Raise `InputError` for a table that nothing needs, or that does not fit several runs of a system."""
    tables = {"--results": options.results, "--costs": options.costs}
    if not options.plot:
        tables["--queries"] = options.queries
    for measure in parse_measures(measures):
        if isinstance(measure, SessionMeasure):
            tables.pop(f"--{measure.table}", None)
    unneeded = [option for option, table in tables.items() if table]
    if unneeded and options.comment is None:
        option = unneeded[0]
        raise InputError(
            f"{option} is for --comment, and no measure needs it. Give --comment FILE too, or leave out {option}."
        )

    if options.results or options.costs:
        runs_of_systems = find_systems(options.runs).values()
        if any(len(runs) > 1 for runs in runs_of_systems):
            raise InputError(
                "--results and --costs need a single run of each system. Give one run each, or leave them out."
            )


def _check_only_baseline(experiment: Experiment, options: shared.Options) -> None:
    """Raise an InputError for options that need a comparison or change values: one run is only written as a baseline."""
    changes_values = experiment.options["bounds"] or experiment.options["incomplete"] != "keep"
    names = ("required", "junit", "comment", "plot", "groups", "baseline")
    if changes_values or any(getattr(options, name) for name in names):
        raise InputError(
            "with one run, compare only writes a baseline file. Leave out --require, --junit, --comment, --plot, --groups, "
            "--baseline, --bounds and --incomplete, or check one run with goodgain evaluate --require"
        )


def _write_baseline_of_one_run(experiment: Experiment, measures: list[Any], options: shared.Options) -> None:
    """Score the only system, and write its values to the file of --write-baseline instead of comparing."""
    parsed = parse_measures(measures, rel=options.rel)
    parsed = add_counts(add_fixed_iterations(parsed, options.iterations))
    ((name, scores),) = experiment.score_systems(parsed).items()
    outcomes = None if options.outcomes is None else read_outcomes(options.outcomes)
    write_baseline(leave_out_empty(scores, parsed), options.write_baseline, system=name, outcomes=outcomes)
    shared.say(f"signature: {format_signature(scores.signature)}")
    shared.say(f"written: {options.write_baseline}")


def _compare(
    experiment: Experiment, measures: list[Any], lines: Sequence[Requirement], options: shared.Options
) -> Comparison:
    """Compare the systems. Without --baseline, the baseline is the one that the required lines need, or none."""
    baseline = options.baseline
    if not baseline and not options.baseline_file:
        baseline = _find_baseline(lines, experiment.systems, options.against)
    names = ("against", "iterations", "groups", "outcomes", "baseline_file", "pass_k", "detect")
    settings = {name: getattr(options, name) for name in names}
    with show_progress():
        return experiment.compare(measures or None, baseline=baseline or None, require=lines, **settings)


def _find_baseline(lines: Sequence[Requirement], names: Sequence[str], against: str | None) -> str | None:
    """Return the system that required lines without a number are compared with. Raise `InputError` if --against has none."""
    baseline = find_baseline(lines, names)
    if baseline is not None and against is not None:
        text = next(line.text for line in lines if line.bound is None)
        raise InputError(
            f"--require {text!r} needs a baseline, and --against {against} has none; leave out either option, or require a "
            "number"
        )
    return baseline


def _choose_layout(options: shared.Options) -> Layout:
    return Layout(
        options.places,
        options.rows,
        options.spreadsheet,
        options.caption,
        options.label,
        intervals=options.intervals or options.full,
    )


def _print_comparison(comparison: Comparison, output: shared.Output, layout: Layout, *, is_brief: bool) -> None:
    """Print a comparison. On a terminal it fits the width only if `is_brief`; forms of data get the rows of all groups."""
    if output.form == "table":
        console = open_console(sys.stdout)
        if is_brief:
            drawn = render_briefly(comparison, find_table_width(console), layout)
        else:
            drawn = render_on_terminal(comparison, ANY_WIDTH, layout)
        print_drawn(console, [*drawn])
    elif output.form in COMPARISON_FORMS:
        write_output(comparison.to_text(output.form, **layout._asdict()), output)
        if output.form == "csv":  # the other forms have the remarks
            _say_remarks(comparison)
    else:
        print_frame(stack_groups(comparison), output)
        _say_remarks(comparison)


def _say_remarks(comparison: Comparison) -> None:
    """Print the remarks that a reader of bare rows needs: on many measures and, with `--detect`, on what it asked."""
    for sentence in describe_many_measures(comparison):
        shared.say(sentence)
    if comparison.question.detect is not None:
        for sentence in describe_power(comparison):
            shared.say(sentence)


def _write_comment(
    experiment: Experiment,
    comparison: Comparison,
    outcomes: list[Outcome],
    options: shared.Options,
    questions: dict[str, str],
) -> str:
    """Return the comment, with the reasons of the change that matters most, if its measure has causes by document and both runs are
    given: a baseline file has no documents.
    """
    measure, system, against, has_causes = choose_change(comparison, outcomes)
    explanation = None
    if has_causes and against in experiment.systems:
        results = options.results
        if results and len(results) > 1:  # one file per system
            results_of = dict(zip(experiment.systems, results, strict=True))
            results = [results_of[against], results_of[system]]
        with without_notices():  # the comparison has given them
            explanation = experiment.explain(against, system, measure, results=results, outcomes=options.outcomes)

    spend = experiment.spend(options.costs) if options.costs else None
    return write_comment(comparison, outcomes, explanation, questions=questions, spend=spend)


@shared.command(
    "goodgain report qrels_examples/two_agents/qrels.txt qrels_examples/two_agents/quick.run "
    "qrels_examples/two_agents/late.run -m 'nDCG@10 nCG@6 SRR@6' -o two_agents.html",
    "goodgain report qrels_examples/lost_documents/qrels.txt qrels_examples/lost_documents/old.run "
    "qrels_examples/lost_documents/new.run -m CG@3 --results qrels_examples/lost_documents/results.jsonl -o lost.html",
)
@shared.qrels_argument
@shared.runs_argument
@shared.no_labels_option
@shared.measures_option(
    "A measure, or several. The first one with causes by document (CG, nCG, SRE ...) is explained.",
    default=[OF_REPORTS],
)
@shared.rel_option
@shared.declared_option("results", "One file of all systems, or one for each RUN.", multiple=True)
@shared.declared_options("queries", "uses", "groups")
@shared.declared_option("costs", multiple=True)
@shared.declared_option("lengths")
@shared.declared_option("outcomes", "Its columns are compared, as in compare.")
@click.option(
    "--details",
    type=click.IntRange(0),
    default=200,
    metavar="N",
    help="List all results of the N queries that changed most.",
)
@shared.file_option("-o", "--output", help="The file to write. Default: report.html; other formats are printed.")
@click.option("--format", "form", type=click.Choice([*FORMATS]), help="Default: the ending of --output, else html.")
@shared.spreadsheet_option
@shared.declared_options("order", "provider")
@shared.reading_options
def report(options: shared.Options) -> None:
    """Write a report page: which system is better, where, why, and whether by more than chance.

    QRELS and RUN are as in compare. All systems are compared with the first RUN. A single RUN is shown without a comparison. The
    page is one file and needs no network. A report in CSV has a row for each query, measure and system.
    """
    path = options.output
    if path is None and options.form in (None, "html"):
        path = Path("report.html")
    form = choose_format(path or Path(), options.form)

    names = ("queries", "uses", "groups", "lengths", "outcomes")
    tables: dict[str, Any] = {name: getattr(options, name) for name in (*names, "results", "costs")}
    inputs = [options.qrels or None, *(tables[name] for name in names)]
    inputs += [*(options.results or ()), *(options.costs or ())]
    shared.check_outputs([path], [*inputs, *find_files(options.runs)])

    command = shlex.join(["goodgain", *sys.argv[1:]])
    with notices_after_output(full=True):
        experiment = shared.make_experiment(options)
        with show_progress():
            settings = {"details": options.details, "command": command}
            evidence = gather_evidence(experiment, list(options.measures), tables, **settings)
            text = write_report(evidence, form, spreadsheet=options.spreadsheet)
        write_output(text, shared.Output(form, path))
