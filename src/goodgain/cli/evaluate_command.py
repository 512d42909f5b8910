"""The command evaluate: scores one run, or several with -m, and prints their values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import click
import ir_measures
import polars as pl

from goodgain.cli import shared_options as shared
from goodgain.cli.notices import notices_after_output
from goodgain.cli.printed_tables import Value, format_signature, print_values
from goodgain.counting.coverage import LOW_COVERAGE, list_examples, list_shares
from goodgain.errors import InputError, MeasureError, NoticesOfSystems
from goodgain.evaluation import score_run
from goodgain.formats.column_names import check_columns_used
from goodgain.measures.names import find_declaration, parse_measures
from goodgain.measures.scores import MEANS, Scores
from goodgain.measures.thresholds import warn_of_labels


@click.command(
    epilog=shared.make_epilog(
        "goodgain evaluate qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run 'nDCG@10 CG SRE@1-3 SRR'",
        "goodgain evaluate qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'nDCG@10 SRR' --rows systems",
    )
)
@shared.qrels_argument
@click.argument("arguments", metavar="RUN MEASURE...", nargs=-1, required=True)
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    help="A measure, or several; then all arguments after QRELS are runs, and NAME=RUN names a system.",
)
@shared.rel_option
@click.option("-q", "--by-query", is_flag=True, help="Print the values of each query too.")
@click.option("-n", "--no-summary", is_flag=True, help="With -q: leave out the rows of all queries.")
@shared.places_option("Decimals; -1 for full precision.")
@shared.output_option("tsv")
@shared.full_option
@shared.rows_option
@shared.provider_option
@click.option(
    "--mean",
    type=click.Choice(MEANS),
    default=MEANS[0],
    help="How the queries' values are averaged; geometric is trec_eval's gm_map, values below 1e-5 counting as 1e-5.",
)
@shared.bounds_option
@shared.order_option
@shared.reading_options
def evaluate(
    qrels: str,
    arguments: tuple[str, ...],
    measures: tuple[str, ...],
    rel: float | None,
    by_query: bool,
    no_summary: bool,
    places: int,
    output: shared.Output,
    full: bool,
    rows: str,
    provider: str | None,
    mean: str,
    bounds: bool,
    order: str,
    **reading: Any,
) -> None:
    """Score a run on any measures, ours and those of ir_measures; with -m one or several runs.

    QRELS is a file or the id of an ir_datasets data set, RUN a file: TREC text with the iteration in column 2, Parquet,
    Arrow, JSON or JSON Lines. MEASURE is a name such as nDCG@10, SRE@3, CG@1-3 or "CG SRR"; goodgain measures lists the
    measures that are computed here.
    """
    if no_summary and not by_query:
        raise InputError("--no-summary (-n) leaves nothing to print without --by-query (-q); give both, or neither")
    if bounds and mean != MEANS[0]:
        raise InputError(f"--bounds are those of the arithmetic mean; leave out --mean {mean}")
    named = bool(measures)
    if not named and len(arguments) < 2:
        raise click.UsageError("Missing argument 'MEASURE...': name some after RUN, or before with -m.")
    try:
        asked = parse_measures(measures or arguments[1:], rel=rel)
    except MeasureError:
        files = [] if named else [name for name in arguments[1:] if os.path.exists(name)]  # noqa: PTH110  # any text
        if not files:
            raise
        raise InputError(
            f"{files[0]} is a file where measures stand; give measures with -m to score several runs"
        ) from None
    shared.check_outputs([output.path], [qrels, *shared.find_systems(arguments if named else arguments[:1]).values()])
    brief = output.form == "table" and not full
    with notices_after_output(full=not brief):
        judged, systems = shared.open_systems(qrels, arguments if named else arguments[:1], **reading)
        warn_of_labels(judged.frame, asked, rel=rel)
        several = len(systems) > 1
        scores: dict[str, Scores] = {}
        with NoticesOfSystems() as notices:
            for name, run in systems.items():
                with notices.of(name) if several else nullcontext():
                    check_columns_used(reading["columns"], run, judged)
                    scores[name] = score_run(judged, run, asked, order=order, provider=provider, bounds=bounds)
        values = [
            *(_list_values_by_query(scores, bounds=bounds) if by_query else ()),
            *(() if no_summary else _list_means(scores, asked, mean, bounds=bounds)),
        ]
        print_values(values, output, rows=rows, places=places, by_query=by_query, named=named)
    for name, found in scores.items():
        of_mean = {} if mean == MEANS[0] else {"mean": mean}
        _print_signature(found, of_mean, f"{name}: " if several else "", brief=brief)


def _list_values_by_query(scores: dict[str, Scores], *, bounds: bool) -> list[Value]:
    """Return the values of each query, system by system within a query."""
    found = [
        Value(query_id, measure, system, value, bounds=(reach[0], reach[1]) if bounds else None)
        for system, of in scores.items()
        for query_id, measure, value, *reach in of.per_query.iter_rows()
    ]
    return sorted(found, key=lambda value: str(value.query_id))  # stable: systems and measures keep their order


def _list_means(
    scores: dict[str, Scores], measures: Sequence[ir_measures.Measure], how: str, *, bounds: bool
) -> Iterator[Value]:
    for system, of in scores.items():
        means = of.mean(how=how)
        for measure in measures:
            name = str(measure)
            declared = find_declaration(measure)
            queries = of.num_queries[name] if declared is not None and declared.family == "graded" else None
            yield Value(None, name, system, means[name], queries, (of.bounds[name] or (None, None)) if bounds else None)


def _print_signature(scores: Scores, mean: dict[str, str], system: str, *, brief: bool) -> None:
    """Print on stderr how many queries the numbers stand for, and unless `brief` how they were made.

    Of the unique results it prints the judged share, unless all are judged, or a notice says that few are.
    """
    signature = scores.signature | mean
    shared.say(
        f"{system}queries: {signature['queries']} scored, {signature['absent_from_run']} of them absent from the run"
        f"{_show_some(scores.queries.only_judged)}; {signature['without_judgments']} of the run without judgments, left out"
    )
    if brief:
        return
    shared.say(f"{system}signature: {format_signature(signature)}")
    share = scores.coverage.item(0, "coverage")
    of_run, of_qrels = scores.ids_mapped or (0, 0)
    mapped = f"; ids mapped to documents: {of_run:,} of the run, {of_qrels:,} of the qrels" if scores.ids_mapped else ""
    if share is not None and (mapped or LOW_COVERAGE <= share < 1):
        shared.say(f"{system}coverage: {share:.4f}, by iteration {list_shares(scores.coverage)}{mapped}")


def _show_some(query_ids: pl.Series) -> str:
    """Return the first of some queries in brackets; nothing where there are none."""
    shown = list_examples(query_ids)
    return f" ({', '.join(shown)}{', ...' * (len(query_ids) > len(shown))})" if shown else ""
