"""Arguments and options that several commands share."""

from __future__ import annotations

import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import chain, takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from goodgain.cli.named_runs import find_single_runs, find_systems
from goodgain.errors import GoodgainError, InputError
from goodgain.files.writing import Outputs
from goodgain.formats.no_labels import NO_LABELS
from goodgain.judgments.scales import SCALES
from goodgain.measures.declaration import DECLARATIONS
from goodgain.options import DOCUMENTS, OPTIONS, PLACES, READING, ROWS, TABLES

if TYPE_CHECKING:
    from goodgain.experiments.experiment import Experiment
    from goodgain.scoring.scoring import Scoring

#: The values of a command's arguments and options, by name.
Options = SimpleNamespace
Command = Callable[[Options], None]
Decorator = Callable[[Command], Command]

COUNT = click.IntRange(1)


def file_option(*names: str, help: str, metavar: str = "FILE", **settings: Any) -> Decorator:  # noqa: A002  # click's word
    return click.option(*names, metavar=metavar, help=help, type=click.Path(path_type=Path), **settings)


def measures_option(described: str, **settings: Any) -> Decorator:
    """Return the option -m, and the option that makes measures of the user known to it."""
    return join_options(
        click.option("-m", "--measure", "measures", multiple=True, help=described, **settings), define_option
    )


def choice_option(name: str, choices: Sequence[str], described: str) -> Decorator:
    """Return an option that takes one of `choices`. The first choice is the default."""
    return click.option(name, type=click.Choice(choices), default=choices[0], help=described)


def say(sentence: object) -> None:
    """Print a sentence on standard error. In a terminal, lines break between words."""
    lines = str(sentence).splitlines()
    if sys.stderr.isatty():
        width = max(40, shutil.get_terminal_size().columns)
        wrapper = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        lines = list(chain.from_iterable(wrapper.wrap(line) or [""] for line in lines))
    print(*lines, sep="\n", file=sys.stderr)


def _run_definitions(_context: click.Context, _option: click.Parameter, files: tuple[Path, ...]) -> None:
    """Run files that call `goodgain.define`. Raise `InputError` for a file that fails, or that defines no measure."""
    for path in files:
        earlier = {id(declared) for declared in DECLARATIONS.values()}
        try:
            text = path.read_text(encoding="utf-8")
            code = compile(text, str(path), "exec")
            exec(code, {"__name__": path.stem, "__file__": str(path)})
        except GoodgainError:
            raise
        except Exception as error:
            raise InputError(f"--define {_find_place(error, path)}: {type(error).__name__}: {error}") from error

        if earlier.issuperset(map(id, DECLARATIONS.values())):
            raise InputError(f"--define {path}: defines no measure. Call goodgain.define in this file.")


def _find_place(error: Exception, path: Path) -> str:
    """Return the file, with the last of its lines that ran before the error."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f"{path}, line {lines[-1]}" if lines else str(path)


def make_epilog(*examples: str) -> str:
    """Return the examples at the end of a command's help. Without \\b, click would wrap the lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


class _Command(click.Command):
    """A command that tells where measures stand, if an argument is left over and the command has the option -m.

    With --no-labels, the command takes no QRELS: an empty text stands in their place.
    """

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        names = {option.name for option in self.params}
        options = takewhile("--".__ne__, arguments)
        if "no_labels" in names and _NO_LABELS in options:
            arguments = ["", *arguments]

        try:
            return super().parse_args(context, arguments)
        except click.UsageError as error:
            is_left_over = error.message.startswith("Got unexpected extra argument")
            if is_left_over and "measures" in names:
                remedy = "To name a measure, write it behind -m"
                raise click.UsageError(f"{error.message}. {remedy}", context) from None
            raise


def command(*examples: str) -> Callable[[Command], click.Command]:
    """Return a decorator that makes click's command of a function that takes `Options`. The examples end the command's help."""

    def decorate(function: Command) -> click.Command:
        @wraps(function)  # also copies the options that click's decorators have attached to the function
        def call(**values: Any) -> None:
            function(Options(**values))

        return click.command(cls=_Command, epilog=make_epilog(*examples))(call)

    return decorate


_NO_LABELS = "--no-labels"
no_labels_option = click.option(
    _NO_LABELS,
    is_flag=True,
    help="There are no relevance labels: leave out QRELS. Measures that need no label are computed. Default of -m: all of them.",
)

