"""Which documents were opened and cited: the counts of each format by hand, and the rules that join them to results."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import GoodgainNotice, InputError
from goodgain.schema import USES
from goodgain.traces import convert_traces, read_results, read_traces
from goodgain.traces.tool_outputs.outcomes import brings_no_page

from .conftest import STEPS
from .logs import WRITERS, Call, Story, Turn, docs
from .use_logs import HOSTED, Counted

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
NO_QUESTION = {"browsecomp_plus", "tau_bench", "langfuse", "langsmith", "mlflow"}


def rows_of(uses: pl.DataFrame) -> dict[str, Row]:
    found = uses.select("doc_id", "returned_at", "rank", "opened_at", "opens", "failed_opens", "cited").sort("doc_id")
    return {row[0]: row[1:] for row in found.iter_rows()}  # type: ignore[misc]  # as many as columns


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


@pytest.mark.parametrize("counted", HOSTED, ids=[f"{one.format}-{one.file}" for one in HOSTED])
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_hosted_tools_and_structured_citations_are_read_to_their_counts(counted: Counted, tmp_path: Path) -> None:
    path = tmp_path / counted.file
    path.write_text(counted.log if isinstance(counted.log, str) else json.dumps(counted.log))
    found: list[str] = []
    _, uses = read_traces(
        path, uses=True, unrecorded="empty", **STEPS, report=lambda summary: found.extend(summary.formats)
    )
    assert found == [counted.format]
    totals = {
        name: dict(uses.filter(pl.col(name) > 0).select("doc_id", name).iter_rows())
        for name in ("opens", "failed_opens")
    }
    assert totals == {"opens": counted.opens, "failed_opens": counted.failed}
    assert set(uses.filter("cited").get_column("doc_id")) == counted.cited
    if not counted.opens:
        assert uses.get_column("opens").null_count() == uses.height, "unknown, not zero"


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


def test_another_page_of_a_site_is_a_document_of_its_own(read: Read) -> None:
    uses = read(_chat(*_search(f"{DRESDEN}?page=1"), *_visit(f"{DRESDEN}?page=2"), _says("So it is.")))
    assert rows_of(uses) == {
        f"{DRESDEN}?page=1": (1, 1, None, 0, 0, False), f"{DRESDEN}?page=2": (None, None, 1, 1, 0, False)
    }  # fmt: skip


def test_a_url_that_was_returned_as_it_stands_is_that_result_though_another_spelling_was_returned_too(
    read: Read,
) -> None:
    mobile = "https://m.dw.com/dresden"
    uses = read(_chat(*_search(mobile, DRESDEN), *_visit(mobile), _says("So.")))
    assert uses.filter(pl.col("opens") > 0).get_column("doc_id").to_list() == [mobile]


def test_two_spellings_of_a_page_that_no_search_returned_are_one_document(read: Read) -> None:
    uses = read(
        _chat(*_search("https://a.example/1"), *_visit(DRESDEN), *_visit(f"http://www.{DRESDEN[8:]}/"), _says("So."))
    )
    assert rows_of(uses.filter(doc_id=DRESDEN.replace("https", "http").replace("dw", "www.dw") + "/")) == {
        "http://www.dw.com/dresden/": (None, None, 1, 2, 0, False)
    }


def test_an_open_beside_a_search_belongs_to_the_iteration_before_and_is_0_before_any(read: Read) -> None:
    first, second = f"{PAGES}1", f"{PAGES}2"
    beside = [
        _calls(("search", {"query": "b"}), ("visit", {"url": second})),
        _told("search", {"query": "b"}, [{"url": second}]), _told("visit", {"url": second}, "A page."),
    ]  # fmt: skip
    uses = read(_chat(*_visit(first), *_search(first), *beside, _says("So.")))
    assert rows_of(uses) == {first: (1, 1, 0, 1, 0, False), second: (2, 1, 1, 1, 0, False)}


def test_a_document_whose_every_open_failed_was_not_opened(read: Read) -> None:
    failures = ["", "Error: timed out", "404 Not Found", {"error": "blocked"}, {"url": DRESDEN, "content": ""}, []]
    uses = read(_chat(*_search(DRESDEN), *(one for told in failures for one in _visit(DRESDEN, told)), _says("So.")))
    assert rows_of(uses) == {DRESDEN: (1, 1, None, len(failures), len(failures), False)}
    uses = read(
        _chat(*_search(DRESDEN), *_visit(DRESDEN, ""), *_search(f"{PAGES}1", query="r"), *_visit(DRESDEN), _says("So."))
    )
    assert rows_of(uses)[DRESDEN] == (1, 1, 2, 2, 1, False)


def test_pages_that_mention_errors_are_pages() -> None:
    pages = [
        "Errors in BM25 are rare.",
        "No results were better than these: " + "x " * 600,
        {"text": "Not found?", "error": None},
    ]
    assert [brings_no_page(page) for page in pages[:1] + pages[2:]] == [False, True]
    assert not brings_no_page(pages[1])


def test_a_number_that_refers_to_a_result_is_that_result_of_the_last_search(read: Read) -> None:
    opened = [_calls(("open_result_page", {"cursor": 2})), _told("open_result_page", {"cursor": 2}, "A page.")]
    uses = read(
        _chat(*_search(f"{PAGES}1", f"{PAGES}2"), *_search(f"{PAGES}3", f"{PAGES}4", query="r"), *opened, _says("So."))
    )
    assert uses.filter(pl.col("opens") > 0).get_column("doc_id").to_list() == [f"{PAGES}4"]


def test_ids_that_each_search_numbers_anew_name_the_result_of_the_last_search(read: Read) -> None:
    def found(query: str, *urls: str) -> list[Json]:
        results = [{"id": str(number), "url": url, "title": url} for number, url in enumerate(urls, start=1)]
        return [_calls(("search", {"query": query})), _told("search", {"query": query}, results)]

    opened = [_calls(("get_document", {"id": 1})), _told("get_document", {"id": 1}, "A page.")]
    log = _chat(*found("a", f"{PAGES}1"), *opened, *found("b", f"{PAGES}2"), _says("So."))
    (uses,) = [read(log)]
    assert uses.filter(pl.col("opens") > 0).select("doc_id", "opened_at").rows() == [("1", 1)]


def test_an_open_whose_document_the_log_does_not_name_is_counted_in_a_notice(read: Read) -> None:
    log = _chat(
        *_search(DRESDEN), _calls(("open_page", {"page": 3})), _told("open_page", {"page": 3}, "A page."), _says("So.")
    )
    with pytest.warns(GoodgainNotice, match="1 calls of tools that open documents name none"):
        assert rows_of(read(log)) == {DRESDEN: (1, 1, None, 0, 0, False)}


@pytest.mark.parametrize("asked", ["", {"ref_id": "turn0search0"}])
def test_a_log_that_hides_which_document_was_opened_has_no_zeros_in_its_query(asked: Json, read: Read) -> None:
    log = _chat(*_search(DRESDEN), _calls(("open_page", asked)), _told("open_page", asked, "A page."), _says("So."))
    with pytest.warns(GoodgainNotice, match="1 calls of tools that open documents name none"):
        assert rows_of(read(log)) == {DRESDEN: (1, 1, None, None, None, False)}


def test_a_log_without_opens_or_without_an_answer_says_so_and_has_no_zeros(read: Read) -> None:
    with pytest.warns(GoodgainNotice, match="goodgain: the logs have no call that opens a document"):
        assert rows_of(read(_chat(*_search(DRESDEN), _says(DRESDEN)))) == {DRESDEN: (1, 1, None, None, None, True)}
    with pytest.warns(GoodgainNotice, match="goodgain: the logs have no final answer"):
        assert rows_of(read(_chat(*_search(DRESDEN), *_visit(DRESDEN)))) == {DRESDEN: (1, 1, 1, 1, 0, None)}


def test_a_tool_that_is_named_as_opening_makes_its_absence_a_zero(read: Read) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = _chat(
            *_search(DRESDEN),
            _calls(("look_at", {"url": DRESDEN})),
            _told("look_at", {"url": DRESDEN}, "x"),
            _says("So."),
        )
        assert rows_of(read(log, tools="look_at=open")) == {DRESDEN: (1, 1, 1, 1, 0, False)}
        assert rows_of(read(log, tools=["search", "look_at=open"])) == {DRESDEN: (1, 1, 1, 1, 0, False)}
        idle = _chat(*_search(DRESDEN), _says("So."))
        assert rows_of(read(idle, tools=["look_at=open"])) == {DRESDEN: (1, 1, None, 0, 0, False)}


def test_a_query_that_used_nothing_has_one_row(read: Read) -> None:
    uses = read(_chat(_says("So it is.")), tools="visit=open")
    assert rows_of(uses) == {"-": (None, None, None, 0, 0, False)}


def test_urls_of_the_question_alone_are_no_citations(read: Read) -> None:
    asked = f"Is {DRESDEN} right about {PAGES}1?"
    said = _says(f"{DRESDEN} and {PAGES}1 are.")
    uses = read(_chat(*_search(f"{PAGES}1"), *_visit(f"{PAGES}1"), said, question=asked))
    assert rows_of(uses) == {f"{PAGES}1": (1, 1, 1, 1, 0, True)}


def test_a_text_before_the_last_call_is_not_the_answer(read: Read) -> None:
    last = _calls(("visit", {"url": f"{PAGES}2"}))
    uses = read(
        _chat(*_search(DRESDEN), {**_visit(f"{PAGES}1")[0], "content": DRESDEN}, *_visit(f"{PAGES}1")[1:], _says("So."))
    )
    assert uses.get_column("cited").to_list() == [False, False]
    with pytest.warns(GoodgainNotice, match="no final answer"):
        uses = read(_chat(*_search(DRESDEN), {**last, "content": f"I read on, see {DRESDEN}."}))
    assert uses.get_column("cited").null_count() == uses.height


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("(see https://a.example/x).", "https://a.example/x"),
        ("https://en.example/wiki/BM25_(ranking), or", "https://en.example/wiki/BM25_(ranking)"),
        ("[BM25](https://a.example/x_(y)).", "https://a.example/x_(y)"),
        ("**https://a.example/x**", "https://a.example/x"),
        ("<https://a.example/x>", "https://a.example/x"),
        ("见https://a.example/x。", "https://a.example/x"),
    ],
)
def test_a_url_ends_before_the_punctuation_of_its_sentence(text: str, url: str, read: Read) -> None:
    uses = read(_chat(*_search(DRESDEN), _says(text)), tools="visit=open")
    assert uses.filter("cited").get_column("doc_id").to_list() == [url]


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


@pytest.mark.filterwarnings("ignore:the traces have no tokens:goodgain.GoodgainNotice")
def test_convert_and_read_traces_give_the_same_uses_where_results_have_ids(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text(WRITERS["openai_chat"][0](STORY))
    convert_traces(path, tmp_path / "story.run", uses=tmp_path / "uses.parquet")
    results, costs, uses = read_traces(path, uses=True, costs=True)
    assert rows_of(pl.read_parquet(tmp_path / "uses.parquet")) == rows_of(uses) == OF_STORY
    assert results.height == 4 and costs.height
    with pytest.raises(InputError, match="uses=2 is not known"):
        read_traces(path, uses=2)
