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
    no_replicate = pl.lit(None, pl.String)
    tables = []
    for number, run in enumerate(scores.replicates, 1):
        tables.append(find_values(run, missing).with_columns(replicate=pl.lit(str(number))))
    if not tables:
        tables = [scores.per_query.with_columns(replicate=no_replicate)]
    rows = pl.concat(tables).select(*_COLUMNS)
    if outcomes is not None:
        of_system = outcomes.filter(system=system).drop("system")
        values = of_system.unpivot(index="query_id", variable_name="measure")
        rows = pl.concat([rows, values.with_columns(replicate=no_replicate).select(*_COLUMNS)])

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
    about, rows, coverage = _parse(path)
    _check_version(path, about, measures)
    _check_source(
        path, about, qrels, {"order": order, "missing": missing, "incomplete": incomplete, "no_good": no_good}
    )
    _check_rows(rows, about.measures, about.rows, qrels, no_good=no_good, label=str(path))
    absent_measures = [name for name in map(str, measures) if name not in about.measures]
    if absent_measures:
        raise InputError(f"{path}: has no values of {', '.join(absent_measures)}. Write it again with these measures.")

    values = rows.group_by("query_id", "measure", maintain_order=True).agg(pl.col("value").mean())
    queries = _find_queries(about, values)
    if not about.has_rule_without_search and len(queries.not_searched):
        _check_rule_without_search(path, measures)
    means = _average_measures(values, measures, no_good)
    scores = Scores(
        means={name: means.get(name) for name in about.measures},
        signature=about.signature,
        coverage=coverage,
        _ours=values.select("query_id").clear(),
        _classic=values,
        queries=queries,
        rel=None,
        lacks_iterations=about.lacks_iterations,
        one_time=about.one_time,
        first_iteration=about.first_iteration,
    )
    runs = rows.drop_nulls("replicate").partition_by("replicate", maintain_order=True, include_key=False)
    # the rows lack absent queries already
    queries_of_run = queries._replace(only_judged=queries.only_judged.clear())
    replicates = tuple(replace(scores, _classic=run, queries=queries_of_run) for run in runs)
    return replace(scores, replicates=replicates)


