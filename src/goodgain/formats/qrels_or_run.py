"""Tells files of qrels from files of runs."""

from pathlib import Path

from goodgain.errors import InputError
from goodgain.files.bad_rows import number_lines, number_rows
from goodgain.files.json_text import begins_json, parse_if_json, read_nested
from goodgain.files.opening import container, read_bytes
from goodgain.files.table_reading import read_container
from goodgain.formats import any_source
from goodgain.formats.any_source import Columns
from goodgain.schema import QRELS


def looks_like_qrels(path: Path, columns: Columns | None = None) -> bool:
    """Return whether a file has the columns of qrels. In TREC text the number of fields in the first line decides."""
    if any_source.exists(path) and not path.is_file() and not path.is_dir():
        raise InputError(f"{path}: is a pipe, which can be read only once; give a file")
    kind = container(path)
    content = read_bytes(path)
    is_json = kind == "text" and begins_json(content)
    if is_json and any_source.is_of_tasks(content):
        return True
    nested = read_nested(content) if is_json else None
    if nested is not None:  # ranx and pytrec_eval write scores as floats
        return all(isinstance(value, int) for documents in nested.values() for value in documents.values())

    names: list[str] | None
    if kind in ("parquet", "arrow"):
        names = read_container(content, path, kind, rows=1).columns
    elif kind == "jsonl" or is_json:
        first_line = next(number_lines(content), (0, b""))[1]
        record = parse_if_json(first_line.decode(errors="replace"))
        names = [*record] if isinstance(record, dict) else []
    else:
        names = any_source.find_header(content, path, columns or {})
    if names is None:
        first_row = next(number_rows(content), (0, b""))[1]
        return len(first_row.split()) == len(QRELS.columns)

    matched = any_source.find_columns(names, QRELS, columns or {}, label="the file")
    if "relevance" in matched.understood.values():  # a synonym does not count beside a rank or score
        return not {"rank", "score"} & {*names}
    return "relevance" in matched.names.values()
