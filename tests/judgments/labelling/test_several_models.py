"""Several models in one command: each its own judge, and the documents on which they differ go to people."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import goodgain as gg
from tests.judgments.labelling.endpoint import Call, good, serve
from tests.judgments.labelling.test_calls import ask, number_of
from tests.judgments.labelling.test_kill import write_job
from tests.support.command import run_command


def grade(call: Call) -> Any:
    """Both models give the same grades to all but the documents 1 (1 and 2) and 2 (0 and 4)."""
    number, is_a = number_of(call), call.body["model"] == "a"
    return good({1: 1 if is_a else 2, 2: 0 if is_a else 4}.get(number, 3))


def test_each_model_is_a_judge_and_people_get_what_they_dispute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [word for word in write_job(tmp_path, 5)[3:] if word not in ("--model", "judge")]
    command += ["--model", "a", "--model", "b", "--disputed", "sheet.jsonl"]
    with serve(grade) as server:
        done = run_command(*command, "--base-url", server.url)
        assert done.returncode == 0, done.stderr
        assert server.count == 10

    assert "sheet.jsonl: disputed documents for people to grade: 2" in done.stderr
    sheet = [json.loads(line) for line in Path("sheet.jsonl").read_text().splitlines()]
    assert [(row["doc_id"], row["query"], row["text"], row["grade"]) for row in sheet] == [
        ("d1", "who", "text 1", None),
        ("d2", "who", "text 2", None),
    ]

    judged = run_command(
        *("judge", "grades.jsonl", "--scale", "good-gain", "--weight", "a=3", "-o", "qrels.jsonl"),
        *("--disputed", "again.jsonl"),
    )
    assert judged.returncode == 0, judged.stderr

    labels = {row["doc_id"]: row["relevance"] for row in map(json.loads, Path("qrels.jsonl").read_text().splitlines())}
    assert labels == {"d0": 3.0, "d1": 1.25, "d2": 1.0, "d3": 3.0, "d4": 3.0}
    assert [json.loads(line)["doc_id"] for line in Path("again.jsonl").read_text().splitlines()] == ["d1", "d2"]


def test_python_takes_several_models() -> None:
    with serve(grade) as server:
        found = ask(server, 4, model=["a", "b"])
    assert [judge.partition("@")[0] for judge in found["judge"].unique(maintain_order=True)] == ["a", "b"]
    labels = gg.aggregate(found, scale="good-gain")
    assert labels["relevance"].to_list() == [3.0, 1.5, 2.0, 3.0]


@pytest.mark.slow
def test_a_corrected_mean_stands_beside_its_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    queries, docs = [f"q{k}" for k in range(60)], [f"d{k}" for k in range(4)]
    people = {query: {doc: (n * 7 + k) % 4 for k, doc in enumerate(docs)} for n, query in enumerate(queries)}
    rows = {"people": dict(list(people.items())[:30]), "model": people}

    for name, labels in rows.items():
        add = 1 if name == "model" else 0
        of = [
            {"query_id": q, "doc_id": d, "grade": grade + add} for q, row in labels.items() for d, grade in row.items()
        ]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of))

    Path("a.run").write_text("".join(f"{q} 1 d{k} {k} {-k} a\n" for q in queries for k in range(2)))
    raw = run_command("evaluate", "model.jsonl", "a.run", "CG")
    done = run_command("evaluate", "model.jsonl", "a.run", "CG", "P@2", "--human", "people.jsonl")
    assert done.returncode == 0, done.stderr
    assert "means corrected by people's labels of 30 queries, with 95 % intervals" in done.stderr

    name, mean, low, high = done.stdout.splitlines()[0].split("\t")
    assert float(raw.stdout.split("\t")[1]) == pytest.approx(float(mean) + 2, abs=0.2)
    assert (name, float(low) < float(mean) < float(high)) == ("CG", True)

    as_json = run_command("evaluate", "model.jsonl", "a.run", "CG", "--human", "people.jsonl", "-o", "jsonl")
    assert set(json.loads(as_json.stdout)) == {"measure", "value", "low", "high"}
    one = run_command(
        *("judge", "people.jsonl", "model.jsonl", "--scale", "0..4", "--agreement", "-m", "CG", "--run", "a.run")
    )
    assert "CG: a\tmean\tlow\thigh\npeople, 30 queries\t" in one.stdout
    assert "people and 30 further queries of the model, weight" in one.stdout

    refused = run_command("evaluate", "model.jsonl", "a.run", "CG", "--human", "people.jsonl", "-q")
    assert "--human corrects arithmetic means" in refused.stderr
    with_sum = run_command("evaluate", "model.jsonl", "a.run", "CG", "NumRet", "P@2", "--human", "people.jsonl")
    assert with_sum.stdout == done.stdout
    assert "NumRet: a sum over queries, left out of the corrected means" in with_sum.stderr

    for path in map(Path, ("people.jsonl", "model.jsonl", "a.run")):
        path.write_text(re.sub(r"\b(d[0-9])\b", r"\1-7", path.read_text()))
    chunks = ["--human", "people.jsonl", "--documents", "^(.+)-\\d+$"]
    assert run_command("evaluate", "model.jsonl", "a.run", "CG", "P@2", *chunks).stdout == done.stdout

    Path("a.run").write_text(Path("a.run").read_text().replace("-7", ""))  # the qrels alone name chunks
    for more in ([], ["--documents-of", "qrels"]):
        assert run_command("evaluate", "model.jsonl", "a.run", "CG", "P@2", *chunks, *more).stdout == done.stdout


def test_umbrelas_grades_become_labels_of_our_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with serve(lambda call: good(number_of(call))) as server:
        run_command(*write_job(tmp_path, 4)[3:], "--base-url", server.url, "--prompt", "umbrela")
    judged = run_command(
        *("judge", "grades.jsonl", "--scale", "0..3", "--map", "0:0, 1:1, 2:2, 3:4", "-o", "qrels.txt")
    )
    assert judged.returncode == 0, judged.stderr
    assert Path("qrels.txt").read_text() == "q 0 d0 0\nq 0 d1 1\nq 0 d2 2\nq 0 d3 4\n"
