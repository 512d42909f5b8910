"""Calls to a scripted endpoint, by the real client: every good answer is kept, every failure has its status, nothing twice."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.judgments.labelling import endpoint
from goodgain.judgments.labelling.budget import Budget, Pace, StoppedError
from tests.judgments.labelling.endpoint import Call, Server, completion, content_of, good, serve
from tests.support.counts import how_many, some_of
from tests.support.notices import collect_notices

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))

#: An answer that may be good later, by the name of the fault.
PASSING: dict[str, Any] = {
    "429": (429, {"error": {"message": "slow down"}}, {"Retry-After": "0.02"}),
    "500": (500, {"error": {"message": "oops"}}, {}),
    "hang": "hang",
    "closed": "close",
    "cut": b'{"choices": [{"mess',
}
#: An answer that stays what it is -> the status of the document.
LASTING: dict[str, tuple[Any, str]] = {
    "refusal": (completion(None, refusal="I will not"), "refused"),
    "a grade of 5": (good(5), "malformed"),
    "2013": (completion("I cannot help with the events of 2013, grade 3."), "malformed"),
    "huge": (completion("x" * 1_200_000), "malformed"),
    "too long": ((400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, {}), "too_long"),
    "filter": (completion('{"grade": 4, "reason": "x"}', finish="length"), "too_long"),
}


def documents(count: int) -> dict[str, str]:
    return {f"d{k}": f"text {k}" for k in range(count)}


def number_of(call: Call) -> int:
    return int(content_of(call).split("\ntext ")[1].split("\n")[0])


def ask(server: Server, count: int, **options: Any) -> pl.DataFrame:
    texts = documents(count)
    run = {"q": {doc: float(-k) for k, doc in enumerate(texts)}}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "nothing was graded|only .* requests gave a grade")
        return gg.label(run, {"q": "who"}, texts=texts, base_url=server.url, **{"model": "judge", **options})


def grades_of(found: pl.DataFrame) -> dict[int, int | None]:
    return {int(doc[1:]): grade for doc, grade in found.select("doc_id", "grade").iter_rows()}


@pytest.mark.slow
def test_good_answers_are_kept_and_each_fault_has_its_status() -> None:
    """Of 20 documents one has each fault that passes, and one each that lasts: 5 in 100."""
    count = how_many(40, full=1_000)
    passing, lasting = list(PASSING), list(LASTING)

    def script(call: Call) -> Any:
        kind = number_of(call) % 20
        if kind < len(passing):
            return PASSING[passing[kind]] if call.before == 0 else good(kind % 5)
        kind -= len(passing)
        return LASTING[lasting[kind]][0] if kind < len(lasting) else good(number_of(call) % 5)

    with serve(script) as server:
        found = ask(server, count, timeout=1.0 if count < 1000 else 10.0, jobs=8 if count < 1000 else 128)
    for doc, grade, status in found.select("doc_id", "grade", "status").iter_rows():
        kind = int(doc[1:]) % 20
        if kind < len(passing):
            assert (grade, status) == (kind % 5, "ok"), doc
        elif kind < len(passing) + len(lasting):
            assert (grade, status) == (None, LASTING[lasting[kind - len(passing)]][1]), doc
        else:
            assert (grade, status) == (int(doc[1:]) % 5, "ok"), doc
    assert server.count == count + count // 20 * len(passing)


@pytest.mark.slow
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_body_without_end_is_read_up_to_a_limit(is_packed: bool) -> None:
    """16 MB are enough to say that it is no answer."""
    piece = b" " * (1 << 20)
    sent: list[int] = []

    def drown() -> Iterator[bytes]:
        packer = zlib.compressobj(wbits=31)
        for _ in range(2_000 if is_packed else 200):
            sent.append(len(piece))
            yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) if is_packed else piece

    reply = 200, drown, {"Content-Encoding": "gzip"} if is_packed else {}
    with serve(lambda call: (reply[0], reply[1](), reply[2])) as server:
        found = ask(server, 1, tries=2)
        assert server.count == 2
    assert found["status"].to_list() == ["malformed"]
    assert found["reason"].to_list() == ["the answer is not whole JSON"]
    assert is_packed or sum(sent) < 100 << 20


@pytest.mark.slow
def test_an_answer_that_drips_ends_too() -> None:
    """Each byte comes in time, and all of them would take an hour."""

    def drip() -> Iterator[bytes]:
        for _ in range(7_200):
            time.sleep(0.05)
            yield b" "

    with serve(lambda call: good() if number_of(call) else (200, drip(), {})) as server:
        began = time.monotonic()
        found = ask(server, 2, tries=1, timeout=0.3, jobs=2)
    assert found["status"].to_list() == ["timeout", "ok"]
    assert time.monotonic() - began < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "piece"),
    [(b"HTTP/1.1 200 OK\r\nx-slow: ", b"a"), (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n")],
    ids=["headers", "answers 103"],
)
def test_headers_that_drip_end_too(head: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_WHOLE", 4)

    def drip() -> Iterator[bytes]:
        yield head
        for _ in range(200):
            time.sleep(0.05)
            yield piece

    with serve(lambda call: good() if number_of(call) else drip()) as server:
        began = time.monotonic()
        found = ask(server, 2, tries=3, timeout=0.3, jobs=2)
        assert server.count == 2  # late answers are not asked for again
    assert found["status"].to_list() == ["timeout", "ok"]
    assert time.monotonic() - began < 8


@pytest.mark.slow
def test_the_wait_for_the_limits_per_minute_is_no_part_of_the_time_of_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reserve = Budget.reserve

    def wait(budget: Budget, tokens: int) -> list[float]:
        time.sleep(1.2)
        return reserve(budget, tokens)

    monkeypatch.setattr(endpoint, "_WHOLE", 1)
    monkeypatch.setattr(Budget, "reserve", wait)
    with serve(lambda call: good()) as server:
        assert ask(server, 1, tries=1, timeout=1.0)["status"].to_list() == ["ok"]


@pytest.mark.slow
def test_retry_after_is_obeyed() -> None:
    def script(call: Call) -> Any:
        return good() if call.before else (429, {"error": {"message": "slow"}}, {"Retry-After": "1"})

    with serve(script) as server:
        found = ask(server, 2)
    assert found["grade"].to_list() == [3, 3]
    by_text: dict[str, list[float]] = {}
    for call in server.calls:
        by_text.setdefault(content_of(call), []).append(call.at)
    assert all(second - first >= 0.99 for first, second in by_text.values())


@pytest.mark.parametrize("asked", ["300", "3600.0", "date"])
def test_a_long_retry_after_is_waited_for_and_told_once(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client itself gives up where an answer asks for over two minutes."""
    waited: list[float] = []
    monkeypatch.setattr(Budget, "pause", lambda self, seconds: waited.append(seconds))
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=301), usegmt=True) if asked == "date" else asked

    def script(call: Call) -> Any:
        return good() if call.before else (429, {"error": {"message": "slow"}}, {"Retry-After": when})

    with (
        serve(script) as server,
        # on a busy machine less time is left until the date
        pytest.warns(match=r"asks to wait (29[0-9]|30[01]|3,600) seconds before the next try") as told,
    ):
        assert ask(server, 3, tries=2)["grade"].to_list() == [3, 3, 3]
    assert len(told) == 1
    assert len(waited) == 3 and all(abs(seconds - (3600 if asked == "3600.0" else 300)) < 10 for seconds in waited)
    with serve(lambda call: (429, {"error": {"message": "slow"}}, {"Retry-After": "300"})) as server:
        assert ask(server, 1, tries=1)["status"].to_list() == ["http_429"]
    assert len(waited) == 3, "no try is left to wait for"


