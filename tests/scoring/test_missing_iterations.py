"""A run without iterations that is scored with measures of iterations is told of in one notice, at every door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain.counting import run_opening
from goodgain.hosts.pytrec_eval import RelevanceEvaluator
from goodgain.judgments.judging.conclusions_from_model_labels import compare_orders
from tests.scoring.test_doors import read_in_blocks
from tests.support.command import run_command
from tests.support.notices import notices_of

QRELS = {"q1": {"a": 3, "b": 2}, "q2": {"a": 2, "c": 0}}
DICT = {"q1": {"a": 3.0, "b": 2.0, "x": 1.0}, "q2": {"c": 2.0, "a": 1.0}}
#: The fact and the advice of the notice; a name of the run may stand before them.
NOTICE = (
    "no iterations in this run: column 2 (iteration) is missing or constant, so each query counts as one search. "
    "Number the searches in column 2 (in Python, goodgain.read_run keeps the numbers), or leave out measures of iterations."
)
NOTICE_OF_SEVERAL = NOTICE.replace("in this run", "in these runs")


def text_of(*columns: str) -> str:
    """A run whose queries q1, q2 ... have these words or numbers in column 2, a row for each."""
    rows = [
        (f"q{k}", word, doc)
        for k, words in enumerate(columns, 1)
        for word, doc in zip(words.split(), "abc", strict=False)
    ]
    return "".join(f"{query} {word} {doc} {place} {-place} t\n" for place, (query, word, doc) in enumerate(rows, 1))


def frame_of(text: str) -> pl.DataFrame:
    rows = [line.split() for line in text.splitlines()]
    names = ["query_id", "iteration", "doc_id", "rank", "score", "tag"]
    return pl.DataFrame(rows, schema=names, orient="row").cast({"rank": pl.Int64, "score": pl.Float64})


#: What column 2 of the two queries has.
LACKING = {
    "Q0": ("Q0 Q0 Q0", "Q0 Q0"),
    "a word for each query": ("Q0 Q0 Q0", "agent agent"),
    "0": ("0 0 0", "0 0"),
    "a constant number": ("3 3 3", "3 3"),
}
ITERATED = {
    "two iterations": ("1 1 2", "1 2"),
    "one iteration": ("1 1 1", "1 1"),
    "one query of one iteration": ("1 2 3", "1 1"),
    "from 0": ("0 0 1", "0 0"),
    "a number for each query": ("2 2 2", "3 3"),
    "words in one query": ("Q0 Q0 Q0", "1 2"),
    "words in one query, one iteration in the other": ("Q0 Q0 Q0", "1 1"),
    "a leading +": ("+1 +1 +1", "+1 +1"),
}


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        frame_of(text).write_parquet(path)
    elif path.suffix == ".csv":
        frame_of(text).write_csv(path)
    else:
        path.write_text(text)
    return path


def _scatter(text: str) -> str:
    """The rows with those of the queries between each other."""
    return "".join(sorted(text.splitlines(keepends=True), key=lambda line: line.split()[2]))


#: What the text of a run is made into: files of each kind, large ones in blocks of a query each, frames.
SOURCES: dict[str, Callable[[str, Path], Any]] = {
    "text": lambda text, folder: _write(folder, "old.run", text),
    "text by line": lambda text, folder: _write(folder, "old.run", text.replace(" a ", "   a ")),
    "large text": lambda text, folder: read_in_blocks(_write(folder, "old.run", text), block=60),
    "large text, scattered": lambda text, folder: read_in_blocks(_write(folder, "old.run", _scatter(text)), block=20),
    "Parquet": lambda text, folder: _write(folder, "old.parquet", text),
    "large Parquet": lambda text, folder: read_in_blocks(_write(folder, "old.parquet", text), block=96),
    "large Parquet, scattered": lambda text, folder: read_in_blocks(
        _write(folder, "old.parquet", _scatter(text)), block=32
    ),
    "CSV": lambda text, folder: _write(folder, "old.csv", text),
    "Polars": lambda text, _: frame_of(text),
    "lazy Polars": lambda text, _: frame_of(text).lazy(),
    "pandas": lambda text, _: frame_of(text).to_pandas(),
    "DuckDB": lambda text, _: duckdb.connect().from_arrow(frame_of(text).to_arrow()),
    "a run that was read": lambda text, folder: gg.read_run(_write(folder, "old.run", text)),
}


def told(call: Callable[[], Any]) -> list[str]:
    return [text for text in notices_of(call)[1] if "does not keep the order of rows" not in text]


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_without_iterations_is_told_of_once_from_any_source(source: str, tmp_path: Path) -> None:
    for words in LACKING.values():
        run = SOURCES[source](text_of(*words), tmp_path)
        about = "old: " if hasattr(run, "name") or isinstance(run, Path) else ""
        assert told(lambda run=run: gg.evaluate(QRELS, run, "nDCG@10 RankDCG")) == []
        assert told(lambda run=run: gg.evaluate(QRELS, run, "CG@2 nCG SRE(rel=3)@3 nDCG@10")) == [about + NOTICE], words


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_with_iterations_is_never_told_of_as_without(source: str, tmp_path: Path) -> None:
    for words in ITERATED.values():
        run = SOURCES[source](text_of(*words), tmp_path)
        found = told(lambda run=run: gg.evaluate(QRELS, run, "CG@2 nCG SRE"))
        assert not any("no iterations" in text for text in found), words


@pytest.mark.parametrize("source", ["Parquet", "large Parquet", "CSV", "Polars", "lazy Polars", "pandas", "DuckDB"])
def test_a_run_without_the_column_is_told_of_once_also_where_documents_repeat(source: str, tmp_path: Path) -> None:
    rows = frame_of(text_of("1 1 1", "1 1")).drop("iteration")
    for frame in (rows, pl.concat([rows, rows])):
        paths = {".parquet": tmp_path / "old.parquet", ".csv": tmp_path / "old.csv"}
        frame.write_parquet(paths[".parquet"])
        frame.write_csv(paths[".csv"])
        run = {
            "Parquet": lambda paths=paths: paths[".parquet"],
            "large Parquet": lambda paths=paths: read_in_blocks(paths[".parquet"], block=96),
            "CSV": lambda paths=paths: paths[".csv"],
            "Polars": lambda frame=frame: frame,
            "lazy Polars": lambda frame=frame: frame.lazy(),
            "pandas": lambda frame=frame: frame.to_pandas(),
            "DuckDB": lambda frame=frame: duckdb.connect().from_arrow(frame.to_arrow()),
        }[source]()
        found = told(lambda run=run: gg.evaluate(QRELS, run, "SRE SRR"))
        assert [text.removeprefix("old: ") for text in found] == [NOTICE]


@pytest.mark.parametrize("measure", ["CG", "SRE@1", "NumIter", "IterationsForAllGoodResults", "AvgGain@1", "nCG@6"])
def test_any_measure_of_iterations_is_enough(measure: str) -> None:
    assert told(lambda: gg.evaluate(QRELS, DICT, f"nDCG@10 {measure}")) == [NOTICE]


def test_a_run_is_read_with_its_option_of_the_first_iteration() -> None:
    assert told(lambda: gg.evaluate(QRELS, gg.read_run(frame_of(text_of("Q0 Q0 Q0", "Q0 Q0")), first=0), "CG")) == [
        NOTICE
    ]


# --- doors ------------------------------------------------------------------------------------------------------------

ITERATED_RUN = frame_of(text_of("1 1 2", "1 2"))


def _ask_ranx(run: Any) -> None:
    import ranx  # type: ignore[import-untyped]  # ranx has no types

    import goodgain.hosts.ranx  # noqa: F401  # registers our measures

    ranx.evaluate(QRELS, run, ["cg@2", "sre", "srr-l3", "ndcg@10"])


def _ask_ir_measures(run: Any) -> None:
    ir_measures.calc_aggregate([gg.CG @ 2, gg.SRE(rel=3), gg.GradedP @ 2, ir_measures.RR], QRELS, run)


#: Doors that take one run, with our measures and without.
DOORS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "evaluate": (lambda run: gg.evaluate(QRELS, run, "CG@2 SRE RR"), lambda run: gg.evaluate(QRELS, run, "RR")),
    "ir_measures": (
        _ask_ir_measures,
        lambda run: ir_measures.calc_aggregate([ir_measures.RR, gg.GradedP @ 2], QRELS, run),
    ),
    "pytrec_eval": (
        lambda run: RelevanceEvaluator(QRELS, {"cg_2", "sre", "ndcg"}).evaluate(run),
        lambda run: RelevanceEvaluator(QRELS, {"ndcg"}).evaluate(run),
    ),
    "ledger": (lambda run: gg.ledger(QRELS, run, measures="CG SRE"), lambda run: gg.flatten(run)),
    "curve": (lambda run: gg.curve(QRELS, {"old": run}, "CG SRE"), lambda run: gg.pr_curve(QRELS, {"old": run})),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_gives_the_notice_once(door: str) -> None:
    ask, ask_classic = DOORS[door]
    tuples = [ir_measures.ScoredDoc(query, doc, score) for query, docs in DICT.items() for doc, score in docs.items()]
    for run in (DICT, tuples, frame_of(text_of("Q0 Q0 Q0", "Q0 Q0")).to_pandas()):
        assert [text.removeprefix("old: ") for text in told(lambda run=run: ask(run))] == [NOTICE]
        assert told(lambda run=run: ask_classic(run)) == []
    assert not any("no iterations" in text for text in told(lambda: ask(gg.read_run(ITERATED_RUN))))


@pytest.mark.slow
def test_ranx_gives_the_notice_once_a_run() -> None:
    import ranx

    from goodgain.hosts import ranx as host

    plain = ranx.Run(DICT, name="old")
    assert told(lambda: _ask_ranx(DICT)) == [NOTICE]
    assert told(lambda: _ask_ranx(plain)) == [f"old: {NOTICE}"]
    assert told(lambda: _ask_ranx(host.Run(DICT))) == [NOTICE]
    assert told(lambda: _ask_ranx(host.Run(ITERATED_RUN))) == []
    assert told(lambda: ranx.evaluate(QRELS, DICT, "ndcg@10")) == []
    systems = [plain, host.Run(ITERATED_RUN, name="agent")]
    assert told(lambda: ranx.compare(ranx.Qrels(QRELS), systems, ["cg@2", "sre"])) == [f"old: {NOTICE}"]


@pytest.mark.slow
@pytest.mark.parametrize("call", [gg.compare, gg.curve])
def test_of_several_systems_those_without_iterations_are_named_in_one_notice(call: Any, tmp_path: Path) -> None:
    old = _write(tmp_path, "trec.run", text_of("Q0 Q0 Q0", "Q0 Q0"))
    zero = frame_of(text_of("0 0 0", "0 0"))
    for systems, wanted in (
        ({"agent": ITERATED_RUN, "old": old}, "old: "),
        ({"old": old, "agent": ITERATED_RUN, "zero": zero, "dict": DICT}, "old, zero, dict: "),
        ({"old": old, "dict": DICT}, "old, dict: "),
    ):
        texts = [text for text in told(lambda s=systems: call(QRELS, s, "CG SRE")) if "no iterations" in text]
        is_about_one = wanted.count(",") == 0
        assert texts == [wanted + (NOTICE if is_about_one else NOTICE_OF_SEVERAL)]

    assert not any("no iterations" in text for text in told(lambda: gg.compare(QRELS, {"a": old, "b": DICT}, "RR")))
    assert not any(
        "no iterations" in text for text in told(lambda: call(QRELS, {"a": ITERATED_RUN, "b": ITERATED_RUN}, "CG"))
    )


@pytest.mark.slow
def test_systems_under_labels_of_people_and_of_a_model_are_told_of_once() -> None:
    systems = {f"s{k}": DICT for k in range(5)}
    found = told(lambda: compare_orders(QRELS, {"q1": {"a": 1}, "q2": {"a": 3}}, systems, "CG"))
    assert found == [f"s0, s1, s2, s3, s4: {NOTICE_OF_SEVERAL}"]


@contextmanager
def large_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every file is read as large ones are."""
    with monkeypatch.context() as patched:
        patched.setattr(run_opening, "LARGE", 0)
        patched.setattr(run_opening, "LARGE_COMPRESSED", 0)
        yield


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "QRELS", "OLD", "CG@2", "SRE"],
        ["evaluate", "QRELS", "OLD", "AGENT", "-m", "CG@2 SRE"],
        ["ledger", "QRELS", "OLD", "-m", "CG"],
        ["curve", "QRELS", "OLD", "-m", "CG SRE"],
        ["curve", "QRELS", "OLD", "AGENT", "-m", "CG SRE"],
        ["compare", "QRELS", "OLD", "AGENT", "-m", "CG@2 RR"],
    ],
    ids=" ".join,
)
def test_every_command_names_the_run_without_iterations_once(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "QRELS": _write(tmp_path, "qrels.txt", "q1 0 a 3\nq1 0 b 2\nq2 0 a 2\nq2 0 c 0\n"),
        "OLD": _write(tmp_path, "old.run", text_of("Q0 Q0 Q0", "Q0 Q0")),
        "AGENT": _write(tmp_path, "agent.run", text_of("1 1 2", "1 2")),
    }

    def run(old: str) -> list[str]:
        printed = run_command(*(files[old if word == "OLD" else word] if word in files else word for word in command))
        assert printed.returncode == 0, printed.stderr
        return [line for line in printed.stderr.splitlines() if "no iterations in this run" in line]

    assert run("OLD") == [f"notice: old: {NOTICE}"]
    with large_files(monkeypatch):
        assert run("OLD") == [f"notice: old: {NOTICE}"]


def test_the_notice_has_at_most_40_words() -> None:
    assert len(f"old: {NOTICE}".split()) <= 40


def test_an_empty_run_has_its_own_notice_only() -> None:
    for run in ({}, frame_of("").lazy()):
        assert [text.partition(": ")[2][:16] for text in told(lambda run=run: gg.evaluate(QRELS, run, "CG SRE"))] == [
            "the run is empty"
        ]
