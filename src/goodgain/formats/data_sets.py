"""Reads data sets of ir_datasets."""

from typing import Any

from goodgain.errors import InputError
from goodgain.files.bad_rows import quote


def load_data_set(dataset_id: str) -> Any:
    """Return a data set of ir_datasets; None if this library is not installed, or has no such data set."""
    try:
        import ir_datasets

        return ir_datasets.load(dataset_id)
    except (ImportError, KeyError, ValueError):
        return None


def read_judged_data_set(dataset_id: str) -> Any:
    """Return the judgments of a data set of ir_datasets as named tuples."""
    dataset = load_data_set(dataset_id)
    if dataset is None:
        remedy = "give the path of a readable file"
        raise InputError(f"{quote(dataset_id)}: no such file, and not an ir_datasets id; {remedy}")
    if not dataset.has_qrels():
        raise InputError(f"{dataset_id}: this ir_datasets data set has no qrels; give another data set, or a file")
    try:
        return list(dataset.qrels_iter())
    except Exception as error:  # any error of a download or a parser
        raise InputError(f"{dataset_id}: ir_datasets did not return its qrels ({error}). Give a file") from error
