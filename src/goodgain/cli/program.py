"""The goodgain program, and the commands `flatten`, `validate`, `example` and `measures`.

Commands print results on stdout, and everything else on stderr.
"""

import gc
import sys
from collections import UserDict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import polars as pl

from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import run_to_end, show_notices
from goodgain.cli.printed_tables import open_console
from goodgain.errors import InputError, count_of, notice
from goodgain.files.tables import Table
from goodgain.files.terminal_tables import draw_table, print_drawn
from goodgain.files.writing import copy_folder
from goodgain.formats import Run, read_qrels, read_run, write_run
from goodgain.formats.iterations import warn_of_missing_iterations
from goodgain.formats.qrels_or_run import looks_like_qrels
from goodgain.measures import MEASURES
from goodgain.measures.declaration import DECLARATIONS
from goodgain.measures.families import RANKED_MEASURES, SESSION_MEASURES
from goodgain.options import FOR_COMMANDS
from goodgain.ranking.first_occurrences_and_flattening import find_first_occurrences
from goodgain.ranking.order_notices import warn_of_equal_rows
from goodgain.version import __version__

#: Heading of --help -> command -> file.
_FILES = {
    "Score": {
        "evaluate": "evaluate_command",
        "ledger": "search_commands",
        "curve": "search_commands",
        "pr": "search_commands",
        "measures": "program",
    },
    "Compare": {"compare": "compare_commands", "explain": "search_commands", "report": "compare_commands"},
    "From logs": {
        "convert": "log_commands",
        "dedup": "log_commands",
        "funnel": "search_commands",
        "annotate": "log_commands",
    },
    "Judge": {"pool": "judging_commands", "label": "label_command", "judge": "judging_commands"},
    "Files": {"example": "program", "validate": "program", "flatten": "program"},
}


class _Commands(UserDict[str, Any]):
    """A dict {name: command}. The file of a command is imported on first use, because importing all files takes 40 ms."""

    def __getitem__(self, name: str) -> click.Command:
        command: click.Command = getattr(import_module(f"goodgain.cli.{self.data[name]}"), name)
        return command


