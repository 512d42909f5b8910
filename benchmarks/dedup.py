"""Deduplicate a million results; how time grows with their number; and twenty thousand results of one site and title.

    python benchmarks/dedup.py [million | growth | one-site | all]

Each measurement runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import math
import random
import resource
import subprocess
import sys
import time
import warnings

import polars as pl

import goodgain.logs.dedup as dedup
from goodgain.errors import GoodgainNotice

RESULTS_A_QUERY = 2_000
REPEATS = 0.3
WORDS = """retrieval agent search query document relevance gain ranking measure cutoff evidence answer system
budget corpus passage index vector sparse dense fusion rerank prompt memory planning tool context
climate river market energy policy history museum protein galaxy bridge harvest
""".split()  # noqa: SIM905 - words read better as text
TRACKING = ("utm_source=news&utm_medium=mail", "gclid=Cj0KCQjw", "fbclid=IwAR2x", "ref_src=twsrc", "")


def results(count: int, seed: int = 1) -> pl.DataFrame:
    """A results frame: 2,000 results a query, three in ten of them repeats of a page under another address and text."""
    rng = random.Random(seed)
    rows = []
    for query in range(max(1, count // RESULTS_A_QUERY)):
        pages = [_page(rng, query, number) for number in range(int(RESULTS_A_QUERY * (1 - REPEATS)))]
        shown = pages + rng.choices(pages, k=RESULTS_A_QUERY - len(pages))
        rng.shuffle(shown)
        for place, page in enumerate(shown):
            rows.append((f"q{query:05}", place // 10 + 1, 1, place % 10 + 1, *_occurrence(rng, page)))
    names = ["query_id", "iteration", "search", "rank", "doc_id", "url", "title", "snippet"]
    return pl.DataFrame(rows[:count], schema=names, orient="row")


def _page(rng: random.Random, query: int, number: int) -> tuple[str, str, list[str]]:
    host = f"site{rng.randrange(5000)}.example.org"
    title = " ".join(rng.choices(WORDS, k=6)).title() if rng.random() > 0.02 else "Home of the Example Site"
    return f"{host}/{rng.choice(WORDS)}/{query}-{number}.html", title, rng.choices(WORDS, k=40)


def _occurrence(rng: random.Random, page: tuple[str, str, list[str]]) -> tuple[str, str, str, str]:
    address, title, text = page
    scheme = rng.choice(("http://", "https://", "https://www."))
    start = rng.randrange(10)
    snippet = " ".join(text[start : start + 30])
    return str(rng.randrange(1, 11)), f"{scheme}{address}?{rng.choice(TRACKING)}".rstrip("?"), title, snippet


def one_site(count: int = 20_000) -> pl.DataFrame:
    """One query, one site, one title: every result another page, or the same page under another parameter."""
    rng = random.Random(2)
    urls = [f"https://shop.example.org/item?id={rng.randrange(count // 2)}&utm_source=a{n}" for n in range(count)]
    snippets = [" ".join(rng.choices(WORDS, k=20)) for _ in range(count)]
    return pl.DataFrame(
        {
            "query_id": "q",
            "iteration": 1,
            "rank": range(count),
            "url": urls,
            "title": "The shop of the site",
            "snippet": snippets,
        }
    )


def _measure(name: str, count: int) -> None:
    frame = one_site(count) if name == "one-site" else results(count)
    if name == "no-url":
        frame = frame.drop("url", "doc_id")
    start, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodgainNotice)  # what was cut stands in the summary
        found = dedup.deduplicate(frame)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"{seconds:.2f}\t{cpu:.2f}\t{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f}", flush=True)
    print(found.summary, file=sys.stderr)


def _run(name: str, count: int) -> float:
    done = subprocess.run([sys.executable, __file__, name, str(count)], stdout=subprocess.PIPE, check=True, text=True)
    seconds, cpu, memory = map(float, done.stdout.split())
    print(
        f"{name}: {count:,} results in {seconds:.2f} s ({cpu:.2f} s of processor), peak {memory:.2f} GB with the input"
    )
    return cpu  # what growth is measured by: the machine may be shared


def main() -> None:
    match sys.argv[1:]:
        case [name, count]:
            _measure(name, int(count))
        case ["million"]:
            _run("pages", 1_000_000)
        case ["growth"]:
            small = _run("pages", 100_000)
            large = _run("pages", 1_000_000)
            print(f"growth: n^{math.log10(large / small):.2f}")
        case ["one-site"]:
            _run("one-site", 20_000)
        case _:
            small = _run("pages", 100_000)
            large = _run("pages", 1_000_000)
            print(f"growth: n^{math.log10(large / small):.2f}")
            _run("one-site", 20_000)
            _run("no-url", 100_000)


if __name__ == "__main__":
    main()
