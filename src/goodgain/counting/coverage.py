"""Computes the coverage of a run (the judged share of its results), and warns of values that may mislead."""

import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from goodgain.counting.ledger import Counts
from goodgain.counting.run_in_blocks import RunFile, sample_rows
from goodgain.errors import OfSeveral, count_of, notice
from goodgain.files.bad_rows import quote
from goodgain.files.tables import count_in_order
from goodgain.formats import Qrels, Run
from goodgain.formats.iterations import lacks_iterations, warn_of_missing_iterations
from goodgain.formats.web_identities import ONE_TIME_ADDRESS
from goodgain.options import spell
from goodgain.ranking.dataframe_engines import collect
from goodgain.ranking.ranking_table import find_places
from goodgain.schema import EMPTY_DOC, Table

#: Below this judged share of unique results, missing judgments may explain a small difference.
LOW_COVERAGE = 0.8
#: Two sides share too few queries if they share less than this part of the smaller side's queries.
LOW_SHARE = 0.5
#: Column -> type of a table of coverage. The row for all iterations has a null iteration.
COVERAGE = Table.of("coverage", "whole: iteration judged unique; number: coverage").polars
_EXAMPLES = 3  # query ids that a message lists
_LISTED = 10  # iterations that a notice lists
#: The smallest @ that looks like a cutoff in ranks.
_LEAST_RANKS = 5
#: Largest samples of unjudged and judged URLs. Parsing a URL takes 2 µs.
_UNJUDGED, _JUDGED = 1_500, 3_000
#: The pattern of a chunk's id: `doc1#2`, `doc1_p3`.
_NUMBERED = r"^(?<document>.+?)(?<between>[^\p{L}\p{N}]+\p{L}*)\d+$"
_NO_QUERIES = pl.Series("query_id", [], pl.String)


class SharedQueries(NamedTuple):
    """The query ids of a run and qrels, by where they occur: in both, only in the run, or only in the qrels."""

    both: pl.Series
    only_searched: pl.Series  # only in the run
    only_judged: pl.Series  # only in the qrels
    never_searched: pl.Series = _NO_QUERIES  # in both, and the run says that the query never searched

    @property
    def not_searched(self) -> pl.Series:
        """The judged queries that the run lacks, and those that never searched according to the run."""
        return pl.concat([self.only_judged, self.never_searched])

    @property
    def searched(self) -> int:
        return len(self.both) + len(self.only_searched)

    @property
    def judged(self) -> int:
        return len(self.both) + len(self.only_judged)


def match_queries(query_ids: pl.Series, judged: pl.Series, never_searched: pl.Series = _NO_QUERIES) -> SharedQueries:
    """Compare the query ids of a run and qrels. `query_ids` and `never_searched` are queries of the run."""
    of_run = pl.concat([query_ids, never_searched]).unique()
    of_qrels = judged.unique()
    is_judged = of_run.is_in(of_qrels.implode())
    is_in_run = of_qrels.is_in(of_run.implode())
    idle = never_searched.filter(never_searched.is_in(of_qrels.implode()))
    return SharedQueries(of_run.filter(is_judged), of_run.filter(~is_judged), of_qrels.filter(~is_in_run), idle)


def list_examples(query_ids: pl.Series) -> list[str]:
    """Return the first three query ids, as people count."""
    return nsmallest(_EXAMPLES, query_ids, key=count_in_order)


def join_examples(query_ids: pl.Series) -> str:
    """Return the first three query ids as text, and `...` if there are more."""
    examples = list_examples(query_ids)
    if len(query_ids) > len(examples):
        examples.append("...")
    return ", ".join(examples)


