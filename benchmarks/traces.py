"""How fast and in how much memory traces are converted, beside orjson parsing the same file's outer JSON alone.

    python benchmarks/traces.py make   [--traces 100000]   # writes benchmarks/data/traces.jsonl, 20 KB a trace
    python benchmarks/traces.py measure [--jobs 1 2]       # one run: orjson first and last, the conversions between

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


def parse_alone() -> float:
    """Seconds that orjson needs for the lines."""
    start = time.perf_counter()
    with DATA.open("rb") as lines:
        for line in lines:
            orjson.loads(line)
    return time.perf_counter() - start


def convert(jobs: int) -> tuple[float, float, float]:
    """Seconds and memory (GB: this process, the largest of its children) of a conversion in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "convert", "--jobs", str(jobs)], check=True, capture_output=True, text=True
    )
    seconds, own, children = map(float, done.stdout.split())
    return seconds, own, children


def _convert_here(jobs: int) -> None:
    from goodgain.traces import convert_traces

    start = time.perf_counter()
    out = DATA.with_suffix(".run")
    convert_traces(DATA, out, query_id="id", jobs=jobs)
    seconds = time.perf_counter() - start
    memory = [resource.getrusage(who).ru_maxrss / 1e6 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    out.unlink()
    print(seconds, *memory)


def measure(all_jobs: list[int]) -> None:
    """Print the rates as parts of orjson's."""
    size = DATA.stat().st_size / 1e6
    before = parse_alone()
    found = {jobs: convert(jobs) for jobs in all_jobs}
    after = parse_alone()
    alone = (before + after) / 2
    print(f"orjson alone {alone:6.1f} s  {size / alone:6.0f} MB/s   (before {before:.1f} s, after {after:.1f} s)")
    for jobs, (seconds, own, children) in found.items():
        print(
            f"jobs={jobs}       {seconds:6.1f} s  {size / seconds:6.0f} MB/s   {alone / seconds:5.1%} of orjson, "
            f"{found[all_jobs[0]][0] / seconds:.2f}x jobs={all_jobs[0]}, {own:.2f} GB, child {children:.2f} GB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "measure", "convert"])
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    if options.what == "make":
        make(options.traces)
    elif options.what == "measure":
        measure(options.jobs)
    else:
        _convert_here(options.jobs[0])


if __name__ == "__main__":
    main()
