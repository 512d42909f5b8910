"""A report in a real browser: it works by mouse and keyboard, in every light and width, and runs nothing but its own script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from tests.browser.conftest import Opened
from tests.support.report_cases import URLS, write_hostile
from tests.support.tables import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

Open = Callable[[Path], Opened]
AGENTS = ROOT / "qrels_examples" / "two_agents"
LOST = ROOT / "qrels_examples" / "lost_documents"


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = {name: AGENTS / f"{name}.run" for name in ("quick", "late")}
    path = tmp_path_factory.mktemp("report") / "agents.html"
    texts = {f"q{k:02}": f"question number {k}" for k in range(1, 26)}
    groups = AGENTS / "groups.csv"
    return gg.report(AGENTS / "qrels.txt", runs, path, "nDCG@10 nCG@6 SRR@6", groups=groups, queries=texts, details=5)


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = {name: LOST / f"{name}.run" for name in ("old", "new")}
    path = tmp_path_factory.mktemp("report") / "lost.html"
    return gg.report(LOST / "qrels.txt", runs, path, "CG@3 SRR@3", results=LOST / "results.jsonl")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of three systems and 300 queries."""
    qrels = {f"q{k}": {"a": 3, "b": 2} for k in range(300)}
    found = {"old": "ab", "new": "xa", "other": "bx"}
    runs = {name: {query: {of[k % 2]: 1.0} for k, query in enumerate(qrels)} for name, of in found.items()}
    return gg.report(qrels, runs, tmp_path_factory.mktemp("report") / "many.html", "nCG")


def column(opened: Opened, number: int) -> list[str]:
    return opened.page.locator(f"#list tbody tr > :nth-child({number})").all_inner_texts()


def ids(opened: Opened) -> list[str]:
    """The ids of the listed queries: the last line of their cells."""
    return [text.split("\n")[-1] for text in column(opened, 1)]


def check_quiet(opened: Opened) -> None:
    assert (opened.console, opened.requests) == ([], [])


def test_it_opens_at_the_query_that_lost_most_and_asks_for_nothing(open_file: Open, lost: Path) -> None:
    opened = open_file(lost)
    assert opened.page.locator("#query h3").inner_text() == "Query bridge"
    said = opened.page.locator("#query").inner_text()
    assert "new repeated its search “Harbour bridge: cost?” and got only results that it had" in said
    assert "“harbour bridge toll revenue”" in said
    assert opened.page.locator("#count").inner_text() == "4 of 4 queries, the largest change first"
    check_quiet(opened)