class Coverage(NamedTuple):
    """The counts from which the coverage of a run is computed: queries, unique results, and unjudged results."""

    queries: SharedQueries
    unique: int  # first occurrences in judged queries
    unjudged: int  # first occurrences without a label, in judged queries
    numbering: pl.DataFrame  # as in `Counts`
    by_iteration: pl.DataFrame  # iteration, unique, unjudged

    @property
    def share(self) -> float | None:
        """The judged share of the unique results, from 0 to 1; None if judged queries have no result."""
        return (self.unique - self.unjudged) / self.unique if self.unique else None

    def tabulate(self, *, has_labels: bool = True) -> pl.DataFrame:
        """Return a frame with the columns of `COVERAGE`: a row for the whole run, then a row for each iteration.

        Without labels there is no coverage: it is null.
        """
        iterations = self.by_iteration.get_column("iteration").to_list()
        unique = np.append(self.unique, self.by_iteration.get_column("unique").to_numpy())
        unjudged = np.append(self.unjudged, self.by_iteration.get_column("unjudged").to_numpy())
        judged = unique - unjudged
        share = np.full(len(unique), np.nan)
        np.divide(judged, unique, out=share, where=(unique > 0) & has_labels)
        columns = [[None, *iterations], judged, unique, pl.Series(share, nan_to_null=True)]
        return pl.DataFrame(dict(zip(COVERAGE, columns, strict=True)), schema=COVERAGE)

    @property
    def lowest(self) -> int | None:
        """The lowest iteration number in the run; None for an empty run."""
        lowest: Any = self.numbering.get_column("lowest").min()
        return None if lowest is None else int(lowest)

    @property
    def highest(self) -> int | None:
        """The highest iteration number in the run; None for an empty run."""
        highest: Any = self.numbering.get_column("highest").max()
        return None if highest is None else int(highest)

    def find_first_iteration(self, run: Run | RunFile) -> int | None:
        """Return the lowest iteration number in the run; None if the run has no iterations of its own."""
        is_paged = run.reading.page is not None
        return None if is_paged or self.lacks_iterations(run) else self.lowest

    def lacks_iterations(self, run: Run | RunFile) -> bool:
        return self.lowest is not None and lacks_iterations(run.has_iterations, self.lowest, self.highest)

    @property
    def renumbered_queries(self) -> int:
        """The number of queries whose iteration numbers have gaps, or do not start at 1, or at 0 if a query of the run does.

        If all iterations of the run have one number, whatever it is, no number is missing.
        """
        first = self.lowest
        if first is not None and first != self.highest:
            first = min(first, 1)

        renumbered = 0
        for row in self.numbering.iter_rows(named=True):
            if not row["is_dense"] or row["lowest"] != first:
                renumbered += row["queries"]
        return renumbered


def measure_coverage(counts: Mapping[float, Counts]) -> Coverage:
    """Return the coverage of a run. `counts` are those of the run by threshold; the coverage is the same at each."""
    counts_of_run = next(iter(counts.values()))
    ledger = counts_of_run.ledger
    iteration, new, unjudged = (ledger.get_column(name).to_numpy() for name in ("iteration", "UR", "Unjudged"))
    starts = np.flatnonzero(iteration == 1)
    query_ids = ledger.get_column("query_id")[starts]
    judged = counts_of_run.pools.get_column("query_id")

    place = find_places(query_ids, judged)
    is_judged = place >= 0
    is_searched = np.zeros(len(judged), bool)
    is_searched[place[is_judged]] = True
    queries = _split_queries(query_ids, is_judged, judged, is_searched)
    if len(counts_of_run.never_searched):
        queries = match_queries(query_ids, judged, counts_of_run.never_searched)

    if len(queries.only_searched):  # only judged queries count
        of_judged = np.repeat(is_judged, np.diff(starts, append=len(iteration)))
        iteration, new, unjudged = iteration[of_judged], new[of_judged], unjudged[of_judged]
    return Coverage(
        queries=queries,
        unique=int(new.sum()),
        unjudged=int(unjudged.sum()),
        numbering=counts_of_run.numbering,
        by_iteration=_sum_iterations(iteration, new, unjudged),
    )


