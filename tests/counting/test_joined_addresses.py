"""Ids that spell the address of one web page in several ways are one document of a call, unless urls="keep"."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.counting import joined_addresses, run_in_blocks
from goodgain.counting.joined_addresses import join_labels
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.forms import FRAMES, in_blocks, in_every_form
from tests.support.notices import collect_notices
from tests.support.tables import no_notices

VIDEO, WATCH = "https://youtu.be/abcdefghijk", "https://www.youtube.com/watch?v=abcdefghijk&t=4"
JUDGED = "https://a.org/x?utm_source=k"
RUN = pl.DataFrame(
    {
        "query_id": ["q1"] * 5 + ["q2"],
        "iteration": [1, 1, 2, 2, 2, 1],
        "doc_id": ["http://www.a.org/x/", VIDEO, "https://a.org/x", "https://b.org/#A", "d1", "https://c.org"],
        "rank": [1, 2, 1, 2, 3, 1],
        "score": [2.0, 1.0, 3.0, 2.0, 1.0, 1.0],
    }
)
QRELS = {"q1": {JUDGED: 3, WATCH: 2, "https://b.org/#B": 2, "d1": 2}, "q2": {"https://c.org": 2}}
MEASURES = "CG NumDup NumUnique@1 SRR R@100"
JOINED = {"CG": (3 + 2 + 2 + 2) / 2, "NumDup": 1 / 2, "NumUnique@1": 3 / 2, "SRR": 1 / 10, "R@100": (3 / 4 + 1) / 2}
KEPT = {"CG": (2 + 2) / 2, "NumDup": 0, "NumUnique@1": 3 / 2, "SRR": 0, "R@100": (1 / 4 + 1) / 2}

pytestmark = pytest.mark.filterwarnings("ignore:.*coverage is low:goodgain.GoodgainNotice")


def means(qrels: Any, run: Any, measures: str = MEASURES, **options: Any) -> dict[str, float | None]:
    return gg.evaluate(qrels, run, measures, **options).mean()


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_the_worked_example_has_its_numbers_in_every_kind_of_run(tmp_path: Path) -> None:
    for run in in_every_form(RUN, tmp_path):
        assert means(QRELS, run) == pytest.approx(JOINED), run
        assert means(QRELS, run, urls="keep") == pytest.approx(KEPT), run


@pytest.mark.parametrize(
    ("old", "new"),
    [(" ", "\t"), ("1 ", "1  "), ("\nq1", "\n# q1 1 http://a.org/x 7 0 t\nq1"), ("\n", "\r\n"), ("\n", " and more\n")],
    ids=["tabs", "two blanks", "comments", "line ends", "longer lines"],
)
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_addresses_of_a_large_file_are_found_in_text_of_any_form(
    tmp_path: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_in_blocks, "_MOST_KEPT", 0)  # the ids alone are read first
    gg.write_run(RUN, path := tmp_path / "a.run")
    path.write_text(path.read_text().replace(old, new))
    assert means(QRELS, in_blocks(path, block=20)) == pytest.approx(JOINED)


def test_the_notice_says_how_many_ids_were_joined_and_in_how_many_queries_it_matters() -> None:
    with pytest.warns(
        gg.GoodgainNotice, match=r"one document: 3 ids \(such as .* for .*\). This affects 1 query. urls='keep'"
    ):
        gg.evaluate(QRELS, RUN, "CG")
    with no_notices():
        gg.evaluate({"q2": QRELS["q2"]}, RUN.filter(query_id="q2"), "CG")


def test_a_page_keeps_the_id_of_both_sides_or_of_the_runs_and_rows_that_meet_keep_the_largest_label() -> None:
    qrels = {"q": {"http://a.org/x/": 1, "https://www.a.org/x": 3, "https://a.org/y": 2, "https://b.org/": 0}}
    run = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["https://a.org/x", "https://a.org/x?gclid=1"]})
    both = run.vstack(run.head(1).with_columns(doc_id=pl.lit("https://www.a.org/x")))

    for of_run, name in ((run, "https://a.org/x"), (both, "https://www.a.org/x")):
        x = gg.Experiment(qrels, {"a": of_run, "b": run.head(1), "c": FRAMES["duckdb"](run)})
        with pytest.warns(gg.GoodgainNotice, match="one document: 3 ids"):
            found = x.evaluate("CG nCG NumDup NumGood")
        repeats = of_run.height - 1
        assert [found["a", name] for name in ("CG", "nCG", "NumDup", "NumGood")] == [3, 3 / 5, repeats, 1]
        assert {*x.opened.qrels.frame["doc_id"]} == {name, "https://a.org/y", "https://b.org/"}
        assert {doc for one in x.opened.runs.values() for doc in one.rows["doc_id"]} == {name}
        assert x.opened.qrels.digest == gg.read_qrels(qrels).digest, "a baseline file may be of other runs"

    with pytest.warns(gg.GoodgainNotice, match="one document"):
        scores = gg.evaluate(qrels, run, "CG", documents={"https://b.org/": "b", "https://a.org/x": "https://a.org/x/"})
    assert scores.ids_mapped == (1, 1), "ids of documents= are counted before URLs are joined"


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 2**30])
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_rows_of_files_are_read_again_or_kept_with_one_result(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_in_blocks, "_MOST_KEPT", most)
    scattered = RUN.vstack(RUN.with_columns(query_id=pl.lit("q3"))).vstack(RUN[1:2])
    qrels, chunks = QRELS | {"q3": QRELS["q1"]}, {"d1": "https://c.org", "https://c.org": "d1"}

    for run in (RUN, scattered, RUN.vstack(RUN.head(1)).drop("iteration")):
        run.write_parquet(tmp_path / "a.parquet")
        gg.write_run(run, tmp_path / "a.run")
        (tmp_path / "a.run").write_text("# comment\n" + (tmp_path / "a.run").read_text().replace(" goodgain", " a b"))
        for path in (tmp_path / "a.run", tmp_path / "a.parquet"):
            file = in_blocks(path, block=40, is_text=path.suffix == ".run")
            page = {"page": 1} if run.width == 4 and path.suffix != ".run" else {}
            for options in ({}, {"documents": chunks}, {"only": ["q1"]}, page):
                told = []
                for given in (path, file):
                    with collect_notices() as notices:
                        scores = gg.evaluate(qrels, given, MEASURES, **options)  # type: ignore[arg-type]  # by name
                    texts = sorted({*map(str, notices)})
                    told.append((scores.mean(), scores.signature, scores.ids_mapped, texts))
                assert told[0] == told[1], (run, path, options)
            x = gg.Experiment(qrels, {"a": file})
            assert bool(x.opened.runs["a"].kept) == bool(most)
            first, second = x.evaluate(MEASURES), x.with_(rel=2).evaluate(MEASURES)
            assert (first.mean(), first.notes) == (second.mean(), second.notes), "read again, with its notices"
            assert not x.opened.runs["a"].kept, "in memory until it is scored"


def test_the_example_of_low_coverage_has_an_id_of_the_qrels() -> None:
    qrels = {"q": {"http://a.org/x": 2}, "r": {"d": 2}}
    run = {"query_id": ["q", "q", "r"], "iteration": [1, 2, 1], "doc_id": ["b", "c", "https://a.org/x"]}
    with pytest.warns(gg.GoodgainNotice, match="in query q the run has 'b', the qrels have 'http://a.org/x'"):
        gg.evaluate(qrels, pl.DataFrame(run), "CG")


def test_qrels_without_addresses_cost_nothing() -> None:
    code = (
        "import sys, goodgain as gg; gg.evaluate({'q': {'d': 2}}, {'q': {'http://a.org': 1.0, 'd': 2.0}}, 'nCG');"
        "assert 'goodgain.formats.urls' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_random_spellings_have_the_numbers_of_one_spelling() -> None:
    """Each page is a number; a spelling is drawn for each mention. The oracle replaces all spellings by the number."""
    shapes = ["http://www.s.org/p{}/", "https://s.org/p{}", "HTTPS://S.org:443/p{}?utm_source=a"]
    shapes.append("https://m.s.org/p{}#:~:text=a")
    for seed in range(how_many(5, full=60)):
        draw = Random(seed)
        queries = [f"q{k}" for k in range(4)]

        def spell(page: int, draw: Random = draw) -> str:
            return draw.choice(shapes).format(page)

        pages = {query: draw.sample(range(12), draw.randint(1, 8)) for query in queries}
        labels = {query: {page: draw.randint(0, 4) for page in of} for query, of in pages.items()}
        qrels = {query: {spell(page): label for page, label in of.items()} for query, of in labels.items()}
        rows = [(q, i, draw.randrange(12)) for q in queries for i in range(1, 4) for _ in range(draw.randint(1, 5))]
        plain = pl.DataFrame(rows, schema=["query_id", "iteration", "page"], orient="row")
        plain = plain.with_columns(doc_id=pl.col("page").cast(pl.String))
        spelled = plain.with_columns(doc_id=pl.Series(map(spell, plain["page"])))
        numbers = {query: {str(page): label for page, label in of.items()} for query, of in labels.items()}
        measures = "CG@2 nCG nDCGG SRR NumDup NumUnique"
        assert means(qrels, spelled.drop("page"), measures) == pytest.approx(
            means(numbers, plain.drop("page"), measures)
        ), seed


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 1000])
def test_the_notice_counts_the_queries_in_which_a_page_has_several_ids(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle lists all ids of each page, query by query, for the qrels with each of two runs."""
    monkeypatch.setattr(run_in_blocks, "_MOST_KEPT", kept)
    monkeypatch.setattr(joined_addresses, "_MOST_HASHED", kept)  # the rows of a longer file are read once more
    monkeypatch.setattr(joined_addresses, "_MOST_REPEATED", kept)
    shapes = ("http://s.org/p{}", "https://s.org/p{}/", "https://www.s.org/p{}")

    for seed in range(how_many(8, full=30)):
        draw = Random(seed)
        few = draw.choice((1, 2, 3))  # spellings of a system
        queries = [f"q{k}" for k in range(12)]
        qrels = {q: {draw.choice(shapes).format(draw.randrange(30)): 2 for _ in range(3)} for q in queries[2:]}
        runs, expected = dict[str, pl.DataFrame](), set[str]()
        for name in ("a", "b"):
            own = draw.sample(shapes, few)
            rows = [(q, i, draw.choice(own).format(draw.randrange(30))) for q in queries[:-2] for i in (1, 1, 2, 2)]
            runs[name] = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row")
            for query in queries:
                ids = {*qrels.get(query, ()), *(row[2] for row in rows if row[0] == query)}
                if len({url.strip("/").rpartition("/p")[2] for url in ids}) < len(ids):
                    expected.add(query)
        for name, run in runs.items():
            gg.write_run(run, tmp_path / f"{name}.run")
        blocks = {name: in_blocks(tmp_path / f"{name}.run", block=200) for name in runs}
        engine = {name: FRAMES["duckdb"](run) for name, run in runs.items()}
        for given in (runs, blocks, engine):
            with collect_notices() as notices:
                assert gg.Experiment(qrels, given).opened
            matches = re.findall(r"affects ([\d,]+) quer", " ".join(map(str, notices)))
            assert matches == [str(len(expected))] * bool(expected), (seed, given)


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_all_analyses_join_alike() -> None:
    x = gg.Experiment(QRELS, {"one": RUN, "two": RUN.filter(pl.col("iteration") == 1)})
    counted = x.ledger().filter(system="one", query_id="q1").select("R", "UR", "Dup", "GR")
    assert counted.rows() == [(2, 2, 0, 2), (3, 2, 1, 1)]
    assert dict(x.coverage().filter(pl.col("iteration").is_null()).select("system", "judged").rows()) == {
        "one": 4,
        "two": 3,
    }

    titled = pl.DataFrame(
        {"query_id": "q1", "iteration": [1, 1], "search": 1, "rank": [1, 2], "doc_id": ["http://www.a.org/x/", VIDEO],
         "title": ["X", "Video"], "url": ["http://www.a.org/x/", VIDEO]}
    )  # fmt: skip
    found = x.with_(rel=1).explain("two", "one", results=[titled, titled]).documents
    titles = dict(found.filter(pl.col("doc_id").str.contains("a.org|youtu")).select("doc_id", "title").rows())
    assert titles == {"http://www.a.org/x/": "X", VIDEO: "Video"}


