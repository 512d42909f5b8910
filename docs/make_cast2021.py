"""Makes runs and qrels of conversations from a clone of `daltonj/treccastweb`, the data of TREC CAsT.

    python docs/make_cast2021.py treccastweb cast2021

A conversation is a query, and a turn an iteration: `106_3` is iteration 3 of query 106.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

import goodgain as gg

SYSTEMS = ("manual_bm25", "manual_ance", "manual_ance_bert", "convdr", "convdr_bert")


def read_labels(clone: Path) -> pl.DataFrame:
    """Return the judgments of 2021; their iteration is the turn that a label applies to."""
    return _split_turns(gg.read_qrels(clone / "2021" / "trec-cast-qrels-docs.2021.qrel").frame)


def read_runs(clone: Path, depth: int = 10) -> dict[str, pl.DataFrame]:
    """Return system -> its first results of each turn."""
    folder = clone / "2021" / "baselines" / "document_runs"
    frames = {name: gg.read_run(folder / f"org_{name}.run").frame for name in SYSTEMS}
    return {name: _split_turns(frame.filter(pl.col("rank") <= depth)) for name, frame in frames.items()}


def _split_turns(frame: pl.DataFrame) -> pl.DataFrame:
    parts = pl.col("query_id").str.split("_")
    return frame.with_columns(query_id=parts.list.first(), iteration=parts.list.last().cast(pl.Int64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, help="the folder of the clone")
    parser.add_argument("target", type=Path, help="the folder to write: qrels.txt and a run for each system")
    parser.add_argument("--depth", type=int, default=10, help="results of a turn (default: 10)")
    given = parser.parse_args()
    given.target.mkdir(parents=True, exist_ok=True)
    gg.write_qrels(gg.read_qrels(read_labels(given.clone), labels="iteration"), given.target / "qrels.txt")
    for name, run in read_runs(given.clone, given.depth).items():
        gg.write_run(run, given.target / f"{name}.run", tag=name)


if __name__ == "__main__":
    main()
