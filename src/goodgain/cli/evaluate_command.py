"""The command `evaluate`, and the checks of --require for `evaluate` and `compare`."""

from collections.abc import Iterator, Mapping, Sequence

import click
import ir_measures
import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.rendering import format_level, name_methods
from goodgain.analysis.comparing.required_lines import Requirement, forbids_improvement, parse_requirement
from goodgain.analysis.comparing.requirements import Outcome, check_requirements
from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import REQUIREMENT_FAILED, notices_after_output, show_progress
from goodgain.cli.printed_tables import BOUNDS, INTERVAL, Value, print_values, write_output
from goodgain.cli.scored_queries import print_scored_queries, print_signatures
from goodgain.errors import InputError, MeasureError, count_of, notice
from goodgain.files.tables import count_in_order
from goodgain.formats.any_source import exists
from goodgain.formats.query_tables import read_groups
from goodgain.measures.good_gain import NumIter
from goodgain.measures.names import find_null_rule, parse_measures
from goodgain.measures.scores import MEANS, Scores
from goodgain.measures.without_labels import describe_unknown, list_measures_without_labels
from goodgain.scoring.scoring import Scoring


def require_option(described: str) -> shared.Decorator:
    line = "A line that must hold, else exit status 3: 'SRR@3<=0.3', 'SRE@3>=0.4 significant'"
    return shared.join_options(
        click.option("--require", "required", metavar="LINE", multiple=True, help=line + described),
        click.option(
            "--family",
            type=click.Choice(["holm"]),
            help="Correct p over all LINEs that a test decides ('significant', 'noise'). Overall error: at most 5 % at alpha .05.",
        ),
    )


junit_option = shared.file_option(
    "--junit", help="Write the outcomes of --require as JUnit XML: one test case per LINE and system."
)


