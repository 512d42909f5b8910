"""Converting: what is written, what is refused, and that a conversion that failed leaves nothing behind."""

# ruff: noqa: E501  # cases are easier to read one a line

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import Summary, convert_traces, read_results, read_traces, to_run, write_results
from tests.cli.test_command_line import goodgain

from .conftest import by_iteration
from .logs import Call, Story, Turn, conversation, docs, inspect_ai, jsonl, openai_chat


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "q1.json"
    path.write_text(openai_chat(conversation()))
    return path


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


_RUN = [
    "q1 1 d3 1 1.0 goodgain", "q1 1 d1 2 0.5 goodgain", "q1 1 d4 3 0.3333333333333333 goodgain", "q1 1 d1 4 0.25 goodgain",
    "q1 2 - 0 0.0 goodgain", "q1 3 - 0 0.0 goodgain", "q1 4 d2 1 1.0 goodgain", "q1 4 d1 2 0.5 goodgain",
]  # fmt: skip


def test_a_trace_becomes_a_run_and_results(chat: Path) -> None:
    done = convert_traces(chat, chat.with_name("a.run"), results=chat.with_name("r.jsonl"))
    assert _lines(chat.with_name("a.run")) == _RUN
    written = read_results(chat.with_name("r.jsonl"))
    assert written.drop("document").equals(read_traces(chat))
    assert written["document"].equals(written["doc_id"], null_equal=True), "ids of a log are its documents"
    assert (done.rows, done.runs, done.summary.traces) == (8, {"goodgain": chat.with_name("a.run")}, 1)


def test_runs_are_written_in_every_container(chat: Path) -> None:
    rows = to_run(read_traces(chat)).rows()
    for name, read in (("a.parquet", pl.read_parquet), ("a.arrow", pl.read_ipc), ("a.jsonl", pl.read_ndjson)):
        convert_traces(chat, chat.with_name(name))
        assert read(chat.with_name(name)).rows() == rows
    for name in ("a.run.gz", "a.jsonl.zst"):
        convert_traces(chat, chat.with_name(name))
    assert gzip.decompress(chat.with_name("a.run.gz").read_bytes()).decode().splitlines() == _RUN
    assert chat.with_name("a.jsonl.zst").read_bytes().startswith(b"\x28\xb5\x2f\xfd")


def test_ids_with_white_space_are_escaped_with_a_notice_and_kept_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "q 1.json"
    path.write_text(openai_chat(Story([Turn([[Call(docs("a b", "c\u2028d"))]])])))
    with pytest.warns(GoodgainNotice, match="in 4 ids were written as %XX"):
        convert_traces(path, tmp_path / "a.run")
    assert [line.split(" ")[:3] for line in _lines(tmp_path / "a.run")] == [
        ["q%201", "1", "a%20b"], ["q%201", "1", "c%E2%80%A8d"],
    ]  # fmt: skip
    convert_traces(path, tmp_path / "a.parquet")
    assert pl.read_parquet(tmp_path / "a.parquet")["doc_id"].to_list() == ["a b", "c\u2028d"]


def test_a_conversion_that_failed_leaves_nothing_behind_and_overwrites_nothing(chat: Path) -> None:
    bad = chat.with_name("q2.json")
    bad.write_text(openai_chat(Story([Turn([[Call("prose")]])])))
    out, results = chat.with_name("a.run"), chat.with_name("r.parquet")
    out.write_text("old")
    before = _left(chat.parent)
    with pytest.raises(InputError, match=r"q2\.json"):
        convert_traces([chat, bad], out, results=results)
    assert (_left(chat.parent), out.read_text()) == (before, "old")


def test_an_interrupted_conversion_leaves_nothing_behind(chat: Path) -> None:
    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    before = _left(chat.parent)
    with pytest.raises(KeyboardInterrupt):
        convert_traces(chat, chat.with_name("a.run"), progress=interrupt)
    assert _left(chat.parent) == before


