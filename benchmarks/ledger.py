"""All ten measures from text files, beside what Polars needs to read three columns of the run.

Each job is a process of its own, in turn, several times; a job prints its seconds (after the imports) and its peak
memory. Quote the ratio, not the seconds.

The data is made in a process of its own too, and this one imports no more than Python: Linux counts the peak of the
process that starts another one as the other one's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

TEN = "CG RG DCGG DRG AvgGain@3 RAG DRAG SRE SRR IterationsForAllGoodResults"

JOBS = {
    "read_csv of three columns": """
import polars as pl
start()
pl.read_csv(run, separator=" ", has_header=False, quote_char=None, columns=[0, 1, 2])
""",
    "read_csv of the whole file": """
import polars as pl
start()
pl.read_csv(run, separator=" ", has_header=False, quote_char=None)
""",
    "goodgain, ten measures": f"""
import goodgain
start()
goodgain.evaluate(qrels, run, "{TEN}")
""",
    "goodgain, and nDCG@10 RR@10 R@100": f"""
import goodgain, ir_measures, pytrec_eval
start()
goodgain.evaluate(qrels, run, "{TEN} nDCG@10 RR@10 R@100")
""",
}
FRAME = """
import json, resource, sys, time
qrels, run = sys.argv[1:]
def start():
    global began
    began = time.perf_counter()
{job}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([time.perf_counter() - began, peak]))
"""


def data(queries: int, labels: int) -> tuple[Path, Path]:
    """Paths of qrels and run, made if they are not there."""
    script = Path(__file__).with_name("making.py")
    command = [sys.executable, str(script), str(script.parent / "data"), str(queries), str(labels)]
    qrels, run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return Path(qrels), Path(run)


def measured(job: str, qrels: Path, run: Path) -> tuple[float, float]:
    """Seconds and peak bytes of one run of a job."""
    command = [sys.executable, "-c", FRAME.format(job=job), str(qrels), str(run)]
    seconds, peak = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return seconds, peak


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=50_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    qrels, run = data(options.queries, options.labels)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in JOBS}
    for _ in range(options.times + 1):  # the first round warms the file cache
        for name, job in JOBS.items():
            found[name].append(measured(job, qrels, run))
    size = run.stat().st_size
    peer = statistics.median(seconds for seconds, _ in next(iter(found.values()))[1:])
    print(f"{options.queries:,} queries, {size / 1e6:,.0f} MB of run\n")
    print("| job | seconds (median) | times the first | peak / file |")
    print("|---|---|---|---|")
    for name, runs in found.items():
        seconds = statistics.median(seconds for seconds, _ in runs[1:])
        peak = statistics.median(peak for _, peak in runs[1:])
        print(f"| {name} | {seconds:.2f} | {seconds / peer:.1f} | {peak / size:.1f} |")


if __name__ == "__main__":
    main()
