"""How fast and in how much memory traces are converted, beside orjson parsing the same file's outer JSON alone.

    python benchmarks/traces.py make   [--traces 100000]   # writes benchmarks/data/traces.jsonl, 20 KB a trace
    python benchmarks/traces.py measure [--jobs 1 2] [--rounds 3]   # orjson and the conversions in turns, the least of each

A trace is a chat of 8 steps; each searches once, and a tool's answer is a JSON text of 5 results inside the JSON line.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import orjson

DATA = Path(__file__).parent / "data" / "traces.jsonl"
STEPS, RESULTS = 8, 5
_WORDS = [f"{first}{second}" for first in ("bal", "cor", "den", "fal", "gim", "hor", "lun") for second in "aeiou"]


def make(traces: int) -> None:
    """Write the traces; the same ones every time."""
    chance = random.Random(7)
    pages = []
    for number in range(5000):
        words = " ".join(chance.choices(_WORDS, k=46))
        title = " ".join(chance.choices(_WORDS, k=5)).title()
        url = f"https://site{number % 97}.example.org/{title.replace(' ', '-').lower()}?id={number}"
        snippet = f'{title} says: "{words}".\nSee also {url}'
        pages.append({"docid": f"doc-{number}", "url": url, "title": title, "snippet": snippet, "score": number / 7})
    DATA.parent.mkdir(exist_ok=True)
    with DATA.open("wb") as out:
        for number in range(traces):
            out.write(
                orjson.dumps(
                    {"id": f"q{number}", "messages": _chat(chance, pages, number)}, option=orjson.OPT_APPEND_NEWLINE
                )
            )
    print(f"{DATA}: {traces} traces, {DATA.stat().st_size / 1e9:.2f} GB")


def _chat(chance: random.Random, pages: list[dict[str, object]], number: int) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = [{"role": "user", "content": f"Question {number}?"}]
    for step in range(STEPS):
        query = " ".join(chance.choices(_WORDS, k=4))
        function = {"name": "search", "arguments": orjson.dumps({"query": query}).decode()}
        call = {"id": f"call_{number}_{step}", "type": "function", "function": function}
        found = orjson.dumps(chance.sample(pages, RESULTS)).decode()
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})
    return [*messages, {"role": "assistant", "content": "The answer."}]


class Cost(NamedTuple):
    """What something took: seconds on the clock, seconds of processors (of all processes), memory in GB."""

    clock: float
    processors: float
    own: float = 0.0
    child: float = 0.0


def parse_alone() -> Cost:
    """What orjson takes for the lines."""
    clock, processors = time.perf_counter(), time.process_time()
    with DATA.open("rb") as lines:
        for line in lines:
            orjson.loads(line)
    return Cost(time.perf_counter() - clock, time.process_time() - processors)


def convert(jobs: int) -> Cost:
    """What a conversion takes, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "convert", "--jobs", str(jobs)], check=True, capture_output=True, text=True
    )
    return Cost(*map(float, done.stdout.split()))


def _convert_here(jobs: int) -> None:
    from goodgain.logs.traces import convert_traces

    clock, processors = time.perf_counter(), time.process_time()
    out = DATA.with_suffix(".run")
    convert_traces(DATA, out, query_id="id", jobs=jobs)
    seconds = time.perf_counter() - clock
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    processors = time.process_time() - processors + children.ru_utime + children.ru_stime
    out.unlink()
    print(seconds, processors, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, children.ru_maxrss / 1e6)


def least(costs: list[Cost]) -> Cost:
    """The least time of several rounds, which others' work disturbs least; and the most memory."""
    return Cost(
        min(cost.clock for cost in costs),
        min(cost.processors for cost in costs),
        max(cost.own for cost in costs),
        max(cost.child for cost in costs),
    )


def measure(all_jobs: list[int], rounds: int) -> None:
    """Print the rates as parts of orjson's, by the clock and by processor time, which others' work disturbs less."""
    size = DATA.stat().st_size / 1e6
    alone_each, found_each = [parse_alone()], [(jobs, convert(jobs)) for jobs in all_jobs]
    for _ in range(rounds - 1):
        alone_each.append(parse_alone())
        found_each += [(jobs, convert(jobs)) for jobs in all_jobs]
    alone_each.append(parse_alone())
    alone = least(alone_each)
    found = {jobs: least([cost for of, cost in found_each if of == jobs]) for jobs in all_jobs}
    print(
        f"{size:.0f} MB, {rounds} rounds; orjson alone: clock {alone.clock:.1f} s, processors {alone.processors:.1f} s"
    )
    for jobs, cost in found.items():
        print(
            f"jobs={jobs}: clock {cost.clock:.1f} s, {size / cost.clock:.0f} MB/s, "
            f"{alone.clock / cost.clock:.1%} of orjson; "
            f"processors {cost.processors:.1f} s, {alone.processors / cost.processors:.1%} of orjson; "
            f"{found[all_jobs[0]].clock / cost.clock:.2f}x jobs={all_jobs[0]}; "
            f"memory {cost.own:.2f} GB, largest child {cost.child:.2f} GB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "measure", "convert"])
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.what == "make":
        make(options.traces)
    elif options.what == "measure":
        measure(options.jobs, options.rounds)
    else:
        _convert_here(options.jobs[0])


if __name__ == "__main__":
    main()
