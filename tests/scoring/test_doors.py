"""The same input gives the same digits at every door, in any order of rows, in blocks, compressed, and from any thread.

Values are compared with ==. The seeds are those of `SEEDS`; `GOODGAIN_TESTS=all` compares more than 10^5 values in all.
"""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import ir_measures
import polars as pl
import pytest
import zstandard

import goodgain as gg
from goodgain.counting import run_in_blocks
from goodgain.measures.names import parse_measure
from tests.support.command import run_command
from tests.support.counts import how_many, some_of
from tests.support.tables import no_notices

SEEDS = range(20261122, 20261122 + how_many(1, full=2))
QUERIES = how_many(12, full=40)
OURS = "CG CG@2 DCGG RG(rel=1) SRE SRE(rel=0.3)@2 SRR nCG AvgGain@2 NumDup nDCGG"
CLASSIC = "nDCG@10 nDCG AP RR P@5 R@100 Rprec RankDCG@10"
WHOLE, THIRDS = (0, 0, 1, 2, 3, 4), (0, 0.1, 0.25, 1 / 3, 2 / 3, 1.9999999999999998, 2.2, 3, 10 / 3)


def make_run(random: Random) -> pl.DataFrame:
    """Return a run of several iterations with repeats, in order; ranks within an iteration differ."""
    rows = []
    for query in range(QUERIES):
        for iteration in range(1, random.randint(1, 4) + 1):
            documents = random.sample(range(60), random.randint(1, 25))
            rows += [
                (f"q{query}", iteration, f"d{document}", rank, random.randint(1, 9) / 7)
                for rank, document in enumerate(documents, start=1)
            ]
    frame = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank", "score"], orient="row")
    return frame.with_columns(score=pl.col("score") - pl.col("rank"), tag=pl.lit("t"))


def make_qrels(random: Random, labels: tuple[float, ...]) -> pl.DataFrame:
    rows = [
        (f"q{query}", "0", f"d{document}", float(random.choice(labels)))
        for query in range(QUERIES + 2)
        for document in random.sample(range(70), 40)
    ]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "relevance"], orient="row")


def text_of(frame: pl.DataFrame) -> bytes:
    return b"".join(" ".join(map(repr_of, row)).encode() + b"\n" for row in frame.iter_rows())


def repr_of(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)


#: Door -> what is given for a frame and a folder to write to; `make` takes the frame's columns and rows as they are.
Door = Callable[[pl.DataFrame, Path], Any]


def _file(name: str, encode: Callable[[pl.DataFrame], bytes]) -> Door:
    def write(frame: pl.DataFrame, folder: Path) -> Path:
        path = folder / f"{'run' if 'rank' in frame.columns else 'qrels'}{name}"
        path.write_bytes(encode(frame))
        return path

    return write


def _bytes(write: str) -> Callable[[pl.DataFrame], bytes]:
    def encode(frame: pl.DataFrame) -> bytes:
        content = io.BytesIO()
        getattr(frame, write)(content)
        return content.getvalue()

    return encode


