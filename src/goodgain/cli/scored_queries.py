"""Prints what stands behind scores: queries scored and left out, signatures, and coverage."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from goodgain.cli.printed_tables import format_signature
from goodgain.cli.shared_options import say
from goodgain.counting.coverage import LOW_COVERAGE, join_examples, list_shares
from goodgain.formats.qrels import NO_DIGEST
from goodgain.measures.scores import Scores

#: Up to this number, each system that differs from others has a line. More systems share one line.
_MOST_LINES = 3


def print_scored_queries(scores: Mapping[str, Scores]) -> None:
    """Print on standard error how many queries were scored or left out. What holds for all systems is said once."""
    sentences = {system: _describe_queries(scores_of_system) for system, scores_of_system in scores.items()}
    distinct = {*sentences.values()}
    if len(distinct) == 1:
        say(f"queries: {distinct.pop()}")
    elif len(scores) <= _MOST_LINES:
        for system, sentence in sentences.items():
            say(f"{system}: queries: {sentence}")
    else:
        say(f"queries: {_describe_queries_of_many(scores)}")

    for system, scores_of_system in scores.items():
        if lacking := [*_list_runs_that_lack(scores_of_system)]:
            name = f"{system}: " if len(scores) > 1 else ""
            say(f"{name}queries that only some runs lack: {'; '.join(lacking)}")


def _describe_queries(scores: Scores) -> str:
    """Return how many queries of a system were scored, absent from its run, and without judgments."""
    signature = scores.signature
    absent, idle = scores.queries.only_judged, scores.queries.never_searched

    scored = f"{signature['queries']} scored"
    if signature.get("missing") == "absent":
        sentence = f"{scored}, {len(absent)} absent from the run{_show_some(absent)} left out"
    else:
        sentence = f"{scored}, {len(absent)} of them absent from the run{_show_some(absent)}"
    if len(idle):
        sentence += f", {len(idle)} of them never searched{_show_some(idle)}"

    if signature["qrels"] == NO_DIGEST:
        return f"{sentence}; no labels"
    unjudged = signature["without_judgments"]
    lack = "lacks judgments and is" if unjudged == 1 else "lack judgments and are"
    return f"{sentence}; {unjudged} of the run {lack} left out"


def _describe_queries_of_many(scores: Mapping[str, Scores]) -> str:
    """Return the numbers of queries of many systems, a part a kind. Numbers of 0 are left out."""
    signatures = [scores_of_system.signature for scores_of_system in scores.values()]
    queries = [scores_of_system.queries for scores_of_system in scores.values()]
    leaves_out = any(signature.get("missing") == "absent" for signature in signatures)
    absent = "absent from the run and left out" if leaves_out else "absent from the run"
    numbers = {
        absent: [len(queries_of_system.only_judged) for queries_of_system in queries],
        "never searched": [len(queries_of_system.never_searched) for queries_of_system in queries],
    }
    if signatures[0]["qrels"] != NO_DIGEST:
        numbers["without judgments and left out"] = [signature["without_judgments"] for signature in signatures]

    scored = [signature["queries"] for signature in signatures]
    parts = [f"{scored[0]} scored" if len({*scored}) == 1 else f"scored: {_list_numbers(scores, scored)}"]
    for kind, numbers_of_kind in numbers.items():
        if any(numbers_of_kind):
            parts.append(f"{kind}: {_list_numbers(scores, numbers_of_kind)}")
    if signatures[0]["qrels"] == NO_DIGEST:
        parts.append("no labels")
    return "; ".join(parts)


def _list_numbers(systems: Iterable[str], numbers: Iterable[int]) -> str:
    return ", ".join(f"{system} {number:,}" for system, number in zip(systems, numbers, strict=True) if number)


def _list_runs_that_lack(scores: Scores) -> Iterable[str]:
    """Yield the runs of a system that lack more queries than all its runs together lack."""
    for number, run in enumerate(scores.replicates, 1):
        absent = run.queries.only_judged
        if len(absent) > len(scores.queries.only_judged):
            yield f"run {number} lacks {len(absent)}{_show_some(absent)}"


def _show_some(query_ids: pl.Series) -> str:
    return f" ({join_examples(query_ids)})" if len(query_ids) else ""


def print_signatures(scores: Mapping[str, Scores], mean: str | None) -> None:
    """Print the signature of all systems, and their coverage if it is below 1. `mean` is an unusual way to average values."""
    signatures = {system: scores_of_system.signature for system, scores_of_system in scores.items()}
    signature = _join_signatures(signatures)
    if mean is not None:
        signature["mean"] = mean
    say(f"signature: {format_signature(signature)}")

    shares = {}
    described = {}
    for system, scores_of_system in scores.items():
        share = scores_of_system.coverage.item(0, "coverage")
        mapped = _describe_mapped_ids(scores_of_system)
        if share is not None and (mapped or LOW_COVERAGE <= share < 1):
            shares[system] = f"{share:.4f}"
            described[system] = f"{share:.4f}, by iteration {list_shares(scores_of_system.coverage)}{mapped}"
    if len(shares) > _MOST_LINES:
        say(f"coverage: {', '.join(f'{system} {share}' for system, share in shares.items())}")
        return
    for system, coverage in described.items():
        name = f"{system}: " if len(scores) > 1 else ""
        say(f"{name}coverage: {coverage}")


def _join_signatures(signatures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return one signature of several systems. A value that differs is a list of texts `system:value`."""
    names = dict.fromkeys(name for signature in signatures.values() for name in signature)
    joined: dict[str, Any] = {}
    for name in names:
        values = {system: signature.get(name) for system, signature in signatures.items()}
        first = next(iter(values.values()))
        if all(value == first for value in values.values()):
            joined[name] = first
            continue
        joined[name] = []
        for system, value in values.items():
            if value is not None:
                _, _, text = format_signature({name: value}).partition("=")
                joined[name].append(f"{system}:{text}")
    return joined


def _describe_mapped_ids(scores: Scores) -> str:
    """Return the end of a sentence, with the numbers of chunk ids that became documents; empty without --documents."""
    if not scores.ids_mapped:
        return ""
    of_run, of_qrels = scores.ids_mapped
    return f"; ids mapped to documents: {of_run:,} of the run, {of_qrels:,} of the qrels"
