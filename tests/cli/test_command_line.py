"""The goodgain command, as a user runs it: what it prints, where, and with which exit status."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain.measures.families import RANKED_MEASURES, SESSION_MEASURES
from goodgain.measures.names import parse_measure
from tests.support.asking_hosts import needs_names_in_ir_measures
from tests.support.command import COMMAND, run_command
from tests.support.tables import ROOT, SESSIONS

EXAMPLE = ROOT / "qrels_examples" / "guideline"
QRELS, RUN = EXAMPLE / "qrels.txt", EXAMPLE / "agent.run"


def goodgain(*arguments: object, status: int = 0) -> tuple[str, str]:
    done = run_command(*arguments)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_a_terminal_gets_a_table_and_a_pipe_gets_tsv() -> None:
    reader, writer = pty.openpty()
    subprocess.run([*COMMAND, "evaluate", QRELS, RUN, "CG"], stdout=writer, stderr=subprocess.DEVNULL, check=True)
    os.close(writer)
    shown = os.read(reader, 10_000).decode()
    assert "measure" in shown
    assert "11.0000" in shown
    assert "│" in shown or "┃" in shown


@needs_names_in_ir_measures
@pytest.mark.parametrize("ties", [False, True])
def test_a_classic_run_gives_exactly_what_the_ir_measures_command_gives(tmp_path: Path, ties: bool) -> None:
    rows = [
        f"{query} Q0 d{(7 * query + 3 * k) % 40} {k + 1} {1.0 if ties and k % 5 else 50.0 - k} bm25"
        for query in (10, 9, 8, 12)
        for k in range(30)
    ]
    (tmp_path / "bm25.run").write_text("\n".join(rows) + "\n")
    labels = [f"{query} 0 d{k} {(k + query) % 5 - 1}" for query in (9, 10, 11, 12) for k in range(0, 40, 3)]
    (tmp_path / "qrels").write_text("\n".join(labels) + "\n")
    measures = ["nDCG@10 RR@10 R@100 AP P@5 Judged@10 Rprec", "NumRet", "RR", "Bpref", "Compat", "ERR@10"]
    if not ties:  # cwl_eval leaves tied documents in the order of the file, RBP here takes them in trec_eval's
        measures.append("RBP(rel=1)")
    files = [str(tmp_path / "qrels"), str(tmp_path / "bm25.run")]

    for options in (["-p", "4"], ["-p", "-1"]):
        theirs = subprocess.run(
            [sys.executable, "-m", "ir_measures", *files, *measures, *options],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        ours, err = goodgain("evaluate", *files, *measures, *options)
        found, wanted = (dict(line.split("\t") for line in printed.splitlines()) for printed in (ours, theirs))
        # gdeval rounds the values of queries to five decimals
        assert float(found.pop("ERR@10")) == pytest.approx(
            float(wanted.pop("ERR@10")), abs=1.1e-4 if options[1] == "4" else 5e-6
        )
        if options == ["-p", "4"]:
            assert found == wanted
        else:  # the last digit is the order of additions
            assert {name: float(value) for name, value in found.items()} == pytest.approx(
                {name: float(value) for name, value in wanted.items()}, abs=1e-12
            )
        expected = [
            "coverage is low",
            *(["in 4 queries with one search, classic measures sort by score"] if ties else []),
        ]
        notices = [line.removeprefix("notice: ") for line in err.splitlines() if line.startswith("notice: ")]
        assert all(line.startswith(tuple(expected)) for line in notices)


@pytest.mark.slow
def test_standard_output_takes_parquet() -> None:
    done = subprocess.run([*COMMAND, "ledger", QRELS, RUN, "-o", "parquet"], capture_output=True, check=True)
    assert pl.read_parquet(io.BytesIO(done.stdout)).height == 3


@pytest.mark.slow
@pytest.mark.parametrize("order", ["seen", "interleaved", "last"])
def test_flatten_writes_a_run_that_every_tool_reads(tmp_path: Path, order: str) -> None:
    flat = tmp_path / "flat.run"
    goodgain("flatten", RUN, "-o", flat, "--order", order)
    scored = list(ir_measures.read_trec_run(str(flat)))
    assert [(d.doc_id, d.score) for d in scored] == list(
        gg.read_run(RUN).flatten(order).select("doc_id", "score").iter_rows()
    )
    assert (
        goodgain("evaluate", QRELS, flat, "nDCG@10")[0]
        == goodgain("evaluate", QRELS, RUN, "nDCG@10", "--order", order)[0]
    )
    out, _ = goodgain("flatten", RUN, "-o", "/dev/stdout", "--order", order)
    assert out == flat.read_text()


def test_measures_lists_each_with_its_definition() -> None:
    out, _ = goodgain("measures")
    for name, measure in gg.measures.MEASURES.items():
        assert name in out
        assert measure.declaration.title.split()[0] in out
    assert "not comparable between systems" in " ".join(out.replace("│", " ").split())


def test_measures_lists_families_apart_each_measure_with_its_better_direction() -> None:
    out, _ = goodgain("measures")
    rows = {"up": "↑ higher", "down": "↓ lower", None: "–"}
    titles = ("Good gain, from", "Counts, from", "From all results", "Classic measures, from")
    good_gain, counts, session, classic = (out.index(title) for title in titles)
    declared = [measure.declaration for measure in gg.measures.MEASURES.values()]
    parts = [
        ([one for one in declared if one.family == "good gain"], out[good_gain:counts]),
        ([one for one in declared if one.family == "counts"], out[counts:session]),
        (list(SESSION_MEASURES.values()), out[session:classic]),
        (list(RANKED_MEASURES.values()), out[classic:]),
    ]
    for family, text in parts:
        matches = dict(re.findall(r"^([^\t\n#]+)\t([^\t\n]+)\t", text, flags=re.MULTILINE))
        assert matches == {one.usage: rows[one.better] for one in family}


@pytest.mark.slow
def test_ctrl_c_ends_with_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    pipe, out = tmp_path / "pipe", tmp_path / "flat.run"
    os.mkfifo(pipe)
    running = subprocess.Popen(
        [*COMMAND, "flatten", pipe, "-o", out],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell in the background has it ignored
    )

    with pipe.open("wb") as writer:  # opened by the reader: the command waits for its run
        writer.write(b"q 1 a 1 1 t\n")
        writer.flush()
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)  # which reaches the writer of a pipe too, so that the pipe ends

    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert err.strip() == "goodgain: interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "long.run").write_text("".join(f"q{k} 1 d 1 1 t\n" for k in range(200_000)))
    running = subprocess.Popen(
        [*COMMAND, "flatten", tmp_path / "long.run", "-o", "/dev/stdout"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None and running.stderr is not None
    running.stdout.read(100)
    running.stdout.close()
    assert b"Traceback" not in running.stderr.read()
    running.wait(timeout=60)


@pytest.mark.skipif(not SESSIONS.exists(), reason="the real sessions are shared beside the checkout, never in it")
def test_the_real_sessions_agree_with_ir_measures() -> None:
    names = "nDCG@10 RR@10 R@100 CG RG DCGG DRG RAG DRAG SRE SRR CG@3 AvgGain@3 SRE@3 IterationsForAllGoodResults"
    files = SESSIONS / "sessions.qrels", SESSIONS / "sessions.run"
    out, _ = goodgain("evaluate", *files, names, "-p", "-1")
    printed = {name: float(value) for name, value in (line.split("\t") for line in out.splitlines())}
    measures = [parse_measure(name) for name in names.split()]
    found = ir_measures.calc_aggregate(measures, gg.read_qrels(files[0]), gg.read_run(files[1]))
    assert printed == pytest.approx({str(measure): value for measure, value in found.items()}, abs=1e-12, rel=1e-12)


HEAVY = ["numba", "pandas", "pyarrow", "ranx", "rich", "scipy"]
HEAVY += ["goodgain.logs.dedup", "goodgain.judgments.judging", "goodgain.judgments.labelling", "goodgain.logs.traces"]
EVALUATE = (
    f"from goodgain.cli.program import program; program(['evaluate', {str(QRELS)!r}, {str(RUN)!r}, 'SRR'], 'goodgain')"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "heavy"), [("import goodgain", [*HEAVY, "narwhals", "goodgain.formats"]), (EVALUATE, HEAVY)]
)
def test_what_is_heavy_waits_until_it_is_needed(code: str, heavy: list[str]) -> None:
    code = f"import atexit, sys; atexit.register(lambda: print({{*sys.modules}} & {{*{heavy}}})); {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_convert_loads_no_analyses(tmp_path: Path) -> None:
    log = Path(__file__).parents[1] / "logs" / "traces" / "fixtures" / "langchain" / "state.json"
    run = tmp_path / "agent.run"
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from goodgain.cli.program import program; "
        f"program(['convert', {str(log)!r}, '-o', {str(run)!r}], 'goodgain')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1].split()
    assert run.exists()
    assert "goodgain.logs.traces" in modules
    assert [name for name in modules if name.startswith(("goodgain.analysis", "goodgain.experiments"))] == []
