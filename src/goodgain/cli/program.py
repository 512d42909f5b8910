"""The goodgain program, and the commands `flatten`, `validate`, `example` and `measures`.

Commands print results on stdout, and everything else on stderr.
"""

import gc
import sys
from collections import UserDict
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
from goodgain.formats.qrels import looks_like_qrels
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
                told = {name: self.commands[name].get_short_help_str(limit=limit) for name in files}
                formatter.write_dl([(name.ljust(longest), summary) for name, summary in told.items()])


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
    as_before = FOR_COMMANDS.set(True)
    context.call_on_close(lambda: FOR_COMMANDS.reset(as_before))
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
def flatten(given: shared.Given) -> None:
    """Write one classic ranking per query, without repeats, for tools that do not read iterations."""
    shared.check_outputs([given.output], [given.run])
    reading = {name: getattr(given, name) for name in ("gaps", "first", "columns", "errors")}
    searched = read_run(given.run, **reading)
    ranking = Run(searched.flatten(given.order), name=searched.name)
    ranking.never_searched = searched.never_searched
    write_run(ranking, given.output)


@shared.command(
    "goodgain validate qrels_examples/guideline/agent.run", "goodgain validate qrels_examples/guideline/qrels.txt"
)
@click.argument("file", metavar="FILE")
@shared.declared_options("labels", "errors")
@shared.columns_option
def validate(given: shared.Given) -> None:
    """Read a run or qrels, and print a summary or an error."""
    file, reading = given.file, {"columns": given.columns, "errors": given.errors}
    if looks_like_qrels(Path(file), given.columns):
        frame = read_qrels(file, labels=given.labels, **reading).frame
        good = frame.filter(pl.col("relevance") >= 2).height
        queries = count_of(frame.get_column("query_id").n_unique(), "query", "queries")
        print(f"{file}: qrels, {queries}, {count_of(frame.height, 'label')}, {good:,} of them >= 2")
        if not good:
            largest: Any = frame.get_column("relevance").max()
            lower = min(1, largest)
            told = f"If a label of {lower:g} is good, score with --rel {lower:g}."
            remedy = told if lower > 0 else "Check the labels."
            notice("no_good_label", f"every label is below 2, so by default no document is good. {remedy}")
        return
    run = read_run(file, **reading)
    rows = run.rows
    results = rows.filter(pl.col("doc_id") != "-")
    searched = rows.select("query_id", "iteration").unique()
    repeats = results.height - results.select("query_id", "doc_id").unique().height
    idle = len(run.never_searched)
    told = f", and {count_of(idle, 'query', 'queries')} that never searched" if idle else ""
    print(
        f"{file}: run, {count_of(rows.get_column('query_id').n_unique(), 'query', 'queries')}, "
        f"{count_of(searched.height, 'iteration')} "
        f"({searched.height - results.select('query_id', 'iteration').unique().height} of them without results), "
        f"{count_of(results.height, 'result')}, {repeats:,} of them repeats{told}"
    )
    if not run.lacks_column:
        warn_of_equal_rows(find_first_occurrences(rows).equal_rows, about=run.name)
    if not run.has_iterations and rows.height:
        warn_of_missing_iterations(run.name)
    first: Any = searched.get_column("iteration").min()
    gaps = searched.group_by("query_id").agg(gap=pl.col("iteration").max() - first + 1 > pl.len()).filter("gap").height
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
def example(given: shared.Given) -> None:
    """Write the example runs and qrels of the documentation into a new folder.

    Name the folder qrels_examples to run the commands in the README and in almost every --help.
    """
    directory = given.directory
    if directory.exists():
        raise InputError(f"{directory}: the folder exists already; name a new folder")
    installed = Path(__file__).parents[1] / "qrels_examples"  # a checkout has them beside src
    copy_folder(installed if installed.is_dir() else installed.parents[2] / "qrels_examples", directory)
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
def measures(_given: shared.Given) -> None:
    """List the measures that goodgain computes. You can also use all other measures of ir_measures."""
    header = ("measure", "better", "bounds", "definition")
    described: list[tuple[Any, list[str]]] = []
    for measure in MEASURES.values():
        parameters = {name: info for name, info in measure.SUPPORTED_PARAMS.items() if name not in ("rel", "cutoff")}
        described.append((measure.declaration, [f"{name}=: {info.desc}" for name, info in parameters.items()]))
    for declared in (SESSION_MEASURES | RANKED_MEASURES).values():
        own = [f"{name}=" for name in declared.parameters if name != "rel"]
        described.append((declared, [f"takes {', '.join(own)}"] if own else []))
    described += [(declared, []) for declared in DECLARATIONS.values() if declared.family == "defined"]
    console = open_console(sys.stdout)
    if not sys.stdout.isatty():
        print(*header, sep="\t")
    families = {declared.family for declared, _ in described}
    for family, title in _FAMILIES.items():
        if family not in families:
            continue
        rows = []
        for declared, details in described:
            if declared.family == family:
                sentences = [f"{declared.title}: {declared.definition}", declared.note, *details]
                better = {"up": "↑ higher", "down": "↓ lower", None: "–"}[declared.better]
                rows.append((declared.usage, better, declared.range, "; ".join(filter(None, sentences))))
        if sys.stdout.isatty():
            print_drawn(console, [*draw_table(Table.of(title, header, len(header), rows), console.width)])
        else:  # one line per measure, for grep
            print(f"# {title}")
            for row in rows:
                print(*row, sep="\t")


def main() -> None:
    show_notices()
    gc.freeze()  # imported modules stay
    status = run_to_end(lambda: program(standalone_mode=False))
    gc.freeze()  # no garbage collection at the end saves 50 ms
    sys.exit(status)
