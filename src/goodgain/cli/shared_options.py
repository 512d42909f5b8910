"""Arguments and options that several commands share, and the names of runs on the command line."""

from __future__ import annotations

import glob
import re
import shlex
import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce, wraps
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from goodgain.analysis.comparing.comparison_forms import PLACES, ROWS
from goodgain.analysis.reporting.plots.pictures import check_picture_name
from goodgain.counting.run_opening import find_likely_replicates, number_repeats
from goodgain.errors import GoodgainError, InputError, MeasureError, notice
from goodgain.files.opening import as_text, stem
from goodgain.files.writing import Outputs
from goodgain.formats.any_source import exists
from goodgain.formats.no_labels import NO_LABELS
from goodgain.judgments.scales import SCALES
from goodgain.measures.declaration import DECLARATIONS
from goodgain.measures.names import parse_measures
from goodgain.options import DOCUMENTS, OPTIONS, READING, TABLES

if TYPE_CHECKING:
    from goodgain.experiments.experiment import Experiment
    from goodgain.scoring.scoring import Scoring

#: The values of a command's arguments and options, by name.
Given = SimpleNamespace
Command = Callable[[Given], None]
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
        wrap = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False).wrap
        lines = [part for line in lines for part in wrap(line) or [""]]
    print(*lines, sep="\n", file=sys.stderr)


def _run_definitions(_context: click.Context, _option: click.Parameter, files: tuple[Path, ...]) -> None:
    """Run files that call `goodgain.define`. Raise `InputError` for a file that fails, or that defines no measure."""
    for path in files:
        before = {id(declared) for declared in DECLARATIONS.values()}
        try:
            text = path.read_text(encoding="utf-8")
            code = compile(text, str(path), "exec")
            exec(code, {"__name__": path.stem, "__file__": str(path)})
        except GoodgainError:
            raise
        except Exception as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            place = f"{path}, line {lines[-1]}" if lines else str(path)
            raise InputError(f"--define {place}: {type(error).__name__}: {error}") from error
        if before.issuperset(map(id, DECLARATIONS.values())):
            raise InputError(f"--define {path}: defines no measure. Call goodgain.define in this file.")


