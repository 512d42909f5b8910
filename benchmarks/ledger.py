"""All ten measures from text files, beside what Polars needs to read three columns of the run.

Each job is a process of its own, in turn, several times; a job prints its seconds (after the imports), the seconds of
all processors together, and its peak memory. Quote the ratio, not the seconds.

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
from typing import NamedTuple

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
import goodgain
start()
goodgain.evaluate(qrels, run, "{TEN} nDCG@10 RR@10 R@100")
""",
}
FRAME = """
import json, resource, sys, time
qrels, run = sys.argv[1:]
note = ""
def start():
    global began
    began = time.perf_counter(), time.process_time()
{job}
taken = time.perf_counter() - began[0], time.process_time() - began[1]
print(json.dumps([*taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, note]))
"""


class Measured(NamedTuple):
    """What one run of a job took: seconds, those of all processors together, peak bytes; and what it has to say."""

    seconds: float
    cpu: float
    peak: float
    note: str = ""


def data(queries: int, labels: int) -> tuple[Path, Path]:
    """Paths of qrels and run, made if they are not there."""
    script = Path(__file__).with_name("making.py")
    command = [sys.executable, str(script), str(script.parent / "data"), str(queries), str(labels)]
    qrels, run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return Path(qrels), Path(run)


def measured(job: str, qrels: Path, run: Path) -> Measured:
    """Run a job once, in a process of its own."""
    command = [sys.executable, "-c", FRAME.format(job=job), str(qrels), str(run)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Measured(*json.loads(printed.splitlines()[-1]))


def measured_in_turn(jobs: dict[str, str], qrels: Path, run: Path, *, times: int) -> dict[str, Measured]:
    """Run jobs in turn, once more than asked for: the first round warms the file cache. Medians of the others."""
    rounds = [{name: measured(job, qrels, run) for name, job in jobs.items()} for _ in range(times + 1)][1:]
    return {
        name: Measured(
            *(statistics.median(one[name][k] for one in rounds) for k in range(3)), note=rounds[-1][name].note
        )
        for name in jobs
    }


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=50_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    qrels, run = data(options.queries, options.labels)
    found = measured_in_turn(JOBS, qrels, run, times=options.times)
    size = run.stat().st_size
    peer = next(iter(found.values())).seconds
    print(f"{options.queries:,} queries, {size / 1e6:,.0f} MB of run\n")
    print("| job | seconds (median) | of all processors | times the first | peak / file |")
    print("|---|---|---|---|---|")
    for name, job in found.items():
        times, peak = job.seconds / peer, job.peak / size
        print(f"| {name} | {job.seconds:.2f} | {job.cpu:.2f} | {times:.1f} | {peak:.1f} |")


if __name__ == "__main__":
    main()