def _parse(path: Any) -> tuple[_About, pl.DataFrame, pl.DataFrame]:
    """Return the first line of the file, its rows, and the coverage of the system."""
    first_line, _, rows_as_json = bytes(read_lines(path).data).partition(b"\n")
    try:
        about = msgspec.json.decode(first_line, type=_About)
        if about.goodgain_baseline not in (1, _VERSION):
            raise ValueError(f"its version is {about.goodgain_baseline}")
        if not rows_as_json.startswith(b"{"):  # Polars decompresses without a limit
            raise ValueError("its second line is not a JSON object")
        rows = pl.read_ndjson(rows_as_json, schema=_COLUMNS)
        coverage = pl.DataFrame(about.coverage, schema=COVERAGE)
        if not _has_whole_run(coverage):
            raise ValueError("its coverage has no row for all iterations")
        msgspec.convert(about.signature, _Signature)
    except (ValueError, TypeError, RecursionError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(f"{path}: is not a baseline file ({reason}). Write one with --write-baseline.") from error
    return about, rows, coverage


def _check_version(path: Any, about: _About, measures: Sequence[ir_measures.Measure]) -> None:
    """Raise `InputError` if the file has version 1, and values of its measures have changed since."""
    changed = {name for name in about.measures if name.startswith(_CHANGED)}
    changed |= {str(measure) for measure in measures if needs_results(measure)}
    if about.goodgain_baseline < _VERSION and changed:
        raise InputError(
            f"{path}: the file has version 1, and values of {', '.join(sorted(changed))} have changed since. Write it again "
            "with this version of goodgain."
        )


def _check_source(path: Any, about: _About, qrels: Qrels, options: Mapping[str, str]) -> None:
    """Raise `InputError` if the file was made with other qrels or options. `options` are those of the comparison."""
    signature = about.signature
    _check_options(path, signature, {"only": qrels.documents.get("only")})
    if signature.get("qrels") != qrels.digest:
        raise InputError(
            f"{path}: was made with other qrels (digest {signature.get('qrels')}, now {qrels.digest}). Write it again with these "
            "qrels."
        )

    compared = {"incomplete": options["incomplete"], "no_good": options["no_good"]}
    if "order" in signature:  # a measure over the ranking was computed
        compared["order"] = options["order"]
    if about.absent_from_run or "replicates" in signature or "missing" in signature:  # else `missing` has no effect
        compared["missing"] = options["missing"]
    _check_options(path, signature, compared)

    ids = {document.name: qrels.documents.get(document.name, document.default) for document in DOCUMENTS}
    if about.goodgain_baseline < _VERSION and "urls" in qrels.documents:  # version 1 did not join addresses
        signature = {"urls": "keep"} | signature
    _check_options(path, signature, ids)


def _find_queries(about: _About, values: pl.DataFrame) -> SharedQueries:
    """Return the queries of the run and the qrels. Those with NumIter 0 never searched, unless the run lacks them."""
    absent = pl.Series(about.absent_from_run, dtype=pl.String)
    is_absent = pl.col("query_id").is_in(absent.implode())
    is_idle = (pl.col("measure") == str(NumIter)) & (pl.col("value") == 0) & ~is_absent
    query_ids = values.get_column("query_id").unique()
    return SharedQueries(
        both=query_ids.filter(~query_ids.is_in(absent.implode())),
        only_searched=pl.Series(about.without_judgments, dtype=pl.String),
        only_judged=absent,
        never_searched=values.filter(is_idle).get_column("query_id"),
    )


def _average_measures(
    values: pl.DataFrame, measures: Sequence[ir_measures.Measure], no_good: str
) -> dict[str, float | None]:
    """Return the means over the queries. A null among values that must not be null gives None."""
    rules = {str(measure): find_null_rule(measure) for measure in measures}
    if no_good == "absent":
        rules = {name: rule or "a query has no good document" for name, rule in rules.items()}
    means: dict[str, float | None] = {}
    for (name,), rows in values.group_by("measure"):
        means[str(name)] = average_queries(rows.get_column("value"), null_if=rules.get(str(name), ""))
    return means


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
    path: Any,
    signature_of_file: Mapping[str, Any],
    signature_of_run: Mapping[str, Any],
    measures: Iterable[ir_measures.Measure],
) -> None:
    """Raise `InputError` if the run and the baseline file were read or scored with different options."""
    reading = {name: signature_of_run.get(name, default) for name, default in Reading._field_defaults.items()}
    _check_options(path, signature_of_file, reading)
    for measure in measures:
        of_file = {"provider": _find_provider(signature_of_file, str(measure))}
        of_run = {"provider": _find_provider(signature_of_run, str(measure))}
        _check_options(path, of_file, of_run, f" for {measure}")


def _check_options(path: Any, signature: Mapping[str, Any], options: Mapping[str, Any], values_of: str = "") -> None:
    """Raise `InputError` if the file was made with other `options`. The message has `values_of` after them: ` for nDCG@10`."""
    of_file = {**_DEFAULTS, **signature}
    differences = []
    for name, value in options.items():
        if name in ("columns", "page"):  # columns= only renames columns, and page= is for one system
            continue
        if of_file[name] != value:
            differences.append(f"{spell(name, of_file[name])} instead of {spell(name, value)}")
    if differences:
        raise InputError(
            f"{path}: was made with {', '.join(differences)}{values_of}. Use the same options, or write the file again."
        )


def _find_provider(signature: Mapping[str, Any], measure: str) -> str:
    for part in signature.get("classic", ()):
        provider, _, names = part.partition(":")
        if measure in names.split("+"):
            return str(provider)
    return "goodgain"


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