def make_epilog(*examples: str) -> str:
    """Return the examples at the end of a command's help. Without \\b, click would wrap the lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


class _Command(click.Command):
    """A command that tells where measures stand, if an argument is left over and the command has the option -m.

    With --no-labels, the command takes no QRELS: an empty text stands in their place.
    """

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        if any(option.name == "no_labels" for option in self.params) and _NO_LABELS in takewhile(
            "--".__ne__, arguments
        ):
            arguments = ["", *arguments]
        try:
            return super().parse_args(context, arguments)
        except click.UsageError as error:
            is_left_over = error.message.startswith("Got unexpected extra argument")
            if is_left_over and any(option.name == "measures" for option in self.params):
                told = f"{error.message}. To name a measure, write it behind -m"
                raise click.UsageError(told, context) from None
            raise


def command(*examples: str) -> Callable[[Command], click.Command]:
    def decorate(function: Command) -> click.Command:
        call = wraps(function)(lambda **given: function(Given(**given)))
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
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def parse_with(read: Callable[[Any], Any], remedy: str) -> Callable[..., Any]:
    """Return a click callback that parses an option with `read`, and turns a ValueError into an `InputError` with the remedy."""

    def parse(_context: click.Context, option: click.Parameter, given: Any) -> Any:
        try:
            return read(given)
        except ValueError:
            shown = given if isinstance(given, str) else " ".join(given)
            raise InputError(f"{option.opts[0]} {shown}: {remedy}") from None

    return parse


def parse_numbers(example: str, number: type[float] = float) -> Callable[..., Any]:
    remedy = f"write numbers with commas between, such as {example}"
    return parse_with(lambda text: None if text is None else [number(part) for part in text.split(",")], remedy)


def _read_columns(text: str | None) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")] if text else []
    if not all(sign and name and ours for name, sign, ours in pairs):
        raise ValueError
    return {name.strip(): ours.strip() for name, _, ours in pairs}


def _check_plot_name(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    if value is not None:
        check_picture_name(value)
    return value


_FLAGS = {name: declared.flag for name, declared in OPTIONS.items()}


def declared_option(name: str, *more: str, **settings: Any) -> Decorator:
    """Return the click option for an entry of `goodgain.options`. `more` extends the help. `settings` are passed to click."""
    declared = OPTIONS[name]
    kind: Any = click.Choice(declared.choices) if declared.choices else declared.kind
    made = {"type": kind, "metavar": declared.metavar, "help": " ".join([declared.sentence.format_map(_FLAGS), *more])}
    if kind is Path:
        made |= {"type": click.Path(path_type=Path), "metavar": "FILE"}
    if kind is bool:
        made |= {"is_flag": True}
    elif declared.default is not None:
        made |= {"default": declared.default}
    if settings.get("multiple") and kind is Path:
        made |= {"callback": lambda _context, _option, files: [*files] or None}
    return click.option(declared.flag, **made | settings)


def declared_options(*names: str) -> Decorator:
    return join_options(*map(declared_option, names))


def _read_pages(given: Sequence[str]) -> Any:
    sizes = {name: int(size) for name, _, size in (one.rpartition("=") for one in given) if size.isdecimal()}
    if len(sizes) < len(given) or ("" in sizes and given[1:]):
        raise ValueError
    return sizes.get("", sizes or None)


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

    def read(context: click.Context, option: click.Parameter, given: str | None) -> Output:
        if given is None or given in FORMS:
            return Output(given or ("table" if sys.stdout.isatty() else form))
        suffix = Path(given).suffix.lower()
        if suffix not in _FORM_OF:
            picture = "; draw a picture with --plot" if suffix in (".png", ".svg", ".pdf") else ""
            forms = f"{', '.join(FORMS)}, nor a file that ends in {' '.join(_FORM_OF)}"
            raise click.BadParameter(f"{given!r} is not {forms}{picture}", context, option)
        return Output(_FORM_OF[suffix], Path(given))

    described = f"Print {', '.join(FORMS)}; or write a file that ends in {' '.join(_FORM_OF)}."
    default = f"Default: {FORMS[0]} on a terminal, else {form}."
    names = ("-o", "--output", "--output-format")
    return click.option(*names, metavar="FORM|FILE", callback=read, help=f"{described} {default}")


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Raise InputError if an output would overwrite an input or another output."""
    known = Outputs(Path(path) for path in inputs if path is not None)
    for path in outputs:
        if path is not None:
            known.add(path)


def make_experiment(given: Given) -> Experiment:
    """Return the experiment for a command's arguments."""
    from goodgain.experiments.experiment import Experiment

    return Experiment(_find_qrels(given), find_systems(given.runs), **_select_options(given))


def make_scoring(given: Given, *, replicates: bool = True) -> Scoring:
    """Return the scoring for a command's arguments. Notices do not name a system that is alone."""
    from goodgain.scoring.scoring import Scoring

    systems: Mapping[str, Any] = find_systems(given.runs) if replicates else find_single_runs(given.runs)
    if len(systems) == 1:
        (run,) = systems.values()
        systems = {"": run}
    return Scoring(_find_qrels(given), systems, **_select_options(given))


def list_tables(given: Given) -> list[str]:
    """Return the names of the given tables that some measures need, such as `costs`."""
    return [option.name for option in TABLES if getattr(given, option.name)]


def _find_qrels(given: Given) -> Any:
    return NO_LABELS if getattr(given, "no_labels", False) else given.qrels


def _select_options(given: Given) -> dict[str, Any]:
    """Return the options of an experiment, by name."""
    from goodgain.scoring.scoring import DEFAULTS

    return {name: value for name, value in vars(given).items() if name in DEFAULTS}


