"""Tables on a terminal of 80 columns: no word and no number is broken, and what is missing is named below."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from goodgain.files.tables import Table
from goodgain.files.terminal_tables import draw_table, print_drawn
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.tables import ROOT

TWO = ROOT / "qrels_examples" / "two_agents"
LONG = "a-system-with-a-name-that-is-much-longer-than-others"
OTHER = "another-system-with-a-name-that-is-much-longer-than-others"
RUNS = [f"{LONG}={TWO / 'quick.run'}", f"{OTHER}={TWO / 'late.run'}", f"third={TWO / 'quick.run'}"]
QRELS = TWO / "qrels.txt"
CALLS = {
    "compare": ["compare", QRELS, *RUNS, *["-m", "nCG@3", "-m", "SRR@3", "--resamples", "200", "-o", "table"]],
    "groups": ["compare", QRELS, *RUNS, *f"-m nCG@3 --groups {TWO / 'groups.csv'} --resamples 200 -o table".split()],
    "evaluate": ["evaluate", QRELS, *RUNS, "-m", "nCG@3 IterationsForAllGoodResults", "-q", "-o", "table"],
    "explain": ["explain", QRELS, *RUNS[:2], *["-m", "CG@3", "--query", "q06", "-o", "table"]],
}


def draw(table: Table, width: int) -> str:
    file = io.StringIO()
    print_drawn(Console(file=file, width=width), [*draw_table(table, width)])
    return file.getvalue()


def read_words(printed: str) -> set[str]:
    return {*re.sub(r"[│┃]", " ", printed).split()}


@pytest.mark.parametrize("call", CALLS)
def test_eighty_columns_break_no_word_and_give_whole_names_below(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {}
    for width in (80, 400):
        monkeypatch.setenv("COLUMNS", str(width))
        done = run_command(*CALLS[call])
        assert done.returncode == 0, done.stderr
        shown[width] = done.stdout
    assert max(map(len, shown[80].splitlines())) <= 80
    short = dict(re.findall(r"^(\S+…\S+):\s+(\S+)$", shown[80], re.MULTILINE))
    assert {LONG, OTHER} <= {*short.values()}
    lines = [line for line in shown[80].splitlines() if re.search(r"[│┃─━]| \d+\.\d{4}", line)]
    broken = read_words("\n".join(lines)) - read_words(shown[400]) - {*short}
    assert not {word for word in broken if re.search(r"\w", word)}


def test_columns_go_in_the_stated_order_and_are_named_below() -> None:
    cells = [["CG@3", "0.1234", "[0.1000, 0.2000]", "12/3/4", "better"]]
    table = Table.of("Differences", ["measure", "difference", "interval", "wins", "verdict"], 1, cells)
    table = table._replace(drop=("interval", "wins"), notes=["A note."])
    assert "Left out" not in draw(table, 80) and draw(table, 80).endswith("A note.\n")
    for width, gone in ((50, "interval"), (35, "interval, wins")):
        printed = draw(table, width)
        assert f"Left out because the terminal is narrow: {gone}." in re.sub(r"\s+", " ", printed)
        assert "0.1234" in printed and "better" in printed and "0.1000" not in printed


def test_names_that_would_become_equal_stay_whole_and_the_terminal_wraps_the_table() -> None:
    names = [f"the-same-begin-of-two-names-{k}-the-same-end-of-two-names" for k in (1, 2)]
    printed = draw(Table.of("", ["measure", *names], 1, [["CG", "0.1", "0.2"]]), 60)
    assert all(name in printed for name in names) and "…" not in printed


WORDS = st.text("abcdefgh-", min_size=1, max_size=40)


@settings(max_examples=how_many(10, full=200), deadline=None)
@given(
    st.lists(st.tuples(WORDS, st.lists(WORDS, max_size=4).map(" ".join), st.floats(0, 99)), min_size=1, max_size=5),
    st.integers(30, 90),
)
def test_every_word_and_number_of_a_table_is_printed_whole_at_any_width(
    rows: Sequence[tuple[str, str, float]], width: int
) -> None:
    cells = [[name, text, f"{number:.4f}"] for name, text, number in rows]
    printed = draw(Table.of("", ["system", "found by both", "value"], 2, cells), width)
    lines = printed.splitlines()
    whole = read_words("\n".join(line for line in lines if "│" in line))
    named = dict(re.findall(r"^(\S+…\S+):\s+(\S+)$", printed, re.MULTILINE))
    expected = {word for row in cells for text in row for word in text.split()}
    assert expected <= {named.get(word, word) for word in whole}
