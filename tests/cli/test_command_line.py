"""The goodgain command, as a user runs it: what it prints, where, and with which exit status."""

from __future__ import annotations

import io
import json
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
from goodgain.measures.names import RANKED_MEASURES, SESSION_MEASURES, parse_measure
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


def test_evaluate_prints_as_the_ir_measures_command_does() -> None:
    out, err = goodgain("evaluate", QRELS, RUN, "nDCG@10 CG", "SRE@3", "SRR")
    assert out == "nDCG@10\t0.9171\nCG\t11.0000\nSRE@3\t0.5000\nSRR\t0.3750\n"
    assert "queries: 1 scored, 0 of them absent from the run; 0 of the run without judgments, left out" in err
    assert f"signature: goodgain={gg.__version__}" in err
    assert "rel=2 order=seen" in err


def test_places_by_query_and_no_summary() -> None:
    out, _ = goodgain("evaluate", QRELS, RUN, "SRE@2", "CG", "-q", "-p", "2")
    assert out == "q1\tSRE@2\t0.60\nq1\tCG\t11.00\nall\tSRE@2\t0.60\nall\tCG\t11.00\n"
    out, _ = goodgain("evaluate", QRELS, RUN, "DCGG", "-q", "-n", "-p", "-1")
    assert out == "q1\tDCGG\t8.52371901428583\n"
    _, err = goodgain("evaluate", QRELS, RUN, "CG", "-n", status=2)
    assert "without --by-query" in err


def test_commas_any_case_and_the_geometric_mean() -> None:
    folder = ROOT / "qrels_examples" / "rankings"
    out, err = goodgain("evaluate", folder / "qrels.txt", folder / "a_and_c.run", "ap,Fallout@5", "--mean", "geometric")
    assert out == "AP\t0.6496\nFallout@5\t0.3780\n"  # the roots of 0.775 * 49/90, and of 1/4 * 4/7
    assert "mean=geometric" in err
    out, _ = goodgain("evaluate", folder / "qrels.txt", folder / "a_and_c.run", "fallout@5", "-o", "table")
    assert "Fallout@5 ↓" in out


def test_json_lines_and_table() -> None:
    out, _ = goodgain("evaluate", QRELS, RUN, "CG SRE", "-o", "jsonl")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"measure": "CG", "value": 11.0},
        {"measure": "SRE", "value": 0.5},
    ]
    out, _ = goodgain("evaluate", QRELS, RUN, "CG SRR nDCG@10", "-o", "table", "-q")
    assert "CG ↑" in out
    assert "SRR ↓" in out
    assert "nDCG@10" in out


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
        assert "notice" not in err.replace("notice: coverage is low", "")


def test_options_of_reading(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q 1 a 1 1 t\nq 3 b 1 1 t\nbad line\n")
    (tmp_path / "a.qrels").write_text("q 1 a 2\nq 2 b 3\n")
    out, err = goodgain(
        *("evaluate", tmp_path / "a.qrels", tmp_path / "a.run", "NumIter CG"),
        *("--gaps", "empty", "--first", "0", "--labels", "iteration", "--errors", "skip"),
    )
    assert out == "NumIter\t4.0000\nCG\t2.0000\n"
    assert "notice: " in err
    assert "left out 1 bad line" in err
    assert "labels=iteration" in err
    _, err = goodgain("evaluate", tmp_path / "a.qrels", tmp_path / "a.run", "CG", status=2)
    assert err.strip().splitlines()[-1].startswith(f"goodgain: {tmp_path / 'a.run'}, line 3: 'bad line' has 2 fields")


def test_each_notice_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_text("q 1 a 2\n")
    (tmp_path / "a.run").write_text("q 1 a 1 1 t\nq 3 b 1 1 t\n")
    _, err = goodgain("evaluate", tmp_path / "a.qrels", tmp_path / "a.run", "CG SRE nDCG@10")
    assert err.count("notice: ") == 3
    assert (
        err.count("notice: coverage is low: 0.50 of the 2 unique results have a label (by iteration 1.00, 0.00)") == 1
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", QRELS, RUN, "DCG@3"],
        ["evaluate", QRELS, RUN],
        ["evaluate", QRELS, RUN, "CG", "--order", "best"],
        ["evaluate", QRELS, RUN, "CG", "--provider", "nobody", "nDCG@3"],
        ["evaluate", QRELS, EXAMPLE / "none.run", "CG"],
        ["evaluate", RUN, QRELS, "CG"],
        ["evaluate", EXAMPLE, RUN, "CG"],
        ["ledger", QRELS, RUN, "-m", "nDCG@10"],
        ["ledger", QRELS, RUN, "--rel", "0"],
        ["flatten", RUN],
        ["flatten", RUN, "-o", EXAMPLE / "none" / "flat.run"],
        ["no-such-command"],
        ["validate", EXAMPLE / "none.run"],
    ],
)
def test_wrong_input_and_arguments_are_one_line_and_status_2(arguments: list[object]) -> None:
    out, err = goodgain(*arguments, status=2)
    assert out == ""
    assert len([line for line in err.splitlines() if line.startswith("goodgain: ")]) == 1
    assert err.splitlines()[-1].startswith("goodgain: ")