def _split_queries(query_ids: pl.Series, is_judged: Any, judged: pl.Series, is_searched: Any) -> SharedQueries:
    """Return the queries of a run and of qrels by where they occur: `is_judged` is of `query_ids`, `is_searched` of `judged`."""
    if is_judged.all():
        both, only_searched = query_ids, query_ids.clear()
    else:
        both = query_ids.filter(pl.Series(is_judged))
        only_searched = query_ids.filter(pl.Series(~is_judged))
    only_judged = judged.clear()
    if not is_searched.all():
        only_judged = judged.filter(pl.Series(~is_searched))
    return SharedQueries(both, only_searched, only_judged)


def _sum_iterations(iteration: Any, new: Any, unjudged: Any) -> pl.DataFrame:
    """Return `Coverage.by_iteration`: the sums over all queries of arrays with a value per query and iteration."""
    numbers, place = np.unique(iteration, return_inverse=True)
    columns = {"iteration": numbers}
    for name, counts in (("unique", new), ("unjudged", unjudged)):
        columns[name] = np.bincount(place, counts, len(numbers)).astype(np.int64)
    return pl.DataFrame(columns, schema=dict.fromkeys(("iteration", "unique", "unjudged"), pl.Int64))


def combine_coverages(coverages: Sequence[Coverage]) -> Coverage:
    """Add up coverages. Their queries are only listed one after the other: those of batches differ."""
    if len(coverages) == 1:
        return coverages[0]
    queries = zip(*(coverage.queries for coverage in coverages), strict=True)
    by_iteration = pl.concat([coverage.by_iteration for coverage in coverages])
    columns = [column.to_numpy() for column in by_iteration.get_columns()]
    return Coverage(
        queries=SharedQueries(*(pl.concat(of_batches) for of_batches in queries)),
        unique=sum(coverage.unique for coverage in coverages),
        unjudged=sum(coverage.unjudged for coverage in coverages),
        numbering=pl.concat([coverage.numbering for coverage in coverages]),
        by_iteration=_sum_iterations(*columns),
    )


def list_shares(coverages: pl.DataFrame) -> str:
    """Return the coverage of the first ten iterations as text: `0.75, 0.50`. A dash marks an iteration without new results."""
    of_iterations = coverages.filter(pl.col("iteration").is_not_null())
    shares = of_iterations.get_column("coverage").to_list()
    texts = ["–" if share is None else f"{share:.2f}" for share in shares[:_LISTED]]
    if len(shares) > _LISTED:
        texts.append("...")
    return ", ".join(texts)


def share_of_smaller(shared: int, first: int, second: int) -> float:
    """Return `shared` / min(`first`, `second`), or 1 if `first` or `second` is 0. All arguments are numbers of queries."""
    if not first or not second:
        return 1.0
    return shared / min(first, second)


def warn_if_few_shared(queries: SharedQueries) -> None:
    """Give a notice if run and qrels spell query ids differently, or if `share_of_smaller` is below a half."""
    shared = len(queries.both)
    if pairs := _find_other_spellings(queries):
        of_run, of_qrels = pairs[0]
        example = f"({of_run!r} in the run, {of_qrels!r} in the qrels)"
        number = f"{count_of(len(pairs), 'query', 'queries')} of the run may be in the qrels under another id"
        notice(
            "spellings_of_queries",
            f"{number} {example}. These queries of the qrels count as not searched. Run and qrels need equal ids.",
        )
        return
    if share_of_smaller(shared, queries.searched, queries.judged) >= LOW_SHARE:
        return

    of_run, of_qrels = (repr(list_examples(ids)[0]) for ids in (queries.only_searched, queries.only_judged))
    number = "no query"
    if shared:
        number = f"only {shared:,} of {queries.searched:,} queries"
    fact = f"{number} of the run {'is' if shared < 2 else 'are'} in the qrels, which have {queries.judged:,}"
    example = f"(the run has {of_run}, the qrels have {of_qrels})"
    notice("few_shared_queries", f"{fact} {example}. Check that run and qrels use the same query ids.")


