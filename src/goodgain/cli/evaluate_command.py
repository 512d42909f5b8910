"""The command `evaluate`, and the checks of --require for `evaluate` and `compare`."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import click
import ir_measures
import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.rendering import format_level, name_methods
from goodgain.analysis.comparing.required_lines import Requirement, forbids_improvement, parse_requirement
from goodgain.analysis.comparing.requirements import Outcome, check_requirements
from goodgain.cli import shared_options as shared
from goodgain.cli.messages_and_exit_status import REQUIREMENT_FAILED, notices_after_output, show_progress
from goodgain.cli.named_runs import find_files, find_systems
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
def evaluate(options: shared.Options) -> None:
    """Score one or more runs on measures of goodgain and ir_measures.

    QRELS is a file or an ir_datasets id. RUN is a file: TREC text with the iteration in column 2, Parquet, Arrow, JSON or
    JSON Lines. NAME=a.run,b.run and NAME='a.*.run' are several runs of one system: their values are averaged query by query.
    MEASURE is a name such as nDCG@10, SRE@3, CG@1-3 or "CG SRR"; see goodgain measures. With several RUN, give measures with -m.
    """
    _check_combination(options)
    has_named_runs = bool(options.measures)  # else only the first argument is a run
    options.runs = options.arguments if has_named_runs else options.arguments[:1]
    lines = [parse_requirement(text, rel=options.rel) for text in options.required]
    measures = _parse_measures(options, lines)
    _check_files(options)

    is_brief = options.output.form == "table" and not options.full
    with notices_after_output(full=not is_brief):
        names = [*find_systems(options.runs)]
        scoring = shared.make_scoring(options, replicates=options.human is None)
        with show_progress():
            scores_of_runs = scoring.score_systems(measures, groups=options.groups, interval=options.interval)
            scores = dict(zip(names, scores_of_runs.values(), strict=True))

        if options.human is not None:
            values = _list_corrected_means(scoring, names, options.human, measures)
        else:
            values = _list_values(scoring, scores, measures, options)
        interval = _describe_interval(scores, options)
        print_values(values, options, by_query=options.by_query, named=has_named_runs, interval=interval)

    print_scored_queries(scores)
    if not is_brief:
        print_signatures(scores, None if options.mean == MEANS[0] else options.mean)
    if options.no_labels:
        shared.say(describe_unknown(scoring.next_step, len(scores)))
    exit_if_failed(check_lines(scores, lines, options))


def _parse_measures(options: shared.Options, lines: Sequence[Requirement]) -> list[ir_measures.Measure]:
    """Return the named measures and those of required lines; measures that fit the input if there are none."""
    names = options.measures or options.arguments[1:]
    if not names and not lines and not options.no_labels:
        raise click.UsageError("Missing argument 'MEASURE...': name measures after RUN, or before RUN with -m.")

    measures = [*names, *(line.measure for line in lines if not isinstance(line.measure, str))]
    if not measures and options.no_labels and not lines:
        measures = list_measures_without_labels(shared.list_tables(options))
    try:
        return parse_measures(measures or [NumIter], rel=options.rel)
    except MeasureError:
        files = [] if options.measures else [name for name in names if exists(name)]
        if not files:
            raise
        raise InputError(
            f"{files[0]} is a file, but a measure is expected here. To score several runs, name measures with -m"
        ) from None


def _check_files(options: shared.Options) -> None:
    tables = [options.qrels or None, options.human, options.results, options.lengths, *(options.costs or ())]
    shared.check_outputs([options.output.path, options.junit], [*tables, *find_files(options.runs)])


def _check_combination(options: shared.Options) -> None:
    """Raise an InputError for two options that do not go together."""
    if options.no_labels and options.human is not None:
        raise InputError(
            "--human corrects a model's labels, and with --no-labels there are none. Leave out one of them"
        )
    is_other_mean = options.mean != MEANS[0]
    is_changed = options.by_query or options.bounds or is_other_mean or options.groups
    if options.no_summary and not options.by_query:
        raise InputError("--no-summary (-n) without --by-query (-q) leaves nothing to print; give both, or neither")
    if options.bounds and is_other_mean:
        raise InputError(f"--bounds works only with the arithmetic mean; leave out --mean {options.mean}")
    if options.required and is_other_mean:
        raise InputError(f"--require checks arithmetic means; leave out --mean {options.mean}")
    if options.groups and (options.bounds or is_other_mean):
        raise InputError("--groups prints arithmetic means without bounds; leave out --bounds and --mean")
    if options.human is not None and (is_changed or options.order != "seen" or options.required):
        left_out = "-q, --bounds, --mean, --order, --groups and --require"
        raise InputError(f"--human corrects arithmetic means. Leave out {left_out}")
    if options.interval and (is_changed or options.human is not None):
        left_out = "-q, --bounds, --mean, --groups and --human"
        raise InputError(f"--interval works only with arithmetic means over all queries. Leave out {left_out}")


def _list_values(
    scoring: Scoring, scores: dict[str, Scores], measures: Sequence[ir_measures.Measure], options: shared.Options
) -> list[Value]:
    """Return the values to print: those of queries (-q), of groups, and the means, in this order."""
    groups = None
    if options.groups is not None:
        groups = read_groups(options.groups, scoring.opened.qrels.query_ids)

    values: list[Value] = []
    if options.by_query:
        values += _list_values_by_query(scores, groups)
    if groups is not None:
        values += _list_values_by_group(scores)
    if not options.no_summary:
        values += _list_means(scores, measures, options)
    return values


def _list_values_by_query(scores: dict[str, Scores], groups: pl.DataFrame | None) -> list[Value]:
    """Return a value per query, measure and system, in the order of query ids. `groups` names the groups of a query."""
    group_of: dict[str, str] = {}
    if groups is not None:
        group_of = dict(groups.group_by("query_id").agg(pl.col("group").str.join(", ")).iter_rows())

    values = []
    for system, system_scores in scores.items():
        for query_id, measure, value, *bounds in system_scores.per_query.iter_rows():
            ends = dict(zip(BOUNDS, bounds, strict=False))
            values.append(Value(query_id, measure, system, value, ends=ends, group=group_of.get(query_id)))
    return sorted(values, key=lambda value: count_in_order(str(value.query_id)))  # a stable sort


def _list_values_by_group(scores: dict[str, Scores]) -> list[Value]:
    """Return the means of each group of queries, in the order of groups' names."""
    values = []
    for system, system_scores in scores.items():
        if system_scores.by_group is not None:
            for group, measure, queries, mean in system_scores.by_group.iter_rows():
                values.append(Value(None, measure, system, mean, queries, group=group))
    return sorted(values, key=lambda value: count_in_order(str(value.group)))


