"""The page for judges in a real browser: judge, close, go on, save, `judge`, `evaluate`; and hostile texts do nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import goodgain as gg
from goodgain.judgments.judging.judging_page import write_judging_page
from tests.browser.conftest import Opened
from tests.support.command import run_command
from tests.support.counts import some_of
from tests.support.report_cases import BIDI, END, SCRIPT, URLS, read_data
from tests.support.tables import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

Open = Callable[[Path], Opened]
LABELLING = ROOT / "qrels_examples" / "labelling"
INPUTS = ["--results", LABELLING / "results.jsonl", "--queries", LABELLING / "queries.jsonl"]


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sheet") / "sheet.html"
    done = run_command("pool", LABELLING / "agent.run", *INPUTS, "-o", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def context(browser: Browser) -> Any:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    yield context
    context.close()


def open_in(context: BrowserContext, path: Path) -> Page:
    page = context.new_page()
    page.goto(path.resolve().as_uri())
    return page


def begin(page: Page, name: str) -> None:
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")


def save(page: Page, folder: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name="Save grades").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def progress(page: Page) -> str:
    return page.locator("#progress").inner_text()


def read_order(page: Page, documents: int) -> list[tuple[str, str]]:
    """The questions and titles in the order in which a judge sees them."""
    seen = []
    for _ in range(documents):
        seen.append((page.locator("#question").inner_text(), page.locator("#title").inner_text()))
        page.keyboard.press("n")
    return seen


@pytest.mark.slow
def test_judge_close_open_go_on_save_judge_evaluate(sheet: Path, context: BrowserContext, tmp_path: Path) -> None:
    page = open_in(context, sheet)
    begin(page, "Anna")
    pressed: dict[tuple[str, str], str] = {}
    keys = iter("31x2041")

    def press_next() -> None:
        key = next(keys)
        pressed[page.locator("#question").inner_text(), page.locator("#address").inner_text()] = key
        page.keyboard.press(key)

    for _ in range(3):
        press_next()
    assert progress(page).startswith(
        "Document 4 of 7, question 2 of 2 (document 1 of 4). 3 judged, 1 of them “cannot judge”."
    )
    page.close()

    page = open_in(context, sheet)
    assert page.get_by_label("Your name").input_value() == "Anna"
    told = "The grades of Anna are saved in this browser: 3 of 7 documents judged, 1 of them “cannot judge”."
    assert page.locator("#kept").inner_text() == told
    page.get_by_role("button", name="Go on").click()
    assert progress(page).startswith("Document 4 of 7")
    for _ in range(4):
        press_next()
    assert page.locator("h1:visible").inner_text() == "Done: you judged all 7 documents"
    path = save(page, tmp_path)
    assert path.name == "sheet-Anna.csv"

    saved = pl.read_csv(path, infer_schema=False)
    texts = dict(pl.read_ndjson(LABELLING / "queries.jsonl").select("query_id", "text").iter_rows())
    found = {
        (texts[query_id], doc_id): grade if cannot is None else "x"
        for query_id, doc_id, grade, cannot in saved.select("query_id", "doc_id", "grade", "cannot_judge").iter_rows()
    }
    assert found == pressed
    assert set(saved["judge"]) == {"Anna"}
    assert saved["time"].str.contains(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$").all()

    qrels = tmp_path / "qrels.txt"
    done = run_command("judge", path, "--scale", "good-gain", "-o", qrels)
    assert done.returncode == 0, done.stderr
    assert "documents: 7, with a label: 6, judges: 1" in done.stderr
    labels = {(texts[query], doc): str(label) for query, _, doc, label in gg.read_qrels(qrels).frame.iter_rows()}
    assert labels == {document: key for document, key in pressed.items() if key != "x"}
    scored = run_command("evaluate", qrels, LABELLING / "agent.run", "CG@2")
    assert scored.returncode == 0 and scored.stdout.startswith("CG@2\t")


@pytest.mark.slow
def test_grades_are_loaded_on_another_computer(sheet: Path, browser: Browser, tmp_path: Path) -> None:
    first, second = browser.new_context(accept_downloads=True), browser.new_context(accept_downloads=True)
    page = open_in(first, sheet)
    begin(page, 'Ben "B", of Bern')
    page.get_by_label("Note").fill('two lines,\n"quoted"')
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    page.keyboard.press("x")
    page.get_by_label("Note").fill("a note alone")
    path = save(page, tmp_path)

    page = open_in(second, sheet)
    page.locator("#load").set_input_files(path)
    expect(page.locator("#said")).to_have_text('Loaded 3 rows of Ben "B", of Bern.')
    assert progress(page).startswith(
        "Document 3 of 7, question 1 of 2 (document 3 of 3). 2 judged, 1 of them “cannot judge”."
    )
    assert page.get_by_label("Note").input_value() == "a note alone"
    again = save(page, tmp_path / "again")
    assert again.read_text() == path.read_text()
    assert run_command("judge", again, "--scale", "good-gain", "-o", tmp_path / "q.txt").returncode == 0

    page.locator("#load").set_input_files(
        {"name": "x.csv", "mimeType": "text/csv", "buffer": b"query_id,doc_id,judge,grade\nq,other,Ben,2\n"}
    )
    expect(page.locator("#said")).to_contain_text("1 row is not used: another document")
    page.locator("#load").set_input_files({"name": "x.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"})
    expect(page.locator("#said")).to_contain_text("not a file of grades")
    first.close()
    second.close()


@pytest.mark.slow
def test_each_judge_has_an_own_order_which_stays(sheet: Path, context: BrowserContext) -> None:
    orders = {}
    for name in ("Anna", "Ben", "Carla", "Dora", "Anna"):
        page = open_in(context, sheet)
        begin(page, name)
        order = read_order(page, 7)
        assert orders.setdefault(name, order) == order
        page.close()
    assert len({tuple(order) for order in orders.values()}) > 1
    assert len({tuple(sorted(order)) for order in orders.values()}) == 1
    # whole questions, in the order of the sheet
    assert {tuple(question for question, _ in order) for order in orders.values()} == {
        tuple(question for question, _ in orders["Anna"])
    }


def test_drawn_queries_keep_the_order_of_the_draw(tmp_path: Path) -> None:
    """So whoever stops at the end of a question has judged a random sample of questions."""
    runs = {"a": {f"q{k}": {f"d{k}{m}": -float(m) for m in range(3)} for k in range(20)}}
    queries = {query_id: f"question {query_id}" for query_id in runs["a"]}
    pooled = gg.pool(runs, sample_queries=10, seed=3, queries=queries)
    write_judging_page(pooled, tmp_path / "sheet.html")
    order = pooled["query"].unique(maintain_order=True).to_list()
    assert order != sorted(order)
    assert [text for text, _ in read_data((tmp_path / "sheet.html").read_text())["questions"]] == order


@pytest.mark.slow
def test_grades_change_by_going_back(sheet: Path, context: BrowserContext, tmp_path: Path) -> None:
    page = open_in(context, sheet)
    begin(page, "Anna")
    page.keyboard.press("0")
    page.keyboard.press("b")
    pressed = page.locator("#grades [aria-pressed=true]")
    assert pressed.inner_text().startswith("0")
    assert page.locator("#new").is_visible()
    page.get_by_role("button", name="4 fully answers it").click()
    assert not page.locator("#new").is_visible()
    saved = pl.read_csv(save(page, tmp_path))
    assert saved["grade"].to_list() == [4]


def test_a_pool_without_documents_gets_no_page(tmp_path: Path) -> None:
    pooled = gg.pool({"a": {"q": {"d": 1.0}}}, qrels={"q": {"d": 1}})
    with pytest.raises(gg.InputError, match="there is no document to judge"):
        write_judging_page(pooled, tmp_path / "sheet.html")
    assert not (tmp_path / "sheet.html").exists()


def test_an_id_that_the_saved_file_cannot_hold_is_an_error(tmp_path: Path) -> None:
    pooled = gg.pool({"a": {"q": {" d": 1.0}}})
    with pytest.raises(gg.InputError, match="CSV cannot hold the doc_id"):
        write_judging_page(pooled, tmp_path / "sheet.html")


def test_what_a_system_did_is_not_in_the_page(sheet: Path) -> None:
    text = sheet.read_text()
    rows = pl.read_ndjson(LABELLING / "results.jsonl")
    assert "agent" not in text
    assert all(search not in text for search in rows["search_query"].drop_nulls())
    assert "first_iteration" not in text


@pytest.mark.slow
def test_the_words_of_the_question_are_marked(open_file: Open, tmp_path: Path) -> None:
    path = tmp_path / "sheet.html"
    rows = {"query_id": "q", "query": "Which dams did the café of Zürich build?", "doc_id": "d", "grade": None}
    write_judging_page(pl.DataFrame(rows | {"text": "The DAM and a Café. Of which? Zurich built damage."}), path)
    opened = open_file(path)
    begin(opened.page, "Anna")
    assert opened.page.locator("#text mark").all_inner_texts() == ["DAM", "Café", "Zurich"]


SCALES = {
    "binary": ["0", "1"],
    "graded": ["0", "1", "2", "3"],
    "good-gain": ["0", "1", "2", "3", "4"],
    "detail": [*map(str, range(1, 11))],
    "esci": ["0", "1", "2", "3"],
    "umbrela": ["0", "1", "2", "3"],
    "0,0.5,1": ["0", "0.5", "1"],
    "0: off topic; 1: helps": ["0", "1"],
}


@pytest.mark.parametrize("scale", some_of(SCALES, every=3))
def test_a_page_has_the_grades_of_its_scale(open_file: Open, scale: str, tmp_path: Path) -> None:
    path = tmp_path / "sheet.html"
    write_judging_page(gg.pool({"a": {"q": {"d": 1.0}}}, queries={"q": "who?"}), path, scale=scale)
    opened = open_file(path)
    begin(opened.page, "Anna")
    shown = opened.page.locator("#grades b").all_inner_texts()
    assert shown == SCALES[scale]
    last = opened.page.locator("#grades button:not(.cannot)").last
    if scale == "detail":
        opened.page.keyboard.press("0")
    else:
        last.click()
    saved = save(opened.page, tmp_path)
    assert gg.aggregate(saved, scale=scale)["relevance"].to_list() == [float(SCALES[scale][-1])]


ODD_IDS = ["=1+1", "'=x", "a,b", 'say "x"', "a;=2", BIDI.replace("\u2028", ""), "<b>", "é\u0301", "a\\u202eb"]


@pytest.mark.parametrize("is_for_spreadsheets", [False, True])
def test_odd_ids_come_back_as_they_were(open_file: Open, is_for_spreadsheets: bool, tmp_path: Path) -> None:
    pooled = gg.pool({"a": {"=q": dict.fromkeys(ODD_IDS, 1.0)}}, queries={"=q": "who?"})
    write_judging_page(pooled, tmp_path / "sheet.html", spreadsheet=is_for_spreadsheets)
    opened = open_file(tmp_path / "sheet.html")
    begin(opened.page, "Anna")
    for _ in ODD_IDS:
        opened.page.keyboard.press("2")
    path = save(opened.page, tmp_path)
    labels = gg.aggregate(path, scale="good-gain")
    assert sorted(labels["doc_id"]) == sorted(ODD_IDS)
    assert set(labels["query_id"]) == {"=q"}
    assert path.read_text().count(",=1+1,") == (not is_for_spreadsheets)
    opened.page.reload()
    opened.page.locator("#load").set_input_files(path)
    expect(opened.page.locator("#said")).to_have_text(f"Loaded {len(ODD_IDS)} rows of Anna.")


def test_hostile_texts_run_nothing(open_file: Open, tmp_path: Path) -> None:
    documents = list(URLS)
    pooled = pl.DataFrame(
        {
            "query_id": [f"q {SCRIPT}"] * len(documents),
            "query": f"question {END} {BIDI}",
            "description": SCRIPT,
            "doc_id": [document.replace("\u2028", " ") for document in documents],
            "title": [f"title {END} {SCRIPT}"] * len(documents),
            "url": list(URLS.values()),
            "snippet": f"{SCRIPT}\n{END}\n{BIDI}",
            "grade": None,
        }
    )
    path = tmp_path / "sheet.html"
    write_judging_page(pooled, path, scale=f"0: {SCRIPT.replace(';', '')}; 1: {END}")
    opened = open_file(path)
    page = opened.page
    begin(page, f"Anna {SCRIPT}")
    links = set()
    for _ in documents:
        links |= {link.get_attribute("href") for link in page.locator("#judging a").all()}
        assert "<script>window.ran = 1</script>" in page.locator("#text").inner_text()
        page.get_by_label("Note").fill(SCRIPT)
        page.keyboard.press("Escape")
        page.keyboard.press("1")
    assert links == {URLS["good"]}
    saved = save(page, tmp_path)
    page.reload()
    page.locator("#load").set_input_files(saved)
    expect(page.locator("#said")).to_contain_text("Loaded")
    assert page.evaluate("window.ran") is None
    assert page.locator("img, iframe, object, script[src]").count() == 0
    assert page.evaluate("document.querySelectorAll('[style]').length") == 0
    assert (opened.console, [request for request in opened.requests if not request.startswith("blob:")]) == ([], [])


def test_the_policy_forbids_every_other_script_and_all_requests(open_file: Open, sheet: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    more = '<script>window.ran = 1</script><p onclick="window.ran = 2" id="p">p</p><img src="https://example.org/x">'
    page.write_text(sheet.read_text().replace("</main>", f"{more}</main>"))
    opened = open_file(page)
    opened.page.locator("#p").click()
    sent = opened.page.evaluate("fetch('https://example.org/y').then(() => 'sent', () => 'refused')")
    assert (opened.page.evaluate("window.ran"), sent) == (None, "refused")
    assert all("Content Security Policy" in said for said in opened.console if "fetch" not in said.lower())
    assert "default-src 'none'" in page.read_text()


def test_a_browser_that_keeps_nothing_says_so(sheet: Path, context: BrowserContext, tmp_path: Path) -> None:
    context.add_init_script("Storage.prototype.setItem = () => { throw new Error('full') }")
    page = open_in(context, sheet)
    begin(page, "Anna")
    page.keyboard.press("3")
    assert "This browser keeps no grades." in page.locator("#said").inner_text()
    assert pl.read_csv(save(page, tmp_path))["grade"].to_list() == [3]


@pytest.mark.slow
def test_two_windows_share_their_grades(sheet: Path, context: BrowserContext, tmp_path: Path) -> None:
    pages = [open_in(context, sheet) for _ in range(2)]
    for page in pages:
        begin(page, "Anna")
    pages[0].keyboard.press("3")
    pages[1].wait_for_function("document.querySelector('#grades [aria-pressed=true]') !== null")
    pages[1].keyboard.press("n")
    pages[1].keyboard.press("2")
    assert pl.read_csv(save(pages[1], tmp_path))["grade"].to_list() == [3, 2]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 documents of 100 questions, with texts of 4,000 characters."""
    words = "The dam of the valley was built in 1931 and paid by the county. " * 63
    run = {f"q{q:03}": {f"https://example.org/{q}/{k}": float(-k) for k in range(20)} for q in range(100)}
    texts = {doc_id: f"{words}{doc_id}" for of in run.values() for doc_id in of}
    queries = {query_id: f"Who paid for the dam number {query_id}?" for query_id in run}
    path = tmp_path_factory.mktemp("many") / "many.html"
    write_judging_page(gg.pool({"a": run}, queries=queries, texts=texts), path)
    return path


