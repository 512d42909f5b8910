"""How large a report is, how long it takes to write, and how long the browser takes to open it and to sort.

    python benchmarks/report.py [QUERIES ...]

The two cases of the specification: 3 systems on 50 queries, and 5 systems on 10,000 queries with 12 iterations. The
browser is the chromium of the system, driven by Playwright.
"""

from __future__ import annotations

import cProfile
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from playwright.sync_api import sync_playwright

import goodgain as gg

RESULTS, DOCUMENTS, LABELS = 10, 60, 30
#: Clicks on a heading, and waits until the browser has laid out the table.
_SORT = """(id) => {
  const button = document.querySelector(`[data-sort="${id}"]`), start = performance.now();
  button.click();
  document.getElementById("list").getBoundingClientRect();
  return performance.now() - start;
}"""


def make(queries: int, systems: int, iterations: int) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Qrels of 30 labels a query; runs with 10 results an iteration, from 60 documents."""
    random = np.random.default_rng(queries)
    ids = np.array([f"query-{k:05}" for k in range(queries)])
    labels = pl.DataFrame(
        {
            "query_id": np.repeat(ids, LABELS),
            "doc_id": np.tile([f"document-{k:04}" for k in range(LABELS)], queries),
            "relevance": random.integers(0, 4, LABELS * queries).astype(float),
        }
    )
    runs = {}
    rows = RESULTS * iterations
    for k in range(systems):
        documents = (random.random(rows * queries) ** (1 + 0.05 * k) * DOCUMENTS).astype(int)
        runs[f"system-{k}"] = pl.DataFrame(
            {
                "query_id": np.repeat(ids, rows),
                "iteration": np.tile(np.arange(rows) // RESULTS + 1, queries),
                "doc_id": documents,
                "rank": np.tile(np.arange(rows) % RESULTS + 1, queries),
            }
        ).with_columns(doc_id=pl.format("document-{}", pl.col("doc_id").cast(pl.String).str.zfill(4)))
    return labels, runs


def measure(queries: int, systems: int, iterations: int, folder: Path) -> str:
    """A row of the table."""
    labels, runs = make(queries, systems, iterations)
    start = time.perf_counter()
    path = gg.report(labels, runs, folder / f"{queries}.html", "nDCG@10 nCG@12 SRR@12")
    took = time.perf_counter() - start
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(path.as_uri())
        opened = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        sorts = [
            page.evaluate(_SORT, name) for name in ("query", "value", "difference", "cause", "at") for _ in range(2)
        ]
        browser.close()
    case, size = f"{systems} x {queries:,} x {iterations}", path.stat().st_size / 1e6
    return f"| {case} | {size:.2f} MB | {took:.1f} s | {opened:.0f} ms | {max(sorts):.0f} ms |"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        if sys.argv[1:2] == ["--profile"]:
            cProfile.run("measure(2000, 5, 12, Path(name))", sort="cumtime")
            sys.exit()
        measure(5, 2, 2, Path(name))  # libraries are loaded once
        print(
            "| systems x queries x iterations | size | written in | opened in | slowest sort |\n|---|---|---|---|---|"
        )
        for systems, queries, iterations in ((3, 50, 6), (5, 10_000, 12)):
            print(measure(queries, systems, iterations, Path(name)), flush=True)
