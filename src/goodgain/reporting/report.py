"""A report on one or more systems: an HTML page that needs no network, or the same in Markdown, CSV or JSON."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from goodgain.comparing.causes import Parts, divide_measure
from goodgain.comparing.compare_systems import compare
from goodgain.comparing.comparison_tables import Layout, build_brief_grids, build_grids, build_legend
from goodgain.comparing.explanation import explain_systems, search_systems
from goodgain.comparing.explanation_screens import build_screen
from goodgain.comparing.rendering import Grid, Line, count_queries, format_number, write_markdown
from goodgain.comparing.searches import read_results_of, tabulate_iterations
from goodgain.comparing.use_of_documents import funnel
from goodgain.counting.run_in_blocks import read_whole
from goodgain.counting.run_opening import map_documents, open_run
from goodgain.errors import GoodgainNotice, InputError, MeasureError, check_whole_number, collect_notices, notice
from goodgain.evaluation import evaluate
from goodgain.files.escaping import escape_controls, guard_formulas
from goodgain.files.opening import make_path
from goodgain.files.writing import atomic_write
from goodgain.formats.any_source import Columns, check_columns_used
from goodgain.formats.qrels import load_qrels
from goodgain.formats.query_tables import read_groups
from goodgain.formats.systems import check_systems, is_replicates
from goodgain.formats.texts import read_queries
from goodgain.measures.declaration import GoodGainMeasure, add_arrow
from goodgain.measures.good_gain import NumDup, NumIter, NumResults
from goodgain.measures.names import Measures, find_direction, parse_measures
from goodgain.reporting.iteration_curves import curve
from goodgain.reporting.ledger_and_coverage import ledger
from goodgain.reporting.page_data import Evidence, build_data, list_queries
from goodgain.reporting.page_pictures import draw_all
from goodgain.reporting.page_sentences import (
    PLACES,
    describe_comparison,
    describe_explanation,
    describe_method,
    describe_one,
    list_doubts,
)
from goodgain.reporting.precision_recall import pr_curve

#: The measures of a report that names none.
MEASURES = "nDCG@10 nCG nDCGG SRR"
#: Format -> the endings of its files.
FORMATS = {"html": (".html", ".htm"), "markdown": (".md",), "csv": (".csv",), "json": (".json",)}
#: The largest number of curves.
_MOST_CURVES = 4
_PAGE = Path(__file__).parent / "page"


class Report(NamedTuple):
    """A report before it is written.

    Attributes:
        title: which systems it is about.
        summary: the sentences that say most. method: what their numbers mean.
        doubts: what to distrust.
        grids: the tables to read first. more: those with all tests and costs.
        legend: what the columns and marks of the tables mean.
        evidence: the numbers of queries and iterations.
        pictures: the arguments of `draw_all`.
        signature: the settings behind the numbers.
        details: how many queries have their results listed.
        command: how to make the report again; None if it was made of data in memory.
    """

    title: str
    summary: list[str]
    method: str
    doubts: list[str]
    grids: list[Grid]
    more: list[Grid]
    legend: list[str]
    evidence: Evidence
    pictures: tuple[Any, ...]
    signature: dict[str, Any]
    details: int
    command: str | None


def report(
    qrels: Any,
    runs: Mapping[str, Any],
    path: str | os.PathLike[str],
    measures: Measures = MEASURES,
    *,
    rel: float | None = None,
    results: Any = None,
    queries: Any = None,
    uses: Any = None,
    groups: Any = None,
    details: int = 200,
    format: str | None = None,  # noqa: A002  # as in read_traces
    spreadsheet: bool = False,
    order: str = "seen",
    provider: str | None = None,
    columns: Columns | None = None,
    documents: Any = None,
    documents_of: str = "both",
    chunks: str = "collapse",
) -> Path:
    """Write a report: which system is better at what, whether that is beyond noise, and where and why.

    The page is one file without a network: sentences, tables, plots, every query, and for the queries that changed most each
    search with its results. All systems are compared with the first one. One system alone is shown without a comparison.

    Args:
        qrels: what `read_qrels` takes.
        runs: name -> what `read_run` takes, or a list of several runs of the system (replicates). Values are means over
            them; causes and searches are those of the first run.
        path: the file to write: .html, .md, .csv or .json, or any name with `format`.
        measures: names, measure objects or both. The first one with causes (see `explain`) is explained; without one, CG is.
        rel: the smallest good label, for measures of iterations without their own `rel`. None: 2.
        results: what `read_traces` returned, or a file of it, for search strings, titles and addresses: one of all
            systems, or a list of one each.
        queries: the texts of the queries: a file of query_id and text, {query_id: text}, or a frame.
        uses: what `funnel` takes: says which good documents were never opened, or never cited.
        groups: a file or a frame of query_id and group, to compare and filter by groups of queries.
        details: for how many queries the page lists all results: those that changed most.
        format: `html`, `markdown`, `csv` (a row for each query, measure and system) or `json`; None: by the name's ending.
        spreadsheet: put an apostrophe before texts in CSV that a spreadsheet would read as formulas.
        order, provider: as in `compare`.
        columns: name in the source -> name here, for columns of runs or qrels with other names: {"step": "iteration"}.
        documents, documents_of, chunks: as in `evaluate`.

    Returns:
        The path of the file.

    Raises:
        InputError: input that cannot be read, a file that cannot be written, or jinja2 is not installed (for the page).
        MeasureError: a measure is unknown.

    >>> import tempfile
    >>> qrels = {f"q{number}": {"a": 3, "b": 0} for number in range(6)}
    >>> old, new = ({query_id: {doc_id: 1.0} for query_id in qrels} for doc_id in "ba")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = report(qrels, {"old": old, "new": new}, f"{folder}/report.md", "nCG")
    ...     print(written.read_text().splitlines()[2][:41])
    new is better than old in nCG ↑ 1.0000 ag
    """
    target = make_path(path, "the file of the report")
    form = choose_format(target, format)
    made = make_report(
        qrels, runs, measures, rel=rel, results=results, queries=queries, uses=uses, groups=groups, details=details,
        order=order, provider=provider, columns=columns, documents=documents, documents_of=documents_of, chunks=chunks,
        command=_write_call(qrels, runs, path, measures, rel),
    )  # fmt: skip
    text = write_report(made, form, spreadsheet=spreadsheet)
    with atomic_write(target) as out:
        out.write(text.encode())
    return target


def choose_format(path: Path, given: str | None) -> str:
    """Return the format of a report, and check that what it needs is there."""
    found = given or next((form for form, ends in FORMATS.items() if path.suffix.lower() in ends), None)
    if found not in FORMATS:
        ends = ", ".join(end for ends in FORMATS.values() for end in ends)
        what = f"format={given!r} is not one of {', '.join(FORMATS)}" if given else f"{path}: a report ends in {ends}"
        raise InputError(f"{what}. Choose one of them.")
    if found == "html":
        _import_jinja()
    return found


def _import_jinja() -> Any:
    try:
        import jinja2
    except ImportError:
        raise InputError('the page of a report needs Jinja2: pip install "goodgain[report]"') from None
    return jinja2


def _write_call(qrels: Any, runs: Mapping[str, Any], path: Any, measures: Measures, rel: float | None) -> str | None:
    """Return the command for a call with files alone; None for data in memory."""
    several = {name: run if is_replicates(run) else [run] for name, run in check_systems(runs).items()}
    if not all(isinstance(one, (str, os.PathLike)) for one in (qrels, *(run for of in several.values() for run in of))):
        return None
    asked = " ".join(map(str, parse_measures(measures, rel=rel)))
    named = [f"{name}={','.join(map(str, of))}" for name, of in several.items()]
    return shlex.join(["goodgain", "report", str(qrels), *named, "-m", asked, "-o", str(path)])


def make_report(
    qrels: Any,
    runs: Mapping[str, Any],
    measures: Measures,
    *,
    rel: float | None = None,
    results: Any = None,
    queries: Any = None,
    uses: Any = None,
    groups: Any = None,
    details: int = 200,
    order: str = "seen",
    provider: str | None = None,
    columns: Columns | None = None,
    documents: Any = None,
    documents_of: str = "both",
    chunks: str = "collapse",
    command: str | None = None,
) -> Report:
    """Do what `report` does, without writing; each notice is given once."""
    check_whole_number("details", details, 0)
    several = {name: run if is_replicates(run) else [run] for name, run in check_systems(runs).items()}
    given: dict[str, GoodgainNotice] = {}
    # Steps that know one system alone do not name it.
    alone = f"{next(iter(several))}: " if len(several) == 1 else ""

    def hear(one: GoodgainNotice) -> None:
        given.setdefault(str(one).removeprefix(alone), one)

    with collect_notices(hear):
        judged = load_qrels(qrels, columns=columns)
        opened = {
            f"{name}\0{k}": read_whole(open_run(run, columns=columns))
            for name, of in several.items()
            for k, run in enumerate(of)
        }
        for run in opened.values():
            check_columns_used(columns or {}, run, judged)
        judged, mapped = map_documents(judged, opened, documents, documents_of, chunks)
        by_system = {name: [mapped[f"{name}\0{k}"] for k in range(len(of))] for name, of in several.items()}
        systems = {name: of if len(of) > 1 else of[0] for name, of in by_system.items()}
        firsts = {name: of[0] for name, of in by_system.items()}
        asked = parse_measures(measures, rel=rel)
        parts = _choose_explained(asked, rel)
        base, *others = systems
        comparison = None
        measured = parse_measures([*asked, parts.measure])
        if others:
            options = {"order": order, "provider": provider, "groups": groups}
            comparison = compare(judged, systems, measured, rel=rel, baseline=base, **options)
            scores = dict(comparison.scores)
        else:
            needed = [*measured, NumIter, NumResults]
            scores = {base: evaluate(judged, systems[base], needed, order=order, provider=provider)}
        found = read_results_of([*systems], results)
        searched = search_systems(judged, firsts, [parts])
        explained = {str(parts.measure): parts}
        explanations = {
            name: explain_systems(
                judged, {base: searched[base], name: searched[name]}, explained, found, uses=uses, top=1
            )
            for name in others
        }
        query_ids = judged.frame.get_column("query_id").unique().sort()
        texts = None if queries is None else read_queries(queries)
        evidence = Evidence(
            qrels=judged,
            measures={str(measure): find_direction(measure) for measure in asked},
            explained=parts,
            scores=scores,
            comparison=comparison,
            searched=searched,
            explanations=explanations,
            iterations=tabulate_iterations(searched, parts.measure.rel, found),
            results=found,
            uses=uses,
            texts={} if texts is None else dict(texts.select("query_id", "text").iter_rows()),
            groups=None if groups is None else read_groups(groups, query_ids),
        )
        drawn = (
            comparison,
            curve(judged, systems, _list_curves(asked, rel), rel=rel),
            pr_curve(judged, firsts, order=order, rel=1 if rel is None else rel),
            {name: ledger(judged, run, rel=rel) for name, run in firsts.items()},
            str(parts.measure),
            None if uses is None else funnel(judged, uses, parts.measure.rel),
        )
    for text, one in given.items():
        notice(text, minor=one.minor)
    heard = [text for text, one in given.items() if not one.minor]
    if any(len(of) > 1 for of in by_system.values()):
        heard.append("Causes and searches are those of the first run of each system; other values are means over runs.")
    made = {} if comparison is None else comparison.signature
    return Report(
        title=f"{', '.join(systems)}: {count_queries(len(query_ids))}",
        summary=_describe(evidence, base),
        method="" if comparison is None else describe_method(comparison),
        doubts=list_doubts(comparison, heard),
        grids=[_build_means(evidence)] if comparison is None else build_brief_grids(comparison, Layout()),
        more=[] if comparison is None else build_grids(comparison, Layout()),
        legend=[] if comparison is None else [one for one in build_legend(comparison) if one not in comparison.notes],
        evidence=evidence,
        pictures=drawn,
        signature=made or scores[base].signature,
        details=details,
        command=command,
    )


def _choose_explained(measures: list[Any], rel: float | None) -> Parts:
    """Return the first measure that has causes by document, else CG."""
    for measure in [*measures, *parse_measures("CG", rel=rel)]:
        try:
            parts = divide_measure(measure)
        except MeasureError:
            continue
        if parts.numerator.NAME != NumDup.NAME:
            return parts
    raise AssertionError("CG has causes")


def _list_curves(measures: list[Any], rel: float | None) -> list[Any]:
    """Return the measures to draw over iterations: ours, without their cutoffs; nCG if there is none."""
    ours = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
    along = [
        type(measure)(**{name: value for name, value in measure.params.items() if name != "cutoff"})
        for measure in ours
        if measure.declaration.cutoff != "none"
    ]
    return parse_measures(along or "nCG", complete=False, rel=rel)[:_MOST_CURVES]


def _describe(of: Evidence, base: str) -> list[str]:
    if of.comparison is None:
        return [*describe_one(base, of.scores[base], str(of.explained.measure), of.iterations)]
    verdicts, whys = describe_comparison(of.comparison), map(describe_explanation, of.explanations.values())
    return [*chain.from_iterable(zip(verdicts, whys, strict=True))]


def _build_means(of: Evidence) -> Grid:
    """Return the table of one system."""
    (name, scores), *_ = of.scores.items()
    rows = [
        [add_arrow(measure, find_direction(parse_measures(measure, complete=False)[0])), format_number(value, PLACES)]
        for measure, value in scores.means.items()
    ]
    return Grid.of(f"Means over {count_queries(scores.signature['queries'])}", ["measure", name], 1, rows)


def write_report(made: Report, form: str, *, spreadsheet: bool = False) -> str:
    """Return a report as text in one of `FORMATS`."""
    if form == "csv":
        table = list_queries(made.evidence)
        return (guard_formulas(table) if spreadsheet else table).write_csv()
    if form == "json":
        tables = {"queries": list_queries(made.evidence)}
        if (comparison := made.evidence.comparison) is not None:
            tables |= {"means": comparison.means, "pairs": comparison.pairs}
        said = {name: getattr(made, name) for name in ("title", "summary", "method", "doubts", "signature", "command")}
        rows = {name: frame.to_dicts() for name, frame in tables.items()}
        return json.dumps(said | rows, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return _write_markdown(made) if form == "markdown" else _write_page(made)


def _write_markdown(made: Report) -> str:
    parts: list[Grid | Line] = [Line(made.title, -1), *map(Line, [*made.summary, made.method]), *made.grids]
    parts += [Line("What to distrust", -1), *(Line(doubt, 1) for doubt in made.doubts)]
    for name, explanation in made.evidence.explanations.items():
        parts += [Line(f"Why {name} differs from {explanation.base}", -1), *list(build_screen(explanation))[1:]]
    parts += [Line("How to make this again", -1)]
    return write_markdown([*parts, Line(made.command or _IN_MEMORY)])


_IN_MEMORY = "Made in Python from data in memory."


def _write_page(made: Report) -> str:
    """Return the page. Its script and its style are allowed by their hashes, so that no other can run."""
    jinja2 = _import_jinja()

    def show(value: Any) -> Any:
        return escape_controls(value) if type(value) is str else value

    environment = jinja2.Environment(
        autoescape=True, finalize=show, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(_PAGE),
    )  # fmt: skip
    script, style = ((_PAGE / name).read_text(encoding="utf-8") for name in ("report.js", "report.css"))
    hashes = {
        name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in (("script", script), ("style", style))
    }
    safe = {name: jinja2.utils.markupsafe.Markup(text) for name, text in (("script", script), ("style", style))}
    of = made.evidence
    page: str = environment.get_template("report.html").render(
        **safe,
        hashes=hashes,
        made=made,
        base=of.systems[0],
        others=of.systems[1:],
        explained=str(of.explained.measure),
        number=of.query_ids.len(),
        detailed=min(made.details, of.query_ids.len()),
        pictures=[one._replace(svg=jinja2.utils.markupsafe.Markup(one.svg)) for one in draw_all(*made.pictures)],
        data=jinja2.utils.markupsafe.Markup(_write_json(build_data(of, made.details))),
        signature={name: _show_setting(value) for name, value in made.signature.items()},
        command=made.command or _IN_MEMORY,
    )
    return page


def _show_setting(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


#: Signs that could end the element of the data, and how JSON writes them.
_IN_SCRIPT = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def _write_json(data: dict[str, Any]) -> str:
    """Return data as JSON for an element of the page, with visible control characters."""
    return json.dumps(_escape(data), ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_IN_SCRIPT)


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return escape_controls(value)
    if isinstance(value, (list, tuple)):
        return [_escape(one) for one in value]
    return {name: _escape(one) for name, one in value.items()} if isinstance(value, dict) else value
