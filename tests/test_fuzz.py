"""The programs that test the tests and the readers: what they change, and what they call a fault."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import notice
from tests.fuzz import find_fault, make_input, make_targets
from tests.support.counts import how_many
from tests.support.tables import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read as Linux tells it")


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_random_input_is_read_or_is_an_error_of_ours(tmp_path: Path) -> None:
    targets = make_targets(tmp_path)
    for number in range(how_many(15, full=150)):
        name, file_name, content = make_input(targets, 1, number)
        (tmp_path / file_name).write_bytes(content)
        assert find_fault(targets[name].read, tmp_path / file_name) == "", (number, name)


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_each_file_of_the_corpus_is_read_before_it_is_damaged(tmp_path: Path) -> None:
    for target in make_targets(tmp_path).values():
        for file_name, content in target.files:
            (tmp_path / file_name).write_bytes(content)
            target.read(tmp_path / file_name)


def _fail(path: Path) -> None:
    raise gg.InputError(f"{path}: is wrong")


def _read_nothing_and_say_so(path: Path) -> pl.DataFrame:
    notice("empty_table", f"{path}: has no row.")
    return pl.DataFrame()


def _warn(path: Path) -> None:
    warnings.warn(f"{path}", RuntimeWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (lambda path: 1 / 0, "ZeroDivisionError"),
        (lambda path: pl.DataFrame(), "no rows, and no notice"),
        (lambda path: gg.evaluate({"q": {"a": 2}}, {"q": {"b": 1.0}}, "nDCG"), ""),  # a notice: nothing is judged
        (_warn, "a foreign warning"),
        (_fail, ""),
        (_read_nothing_and_say_so, ""),
    ],
)
@pytest.mark.each
def test_what_the_fuzzer_calls_a_fault(read: Any, fault: str, tmp_path: Path) -> None:
    found = find_fault(read, tmp_path)
    assert fault in found and bool(found) == bool(fault)


def test_mutants_change_code_and_never_words(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / ".ci" / "mutants.py")
    assert spec and spec.loader
    mutants = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mutants)
    source = '''def f(a: int | None, b):
    """One and 2 of a."""
    if a <= b and not b:
        raise ValueError(f"{a + 1} is wrong")
    return min(a, b) + 2, frame.filter(b)
'''
    (tmp_path / "a.py").write_text(source)
    changed = {
        mutants.change_text(source.encode(), change).decode() for change in mutants.find_changes(tmp_path / "a.py")
    }
    lines = [(old, new) for text in changed for old, new in zip(source.splitlines(), text.splitlines(), strict=True)]

    assert {new.strip() for old, new in lines if old != new} == {
        "if a < b and not b:",
        "if a <= b or not b:",
        "if a <= b and b:",
        "if (not (a <= b and not b)):",
        "pass",
        "return max(a, b) + 2, frame.filter(b)",
        "return min(b, a) + 2, frame.filter(b)",
        "return min(a, b) - 2, frame.filter(b)",
        "return min(a, b) + 3, frame.filter(b)",
        "return min(a, b) + 0, frame.filter(b)",
        "return min(a, b) + 2, frame",
        "return frame.filter(b), min(a, b) + 2",
    }
