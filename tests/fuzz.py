"""Random input for everything that reads: `make fuzz SECONDS=600`.

    python -m tests.fuzz --seed 1 --seconds 600

A file of the corpus is damaged and read. A fault is an exception that is not ours, an end of the process, 10 s of a processor, 1 GB
of memory, text that a library prints, or a silent zero: no row, or only zeros, and no notice. Each fault has a number:
`--first NUMBER --count 1` repeats it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

import goodgain as gg
from goodgain.analysis.comparing.outcomes import stack_outcomes
from goodgain.formats.documents import read_document_map
from goodgain.formats.label_rules import read_assignments
from goodgain.formats.query_tables import (
    read_costs,
    read_groups,
    read_outcomes,
    read_query_ids,
    read_uses,
    select_costs,
)
from goodgain.judgments.judging.judging_page import write_judging_page
from goodgain.judgments.labelling.answers_and_journal import read_completion
from goodgain.measures.names import parse_measures
from tests.formats.test_damaged_files import ENDINGS as TABLE_ENDINGS
from tests.formats.test_damaged_files import LABELLING, TABLES, damage, encode, make_frame
from tests.logs.traces.logs import WRITERS
from tests.logs.traces.mutations import mutated
from tests.logs.traces.test_damage import _logs
from tests.support.command import run_command_here
from tests.support.readers import PATH_READERS
from tests.support.tables import ROOT

#: A processor's seconds, seconds by the clock (for a wait that never ends), and bytes more than before.
CPU, CLOCK, MEMORY = 10, 60, 1 << 30
#: Inputs of one process.
OF_ONE_PROCESS = 1_000


class Target(NamedTuple):
    """Files to damage, and what reads one of them."""

    files: list[tuple[str, bytes]]
    read: Callable[[Path], object]


def make_targets(folder: Path) -> dict[str, Target]:
    """Return all that is fuzzed: tables, logs of every format, tables of queries, baseline files, answers, names."""
    tables = [*((table, ending) for table in TABLES for ending in TABLE_ENDINGS), *LABELLING]
    targets = {
        f"{table}{ending}": Target(
            [(f"a{ending}", encode(make_frame(table), ending))], PATH_READERS[f"{table}{ending}"][1]
        )
        for table, ending in tables
    }
    targets |= {f"evaluated run{ending}": Target(targets[f"run{ending}"].files, _evaluate) for ending in TABLE_ENDINGS}
    targets |= {f"log in {name}": Target(_logs(name), _read_log) for name in WRITERS}
    queries = pl.DataFrame({"query_id": [f"q{k}" for k in range(10)]})
    others: dict[str, tuple[pl.DataFrame, Callable[[Path], object]]] = {
        "groups": (queries.with_columns(group=pl.lit("a")), lambda path: read_groups(path, queries["query_id"])),
        "outcomes": (queries.with_columns(system=pl.lit("s"), correct=pl.lit(0.5)), _read_outcomes),
        "costs": (queries.with_columns(iteration=pl.lit(1), input_tokens=pl.lit(9), seconds=pl.lit(0.5)), _read_costs),
        "queries to use": (queries, read_query_ids),
        "documents": (pl.DataFrame({"chunk_id": ["a", "b"], "doc_id": ["x", "x"]}), read_document_map),
        "uses": (pl.read_ndjson(ROOT / "qrels_examples/opened_and_cited/uses.jsonl"), read_uses),
    }

    for name, (frame, read) in others.items():
        targets |= {
            f"{name}{ending}": Target([(f"a{ending}", encode(frame, ending))], read)
            for ending in (".csv", ".tsv", ".jsonl", ".parquet")
        }

    targets["nuggets"] = Target([("a.jsonl", _NUGGETS)], read_assignments)
    targets["baseline file"] = Target([("a.jsonl", _write_baseline(folder))], _compare_with)
    targets["answer"] = Target([("a.json", text) for text in _ANSWERS], _read_answer)
    targets["measures"] = Target([("a.txt", name) for name in _NAMES], _parse_names)
    targets["unread queries"] = Target([("a.run.unread", b"q1\nq2\nq3\n")], _compare_beside_unread)
    targets["own measures"] = Target([("own.py", _OWN_MEASURE)], _evaluate_own_measure)
    targets["judges' page"] = Target([("a.jsonl", _RESULTS)], _write_judging_page)
    targets["notebook"] = Target(targets["run.csv"].files, _show_in_notebook)
    targets["lists beside a conversation"] = Target([("a.json", text) for text in _LISTS_BESIDE], _read_log)
    return targets


_NUGGETS = b"""{"qid": "q1", "docid": "d", "nuggets": [{"text": "t", "importance": "vital", "assignment": "support"}]}
{"qid": "q1", "docid": "e", "nuggets": [{"text": "t", "importance": "okay", "assignment": "not_support"}]}
"""
_ANSWERS = [
    json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}], "usage": usage}).encode()
    for content, usage in (
        ('{"grade": 3, "reason": "names the date"}', {"prompt_tokens": 9, "completion_tokens": 4}),
        ('<think>maybe {"grade": 1}</think>```json\n{"reason": "it is", "grade": 0}\n```', {"input_tokens": 9}),
        ([{"type": "text", "text": '{"grade": null}'}, {"type": "thinking"}], None),
    )
]
_NAMES = [
    b"nDCG@10 RR@10 nCG@6 SRR",
    b"CG(rel=1)@3 P(rel=2)@5",
    b"ERR(max_rel=4)@20",
    b"NuggetRecall(vital=True)@2",
    b"SessionRBP(p=0.8,b=0.5)",
]
_OWN_MEASURE = b"""import goodgain as gg


