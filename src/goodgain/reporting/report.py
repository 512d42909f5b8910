"""A report on one or more systems: an HTML page that needs no network, or the same in Markdown, CSV or JSON."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from goodgain.comparing.causes import Parts, divide_measure
from goodgain.comparing.compare_systems import compare
from goodgain.comparing.comparison_tables import Layout, build_brief_grids, build_grids, build_legend
from goodgain.comparing.explanation import explain_systems, search_systems
from goodgain.comparing.explanation_screens import build_screen, describe_whole
from goodgain.comparing.rendering import Grid, Line, count_queries, format_number, write_markdown
from goodgain.comparing.searches import read_results_of, tabulate_iterations
from goodgain.comparing.use_of_documents import check_uses, funnel, read_uses_of
from goodgain.counting.run_in_blocks import read_whole
from goodgain.counting.run_opening import open_systems
from goodgain.errors import (
    GoodgainNotice,
    InputError,
    MeasureError,
    check_whole_number,
    collect_notices,
    import_extra,
    notice,
)
from goodgain.evaluation import evaluate
from goodgain.files.escaping import escape_controls, guard_formulas
from goodgain.files.opening import make_path
from goodgain.files.writing import atomic_write
from goodgain.formats import Qrels
from goodgain.formats.any_source import Columns
from goodgain.formats.query_tables import read_groups
from goodgain.formats.systems import check_systems, list_runs
from goodgain.formats.texts import read_queries
from goodgain.measures.declaration import GoodGainMeasure, add_arrow
from goodgain.measures.good_gain import NumDup
from goodgain.measures.names import Measures, find_direction, parse_measure, parse_measures
from goodgain.measures.thresholds import NO_LABEL
from goodgain.reporting.iteration_curves import curve
from goodgain.reporting.ledger_and_coverage import ledger
from goodgain.reporting.page_data import Evidence, build_data, list_queries
from goodgain.reporting.page_pictures import draw_all
from goodgain.reporting.page_sentences import (
    PLACES,
    describe_comparison,
    describe_explanation,
    describe_funnel,
    describe_method,
    describe_one,
    describe_words,
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
        columns, documents, documents_of, chunks: as in `evaluate`.

    Returns:
        The path of the file.

    Raises:
        InputError: input that cannot be read, a file that cannot be written, or jinja2 is not installed (for the page).
        MeasureError: a measure is unknown.

    >>> import tempfile
    >>> examples = "qrels_examples/redundancy/"
    >>> runs = {name: f"{examples}{name}.run" for name in ("repeating", "lean")}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(examples + "qrels.txt", runs, f"{folder}/report.html", "CG@2 SRR@2").name
    'report.html'
    """
    target = make_path(path, "the file of the report")
    form = choose_format(target, format)
    runs = check_systems(runs)
    files = {"results": results, "queries": queries, "uses": uses, "groups": groups}
    given = {"rel": rel, "details": details, "order": order, "provider": provider, "format": format}
    is_plain = columns is None and documents is None
    command = _write_command(qrels, runs, path, measures, files, given) if is_plain else None
    judged, systems = open_systems(
        qrels, runs, columns=columns, documents=documents, documents_of=documents_of, chunks=chunks
    )
    made = gather_evidence(
        judged, systems, measures, rel=rel, details=details, order=order, provider=provider, command=command, **files
    )
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
        import_extra("jinja2", "report")
    return found


def _write_command(
    qrels: Any, runs: Mapping[str, Any], path: Any, measures: Measures, files: dict[str, Any], given: dict[str, Any]
) -> str | None:
    """Return the command for a call with files alone; None for data in memory."""
    several = {name: list_runs(of) for name, of in runs.items()}
    named = [(f"--{name}", one) for name, of in files.items() if of is not None for one in list_runs(of)]
    sources = [qrels, *chain.from_iterable(several.values()), *(one for _, one in named)]
    if not all(isinstance(one, (str, os.PathLike)) for one in sources):
        return None
    systems = [f"{name}={','.join(map(str, of))}" for name, of in several.items()]
    options = [*named, *((f"--{name}", value) for name, value in given.items() if value is not None)]
    asked = " ".join(map(str, parse_measures(measures, rel=given["rel"])))
    words = ["report", qrels, *systems, "-m", asked, *chain.from_iterable(options), "-o", path]
    return shlex.join(["goodgain", *map(str, words)])