def test_a_wait_ends_with_the_job() -> None:
    budget = Budget()
    threading.Timer(0.1, budget.end, ["it is over"]).start()
    began = time.monotonic()
    budget.pause(60)
    assert time.monotonic() - began < 30


def test_answers_of_the_journal_are_not_asked_for_again(tmp_path: Path) -> None:
    journal = tmp_path / "answers"
    with serve(lambda call: good(number_of(call) % 5) if number_of(call) % 3 else good(7)) as server:
        first = ask(server, 9, journal=journal)
        assert server.count == 9
        again = ask(server, 12, journal=journal)
        assert server.count == 12
    assert again.filter(pl.col("doc_id").is_in(first["doc_id"].to_list())).equals(first)


def test_answers_to_the_older_prompt_are_told_if_the_default_prompt_asks_again(tmp_path: Path) -> None:
    journal = tmp_path / "answers"
    with serve(lambda call: good(number_of(call) % 5)) as server:
        ask(server, 3, journal=journal, prompt="good-gain-1")
        with pytest.warns(
            gg.GoodgainNotice, match="the journal has 3 unused answers to the older prompt .* prompt='good-gain-1'"
        ):
            ask(server, 3, journal=journal)
    assert server.count == 6


CHANGES = CASES["changes of what is asked"]


