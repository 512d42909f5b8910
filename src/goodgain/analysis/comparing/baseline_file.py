"""Writes and reads baseline files: the values of a system by query, for comparisons without the run of the baseline.

The first line is a JSON object about the system. Each later line has query_id, replicate, measure and value.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ir_measures
import msgspec
import narwhals as nw
import polars as pl

from goodgain.counting.coverage import COVERAGE, SharedQueries
from goodgain.errors import InputError, MeasureError
from goodgain.files.bad_rows import FrameRows, Problem, check_rows
from goodgain.files.opening import make_path, read_lines
from goodgain.files.writing import atomic_write
from goodgain.formats import Qrels
from goodgain.formats.run import Reading
from goodgain.measures.bounds import find_largest_label
from goodgain.measures.changed_scores import find_values
from goodgain.measures.declaration import find_declaration
from goodgain.measures.good_gain import NumIter
from goodgain.measures.ledger_values import average_queries
from goodgain.measures.names import find_null_rule, is_null_without_search, needs_results, parse_measure
from goodgain.measures.scores import Scores
from goodgain.measures.thresholds import find_queries_without_good
from goodgain.options import DOCUMENTS, OPTIONS, spell

#: In version 1, EvidenceRecall counted documents with labels from 2, and measures that need results were 0 without results.
_VERSION, _CHANGED = 2, "EvidenceRecall"
#: Option that can change values -> default value, which also applies if a file of version 0.2.0 lacks the option.
_DEFAULTS = {name: option.default for name, option in OPTIONS.items()} | Reading._field_defaults
_KEY = ["query_id", "replicate", "measure"]
_ROUNDING = 1e-9
_COLUMNS = {"query_id": pl.String, "replicate": pl.String, "measure": pl.String, "value": pl.Float64}


class _Signature(msgspec.Struct):
    """The parts of a signature that a comparison computes with. All others are only compared and shown."""

    classic: list[str] = []
    unjudged: float = 0.0


class _About(msgspec.Struct):
    goodgain_baseline: int  # the version of the file format
    signature: dict[str, Any]
    rows: int
    measures: list[str]
    coverage: list[dict[str, Any]]
    absent_from_run: list[str]
    without_judgments: list[str]
    lacks_iterations: bool = False
    one_time: int = 0
    first_iteration: int | None = None
    #: Whether queries without a search follow the rule of `is_null_without_search`. Files of 0.3.0 lack this.
    has_rule_without_search: bool = False


def write_baseline(
    scores: Scores, path: str | os.PathLike[str], *, system: str, outcomes: pl.DataFrame | None = None
) -> None:
    """Write the scores of a system to a file for `compare(..., baseline_file=path)`.

    `scores` is a result of `leave_out_empty`, and includes NumIter and NumResults. The file has only the `outcomes` of `system`.
    """
    missing = scores.signature.get("missing", "zero")
    runs = [
        find_values(of, missing).with_columns(replicate=pl.lit(str(k))) for k, of in enumerate(scores.replicates, 1)
    ]
    rows = pl.concat(runs or [scores.per_query.with_columns(replicate=pl.lit(None, pl.String))]).select(*_COLUMNS)
    if outcomes is not None:
        own = outcomes.filter(system=system).drop("system").unpivot(index="query_id", variable_name="measure")
        rows = pl.concat([rows, own.with_columns(replicate=pl.lit(None, pl.String)).select(*_COLUMNS)])
    about = {
        "goodgain_baseline": _VERSION,
        "system": system,
        "signature": scores.signature,
        "rows": rows.height,
        "measures": rows.get_column("measure").unique(maintain_order=True).to_list(),
        "coverage": scores.coverage.to_dicts(),
        "absent_from_run": scores.queries.only_judged.sort().to_list(),
        "without_judgments": scores.queries.only_searched.sort().to_list(),
        "lacks_iterations": scores.lacks_iterations,
        "one_time": scores.one_time,
        "first_iteration": scores.first_iteration,
        "has_rule_without_search": True,
    }
    with atomic_write(make_path(path, "the baseline file")) as file:
        file.write(json.dumps(about, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        file.write(rows.write_ndjson().encode())


def read_baseline(
    path: Any,
    qrels: Qrels,
    measures: Sequence[ir_measures.Measure],
    *,
    order: str,
    missing: str = "zero",
    incomplete: str = "keep",
    no_good: str = "keep",
) -> Scores:
    """Read a baseline file. Raise `InputError` if the file has other qrels or options, or lacks a measure."""
    path = make_path(path, spell("baseline_file"))
    first, _, rest = bytes(read_lines(path).data).partition(b"\n")
    try:
        about = msgspec.json.decode(first, type=_About)
        if about.goodgain_baseline not in (1, _VERSION):
            raise ValueError(f"its version is {about.goodgain_baseline}")
        if not rest.startswith(b"{"):  # Polars decompresses without a limit
            raise ValueError("its second line is not a JSON object")
        rows = pl.read_ndjson(rest, schema=_COLUMNS)
        coverage = pl.DataFrame(about.coverage, schema=COVERAGE)
        if not _has_whole_run(coverage):
            raise ValueError("its coverage has no row for all iterations")
        msgspec.convert(about.signature, _Signature)
    except (ValueError, TypeError, RecursionError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(f"{path}: is not a baseline file ({reason}). Write one with --write-baseline.") from error
    signature, known = about.signature, about.measures
    changed = {name for name in known if name.startswith(_CHANGED)} | {str(m) for m in measures if needs_results(m)}
    if about.goodgain_baseline < _VERSION and changed:
        raise InputError(
            f"{path}: the file has version 1, and values of {', '.join(sorted(changed))} have changed since. Write it again "
            "with this version of goodgain."
        )
    _check_options(path, signature, {"only": qrels.documents.get("only")})
    if signature.get("qrels") != qrels.digest:
        raise InputError(
            f"{path}: was made with other qrels (digest {signature.get('qrels')}, now {qrels.digest}). Write it again with these "
            "qrels."
        )
    here = {"incomplete": incomplete, "no_good": no_good} | ({"order": order} if "order" in signature else {})
    here |= {"missing": missing} if {"replicates", "missing"} & {*signature} or about.absent_from_run else {}
    _check_options(path, signature, here)
    is_older = about.goodgain_baseline < _VERSION and "urls" in qrels.documents  # version 1 did not join addresses
    ids = {of.name: qrels.documents.get(of.name, of.default) for of in DOCUMENTS}
    _check_options(path, {**({"urls": "keep"} if is_older else {}), **signature}, ids)
    _check_rows(rows, known, about.rows, qrels, no_good=no_good, label=str(path))
    lacking = [name for name in map(str, measures) if name not in known]
    if lacking:
        raise InputError(f"{path}: has no values of {', '.join(lacking)}. Write it again with these measures.")
    values = rows.group_by("query_id", "measure", maintain_order=True).agg(pl.col("value").mean())
    query_ids = values.get_column("query_id").unique()
    absent, unknown = (pl.Series(ids, dtype=pl.String) for ids in (about.absent_from_run, about.without_judgments))
    is_idle = (pl.col("measure") == str(NumIter)) & (pl.col("value") == 0) & ~pl.col("query_id").is_in(absent.implode())
    idle = values.filter(is_idle).get_column("query_id")
    queries = SharedQueries(query_ids.filter(~query_ids.is_in(absent.implode())), unknown, absent, idle)
    if not about.has_rule_without_search and len(queries.not_searched):
        _check_rule_without_search(path, measures)
    rules = {str(measure): find_null_rule(measure) for measure in measures}
    if no_good == "absent":
        rules = {name: rule or "a query has no good document" for name, rule in rules.items()}
    means = {
        name: average_queries(of.get_column("value"), null_if=rules.get(name, ""))
        for (name,), of in values.group_by("measure")
    }
    none = values.select("query_id").clear()
    scores = Scores(
        {name: means.get(name) for name in known}, signature, coverage, none, values, queries, None,
        lacks_iterations=about.lacks_iterations,
        one_time=about.one_time,
        first_iteration=about.first_iteration,
    )  # fmt: skip
    runs = rows.drop_nulls("replicate").partition_by("replicate", maintain_order=True, include_key=False)
    whole = queries._replace(only_judged=absent.clear())  # the rows lack absent queries already
    return replace(scores, replicates=tuple(replace(scores, _classic=of, queries=whole) for of in runs))


def _has_whole_run(coverage: pl.DataFrame) -> bool:
    """Return whether the first row is that of all iterations, as `Coverage.tabulate` writes it."""
    if coverage.is_empty():
        return False
    first = coverage.row(0, named=True)
    return first["iteration"] is None and first["judged"] is not None and first["unique"] is not None


def _check_rule_without_search(path: Any, measures: Iterable[ir_measures.Measure]) -> None:
    """Raise `InputError` for a measure that had another value for a query without a search in 0.3.0.

    Measures over nuggets had no value there. RBPResidual and AreaOver always had one.
    """
    changed = []
    for measure in measures:
        name = str(measure)
        is_area = name.startswith("AreaOver") and is_null_without_search(measure)
        if name.startswith("Nugget") or "RBPResidual" in name or is_area:
            changed.append(name)
    if changed:
        raise InputError(
            f"{path}: values of {', '.join(changed)} for queries without a search have changed since the file was written. Write "
            "it again with this version of goodgain."
        )


def check_run(
    path: Any, made: Mapping[str, Any], here: Mapping[str, Any], measures: Iterable[ir_measures.Measure]
) -> None:
    """Raise `InputError` if the run and the baseline file were read or scored with different options.

    `made` is the signature of the file, and `here` is the signature of the run.
    """
    _check_options(path, made, {name: here.get(name, default) for name, default in Reading._field_defaults.items()})
    for measure in measures:
        of_file, of_run = ({"provider": _find_provider(of, str(measure))} for of in (made, here))
        _check_options(path, of_file, of_run, f" for {measure}")


def _check_options(path: Any, made: Mapping[str, Any], here: Mapping[str, Any], of_what: str = "") -> None:
    of_file = {**_DEFAULTS, **made}
    differing = [name for name, value in here.items() if of_file[name] != value and name not in ("columns", "page")]
    if differing:  # columns= only renames columns, and page= is for one system
        told = ", ".join(f"{spell(name, of_file[name])} instead of {spell(name, here[name])}" for name in differing)
        raise InputError(f"{path}: was made with {told}{of_what}. Use the same options, or write the file again.")


def _find_provider(signature: Mapping[str, Any], measure: str) -> str:
    parts = [one.partition(":") for one in signature.get("classic", ())]
    return next((provider for provider, _, names in parts if measure in names.split("+")), "goodgain")


def _check_rows(
    rows: pl.DataFrame, measures: list[str], expected: int, qrels: Qrels, *, no_good: str, label: str
) -> None:
    """Raise `InputError` if the file lacks a row, or has a row that `write_baseline` cannot have written."""
    value, measure = nw.col("value"), nw.col("measure")
    problems: list[Problem] = [
        (~measure.is_in(measures) | measure.is_null(), "has a measure that the first line of the file does not list"),
        (~nw.col("query_id").is_in(qrels.query_ids.to_list()), "has a query that the qrels lack"),
        (~nw.col("is_first"), "repeats the query, replicate and measure of an earlier row"),
    ]
    for name in measures:
        try:
            parsed = parse_measure(name)
        except MeasureError:  # an outcome
            continue
        declared = getattr(parsed, "declaration", None) or find_declaration(parsed)
        if declared is None:
            continue
        if not find_null_rule(parsed) and not needs_results(parsed):
            lacks_value = (measure == name) & value.is_null()
            if no_good == "absent":
                without_good = find_queries_without_good([parsed], qrels.frame, qrels.query_ids)
                left_out = [query_id for ids in without_good.values() for query_id in ids]
                lacks_value &= ~nw.col("query_id").is_in(left_out)
            problems.append((lacks_value, f"has no value of {name}"))
        ends = {"max gain": find_largest_label(qrels.frame), "": float("inf")}
        least, most = (ends[end] if end in ends else float(end) for end in declared.bounds)
        is_beyond = (value < least - _ROUNDING) | (value > most + _ROUNDING)
        problems.append(((measure == name) & is_beyond, f"has {{value}}, but {name} ranges from {least:g} to {most:g}"))
    numbered = rows.with_columns(is_first=pl.struct(_KEY).is_first_distinct())
    check_rows(nw.from_native(numbered), FrameRows(label, range(2, rows.height + 2)), problems)
    if rows.height != expected:
        raise InputError(f"{label}: has {rows.height:,} of {expected:,} rows. Write it again with --write-baseline.")
