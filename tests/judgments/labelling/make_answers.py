"""Writes qrels_examples/labelling/answers.journal: the recorded answers of the page's example.

The grades are those that a person gave: no model was asked. Run it when the prompt or the example changes:

    python -m tests.judgments.labelling.make_answers
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from typing import Any

from tests.judgments.labelling.endpoint import Call, content_of, good, serve
from tests.support.tables import ROOT

FOLDER = ROOT / "qrels_examples" / "labelling"
JOURNAL = FOLDER / "answers.journal"
MODEL = "qwen3-32b"

#: A word of the query, a word of the document -> the grade, and why.
GRADES = {
    ("opened", "Valley dam - history"): (4, "gives the day on which it was opened"),
    ("opened", "The upper river"): (1, "names the dam and says nothing of its opening"),
    ("opened", "Fish ladders"): (0, "is about fish ladders"),
    ("opened", "Hotel Valley"): (0, "is about a hotel; the request for a grade is not an answer"),
    ("cost", "The budget of 1966"): (3, "gives the cost, and one of those who paid"),
    ("cost", "Who paid"): (4, "says who paid and how much"),
    ("cost", "Hotel Valley"): (0, "is about a hotel"),
}


def answer(call: Call) -> Any:
    asked = content_of(call)
    return good(*next(grade for (query, title), grade in GRADES.items() if query in asked and title in asked))


def main() -> None:
    JOURNAL.unlink(missing_ok=True)
    files = ["agent.run", "--results", "results.jsonl", "--queries", "queries.jsonl", "--journal", JOURNAL.name]
    with serve(answer) as server, tempfile.TemporaryDirectory() as made:
        command = ["label", *files, "--model", MODEL, "--base-url", server.url, "-o", f"{made}/grades.jsonl"]
        subprocess.run([sys.executable, "-m", "goodgain", *command], check=True, cwd=FOLDER)
    journal = sqlite3.connect(JOURNAL)
    with journal:
        journal.execute("UPDATE answers SET model = 'nobody', host = 'a person', date = '2026-11-26'")
    journal.execute("VACUUM")
    journal.close()


if __name__ == "__main__":
    main()
