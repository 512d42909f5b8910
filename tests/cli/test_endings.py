"""Whatever happens, the program ends with a sentence and an exit status, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.logs.traces.logs import conversation, openai_chat
from tests.support.command import COMMAND
from tests.support.counts import how_many, some_of
from tests.support.tables import ROOT

EXAMPLES = ROOT / "qrels_examples" / "guideline"
QRELS, RUN = EXAMPLES / "qrels.txt", EXAMPLES / "agent.run"
#: What prints on standard output.
PRINTING: dict[str, list[str]] = {
    "evaluate": [str(QRELS), str(RUN), "SRE"],
    "ledger": [str(QRELS), str(RUN)],
    "ledger as Parquet": [str(QRELS), str(RUN), "-o", "parquet"],
    "curve": [str(QRELS), str(RUN), "-m", "SRE"],
    "compare": [str(QRELS), f"a={RUN}", f"b={RUN}", "-m", "SRE"],
    "measures": [],
    "validate": [str(RUN)],
    "--help": [],
    "--version": [],
}
#: A name that Windows writes in its own encoding, and that is not UTF-8.
ODD_NAME = b"\xe4\xff.run"
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def run(
    *arguments: str | bytes | Path, shell: str = "", cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process; `shell` is what a shell would have behind it."""
    command: list[str | bytes | Path] = [*COMMAND, *arguments]
    if shell:
        command = ["bash", "-c", f'set -o pipefail; "$@" {shell}', "-", *command]
    return subprocess.run(command, capture_output=True, check=False, cwd=cwd, env=os.environ | environment, timeout=120)


def check_sentence(done: subprocess.CompletedProcess[bytes], status: int) -> str:
    """Check that the last line on standard error is a sentence of ours, and that there is no traceback."""
    err = done.stderr.decode("utf-8", "replace")
    assert done.returncode == status, err
    assert "Traceback" not in err and "an error of goodgain" not in err, err
    assert "Exception ignored" not in err, err
    return err


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PRINTING)[: how_many(1, full=len(PRINTING))])
@pytest.mark.parametrize(
    ("shell", "reason"), some_of([("> /dev/full", "no space left"), (">&-", "bad file descriptor")], every=2)
)
def test_standard_output_that_takes_nothing_is_said(name: str, shell: str, reason: str) -> None:
    err = check_sentence(run(name.split()[0], *PRINTING[name], shell=shell), 1)
    assert f"goodgain: standard output cannot be written ({reason}" in err


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["evaluate", "ledger as Parquet"], every=2))
def test_a_reader_that_goes_away_ends_the_program_without_a_word(name: str) -> None:
    done = run(name.split()[0], *PRINTING[name], shell="| true")
    assert b"goodgain:" not in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", some_of(["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"], every=3))
def test_a_file_that_standard_output_is_appended_to_keeps_what_it_has(tmp_path: Path, name: str) -> None:
    (tmp_path / "all.run").write_text("q0 1 d 1 1 t\n")
    check_sentence(run("flatten", RUN, "-o", name, shell=f">> {tmp_path / 'all.run'}"), 0)
    lines = (tmp_path / "all.run").read_text().splitlines()
    assert lines[0] == "q0 1 d 1 1 t"
    assert len(lines) == 6


def test_a_file_on_a_closed_standard_output_is_not_written_to_another_one() -> None:
    assert "bad file descriptor" in check_sentence(run("flatten", RUN, "-o", "/dev/stdout", shell=">&-"), 2)


def test_standard_error_that_takes_nothing_does_not_change_the_numbers() -> None:
    assert run("evaluate", *PRINTING["evaluate"], shell="2>&-").stdout == b"SRE\t0.5000\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({}, id="utf-8"),
        pytest.param(C_LOCALE, id="C", marks=pytest.mark.slow),
        pytest.param({"PYTHONIOENCODING": "ascii"}, id="ascii", marks=pytest.mark.slow),
    ],
)
def test_names_of_files_in_any_encoding(tmp_path: Path, environment: dict[str, str]) -> None:
    for name in (ODD_NAME, "ä.run".encode()):
        path = os.fsencode(tmp_path) + b"/" + name
        Path(os.fsdecode(path)).write_bytes(RUN.read_bytes())
    both = [os.fsencode(tmp_path) + b"/" + name for name in (ODD_NAME, "ä.run".encode())]

    for arguments in (
        ["evaluate", QRELS, both[0], "SRE"],
        ["evaluate", QRELS, *both, "-m", "SRE", "-o", "table"],
        ["compare", QRELS, *both, "-m", "SRE"],
        ["curve", QRELS, *both, "-m", "SRE"],
        ["flatten", both[0], "-o", os.fsencode(tmp_path) + b"/out\xff.run"],
    )[: how_many(2, full=5)]:
        done = run(*arguments, **environment)
        check_sentence(done, 0)
        if "-m" in arguments and not environment:
            assert "\\xe4\\xff" in done.stdout.decode() and "ä" in done.stdout.decode()