@pytest.mark.parametrize("change", some_of([*CHANGES, "prompt", "sample", "description"], every=3))
def test_a_change_of_what_is_asked_is_a_new_key(change: str, tmp_path: Path) -> None:
    base: dict[str, Any] = {
        "queries": {"q": "who"},
        "texts": {"a": "a text"},
        "model": "judge",
        "journal": tmp_path / "j",
    }
    more = CHANGES.get(change, {})

    if change == "prompt":
        (tmp_path / "mine.txt").write_text("{{query}} {{document}}")
        more = {"prompt": tmp_path / "mine.txt"}
    elif change == "sample":
        base |= {"temperature": 0.7}
        more = {"samples": 2}
    elif change == "description":
        more = {"queries": pl.DataFrame({"query_id": ["q"], "text": ["who"], "description": ["the payer"]})}

    with serve(lambda call: good()) as server:
        for options in (base, base, base | more, base | more):
            options = dict(options)
            gg.label({"q": {"a": 1.0}}, options.pop("queries"), base_url=server.url, **options)
        assert server.count == 2


def test_a_doc_id_is_not_the_key() -> None:
    """Two documents of one text are asked for once; one document for two queries twice."""
    with serve(lambda call: good()) as server:
        run = {"q": {"a": 2.0, "b": 1.0}, "p": {"a": 1.0}}
        grades = gg.label(
            run, {"q": "who", "p": "what"}, texts={"a": "same", "b": "same"}, model="m", base_url=server.url
        )
    assert (server.count, grades["grade"].to_list()) == (2, [3, 3, 3])


@pytest.mark.slow
@pytest.mark.parametrize("says_usage", [True, False])
def test_the_budget_of_tokens_is_never_passed(says_usage: bool) -> None:
    """The bytes of what is sent and the largest answer are reserved; what the endpoint counts takes their place."""
    spent: list[int] = []

    def script(call: Call) -> Any:
        sent = sum(len(message["content"].encode()) for message in call.body["messages"])
        spent.append(sent + call.body["max_completion_tokens"])
        return completion('{"grade": 1}', usage=says_usage)

    with serve(script) as server, pytest.warns(gg.GoodgainNotice, match="the budget is spent"):
        ask(server, 150, max_tokens=12_000, jobs=4)
    if says_usage:  # 110 tokens each: many more calls fit than their reservations say
        assert 12_000 / max(spent) < server.count <= 12_000 / 110
    else:
        assert sum(spent) <= 12_000


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 1, "completion_tokens": 10}]
)
def test_an_endpoint_that_counts_nothing_spends_the_budget_all_the_same(usage: dict[str, int]) -> None:
    """At least the bytes of what is sent: a text of a thousand bytes is not one token."""
    sent: list[int] = []

    def script(call: Call) -> Any:
        sent.append(sum(len(message["content"].encode()) for message in call.body["messages"]))
        return good() | {"usage": usage}

    with serve(script) as server, pytest.warns(gg.GoodgainNotice, match="the budget is spent"):
        ask(server, 40, max_tokens=12_000, jobs=1)
    assert sum(sent) <= 12_000
    assert server.count < 12