#: Runs the files before the command looks up its measures.
define_option = click.option(
    "--define",
    metavar="FILE",
    multiple=True,
    expose_value=False,
    is_eager=True,
    type=click.Path(path_type=Path),
    callback=_run_definitions,
    help="A Python file that calls goodgain.define: runs it, and its measures can be named. See docs/own_measures.md.",
)


def join_options(*options: Decorator) -> Decorator:
    """Return one decorator that adds all `options` to a command. The help lists the options in the given order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def parse_with(read: Callable[[Any], Any], remedy: str) -> Callable[..., Any]:
    """Return a click callback that parses an option with `read`, and turns a ValueError into an `InputError` with the remedy."""

    def parse(_context: click.Context, option: click.Parameter, value: Any) -> Any:
        try:
            return read(value)
        except ValueError:
            text = value if isinstance(value, str) else " ".join(value)
            raise InputError(f"{option.opts[0]} {text}: {remedy}") from None

    return parse


def parse_numbers(example: str, number: type[float] = float) -> Callable[..., Any]:
    """Return a click callback that reads numbers with commas between; an absent option stays None."""

    def read(text: str | None) -> list[float] | None:
        if text is None:
            return None
        return [number(part) for part in text.split(",")]

    return parse_with(read, f"write numbers with commas between, such as {example}")


def _read_columns(text: str | None) -> dict[str, str]:
    """Return {name: column} of NAME=COLUMN,NAME=COLUMN, {} if absent. Raise ValueError if a name or column is empty."""
    columns = {}
    for pair in text.split(",") if text else ():
        name, _, column = pair.partition("=")
        if not name or not column:
            raise ValueError
        columns[name.strip()] = column.strip()
    return columns


def _check_plot_name(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    """Return the file name, after raising an error if its suffix is not that of a picture."""
    if value is not None:
        from goodgain.analysis.reporting.plots.pictures import check_picture_name  # slow to import

        check_picture_name(value)
    return value


_FLAGS = {name: declared.flag for name, declared in OPTIONS.items()}


def declared_option(name: str, *more: str, **settings: Any) -> Decorator:
    """Return the click option for an entry of `goodgain.options`. `more` extends the help. `settings` are passed to click."""
    declared = OPTIONS[name]
    kind: Any = click.Choice(declared.choices) if declared.choices else declared.kind
    sentences = [declared.sentence.format_map(_FLAGS), *more]
    usual = {"type": kind, "metavar": declared.metavar, "help": " ".join(sentences)}

    if kind is Path:
        usual |= {"type": click.Path(path_type=Path), "metavar": "FILE"}
    if kind is bool:
        usual |= {"is_flag": True}
    elif declared.default is not None:
        usual |= {"default": declared.default}
    if settings.get("multiple") and kind is Path:
        usual |= {"callback": lambda _context, _option, files: [*files] or None}
    return click.option(declared.flag, **usual | settings)


def declared_options(*names: str) -> Decorator:
    return join_options(*map(declared_option, names))


def _read_pages(texts: Sequence[str]) -> Any:
    """Read N as a number, and SYSTEM=N, SYSTEM=N as a dict {system: number}."""
    sizes = {}
    for text in texts:
        system, _, size = text.rpartition("=")
        if not size.isdecimal():
            raise ValueError
        sizes[system] = int(size)

    is_one_size = "" in sizes
    if len(sizes) < len(texts) or (is_one_size and len(texts) > 1):
        raise ValueError
    return sizes[""] if is_one_size else sizes or None


_OF_COLUMNS = "write NAME=COLUMN,NAME=COLUMN, such as step=iteration,qid=query_id"
_OF_PAGES = "write one number, or SYSTEM=N once for each system"
columns_option = declared_option("columns", callback=parse_with(_read_columns, _OF_COLUMNS))
#: Options whose value is not a plain text or number -> decorator.
_PARSED = {
    "columns": columns_option,
    "page": declared_option("page", multiple=True, callback=parse_with(_read_pages, _OF_PAGES)),
}
rel_option = declared_option(
    "rel", "It is for measures of iterations without their own rel.  [default: that of the measure, mostly 2]"
)
_READING = [option.name for option in (*READING, *DOCUMENTS)]
reading_options = join_options(*(_PARSED.get(name) or declared_option(name) for name in _READING))

qrels_argument = click.argument("qrels", metavar="QRELS")
run_argument = click.argument("run", metavar="RUN")
runs_argument = click.argument("runs", metavar="RUN...", nargs=-1, required=True)
disputed_option = file_option(
    "--disputed", metavar="SHEET", help="Write the documents whose grades tie or differ by 2 or more: .csv or .jsonl."
)
texts_option = click.option(
    "--texts", metavar="FILE", help="A file with doc_id and text: .jsonl, .csv, .tsv, .parquet."
)


def scale_option(default: str | None = None) -> Decorator:
    names = [f"{name} ({scale.grades[0]:g}..{scale.grades[-1]:g})" for name, scale in SCALES.items()]
    words = f"{', '.join(names)}; a range 0..5; a list 0,1,3; or grades with their meanings: '0: no; 1: yes'"
    return click.option("--scale", default=default, help=f"The grades that judges can give: {words}.")


rows_option = choice_option("--rows", ROWS, "The rows of the table of means.")
plot_option = file_option(
    "--plot", callback=_check_plot_name, help="Also draw the result, into a .png, .svg or .pdf file."
)
spreadsheet_option = click.option(
    "--spreadsheet",
    is_flag=True,
    help="In CSV, write ' before texts that a spreadsheet would read as formulas: those that begin with = + - @.",
)
full_option = click.option(
    "--full",
    is_flag=True,
    help="For a table: also print all notices and the signature. Other forms always have them. In compare also tests, and the "
    "interval of each mean in all forms.",
)


def places_option(described: str) -> Decorator:
    return click.option("-p", "--places", type=click.IntRange(*PLACES), default=4, help=described)


class Output(NamedTuple):
    """The form of the output (one of `FORMS`), and the file to write (None: standard output)."""

    form: str
    path: Path | None = None


FORMS = ("table", "tsv", "csv", "jsonl", "json", "markdown", "latex", "parquet")
#: Suffix of a file -> form.
_FORM_OF = {{"markdown": ".md", "latex": ".tex"}.get(form, f".{form}"): form for form in FORMS[1:]}


def output_option(form: str) -> Decorator:
    """Return the option -o. The default is a table if standard output is a terminal, else the form `form`."""

    def read(context: click.Context, option: click.Parameter, value: str | None) -> Output:
        if value is None or value in FORMS:
            usual = FORMS[0] if sys.stdout.isatty() else form
            return Output(value or usual)

        suffix = Path(value).suffix.lower()
        if suffix not in _FORM_OF:
            picture = "; draw a picture with --plot" if suffix in (".png", ".svg", ".pdf") else ""
            forms = f"{', '.join(FORMS)}, nor a file that ends in {' '.join(_FORM_OF)}"
            raise click.BadParameter(f"{value!r} is not {forms}{picture}", context, option)
        return Output(_FORM_OF[suffix], Path(value))

    described = f"Print {', '.join(FORMS)}; or write a file that ends in {' '.join(_FORM_OF)}."
    default = f"Default: {FORMS[0]} on a terminal, else {form}."
    names = ("-o", "--output", "--output-format")
    return click.option(*names, metavar="FORM|FILE", callback=read, help=f"{described} {default}")


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Raise InputError if an output would overwrite an input or another output."""
    files = Outputs(Path(path) for path in inputs if path is not None)
    for path in outputs:
        if path is not None:
            files.add(path)


def make_experiment(options: Options) -> Experiment:
    """Return the experiment for a command's arguments."""
    from goodgain.experiments.experiment import Experiment

    return Experiment(_find_qrels(options), find_systems(options.runs), **_select_options(options))


def make_scoring(options: Options, *, replicates: bool = True) -> Scoring:
    """Return the scoring for a command's arguments. Notices do not name a system that is alone."""
    from goodgain.scoring.scoring import Scoring

    systems: Mapping[str, Any] = find_systems(options.runs) if replicates else find_single_runs(options.runs)
    if len(systems) == 1:
        (run,) = systems.values()
        systems = {"": run}
    return Scoring(_find_qrels(options), systems, **_select_options(options))


def list_tables(options: Options) -> list[str]:
    """Return the names of the given tables that some measures need, such as `costs`."""
    return [option.name for option in TABLES if getattr(options, option.name)]


def _find_qrels(options: Options) -> Any:
    return NO_LABELS if getattr(options, "no_labels", False) else options.qrels


def _select_options(options: Options) -> dict[str, Any]:
    """Return the options of an experiment, by name."""
    from goodgain.scoring.scoring import DEFAULTS

    return {name: value for name, value in vars(options).items() if name in DEFAULTS}
