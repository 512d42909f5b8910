"""Which documents were opened and cited: the counts of each format by hand, and the rules that join them to results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import InputError
from goodgain.logs.traces import convert_traces, read_results, read_traces
from goodgain.logs.traces.tool_outputs.outcomes import brings_no_page
from goodgain.schema import USES

from .conftest import STEPS
from .logs import WRITERS, Call, Story, Turn, docs

Json = Any
PAGES = "https://pages.example.org/"


def visit(**arguments: Json) -> Call:
    return Call("BM25 ranks documents by the words of the query.", tool="visit", arguments=arguments)


#: Iteration 1 returns d1 and d4; d4 is opened, and d7, which fails. Iteration 2 returns d2 and d1; d2 and a link are opened
#: after it. The answer cites d2, d4 and a page that nobody opened. The same page stands in the question.
STORY = Story(
    [
        Turn([[Call(docs("d5"))], [visit(docid="d5")]], answer="See [d5]."),
        Turn(
            [
                [Call(docs("d1", "d4"))],
                [visit(docid="d4")],
                [Call("Error executing visit: timed out", tool="visit", arguments={"docid": "d7"}, failed=True)],
                [Call(docs("d2", "d1"))],
                [visit(docid="d2")],
                [visit(url=f"{PAGES}d9")],
                [visit(docid="d2")],
            ],
            user="What does https://asked.example.org/page say?",
            answer=f"It says so [d2], [d4, d8], and https://asked.example.org/page repeats it: [more]({PAGES}d6).",
        ),
    ]
)
#: doc_id -> returned_at, rank, opened_at, opens, failed_opens, cited.
Row = tuple[int | None, int | None, int | None, int | None, int | None, bool | None]
OF_STORY: dict[str, Row] = {
    "d1": (1, 1, None, 0, 0, False),
    "d2": (2, 1, 2, 2, 0, True),
    "d4": (1, 2, 1, 1, 0, True),
    "d7": (None, None, None, 1, 1, False),
    f"{PAGES}d6": (None, None, None, 0, 0, True),
    f"{PAGES}d9": (None, None, 2, 1, 0, False),
}
#: The logs of these formats, as the tests write them, lack the question.
NO_QUESTION = {"browsecomp_plus", "langfuse", "langsmith", "mlflow", "openai_agents_traces"}


def rows_of(uses: pl.DataFrame) -> dict[str, Row]:
    rows = uses.select("doc_id", "returned_at", "rank", "opened_at", "opens", "failed_opens", "cited").sort("doc_id")
    return {row[0]: row[1:] for row in rows.iter_rows()}  # type: ignore[misc]  # as many as columns


@pytest.mark.filterwarnings("ignore:mcp|.*no final answer:goodgain.GoodgainNotice")
def test_every_format_tells_the_story_of_what_was_opened_and_cited(
    form: str, written: Callable[[str, Story], Path]
) -> None:
    results, uses = read_traces(written(form, STORY), uses=True, **STEPS)
    assert results.equals(read_traces(written(form, STORY), **STEPS)), "the results are the same"
    expected = OF_STORY
    if form == "mcp":  # it has no answers
        expected = {name: (*row[:5], None) for name, row in OF_STORY.items() if name != f"{PAGES}d6"}
    if form in NO_QUESTION:
        expected = {**expected, "https://asked.example.org/page": OF_STORY[f"{PAGES}d6"]}
    assert rows_of(uses) == expected
    assert uses.schema == USES.polars


def _chat(*messages: Json, question: str = "What?") -> Json:
    return [{"role": "user", "content": question}, *messages]


def _calls(*calls: tuple[str, Json]) -> Json:
    made = [
        {
            "id": f"{name}{json.dumps(asked)}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(asked)},
        }
        for name, asked in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _told(name: str, asked: Json, output: Json) -> Json:
    text = output if isinstance(output, str) else json.dumps(output)
    return {"role": "tool", "tool_call_id": f"{name}{json.dumps(asked)}", "content": text}


def _says(text: str) -> Json:
    return {"role": "assistant", "content": text}


def _search(*urls: str, query: str = "q") -> list[Json]:
    found = [{"url": url, "title": f"Title of {url}"} for url in urls]
    return [_calls(("search", {"query": query})), _told("search", {"query": query}, found)]


def _visit(url: str, output: Json = "A page.") -> list[Json]:
    return [_calls(("visit", {"url": url})), _told("visit", {"url": url}, output)]


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., pl.DataFrame]:
    """Writes a chat, and reads its uses."""

    def write_and_read(log: Json, **options: Any) -> pl.DataFrame:
        (tmp_path / "q.json").write_text(json.dumps(log))
        return read_traces(tmp_path / "q.json", uses=True, **options)[1]

    return write_and_read


Read = Callable[..., pl.DataFrame]
DRESDEN = "https://dw.com/dresden"


@pytest.mark.parametrize(
    "spelling",
    [
        "http://www.dw.com/dresden/",
        "https://m.dw.com/dresden?utm_source=x",
        f"{DRESDEN}#:~:text=x",
        "dw.com/dresden",
        f"{DRESDEN}/index.html",
    ],
)
def test_a_page_opened_and_cited_under_another_spelling_of_its_url_is_the_document_that_was_returned(
    spelling: str, read: Read
) -> None:
    cited = spelling if "://" in spelling else DRESDEN
    uses = read(_chat(*_search(DRESDEN), *_visit(spelling), _says(f"So it is ({cited}).")))
    assert rows_of(uses) == {DRESDEN: (1, 1, 1, 1, 0, True)}
    assert gg.deduplicate(pl.DataFrame({"query_id": "q", "url": [DRESDEN, spelling]})).frame["document"].n_unique() == 1


def test_pages_that_mention_errors_are_pages() -> None:
    pages = [
        "Errors in BM25 are rare.",
        "No results were better than these: " + "x " * 600,
        {"text": "Not found?", "error": None},
    ]
    assert [brings_no_page(page) for page in pages[:1] + pages[2:]] == [False, True]
    assert not brings_no_page(pages[1])


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_convert_writes_uses_with_the_documents_of_deduplication(tmp_path: Path) -> None:
    mobile, own = "https://m.dw.com/dresden/", f"http://www.{PAGES[8:]}1/"
    logs = {
        "old": _chat(*_search(DRESDEN), *_visit(f"{PAGES}1"), _says("So.")),
        "new": _chat(*_search(mobile, f"{PAGES}1"), *_visit("https://www.dw.com/dresden"), _says(f"See {own}.")),
        "never": _chat(*_search(mobile), _says("So.")),
    }
    for name, log in logs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "q.json").write_text(json.dumps(log))
    paths = {name: tmp_path / name / "q.json" for name in logs}
    convert_traces(
        paths, tmp_path / "{system}.run", uses=tmp_path / "uses.jsonl", results=tmp_path / "results.jsonl",
        deduplicate=gg.deduplicate,
    )  # fmt: skip
    documents = read_results(tmp_path / "results.jsonl").select("url", "document").unique()
    dresden, page = (documents.filter(url=url).item(0, "document") for url in (mobile, f"{PAGES}1"))
    uses = pl.read_ndjson(tmp_path / "uses.jsonl")
    assert {name: rows_of(uses.filter(system=name)) for name in logs} == {
        "old": {dresden: (1, 1, None, 0, 0, False), page: (None, None, 1, 1, 0, False)},
        "new": {dresden: (1, 1, 1, 1, 0, False), page: (1, 2, None, 0, 0, True)},
        "never": {dresden: (1, 1, None, None, None, False)},
    }

    convert_traces(
        paths["old"], tmp_path / "later.run", uses=tmp_path / "later.parquet", tag="later", deduplicate=gg.deduplicate,
        earlier=tmp_path / "results.jsonl",
    )  # fmt: skip
    later = pl.read_parquet(tmp_path / "later.parquet")
    assert rows_of(later) == rows_of(uses.filter(system="old")) and set(later.get_column("system")) == {"later"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:goodgain reads no tokens:goodgain.GoodgainNotice")
def test_convert_and_read_traces_give_the_same_uses_where_results_have_ids(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text(WRITERS["openai_chat"][0](STORY))
    convert_traces(path, tmp_path / "story.run", uses=tmp_path / "uses.parquet")
    results, costs, uses = read_traces(path, uses=True, costs=True)
    assert rows_of(pl.read_parquet(tmp_path / "uses.parquet")) == rows_of(uses) == OF_STORY
    assert results.height == 4 and costs.height
    with pytest.raises(InputError, match="uses=2 is not known"):
        read_traces(path, uses=2)