@pytest.mark.parametrize(
    ("asked", "answers", "is_told"),
    [
        ("gpt-4.1", "gpt-4.1-mini", True),
        ("gpt-4", "gpt-4.1", True),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", True),
        ("judge", "somebody/else", True),
        ("openai/gpt-4.1", "gpt-4.1-2025-04-14", False),
        ("gemini-2.0-flash", "models/gemini-2.0-flash-001", False),
        ("claude-haiku-latest", "claude-haiku-20260101", False),
        ("judge", None, False),
    ],
)
def test_an_endpoint_that_answers_as_another_model_is_told_once(asked: str, answers: str | None, is_told: bool) -> None:
    with serve(lambda call: good() | {"model": answers}) as server, collect_notices() as notices:
        assert ask(server, 3, model=asked)["status"].to_list() == ["ok"] * 3
    texts = [str(notice) for notice in notices if "answers as the model" in str(notice)]
    assert len(texts) == is_told
    assert all(f"{answers}, and {asked} was asked for" in text for text in texts)


def test_there_are_no_more_threads_than_calls() -> None:
    threads: list[int] = []

    def script(call: Call) -> Any:
        threads.append(threading.active_count())
        time.sleep(0.2)
        return good()

    before = threading.active_count()
    with serve(script) as server:
        ask(server, 2, jobs=400)
    assert max(threads) < before + 20
    with serve(lambda call: good()) as server:
        assert ask(server, 2, jobs=10**20)["grade"].to_list() == [3, 3]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("grade", value) for value in (99, -1, 1.5, "3 or 4", b"3", None)),
        *(("status", value) for value in ("timeout", "no_grade", b"ok")),
        ("reason", b"x"),
        *(("input_tokens", value) for value in (-5, 1.5, "many")),
    ],
)
def test_what_no_model_answered_is_never_read_from_a_journal(column: str, value: Any, tmp_path: Path) -> None:
    journal = tmp_path / "j"
    with serve(lambda call: good()) as server:
        ask(server, 2, journal=journal)
        connection = sqlite3.connect(journal)
        connection.execute(f"UPDATE answers SET {column} = ? WHERE doc_id = 'd1'", (value,))
        connection.commit()
        connection.close()

        with pytest.warns(gg.GoodgainNotice, match=r"the journal has 1 answer that no model gave.* asked for again"):
            found = ask(server, 2, journal=journal)
        assert server.count == 3
        assert ask(server, 2, journal=journal).equals(found)  # the row is repaired
    assert found["grade"].to_list() == [3, 3]
    assert found["status"].to_list() == ["ok", "ok"]


def test_a_grade_that_the_prompt_does_not_have_is_asked_again_with_retry_failed(tmp_path: Path) -> None:
    with serve(lambda call: good(3)) as server:
        ask(server, 1, journal=tmp_path / "j", prompt="umbrela")
        connection = sqlite3.connect(tmp_path / "j")
        connection.execute("UPDATE answers SET grade = 4")
        connection.commit()
        connection.close()
        with pytest.warns(gg.GoodgainNotice, match="that no model gave"):
            found = ask(server, 1, journal=tmp_path / "j", prompt="umbrela", retry_failed=True)
    assert found["grade"].to_list() == [3]


def test_a_key_that_is_not_accepted_stops_the_job_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-1")
    reply = 401, {"error": {"message": "Incorrect API key sk-secret-1"}}, {}
    said = "the key is not accepted. Set the variable MY_KEY"
    with serve(lambda call: reply) as server, pytest.raises(gg.InputError, match=said) as raised:
        ask(server, 50, key_variable="MY_KEY", jobs=2)
    assert server.count <= 4
    assert "sk-secret" not in str(raised.value)