def _shuffle(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sample(fraction=1.0, shuffle=True, seed=7)


DOORS: dict[str, Door] = {
    "text": _file(".txt", text_of),
    "shuffled text": _file(".txt", lambda frame: text_of(_shuffle(frame))),
    "tabs": _file(".txt", lambda frame: text_of(frame).replace(b" ", b"\t")),
    "CRLF": _file(".txt", lambda frame: text_of(frame).replace(b"\n", b"\r\n")),
    "BOM": _file(".txt", lambda frame: b"\xef\xbb\xbf" + text_of(frame)),
    "no last line feed": _file(".txt", lambda frame: text_of(frame)[:-1]),
    "gzip": _file(".txt.gz", lambda frame: gzip.compress(text_of(frame))),
    "zstandard": _file(".txt.zst", lambda frame: zstandard.compress(text_of(frame))),
    "Parquet": _file(".parquet", _bytes("write_parquet")),
    "Arrow": _file(".arrow", _bytes("write_ipc")),
    "JSON Lines": _file(".jsonl", _bytes("write_ndjson")),
    "CSV": _file(".csv", _bytes("write_csv")),
    "shuffled Parquet": _file(".parquet", lambda frame: _bytes("write_parquet")(_shuffle(frame))),
    "polars": lambda frame, _: frame,
    "shuffled polars": lambda frame, _: _shuffle(frame),
    "lazy": lambda frame, _: frame.lazy(),
    "pandas": lambda frame, _: frame.to_pandas(),
    "shuffled pandas": lambda frame, _: _shuffle(frame).to_pandas(),
    "pyarrow": lambda frame, _: frame.to_arrow(),
}


def values_of(scores: gg.Scores) -> dict[tuple[str, str], float | None]:
    found = {(query, measure): value for query, measure, value in scores.per_query.iter_rows()}
    return found | {("all", measure): value for measure, value in scores.mean().items()}


def differences(found: dict[Any, Any], wanted: dict[Any, Any]) -> list[Any]:
    assert found.keys() == wanted.keys()
    return [(key, value, wanted[key]) for key, value in found.items() if value != wanted[key]]


@pytest.mark.parametrize("labels", some_of([THIRDS, WHOLE], every=2))
def test_every_door_gives_the_same_digits(labels: tuple[float, ...], tmp_path: Path) -> None:
    compared = 0
    for seed in SEEDS:
        random = Random(seed)
        run, qrels = make_run(random), make_qrels(random, labels)
        with no_notices():
            wanted = values_of(gg.evaluate(qrels, run, f"{OURS} {CLASSIC}"))
            for name, values in _ask_every_door(run, qrels, tmp_path):
                assert not differences(values, wanted), (seed, name)
                compared += len(values)
    assert compared >= how_many(2_000, full=50_000)


def _ask_every_door(run: pl.DataFrame, qrels: pl.DataFrame, folder: Path) -> Iterator[tuple[str, dict[Any, Any]]]:
    names = f"{OURS} {CLASSIC}"
    for name, door in DOORS.items():
        yield name, values_of(gg.evaluate(door(qrels, folder), door(run, folder), names))
    for name in ("text", "shuffled text", "gzip", "zstandard", "Parquet", "shuffled Parquet"):
        for block in (2_000, 20_000):
            blocks = read_in_blocks(DOORS[name](run, folder), block=block)
            yield f"{name} in blocks of {block}", values_of(gg.evaluate(qrels, blocks, names))
    with ThreadPoolExecutor(3) as pool:
        scores = pool.map(lambda frame: gg.evaluate(qrels, frame, names), [run, _shuffle(run), run])
        yield from (("threads", values_of(scores_of_system)) for scores_of_system in scores)


def read_in_blocks(path: Path, *, block: int) -> Any:
    """Open a file as a large one is opened, to be read in blocks of some bytes."""
    return run_in_blocks.RunFile(path, "close", 1, is_text=path.suffix != ".parquet", block=block)


@pytest.mark.parametrize("labels", [WHOLE, THIRDS], ids=["whole", "fractional"])
def test_duckdb_counts_the_same_digits(labels: tuple[float, ...]) -> None:
    for seed in SEEDS[: how_many(1, full=5)]:
        random = Random(seed)
        run, qrels = make_run(random), make_qrels(random, labels)
        given = duckdb.connect().from_arrow(_shuffle(run).to_arrow())
        with no_notices():
            found, wanted = (values_of(gg.evaluate(qrels, frame, f"{OURS} {CLASSIC}")) for frame in (given, run))
        assert not differences(found, wanted)


@pytest.mark.parametrize("labels", [WHOLE, THIRDS], ids=["whole", "fractional"])
def test_ir_measures_has_the_same_digits_and_the_same_means(labels: tuple[float, ...]) -> None:
    for seed in SEEDS:
        random = Random(seed)
        run, qrels = make_run(random), make_qrels(random, labels)
        measures = [parse_measure(name) for name in (*OURS.split(), "RankDCG@10")]
        with no_notices():
            wanted = values_of(gg.evaluate(qrels, run, measures))
            read = gg.read_qrels(_shuffle(qrels)), gg.read_run(_shuffle(run))
            found = {(one.query_id, str(one.measure)): one.value for one in ir_measures.iter_calc(measures, *read)}
            means = {
                ("all", str(measure)): value for measure, value in ir_measures.calc_aggregate(measures, *read).items()
            }
        assert not differences(found | means, wanted)


@pytest.mark.slow
def test_pytrec_eval_and_ranx_have_the_same_digits() -> None:
    import ranx  # type: ignore[import-untyped]  # ranx has no types

    from goodgain.hosts import pytrec_eval
    from goodgain.hosts import ranx as ranx_host

    for seed in SEEDS:
        random = Random(seed)
        run, qrels = make_run(random), make_qrels(random, WHOLE)
        with no_notices():
            wanted = gg.evaluate(qrels, run, "SRE CG@2 SRR")
            scores = pytrec_eval.RelevanceEvaluator(qrels, {"sre", "cg_2", "srr"}).evaluate(_shuffle(run))
            theirs = ranx.evaluate(
                ranx_host.Qrels(qrels),
                ranx_host.Run(_shuffle(run)),
                ["sre", "cg@2"],
                make_comparable=True,
                return_mean=False,
            )
        for query, name, value in wanted.per_query.iter_rows():
            assert scores[query][name.lower().replace("@", "_")] == value
        for name in ("sre", "cg_2", "srr"):
            of_queries = [values[name] for values in scores.values()]
            assert pytrec_eval.compute_aggregated_measure(name, of_queries) == math.fsum(of_queries) / len(of_queries)
        by_query = wanted.per_query.sort("query_id")
        for name, values in (("SRE", theirs["sre"]), ("CG@2", theirs["cg@2"])):
            assert list(values) == by_query.filter(pl.col("measure") == name)["value"].to_list()


@pytest.mark.parametrize("labels", [WHOLE, THIRDS], ids=["whole", "fractional"])
def test_the_command_prints_the_same_digits(labels: tuple[float, ...], tmp_path: Path) -> None:
    random = Random(SEEDS[0])
    run, qrels = make_run(random), make_qrels(random, labels)
    with no_notices():
        wanted = values_of(gg.evaluate(qrels, run, OURS))
    for name in ("shuffled text", "gzip", "JSON Lines"):
        paths = [DOORS[name](frame, tmp_path) for frame in (qrels, run)]
        done = run_command("evaluate", *paths, *OURS.split(), "-q", "-o", "jsonl")
        lines = list(map(json.loads, done.stdout.splitlines()))
        assert not differences({(line["query_id"], line["measure"]): line["value"] for line in lines}, wanted)


@pytest.mark.parametrize("provider", ["pytrec_eval", None])
def test_means_of_hosts_do_not_move_with_the_order_of_rows(provider: str | None) -> None:
    names = "nDCG@10 AP RR P@5 R@100" + ("" if provider else " Bpref infAP")
    for seed in SEEDS:
        random = Random(seed)
        run, qrels = make_run(random), make_qrels(random, WHOLE)
        with no_notices():
            one, other = (
                values_of(gg.evaluate(judged, found, names, provider=provider))
                for judged, found in ((qrels, run), (_shuffle(qrels), _shuffle(run)))
            )
        assert not differences(one, other)


def test_labels_in_blocks_have_the_scale_of_the_whole_file(tmp_path: Path) -> None:
    """A host gets fractional labels times a power of ten; chosen block by block, it changed the last digit."""
    random = Random(SEEDS[0])
    run = make_run(random)
    qrels = make_qrels(random, (0, 0.5, 1.25, 2.2, 3)).with_columns(
        relevance=pl.when(pl.col("query_id") == "q0").then(pl.col("relevance").round(1)).otherwise("relevance")
    )
    blocks = read_in_blocks(DOORS["text"](run, tmp_path), block=500)
    with no_notices():
        one, other = (values_of(gg.evaluate(qrels, r, "nDCG@10", provider="pytrec_eval")) for r in (run, blocks))
    assert not differences(one, other)


@pytest.mark.parametrize("number", [2**56, 10**18 - 1])
def test_an_iteration_is_the_same_number_in_every_format(number: int, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"query_id": "q", "iteration": [3, number], "doc_id": ["a", "b"], "rank": 1, "score": 1.0, "tag": "t"}
    )
    for name, door in DOORS.items():
        with no_notices():
            rows = gg.read_run(door(frame, tmp_path)).rows["iteration"].sort().to_list()
        assert rows == [3, number], name
    with no_notices():
        blocks = read_in_blocks(DOORS["text"](frame, tmp_path), block=10)
        assert gg.evaluate({"q": {"a": 2}}, blocks, "NumIter")["NumIter"] == 2


@pytest.mark.parametrize(
    "name", [name for name in DOORS if name.split()[-1] not in ("polars", "lazy", "pandas", "pyarrow")]
)
def test_an_iteration_that_no_format_has_is_one_sentence(name: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"query_id": "q", "iteration": ["3", str(10**18)], "doc_id": ["a", "b"], "rank": 1, "score": 1.0, "tag": "t"}
    )
    with pytest.raises(gg.InputError, match="at most 18 digits"):
        gg.read_run(DOORS[name](frame, tmp_path))