def test_two_thousand_documents_open_in_a_second(context: BrowserContext, many: Path) -> None:
    page = context.new_page()
    session = context.new_cdp_session(page)
    # processor time: the machine does other things too
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(many.as_uri())
    begin(page, "Anna")
    assert progress(page).startswith("Document 1 of 2,000, question 1 of 100 (document 1 of 20). 0 judged.")
    page.keyboard.press("2")
    assert progress(page).startswith("Document 2 of 2,000")
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    assert 0 < metrics["TaskDuration"] < 1
    page.get_by_role("button", name="Show all of the text").click()
    assert page.locator("#text").inner_text().rstrip().endswith(page.locator("#title").inner_text())


def read_style(page: Page, selector: str) -> dict[str, str]:
    names = ["backgroundColor", "borderTopColor", "borderTopStyle", "color"]
    script = "(element, names) => names.map((name) => getComputedStyle(element)[name])"
    return dict(zip(names, page.locator(selector).evaluate(script, names), strict=True))


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_only_a_given_grade_looks_chosen(open_file: Open, sheet: Path, colours: str) -> None:
    opened = open_file(sheet)
    opened.show_as(colours=colours)
    page = opened.page
    begin(page, "Anna")
    under_mouse, other = "#grades button:nth-child(3)", "#grades button:nth-child(2)"
    box = page.locator(under_mouse).bounding_box()
    assert box is not None
    x, y = box["x"] + 20, box["y"] + 20
    page.mouse.move(x - 5, y)
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    assert progress(page).startswith("Document 2 of 7")
    # The mouse rests over the same grade of the next document. Chromium looks what is under it when a frame is drawn.
    page.screenshot()
    page.wait_for_function(f"document.querySelector('{under_mouse}').matches(':hover')")
    plain = read_style(page, other)
    assert read_style(page, under_mouse) == plain

    page.mouse.move(x + 5, y)
    hovered = read_style(page, under_mouse)
    assert hovered["borderTopStyle"] != plain["borderTopStyle"]
    assert hovered["backgroundColor"] == plain["backgroundColor"]
    page.keyboard.press("b")
    chosen = read_style(page, under_mouse)
    assert chosen["backgroundColor"] not in (plain["backgroundColor"], hovered["backgroundColor"])
    assert "✓" in page.locator(under_mouse).evaluate("element => getComputedStyle(element, '::after').content")
    assert page.locator(other).evaluate("element => getComputedStyle(element, '::after').content") == "none"