def test_the_funnel_counts_what_was_done_with_one_page_under_two_addresses() -> None:
    columns = ["query_id", "doc_id", "returned_at", "opened_at", "opens", "failed_opens", "cited"]
    rows = [
        ("q1", "http://www.a.org/x/", 1, None, 2, 2, False),
        ("q1", "https://a.org/x/?fbclid=1", None, 2, 1, 0, True),
    ]
    uses = pl.DataFrame(rows, schema=columns, orient="row")
    qrels = {"q1": QRELS["q1"]}
    with pytest.warns(gg.GoodgainNotice, match="count as one document in the table of uses: 2 rows"):
        row = gg.funnel(qrels, uses).per_query.row(0, named=True)
    assert (row["returned"], row["good_opened"], row["good_cited"], row["lost_unopened"]) == (1, 1, 1, 0)
    assert row["opens_per_good"] == 3, "what was opened under both addresses"

    with pytest.warns(gg.GoodgainNotice, match="spelled differently in the qrels"):
        row = gg.funnel(qrels, uses, urls="keep").per_query.row(0, named=True)
    assert (row["returned"], row["good_opened"], row["good_cited"]) == (1, 0, 0)


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize(("urls", "returned"), [("join", [2, 1]), ("keep", [0, 1])])
def test_explain_shows_the_uses_that_the_funnel_counts(urls: Any, returned: list[int]) -> None:
    """With urls="keep", explain said "returned at 1" of a document that the system lacks by its id."""
    systems = {"one": ["http://www.a.org/x/", VIDEO], "two": [JUDGED, "https://b.org/#A"]}
    runs = {name: pl.DataFrame({"query_id": "q1", "iteration": 1, "doc_id": docs}) for name, docs in systems.items()}
    uses = pl.concat(
        run.select("query_id", pl.lit(name).alias("system"), "doc_id", returned_at=1, opened_at=1, opens=1, cited=True)
        for name, run in runs.items()
    )
    x = gg.Experiment({"q1": QRELS["q1"]}, runs, urls=urls)
    assert x.funnel(uses).frame["good_returned"].to_list() == returned

    documents = x.explain("one", "two", "NumGood", uses=uses).documents
    for use, number in zip(("use_base", "use_new"), returned, strict=True):
        assert documents[use].str.starts_with("returned").sum() == number
    with pytest.raises(gg.InputError, match="uses= has ids of chunks, but documents= maps the run"):
        x.with_(documents="(.*)/").funnel(uses)


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_a_baseline_file_is_compared_under_the_same_urls_only(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    gg.compare(QRELS, {"one": RUN, "two": RUN}, "CG").write_baseline(path, "one")
    assert gg.compare(QRELS, {"new": RUN}, "CG", baseline_file=path).pairs["verdict"].to_list() == ["equal"]
    with pytest.raises(gg.InputError, match="was made with urls='join' instead of urls='keep'"):
        gg.compare(QRELS, {"new": RUN}, "CG", baseline_file=path, urls="keep")
    older = path.read_text().replace('"goodgain_baseline": 2', '"goodgain_baseline": 1').replace('"urls": "join", ', "")
    path.write_text(older)
    with pytest.raises(gg.InputError, match="was made with urls='keep' instead of urls='join'"):
        gg.compare(QRELS, {"new": RUN}, "CG", baseline_file=path)


def test_commands_join_and_pool_lists_a_page_once(tmp_path: Path) -> None:
    gg.write_run(RUN, tmp_path / "a.run")
    gg.write_qrels(QRELS, tmp_path / "qrels.txt")
    done = run_command("evaluate", tmp_path / "qrels.txt", tmp_path / "a.run", "CG")
    assert "4.5" in done.stdout and "--urls keep keeps them apart" in done.stderr
    done = run_command("evaluate", tmp_path / "qrels.txt", tmp_path / "a.run", "CG", "--urls", "keep")
    assert "2.0" in done.stdout
    done = run_command("pool", tmp_path / "a.run", "--qrels", tmp_path / "qrels.txt", "-o", tmp_path / "sheet.csv")
    assert pl.read_csv(tmp_path / "sheet.csv")["doc_id"].to_list() == ["https://b.org/#A"], done.stderr


def test_documents_to_label_are_those_without_a_label_under_any_spelling() -> None:
    from goodgain.judgments.labelling.documents_to_label import collect_documents

    queries = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["one", "two"]})
    with pytest.warns(gg.GoodgainNotice, match="no text to show"):
        wanted, _ = collect_documents(RUN, queries, qrels=QRELS)
    assert wanted["doc_id"].to_list() == ["https://b.org/#A"]


def test_labels_of_people_join_the_qrels_under_any_spelling() -> None:
    """`evaluate --human`: people may have judged another address of the page."""
    judged = gg.read_qrels({"q1": {JUDGED: 3, "d1": 2}})
    people = gg.read_qrels({"q1": {"http://www.a.org/x/": 1, "https://new.org/": 2, "d1": 0}})
    labels = join_labels(people, judged).frame.select("doc_id", "relevance").rows()
    assert sorted(labels) == [("d1", 0), (JUDGED, 1), ("https://new.org/", 2)]
    assert join_labels(judged, judged) is judged, "nothing to rename"