@shared.command(
    "goodgain evaluate qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run 'nDCG@10 CG SRE@1-3 SRR'",
    "goodgain evaluate qrels_examples/redundancy/qrels.txt qrels_examples/redundancy/*.run -m 'nDCG@10 SRR' --rows systems",
)
@shared.qrels_argument
@click.argument("arguments", metavar="RUN MEASURE...", nargs=-1, required=True)
@shared.no_labels_option
@shared.measures_option(
    "A measure, or several. With -m all arguments after QRELS are runs, and NAME=RUN names a system."
)
@shared.rel_option
@require_option(".")
@junit_option
@click.option("-q", "--by-query", is_flag=True, help="Also print the values of each query.")
@click.option("-n", "--no-summary", is_flag=True, help="With -q: leave out the means over all queries.")
@shared.places_option("Decimals; -1 for full precision.")
@shared.output_option("tsv")
@shared.full_option
@shared.rows_option
@shared.declared_option("provider")
@shared.choice_option(
    "--mean",
    MEANS,
    "How to average the queries' values. geometric is trec_eval's gm_map: values below 1e-5 count as 1e-5.",
)
@shared.declared_option("bounds")
@click.option(
    "--human",
    metavar="FILE",
    help="People's labels of 30 queries or more (see pool --sample-queries), to correct means if QRELS are a model's labels. In "
    "Python: goodgain.judgments.judging.conclusions_from_model_labels.estimate_means.",
)
@click.option("--interval", is_flag=True, help="Also give the interval of each mean over queries.")
@shared.declared_option("groups")
@shared.declared_option("results", "For RepeatedQueries.")
@shared.declared_option("costs", "For Tokens, Cost, Seconds, Calls, AreaOver and ValueAt.", multiple=True)
@shared.declared_option("lengths", "For EU, nEU, TBG and U.")
@shared.declared_options("missing", "no_good", "order", "seed", "resamples", "alpha")
@shared.reading_options
def evaluate(given: shared.Given) -> None:
    """Score one or more runs on measures of goodgain and ir_measures.

    QRELS is a file or an ir_datasets id. RUN is a file: TREC text with the iteration in column 2, Parquet, Arrow, JSON or
    JSON Lines. NAME=a.run,b.run and NAME='a.*.run' are several runs of one system: their values are averaged query by query.
    MEASURE is a name such as nDCG@10, SRE@3, CG@1-3 or "CG SRR"; see goodgain measures. With several RUN, give measures with -m.
    """
    _check_combination(given)
    named, arguments = bool(given.measures), given.arguments
    given.runs = arguments if named else arguments[:1]
    lines = [parse_requirement(text, rel=given.rel) for text in given.required]
    if not named and len(arguments) < 2 and not lines and not given.no_labels:
        raise click.UsageError("Missing argument 'MEASURE...': name measures after RUN, or before RUN with -m.")
    try:
        of_lines = [line.measure for line in lines if not isinstance(line.measure, str)]
        named_measures = [*(given.measures or arguments[1:]), *of_lines]
        defaults = (
            [NumIter] if lines or not given.no_labels else list_measures_without_labels(shared.list_tables(given))
        )
        asked = parse_measures(named_measures or defaults, rel=given.rel)
    except MeasureError:
        files = [] if named else [name for name in arguments[1:] if exists(name)]
        if not files:
            raise
        raise InputError(
            f"{files[0]} is a file, but a measure is expected here. To score several runs, name measures with -m"
        ) from None
    singles = [given.qrels or None, given.human, given.results, given.lengths]
    inputs = [*singles, *(given.costs or ()), *shared.find_files(given.runs)]
    shared.check_outputs([given.output.path, given.junit], inputs)
    brief = given.output.form == "table" and not given.full
    with notices_after_output(full=not brief):
        names = [*shared.find_systems(given.runs)]
        x = shared.make_scoring(given, replicates=given.human is None)
        with show_progress():
            found = x.score_systems(asked, groups=given.groups, interval=given.interval)
            scores = dict(zip(names, found.values(), strict=True))
        if given.human is not None:
            values = _list_corrected_means(x, names, given.human, asked)
        else:
            grouped = None if given.groups is None else read_groups(given.groups, x.opened.qrels.query_ids)
            values = [
                *(_list_values_by_query(scores, grouped) if given.by_query else ()),
                *(() if grouped is None else _list_values_by_group(scores)),
                *(() if given.no_summary else _list_means(scores, asked, given)),
            ]
        methods = dict.fromkeys(of.signature["interval"] for of in scores.values() if "interval" in of.signature)
        told = f"the {format_level(1 - given.alpha)} interval of the mean, {'; '.join(map(name_methods, methods))}"
        if given.human is not None:
            told = "the 95 % interval of the mean, corrected by people's labels"
        print_values(values, given, by_query=given.by_query, named=named, interval=told)
    print_scored_queries(scores)
    if not brief:
        print_signatures(scores, None if given.mean == MEANS[0] else given.mean)
    if given.no_labels:
        shared.say(describe_unknown(x.next_step, len(scores)))
    exit_if_failed(check_lines(scores, lines, given))


def _check_combination(given: shared.Given) -> None:
    if given.no_labels and given.human is not None:
        raise InputError(
            "--human corrects a model's labels, and with --no-labels there are none. Leave out one of them"
        )
    is_other_mean = given.mean != MEANS[0]
    is_changed = given.by_query or given.bounds or is_other_mean or given.groups
    if given.no_summary and not given.by_query:
        raise InputError("--no-summary (-n) without --by-query (-q) leaves nothing to print; give both, or neither")
    if given.bounds and is_other_mean:
        raise InputError(f"--bounds works only with the arithmetic mean; leave out --mean {given.mean}")
    if given.required and is_other_mean:
        raise InputError(f"--require checks arithmetic means; leave out --mean {given.mean}")
    if given.groups and (given.bounds or is_other_mean):
        raise InputError("--groups prints arithmetic means without bounds; leave out --bounds and --mean")
    if given.human is not None and (is_changed or given.order != "seen" or given.required):
        left_out = "-q, --bounds, --mean, --order, --groups and --require"
        raise InputError(f"--human corrects arithmetic means. Leave out {left_out}")
    if given.interval and (is_changed or given.human is not None):
        left_out = "-q, --bounds, --mean, --groups and --human"
        raise InputError(f"--interval works only with arithmetic means over all queries. Leave out {left_out}")