@pytest.mark.slow
def test_a_double_click_grades_one_document(open_file: Open, sheet: Path) -> None:
    page = open_file(sheet).page
    begin(page, "Anna")
    box = page.locator("#grades button:nth-child(3)").bounding_box()
    assert box is not None
    page.mouse.dblclick(box["x"] + 20, box["y"] + 20, delay=20)
    assert progress(page).startswith("Document 2 of 7")
    page.wait_for_timeout(600)  # a click after a pause is a click
    page.mouse.click(box["x"] + 20, box["y"] + 20)
    assert progress(page).startswith("Document 3 of 7")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_message_is_in_view_where_grades_are_saved(open_file: Open, many: Path, width: int, tmp_path: Path) -> None:
    opened = open_file(many)
    opened.show_as(width=width)
    page = opened.page
    begin(page, "Anna")
    page.get_by_role("button", name="Show all of the text").click()
    save(page, tmp_path)
    expect(page.locator("#said")).to_contain_text("Saved 0 grades")
    expect(page.locator("#said")).to_be_in_viewport(ratio=1)
    page.evaluate("window.scrollTo(0, 0)")
    expect(page.locator("#said")).to_be_in_viewport(ratio=1)


@pytest.mark.slow
@pytest.mark.parametrize("height", [850, 620])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_button_that_saves_is_in_view_while_judging(open_file: Open, many: Path, width: int, height: int) -> None:
    page = open_file(many).page
    page.set_viewport_size({"width": width, "height": height})
    expect(page.get_by_role("button", name="Save grades")).to_be_hidden()
    begin(page, "Anna")
    button = page.get_by_role("button", name="Save grades")
    expect(button).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Show all of the text").click()
    for place in ("0", "document.body.scrollHeight / 2", "document.body.scrollHeight"):
        page.evaluate(f"window.scrollTo(0, {place})")
        expect(button).to_be_in_viewport(ratio=1)
        box = button.bounding_box()
        assert box is not None
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).id", middle) == "save"


