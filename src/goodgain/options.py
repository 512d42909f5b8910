"""Declares the options that several analyses share, for `--help`, for docstrings, and for checks of values."""

import shlex
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from goodgain.errors import InputError

#: The defaults of options that functions below the analyses take too. Signatures name these constants.
GAPS, FIRST, ERRORS, ORDER = "close", 1, "raise", "seen"
SEED, RESAMPLES, ALPHA = 42, 9_999, 0.05
#: Choices for the rows of the table of means.
ROWS = ("measures", "systems")
#: The smallest and the largest number of decimals; -1 is full precision.
PLACES = (-1, 100)


class Option(NamedTuple):
    name: str  # the argument in Python; on the command line `-` replaces `_`
    sentence: str  # what the option does; `{other}` stands for the spelling of another option
    kind: type = str  # type of the value; a Path is a file, in Python also a frame
    default: Any = None
    choices: tuple[str, ...] = ()  # the allowed words; empty if there is no such list
    metavar: str | None = None  # the placeholder of the value in --help
    detail: str = ""  # a further sentence for Python's docstrings

    @property
    def flag(self) -> str:
        return _write_flag(self.name)

    @property
    def description(self) -> str:
        """The description of the option in the reference."""
        text = self.sentence.format_map({name: f"`{name}`" for name in OPTIONS})
        if not all(choice in text for choice in self.choices):
            text = f"{text.removesuffix('.')}: {', '.join(f'`{choice}`' for choice in self.choices)}."
        return " ".join([text[0].lower() + text[1:], self.detail]).rstrip()


def _choose(name: str, choices: tuple[str, ...], sentence: str, detail: str = "") -> Option:
    return Option(name, sentence, str, choices[0], choices, detail=detail)


_GAPS = "Missing iteration numbers: close renumbers, empty treats a gap as a search without results."
_LABELS = "Read column 2 of the qrels as the iteration, or the subtopic, that a label applies to."
_COLUMNS = "Map columns of Parquet, Arrow, JSON Lines, CSV or TSV: step=iteration,qid=query_id."
_ONLY = "Use only these queries: a file with one id per line, or a table with query_id."
_PAGE = "Split rankings without iterations into iterations of N results. Classic measures use the whole ranking."
READING = (
    _choose("gaps", (GAPS, "empty"), _GAPS),
    Option("first", "The number of the first iteration, 0 or 1. Used only with {gaps} set to empty.", int, FIRST),
    Option("labels", _LABELS, choices=("iteration", "subtopic")),
    Option("columns", _COLUMNS, metavar="NAME=COLUMN,...", detail='In Python, write {"step": "iteration"}.'),
    _choose("errors", (ERRORS, "skip"), "Bad lines: stop at the first, or skip them."),
    Option("only", _ONLY, Path, detail="In Python also a frame, or a list of ids."),
    Option("page", _PAGE, metavar="N|SYSTEM=N", detail='In Python, write 5 or {"bm25": 5}.'),
)
_DOCUMENTS = "Map chunk ids to document ids by a pattern such as '^(.+)-\\d+$', or a table of chunk_id and doc_id."
_OF_CHUNKS = (
    "The table is a file, frame or dict. Other ids stay the same. A document gets the largest label of its chunks."
)
_OF_BOTH = "With `both`, an id of the qrels does not change if it is a document of a run."
_OF = "Where {documents} maps ids: in the run, the qrels, or both."
_CHUNKS = (
    "Several chunks of a document in one iteration: collapse counts one result, repeat counts the others as repeats."
)
_URLS = "Several URLs of the same web page as ids: join counts them as one document, keep as several."
_LEAVE_OUT = "Results to leave out: own is the query's own document (doc_id equals query_id, as in ArguAna and Quora)."
DOCUMENTS = (
    Option("documents", _DOCUMENTS, metavar="PATTERN|FILE", detail=_OF_CHUNKS),
    _choose("documents_of", ("both", "run", "qrels"), _OF, _OF_BOTH),
    _choose("chunks", ("collapse", "repeat"), _CHUNKS),
    Option("leave_out", _LEAVE_OUT, choices=("own",), detail="An iteration that loses all results still counts."),
    _choose("urls", ("join", "keep"), _URLS, "If no id in the qrels is a URL, no ids are joined."),
)
_ORDER = "How several iterations become one ranking for classic measures."
_MISSING = (
    "Judged queries without a row in a run: zero counts them as queries without a search, absent leaves them out."
)
_INCOMPLETE = (
    "In a comparison, queries with `completed` 0 in {outcomes}: keep uses their results, zero counts them as queries "
    "without a search, absent leaves them out."
)
_NO_GOOD = "Queries without a document that is good for a measure: keep counts the measure's own value, absent leaves them out."
_NO_GOOD_DETAIL = (
    "Each measure's own threshold counts (for nDCG and ERR, a label above 0). SRR, measures without a threshold (such as EU, CT "
    "and nSessionDCG) and measures that need no label keep these queries, and so do curves and `explain`."
)
_BOUNDS = (
    "Also give the bounds of measures that have them: every unjudged result has the label 0, or the largest label."
)
_WITH_BOUNDS = "docs/judging.md lists the measures that have bounds."
_OF_MEASURES = (
    "It applies to measures of iterations that name no `rel`; None means their default (2 for most). Classic measures keep "
    "their threshold."
)
_PROVIDER = "The provider of ir_measures for the classic measures."
SCORING = (
    Option("rel", "The smallest good label. Use 1 for labels 0 and 1.", float, metavar="LABEL", detail=_OF_MEASURES),
    _choose("order", (ORDER, "interleaved", "last"), _ORDER),
    Option("provider", _PROVIDER, detail="None: goodgain computes the measures, or ir_measures chooses a provider."),
    _choose("missing", ("zero", "absent"), _MISSING),
    _choose("incomplete", ("keep", "zero", "absent"), _INCOMPLETE),
    _choose("no_good", ("keep", "absent"), _NO_GOOD, _NO_GOOD_DETAIL),
    Option("bounds", _BOUNDS, bool, default=False, detail=_WITH_BOUNDS),
)
_OF_SEARCHES = "RepeatedQueries needs it. For several systems give one table, or a list with a table per system."
_OF_SPENDS = (
    "Tokens, Cost, Seconds and Calls need costs, and so do AreaOver and ValueAt over tokens, cost or seconds. In Python a "
    "frame, a file, or a list of these."
)
_LENGTHS = "Lengths of documents: doc_id and length (.csv, .tsv, .jsonl, .parquet)."
_OF_LENGTHS = (
    "EU and nEU need lengths, TBG needs them in words, U in characters. In Python also a frame or {doc_id: length}."
)
BESIDE = (
    Option("results", "Search strings and results, as convert --results writes them.", Path, detail=_OF_SEARCHES),
    Option("costs", "Costs, as convert --costs writes them; repeatable. See docs/spend.md.", Path, detail=_OF_SPENDS),
    Option("lengths", _LENGTHS, Path, detail=_OF_LENGTHS),
    Option("queries", "Query texts: query_id and text (.tsv, .jsonl, .csv, .parquet), or an ir_datasets id."),
    Option("uses", "Output of convert --uses for all systems, to show good documents never opened or cited.", Path),
    Option("outcomes", "A table: query_id, system, and columns of numbers such as solved.", Path),
    Option("groups", "A table of query_id and group: print values for each group too.", Path),
)
TABLES = BESIDE[:3]  # the tables that some measures need
_AT_MOST = (
    "At most 1,000,000. In a curve 0 omits the intervals. By default, `compare` draws more random signs for many pairs."
)
_CORRECTION = (
    "How verdicts are corrected over the pairs of a measure: Holm's method, or the randomised Tukey test of all pairs."
)
_CORRECT_OVER = (
    "What verdicts are corrected over: the pairs of each measure, or all measures too (Westfall and Young's method)."
)
STATISTICS = (
    Option("seed", "The seed of random draws: the same seed gives the same numbers.", int, SEED),
    Option("resamples", "The number of random resamples.", int, RESAMPLES, detail=_AT_MOST),
    Option("alpha", "The significance level; confidence intervals have the level 1 - alpha.", float, ALPHA),
)
CORRECTIONS = (
    _choose("correction", ("holm", "tukey"), _CORRECTION),
    _choose("correct_over", ("pairs", "measures"), _CORRECT_OVER),
)
OPTIONS = {
    option.name: option for group in (READING, DOCUMENTS, SCORING, BESIDE, STATISTICS, CORRECTIONS) for option in group
}


