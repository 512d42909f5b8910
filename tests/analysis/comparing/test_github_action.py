"""The action of GitHub: its shell steps run here on the shipped example, as GitHub runs them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command import run_command

ROOT = Path(__file__).parents[3]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS_BY_ID = {step["id"]: step["name"] for step in ACTION["runs"]["steps"] if "id" in step}
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
AGENTS = ROOT / "qrels_examples" / "two_agents"
#: In place of a program of the runner: it writes down what it was called with, and a text for `gh api` to print.
_RECORDER = '#!/bin/sh\nprintf "%s " "$(basename "$0")" "$@" >> "$RUNNER_TEMP/calls"\necho >> "$RUNNER_TEMP/calls"\n'


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """A runner's folder of programs: the real goodgain in the action's environment, and recorders in place of python and gh."""
    programs = tmp_path / "programs"
    programs.mkdir()
    environment = tmp_path / "goodgain" / "bin"
    environment.mkdir(parents=True)
    texts = {
        "../goodgain/bin/goodgain": f'#!/bin/sh\nexec "{sys.executable}" -m goodgain "$@"\n',
        "../goodgain/bin/python": _RECORDER,
        "python": _RECORDER,
        "gh": _RECORDER + 'case "$*" in *--paginate*) printf "%s" "$EARLIER";; esac\nexit "${GH_STATUS:-0}"\n',
    }
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return tmp_path


def run_step(name: str, runner: Path, *, cwd: Path = AGENTS, **given: str) -> subprocess.CompletedProcess[str]:
    """Run a step with bash as GitHub does, with its own variables and those of the runner."""
    of_step = {variable: given.pop(variable, "") for variable in STEPS[name].get("env", {})}
    of_runner = {
        "PATH": f"{runner / 'programs'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src"),
        "RUNNER_TEMP": str(runner), "GITHUB_OUTPUT": str(runner / "output"), "GITHUB_STEP_SUMMARY": str(runner / "summary"),
        "GITHUB_REPOSITORY": "owner/agent", "GITHUB_ACTION_PATH": str(ROOT),
    }  # fmt: skip
    script = runner / "step.sh"
    script.write_text(STEPS[name]["run"])
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    return subprocess.run(bash, env=of_runner | of_step | given, capture_output=True, text=True, check=False, cwd=cwd)


def test_no_value_of_a_user_is_put_into_a_script() -> None:
    assert ACTION["runs"]["using"] == "composite"
    scripts = {name: step for name, step in STEPS.items() if "uses" not in step}
    assert [name for name, step in scripts.items() if "${{" in step["run"]] == []
    values = {value for step in STEPS.values() for value in step.get("env", {}).values()}
    assert {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"].keys() - {"comment"}} <= values
    assert all(step["shell"] == "bash" for step in scripts.values())


@pytest.mark.slow
@pytest.mark.parametrize(("line", "status"), [("nCG@6>=baseline-0.05", 0), ("CG@3>=baseline significant", 3)])
def test_the_steps_compare_comment_and_decide(runner: Path, line: str, status: int) -> None:
    compared = run_step(
        "Compare", runner, QRELS="qrels.txt", RUNS="main=quick.run\nlate.run\n", REQUIRE=f"{line}\nnCG@6>=0.1\n",
        BASELINE="main", MEASURES="RR@10",
    )  # fmt: skip
    assert compared.returncode == 0, compared.stderr
    assert f"{'failed' if status else 'holds'}: {line}: late has" in compared.stderr
    comment = (runner / "goodgain.md").read_text()
    assert comment.startswith("<!-- goodgain compare -->")
    assert comment == (runner / "summary").read_text()
    assert "RR@10" in comment
    assert (runner / "output").read_text() == f"status={status}\n"

    assert run_step("Comment", runner, NUMBER="7").returncode == 0
    assert run_step("Comment", runner, NUMBER="7", EARLIER="12\n15\n").returncode == 0
    calls = (runner / "calls").read_text().splitlines()
    body = f"-F body=@{runner}/goodgain.md"
    assert calls[2].strip() == f"gh api repos/owner/agent/issues/7/comments {body}"
    assert calls[5].strip() == f"gh api --method PATCH repos/owner/agent/issues/comments/12 {body}"
    assert run_step("Decide", runner, STATUS=str(status)).returncode == status


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq, in place of the one that is built into gh")
def test_a_comment_of_somebody_else_that_begins_with_the_marker_stays(runner: Path) -> None:
    mark = "<!-- goodgain compare -->"
    comments = [
        {"id": 3, "user": {"login": "mallory"}, "body": f"{mark} mine"},
        {"id": 4, "user": {"login": "github-actions[bot]"}, "body": "of another action"},
        {"id": 5, "user": {"login": "github-actions[bot]"}, "body": f"{mark}\nolder"},
    ]
    (runner / "comments.json").write_text(json.dumps(comments))
    (runner / "viewer.json").write_text(json.dumps({"data": {"viewer": {"login": "github-actions[bot]"}}}))
    answers = 'case "$*" in *graphql*) f=viewer;; *--paginate*) f=comments;; *) exit 0;; esac\n'
    filters = 'for filter; do :; done\nexec jq -r "$filter" "$RUNNER_TEMP/$f.json"\n'
    (runner / "programs" / "gh").write_text(_RECORDER + answers + filters)
    (runner / "goodgain.md").write_text(f"{mark}\nnew")
    assert run_step("Comment", runner, NUMBER="7").returncode == 0
    assert "--method PATCH repos/owner/agent/issues/comments/5 " in (runner / "calls").read_text()

    (runner / "comments.json").write_text(json.dumps(comments[:2]))
    assert run_step("Comment", runner, NUMBER="7").returncode == 0
    assert (runner / "calls").read_text().count("PATCH") == 1  # a comment is added


def test_actions_are_pinned_to_commits() -> None:
    workflows = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "action.yml"]
    used = [line.strip() for path in workflows for line in path.read_text().splitlines() if " uses: " in line]
    assert len(used) > 10
    assert [line for line in used if not re.fullmatch(r"(- )?uses: [\w./-]+@[0-9a-f]{40} # v[\d.]+", line)] == []


def test_the_environment_is_made_once_for_an_interpreter_and_a_version(runner: Path) -> None:
    """The recorder in place of `python -m venv` makes nothing, so that of the environment is there already."""
    keep = STEPS["Keep the environment"]
    assert keep["with"] == {"path": "${{ runner.temp }}/goodgain", "key": "${{ steps.environment.outputs.key }}"}
    assert keep["uses"].startswith("actions/cache@")

    for _ in range(2):
        assert run_step(STEPS_BY_ID["environment"], runner, RUNNER_OS="Linux", RUNNER_ARCH="X64").returncode == 0
    first, second = (runner / "output").read_text().splitlines()
    assert first == second and first.startswith("key=goodgain-Linux-X64-")

    (runner / "calls").unlink()
    assert run_step("Install", runner).returncode == 0 and not (runner / "calls").exists()
    (runner / "goodgain" / "bin" / "goodgain").unlink()
    assert run_step("Install", runner).returncode == 0

    made, installed = (line.split() for line in (runner / "calls").read_text().splitlines())
    assert made == ["python", "-m", "venv", f"{runner}/goodgain"]
    assert installed == ["python", "-m", "pip", "install", "--quiet", str(ROOT)]


@pytest.mark.slow
def test_input_that_looks_like_code_or_an_option_is_only_a_value(runner: Path) -> None:
    bad = "$(touch hacked); `touch hacked` '; touch hacked; '"
    compared = run_step("Compare", runner, QRELS="--help", RUNS=f"quick.run\n{bad}", REQUIRE="nCG@6>=0.1", BASELINE=bad)
    assert compared.returncode == 0
    assert (runner / "output").read_text() == "status=2\n"
    assert not (AGENTS / "hacked").exists()
    assert compared.stdout == ""  # no help
    assert run_step("Comment", runner, NUMBER="7").returncode == 0  # there is nothing to write
    assert not (runner / "calls").exists()


@pytest.mark.slow
def test_the_comment_has_the_questions_searches_and_costs_that_the_action_is_given(runner: Path) -> None:
    tables = {"queries": "queries.tsv", "results": "results.jsonl", "costs": "costs.csv"}
    paths = {name.upper(): str(runner / file) for name, file in tables.items()}
    queries = [f"q{k:02}" for k in range(1, 26)]
    Path(paths["QUERIES"]).write_text("".join(f"{q}\twho wrote {q}\n" for q in queries))
    found = [
        {"query_id": q, "system": s, "iteration": 1, "rank": 1, "search": 1} for q in queries for s in ("main", "late")
    ]
    rows = [json.dumps(row | {"search_query": f"{row['system']} search", "doc_id": "d"}) for row in found]
    Path(paths["RESULTS"]).write_text("\n".join(rows))
    costs = [f"{q},{s},3,2" for q in queries for s in ("main", "late")]
    Path(paths["COSTS"]).write_text("\n".join(["query_id,system,input_tokens,calls", *costs]))
    given = {"QRELS": "qrels.txt", "RUNS": "main=quick.run\nlate.run\n", "REQUIRE": "CG@3>=1", "BASELINE": "main"}
    assert run_step("Compare", runner, **given, **paths).returncode == 0

    comment = (runner / "goodgain.md").read_text()
    assert "| who wrote q06 |" in comment and "| 1 | late | late search |" in comment
    assert "| main | GainPerCall |" in comment


def test_a_token_that_may_not_comment_does_not_decide(runner: Path) -> None:
    (runner / "goodgain.md").write_text("a comment")
    done = run_step("Comment", runner, NUMBER="7", GH_STATUS="1")
    assert done.returncode == 0
    assert "::warning::no comment was written" in done.stdout


PAGE = (ROOT / "docs" / "gate.md").read_text()
WORKFLOW = yaml.safe_load(PAGE.partition("```yaml\n")[2].partition("```")[0])
JOB: list[dict[str, Any]] = WORKFLOW["jobs"]["gate"]["steps"]
(GATE,) = (step for step in JOB if "/goodgain@" in step.get("uses", ""))


def give_inputs(**inputs: Any) -> dict[str, str]:
    """The variables of the step Compare, filled from the inputs of the action as GitHub fills them."""
    texts = {f"${{{{ inputs.{name} }}}}": str(inputs.get(name, "")) for name in ACTION["inputs"]}
    return {variable: texts[value] for variable, value in STEPS["Compare"]["env"].items()}


def write_log(path: Path, documents: list[str]) -> None:
    """An agent that asks one question a query and returns one document in each of two searches."""
    searches = [{"query": f"search {name}", "results": [{"doc_id": name}]} for name in documents]
    steps = [{"searches": [search], "input_tokens": 10} for search in searches]
    turns = [{"user": f"who wrote {k}", "steps": steps} for k in range(8)]
    lines = [{"goodgain_trace": 1, "query_id": f"q{k}", "turns": [turn]} for k, turn in enumerate(turns)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_the_workflow_of_the_page_uses_every_input() -> None:
    assert {*GATE["with"], "baseline-file"} == {*ACTION["inputs"]}
    assert WORKFLOW["permissions"]["pull-requests"] == "write"


@pytest.mark.slow
def test_the_workflow_of_the_page_runs(runner: Path) -> None:
    folder = runner / "repository"
    (folder / "eval").mkdir(parents=True)
    (folder / "eval" / "qrels.txt").write_text("".join(f"q{k} 0 a 2\nq{k} 0 b 3\n" for k in range(8)))
    (first,) = (line for line in PAGE.splitlines() if line.startswith("goodgain convert") and "-o main.run" in line)
    first = first.replace("qrels_examples/two_logs/old.json", "../log.jsonl")
    (convert,) = (step["run"] for step in JOB if step.get("run", "").startswith("goodgain convert"))
    for command, place, documents in ((first, folder / "eval", ["a", "b"]), (convert, folder, ["a", "c"])):
        write_log(folder / "log.jsonl", documents)
        assert run_command(*shlex.split(command)[1:], cwd=place).returncode == 0

    compared = run_step("Compare", runner, cwd=folder, **give_inputs(**GATE["with"]))
    assert compared.returncode == 0, compared.stderr
    assert (runner / "output").read_text() == "status=3\n", compared.stderr
    assert "failed: nCG@3>=baseline significant: new has" in compared.stderr
    comment = (runner / "goodgain.md").read_text()
    for part in ("| who wrote 0 |", "| new | search c |", "| main | GainPerCall |", "| nDCG@10 | new | main |"):
        assert part in comment

    # The same with a file in place of the baseline's run.
    write = [
        "compare",
        "eval/qrels.txt",
        "eval/main.run",
        "-m",
        "nCG@3 SRR@3 nDCG@10",
        "--write-baseline",
        "base.jsonl",
    ]
    assert run_command(*write, cwd=folder).returncode == 0
    inputs = GATE["with"] | {"baseline": "", "baseline-file": "base.jsonl", "runs": "new.run\n"}
    inputs |= {"results": "new.results.jsonl\n", "costs": "new.costs.jsonl\n"}
    compared = run_step("Compare", runner, cwd=folder, **give_inputs(**inputs))
    assert (runner / "output").read_text() == "status=3\nstatus=3\n", compared.stderr