@pytest.mark.parametrize(
    ("output", "results", "said"),
    [
        ("q1.json", None, "is the same file as the input"), ("a.run", "a.csv", ".parquet or .jsonl"), ("nowhere/a.run", None, "nowhere does not exist. Create it"),
        ("a.jsonl", "a.jsonl", "name of its own"), (".", None, "is a directory"),
    ],
)  # fmt: skip
def test_outputs_that_cannot_be_are_refused(chat: Path, output: str, results: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        convert_traces(chat, chat.parent / output, results=results and chat.parent / results)
    assert _left(chat.parent) == {"q1.json"}


# Systems


@pytest.fixture
def epochs(tmp_path: Path) -> Path:
    log = json.loads(inspect_ai(Story([Turn([[Call(docs("d1"))]])])))
    log["samples"].append({**log["samples"][0], "epoch": 2})
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    return path


def test_several_runs_in_one_output_are_refused_by_name(epochs: Path) -> None:
    with pytest.raises(InputError, match=r"several runs of a system \(m-1, m-2\).*system=.*\{system\}"):
        convert_traces(epochs, epochs.with_name("a.run"))
    assert _left(epochs.parent) == {"log.json"}


def test_one_system_is_picked_or_each_gets_a_file(epochs: Path) -> None:
    convert_traces(epochs, epochs.with_name("a.run"), system="m-2")
    assert _lines(epochs.with_name("a.run")) == ["story 1 d1 1 1.0 m"]
    done = convert_traces(epochs, epochs.with_name("run-{system}.txt"))
    assert {name: path.name for name, path in done.runs.items()} == {"m-1": "run-m.1.txt", "m-2": "run-m.2.txt"}
    with pytest.raises(InputError, match="no system 'm-3', only 'm-1', 'm-2'"):
        convert_traces(epochs, epochs.with_name("b.run"), system="m-3")
    assert "b.run" not in _left(epochs.parent)


def test_a_tag_names_the_system(epochs: Path, chat: Path) -> None:
    convert_traces(chat, chat.with_name("a.run"), tag="mine")
    assert {line.split()[-1] for line in _lines(chat.with_name("a.run"))} == {"mine"}
    assert set(read_traces(epochs, tag="mine").select("system", "replicate").rows()) == {("mine", "1"), ("mine", "2")}


# Documents


def _by_title(frame: pl.DataFrame) -> pl.DataFrame:
    """A deduplication of its own: what has one title is one document."""
    return frame.with_columns(document="doc:" + pl.col("title"))


def test_queries_whose_results_lack_ids_are_deduplicated_and_the_others_keep_their_ids(tmp_path: Path) -> None:
    bare = [{"title": "T", "snippet": "x"}, {"title": "T", "snippet": "y"}]
    path = tmp_path / "log.jsonl"
    stories = [Story([Turn([[Call(found)]])]) for found in (docs("d1"), bare, docs("d2"))]
    path.write_text("".join(jsonl(story).replace('"story"', f'"q{n}"') for n, story in enumerate(stories)))
    with pytest.warns(GoodgainNotice, match=r"results of 1 query lack ids.*deduplication"):
        done = convert_traces(path, tmp_path / "a.run", deduplicate=_by_title)
    assert [line.split()[:3] for line in _lines(tmp_path / "a.run")] == [
        ["q0", "1", "d1"], ["q1", "1", "doc:T"], ["q1", "1", "doc:T"], ["q2", "1", "d2"],
    ]  # fmt: skip
    assert done.deduplicated == 1
    convert_traces(path, tmp_path / "b.run")
    assert len({line.split()[2] for line in _lines(tmp_path / "b.run")}) == 4, "without it, texts tell them apart"


def test_results_of_several_systems_are_deduplicated_together(tmp_path: Path) -> None:
    seen: list[pl.DataFrame] = []

    def deduplicate(frame: pl.DataFrame) -> pl.DataFrame:
        seen.append(frame)
        return _by_title(frame)

    lines = []
    for system in ("a", "b"):
        line = json.loads(jsonl(Story([Turn([[Call([{"title": "T", "snippet": system}])]])])))
        lines.append(json.dumps({**line, "system": system}))
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    with pytest.warns(GoodgainNotice, match="1 query lack ids"):
        convert_traces(tmp_path / "log.jsonl", tmp_path / "{system}.run", deduplicate=deduplicate)
    assert [sorted(frame["system"]) for frame in seen] == [["a", "b"]]
    assert [_lines(tmp_path / f"{name}.run")[0].split()[2] for name in "ab"] == ["doc:T", "doc:T"]


# Files


def test_results_with_ids_and_fields_are_the_same_after_a_file(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    hit = {"docid": "d", "FileId": "f", "sender": "s", "text": "t", "score": 1}
    path.write_text(openai_chat(Story([Turn([[Call([hit, {"docid": "e"}])], [Call([])]])])))
    results = read_traces(path)
    for name in ("r.parquet", "r.jsonl", "r.jsonl.gz", "r.jsonl.zst"):
        write_results(results, tmp_path / name)
        assert read_results(tmp_path / name).equals(results)
    first = json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])
    assert (first["ids"], first["fields"]) == ({"file_id": "f"}, {"sender": "s"})