def _find_other_spellings(queries: SharedQueries) -> list[tuple[str, str]]:
    """Return the pairs of query ids (in the run, in the qrels) that differ only in case, punctuation or leading zeros."""
    sides = (queries.only_searched, queries.only_judged)
    if not all(map(len, sides)):
        return []
    apart = pl.col("id").str.to_lowercase().str.replace_all(r"(\d)[\W_]+(\d)", "$1 $2")  # 31_1 is not 311
    plain = apart.str.replace_all(r"[^\w ]|_", "").str.strip_chars_start("0")
    of_run, of_qrels = (
        pl.DataFrame({"id": ids}).with_columns(plain=plain).filter(pl.col("plain") != "") for ids in sides
    )
    of_run, of_qrels = of_run.unique("plain", keep="none"), of_qrels.unique("plain", keep="none")
    pairs = of_run.join(of_qrels, on="plain")
    return pairs.select("id", "id_right").sort("id").rows()


def warn_of_low_coverage(coverages: pl.DataFrame, *, labels: str | None) -> None:
    """Give a notice if few results of a run have a label; `coverages` has the columns of `COVERAGE`."""
    unique, share = coverages.row(0)[2:]
    # warn_of_run reports a share of 0, unless labels are by iteration
    is_low = share is not None and share < LOW_COVERAGE and (share or labels is not None)
    if not is_low:
        return

    shares = f"(by iteration {list_shares(coverages)})"
    sentence = (
        "coverage is low: {} a label{}; most measures count the others as not relevant. Judge more of "
        f"them (goodgain pool lists them), or let evaluate show their possible effect with {spell('bounds', True)}."
    )
    results = f"{share:.2f} of the {count_of(unique, 'unique result has', 'unique results have')}"
    rule = sentence.format(f"under {LOW_COVERAGE} of the unique results have", "")
    notice(
        "low_coverage",
        sentence.format(results, f" {shares}"),
        of_several=OfSeveral(rule, f"{share:.2f} of {unique:,} {shares}", brief=f"{share:.2f}"),
    )


def warn_of_run(qrels: Qrels, run: Run | RunFile, coverage: Coverage) -> int:
    """Give notices if scores of a run may mislead. Return the result of `count_one_time`.

    Only a sample of the run is searched for documents that the qrels judge under another id. `warn_of_low_coverage` is left to
    the caller.
    """
    if coverage.lacks_iterations(run):
        warn_of_missing_iterations(run.name)
    if coverage.renumbered_queries:
        fact = f"iteration numbers are missing in {count_of(coverage.renumbered_queries, 'query', 'queries')}"
        remedy = f"If a missing number is a search without results, read the run with {spell('gaps', 'empty')}."
        notice("missing_iterations", f"{fact}, so iterations were renumbered 1, 2, 3 ... {remedy}")
    has_labels_by_iteration = qrels.labels is not None
    if has_labels_by_iteration and coverage.lowest == 0:
        fact = "the run numbers its iterations from 0, but labels by iteration start at 1"
        remedy = "Number the iterations of the run from 1 to match the labels."
        notice("iteration_zero", f"{fact}: iteration 0 gets only labels that apply to every iteration. {remedy}")

    if qrels.has_labels:
        _warn_of_other_ids(qrels, run, coverage)

    queries_with_one_time = count_one_time(run, qrels.query_ids)
    if queries_with_one_time:
        in_queries = f"in {count_of(queries_with_one_time, 'query', 'queries')}"
        fact = f"{in_queries} several iterations returned addresses that are new for each call"
        effect = "SRR, SRE and NumDup are not comparable with those of other systems"
        notice("one_time_addresses", f"{fact}. Repeated pages are not recognised, so {effect}.")
    return queries_with_one_time


def _warn_of_other_ids(qrels: Qrels, run: Run | RunFile, coverage: Coverage) -> None:
    """Give notices if run and qrels seem to spell the ids of queries or documents differently."""
    warn_if_few_shared(coverage.queries)
    has_variants = not qrels.addresses.is_empty() and _warn_of_url_variants(qrels, run)
    if coverage.share == 0 and not has_variants and qrels.labels is None:
        as_given = (qrels.given or qrels).frame.select("query_id", "doc_id")
        warn_if_none_is_judged(as_given, sample_rows(run), count_of(coverage.unique, "unique result"))