class CommandsUnderHeadings(click.Group):
    """A group whose help lists the commands under headings, with full summaries."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        longest = max(map(len, self.commands))
        limit = formatter.width * 3
        for heading, files in _FILES.items():
            with formatter.section(heading):
                summaries = [self.commands[name].get_short_help_str(limit=limit) for name in files]
                names = [name.ljust(longest) for name in files]
                formatter.write_dl(list(zip(names, summaries, strict=True)))


@click.group(
    cls=CommandsUnderHeadings,
    commands=_Commands({name: file for files in _FILES.values() for name, file in files.items()}),
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "token_normalize_func": lambda name: name.replace("_", "-"),  # ir_measures writes --by_query
    },
    epilog=shared.make_epilog(
        "goodgain evaluate qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run 'nDCG@10 SRE@3 SRR'",
        "goodgain measures",
    ),
)
@click.version_option(__version__, message="goodgain %(version)s")
@click.pass_context
def program(context: click.Context) -> None:
    """Score agents that search in several rounds. Column 2 of a run is the iteration."""
    earlier_value = FOR_COMMANDS.set(True)
    context.call_on_close(lambda: FOR_COMMANDS.reset(earlier_value))
    if context.invoked_subcommand is None:
        print(context.get_help())


@shared.command(
    "goodgain flatten qrels_examples/guideline/agent.run -o flat.run",
    "goodgain flatten qrels_examples/late_recovery/late.run -o last.run --order last",
)
@shared.run_argument
@shared.file_option("-o", "--output", required=True, help="The run to write.")
@shared.declared_options("order", "gaps", "first")
@shared.columns_option
@shared.declared_option("errors")
def flatten(options: shared.Options) -> None:
    """Write one classic ranking per query, without repeats, for tools that do not read iterations."""
    shared.check_outputs([options.output], [options.run])
    reading = {name: getattr(options, name) for name in ("gaps", "first", "columns", "errors")}
    run = read_run(options.run, **reading)
    ranking = Run(run.flatten(options.order), name=run.name)
    ranking.never_searched = run.never_searched
    write_run(ranking, options.output)


@shared.command(
    "goodgain validate qrels_examples/guideline/agent.run", "goodgain validate qrels_examples/guideline/qrels.txt"
)
@click.argument("file", metavar="FILE")
@shared.declared_options("labels", "errors")
@shared.columns_option
def validate(options: shared.Options) -> None:
    """Read a run or qrels, and print a summary or an error."""
    file = options.file
    reading = {"columns": options.columns, "errors": options.errors}
    if looks_like_qrels(Path(file), options.columns):
        labels = read_qrels(file, labels=options.labels, **reading).frame
        print(f"{file}: qrels, {_describe_labels(labels)}")
        _warn_without_good_label(labels)
    else:
        run = read_run(file, **reading)
        print(f"{file}: run, {_describe_run(run)}")
        _warn_of_run(run)


def _describe_labels(labels: pl.DataFrame) -> str:
    queries = labels.get_column("query_id").n_unique()
    good = labels.filter(pl.col("relevance") >= 2).height
    return f"{count_of(queries, 'query', 'queries')}, {count_of(labels.height, 'label')}, {good:,} of them >= 2"


def _warn_without_good_label(labels: pl.DataFrame) -> None:
    """Give a notice if no label reaches 2, the default of rel for measures of iterations."""
    largest: Any = labels.get_column("relevance").max()
    if largest >= 2:
        return
    lower = min(1, largest)
    remedy = f"If a label of {lower:g} is good, score with --rel {lower:g}." if lower > 0 else "Check the labels."
    notice("no_good_label", f"every label is below 2, so by default no document is good. {remedy}")


def _describe_run(run: Run) -> str:
    """Count queries, iterations, results and repeats. A row with doc_id `-` is an iteration without results, not a result.

    A repeat is any further occurrence of a document in the same query, in whatever iteration.
    """
    queries = run.rows.get_column("query_id").n_unique()
    iterations = run.rows.select("query_id", "iteration").unique().height

    results = run.rows.filter(pl.col("doc_id") != "-")
    without_results = iterations - results.select("query_id", "iteration").unique().height
    repeats = results.height - results.select("query_id", "doc_id").unique().height

    summary = (
        f"{count_of(queries, 'query', 'queries')}, "
        f"{count_of(iterations, 'iteration')} ({without_results} of them without results), "
        f"{count_of(results.height, 'result')}, {repeats:,} of them repeats"
    )
    if len(run.never_searched):
        summary += f", and {count_of(len(run.never_searched), 'query', 'queries')} that never searched"
    return summary


def _warn_of_run(run: Run) -> None:
    """Warn of equal rows, of a run without iterations, and of missing iteration numbers."""
    if not run.lacks_column:
        warn_of_equal_rows(find_first_occurrences(run.rows).equal_rows, about=run.name)
    if not run.has_iterations and run.rows.height:
        warn_of_missing_iterations(run.name)

    iterations = run.rows.select("query_id", "iteration").unique()
    first: Any = iterations.get_column("iteration").min()
    expected = pl.col("iteration").max() - first + 1
    gaps = iterations.group_by("query_id").agg(has_gap=expected > pl.len()).filter("has_gap").height
    if gaps:
        notice(
            "missing_iterations",
            f"iteration numbers are missing in {count_of(gaps, 'query', 'queries')}. Commands renumber iterations 1, 2, 3 ...; "
            "with --gaps empty, a missing number counts as a search without results.",
        )


@shared.command(
    "goodgain example example_runs", "goodgain example more_runs && goodgain validate more_runs/guideline/agent.run"
)
@click.argument("directory", type=click.Path(path_type=Path))
def example(options: shared.Options) -> None:
    """Write the example runs and qrels of the documentation into a new folder.

    Name the folder qrels_examples to run the commands in the README and in almost every --help.
    """
    directory = options.directory
    if directory.exists():
        raise InputError(f"{directory}: the folder exists already; name a new folder")
    examples = Path(__file__).parents[1] / "qrels_examples"
    if not examples.is_dir():  # a checkout has them beside src
        examples = examples.parents[2] / "qrels_examples"
    copy_folder(examples, directory)

    agents = directory / "two_agents"
    print(f"goodgain evaluate {agents / 'qrels.txt'} {agents / 'late.run'} 'nDCG@10 nCG@6 SRR@6'")
    shared.say(f"{directory}: example runs and qrels; the command above scores one of them")


#: Family of measures -> title of the table.
_FAMILIES = {
    "good gain": "Good gain, from the ledger; @i is a cutoff in iterations, rel= the smallest good label (2)",
    "counts": "Counts, from the ledger",
    "session": "From all results of all iterations; @i and rel= as above",
    "defined": "Defined by you, from the ledger; @i and rel= as above",
    "classic": "Classic measures, from the ranking; @k is a cutoff in ranks, rel= the smallest relevant label (1)",
    "ranked": "Measures over one ranking that ir_measures lacks; @k and rel= as above",
    "graded": "Measures over one ranking that skip documents without a grade; @k and rel= as above",
}


@shared.command("goodgain measures", "goodgain measures | grep lower")
@shared.define_option
def measures(_given: shared.Options) -> None:
    """List the measures that goodgain computes. You can also use all other measures of ir_measures."""
    rows_of_family: dict[str, list[tuple[str, ...]]] = {}
    for declaration, details in _list_measures():
        better = {"up": "↑ higher", "down": "↓ lower", None: "–"}[declaration.better]
        sentences = [f"{declaration.title}: {declaration.definition}", declaration.note, *details]
        definition = "; ".join(filter(None, sentences))
        rows_of_family.setdefault(declaration.family, []).append(
            (declaration.usage, better, declaration.range, definition)
        )

    header = ("measure", "better", "bounds", "definition")
    is_terminal = sys.stdout.isatty()
    console = open_console(sys.stdout)
    if not is_terminal:
        print(*header, sep="\t")
    for family, title in _FAMILIES.items():
        if family not in rows_of_family:
            continue
        rows = rows_of_family[family]
        if is_terminal:
            print_drawn(console, [*draw_table(Table.of(title, header, len(header), rows), console.width)])
        else:  # one line per measure, for grep
            print(f"# {title}")
            for row in rows:
                print(*row, sep="\t")


def _list_measures() -> Iterator[tuple[Any, list[str]]]:
    """Yield the declaration of each measure, and sentences about its parameters."""
    for measure in MEASURES.values():
        parameters = {name: info for name, info in measure.SUPPORTED_PARAMS.items() if name not in ("rel", "cutoff")}
        yield measure.declaration, [f"{name}=: {info.desc}" for name, info in parameters.items()]

    for declaration in (SESSION_MEASURES | RANKED_MEASURES).values():
        names = [f"{name}=" for name in declaration.parameters if name != "rel"]
        yield declaration, [f"takes {', '.join(names)}"] if names else []

    for declaration in DECLARATIONS.values():
        if declaration.family == "defined":
            yield declaration, []


def main() -> None:
    show_notices()
    gc.freeze()  # imported modules stay
    status = run_to_end(lambda: program(standalone_mode=False))
    gc.freeze()  # no garbage collection at the end saves 50 ms
    sys.exit(status)