def test_saving_within_a_question_says_which_question_is_incomplete(
    open_file: Open, sheet: Path, tmp_path: Path
) -> None:
    page = open_file(sheet).page
    begin(page, "Anna")
    page.keyboard.press("x")
    save(page, tmp_path)
    said = page.locator("#said")
    expect(said).to_contain_text("Saved 1 grade, 1 of them “cannot judge”, as sheet-Anna.csv")
    expect(said).to_contain_text("Complete questions: 0 of 2. Question 1 is judged in part.")
    page.keyboard.press("2")
    page.keyboard.press("2")
    save(page, tmp_path)
    expect(said).to_contain_text(re.compile(r"Complete questions: 1 of 2\.$"))
    page.keyboard.press("b")
    page.keyboard.press("n")
    page.keyboard.press("2")
    save(page, tmp_path)
    expect(said).to_contain_text("Complete questions: 1 of 2. Question 2 is judged in part.")


def test_another_person_starts_with_an_empty_name_and_the_first_keeps_the_grades(open_file: Open, sheet: Path) -> None:
    page = open_file(sheet).page
    begin(page, "Anna")
    page.keyboard.press("2")
    page.locator("#load").set_input_files({"name": "x.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"})
    expect(page.locator("#said")).to_contain_text("not a file of grades")
    page.get_by_role("button", name="Another person").click()
    name, kept, go = page.get_by_label("Your name"), page.locator("#kept"), page.locator("#go")
    assert (name.input_value(), page.locator("#said").inner_text()) == ("", "")
    assert kept.inner_text() == "The grades of Anna stay saved in this browser, under this name."
    assert go.inner_text() == "Start"
    name.fill("Anna")
    assert kept.inner_text() == "The grades of Anna are saved in this browser: 1 of 7 documents judged."
    assert go.inner_text() == "Go on"
    begin(page, "Ben")
    assert "0 judged." in progress(page)