def warn_of_cutoffs(cutoffs: Mapping[str, int], coverages: Sequence[pl.DataFrame]) -> None:
    """Give a notice on measures of iterations whose cutoff was probably meant as a rank.

    These are cutoffs from 5 that are larger than the number of iterations of every query in every run of the call, such as
    `SRE@10` if no query has more than 4 iterations. Runs without iterations have a notice of their own. `cutoffs` maps names of
    measures to cutoffs.
    """
    highest = [coverage.get_column("iteration").max() for coverage in coverages]
    most: Any = max((number for number in highest if number is not None), default=0)
    beyond = [name for name, cutoff in cutoffs.items() if cutoff > most and cutoff >= _LEAST_RANKS]
    if beyond and most:
        longest = f"no query has more than {count_of(most, 'iteration')}, and later ones count as empty"
        text = (
            f"{_list_some(beyond)}: @ counts iterations, not ranks; {longest}. For ranks, use measures such as nDCG@10."
        )
        notice("cutoffs_beyond_iterations", text)


def _list_some(names: Sequence[str]) -> str:
    text = ", ".join(names[:_EXAMPLES])
    return f"{text}, ..." if len(names) > _EXAMPLES else text


def warn_of_first_iterations(firsts: Mapping[str, int | None]) -> None:
    """Give a notice if runs begin with different iteration numbers. `firsts` has None for runs without iterations."""
    names: dict[int, list[str]] = {}
    for name, first in firsts.items():
        if first is not None:
            names.setdefault(first, []).append(name)
    if len(names) < 2:
        return

    parts = [f"{first} in {_list_some(names[first])}" for first in sorted(names)]
    remedy = f"If a missing number is a search without results, read the runs with {spell('gaps', 'empty')}."
    notice(
        "different_first_iterations",
        f"the first iteration is {'; '.join(parts)}, so iterations were renumbered 1, 2, 3 ... in each run. {remedy}",
    )


def count_one_time(run: Run | RunFile, query_ids: pl.Series) -> int:
    """Count the queries in which at least two iterations returned one-time addresses (see `is_one_time`).

    A large file is read only if a sample of the file has a one-time address.
    """
    if isinstance(run, RunFile) or isinstance(run.frame, pl.DataFrame):
        rows = sample_rows(run) if isinstance(run, RunFile) else run.rows
        if not is_one_time(rows.get_column("doc_id")).any():
            return 0
    frames: Iterable[Any]
    if isinstance(run, RunFile):
        frames = (block.run.frame for block in run.blocks())  # one block in memory at a time
    else:
        frames = [run.frame]
    places = []
    for frame in frames:
        rows = nw.from_native(frame).filter(is_one_time(nw.col("doc_id")))
        places.append(collect(rows.select("query_id", "iteration").unique()))
    iterations = pl.concat(places).unique().group_by("query_id").len()
    with_several = iterations.filter(pl.col("len") > 1).get_column("query_id")
    return int(with_several.is_in(query_ids.implode()).sum())


def is_one_time(doc_id: Any) -> Any:
    """Return a column of booleans: true for a URL that a search service creates for one call only."""
    return doc_id.str.starts_with(ONE_TIME_ADDRESS)


def warn_if_none_is_judged(judgments: pl.DataFrame, rows: pl.DataFrame, described: str) -> None:
    """Give a notice that no result has a label: the caller has checked this. `described` is a text such as `12 unique results`."""
    rows = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    advice = _advise_on_chunks(rows, judgments) or _advise_on_chunks(judgments, rows)
    example = "" if advice else _show_example(judgments, rows)
    remedy = advice
    if remedy is None:
        remedy = "Check that both use the same doc_ids. If they do, judge some results (goodgain pool lists them)."
    rule = f"coverage is low: no result has a label. {remedy}"
    notice(
        "low_coverage",
        f"coverage is low: none of the {described} has a label{example}. {remedy}",
        of_several=OfSeveral(rule, f"{described}{example}", brief=described),
    )


