"""What it costs to count the URLs of one page as one document: `urls="join"` beside `urls="keep"`, for 6.5 million rows.

    python benchmarks/url_ids.py [--pages 20000 200000] [--times 3] [--beside OTHER/src]

Each query has 10 iterations of 100 results and about 100 labels. Three sets of qrels belong to one run: a tenth of the pages have
another URL there, or all of them, or each page in a tenth of its labels. Every job runs in a process of its own, in turn; the
least time counts. `--beside` measures the package of another checkout too (an older commit, by `git worktree add`).
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

QUERIES, ITERATIONS, RESULTS, RETRIEVED, OTHERS = 6_500, 10, 100, 60, 40
DATA = Path(__file__).parent / "data"
MEASURES = "nDCG@10 RR@10 R@100 AP P@10 CG@3 NumGood nCG@3 SRR SRE@3"
#: Qrels -> whether the label with this page and number has another URL than the run.
QRELS: dict[str, Callable[[int, int], bool]] = {
    "a tenth of the pages": lambda page, number: page % 10 == 0,
    "all pages": lambda page, number: True,
    "each page in a tenth of its labels": lambda page, number: (page + number) % 10 == 0,
}
JOB = """
import sys, time, warnings
import goodgain, polars
warnings.simplefilter("ignore")
qrels, run, measures, form, urls = sys.argv[1:]
judged = goodgain.read_qrels(qrels)
if form == "in memory":
    columns = ["query_id", "iteration", "doc_id", "rank", "score", "tag"]
    run = goodgain.read_run(polars.read_csv(run, separator=" ", has_header=False, new_columns=columns).drop("tag"))
goodgain.evaluate({"q": {"http://a.example/": 3}}, {"q": {"http://a.example/": 1.0}}, measures)
clock, processors = time.perf_counter(), time.process_time()
goodgain.evaluate(judged, run, measures, urls=urls)
print(time.perf_counter() - clock, time.process_time() - processors)
"""


def make(pages: int) -> tuple[Path, dict[str, Path]]:
    """Write the run and the qrels if they are not there. Return their paths."""
    run = DATA / f"urls_{pages}.run"
    qrels = {name: DATA / f"urls_{pages}_{number}.qrels" for number, name in enumerate(QRELS)}
    if all(path.exists() for path in (run, *qrels.values())):
        return run, qrels
    DATA.mkdir(exist_ok=True)
    chance = random.Random(7)
    ids = [f"https://site{page % 997}.example.org/articles/{page:08d}/page" for page in range(pages)]
    labels = {name: path.open("w") for name, path in qrels.items()}
    with run.open("w") as rows:
        for query in range(QUERIES):
            drawn = chance.choices(range(pages), k=ITERATIONS * RESULTS)
            for place, page in enumerate(drawn):
                iteration, rank = divmod(place, RESULTS)
                rows.write(f"q{query} {iteration + 1} {ids[page]} {rank + 1} {RESULTS - rank} agent\n")
            for number, page in enumerate({*drawn[:RETRIEVED], *chance.choices(range(pages), k=OTHERS)}):
                for name, has_other in QRELS.items():
                    other = ids[page].replace("https://", "http://www.") + "/"
                    labels[name].write(f"q{query} 0 {other if has_other(page, query) else ids[page]} {number % 4}\n")
    for file in labels.values():
        file.close()
    return run, qrels


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--beside", type=Path, help="src of another checkout")
    options = parser.parse_args()
    trees = {"here": Path(__file__).parents[1] / "src"} | ({"beside": options.beside} if options.beside else {})
    print("| other URLs in the qrels | pages | the run | package | keep | join | join / keep: clock, processors |")
    print("|---|---|---|---|---|---|---|")
    for pages in options.pages:
        run, qrels = make(pages)
        run.read_bytes()  # fills the file cache
        for name, path in qrels.items():
            for form in ("in memory", "as text"):
                found: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
                for _ in range(options.times):
                    for tree, source in trees.items():
                        for urls in ("keep", "join"):
                            command = [sys.executable, "-c", JOB, str(path), str(run), MEASURES, form, urls]
                            environment = os.environ | {"PYTHONPATH": str(source)}
                            printed = subprocess.check_output(command, env=environment, text=True)
                            found[tree, urls].append(tuple(map(float, printed.split())))
                for tree in trees:
                    kept, joined = (
                        [min(times) for times in zip(*found[tree, u], strict=True)] for u in ("keep", "join")
                    )
                    ratios = ", ".join(f"{new / old:.2f}" for old, new in zip(kept, joined, strict=True))
                    print(f"| {name} | {pages:,} | {form} | {tree} | {kept[0]:.2f} s | {joined[0]:.2f} s | {ratios} |")


if __name__ == "__main__":
    main()