def gather_evidence(
    qrels: Qrels,
    runs: Mapping[str, Any],
    measures: Measures,
    *,
    rel: float | None,
    results: Any,
    queries: Any,
    uses: Any,
    groups: Any,
    details: int,
    order: str,
    provider: str | None,
    command: str | None,
) -> Evidence:
    """Compute what a report of opened runs shows; arguments as of `report`. Each notice is given once."""
    check_uses(qrels, uses)
    check_whole_number("details", details, 0)
    several = {name: [read_whole(run) for run in list_runs(of)] for name, of in runs.items()}
    systems = {name: of if len(of) > 1 else of[0] for name, of in several.items()}
    firsts = {name: run for name, (run, *_) in several.items()}
    base, *others = systems
    given: dict[str, GoodgainNotice] = {}

    with collect_notices(lambda one: given.update({str(one): one})):
        asked = parse_measures(measures, rel=rel)
        parts = _choose_explained(asked, rel)
        good = parts.measure.rel
        measured = parse_measures([*asked, parts.measure])
        comparison = None
        if others:
            options: dict[str, Any] = {"order": order, "provider": provider, "groups": groups}
            comparison = compare(qrels, systems, measured, rel=rel, baseline=base, **options)
            scores = dict(comparison.scores)
        else:
            scores = {base: evaluate(qrels, systems[base], measured, order=order, provider=provider)}
        with collect_notices(lambda one: None):  # given above, for the same runs
            searched = search_systems(qrels, firsts, [parts])
            curves = curve(qrels, systems, _list_curves(asked, rel), rel=rel)
            recalls = pr_curve(qrels, firsts, order=order, rel=good)
            ledgers = {name: ledger(qrels, run, rel=good) for name, run in firsts.items()}
        found = read_results_of([*systems], results).spell_as(searched)
        pairs = {name: {one: searched[one] for one in (base, name)} for name in others}
        explained = {str(parts.measure): parts}
        uses = None if uses is None else read_uses_of([*systems], uses)
        texts = None if queries is None else read_queries(queries)
        evidence = Evidence(
            qrels=qrels,
            measures={str(measure): find_direction(measure) for measure in measured},
            explained=parts,
            scores=scores,
            comparison=comparison,
            searched=searched,
            explanations={
                name: explain_systems(qrels, pair, explained, found, uses=uses, top=1) for name, pair in pairs.items()
            },
            iterations=tabulate_iterations(searched, good, found),
            results=found,
            uses=uses,
            funnel=None if uses is None else funnel(qrels, uses, good),
            texts={} if texts is None else dict(texts.select("query_id", "text").iter_rows()),
            groups=None if groups is None else read_groups(groups, qrels.query_ids),
            curves=curves,
            recalls=recalls,
            ledgers=ledgers,
            details=min(details, len(qrels.query_ids)),
            words=dict(describe_words(measured, good)),
            command=command or "Made in Python from data in memory.",
        )
    for text, one in given.items():
        notice(text, minor=one.minor)
    heard = [text for text, one in given.items() if not one.minor or comparison is None]
    if evidence.has_replicates:
        heard.append("Causes and searches are those of the first run of each system; other values are means over runs.")
    return replace(evidence, doubts=tuple(list_doubts(comparison, heard)))


def _choose_explained(measures: list[Any], rel: float | None) -> Parts:
    """Return the first measure that has causes by document, else CG."""
    for measure in measures:
        with suppress(MeasureError):
            parts = divide_measure(measure)
            if parts.numerator.NAME != NumDup.NAME:
                return parts
    return divide_measure(parse_measure("CG", rel=rel))


def _list_curves(measures: list[Any], rel: float | None) -> list[Any]:
    """Return the measures to draw over iterations: ours, without their cutoffs; nCG if there is none."""
    ours = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
    along = [
        type(measure)(**{name: value for name, value in measure.params.items() if name != "cutoff"})
        for measure in ours
        if measure.declaration.cutoff != "none"
    ]
    return parse_measures(along or "nCG", complete=False, rel=rel)[:_MOST_CURVES]