def test_a_directory_stands_for_the_traces_in_it(chat: Path) -> None:
    (chat.parent / "notes.md").write_text("no trace")
    assert by_iteration(read_traces(chat.parent)) == by_iteration(read_traces(chat))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: folder / "none.json", "no such file"), (lambda folder: folder, "holds no file that ends in"),
        (lambda folder: [], "no trace was given"), (lambda folder: _write(folder / "e.json", ""), "is empty"),
        (lambda folder: _write(folder / "e.json", "hello"), "looks like text that begins with 'hello'.*the format jsonl"),
        (lambda folder: _write(folder / "e.json", '[{"a": 1}]'), "in no known trace format"),
        (lambda folder: _write(folder / "e.json.gz", b"\x1f\x8b\x08\x00"), "truncated or damaged"),
        (lambda folder: [_write(folder / "e.json", "[]")] * 2, "given twice"),
        (lambda folder: '[{"role": "user"}]' * 100, "name too long; give the path of a readable file"),
        (lambda folder: folder / "a\0b.json", "give the path of a readable file"),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_one_error(tmp_path: Path, make: Callable[[Path], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_traces(make(tmp_path))


def test_a_log_given_as_a_text_is_not_a_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name too long; give the path of a readable file"):
        convert_traces('[{"role": "user"}]' * 100, tmp_path / "out.run")


def _write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_bad_traces_are_left_out_and_reported_if_asked_for(tmp_path: Path) -> None:
    good = json.dumps({"messages": json.loads(openai_chat(conversation()))})
    (tmp_path / "log.jsonl").write_text("\n".join([good, "{broken", '{"messages": 5}', good]))
    with pytest.raises(InputError, match=r"log\.jsonl, line 2: is not JSON"):
        read_traces(tmp_path / "log.jsonl")
    with pytest.warns(GoodgainNotice, match=r"2 traces or files were left out: .*line 2.*line 3"):
        results = read_traces(tmp_path / "log.jsonl", errors="skip")
    assert set(results["query_id"]) == {"log-1", "log-4"}, "traces keep their numbers"


@pytest.mark.slow
def test_several_processes_read_what_one_reads(tmp_path: Path) -> None:
    page = {"docid": "long", "snippet": "word " * 20_000}
    story = Story([Turn([[Call([page, *docs("d1")])], [Call(docs("d2"))]])])
    line = json.dumps({"messages": json.loads(openai_chat(story))})
    paths = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    for path in paths:
        path.write_text("".join(line + ("\n\n" if number % 50 == 0 else "\n") for number in range(180)))
        assert path.stat().st_size > 16 << 20, "large enough to be a task of its own"
    seen: list[Summary] = []
    alone = read_traces(paths, report=seen.append)
    shared = read_traces(paths, jobs=2, report=seen.append)
    assert shared.equals(alone)
    assert seen[0] == seen[1]
    assert alone["query_id"][-1] == "b-180"

    paths[1].write_bytes(paths[1].read_bytes() + b"{}\n")
    with pytest.raises(InputError, match=r"b\.jsonl, line 185: expected a list of messages"):
        read_traces(paths, jobs=2)


def test_functions_that_other_processes_cannot_import_are_refused(chat: Path) -> None:
    with pytest.raises(InputError, match="importable by name"):
        read_traces(chat, jobs=2, parse=lambda output: None)


# Names of queries


@pytest.mark.parametrize(
    ("query_id", "names"),
    [
        (None, ["log-1", "log-2"]), ("/metadata/qid", ["a", "b"]), ("metadata.qid", ["a", "b"]),
        (lambda trace: f"f{trace.number}", ["f1", "f2"]), (lambda trace: trace.record["metadata"]["qid"], ["a", "b"]),
    ],
)  # fmt: skip
def test_queries_are_named_by_field_function_or_file(tmp_path: Path, query_id: Any, names: list[str]) -> None:
    messages = json.loads(openai_chat(conversation()))
    lines = [json.dumps({"metadata": {"qid": name}, "messages": messages}) for name in "ab"]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    results = read_traces(tmp_path / "log.jsonl", query_id=query_id)["query_id"]
    assert results.unique(maintain_order=True).to_list() == names


def test_a_constant_names_one_trace_and_is_an_error_for_two(chat: Path) -> None:
    assert set(read_traces(chat, query_id="mine")["query_id"]) == {"mine"}
    other = chat.with_name("q2.json")
    other.write_bytes(chat.read_bytes())
    with pytest.raises(InputError, match=r"q2\.json.*'mine'.*q1\.json"):
        read_traces([chat, other], query_id="mine")


def test_a_field_that_some_traces_lack_is_an_error(tmp_path: Path) -> None:
    messages = json.loads(openai_chat(conversation()))
    lines = [json.dumps({"number": "a", "messages": messages}), json.dumps({"messages": messages})]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"line 2: lacks the field that query_id= names, but .*line 1 has it"):
        read_traces(tmp_path / "log.jsonl", query_id="number")


def test_the_trace_s_own_id_comes_before_query_id(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(jsonl(conversation()))
    with pytest.warns(GoodgainNotice, match="was ignored for 1 query that has an id in the logs, such as 'story'"):
        assert set(read_traces(tmp_path / "log.jsonl", query_id="mine")["query_id"]) == {"story"}


@pytest.mark.parametrize("name", ["turns", "iteration", "unrecorded", "errors", "format"])
def test_options_that_do_not_exist_are_an_error(chat: Path, name: str) -> None:
    with pytest.raises(InputError, match="nonsense"):
        read_traces(chat, **{name: "nonsense"})  # type: ignore[arg-type]  # that is the point


def test_a_log_that_two_formats_claim_is_an_error_that_names_both(tmp_path: Path) -> None:
    both = {"request": {"messages": [{"role": "user", "content": "?"}]}}
    log = [
        {**both, "response": {"choices": [{"message": {"role": "assistant", "content": "!"}}]}},
        {**both, "response": {"type": "message", "role": "assistant", "content": []}},
    ]
    path = _write(tmp_path / "log.json", json.dumps(log))
    with pytest.raises(InputError, match="could be anthropic and openai_chat; choose one with format="):
        read_traces(path)
    assert read_traces(path, format="openai_chat").height == 1


def test_what_users_asked_is_written_once_for_each_query(tmp_path: Path) -> None:
    """Two systems that were asked the same; the text is that of the turn which is the query."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(jsonl(conversation()))
    paths = {"a": tmp_path / "a.jsonl", "b": tmp_path / "b.jsonl"}
    convert_traces(paths, tmp_path / "{system}.run", queries=tmp_path / "queries.jsonl")
    asked = [json.loads(line) for line in _lines(tmp_path / "queries.jsonl")]
    turns = conversation().turns
    assert [query["text"] for query in asked] == [turns[-1].user]
    assert asked[0]["query_id"] == read_traces(tmp_path / "a.jsonl")["query_id"][0]
    convert_traces(paths, tmp_path / "{system}.run", queries=tmp_path / "queries.parquet", turns="all")
    assert pl.read_parquet(tmp_path / "queries.parquet")["text"].to_list() == [turn.user for turn in turns]
    with pytest.raises(InputError, match=r"parquet or \.jsonl"):
        convert_traces(paths, tmp_path / "{system}.run", queries=tmp_path / "queries.txt")


# Costs


def _own(*steps: Any, **more: Any) -> str:
    return json.dumps({"goodgain_trace": 1, "query_id": "q1", "steps": list(steps), **more}) + "\n"


def test_costs_are_written_beside_the_run(tmp_path: Path) -> None:
    search = {"query": "bm25", "results": [{"doc_id": "d1"}]}
    for name in ("a", "b"):
        step = {"searches": [search], "output_tokens": 4, "cost": 0.5}
        (tmp_path / f"{name}.jsonl").write_text(_own(step, repeat=1) + _own(step, repeat=2))
    logs = [f"{name}={tmp_path / name}.jsonl" for name in ("a", "b")]
    goodgain("convert", *logs, "-o", tmp_path / "{system}.run", "--costs", tmp_path / "costs.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "costs.jsonl").read_text().splitlines()]
    assert [(row["query_id"], row["system"], row["replicate"]) for row in rows] == [
        ("q1", "a", "1"), ("q1", "a", "2"), ("q1", "b", "1"), ("q1", "b", "2"),
    ]  # fmt: skip
    assert rows[0] | {"query_id": 0, "system": 0, "replicate": 0} == {
        "query_id": 0, "system": 0, "replicate": 0, "iteration": 1, "calls": 1, "input_tokens": None, "output_tokens": 4,
        "seconds": None, "cost": 0.5, "cached_tokens": None, "reasoning_tokens": None,
    }  # fmt: skip

    log, out, costs = tmp_path / "a.jsonl", tmp_path / "y.run", tmp_path / "c.parquet"
    convert_traces(log, tmp_path / "x.run", system="goodgain-1", tag="goodgain", costs=costs)
    spent = pl.read_parquet(costs)
    assert spent.select("system", "replicate", "cost").rows() == [("x", "1", 0.5)], "as curve calls the run"
    with pytest.raises(InputError, match=r"name of its own"):
        convert_traces(log, out, system="1", results=tmp_path / "r.jsonl", costs=tmp_path / "r.jsonl")
    with pytest.raises(InputError, match=r"\.parquet or \.jsonl"):
        convert_traces(log, out, costs=tmp_path / "c.csv")