@pytest.mark.slow
def test_a_heading_sorts_and_says_so_to_a_screen_reader(open_file: Open, agents: Path) -> None:
    opened = open_file(agents)
    heading = opened.page.locator("#list").get_by_role("columnheader", name="difference", exact=True)
    assert heading.get_attribute("aria-sort") == "other"
    by_size = [float(text) for text in column(opened, 5)]
    assert [*map(abs, by_size)] == sorted(map(abs, by_size), reverse=True) and min(by_size) < 0 < max(by_size)
    heading.get_by_role("button").click()
    assert [float(text) for text in column(opened, 5)] == sorted(by_size)
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").click()
    assert [float(text) for text in column(opened, 5)] == sorted(by_size, reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    heading.get_by_role("button").click()
    assert [float(text) for text in column(opened, 5)] == by_size
    opened.page.locator("#list").get_by_role("columnheader", name="query").get_by_role("button").click()
    assert ids(opened) == [f"q{k:02}" for k in range(1, 26)]
    check_quiet(opened)


@pytest.mark.slow
def test_the_query_of_the_headline_is_first_and_questions_come_before_ids(open_file: Open, agents: Path) -> None:
    opened = open_file(agents)
    link = opened.page.locator("header a#first")
    assert "“question number 7” (q07): late 0.3636, quick 1.0000." in link.inner_text()
    assert column(opened, 1)[0].split("\n") == ["question number 7", "q07"]
    link.click()
    assert opened.page.evaluate("document.activeElement.id") == "query-title"
    assert opened.page.locator("#query").inner_text().startswith("question number 7\n\nQuery q07")
    check_quiet(opened)


LONG = {
    "claude-sonnet-4-5-20250929": "ab",
    "gpt-5-mini-2025-08-07-reasoning-high": "xa",
    "qwen3_235b_a22b_thinking_2507_long_context": "bx",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of three systems and queries whose names are as long as real ones."""
    folder = tmp_path_factory.mktemp("report")
    qrels = {f"browsecomp-plus-2025/version-2/part-{k % 3}/topic-{k:04}": {"a": 3, "b": 2} for k in range(30)}
    rows = {
        name: pl.DataFrame(
            [(q, i + 1, found[(k + i) % 2]) for k, q in enumerate(qrels) for i in range(1 + (k + len(name)) % 3)],
            schema=["query_id", "iteration", "doc_id"],
            orient="row",
        )
        for name, found in LONG.items()
    }
    texts = {q: f"Which river was named in {1900 + k}, and later renamed?" for k, q in enumerate(qrels) if k % 2}
    return gg.report(qrels, rows, folder / "models.html", "nCG@3 nDCG@10 SRR@3", queries=texts)


@pytest.fixture(scope="module")
def many_systems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of nine systems with long names; each finds more than the one before it."""
    qrels = {f"q{k}": {"a": 3, "b": 2} for k in range(8)}
    systems = {}
    for number in range(9):
        rows = [(query, 1, "x") for query in qrels] + [(query, 2, "a") for query in [*qrels][:number]]
        name = f"deep-research-agent-{number}-with-a-long-context"
        systems[name] = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row")
    return gg.report(qrels, systems, tmp_path_factory.mktemp("report") / "systems.html", "nCG nDCG@10 SRR")


#: Returns what is cut: cells with more in them than they show, and cells that are not whole inside their box.
_CUT = """() => {
  const cut = [];
  for (const cell of document.querySelectorAll("td, th, dd, dt")) {
    if (!cell.checkVisibility() || cell.closest("thead") && getComputedStyle(cell.closest("thead")).clipPath !== "none") continue;
    const box = (cell.closest(".scroll") || document.body).getBoundingClientRect(), own = cell.getBoundingClientRect();
    if (cell.scrollWidth > cell.clientWidth + 1 || own.right > box.right + 1 || own.left < box.left - 1) cut.push(cell.innerText);
  }
  return cut;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_no_number_is_cut(open_file: Open, agents: Path, models: Path, many_systems: Path, width: int) -> None:
    for path in (agents, models, many_systems):
        opened = open_file(path)
        opened.show_as(width=width)
        for summary in opened.page.locator("summary").all():
            summary.click()
        assert opened.page.evaluate(_CUT) == []
        assert not opened.is_too_wide()
        check_quiet(opened)


@pytest.mark.slow
def test_of_many_systems_a_query_shows_the_first_and_the_chosen_one(open_file: Open, many_systems: Path) -> None:
    opened = open_file(many_systems)
    assert opened.page.locator(".scroll.wide").count() == 0  # 9 columns would not fit
    query = opened.page.locator("#query")
    shown = query.locator(".systems h4").all_inner_texts()
    assert [text.split(":")[0] for text in shown] == [f"deep-research-agent-{k}-with-a-long-context" for k in (0, 8)]
    chosen = "deep-research-agent-3-with-a-long-context"
    opened.page.locator("#controls").get_by_label("System, compared with").select_option(label=chosen)
    assert query.locator(".systems h4").nth(1).inner_text().startswith(chosen)
    assert f"Shown: deep-research-agent-0-with-a-long-context and {chosen}." in query.inner_text()
    header = query.locator("thead").first.inner_text()
    assert chosen in header and "agent-8" not in header
    check_quiet(opened)


@pytest.mark.slow
def test_long_ids_keep_their_ends(open_file: Open, models: Path) -> None:
    opened = open_file(models)
    shown = ids(opened)
    assert len(set(shown)) == len(shown) == 25
    assert all("…" in one and one.startswith("browsecomp") and "/topic-00" in one for one in shown)
    assert opened.page.locator("#list tbody [title$='/topic-0001']").count() >= 1


@pytest.mark.slow
def test_columns_that_do_not_fit_are_announced(open_file: Open, models: Path) -> None:
    opened = open_file(models)
    opened.show_as(width=720)
    opened.page.locator("summary", has_text="All tests").click()
    wide = opened.page.locator(".scroll.wide")
    assert wide.count() > 0
    assert "more columns" in wide.first.evaluate("box => getComputedStyle(box, '::before').content")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agents", "models"])
def test_the_verdict_is_in_the_first_screen_of_a_phone(
    open_file: Open, name: str, request: pytest.FixtureRequest
) -> None:
    opened = open_file(request.getfixturevalue(name))
    opened.page.set_viewport_size({"width": 390, "height": 844})
    said = opened.page.locator("h1")
    box = said.bounding_box()
    assert box and box["y"] + box["height"] < 844
    assert "chance" in said.inner_text()
    first = opened.page.locator(".tile").first
    box = first.bounding_box()
    assert box and box["y"] + box["height"] < 844
    assert any(word in first.inner_text() for word in ("better", "worse", "may be chance", "equal"))


def test_the_tiles_have_the_numbers_of_compare(open_file: Open, agents: Path) -> None:
    opened = open_file(agents)
    runs = {name: AGENTS / f"{name}.run" for name in ("quick", "late")}
    pairs = gg.compare(AGENTS / "qrels.txt", runs, "nCG@6 nDCGG@6 SRR@6 NumIter", baseline="quick").pairs
    tiles = [text.split("\n") for text in opened.page.locator(".tile").all_inner_texts()]
    assert len(tiles) == pairs.height == 4
    for tile, row in zip(tiles, pairs.iter_rows(named=True), strict=True):
        places = 2 if row["measure"] == "NumIter" else 4
        assert row["measure"] in tile[0]

        numbers = [f"{row['mean_against']:.{places}f}", f"{row['mean']:.{places}f}", f"{row['difference']:+.{places}f}"]
        assert all(any(number in part for part in tile) for number in numbers), tile
    assert [tile[-1] for tile in tiles] == [
        "unclear: may be chance", "worse, beyond chance", "better, beyond chance", "more, beyond chance",
    ]  # fmt: skip


def test_queries_are_filtered_by_cause_change_and_group_and_searched(open_file: Open, agents: Path) -> None:
    opened = open_file(agents)
    opened.page.locator("#controls").get_by_label("Main cause").select_option(
        label="late never retrieved some good documents"
    )
    assert set(column(opened, 6)) == {"late never retrieved some good documents"}
    opened.page.locator("#controls").get_by_label("Main cause").select_option("")
    opened.page.locator("#controls").get_by_label("Change").select_option(label="better in late")
    assert all(float(text) > 0 for text in column(opened, 5)) and len(column(opened, 5)) == 13
    opened.page.locator("#controls").get_by_label("Group").select_option(label="fact")
    assert set(column(opened, 2)) == {"fact"}
    opened.page.locator("#controls").get_by_label("Change").select_option("")
    opened.page.locator("#controls").get_by_label("Group").select_option("")
    opened.page.locator("#controls").get_by_label("Search").fill("NUMBER 17")
    assert ids(opened) == ["q17"]
    assert opened.page.locator("#count").inner_text() == "1 of 25 queries, the largest change first"
    opened.page.locator("#controls").get_by_label("Search").fill("nothing has this")
    assert column(opened, 1) == []
    check_quiet(opened)


def test_a_measure_where_lower_is_better_turns_better_and_worse(open_file: Open, agents: Path) -> None:
    opened = open_file(agents)
    opened.page.locator("#controls").get_by_label("Measure").select_option(label="SRR@6 ↓")
    opened.page.locator("#controls").get_by_label("Change").select_option(label="better in late")
    assert all(float(text) < 0 for text in column(opened, 5)) and len(column(opened, 5)) == 20
    check_quiet(opened)


def test_a_query_opens_with_its_results_or_with_counts_alone(open_file: Open, agents: Path) -> None:
    opened = open_file(agents)
    opened.page.get_by_role("button", name="question number 7").click()
    assert opened.page.evaluate("document.activeElement.id") == "query-title"
    assert "new good, label" in opened.page.locator("#query").inner_text()
    assert opened.page.locator("tr[aria-current=true]").all_inner_texts()[0].startswith("question number 7\nq07")
    opened.page.get_by_role("button", name="Back to the list").click()
    assert opened.page.evaluate("document.activeElement.textContent") == "question number 7"
    opened.page.get_by_role("button", name="question number 1", exact=True).click()
    said = opened.page.locator("#query").inner_text()
    assert "Query q01" in said and "results are listed for 5 queries" in said and "new good" in said
    opened.page.goto(f"{agents.as_uri()}#query=q03")
    opened.page.reload()
    assert opened.page.locator("#query h3").inner_text() == "question number 3"
    check_quiet(opened)


@pytest.mark.slow
def test_rows_of_many_queries_come_on_request(open_file: Open, many: Path) -> None:
    opened = open_file(many)
    assert len(column(opened, 1)) == 25
    opened.page.get_by_role("button", name="Show 100 more").click()
    assert len(column(opened, 1)) == 125
    assert opened.page.evaluate("document.activeElement.closest('tr').rowIndex") == 26
    opened.page.locator("#controls").get_by_label("System, compared with old").select_option(label="other")
    assert opened.page.locator("#list").get_by_role("columnheader", name="other", exact=True).count() == 1
    assert opened.page.evaluate("document.activeElement.id") == "choose-other"
    check_quiet(opened)


@pytest.mark.slow
def test_two_equal_systems_have_a_list_of_queries(open_file: Open, tmp_path: Path) -> None:
    """Their report names no query in its headline."""
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 1.0}}
    path = gg.report({"q1": {"a": 2}, "q2": {"c": 2}}, {"one": run, "other": run}, tmp_path / "equal.html", "nCG")
    opened = open_file(path)
    assert opened.page.locator("#first").count() == 0
    assert sorted(ids(opened)) == ["q1", "q2"]
    opened.page.locator("#list tbody [data-query]").last.click()
    assert "Query q2" in opened.page.locator("#query").inner_text()
    check_quiet(opened)


@pytest.mark.slow
def test_hostile_texts_run_nothing(open_file: Open, tmp_path: Path) -> None:
    opened = open_file(write_hostile(tmp_path / "hostile.html"))
    for button in opened.page.locator("#list tbody button").all():
        button.click()
        links = {link.get_attribute("href") for link in opened.page.locator("#query a").all()}
        assert links == {URLS["good"]}
        rels = {link.get_attribute("rel") for link in opened.page.locator("#query a").all()}
        assert rels == {"noopener noreferrer"}
        assert "<script>window.ran = 1</script>" in opened.page.locator("#query").inner_text()
    assert opened.page.evaluate("window.ran") is None
    assert opened.page.locator("img, iframe, object, form").count() == 0
    assert opened.page.evaluate("[...document.querySelectorAll('[style]')].length") == 0
    check_quiet(opened)


def test_the_policy_forbids_every_other_script(open_file: Open, lost: Path, tmp_path: Path) -> None:
    """Even if a text became an element, it would not run: the page's policy knows one script."""
    page = tmp_path / "page.html"
    more = '<script>window.ran = 1</script><p onclick="window.ran = 2" id="p">p</p><img src="https://example.org/x">'
    page.write_text(lost.read_text().replace("</main>", f"{more}</main>"))
    opened = open_file(page)
    opened.page.locator("#p").click()
    assert opened.page.evaluate("window.ran") is None
    assert len(opened.console) >= 2 and all("Content Security Policy" in said for said in opened.console)
    assert opened.page.locator("#query h3").inner_text() == "Query bridge"


def test_the_keyboard_reaches_everything(open_file: Open, lost: Path) -> None:
    opened = open_file(lost)
    wanted = opened.page.evaluate(
        "[...document.querySelectorAll('a[href], button, select, input, summary, [tabindex=\"0\"]')]"
        ".filter((one) => one.checkVisibility()).length"
    )
    reached = set()
    for _ in range(wanted + 5):
        opened.page.keyboard.press("Tab")
        reached.add(opened.page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    reached -= {opened.page.evaluate("[...document.querySelectorAll('*')].indexOf(document.body)")}
    assert len(reached) == wanted
    opened.page.get_by_role("button", name="dam").focus()
    opened.page.keyboard.press("Enter")
    assert opened.page.locator("#query h3").inner_text() == "Query dam"
    check_quiet(opened)


@pytest.mark.slow
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious(open_file: Open, agents: Path, colours: str) -> None:
    opened = open_file(agents)
    opened.show_as(colours=colours)
    opened.page.locator("summary").first.click()
    assert opened.find_violations() == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_is_never_wider_than_the_screen(open_file: Open, agents: Path, lost: Path, width: int) -> None:
    for path in (agents, lost):
        opened = open_file(path)
        opened.show_as(width=width)
        assert not opened.is_too_wide()


def test_it_is_printed_dark_on_white_without_controls(open_file: Open, agents: Path) -> None:
    opened = open_file(agents)
    opened.show_as(colours="dark", medium="print", width=794)
    look = opened.page.evaluate(
        "(() => { const look = getComputedStyle(document.body); return [look.backgroundColor, look.color] })()"
    )
    assert look == ["rgb(255, 255, 255)", "rgb(26, 28, 32)"]
    assert not opened.page.locator("#controls").is_visible()
    assert opened.page.locator("#query h3").is_visible()
    assert not opened.is_too_wide()


def test_without_javascript_the_sentences_and_tables_are_there(browser: object, lost: Path) -> None:
    context = browser.new_context(java_script_enabled=False)  # type: ignore[attr-defined]  # a Browser
    page = context.new_page()
    page.goto(lost.as_uri())
    assert "This may be chance (4 queries)." in page.locator("h1").inner_text()
    page.locator("summary", has_text="in sentences").click()
    assert "no difference beyond chance, in CG@3" in page.locator("#tables").inner_text()
    assert page.locator("#tables table").first.is_visible()
    assert "needs JavaScript" in page.locator("noscript").inner_text()
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("systems", [1, 2, 20])
@pytest.mark.parametrize("has_labels", [True, False], ids=["labels", "no labels"])
def test_no_page_has_a_label_without_a_value_or_a_name_that_is_cut(
    open_file: Open, has_labels: bool, systems: int, width: int, colours: str, tmp_path: Path
) -> None:
    run = gg.read_run(AGENTS / "late.run").rows
    runs = {"quick": AGENTS / "quick.run", "late": AGENTS / "late.run"}
    for number in range(systems - len(runs)):
        runs[f"agent-{number}"] = run.filter(pl.int_range(pl.len()) % 20 != number)  # type: ignore[assignment]  # a frame
    chosen = dict([*runs.items()][:systems])
    qrels = AGENTS / "qrels.txt" if has_labels else gg.NO_LABELS
    measures = "nCG@6 SRR@6 NumResults" if has_labels else "NumUnique SRR@6"
    opened = open_file(gg.report(qrels, chosen, tmp_path / "r.html", measures, details=3))
    opened.show_as(colours=colours, width=width)
    assert not opened.is_too_wide()
    assert not opened.find_violations()

    empty = "td => td.dataset.label && !td.textContent && td.checkVisibility()"
    assert width == 1280 or not opened.page.evaluate(f"[...document.querySelectorAll('td')].filter({empty}).length")
    for section in opened.page.locator("section[id]:not([hidden])").all():
        assert len(section.inner_text().split()) > 8
    check_quiet(opened)