@pytest.mark.parametrize(
    ("columns", "first", "at_document"),
    [
        ({}, "Only the titles of the documents are known.", "Only the title of this document is known."),
        ({"url": "https://example.org/d"}, "To read a document, open its address.", "Open its address"),
        ({"text": "A text."}, "Judge what the document says, not how you like it. If you cannot tell", "A text."),
    ],
)
def test_a_judge_is_not_told_to_read_what_is_not_there(
    open_file: Open, columns: dict[str, str], first: str, at_document: str, tmp_path: Path
) -> None:
    rows = {"query_id": "q", "query": "who?", "doc_id": "d", "title": "T", "grade": None}
    write_judging_page(pl.DataFrame(rows | columns), tmp_path / "sheet.html")
    page = open_file(tmp_path / "sheet.html").page
    start = page.locator("#start").inner_text()
    assert first in start
    assert ("address" in start) == ("url" in columns)
    begin(page, "Anna")
    assert at_document in page.locator("#text").inner_text()


def test_a_note_says_that_it_is_saved(open_file: Open, sheet: Path) -> None:
    page = open_file(sheet).page
    begin(page, "Anna")
    saved = page.locator("#noted")
    assert saved.inner_text() == ""
    page.get_by_label("Note").fill("unclear")
    assert saved.inner_text() == "✓ saved"
    page.get_by_role("button", name="Next").click()
    assert saved.inner_text() == ""
    page.get_by_role("button", name="Back").click()
    assert saved.inner_text() == "✓ saved"


