"""Tables for papers: systems as rows with marks, chosen iterations, and LaTeX that compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import goodgain as gg
from goodgain import Comparison, compare
from goodgain.errors import InputError
from tests.comparing.test_comparison import EXAMPLES, many, quietly
from tests.support.command import run_command

TWO = EXAMPLES / "two_agents"


@pytest.fixture(scope="module")
def two_agents() -> Comparison:
    runs = {name: TWO / f"{name}.run" for name in ("quick", "late")}
    groups, outcomes = TWO / "groups.csv", TWO / "outcomes.csv"
    options = {"baseline": "quick", "iterations": [2, 3], "groups": groups, "outcomes": outcomes}
    return quietly(TWO / "qrels.txt", runs, "nCG SRR nDCG@10", **options)


def test_a_list_of_iterations_is_exactly_these_and_a_number_goes_up_to_it() -> None:
    labels, runs = many(3)
    listed = quietly(labels, runs, "CG SRR@1 RR", iterations=[1, 3]).means
    assert listed["measure"].unique(maintain_order=True).to_list() == ["CG@1", "CG@3", "SRR@1", "RR"]
    up_to = quietly(labels, runs, "CG", iterations=2).means
    assert up_to["measure"].unique(maintain_order=True).to_list() == ["CG@1", "CG@2", "CG"]
    for wrong in ([], [0], [1.5], "12"):
        with pytest.raises(InputError, match="iterations="):
            quietly(labels, runs, "CG", iterations=wrong)


def test_the_command_takes_iterations_with_commas() -> None:
    files = TWO / "qrels.txt", TWO / "quick.run", TWO / "late.run"
    done = run_command("compare", *files, "-m", "nCG", "--iterations", "1,3", "--rows", "systems", "-o", "markdown")
    assert "| system | nCG@1 ↑ | nCG@3 ↑ |" in done.stdout
    wrong = run_command("compare", *files, "-m", "nCG", "--iterations", "1,x")
    assert (
        wrong.returncode == 2 and "--iterations 1,x: write numbers with commas between, such as 1,2,3,5" in wrong.stderr
    )


def test_systems_as_rows_have_marks_for_what_differs_from_the_baseline_and_no_costs(two_agents: Comparison) -> None:
    means = two_agents.to_text("markdown", rows="systems", places=3).split("\n\n")[1].splitlines()
    assert means[0] == r"| system | nCG@2 ↑ | nCG@3 ↑ | SRR@2 ↓ | SRR@3 ↓ | nDCG@10 ↑ | solved ↑ |"
    marked = {pair["measure"] for pair in two_agents.pairs.to_dicts() if pair["significant"]}
    quick, late = ([cell.strip() for cell in line.split("|")[2:-1]] for line in means[2:])
    assert not any("*" in cell.replace("**", "") for cell in quick)
    names = [heading.split()[0] for heading in means[0].split("|")[2:-1]]
    assert {name for name, cell in zip(names, late, strict=True) if r"\*" in cell} == marked
    assert r"\* differs significantly from quick" in two_agents.to_text("markdown", rows="systems")


def test_the_differences_of_several_pairs_name_both_systems_and_those_from_one_baseline_name_it_once() -> None:
    labels, runs = many(6)
    runs |= {"third": runs["lean"]}
    every, one = (
        quietly(labels, runs, "CG@2", baseline=name).to_text("latex", rows="systems") for name in (None, "lean")
    )
    assert "\\caption{Differences, system minus against}" in every
    assert re.search(r"^measure & system & against & difference", every, re.MULTILINE)
    assert "\\caption{Differences from lean}" in one
    assert re.search(r"^measure & system & difference", one, re.MULTILINE)


def test_caption_and_label_are_those_of_the_user(two_agents: Comparison) -> None:
    text = two_agents.to_text("latex", rows="systems", caption="Two agents & more", label="tab:two")
    assert "\\caption{Two agents \\& more}\n\\label{tab:two}" in text
    assert "\\label{tab:two-differences}" in text
    assert two_agents.to_text("markdown", caption="Two agents").startswith("**Two agents**")


@pytest.mark.parametrize("rows", ["systems", "measures"])
def test_latex_compiles_and_the_differences_fit_a_column(rows: str, two_agents: Comparison, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex here: install texlive-latex-base and texlive-latex-recommended")
    text = two_agents.to_text("latex", rows=rows, label="tab:two")
    head = "\\documentclass[twocolumn]{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "page.tex").write_text(f"{head}{text}\n\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    if rows == "systems":
        lines = text.splitlines()
        first = next(k for k, line in enumerate(lines, head.count("\n") + 1) if "tab:two-differences" in line)
        last = next(k for k, line in enumerate(lines, head.count("\n") + 1) if k > first and "end{tabular}" in line)
        wide = re.findall(r"Overfull .* at lines (\d+)--(\d+)", done.stdout)
        assert not [places for places in wide if first <= int(places[0]) <= last]


def test_results_become_frames_of_polars_and_pandas(two_agents: Comparison) -> None:
    scores = gg.evaluate(TWO / "qrels.txt", TWO / "quick.run", "nCG@3")
    for result, frame in ((two_agents, two_agents.pairs), (scores, scores.per_query)):
        assert isinstance(result.to_polars(), pl.DataFrame) and result.to_polars().equals(frame)
        assert isinstance(result.to_pandas(), pd.DataFrame) and len(result.to_pandas()) == frame.height


def test_a_comparison_of_all_pairs_has_no_marks() -> None:
    labels, runs = many()
    assert "*" not in compare(labels, runs, "SRR@3").to_text("latex", rows="systems").split("\\end{table}")[0]