def _list_means(
    scores: dict[str, Scores], measures: Sequence[ir_measures.Measure], options: shared.Options
) -> Iterator[Value]:
    """Yield the mean of each measure and system.

    The number of queries is given only for measures that may have no value in some.
    """
    for system, system_scores in scores.items():
        means = system_scores.mean(how=options.mean)
        names = BOUNDS if options.bounds else INTERVAL
        ends_of_measure = system_scores.bounds if options.bounds else system_scores.intervals
        for measure in measures:
            name = str(measure)
            queries = system_scores.num_queries[name] if find_null_rule(measure) else None
            ends = {}
            if ends_of_measure is not None:
                ends = dict(zip(names, ends_of_measure[name] or (None, None), strict=True))
            yield Value(None, name, system, means[name], queries, ends)


def _list_corrected_means(
    scoring: Scoring, names: Sequence[str], human: str, measures: Sequence[ir_measures.Measure]
) -> list[Value]:
    """Return the means that people's labels correct, with intervals. Sums over queries are left out, and named on stderr."""
    sums = [measure for measure in measures if isinstance(measure.aggregator(), ir_measures.SumAgg)]
    averages = [measure for measure in measures if measure not in sums]
    if sums:
        shared.say(f"{', '.join(map(str, sums))}: a sum over queries, left out of the corrected means")
    if not averages:
        raise InputError("--human corrects means, but all named measures are sums. Name a measure that is a mean")
    from goodgain.experiments.corrected_means import correct_means

    estimates = dict(zip(names, correct_means(scoring, human, averages).values(), strict=True))
    values = []
    for system, by_measure in estimates.items():
        for measure, estimate in by_measure.items():
            mean, *ends = estimate.powered
            values.append(Value(None, measure, system, mean, ends=dict(zip(INTERVAL, ends, strict=True))))
    queries = count_of(estimate.queries, "query", "queries")  # the same for all
    shared.say(f"means corrected by people's labels of {queries}, with 95 % intervals")
    return values


def _describe_interval(scores: Mapping[str, Scores], options: shared.Options) -> str:
    """Return what the interval of a mean is: its level and the method that computed it."""
    if options.human is not None:
        return "the 95 % interval of the mean, corrected by people's labels"
    signatures = [system_scores.signature for system_scores in scores.values()]
    methods = dict.fromkeys(signature["interval"] for signature in signatures if "interval" in signature)
    return f"the {format_level(1 - options.alpha)} interval of the mean, {'; '.join(map(name_methods, methods))}"


def check_lines(
    results: Comparison | Mapping[str, Scores], lines: Sequence[Requirement], options: shared.Options
) -> list[Outcome]:
    """Check `lines`, the requirements of --require, and return the outcomes. Print them on stderr, and as JUnit XML if asked."""
    for line in lines:
        if forbids_improvement(line):
            better = "lower" if line.sign.startswith(">") else "higher"  # the contrary of what the sign requires
            reason = f"{line.measure} is better when {better}"
            notice("line_against_better", f"{line.text!r} fails if a system is better than the baseline: {reason}")

    outcomes = check_requirements(results, lines, family=options.family)
    for outcome in outcomes:
        shared.say(outcome)

    if options.junit is not None:
        from goodgain.analysis.reporting.gate_reports import write_junit  # takes 25 ms to import

        results_with_notes = [results] if isinstance(results, Comparison) else results.values()
        notes = dict.fromkeys(chain.from_iterable(result.notes for result in results_with_notes))
        write_output(write_junit(outcomes, [*notes]), shared.Output("xml", options.junit))
    return outcomes


def exit_if_failed(outcomes: Sequence[Outcome]) -> None:
    if not all(outcome.holds for outcome in outcomes):
        raise click.exceptions.Exit(REQUIREMENT_FAILED)
