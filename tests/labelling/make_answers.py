"""Writes qrels_examples/labelling/answers.jsonl: what a batch service would give back for the page's example.

The grades are those that a person gave: no model was asked. Run it when the prompt or the example changes:

    python -m tests.labelling.make_answers
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.tables import ROOT

FOLDER = ROOT / "qrels_examples" / "labelling"
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


def answer(line: str) -> str:
    """Return the line of the answers for one of the batch."""
    call = json.loads(line)
    asked = call["body"]["messages"][-1]["content"]
    grade, reason = next(found for (query, title), found in GRADES.items() if query in asked and title in asked)
    message = {"role": "assistant", "content": json.dumps({"grade": grade, "reason": reason}), "refusal": None}
    body = {
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 420, "completion_tokens": 18},
    }
    response = {"status_code": 200, "request_id": "made by hand", "body": body}
    return json.dumps({"id": "made by hand", "custom_id": call["custom_id"], "response": response, "error": None})


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for command in (
            ["convert", FOLDER / "log.jsonl", "-o", folder / "agent.run", "--results", folder / "results.jsonl"],
            ["label", folder / "agent.run", "--results", folder / "results.jsonl", "--queries", FOLDER / "queries.jsonl",
             "--model", MODEL, "--write-batch", folder / "batch.jsonl"],
        ):  # fmt: skip
            subprocess.run([sys.executable, "-m", "goodgain", *map(str, command)], check=True, cwd=ROOT)
        lines = (folder / "batch.jsonl").read_text(encoding="utf-8").splitlines()
    (FOLDER / "answers.jsonl").write_text("".join(f"{answer(line)}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