@pytest.mark.slow
def test_a_system_that_is_named_in_another_encoding_is_shown_by_its_bytes_and_a_tag_is_an_error(tmp_path: Path) -> None:
    done = run("compare", QRELS, b"a\xff=" + os.fsencode(RUN), f"b={RUN}", "-m", "SRE")
    check_sentence(done, 0)
    assert "a\\xff" in done.stdout.decode()
    log = tmp_path / "log.json"
    log.write_text(openai_chat(conversation()))
    err = check_sentence(run("convert", log, "--tag", b"a\xff", "-o", tmp_path / "a.run"), 2)
    assert "is not valid Unicode" in err


@pytest.mark.slow
def test_a_trace_whose_name_is_not_utf_8_gives_its_query_a_name_in_ascii(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xe4.json"
    Path(os.fsdecode(path)).write_text(openai_chat(conversation()))
    check_sentence(run("convert", path, "-o", tmp_path / "a.run"), 0)
    assert (tmp_path / "a.run").read_text().startswith("\\xe4 1 d3 1 ")


@pytest.mark.slow
def test_places_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert "cannot be written (" in check_sentence(run("flatten", RUN, "-o", tmp_path / "a"), 2)
    assert "too many levels" in check_sentence(run("evaluate", QRELS, tmp_path / "a", "SRE"), 2)


def test_a_working_folder_that_was_deleted(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    command = [*COMMAND, "flatten", str(RUN), "-o", "flat.run"]
    done = subprocess.run(
        ["bash", "-c", 'cd "$1" && rmdir "$1" && shift && "$@"', "-", tmp_path / "gone", *command],
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )
    assert "'flat.run': cannot be written (no such file" in check_sentence(done, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of([".", ".."], every=2))
def test_a_system_whose_name_is_that_of_a_folder(tmp_path: Path, name: str) -> None:
    log = tmp_path / "log.json"
    log.write_text(openai_chat(conversation()))
    check_sentence(run("convert", log, "--tag", name, "-o", tmp_path / "{system}"), 0)
    assert (tmp_path / ("_" * len(name))).read_text()


def test_too_little_memory_is_one_sentence(tmp_path: Path) -> None:
    """Python's own memory is meant: where Polars gets none, it ends the process."""
    code = """
import resource, sys
from goodgain.cli.messages_and_exit_status import run_to_end
sys.exit(run_to_end(lambda: bytearray(1 << 60)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert "not enough memory" in check_sentence(done, 1)


@pytest.mark.slow
def test_an_error_that_nobody_foresaw_says_where_it_is() -> None:
    code = """
import sys
import goodgain.schema
from goodgain.cli.messages_and_exit_status import run_to_end
sys.exit(run_to_end(lambda: goodgain.schema.Table("a", None).required))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("goodgain: TypeError: ") and "schema.py:" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_file_cut_short_while_it_is_read_does_not_end_the_process(tmp_path: Path) -> None:
    """A mapped file that is cut short ends a process by SIGBUS; here it is a sentence, or the numbers of what was read."""
    path = tmp_path / "a.run"
    rows = "".join(f"q{k // 100} 1 d{k} {k % 100} {100 - k % 100} t\n" for k in range(1_000_000))
    for delay in range(8):
        path.write_text(rows)
        process = subprocess.Popen([*COMMAND, "validate", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.45 + 0.1 * delay)
        os.truncate(path, 10_000)
        _, err = process.communicate(timeout=60)
        assert process.returncode in (0, 2) and b"Traceback" not in err, err


def _write_log(path: Path, *, megabytes: int) -> None:
    """Write JSON Lines that are large enough to be read in processes."""
    line = json.dumps({"messages": json.loads(openai_chat(conversation()))})
    path.write_text("".join(f'{line[:-1]}, "id": "q{k}"}}\n' for k in range(megabytes * 2**20 // len(line))))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="what a process reads is looked up in /proc")
@pytest.mark.parametrize(
    ("number", "output"),
    [
        (signal.SIGTERM, "out.run"),
        *(
            pytest.param(number, output, marks=pytest.mark.slow)
            for number, output in (
                (signal.SIGTERM, "{system}.parquet"),
                (signal.SIGHUP, "out.run"),
                (signal.SIGHUP, "{system}.run"),
                (signal.SIGINT, "out.run.gz"),
                (signal.SIGINT, "{system}.run"),
            )
        ),
    ],
)
def test_a_signal_leaves_neither_files_nor_processes(tmp_path: Path, number: signal.Signals, output: str) -> None:
    _write_log(tmp_path / "log.jsonl", megabytes=50)
    (tmp_path / "tmp").mkdir()
    process = _start(tmp_path, output)
    _wait_until(
        lambda: (
            ("{system}" in output or any(tmp_path.glob(".*.part")))  # files of systems are opened later
            and _is_read_by_a_child_of(process.pid, tmp_path / "log.jsonl")
        )
    )
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    _, err = process.communicate(timeout=60)  # ends only when no process holds the pipes
    assert process.returncode == 128 + number
    assert err.decode().strip() in (f"goodgain: ended by {number.name}", "goodgain: interrupted")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "tmp"]
    assert not any((tmp_path / "tmp").iterdir())

    _wait_until(lambda: not _is_alive(process.pid))


@pytest.mark.slow
@pytest.mark.parametrize("module", some_of(["ir_measures", "polars", "goodgain.measures.good_gain", "click"], every=2))
@pytest.mark.parametrize(
    "program", some_of([["-m", "goodgain"], [str(Path(sys.executable).with_name("goodgain"))]], every=2)
)
def test_an_interrupt_while_the_program_is_imported_is_one_sentence(module: str, program: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", *program, "measures"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert any(line.rstrip().endswith(f"| {module}") or line.split()[-1] == module for line in process.stderr)
    process.send_signal(signal.SIGINT)
    lines = [line for line in process.stderr.read().splitlines() if not line.startswith("import time:")]
    assert (process.wait(timeout=60), lines) == (130, ["goodgain: interrupted"])


def test_a_library_leaves_ctrl_c_alone() -> None:
    code = (
        "import goodgain, signal; raise SystemExit(signal.getsignal(signal.SIGINT) is not signal.default_int_handler)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_an_interrupt_while_a_process_sends_a_result_ends_at_once() -> None:
    code = """
from goodgain.logs.traces.reading.trace_files_and_tasks import _open_pool
try:
    with _open_pool(1) as pool:
        pool.submit(bytes, 200_000_000)
        while not pool._result_queue._reader.poll(0.01):
            pass
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("ended")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == "ended\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="what a process reads is looked up in /proc")
def test_processes_end_with_one_that_was_killed(tmp_path: Path) -> None:
    _write_log(tmp_path / "log.jsonl", megabytes=34)
    (tmp_path / "tmp").mkdir()
    process = _start(tmp_path, "out.run")
    _wait_until(lambda: any(tmp_path.glob(".*.part")) and _is_read_by_a_child_of(process.pid, tmp_path / "log.jsonl"))
    process.kill()
    process.communicate(timeout=60)
    _wait_until(lambda: not _is_alive(process.pid))


def _start(folder: Path, output: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "convert", "log.jsonl", "-o", output, "--jobs", "2", "--dedup", "standard"],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "tmp"), "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # nohup has it ignored
    )


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def _is_read_by_a_child_of(parent: int, path: Path) -> bool:
    """Return whether a process that this one started has the file open."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for descriptor in (link for child in children for link in Path(f"/proc/{child}/fd").glob("*")):
        with contextlib.suppress(OSError):  # closed meanwhile
            if descriptor.readlink() == path:
                return True
    return False


def _is_alive(group: int) -> bool:
    """Return whether a process of this group runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_examples_on_a_full_disk_leave_nothing_and_can_be_written_again(tmp_path: Path) -> None:
    """A limit on the size of files fails as a full disk does."""
    command = ["bash", "-c", 'ulimit -f 4; "$@"', "-", *COMMAND, "example", "new/examples"]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, timeout=120)
    assert "goodgain: 'new/examples': cannot be written (file too large); choose another place" in check_sentence(
        done, 2
    )
    assert list((tmp_path / "new").iterdir()) == []
    check_sentence(run("example", "new/examples", cwd=tmp_path), 0)
    copied = {path.relative_to(tmp_path / "new" / "examples") for path in (tmp_path / "new" / "examples").rglob("*")}
    examples = ROOT / "qrels_examples"
    assert copied == {path.relative_to(examples) for path in examples.rglob("*")}
