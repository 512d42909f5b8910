"""What it costs to look for URLs that differ from judged ones by a variant only: a million rows with http ids.

    python benchmarks/url_ids.py [--beside OTHER/src] [--times 7]

The same jobs run in turn with the package of this checkout and with that of another one (an older commit, by `git worktree
add`), each in a process of its own: quote the ratio of processor times. Two runs are made: one of 60 MB, which is read at
once, and one of 130 MB with longer URLs, which is read in blocks.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

QUERIES, ITERATIONS, RESULTS, LABELS = 5_000, 10, 20, 100
DATA = Path(__file__).parent / "data"
#: The length of what follows the host in a URL, which decides whether the file is read at once or in blocks.
PATHS = {"at once": 8, "in blocks": 80}
JOB = """
import sys, time, warnings
import goodgain
warnings.simplefilter("ignore")
goodgain.evaluate({"q": {"http://a.example/": 3}}, {"q": {"http://a.example/": 1.0}}, sys.argv[3])
clock, processors = time.perf_counter(), time.process_time()
goodgain.evaluate(*sys.argv[1:])
print(time.perf_counter() - clock, time.process_time() - processors)
"""


def make(name: str, length: int) -> tuple[Path, Path]:
    """Write qrels and run if they are not there: half of the run's documents are judged, some under a variant."""
    qrels, run = DATA / f"urls_{length}.qrels", DATA / f"urls_{length}.run"
    if run.exists() and qrels.exists():
        return qrels, run
    DATA.mkdir(exist_ok=True)
    chance = random.Random(7)
    filler = "x" * length
    with run.open("w") as rows, qrels.open("w") as labels:
        for query in range(QUERIES):
            pages = [
                f"https://site{chance.randrange(999)}.example.org/{filler}{number}" for number in range(2 * LABELS)
            ]
            for number, page in enumerate(pages[:LABELS]):
                shown = page.replace("https://", "http://www.") if number % 10 == 0 else page
                labels.write(f"q{query} 0 {shown} {number % 5}\n")
            for iteration in range(1, ITERATIONS + 1):
                for rank, page in enumerate(chance.sample(pages, RESULTS), start=1):
                    rows.write(f"q{query} {iteration} {page} {rank} {1 / rank:.4f} agent\n")
    return qrels, run


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, help="src of another checkout")
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--measures", default="CG@3 SRE SRR nDCG@10")
    options = parser.parse_args()
    trees = {"here": Path(__file__).parents[1] / "src"} | ({"beside": options.beside} if options.beside else {})
    print("| read | package | clock, least | processors, least | processors, median |")
    print("|---|---|---|---|---|")
    for name, length in PATHS.items():
        files = make(name, length)
        found: dict[str, list[tuple[float, float]]] = {tree: [] for tree in trees}
        for turn in range(options.times + 1):  # the first warms the file cache
            for tree, path in trees.items():
                command = [sys.executable, "-c", JOB, *map(str, files), options.measures]
                printed = subprocess.run(
                    command, env=os.environ | {"PYTHONPATH": str(path)}, stdout=subprocess.PIPE, text=True, check=True
                ).stdout
                if turn:
                    clock, processors = map(float, printed.split())
                    found[tree].append((clock, processors))
        for tree, times in found.items():
            clocks, processors = zip(*times, strict=True)
            print(
                f"| {name} | {tree} | {min(clocks):.3f} s | {min(processors):.3f} s | {statistics.median(processors):.3f} s |"
            )


if __name__ == "__main__":
    main()