#: Whether messages are for the command line; `goodgain.cli.program` sets it.
FOR_COMMANDS: ContextVar[bool] = ContextVar("FOR_COMMANDS", default=False)
#: Argument in Python -> its option, where the option has another name.
_OTHER_FLAGS = {
    "deduplicate": "--dedup",
    "headers": "--header",
    "k": "-k",
    "retry_failed": "--retry failed",
    "weights": "--weight",
}


def _write_flag(name: str) -> str:
    return _OTHER_FLAGS.get(name) or f"--{name.replace('_', '-')}"


def spell(name: str, value: object = ...) -> str:
    """Return an option as users write it in Python, or on the command line if `FOR_COMMANDS` is set. `value` is optional.

    >>> spell("gaps", "empty"), spell("costs")
    ("gaps='empty'", 'costs=')
    """
    if not FOR_COMMANDS.get():
        return f"{name}={'' if value is ... else repr(value)}"
    flag = _write_flag(name)
    if value is ... or isinstance(value, bool):
        return flag if value else f"--no-{flag.removeprefix('--')}"
    if isinstance(value, Mapping):
        value = [f"{key}={member}" for key, member in value.items()]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return f"{flag} {'none' if value is None else shlex.quote(text)}"


def advise_name(system: str) -> str:
    """Return the remedy for a run whose name is not that of a system in a table: the run gets the name of `system`.

    >>> advise_name("agent")
    "Rename the run to 'agent'"
    """
    if FOR_COMMANDS.get():
        return f"Name the run as the table does: {shlex.quote(f'{system}=RUN')}"
    return f"Rename the run to {system!r}"


def check_choice(name: str, value: object) -> None:
    """Raise `InputError` unless `value` is the default or one of the choices of the option `name`."""
    default, choices = OPTIONS[name].default, OPTIONS[name].choices
    is_word = isinstance(value, str | None)  # a frame would compare its cells
    if not is_word or (value != default and value not in choices):
        raise InputError(f"{spell(name, value)} is not one of {', '.join(choices)}. Choose one of them.")


def check_whole_number(name: str, value: int, least: int, most: int | None = None, *, others: str = "") -> int:
    """Return `value`, or raise `InputError` if it is not a whole number from `least` to `most`. The message ends with `others`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        end = "" if most is None else f" to {most:,}"
        raise InputError(f"{spell(name, value)}: give a whole number from {least}{end}{others}")
    return value
