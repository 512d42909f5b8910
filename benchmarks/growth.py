"""Growth: seconds and memory for 10^4 ... 10^7 rows, goodgain beside what people use, in one go.

Each job is a process of its own, in turn (growth_jobs.py). Quote the ratios, not the seconds.

    python benchmarks/growth.py [--largest 1e6] [--profile] [--spark]
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
from pathlib import Path

from growth_jobs import JOBS, SPARK, TEN

DATA = Path(__file__).parent / "data"
ROWS_PER_QUERY = 130
LONGEST = 120  # seconds: a job that would take longer is left out
SINGLE = 10  # seconds: a job that takes longer is done once
Measured = dict[tuple[str, int], tuple[float, float]]


def done(job: str, qrels: Path, run: Path) -> tuple[float, float, dict[str, float]]:
    """Seconds, peak bytes and what was found."""
    command = [sys.executable, str(Path(__file__).with_name("growth_jobs.py")), job, str(qrels), str(run)]
    outcome = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds, peak, found = json.loads(outcome.splitlines()[-1])
    return seconds, peak, found


def measured(sizes: list[int], jobs: list[str], times: int) -> Measured:
    """The least seconds of each job at each size, printed as they come. This process stays small: its own peak would
    be its children's."""
    taken: Measured = {}
    expected: dict[str, float] = {}
    print(
        "| rows | job | seconds | times read_csv | peak MB | times the seconds of a tenth |\n|---|---|---|---|---|---|"
    )
    for size in sizes:
        queries = size // ROWS_PER_QUERY
        qrels, run = DATA / f"{queries}.qrels", DATA / f"{queries}.run"
        done("make", qrels, run)
        means: dict[str, float] = {}
        for job in jobs:
            if expected.get(job, 0) > LONGEST:
                reason = f"left out: it would take {expected[job]:,.0f} s or more, and {LONGEST} is the limit"
                print(f"| {size:,} | {job} | {reason} | | | |", flush=True)
                expected[job] *= 10
                continue
            rounds = [done(job, qrels, run)]
            while len(rounds) < times and rounds[0][0] < SINGLE:
                rounds.append(done(job, qrels, run))
            _compare(means, rounds[0][2], job)
            seconds, peak = min(took[:2] for took in rounds)
            taken[job, size] = seconds, peak
            before = taken.get((job, size // 10))
            growth = seconds / before[0] if before else None
            expected[job] = max(10, growth or 0) * seconds
            ratio = seconds / taken[jobs[0], size][0]
            shown = f"{growth:.1f}" if growth else ""
            print(f"| {size:,} | {job} | {seconds:.3f} | {ratio:.1f} | {peak / 1e6:,.0f} | {shown} |", flush=True)
    return taken


def _compare(means: dict[str, float], found: dict[str, float], job: str) -> None:
    """What two jobs both found is the same to 1e-9, or they did not do the same work."""
    for name, value in found.items():
        if not abs(means.setdefault(name, value) - value) <= 1e-9 * max(1, abs(value)):
            raise SystemExit(f"{job}: {name} is {value}, and {means[name]} elsewhere")


def draw(taken: Measured, target: Path) -> None:
    """Rows against seconds and memory, both on logarithmic scales."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 6))
    for k, (axis, label, unit) in enumerate(zip(axes, ("seconds", "peak memory, MB"), (1, 1e6), strict=True)):
        for job in dict.fromkeys(job for job, _ in taken):
            points = [(size, values[k] / unit) for (other, size), values in taken.items() if other == job]
            axis.loglog(*zip(*points, strict=True), marker="o", label=job)
        axis.set(xlabel="rows", ylabel=label)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(target)


def profile(size: int) -> None:
    """The fifteen functions of goodgain from text that take most, by their own time; waiting for threads is one."""
    import goodgain

    queries = size // ROWS_PER_QUERY
    done("make", DATA / f"{queries}.qrels", DATA / f"{queries}.run")
    profiler = cProfile.Profile()
    profiler.runcall(goodgain.evaluate, DATA / f"{queries}.qrels", DATA / f"{queries}.run", TEN)
    stats = pstats.Stats(profiler)
    functions = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:15]  # type: ignore[attr-defined]  # untyped
    total = stats.total_tt  # type: ignore[attr-defined]  # in no stub
    print(
        f"\nProfile of goodgain from text, {size:,} rows, calling thread\n\n| function | calls | share |\n|---|---|---|"
    )
    for (path, line, name), (_, calls, own, _, _) in functions:
        place = name if path == "~" else f"{Path(path).parent.name}/{Path(path).name}:{line} {name}"
        print(f"| `{place}` | {calls:,} | {100 * own / total:.0f} % |")


def main() -> None:
    """Print Markdown tables, draw the curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=float, default=1e7)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="profile the largest case, too")
    parser.add_argument("--spark", action="store_true", help="Spark too, which needs PySpark and Java")
    options = parser.parse_args()
    sizes = [size for size in (10**4, 10**5, 10**6, 10**7) if size <= options.largest]
    if not sizes:
        parser.error("--largest is below 1e4, the smallest size")
    jobs = [*JOBS, *SPARK] if options.spark else [*JOBS]
    taken = measured(sizes, jobs, options.times)
    draw(taken, DATA / "growth.png")
    print(f"\nThe curve: {DATA / 'growth.png'}", flush=True)
    if options.profile:
        profile(sizes[-1])


if __name__ == "__main__":
    main()