def find_systems(runs: Sequence[str]) -> dict[str, list[str]]:
    """Return {name: paths} for runs given as PATH or NAME=PATH. NAME=PATH,PATH gives several runs of one system.

    >>> find_systems(["old=main/agent.run", "new/agent.run"])
    {'old': ['main/agent.run'], 'agent': ['new/agent.run']}
    """
    for run in runs:
        _refuse_measures(run)
    divided = [split_name(run) for run in runs]
    own = iter(name_systems([path for name, path in divided if not name]))
    named: dict[str, list[str]] = {}
    for name, path in divided:
        system = as_text(name) or next(own)
        if system in named:
            told = f"two systems have the name {system}: {named[system][0]} and {path}"
            raise InputError(f"{told}; write NAME=FILE to rename one of the two")
        named[system] = find_replicates(path) if name else [path]
    _suggest_replicates(named)
    return named


def _refuse_measures(run: str) -> None:
    """Raise `InputError` if a measure stands where a run is expected."""
    if exists(run):
        return
    try:
        parse_measures(run, complete=False)
    except MeasureError:
        if re.search(r"@\d", run) is None:
            return
    option = f"-m {shlex.quote(run)}"
    raise InputError(f"{run}: there is no such run. To name a measure, write {option} behind the runs")


def find_files(runs: Sequence[str]) -> list[str]:
    return [path for paths in find_systems(runs).values() for path in paths]


def find_single_runs(runs: Sequence[str]) -> dict[str, str]:
    """Return {name: path} for runs given as PATH or NAME=PATH. Raise `InputError` if a system has several runs."""
    systems = find_systems(runs)
    for name, paths in systems.items():
        if len(paths) > 1:
            raise InputError(
                f"{name}= names {len(paths)} runs of one system. Give one run. Several runs of a system are "
                "averaged only by evaluate, curve, compare, report and explain."
            )
    return {name: path for name, (path,) in systems.items()}


def find_replicates(paths: str) -> list[str]:
    """Return the files in `paths`, a comma-separated list of file names and patterns. The name of an existing file is not split."""
    if exists(paths):
        return [paths]
    found: list[str] = []
    for path in paths.split(","):
        if not path:
            raise InputError(f"{paths}: has no file before or after a comma. Write NAME=FILE,FILE.")
        is_pattern = glob.has_magic(path) and not exists(path)
        files = sorted(glob.glob(path), key=_number_parts) if is_pattern else [path]  # noqa: PTH207  # any text
        if not files:
            raise InputError(f"{path}: no file matches this pattern")
        found += files
    if twice := next((path for path in found if found.count(path) > 1), None):
        raise InputError(f"{paths}: has {twice} twice. Name each run of a system once.")
    return found


def _number_parts(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path)]


def _suggest_replicates(named: Mapping[str, Sequence[str]]) -> None:
    for front, systems in find_likely_replicates(name for name, of in named.items() if len(of) == 1).items():
        path = Path(named[systems[0]][0])
        pattern = path.with_name(f"{Path(front).name}.*{path.suffix}")
        notice(
            "likely_replicates",
            f"{', '.join(systems)} look like runs of one system. If they are, write '{Path(front).name}={pattern}': their values "
            "are averaged query by query.",
        )


def split_name(argument: str) -> tuple[str, str]:
    """Split NAME=PATH into (name, path). If the argument has no = or is the path of an existing file, return ("", argument)."""
    name, sign, path = argument.partition("=")
    if not sign or exists(argument):
        return "", argument
    if not name or not path:
        raise InputError(f"{argument}: write NAME=FILE, with the name of a system and its file, or just FILE")
    return name, path


def name_systems(runs: Sequence[str]) -> list[str]:
    """Return a distinct name for each file: its stem, preceded by as many folders as needed. Repeated files get a number.

    >>> name_systems(["main/agent.run", "new/agent.run"])
    ['main/agent', 'new/agent']
    """
    paths = [Path(run) for run in runs]
    distinct = set(paths)
    named = {path: str(path) for path in paths}  # for files with the same stem and folder, such as a.run and a.jsonl
    for folders in range(max((len(path.parts) for path in paths), default=0)):
        shown = {path: path.parts[:-1][max(0, len(path.parts) - 1 - folders) :] for path in paths}
        short = {path: "/".join([*of, stem(path)]) for path, of in shown.items()}
        if len(set(short.values())) == len(distinct):
            named = short
            break
    return number_repeats([as_text(named[path]) for path in paths])