def _list_values_by_query(scores: dict[str, Scores], groups: pl.DataFrame | None) -> list[Value]:
    names: dict[str, str] = {}
    if groups is not None:
        names = dict(groups.group_by("query_id").agg(pl.col("group").str.join(", ")).iter_rows())
    found = [
        Value(query_id, measure, system, value, ends=dict(zip(BOUNDS, ends, strict=False)), group=names.get(query_id))
        for system, of in scores.items()
        for query_id, measure, value, *ends in of.per_query.iter_rows()
    ]
    return sorted(found, key=lambda value: count_in_order(str(value.query_id)))  # a stable sort


def _list_values_by_group(scores: dict[str, Scores]) -> list[Value]:
    found = [
        Value(None, measure, system, value, queries, group=group)
        for system, of in scores.items()
        if of.by_group is not None
        for group, measure, queries, value in of.by_group.iter_rows()
    ]
    return sorted(found, key=lambda value: count_in_order(str(value.group)))


def _list_means(
    scores: dict[str, Scores], measures: Sequence[ir_measures.Measure], given: shared.Given
) -> Iterator[Value]:
    for system, of in scores.items():
        means = of.mean(how=given.mean)
        names, ends = (BOUNDS, of.bounds) if given.bounds else (INTERVAL, of.intervals)
        for measure in measures:
            name = str(measure)
            queries = of.num_queries[name] if find_null_rule(measure) else None
            shown = {} if ends is None else dict(zip(names, ends[name] or (None, None), strict=True))
            yield Value(None, name, system, means[name], queries, shown)


def _list_corrected_means(
    x: Scoring, names: Sequence[str], human: str, measures: Sequence[ir_measures.Measure]
) -> list[Value]:
    averaged = [measure for measure in measures if not isinstance(measure.aggregator(), ir_measures.SumAgg)]
    if len(averaged) < len(measures):
        shown = ", ".join(str(measure) for measure in measures if measure not in averaged)
        shared.say(f"{shown}: a sum over queries, left out of the corrected means")
    if not averaged:
        raise InputError("--human corrects means, but all named measures are sums. Name a measure that is a mean")
    from goodgain.experiments.corrected_means import correct_means

    estimates = dict(zip(names, correct_means(x, human, averaged).values(), strict=True))
    values = []
    for system, by_measure in estimates.items():
        for measure, estimate in by_measure.items():
            mean, *ends = estimate.powered
            values.append(Value(None, measure, system, mean, ends=dict(zip(INTERVAL, ends, strict=True))))
    queries = count_of(estimate.queries, "query", "queries")  # the same for all
    shared.say(f"means corrected by people's labels of {queries}, with 95 % intervals")
    return values


def check_lines(
    found: Comparison | Mapping[str, Scores], lines: Sequence[Requirement], given: shared.Given
) -> list[Outcome]:
    """Check each requirement of --require. Print the outcomes on stderr, write JUnit XML if asked, and return the outcomes."""
    for line in lines:
        if forbids_improvement(line):
            better = "lower" if line.sign.startswith(">") else "higher"
            told = f"{line.measure} is better when {better}"
            notice("line_against_better", f"{line.text!r} fails if a system is better than the baseline: {told}")
    outcomes = check_requirements(found, lines, family=given.family)
    for outcome in outcomes:
        shared.say(outcome)
    if given.junit is not None:
        from goodgain.analysis.reporting.gate_reports import write_junit  # takes 25 ms to import

        of_all = [found] if isinstance(found, Comparison) else found.values()
        notes = dict.fromkeys(note for one in of_all for note in one.notes)
        write_output(write_junit(outcomes, [*notes]), shared.Output("xml", given.junit))
    return outcomes


def exit_if_failed(outcomes: Sequence[Outcome]) -> None:
    if not all(outcome.holds for outcome in outcomes):
        raise click.exceptions.Exit(REQUIREMENT_FAILED)