def test_the_question_stands_at_the_same_place_for_each_document(open_file: Open, sheet: Path) -> None:
    page = open_file(sheet).page
    begin(page, "Anna")
    places = set()
    are_new = []
    for _ in range(3):
        are_new.append(page.locator("#new").is_visible())
        places.add(page.locator("#question").evaluate("element => element.getBoundingClientRect().top"))
        page.keyboard.press("n")
    assert are_new == [True, False, False]
    assert len(places) == 1


def test_each_grade_shows_the_explanation_that_its_scale_declares(open_file: Open, tmp_path: Path) -> None:
    path = tmp_path / "sheet.html"
    write_judging_page(
        gg.pool({"a": {"q": {"d": 1.0}}}), path, scale="0: no: another subject; 1: partly; 2: yes: all of it"
    )
    page = open_file(path).page
    begin(page, "Anna")
    buttons = page.locator("#grades button:not(.cannot)").all_inner_texts()
    assert ["another subject" in buttons[0], "all of it" in buttons[2]] == [True, True]
    assert page.locator("#grades small").all_inner_texts() == ["another subject", "all of it"]


@pytest.mark.slow
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_serious_on_any_screen(open_file: Open, sheet: Path, colours: str, width: int) -> None:
    opened = open_file(sheet)
    opened.show_as(colours=colours, width=width)
    assert opened.find_violations() == []
    begin(opened.page, "Anna")
    opened.page.keyboard.press("2")
    opened.page.keyboard.press("b")
    assert opened.find_violations() == []
    assert not opened.is_too_wide()
    for _ in range(8):
        opened.page.keyboard.press("n")
    assert "no grade yet" in opened.page.locator("h1:visible").inner_text()
    assert opened.find_violations() == []
    assert not opened.is_too_wide()


def test_the_keyboard_alone_is_enough(open_file: Open, sheet: Path) -> None:
    """With Tab and Enter: the name, a grade, the note, back, save."""
    opened = open_file(sheet)
    page = opened.page

    def tab_to(name: str) -> None:
        for _ in range(30):
            page.keyboard.press("Tab")
            focused = page.locator("*:focus")
            if focused.count() and name in (focused.inner_text() or focused.get_attribute("id") or ""):
                return
        raise AssertionError(f"Tab does not reach {name}")

    tab_to("judge")
    page.keyboard.type("Anna")
    tab_to("Start")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "question"  # a screen reader reads the new question
    tab_to("answers most of it")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "title"
    tab_to("note")
    page.keyboard.type("2 x b")  # no keys while one writes
    assert progress(page).startswith("Document 2 of 7, question 1 of 2 (document 2 of 3). 1 judged.")
    tab_to("Back")
    page.keyboard.press("Enter")
    assert page.locator("#grades [aria-pressed=true]").inner_text().startswith("3")
    page.locator("#keyed").uncheck()
    page.keyboard.press("0")
    assert progress(page).startswith("Document 1 of 7")
    tab_to("Save grades")
    with page.expect_download():
        page.keyboard.press("Enter")
    assert "Saved 1 grade as sheet-Anna.csv" in page.locator("#said").inner_text()
    assert page.locator("#said").get_attribute("role") == "status"