def test_an_endpoint_that_ignores_the_largest_answer_stops_the_job(tmp_path: Path) -> None:
    def script(call: Call) -> Any:
        return good() | {"usage": {"prompt_tokens": 100, "completion_tokens": 900}}

    with serve(script) as server:
        with pytest.raises(
            StoppedError, match=r"900 tokens, over the limit of 400: it ignores max_completion_tokens.*output_limit="
        ):
            ask(server, 100, jobs=2, journal=tmp_path / "j", max_output_tokens=400)
        sent = server.count
        assert sent <= 4
        with pytest.raises(StoppedError):
            ask(server, sent + 1, jobs=1, journal=tmp_path / "j", max_output_tokens=400)
        assert server.count == sent + 1  # the answers themselves were kept


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in CASES["options out of their range"].items() for value in values],
)
def test_an_option_that_is_out_of_its_range_is_named(name: str, value: Any) -> None:
    """k=0 meant all, max_characters=0 sent empty documents, and a temperature of NaN was written as null."""
    options: dict[str, Any] = {"texts": {"a": "b"}, "model": "m", "base_url": "http://127.0.0.1:9/v1", name: value}
    with pytest.raises(gg.InputError, match=f"^{name}=.*: .*give "):
        gg.label({"q": {"a": 1.0}}, {"q": "who"}, **options)


def test_samples_are_judges_of_their_own() -> None:
    with serve(lambda call: good(call.before)) as server:
        found = ask(server, 2, temperature=0.7, samples=3, jobs=1)
    judge = found["judge"][0].partition("#")[0]
    assert sorted(set(found["judge"])) == [f"{judge}#{k}" for k in (1, 2, 3)]
    assert sorted(found["grade"]) == [0, 0, 1, 1, 2, 2]
    labels = gg.aggregate(found, scale="good-gain", how="mean")
    assert labels["relevance"].to_list() == [1.0, 1.0]
    with pytest.raises(gg.InputError, match="samples at temperature 0 repeat one answer"):
        gg.label({"q": {"a": 1.0}}, {"q": "who"}, texts={"a": "b"}, model="m", samples=2)


def test_the_key_is_in_no_file_and_no_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-2")

    def script(call: Call) -> Any:
        assert call.headers["authorization"] == "Bearer sk-secret-2"
        if number_of(call) % 2:
            return 500, {"error": {"message": "failed for sk-secret-2"}}, {"Retry-After": "0"}
        return completion("your key is sk-secret-2")

    with serve(script) as server:
        found = ask(server, 4, journal=tmp_path / "j", tries=2)
    assert Counter(found["status"]) == {"http_500": 2, "malformed": 2}
    assert "sk-secret" not in found.write_ndjson()
    assert all(b"sk-secret" not in path.read_bytes() for path in tmp_path.iterdir())


def test_nothing_is_sent_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(gg.InputError, match="nothing is sent anywhere by default"):
        gg.label({"q": {"a": 1.0}}, {"q": "who"}, texts={"a": "b"}, model="m")
    for url in ("localhost:8000", "file:///etc/passwd", "http://[", "http://a:b/v1", 5):
        with pytest.raises(gg.InputError, match="is not an http address"):
            gg.label({"q": {"a": 1.0}}, {"q": "who"}, texts={"a": "b"}, model="m", base_url=url)  # type: ignore[arg-type]  # 5 is not a text


def test_a_judge_of_the_agents_own_family_is_said() -> None:
    run = {"gpt-5-agent": {"q": {"a": 1.0}}, "bm25": {"q": {"a": 1.0}}}
    with serve(lambda call: good()) as server:
        with pytest.warns(gg.GoodgainNotice, match="the system gpt-5-agent are of one family"):
            gg.label(run, {"q": "who"}, texts={"a": "b"}, model="openai/GPT-4.1-mini", base_url=server.url)
        gg.label(run, {"q": "who"}, texts={"a": "b"}, model="qwen3-32b", base_url=server.url)  # no notice


