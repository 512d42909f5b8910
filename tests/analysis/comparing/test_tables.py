"""Every form of a comparison shows which system is better, whatever the names are."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import polars as pl
import pytest
from rich.console import Console

import goodgain as gg
from goodgain import Comparison, compare
from goodgain.analysis.comparing.comparison_forms import FORMS
from goodgain.errors import InputError
from tests.analysis.comparing.test_comparison import EXAMPLES, agents_that_differ, many, quietly
from tests.support.command import run_command

NASTY = ["a|b", "x_{y}%&#^~\\$", "two\nlines", "<b>emoji 🙂</b>", "*star* [link](x)"]


def terminal(comparison: Comparison, width: int = 200, colour: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=colour).print(comparison)
    return out.getvalue()


def shown(comparison: Comparison, form: str) -> str:
    return terminal(comparison) if form == "table" else comparison.to_text(form, rows="measures")


@pytest.fixture(scope="module")
def lean_is_better() -> Comparison:
    return compare(*many(), "SRR@3 CG@3")


@pytest.mark.parametrize("form", ["table", *FORMS])
def test_less_redundancy_is_better_on_srr_in_every_form(form: str, lean_is_better: Comparison) -> None:
    text = shown(lean_is_better, form)
    line = next(line for line in text.splitlines() if "SRR@3" in line and "lean" in line) if form != "json" else ""
    if form == "json":
        pair = json.loads(text)["pairs"][0]
        assert [pair[name] for name in ("measure", "system", "verdict")] == ["SRR@3", "lean", "better"]
        assert pair["significant"]
    elif form == "csv":
        pair = pl.read_csv(io.StringIO(text)).row(0, named=True)
        assert [pair[name] for name in ("measure", "system", "verdict")] == ["SRR@3", "lean", "better"]
        assert pair["significant"]
        assert text == lean_is_better.pairs.write_csv()
    else:
        assert re.search(r"-0\.\d{4} \\?\*", line) and "better" in line and "worse" not in line
        assert ("$\\downarrow$" if form == "latex" else "↓") in line
        assert "60/0/0" in line


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_the_lower_mean_of_srr_is_bold_and_equal_means_are_not(form: str, lean_is_better: Comparison) -> None:
    lines = shown(lean_is_better, form).splitlines()
    srr, cg = (next(line for line in lines if line.lstrip("| ").startswith(name)) for name in ("SRR@3", "CG@3"))
    bold = r"\*\*([0-9.]+)\*\*" if form == "markdown" else r"\\textbf\{([0-9.]+)\}"
    assert re.findall(bold, srr) == ["0.0000"] and re.findall(bold, cg) == []


@pytest.mark.parametrize("form", ["table", *FORMS])
def test_a_run_against_itself_is_equal_in_every_form(form: str) -> None:
    labels, runs = many(20)
    text = shown(compare(labels, {"one": runs["wordy"], "same": runs["wordy"]}, "SRR@3"), form)
    assert "equal" in text and not re.search(r"0\.0000 \\?\*", text)
    assert "0/20/0" in text or '"ties": 20' in text or ",0,20,0,equal," in text


@pytest.mark.parametrize("form", ["table", *FORMS])
def test_every_form_says_how_much_more_was_searched_and_how_much_was_judged(form: str) -> None:
    labels, runs = many(20)
    short = runs["lean"].filter(pl.col("iteration") <= 2)
    few = {query: dict(list(docs.items())[:5]) for query, docs in labels.items()}
    comparison = quietly(few, {"long": runs["lean"], "short": short}, "CG@3")
    text = shown(comparison, form)
    assert "-1.00" in text or '"more_iterations": -1.0' in text or ",-1.0," in text
    marks = {"csv": ",true,", "json": '"low_coverage": true', "latex": r"$^\dagger$"}
    assert marks.get(form, "†") in text


def test_no_dagger_is_named_where_p_values_have_none() -> None:
    whole = quietly({"q": {"x": 2, "y": 0}}, {"x": {"q": {"x": 1.0}}, "y": {"q": {"y": 1.0}}}, "CG")
    assert "†" not in whole.to_text("markdown")


def nasty() -> Comparison:
    labels, runs = many(8)
    systems = {name: list(runs.values())[k % 2] for k, name in enumerate(NASTY)}
    return compare(labels, systems, "SRR@3 nDCG(dcg='log2')@10")


def test_names_break_no_markdown_table() -> None:
    for block in nasty().to_text("markdown").split("\n\n"):
        if block.startswith("| measure"):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1
    assert "<b>" not in nasty().to_text("markdown")


def test_names_break_no_latex_table() -> None:
    text = nasty().to_text("latex", rows="measures")
    for tabular in re.findall(r"\\midrule\n(.*?)\n\\bottomrule", text, flags=re.DOTALL):
        assert len({len(re.findall(r"(?<!\\)&", line)) for line in tabular.splitlines()}) == 1
        assert not re.search(r"(?<!\\)[%#]", tabular)
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert r"x\_\{y\}\%\&\#\textasciicircum{}\textasciitilde{}\textbackslash{}\$" in text


def test_json_and_csv_keep_names_as_they_are() -> None:
    found = nasty()
    assert [system["system"] for system in json.loads(found.to_text("json"))["systems"]] == NASTY
    assert set(pl.read_csv(io.StringIO(found.to_text("csv"))).get_column("system")) <= set(NASTY)


def test_a_narrow_terminal_breaks_no_number_and_says_what_it_leaves_out() -> None:
    labels, runs = many(20)
    comparison = compare(labels, {"a": runs["wordy"], "b": runs["lean"], "c": runs["lean"]}, "SRR@3")
    narrow = terminal(comparison, width=90)
    assert "Left out because the terminal is narrow: d_z" in narrow
    assert re.search(r"-0\.1\d{3} ", narrow) and "interval" not in narrow.split("Left out")[0]
    assert "Left out" not in terminal(comparison, width=200)


def test_a_verdict_has_its_colour(lean_is_better: Comparison) -> None:
    assert re.search(r"\x1b\[32m *better", terminal(lean_is_better, colour=True))


@pytest.mark.parametrize("form", ["table", *FORMS])
def test_a_difference_that_is_not_significant_is_unclear_in_every_form(form: str) -> None:
    comparison = compare(*agents_that_differ(5, 0), "SRE@1")
    text = shown(comparison, form)
    assert "unclear" in text and not re.search(r"\+1\.0000 \\?\*", text)
    rows = [line for line in text.splitlines() if "unclear" in line]
    assert len(rows) == 1 and "better" not in rows[0]
    assert "\x1b[32m" not in terminal(comparison, colour=True)


def test_decimals_are_asked_for_and_a_small_p_is_never_shown_as_zero(lean_is_better: Comparison) -> None:
    text = lean_is_better.to_text("markdown", places=2)
    assert "\\<0.01" in text and "0.00 |" in text


@pytest.mark.parametrize("places", [3_000_000_000, 101, -2, 1.5])
def test_decimals_out_of_range_are_an_error(lean_is_better: Comparison, places: Any) -> None:
    with pytest.raises(InputError, match="give a whole number from -1 to 100"):
        lean_is_better.to_text("markdown", places=places)


def test_an_unknown_form_is_an_error_with_the_known_ones() -> None:
    labels, runs = many(2)
    with pytest.raises(InputError, match="csv, markdown, latex, json"):
        compare(labels, runs, "SRR@3").to_text("html")


def test_a_comparison_prints_as_markdown_and_names_itself_briefly(lean_is_better: Comparison) -> None:
    assert lean_is_better.to_text("markdown") == lean_is_better._repr_markdown_()
    assert repr(lean_is_better) == "Comparison(2 systems, 2 measures, 60 queries)"


def test_json_has_no_nan() -> None:
    import math

    import ir_measures

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    labels, runs = many(2)
    nothing = ir_measures.define_byquery(lambda qrels, run: math.nan, name="Nothing")
    json.loads(quietly(labels, runs, [nothing]).to_text("json"), parse_constant=refuse)


def test_print_shows_the_plain_table_of_the_command_and_the_notes() -> None:
    runs = [EXAMPLES / "two_agents" / f"{name}.run" for name in ("quick", "late")]
    qrels = EXAMPLES / "two_agents" / "qrels.txt"
    found = quietly(qrels, {"quick": runs[0], "la_te": runs[1]}, "nDCG@10 nCG(rel=1)@6")
    text = str(found)
    assert "\\" not in text and "|" not in text and "\x1b" not in text
    assert (
        "la_te against quick, 25 queries" in text and text.count("Before iteration 6 quick stopped in 6 queries") == 1
    )
    assert sum("queries can show a difference" in line for line in text.splitlines()) == 1

    command = run_command(
        "compare", qrels, runs[0], f"la_te={runs[1]}", "-m", "nDCG@10 nCG(rel=1)@6", "-o", "table"
    ).stdout
    shown, printed = ([line.split()[:5] for line in of.splitlines() if "↑" in line] for of in (command, text))
    assert len(shown) == 2 and shown == printed
    assert str(gg.explain(qrels, *runs, "CG@3")).count("q06_d01")