@pytest.mark.slow
def test_ledger_in_every_form() -> None:
    out, _ = goodgain("ledger", QRELS, RUN, "-m", "SRE", "-m", "AvgGain")
    rows = [line.split(",") for line in out.splitlines()]
    assert rows[0] == [
        "query_id",
        "iteration",
        "R",
        "UR",
        "Dup",
        "GR",
        "G",
        "Unjudged",
        "judged",
        "SRE",
        "AvgGain",
        "coverage",
    ]
    assert rows[2][:9] == ["q1", "2", "3", "2", "1", "1", "4.0", "0", "true"]
    out, _ = goodgain("ledger", QRELS, RUN, "-o", "jsonl")
    assert json.loads(out.splitlines()[2])["Dup"] == 2
    done = subprocess.run([*COMMAND, "ledger", QRELS, RUN, "-o", "parquet"], capture_output=True, check=True)
    assert pl.read_parquet(io.BytesIO(done.stdout)).height == 3
    out, _ = goodgain("ledger", QRELS, RUN, "-o", "table")
    assert "Unjudged" in out


@pytest.mark.slow
@pytest.mark.parametrize("order", ["seen", "interleaved", "last"])
def test_flatten_writes_a_run_that_every_tool_reads(tmp_path: Path, order: str) -> None:
    flat = tmp_path / "flat.run"
    goodgain("flatten", RUN, "-o", flat, "--order", order)
    scored = list(ir_measures.read_trec_run(str(flat)))
    assert [(d.doc_id, d.score) for d in scored] == list(
        gg.flatten(RUN, order=order).select("doc_id", "score").iter_rows()
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
        listed = dict(re.findall(r"^([^\t\n#]+)\t([^\t\n]+)\t", text, flags=re.MULTILINE))
        assert listed == {one.usage: rows[one.better] for one in family}


def test_validate_says_what_is_in_a_file() -> None:
    assert goodgain("validate", RUN)[0].endswith(
        "run, 1 query, 3 iterations (0 of them without results), 8 results, 3 of them repeats\n"
    )
    assert "qrels, 1 query, 5 labels, 4 of them >= 2" in goodgain("validate", QRELS)[0]


def test_validate_says_what_will_make_scores_mislead(tmp_path: Path) -> None:
    run, qrels = tmp_path / "a.run", tmp_path / "qrels.txt"
    run.write_text("q Q0 d 1 2 a\n")
    qrels.write_text("q 0 d 1\n")
    assert re.search("no iterations in this run.*each query counts as one search.*Number", goodgain("validate", run)[1])
    assert re.search("no label is 2 or more.*label of 1 is good.*--rel 1", goodgain("validate", qrels)[1])
    qrels.write_text("q 0 d 0.75\n")
    assert "If a label of 0.75 is good, score with --rel 0.75." in goodgain("validate", qrels)[1]
    qrels.write_text("q 0 d 0\n")
    assert "no label is 2 or more, the smallest good label. Check the labels." in goodgain("validate", qrels)[1]
    run.write_text("q 1 d 1 2 a\nq 3 e 1 2 a\np 2 d 1 2 a\nr 1 d 1 2 a\n")
    assert "numbers of iterations are missing in 2 queries" in goodgain("validate", run)[1]
    assert "--gaps empty" in goodgain("validate", run)[1]


def test_help_and_version() -> None:
    assert "evaluate" in goodgain("--help")[0]
    assert goodgain("--version")[0] == f"goodgain {gg.__version__}\n"
    assert "MEASURE..." in goodgain("evaluate", "-h")[0]


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
