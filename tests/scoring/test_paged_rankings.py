"""`page=` cuts the ranking of a run without iterations into pages, as a user would cut the file by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import InputError
from goodgain.measures import MEASURES
from goodgain.measures.declaration import IterationMeasure
from goodgain.measures.names import parse_measure
from goodgain.measures.session_measures import PerIteration
from tests.scoring.test_doors import read_in_blocks
from tests.scoring.test_missing_iterations import frame_of
from tests.support.command import run_command
from tests.support.tables import no_notices

SIZE = 3
CLASSIC = "nDCG@10 AP RR P@5 R(rel=2)@15 RankDCG@10 NumRet"
OF_ITERATIONS = [
    *(f"{name}@2" if measure.declaration.cutoff == "required" else name for name, measure in MEASURES.items()),
    *(f"{name}@2" for name, measure in MEASURES.items() if measure.declaration.cutoff == "optional"),
    *(str(PerIteration(measure="P@2", how=how)) for how in ("mean", "max", "min", "sum", "first", "last")),
    str(PerIteration @ 2),
]
NAMES = [*OF_ITERATIONS, *CLASSIC.split()]

Row = tuple[str, str, str, int, float]


def make_rows() -> list[Row]:
    """The rows of a file: a word in column 2, ranks that fall and rise, repeats, and a query without results."""
    random = Random(54)
    rows: list[Row] = []
    for query in range(8):
        documents = random.choices(range(30), k=random.randint(2, 14))
        of_query = [(f"q{query}", "Q0", f"d{doc}", rank, -float(rank)) for rank, doc in enumerate(documents, 1)]
        rows += random.sample(of_query, len(of_query))
    found_all = [("q9", "Q0", f"d{rank}", rank, -float(rank)) for rank in range(1, 6)]
    return [*rows, *found_all, ("q8", "Q0", "-", 0, 0.0)]


def cut_by_hand(rows: list[Row], size: int) -> str:
    """The text of the same run with the number of the page in column 2."""
    lines = []
    for _, of_query in groupby(rows, key=lambda row: row[0]):
        for place, row in enumerate(sorted(of_query, key=lambda row: row[3])):
            lines.append(" ".join(map(str, (row[0], place // size + 1, *row[2:], "t"))))
    return "\n".join(lines) + "\n"


def write(folder: Path, text: str | pl.DataFrame, name: str = "bm25.run") -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        (frame_of(text) if isinstance(text, str) else text).write_parquet(path)
    else:
        path.write_text(str(text))
    return path


ROWS = make_rows()
TEXT = "".join(" ".join(map(str, (*row, "t"))) + "\n" for row in ROWS)
CUT = cut_by_hand(ROWS, SIZE)
SCATTERED = "".join(sorted(TEXT.splitlines(keepends=True), key=lambda line: line.split()[2]))
QRELS = pl.DataFrame(
    [(f"q{query}", f"d{doc}", float(doc % 4)) for query in (*range(9), 10) for doc in range(query % 3, 30, 2)]
    + [("q9", f"d{doc}", 2.0) for doc in (2, 4)],
    schema=["query_id", "doc_id", "relevance"],
    orient="row",
)
SOURCES: dict[str, Callable[[Path], Any]] = {
    "text": lambda folder: write(folder, TEXT),
    "large text": lambda folder: read_in_blocks(write(folder, TEXT), block=200),
    "large text, scattered": lambda folder: read_in_blocks(write(folder, SCATTERED), block=200),
    "Parquet": lambda folder: write(folder, TEXT, "bm25.parquet"),
    "large Parquet": lambda folder: read_in_blocks(write(folder, TEXT, "bm25.parquet"), block=200),
    "frame": lambda _: frame_of(TEXT),
    "frame without column 2": lambda _: frame_of(TEXT).drop("iteration"),
    "one number in column 2": lambda _: frame_of(TEXT.replace(" Q0 ", " 0 ")),
    "pandas": lambda _: frame_of(TEXT).to_pandas(),
    "DuckDB": lambda _: duckdb.connect().from_arrow(frame_of(TEXT).to_arrow()),
    "a run that was read": lambda _: gg.read_run(frame_of(TEXT)),
}


def score(run: Any, names: Any = tuple(NAMES), **options: Any) -> Any:
    return gg.evaluate(QRELS, run, [*names], **options)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    """The values of the run cut by hand; classic measures are those of the run before."""
    folder = tmp_path_factory.mktemp("cut")
    with no_notices():
        classic = score(write(folder, TEXT), CLASSIC.split(), order="last").per_query
        cut = score(write(folder, cut_by_hand(ROWS, SIZE), "cut.run"), OF_ITERATIONS).per_query
    return {"ours": cut, "classic": classic}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_a_paged_run_has_the_numbers_of_the_same_run_cut_by_hand(
    source: str, tmp_path: Path, wanted: dict[str, pl.DataFrame]
) -> None:
    with no_notices():
        scores = score(SOURCES[source](tmp_path), page=SIZE, order="last")
    assert scores.signature["page"] == SIZE and not scores.lacks_iterations
    ours = pl.col("measure").is_in(OF_ITERATIONS)
    assert scores.per_query.filter(ours).equals(wanted["ours"])
    assert scores.per_query.filter(~ours).equals(wanted["classic"])


def test_a_run_read_in_pages_is_cut_and_keeps_its_ranking(tmp_path: Path) -> None:
    run, whole = gg.read_run(frame_of(TEXT), page=SIZE), gg.read_run(frame_of(TEXT))
    gg.write_run(run, tmp_path / "pages.run")
    key = ["query_id", "rank", "iteration", "doc_id"]
    written, cut = (gg.read_run(write(tmp_path, text)).frame for text in ((tmp_path / "pages.run").read_text(), CUT))
    assert written.select(key).sort(key).equals(cut.select(key).sort(key))

    for order in ("seen", "interleaved", "last"):
        assert gg.flatten(run, order=order).equals(gg.flatten(whole, order=order))
    assert run.frame.filter(query_id="q8").select("iteration", "doc_id").rows() == [(1, "-")]

    last = run.frame.group_by("query_id", "iteration").len().sort("query_id", "iteration")
    short = last.group_by("query_id", maintain_order=True).agg(pl.col("len"))
    assert all(set(lengths[:-1]) <= {SIZE} and 1 <= lengths[-1] <= SIZE for lengths in short["len"])

    measures = [parse_measure(name) for name in ("CG", "RG", "nCG@2", "nDCG@10", "AP")]
    with no_notices():
        found = ir_measures.calc_aggregate(measures, gg.read_qrels(QRELS), run)
        wanted = score(frame_of(TEXT), measures, page=SIZE).means
    assert {str(name): round(value, 12) for name, value in found.items()} == {
        name: round(value, 12) for name, value in wanted.items()
    }


@pytest.mark.parametrize("name", OF_ITERATIONS)
def test_the_flag_of_a_measure_says_whether_pages_of_another_length_change_it(name: str) -> None:
    with no_notices():
        values = [score(frame_of(TEXT), [name], page=size).per_query["value"].to_list() for size in (1, 2, 5)]
    measure = parse_measure(name)
    assert isinstance(measure, IterationMeasure)
    assert (values[0] != values[1] or values[1] != values[2]) == measure.depends_on_ends


@pytest.mark.parametrize("name", ["SubtopicRecall", "NuggetRecall", "NuggetCoverage", "NuggetScore", "NuggetGain"])
def test_the_flag_of_a_nugget_measure_says_whether_pages_of_another_length_change_it(name: str) -> None:
    of_nuggets = QRELS.with_columns(iteration=pl.col("doc_id").str.slice(-1))
    qrels = gg.read_qrels(of_nuggets, labels="subtopic")
    with no_notices():
        values = [
            gg.evaluate(qrels, frame_of(TEXT), [name], page=size).per_query["value"].to_list() for size in (1, 2, 5)
        ]
    measure = parse_measure(name)
    assert isinstance(measure, IterationMeasure)
    assert (values[0] != values[1] or values[1] != values[2]) == measure.depends_on_ends


def test_a_run_with_iterations_is_not_read_in_pages() -> None:
    run = {"query_id": ["q", "q"], "iteration": [1, 2], "doc_id": ["a", "b"], "rank": [1, 1]}
    with pytest.raises(gg.InputError, match=r"^page=1: the run has iterations already"):
        gg.read_run(pl.DataFrame(run), page=1)


def test_a_large_file_with_iterations_is_not_cut(tmp_path: Path) -> None:
    run = read_in_blocks(write(tmp_path, cut_by_hand(ROWS, SIZE)), block=200)
    with pytest.raises(InputError, match="page=3: bm25 has iterations already"):
        score(run, page=SIZE)


REPEATS = "".join(f"q Q0 {doc} {rank} {-rank} t\n" for rank, doc in enumerate("abab", 1))


def test_repeats_in_a_run_without_column_2_are_in_pages_and_not_told_as_one_search(tmp_path: Path) -> None:
    lines = [f'{{"query_id": "q", "doc_id": "{doc}", "rank": {rank}}}\n' for rank, doc in enumerate("abab", 1)]
    path = write(tmp_path, "".join(lines), "bm25.jsonl")
    # a notice would be an error
    assert gg.evaluate({"q": {"a": 2, "b": 2}}, path, "SRR@1 SRR@2", page=2).means == {"SRR@1": 0.0, "SRR@2": 0.5}
    large = read_in_blocks(write(tmp_path, frame_of(REPEATS).drop("iteration"), "bm25.parquet"), block=64)
    assert gg.evaluate({"q": {"a": 2, "b": 2}}, large, "SRR@1 SRR@2", page=2).means == {"SRR@1": 0.0, "SRR@2": 0.5}
    assert gg.read_run(path, page=2).frame["iteration"].to_list() == [1, 1, 2, 2]


def test_the_command_pages_all_systems_or_one(tmp_path: Path) -> None:
    bm25, cut = write(tmp_path, TEXT), write(tmp_path, cut_by_hand(ROWS, SIZE), "cut.run")
    qrels = tmp_path / "qrels.csv"
    QRELS.write_csv(qrels)
    two = run_command("curve", qrels, bm25, cut, "-m", "CG", "--page", f"bm25={SIZE}", "-o", "csv")
    assert two.returncode == 0, two.stderr

    curves = [line.split(",", 1)[1] for line in two.stdout.splitlines()[1:]]
    assert curves[: len(curves) // 2] == curves[len(curves) // 2 :]
    for given in (["bm25=x"], ["2", "bm25=3"]):
        done = run_command("evaluate", qrels, bm25, "CG", *(word for one in given for word in ("--page", one)))
        assert done.returncode == 2 and "write one number, or SYSTEM=N once for each system" in done.stderr
    refused = run_command("compare", qrels, bm25, cut, "-m", "CG", "--page", SIZE)
    assert refused.returncode == 2 and "--page 3: cut has iterations already" in refused.stderr
    assert "--page SYSTEM=3" in refused.stderr


@pytest.mark.parametrize("source", ["frame", "DuckDB", "large text"])
def test_pages_have_the_order_of_classic_measures(source: str, tmp_path: Path) -> None:
    """After i pages of 3, the good documents are those of the first 3 i ranks: ranks, scores and ties are random."""
    random = Random(5)
    rows = [
        (f"q{query}", "Q0", f"d{doc}", rank, random.choice([0.5, 1.0, 1.0 + 1e-9, -2.0, float(rank)]))
        for query in range(12)
        for rank, doc in enumerate(random.sample(range(30), random.randint(1, 14)), 1)
    ]
    text = "".join(" ".join(map(str, (*row, "t"))) + "\n" for row in rows)
    names = [name for i in (1, 2, 3) for name in (f"NumGood(rel=1)@{i}", f"P@{3 * i}")]
    with pytest.warns(
        gg.GoodgainNotice, match="^in .* with one search, pages and classic measures sort by score"
    ) as told:
        found = score(_open(source, text, tmp_path), names, page=3)

    values = found.per_query.pivot("measure", index="query_id", values="value")
    for i in (1, 2, 3):
        good = values[f"P@{3 * i}"] * 3 * i
        assert values[f"NumGood(rel=1)@{i}"].to_list() == pytest.approx(good.to_list())
    assert sum("sort by score" in str(one.message) for one in told) == 1


def _open(source: str, text: str, folder: Path) -> Any:
    if source == "large text":
        return read_in_blocks(write(folder, text), block=200)
    return duckdb.connect().from_arrow(frame_of(text).to_arrow()) if source == "DuckDB" else frame_of(text)


def test_a_paged_run_that_is_written_keeps_the_order_of_its_scores(tmp_path: Path) -> None:
    rising = frame_of("".join(f"q Q0 d{k} {k} {k} t\n" for k in range(1, 6)))
    gg.write_run(gg.read_run(rising, page=2), tmp_path / "pages.run")
    assert gg.flatten(tmp_path / "pages.run")["doc_id"].to_list() == ["d5", "d4", "d3", "d2", "d1"]
