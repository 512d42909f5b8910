"""Reads one file of grades: a table in long form, a sheet of `goodgain pool`, qrels, or the export of a judging tool.

A book of Quepid and the output of RAGElo are CSV. A judgment list of OpenSearch and the output of autonuggetizer are JSON.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from goodgain.counting.run_opening import number_repeats
from goodgain.errors import InputError, notice
from goodgain.files.bad_rows import FrameRows, RowSource
from goodgain.files.delimited import check_texts, pick_columns, read_cells
from goodgain.files.escaping import unguard_ids
from goodgain.files.json_rows import ObjectRows, iterate_objects
from goodgain.files.json_text import NotJSONError, loads_exactly
from goodgain.files.opening import container, plain_name, read_bytes, read_lines, separator_by_name
from goodgain.files.table_reading import read_table
from goodgain.files.trec_text import read_text
from goodgain.formats.label_rules import GRADES_OF_NUGGETS
from goodgain.schema import QRELS

#: Names of the grade column, in long form and in qrels.
GRADE = ("grade", "relevance")
#: Columns of a RAGElo file about documents. The answer is the grade.
_RAGELO = {"did", "raw_answer", "answer"}
_TYPES = dict.fromkeys(("query_id", "doc_id", "judge", "grade"), pl.String)

#: The grades of one source, and the names of rows in errors. The columns are query_id, doc_id, grade (of any type), row,
#: judge if the source names judges, and subtopic if the source grades nuggets.
GradesAndRows = tuple[pl.DataFrame, RowSource]


def open_grade_file(path: Path) -> GradesAndRows:
    """Read the grades of a file. The file name determines the format."""
    kind = container(path)
    separator = separator_by_name(path)
    if separator is not None:
        return _read_delimited(path, separator)
    if kind == "jsonl" or Path(plain_name(path.name)).suffix.lower() == ".json":
        return _read_json(path, lines=kind == "jsonl")
    if kind == "text":
        return _read_trec(path)
    frame, rows, _ = read_table(path, _TYPES, find=lambda names: _find_grades(names, str(path)))
    return frame.with_row_index("row"), rows


def _read_delimited(path: Path, separator: str) -> GradesAndRows:
    """Read a book of Quepid, or a table in long form. Ids lose the apostrophe that `pool` writes against formulas."""
    content = read_lines(path)
    if not content.data.strip():
        raise InputError(f"{path}: is empty; give a file with a header and one grade per line")
    cells = read_cells(content, separator, path, errors=None)
    if _is_quepid_book(cells.names, str(path)):
        check_texts(cells.frame.select("0", "1").rename({"0": "query", "1": "docid"}), separator, cells.rows)
        return _read_quepid_book(cells.frame, cells.names), cells.rows
    grades = pick_columns(cells, _TYPES, lambda names: _find_grades(names, str(path)))
    frame = unguard_ids(grades.frame, ["query_id", "doc_id"], str(path))
    return frame.with_row_index("row"), grades.rows


def _read_trec(path: Path) -> GradesAndRows:
    """Read qrels in TREC text. If column 2 has several values, they are read as judges (trec_eval's `qrels_jg`)."""
    content = read_lines(path)
    frame, lines, *_ = read_text(content, QRELS, label=str(path), errors="raise")
    judges = frame.get_column("iteration")
    frame = frame.rename({"relevance": "grade", "iteration": "judge"}).with_row_index("row")
    if judges.n_unique() < 2:
        return frame.drop("judge"), lines
    if judges.str.contains(r"^\+?[0-9]+$").all():
        notice(
            "column_2_of_grades",
            f"{path}: column 2 holds different numbers and is read as the judge (trec_eval's qrels_jg). If these numbers "
            "are iterations or subtopics, replace them by 0",
        )
    return frame, lines


def _find_grades(names: Sequence[str], label: str) -> dict[str, str]:
    """Return {column of the source: its name here} for a table in long form. Raise an InputError if one is missing or unclear."""
    query = next((name for name in ("query_id", "qid") if name in names), None)
    if set(names) >= _RAGELO and query is not None:
        return {query: "query_id", "did": "doc_id", "answer": "grade"}

    grade_names = [name for name in GRADE if name in names]
    if len(grade_names) > 1:
        raise InputError(
            f"{label}: has two columns that may be the grade, {' and '.join(grade_names)}; remove or rename one"
        )
    missing = [name for name in ("query_id", "doc_id") if name not in names]
    if not grade_names:
        missing.append("grade")
    if missing:
        # a name with an at sign may be an e-mail address: messages must not show it
        listed = ", ".join("(an address)" if "@" in name else name[:40] for name in names[:8])
        if len(names) > 8:
            listed += " ..."
        raise InputError(
            f"{label}: there is no column {', '.join(missing)} (found: {listed}); give "
            "grades with the columns query_id, doc_id, judge, grade, or the export of a judging tool (a Quepid book, an OpenSearch "
            "judgment list)"
        )
    own_names = {name: name for name in ("query_id", "doc_id", "judge") if name in names}
    return own_names | {grade_names[0]: "grade"}


def name_columns(frame: pl.DataFrame, label: str) -> pl.DataFrame:
    our_names = _find_grades(frame.columns, label)
    columns = [pl.col(name).alias(our_name) for name, our_name in our_names.items()]
    return frame.select(columns).with_row_index("row")


def _is_quepid_book(columns: Sequence[str], label: str) -> bool:
    """Return whether the columns are those of a book. Raise an InputError for other exports of Quepid, which have no raters."""
    names = [name.strip().lower() for name in columns]
    if names[:2] != ["query", "docid"]:
        return False
    if names[2:] == ["rating"]:
        raise InputError(
            f"{label}: this export of a Quepid case has only averaged, rounded ratings; export the book, which has a column for "
            "each rater"
        )
    if len(names) == 2:
        raise InputError(f"{label}: is a Quepid book without a rater; export it again when documents have been judged")
    return True


def _read_quepid_book(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return a row for each line and rater of a Quepid book. A cell `1|3` holds the grades of two raters."""
    frame.columns = ["query_id", "doc_id", *number_repeats(names[2:])]
    index = ["row", "query_id", "doc_id"]
    cells = frame.with_row_index("row").unpivot(index=index, variable_name="judge", value_name="grade")
    grades = cells.with_columns(pl.col("grade").fill_null("").str.split("|"))
    grades = grades.with_columns(number=pl.int_ranges(1, pl.col("grade").list.len() + 1)).explode("grade", "number")
    second_rater = pl.format("{} [{}]", "judge", "number")
    judge = pl.when(pl.col("number") > 1).then(second_rater).otherwise(pl.col("judge")).alias("judge")
    return grades.select("row", "query_id", "doc_id", judge, "grade").sort("row", maintain_order=True)


def _read_json(path: Path, *, lines: bool) -> GradesAndRows:
    """Read the grades of all objects in a file. An object may hold several. An InputError counts lines or objects from 1."""
    unit = "line" if lines else "object"
    types = _TYPES | {"subtopic": pl.String}
    rows = ObjectRows(types, refuse=partial(_refuse, f"{path}, {unit}"))
    if lines:
        objects = iterate_objects(read_lines(path), rows.refuse)
    else:
        objects = _parse_objects(path, rows.refuse)

    for number, value in objects:
        try:
            grades = list(_read_object(value))
        except ValueError as error:
            rows.refuse(number, str(error))  # raises InputError, as `_refuse` does
        for grade in grades:
            rows.add(number, grade)

    frame, object_numbers = rows.to_frame()  # one number per row: an object can hold several grades
    if frame.is_empty():
        raise InputError(f"{path}: has no grades; give a file that has some")
    return frame.with_row_index("row"), FrameRows(str(path), object_numbers, f"counting {unit}s from 1")


def _parse_objects(path: Path, refuse: Callable[[int, str], None]) -> Iterator[tuple[int, Any]]:
    try:
        value = loads_exactly(read_bytes(path).data)
    except NotJSONError as error:
        refuse(1, error.fault)
    return enumerate(value if isinstance(value, list) else [value], start=1)


def _refuse(label: str, number: int, fault: str) -> NoReturn:
    """Raise `InputError` without the object's text: the text may name a judge, and messages never name judges."""
    raise InputError(f"{label} {number}: {fault}; correct it")


def _read_object(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the grades in one JSON object: rows with query_id, doc_id and grade, and judge or subtopic if known."""
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    judge = {"judge": value["judge"]} if "judge" in value else {}
    if isinstance(value.get("judgmentRatings"), list):
        for entry in value["judgmentRatings"]:
            yield from (judge | grade for grade in _read_object(entry))
    elif isinstance(value.get("ratings"), list) and "query" in value:
        for rating in value["ratings"]:
            if not isinstance(rating, dict) or not {"docId", "rating"} <= rating.keys():
                raise ValueError("has a rating without docId or rating (an OpenSearch judgment list has both)")
            yield judge | {"query_id": value["query"], "doc_id": rating["docId"], "grade": rating["rating"]}
    elif isinstance(value.get("nuggets"), list):
        yield from _grade_nuggets(value)
    else:
        yield _read_grade(value)


def _read_grade(value: dict[str, Any]) -> dict[str, Any]:
    """Return the one grade of an object in long form."""
    if {"passage", "judgment"} <= value.keys() and "doc_id" not in value:
        raise ValueError(
            "is a judgment of umbrela without the ids of query and document; give the qrels that `umbrela evaluate` writes into "
            "modified_qrels"
        )
    if "grade" in value and "relevance" in value:
        raise ValueError("has two fields that may be the grade: grade and relevance")
    name = "relevance" if "relevance" in value else "grade"
    missing = [key for key in ("query_id", "doc_id", name) if key not in value]
    if missing:
        raise ValueError(
            f"has no {', '.join(missing)}, and is not an entry of an OpenSearch judgment list "
            '({"query": ..., "ratings": [...]})'
        )
    return value if name == "grade" else {**value, "grade": value[name]}


def _grade_nuggets(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a grade for each nugget of a document. A document without nuggets gets the grade 0."""
    if "docid" not in value or "qid" not in value:
        raise ValueError(
            "has nuggets, but no qid and docid: nuggets of an answer do not grade documents; give the file that nuggetizer "
            "assign-retrieval wrote"
        )
    document = {"query_id": value["qid"], "doc_id": value["docid"], "grade": 0}
    for nugget in value["nuggets"]:
        fields = nugget if isinstance(nugget, dict) else {}
        support = fields.get("assignment")
        if not isinstance(support, str) or support not in GRADES_OF_NUGGETS:
            raise ValueError(f"has a nugget whose assignment is not {', '.join(sorted(GRADES_OF_NUGGETS))}")
        if not isinstance(fields.get("text"), str):
            raise ValueError("has a nugget without a text")
        is_vital = fields.get("importance") == "vital"
        grade = GRADES_OF_NUGGETS[support] + (is_vital and support == "support")  # one more for a vital nugget
        yield document | {"subtopic": fields["text"], "grade": grade}
    if not value["nuggets"]:
        yield document