def first_good(rows):
    "The first iteration with a good result."
    good = rows.filter(rows["NumGood"] > 0)
    return good["iteration"][0] if good.height else None


gg.define("FuzzedFirstGood", first_good, better="down", bounds=None)
"""
#: Titles and texts that attack the page they are shown on.
_RESULTS = "".join(
    json.dumps(
        {
            "query_id": f"q{k // 9}",
            "iteration": k % 9 // 3 + 1,
            "search": 1,
            "rank": k % 3 + 1,
            "doc_id": f"d{k}",
            "query_text": "who <b>built</b> it",
            "url": f"https://a.example/{k}",
            "title": f"</script><script>alert({k})</script>",
            "snippet": "<img src=x onerror=alert(1)> text \u2028 & more",
        }
    )
    + "\n"
    for k in range(18)
).encode()
_SOURCES = [{"id": f"d{k}", "url": f"https://a.example/{k}", "title": f"page {k}", "text": "words"} for k in range(4)]
_MESSAGES = [{"role": "user", "content": "Who built it?"}, {"role": "assistant", "content": "Ada did."}]
_LISTS_BESIDE = [
    json.dumps({"id": "q1", "question": "Who built it?", "messages": _MESSAGES, key: _SOURCES}).encode()
    for key in ("sources", "documents", "search_results", "context")
] + [
    json.dumps({"id": "q1", "messages": _MESSAGES, "metadata": {"retrieved": _SOURCES}}).encode(),
]
_QRELS = {f"q{k}": {f"d{9 * k}": 3, f"d{9 * k + 1}": 1} for k in range(10)}


def _evaluate(path: Path) -> gg.Scores:
    return gg.evaluate(_QRELS, path, "CG nDCG@10 SRR@2")


def _read_log(path: Path) -> pl.DataFrame:
    return gg.read_traces(path, unrecorded="empty")


def _read_costs(path: Path) -> pl.DataFrame:
    return select_costs(read_costs(path), "s", ["s"])


def _read_outcomes(path: Path) -> pl.DataFrame:
    return stack_outcomes(read_outcomes(path), None, ["s"], [])


def _read_answer(path: Path) -> object:
    try:
        body = json.loads(path.read_bytes())
    except ValueError:  # the client refuses it
        return None
    return read_completion(body)


def _parse_names(path: Path) -> object:
    return parse_measures(path.read_text(errors="replace"))


def _write_baseline(folder: Path) -> bytes:
    run = make_frame("run")
    comparison = gg.compare(_QRELS, {"a": run, "b": run.filter(pl.col("iteration") < 3)}, "CG@2 nDCG@10")
    comparison.write_baseline(folder / "baseline.jsonl", system="a")
    return (folder / "baseline.jsonl").read_bytes()


def _compare_with(path: Path) -> object:
    return gg.compare(_QRELS, {"now": make_frame("run")}, "CG@2 nDCG@10", baseline_file=path).pairs


def _compare_beside_unread(path: Path) -> object:
    run = path.with_name("a.run")
    run.write_text("".join(f"q{k} {k % 2 + 1} d{9 * k} 1 1.0 t\n" for k in range(10)))
    return gg.compare(_QRELS, {"a": run, "b": make_frame("run")}, "CG@2").pairs


def _evaluate_own_measure(path: Path) -> None:
    run, qrels = path.with_name("a.csv"), path.with_name("qrels.csv")
    make_frame("run").write_csv(run)
    make_frame("qrels").write_csv(qrels)
    printed = run_command_here("evaluate", qrels, run, "FuzzedFirstGood@3", "--define", path)
    if "bug in goodgain" in printed.stderr or "Traceback" in printed.stderr:
        raise RuntimeError(f"status {printed.returncode}: {printed.stderr}")


def _write_judging_page(path: Path) -> object:
    results = gg.read_results(path)
    pooled = gg.pool({"a": make_frame("run")}, results=results)
    page = path.with_name("sheet.html")
    write_judging_page(pooled, page)
    text = page.read_text(encoding="utf-8")
    if text.count("<script") != text.count("</script>") or "<img" in text:
        raise RuntimeError("a text of a result is markup of the page")
    return results


def _show_in_notebook(path: Path) -> gg.Scores:
    comparison = gg.compare(_QRELS, {"<script>a": path, "b": make_frame("run")}, "CG@2")
    if "<script" in comparison._repr_html_():
        raise RuntimeError("a name is markup of the notebook")
    scores = _evaluate(path)
    scores._repr_html_()
    return scores


# One input


def make_input(targets: dict[str, Target], seed: int, number: int) -> tuple[str, str, bytes]:
    """Return what reads the input of this number, the name of the file, and its bytes."""
    chance = random.Random(f"{seed} {number}")
    name = chance.choice(sorted(targets))
    file_name, content = chance.choice(targets[name].files)
    damaged = damage(content, chance) if chance.random() < 0.5 else mutated(content, chance)[0]
    return name, file_name, damaged


def find_fault(read: Callable[[Path], object], path: Path) -> str:
    """Return what is wrong with the way in which a file is read; the empty text if nothing is."""
    before = _find_memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the highest memory is counted from here
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = read(path)
    except gg.GoodgainError:
        result, caught = None, []
    except (Exception, pl.exceptions.PanicException):
        return traceback.format_exc()

    if (used := _find_memory("VmHWM") - before) > MEMORY:
        return f"{used >> 20} MiB of memory"
    strange = [str(one.message) for one in caught if not issubclass(one.category, gg.GoodgainNotice)]
    return f"a foreign warning: {strange[0]}" if strange else "" if caught else find_silence(result)


def find_silence(result: object) -> str:
    """Return what a result without a notice lacks: rows, or values above 0."""
    if isinstance(result, gg.Scores):
        return "only zeros, and no notice" if not any(result.mean().values()) else ""
    frame = getattr(result, "frame", result)
    return "no rows, and no notice" if isinstance(frame, pl.DataFrame) and frame.is_empty() else ""


def _find_memory(name: str) -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


# Processes: one reads, and may die; the other one watches


def read_inputs(seed: int, numbers: Iterator[int]) -> None:
    """Read the inputs, and print a line of JSON before each and after it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as printed:
        warnings.simplefilter("ignore")
        targets = make_targets(Path(folder))
        os.dup2(printed.fileno(), sys.stderr.fileno())

        for number in numbers:
            name, file_name, content = make_input(targets, seed, number)
            path = Path(folder, file_name)
            path.write_bytes(content)
            print(json.dumps([number, name, None]), flush=True)
            signal.setitimer(signal.ITIMER_PROF, CPU)  # at its end the process ends
            signal.alarm(CLOCK)
            fault = find_fault(targets[name].read, path)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            if printed.seek(0, os.SEEK_END) and not fault:
                printed.seek(0)
                fault = f"it prints: {printed.read().decode(errors='replace')[:500]}"
            printed.truncate(0)
            print(json.dumps([number, name, fault]), flush=True)
            path.unlink(missing_ok=True)


