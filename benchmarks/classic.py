"""Classic measures beside ours: what five of them cost in one call, and what other tools take for these five.

The run is that of ledger.py; other tools read its flattened ranking, a third of the rows, made before the clock starts.
Each job is a process of its own, in turn, several times. Quote the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from ledger import TEN, data, measured_in_turn

FIVE = "nDCG@10 RR@10 R@100 AP P@10"
THREE = "nDCG@10 RR@10 R@100"

#: Not measured: the flattened run as text, and the run as a table in a DuckDB database.
PREPARE = """
import sys
from pathlib import Path
import duckdb, polars as pl
import goodgain
run = Path(sys.argv[1])
names = ["query_id", "iteration", "doc_id", "rank", "score", "tag"]
frame = pl.read_csv(run, separator=" ", has_header=False, quote_char=None, new_columns=names)
flat = goodgain.flatten(frame).select(names)
flat.write_csv(f"{run}.flat", separator=" ", include_header=False, quote_style="never")
rows = frame.to_arrow()
with duckdb.connect(f"{run}.duckdb") as connection:
    connection.execute("CREATE OR REPLACE TABLE run AS SELECT * FROM rows")
"""

FROM_DUCKDB = """
import duckdb
import goodgain
relation = duckdb.connect(run + ".duckdb", read_only=True).table("run")
start()
goodgain.evaluate(qrels, relation, "{measures}")
"""

TEN_ALONE, WITH_FIVE, PLAIN = "ten measures of ours", f"and {FIVE}", "pytrec_eval, those five, dicts read by Python"
TEN_THERE, THREE_THERE = "ten measures of ours, a table in DuckDB", f"and {THREE}, a table in DuckDB"
READ, FLATTEN = "read_csv of the whole file", "gg.flatten of these rows, in memory"
JOBS = {
    TEN_ALONE: f"""
import goodgain
start()
goodgain.evaluate(qrels, run, "{TEN}")
""",
    WITH_FIVE: f"""
import goodgain
start()
goodgain.evaluate(qrels, run, "{TEN} {FIVE}")
""",
    PLAIN: """
import pytrec_eval
start()
judged, ranking = {}, {}
with open(qrels) as lines:
    for line in lines:
        query_id, _, doc_id, label = line.split()
        judged.setdefault(query_id, {})[doc_id] = int(label)
with open(run + ".flat") as lines:
    for line in lines:
        query_id, _, doc_id, _, score, _ = line.split()
        ranking.setdefault(query_id, {})[doc_id] = float(score)
asked = {"ndcg_cut.10", "recip_rank", "recall.100", "map", "P.10"}
found = pytrec_eval.RelevanceEvaluator(judged, asked).evaluate(ranking).values()
for name in ("ndcg_cut_10", "recall_100", "map", "P_10"):
    sum(value[name] for value in found) / len(judged)
sum(value["recip_rank"] for value in found if value["recip_rank"] >= 0.1) / len(judged)
""",
    "ranx, those five, the second time": """
import ranx
def evaluated():
    start()
    judged, ranking = ranx.Qrels.from_file(qrels, kind="trec"), ranx.Run.from_file(run + ".flat", kind="trec")
    names = ["ndcg@10", "mrr@10", "recall@100", "map", "precision@10"]
    ranx.evaluate(judged, ranking, names, make_comparable=True)
evaluated()  # it compiles anew for each length of ids
evaluated()
""",
    "ir_measures, those five": f"""
import ir_measures
start()
judged, ranking = ir_measures.read_trec_qrels(qrels), ir_measures.read_trec_run(run + ".flat")
ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in "{FIVE}".split()], judged, ranking)
""",
    TEN_THERE: FROM_DUCKDB.format(measures=TEN),
    THREE_THERE: FROM_DUCKDB.format(measures=f"{TEN} {THREE}"),
    READ: """
import polars as pl
start()
pl.read_csv(run, separator=" ", has_header=False, quote_char=None)
""",
    FLATTEN: """
import polars as pl
import goodgain
names = ["query_id", "iteration", "doc_id", "rank", "score", "tag"]
frame = pl.read_csv(run, separator=" ", has_header=False, quote_char=None, new_columns=names)
start()
goodgain.flatten(frame)
""",
}


def main() -> None:
    """Print a Markdown table, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=50_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    qrels, run = data(options.queries, options.labels)
    subprocess.run([sys.executable, "-c", PREPARE, str(run)], check=True)
    found = measured_in_turn(JOBS, qrels, run, times=options.times)
    print(f"{options.queries:,} queries, {run.stat().st_size / 1e6:,.0f} MB of run\n")
    print("| job | seconds (median) | of all processors | peak, MB | |")
    print("|---|---|---|---|---|")
    for name, job in found.items():
        print(f"| {name} | {job.seconds:.2f} | {job.cpu:.2f} | {job.peak / 1e6:,.0f} | {job.note} |")
    for text, over, under in (
        ("with five / ten alone (asked: at most 1.6)", WITH_FIVE, TEN_ALONE),
        ("plain pytrec_eval / ours with five (asked: at least 1.7)", PLAIN, WITH_FIVE),
        ("with three / ten alone, in DuckDB (asked: at most 4)", THREE_THERE, TEN_THERE),
        ("flatten / read (asked: at most 3)", FLATTEN, READ),
    ):
        seconds, cpu = (getattr(found[over], kind) / getattr(found[under], kind) for kind in ("seconds", "cpu"))
        print(f"\n{text}: {seconds:.2f}, by the seconds of all processors {cpu:.2f}")


if __name__ == "__main__":
    main()
