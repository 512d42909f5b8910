"""Calls a function for parts of a Spark frame on Spark's workers, so that only its results come back."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import polars as pl

from goodgain.errors import InputError
from goodgain.version import __version__

_Result = TypeVar("_Result")

#: Type of a column -> its name in Spark.
_TYPES: dict[Any, str] = {pl.String: "string", pl.Int64: "bigint", pl.Float64: "double"}


def map_on_workers(
    frame: Any, function: Callable[[pl.DataFrame], _Result], *, make_empty: Callable[[], _Result]
) -> Iterator[_Result]:
    """Yield the result of a function for each part of a Spark frame. A part has all rows of its queries, in no order.

    The function goes to the workers once, with all that it holds, such as qrels. For a frame without rows, the only result is
    that of `make_empty`.
    """
    check_workers(frame.sparkSession)
    parts = _group_by_query(frame)
    results = parts.mapInArrow(_pickle_results(function), "result binary").toArrow()
    if not results.num_rows:
        yield make_empty()
    for result in results.column("result"):
        yield pickle.loads(result.as_py())  # what our own function returned


def map_to_rows(frame: Any, function: Callable[[pl.DataFrame], pl.DataFrame], types: Mapping[str, pl.DataType]) -> Any:
    """Return a lazy Spark frame of the rows that a function returns for each part of a Spark frame. Its columns are `types`."""
    schema = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in types.items())
    return _group_by_query(frame).mapInArrow(_return_rows(function), schema)


def check_workers(session: Any) -> None:
    """Raise `InputError` if a worker of Spark lacks goodgain, or has another version of it. This takes seconds."""

    def describe_worker(batches: Any) -> Any:  # nested, so that a worker needs no goodgain to load it
        import os

        import pyarrow as pa

        # Spark runs a worker per core. Polars, which goodgain imports, reads the variable only once.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        for _ in batches:
            try:
                import goodgain.version

                version_or_error = goodgain.version.__version__
            except ImportError as error:
                version_or_error = str(error)  # with the words "No module", which are looked for below
            yield pa.RecordBatch.from_pydict({"version": [version_or_error]})

    try:
        version = session.range(1).mapInArrow(describe_worker, "version string").collect()[0].version
    except Exception as error:  # of PySpark, with the error of the worker as text
        missing = [line for line in str(error).splitlines() if "No module named" in line]
        if not missing:
            raise
        version = missing[0].partition(": ")[2]
    if version != __version__:
        reason = version if "No module" in version else f"theirs is {version}, here is {__version__}"
        raise InputError(
            f"the workers of Spark need this goodgain ({reason}). Install it where they run: in their image, or with an archive "
            "of venv-pack (spark.archives). In a local session, set PYSPARK_PYTHON to the Python that runs goodgain."
        )


def _group_by_query(frame: Any) -> Any:
    return frame.repartition("query_id").sortWithinPartitions("query_id")


def _pickle_results(function: Callable[[pl.DataFrame], Any]) -> Callable[[Any], Any]:
    """Return the function of a worker that yields the pickled result of `function` for each part of whole queries."""
    pickled = pickle.dumps(function)

    def work(batches: Any) -> Any:
        import os
        import pickle

        import pyarrow as pa

        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from goodgain.formats.spark_batches import cut_between_queries

        on_part = pickle.loads(pickled)  # made above
        for rows in cut_between_queries(batches):
            yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(on_part(rows))]})

    return work


def _return_rows(function: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[Any], Any]:
    """Return the function of a worker that yields the rows which `function` returns for each part of whole queries."""
    pickled = pickle.dumps(function)

    def work(batches: Any) -> Any:
        import os
        import pickle

        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from goodgain.formats.spark_batches import cut_between_queries, spell_for_spark

        on_part = pickle.loads(pickled)  # made above
        for rows in cut_between_queries(batches):
            yield from spell_for_spark(on_part(rows))

    return work