def watch(seed: int, first: int, count: int, end: float) -> int:
    """Read inputs in processes until the time is over or the count is reached; print the faults, return their number."""
    number, faults = first, 0
    while number < first + count and time.monotonic() < end:
        last = min(number + OF_ONE_PROCESS, first + count)
        command = [
            sys.executable,
            "-m",
            "tests.fuzz",
            "--child",
            str(last),
            "--seed",
            str(seed),
            "--first",
            str(number),
        ]
        process = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)
        name, outcome = "", None
        for line in process.stdout or ():
            number, name, outcome = json.loads(line)
            if outcome:
                faults += 1
                print(f"{number}: {name}: {outcome}\n", flush=True)
            if outcome is not None and time.monotonic() > end:
                process.terminate()
                break
        code = process.wait()
        if not name:
            raise SystemExit(f"no input was read; the process ended with {code}")
        if outcome is None:
            faults += 1
            print(f"{number}: {name}: the process ended with {code} ({_EXITS.get(-code, 'its own')})\n", flush=True)
        number += 1

    print(f"{number - first:,} inputs, {faults} faults, seed {seed}")
    return faults


_EXITS = {signal.SIGPROF: f"{CPU} s of a processor", signal.SIGALRM: f"{CLOCK} s", signal.SIGKILL: "memory"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        read_inputs(options.seed, iter(range(options.first, options.child)))
    elif watch(options.seed, options.first, options.count, time.monotonic() + options.seconds):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
