"""Ids of queries stand in the order in which people count: 1_2 before 1_10, 9 before 10."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import goodgain as gg
from tests.support.command import run_command

IN_ORDER = ["1_1", "1_2", "1_10", "9", "10"]
#: The arguments of a command that names all queries, for each of them a pattern of its lines.
COMMANDS = {
    "ledger": ("ledger qrels old.run", r"^(\w+),1,"),
    "evaluate": ("evaluate qrels old.run CG -q -n", r"^(\w+)\tCG"),
    "evaluate in columns": ("evaluate qrels old.run -m CG -q -n -o latex", r"^([\d\\_]+) & "),
    "precision over recall": ("pr qrels old.run -q --points raw -o csv", r"^old,(\w+),"),
    "searches of an explanation": ("explain qrels old.run new.run --top 9", r"^- (\S+): CG"),
    "documents of an explanation": ("explain qrels old.run new.run -o csv", r"^(\w+),CG,"),
    "use of documents": ("funnel qrels uses.jsonl -q -o csv", r"^(\w+),goodgain,"),
    "sheet of a pool": ("pool old.run -o sheet.csv", r"^(\w+),x"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ids")
    queries = ["9", "1_10", "10", "1_1", "1_2"]
    for name, found in (("old", "a"), ("new", "b")):
        lines = [f"{query} 1 {doc} 1 1 t\n" for query in queries for doc in (found, f"x{found}")]
        (folder / f"{name}.run").write_text("".join(lines))
    (folder / "qrels").write_text("".join(f"{query} 0 a 2\n" for query in queries))
    use = {"doc_id": "a", "returned_at": 1, "opened_at": None, "opens": 0, "cited": False}
    uses = [{"query_id": query, **use} for query in queries]
    (folder / "uses.jsonl").write_text("".join(json.dumps(use) + "\n" for use in uses))
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_name_queries_as_people_count(name: str, folder: Path) -> None:
    command, pattern = COMMANDS[name]
    done = run_command(*command.split(), cwd=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "sheet.csv").read_text() if name.startswith("sheet") else done.stdout
    ids = [query.replace("\\", "") for query in re.findall(pattern, text, re.MULTILINE)]
    assert ids == IN_ORDER


def test_a_report_a_picture_and_a_comment_name_queries_as_people_count(folder: Path) -> None:
    run_command("report", "qrels", "old.run", "new.run", "-m", "CG", "-o", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)["queries"] == IN_ORDER

    systems = {name: folder / f"{name}.run" for name in ("old", "new")}
    compared = gg.compare(folder / "qrels", systems, "CG")
    labels = [label.get_text() for label in gg.plots.per_query(compared).get_yticklabels()]
    assert labels in (IN_ORDER, IN_ORDER[::-1])  # equal differences; the axis goes up or down

    run_command("compare", "qrels", "old.run", "new.run", "-m", "CG", "--comment", "pr.md", cwd=folder)
    comment = (folder / "pr.md").read_text()
    matches = re.findall(r"^\| (\w+(?:\\_\w+)?) \| \d", comment, re.MULTILINE)
    assert [query.replace("\\", "") for query in matches] == IN_ORDER[: len(matches)] and len(matches) > 2


def test_notices_name_the_first_queries_as_people_count(folder: Path) -> None:
    (folder / "some.run").write_text("9 1 a 1 1 t\n")
    done = run_command("evaluate", "qrels", "some.run", "CG", cwd=folder)
    assert "(1_1, 1_2, 1_10, ...)" in done.stderr