def _advise_on_chunks(rows: pl.DataFrame, documents: pl.DataFrame) -> str | None:
    """Return advice if an id in `rows` looks like a chunk of a document that `documents` has for the same query; else None."""
    groups = pl.col("doc_id").str.extract_groups(_NUMBERED)
    parts = rows.select("query_id", "doc_id", parts=groups).unnest("parts")
    chunks = parts.join(documents, left_on=["query_id", "document"], right_on=["query_id", "doc_id"], how="semi")
    first = chunks.select("doc_id", "document", "between").sort(pl.all()).head(1)
    for doc_id, document, between in first.iter_rows():
        sign = re.sub(r"[][.^$*+?{}()|\\]", r"\\\g<0>", between)
        if not re.search(rf"{sign}\d+$", document):  # else the pattern would cut the document's id too
            pattern = rf"^(.+){sign}\d+$"
            return f"If {quote(doc_id)} is a chunk of {quote(document)}, give {spell('documents', pattern)}."
    return None


def _show_example(judgments: pl.DataFrame, rows: pl.DataFrame) -> str:
    """Return an example of a doc_id in the run and one in the qrels. If possible, they differ only in case, punctuation and %XX."""
    judgments = judgments.join(rows.select("query_id").unique(), on="query_id", how="semi")
    plain = pl.col("doc_id").str.to_lowercase().str.replace_all(r"%[0-9a-f]{2}|[\W_]", "").alias("plain")
    for keys in (["query_id", plain], ["query_id"]):
        of_rows, of_judgments = (table.group_by(keys).agg(pl.col("doc_id").min()) for table in (rows, judgments))
        names = [name for name in ("query_id", "plain") if name in of_rows.columns]
        pairs = of_rows.join(of_judgments, on=names, suffix="_judged")
        first = pairs.select("query_id", "doc_id", "doc_id_judged").sort(pl.all()).head(1)
        for query_id, of_run, of_qrels in first.iter_rows():
            return f" (in query {query_id} the run has {quote(of_run)}, the qrels have {quote(of_qrels)})"
    return ""


def _warn_of_url_variants(qrels: Qrels, run: Run | RunFile) -> bool:
    """Give a notice if the qrels judge pages of a run under other URLs; return whether they do."""
    judgments = qrels.frame.select("query_id", "doc_id")
    is_url = pl.col("doc_id").str.starts_with("http")
    sample = judgments.gather_every(max(judgments.height // _JUDGED, 1))
    if not sample.select(is_url.any()).item():
        return False
    # The rules for URLs take 12 ms to import, and few ids are URLs.
    from goodgain.formats.urls import find_other_spellings

    rows = sample_rows(run).filter(is_url)
    is_searched = pl.col("query_id").is_in(rows["query_id"].unique().implode())
    judged = judgments.filter(is_searched).filter(is_url)
    parts = -(-judged.height // _JUDGED)
    if parts > 1:  # choose queries by a hash of their ids
        first_part = judged.filter(pl.col("query_id").hash(0) % parts == 0)
        if first_part.is_empty():
            first_part = judged.filter(pl.col("query_id") == judged["query_id"][0])
        judged = first_part
        rows = rows.join(judged, on="query_id", how="semi")

    results = rows.unique(maintain_order=True)
    unjudged = results.join(judged, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    unjudged = _take_sample(unjudged, _UNJUDGED)
    pairs = list(find_other_spellings(unjudged, _take_sample(judged, 2 * _JUDGED)))
    if pairs:
        query_id, of_run, of_qrels = pairs[0]
        fact = (
            f"{len(pairs):,} of {unjudged.height:,} sampled URLs without a judgment are judged under another spelling"
        )
        remedy = "Use one spelling, or count both as one document, as goodgain.evaluate and the commands do by default."
        notice(
            "spellings_of_addresses",
            f"{fact} ({of_run} in the run, {of_qrels} in the qrels, query {query_id}). {remedy}",
        )
    return bool(pairs)


def _take_sample(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    """Return at most `size` rows, chosen by a hash of doc_id."""
    if rows.height <= size:
        return rows
    return rows.sort(pl.col("doc_id").hash(0), maintain_order=True).head(size)
