"""Writes the page on which people judge a pool: one HTML file that works offline and sends nothing."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.errors import InputError, count_of, notice
from goodgain.files.escaping import guard_formulas
from goodgain.files.opening import stem
from goodgain.files.pages import is_web_address, render_page
from goodgain.files.writing import atomic_write
from goodgain.judgments.judging.documents_to_judge import check_ids_for_csv
from goodgain.judgments.judging.grade_table import DOCUMENT
from goodgain.judgments.scales import ScaleLike, find_scale
from goodgain.options import SEED, spell

_PAGE = Path(__file__).parent / "page"
#: Characters that the page keeps of a title.
_LONGEST_TITLE = 400
#: The endings of the file.
PAGES = (".html", ".htm")


def write_judging_page(
    pooled: pl.DataFrame,
    path: str | os.PathLike[str],
    *,
    scale: ScaleLike = "good-gain",
    seed: int = SEED,
    spreadsheet: bool = False,
) -> None:
    """Write a page that shows the documents of a pool one by one, and saves a judge's grades as a file for `judge`.

    Args:
        pooled: what `pool` returns. Queries keep this order. Each judge gets the documents of a query in an own random order.
        path: the file to write.
        scale: the grades of the page, with their meanings.
        seed: the seed of the orders.
        spreadsheet: whether the saved file guards ids that look like formulas. `judge` reads both.

    Raises:
        InputError: the pool is empty, the scale is unknown, CSV cannot hold an id, or the file cannot be written.

    >>> import pathlib, tempfile
    >>> import goodgain as gg
    >>> pooled = gg.pool({"old": {"q": {"a": 2.0, "b": 1.0}}}, queries={"q": "who built the dam?"}, texts={"a": "A", "b": "B"})
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "sheet.html"
    >>> write_judging_page(pooled, path, scale="binary")
    >>> "who built the dam?" in path.read_text()
    True
    """
    path = Path(path)
    known = find_scale(scale)
    if pooled.is_empty():
        raise InputError(
            f"{path}: there is no document to judge. The runs are empty, or all their documents have labels"
        )
    check_ids_for_csv(pooled, path)
    grades = [
        (int(grade) if grade == int(grade) else grade, *_divide_meaning(meaning))
        for grade, (_, meaning) in zip(known.grades, known.list_meanings(), strict=True)
    ]
    questions, documents = _list_questions(pooled), _list_documents(pooled)
    data: dict[str, Any] = {
        "sheet": stem(path),
        "seed": seed,
        "grades": grades,
        "questions": questions,
        "documents": documents,
        "ids": _write_ids(pooled, spreadsheet=spreadsheet),
    }
    # grades that a browser keeps are those of this sheet
    kept = [data[name] for name in ("grades", "questions", "documents", "ids")]
    data["key"] = hashlib.sha256(json.dumps(kept).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    page = render_page(
        _PAGE,
        "judging",
        data=data,
        title=f"Judge {stem(path)}",
        documents=count_of(len(documents), "document"),
        questions=count_of(len(questions), "question"),
        meanings=grades,
        advice=_write_advice(documents),
    )
    with atomic_write(path) as file:
        file.write(page.encode())
    _warn_of_missing_texts(pooled, documents)


def _divide_meaning(meaning: str) -> tuple[str, str]:
    name, _, explanation = meaning.partition(": ")
    return name, explanation


def _list_questions(pooled: pl.DataFrame) -> list[tuple[str, str | None]]:
    """Return the text and the description of each query, in the order of the pool."""
    queries = pooled.unique("query_id", keep="first", maintain_order=True)
    texts = _find_texts(queries, "query")
    descriptions = _find_texts(queries, "description")
    ids = queries.get_column("query_id")
    return [(text or query_id, more) for query_id, text, more in zip(ids, texts, descriptions, strict=True)]


def _list_documents(pooled: pl.DataFrame) -> list[tuple[int, str, str | None, list[str]]]:
    """Return the number of the question, the title, the address of the web (or None) and the lines of the text."""
    query_ids = pooled.get_column("query_id")
    number_of = {query_id: number for number, query_id in enumerate(query_ids.unique(maintain_order=True))}
    titles, urls = _find_texts(pooled, "title"), _find_texts(pooled, "url")
    bodies = [
        text or snippet
        for text, snippet in zip(_find_texts(pooled, "text"), _find_texts(pooled, "snippet"), strict=True)
    ]
    documents = []
    rows = zip(query_ids, pooled.get_column("doc_id"), titles, urls, bodies, strict=True)
    for query_id, doc_id, title, url, body in rows:
        address = next((text for text in (url, doc_id) if text and is_web_address(text)), None)
        lines = [line.strip() for line in (body or "").splitlines() if line.strip()]
        name = (title or doc_id)[:_LONGEST_TITLE]
        documents.append((number_of[query_id], name, address, lines))
    return documents


def _write_advice(documents: list[tuple[int, str, str | None, list[str]]]) -> str:
    """Return the advice to judges, by what the page shows of the documents: texts, addresses, or titles alone."""
    has_text = any(lines for *_, lines in documents)
    has_address = any(address for _, _, address, _ in documents)
    if not has_text and not has_address:
        return "Only the titles of the documents are known. Judge by the title."
    advice = "Judge what the document says, not how you like it."
    if not has_text:
        return f"{advice} To read a document, open its address."
    return f"{advice} If you need more of it, open its address." if has_address else advice


def _find_texts(frame: pl.DataFrame, name: str) -> Iterable[str | None]:
    return frame.get_column(name).to_list() if name in frame.columns else [None] * frame.height


def _write_ids(pooled: pl.DataFrame, *, spreadsheet: bool) -> str:
    """Return the ids as JSON in ASCII: the page keeps each character, and escapes none for display."""
    ids = guard_formulas(pooled.select(DOCUMENT), again=not spreadsheet)
    return json.dumps(ids.rows())


def _warn_of_missing_texts(pooled: pl.DataFrame, documents: list[tuple[int, str, str | None, list[str]]]) -> None:
    """Give notices of questions without a text, and of documents that have a title or an address at most."""
    if "query" not in pooled.columns or pooled.get_column("query").null_count():
        lacking = pooled.filter(pl.col("query").is_null()) if "query" in pooled.columns else pooled
        number = count_of(lacking.get_column("query_id").n_unique(), "question has", "questions have")
        notice("questions_without_text", f"{number} no text, so judges see the query id. Give {spell('queries')}")
    addresses = [address for _, _, address, lines in documents if not lines]
    if addresses:
        number = f"{len(addresses):,} of {count_of(len(documents), 'document')}"
        seen = "only the title"
        if any(addresses):
            seen = "only title and address" if all(addresses) else "only the title, and the address of some"
        fact = f"judges see no text of {number}, {seen}"
        notice("documents_without_text", f"{fact}. Give {spell('texts')}, or {spell('results')} with snippets")