@pytest.mark.parametrize("write", [lambda path: path.write_bytes(b"no database"), lambda path: path.mkdir()])
def test_a_journal_that_is_something_else_is_refused(tmp_path: Path, write: Callable[[Path], object]) -> None:
    write(tmp_path / "j")
    with serve(lambda call: good()) as server, pytest.raises(gg.InputError, match="cannot be used as journal"):
        ask(server, 1, journal=tmp_path / "j")
    connection = sqlite3.connect(tmp_path / "other")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with serve(lambda call: good()) as server, pytest.raises(gg.InputError, match="is a database, but not a journal"):
        ask(server, 1, journal=tmp_path / "other")


def test_a_journal_with_another_table_of_answers_is_refused(tmp_path: Path) -> None:
    with serve(lambda call: good()) as server:
        ask(server, 1, journal=tmp_path / "j")
        connection = sqlite3.connect(tmp_path / "j")
        connection.execute("DROP TABLE answers")
        connection.execute("CREATE TABLE answers (mine)")
        connection.close()
        with pytest.raises(
            gg.InputError, match=r"j: cannot be used as journal \(its table of answers has the columns mine"
        ):
            ask(server, 1, journal=tmp_path / "j")


def test_a_journal_that_is_damaged_below_its_head_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with serve(lambda call: good()) as server:
        ask(server, 60, journal=path)
        content = path.read_bytes()
        path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
        with pytest.raises(gg.InputError, match="j: cannot be used as journal"):
            ask(server, 60, journal=path)


def test_a_pace_is_kept() -> None:
    now, sent = 0.0, []
    pace = Pace(10, 1_000)
    for _ in range(50):
        while (delay := pace.find_delay(150, now)) > 0:
            now += delay
        pace.add(150, now)
        sent.append(now)
    for start in sent:  # 150 tokens each: six calls fit in a minute
        assert sum(start <= at < start + 60 for at in sent) <= 6


def test_a_pace_counts_what_the_endpoint_reports() -> None:
    """Calls that reserve 2,000 tokens and use 100: nearly all that a minute allows are sent."""
    pace, now, sent = Pace(None, 10_000), 0.0, 0
    while now < 60:
        delay = pace.find_delay(2_000, now)
        if delay > 0:
            now += delay
            continue
        pace.settle(pace.add(2_000, now), 2_000, 100)
        now += 0.01
        sent += 1
    assert 95 <= sent <= 100


def test_many_kept_answers_are_found_quickly(tmp_path: Path) -> None:
    """The time is that of one pass over the documents: no call is made, and no endpoint is needed."""
    count = how_many(2_000, full=20_000)
    with serve(lambda call: good()) as server:
        ask(server, 1, journal=tmp_path / "j")
    from goodgain.judgments.labelling.answers_and_journal import Answer, Journal
    from goodgain.judgments.labelling.documents_to_label import collect_documents
    from goodgain.judgments.labelling.prompt_requests import Parameters, make_requests, read_prompt

    texts = documents(count)
    run = {"q": {doc: float(-k) for k, doc in enumerate(texts)}}
    wanted, _ = collect_documents(run, {"q": "who"}, texts=texts)
    with Journal.open(tmp_path / "j") as journal:
        for request in make_requests(wanted, read_prompt(), Parameters("judge")):
            assert request is not None
            journal.add(
                request.key, Answer(2, None, "ok"), query_id="q", doc_id=request.doc_id, host="h", question="", judge=""
            )
    began = time.process_time()
    grades = gg.label(run, {"q": "who"}, texts=texts, model="judge", journal=tmp_path / "j")
    assert grades["grade"].to_list() == [2 if doc != "d0" else grades.item(0, "grade") for doc in grades["doc_id"]]
    print(f"{count} kept answers: {time.process_time() - began:.1f} s of processor time")