def _summarise(of: Evidence) -> list[str]:
    """Return the sentences of the first paragraphs."""
    (base, scores), *_ = of.scores.items()
    if of.comparison is None:
        said = [*describe_one(base, scores, str(of.explained.measure), of.iterations)]
        return said if of.funnel is None else [*said, *describe_funnel(base, of.funnel)]
    verdicts, whys = describe_comparison(of.comparison), map(describe_explanation, of.explanations.values())
    return [*chain.from_iterable(zip(verdicts, map(of.tell_cause, whys), strict=True))]


def _build_tables(of: Evidence) -> list[Grid]:
    """Return the tables to read first."""
    if of.comparison is not None:
        return build_brief_grids(of.comparison, Layout())
    (name, scores), *_ = of.scores.items()
    rows = [
        [add_arrow(measure, of.measures[measure]), format_number(value, PLACES)]
        for measure, value in scores.means.items()
    ]
    return [Grid.of(f"Means over {count_queries(scores.signature['queries'])}", ["measure", name], 1, rows)]


def write_report(of: Evidence, form: str, *, spreadsheet: bool = False) -> str:
    """Return a report as text in one of `FORMATS`."""
    if form == "csv":
        table = list_queries(of)
        return (guard_formulas(table) if spreadsheet else table).write_csv()
    comparison = of.comparison
    first = [one for one in of.doubts if NO_LABEL in one]
    said = {
        "title": f"{', '.join(of.systems)}: {count_queries(len(of.qrels.query_ids))}",
        "summary": [*(f"{one[0].upper()}{one[1:].removesuffix('.')}." for one in first), *_summarise(of)],
        "method": None if comparison is None else describe_method(comparison),
        "doubts": [one for one in of.doubts if one not in first],
        "signature": of.scores[of.systems[0]].signature if comparison is None else comparison.signature,
        "command": of.command,
    }
    if form == "json":
        compared = {} if comparison is None else {"means": comparison.means, "pairs": comparison.pairs}
        rows = {name: frame.to_dicts() for name, frame in (compared | {"queries": list_queries(of)}).items()}
        return json.dumps(said | rows, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return _write_markdown(of, said) if form == "markdown" else _write_page(of, said)


def _write_markdown(of: Evidence, said: Mapping[str, Any]) -> str:
    paragraphs = [*said["summary"], *([said["method"]] if said["method"] else [])]
    parts: list[Grid | Line] = [Line(said["title"], -1), *map(Line, paragraphs), *_build_tables(of)]
    parts += [Line("What to distrust", -1), *(Line(doubt, 1) for doubt in said["doubts"])]
    for name, explanation in of.explanations.items():
        title = of.tell_cause(f"Why {name} differs from {explanation.base}")
        parts += [Line(title, -1), *list(build_screen(explanation))[1:]]
    return write_markdown([*parts, Line("How to make this again", -1), Line(of.command)])


def _write_page(of: Evidence, said: Mapping[str, Any]) -> str:
    """Return the page. Its script and its style are allowed by their hashes, so that no other can run."""
    jinja2 = import_extra("jinja2", "report")
    from markupsafe import Markup  # comes with Jinja2

    def show(value: Any) -> Any:  # a text, but none that is Markup
        return escape_controls(value) if type(value) is str else value

    environment = jinja2.Environment(
        autoescape=True, finalize=show, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(_PAGE),
    )  # fmt: skip
    files = {
        name: (_PAGE / f"report.{end}").read_text(encoding="utf-8")
        for name, end in (("script", "js"), ("style", "css"))
    }
    hashes = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in files.items()}
    safe = {name: Markup(text) for name, text in files.items()}
    comparison = of.comparison
    legend = [] if comparison is None else [one for one in build_legend(comparison) if one not in comparison.notes]
    page: str = environment.get_template("report.html").render(
        **said,
        **safe,
        hashes=hashes,
        tables=_build_tables(of),
        searched=[
            *dict.fromkeys(map(of.tell_cause, chain.from_iterable(map(describe_whole, of.explanations.values()))))
        ],
        words=of.words,
        more=[] if comparison is None else build_grids(comparison, Layout()),
        legend=legend,
        systems=of.systems,
        explained=str(of.explained.measure),
        number=len(of.qrels.query_ids),
        details=of.details,
        pictures=[one._replace(svg=Markup(one.svg)) for one in draw_all(of)],
        data=Markup(_write_json(build_data(of))),
    )
    return page


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
