"""Tables for papers: systems as rows with marks, chosen iterations, and LaTeX that compiles."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import goodgain as gg
from goodgain import Comparison
from tests.analysis.comparing.test_comparison import EXAMPLES, many, quietly
from tests.support.command import run_command
from tests.support.tables import ROOT

TWO = EXAMPLES / "two_agents"


@pytest.fixture(scope="module")
def two_agents() -> Comparison:
    runs = {name: TWO / f"{name}.run" for name in ("quick", "late")}
    groups, outcomes = TWO / "groups.csv", TWO / "outcomes.csv"
    options = {"baseline": "quick", "iterations": [2, 3], "groups": groups, "outcomes": outcomes}
    return quietly(TWO / "qrels.txt", runs, "nCG SRR nDCG@10", **options)


def test_systems_as_rows_have_marks_for_what_differs_from_the_baseline_and_no_costs(two_agents: Comparison) -> None:
    means = two_agents.to_text("markdown", rows="systems", places=3).split("\n\n")[1].splitlines()
    assert means[0] == r"| system | nCG@2 ↑ | nCG@3 ↑ | SRR@2 ↓ | SRR@3 ↓ | nDCG@10 ↑ | solved ↑ |"
    marked = {pair["measure"] for pair in two_agents.pairs.to_dicts() if pair["significant"]}
    quick, late = ([cell.strip() for cell in line.split("|")[2:-1]] for line in means[2:])
    assert not any("*" in cell.replace("**", "") for cell in quick)
    names = [heading.split()[0] for heading in means[0].split("|")[2:-1]]
    assert {name for name, cell in zip(names, late, strict=True) if r"\*" in cell} == marked
    assert r"\* differs significantly from quick" in two_agents.to_text("markdown", rows="systems")


def test_the_differences_from_one_baseline_name_it_once() -> None:
    labels, runs = many(6)
    text = quietly(labels, runs, "CG@2", baseline="lean").to_text("latex", rows="systems")
    assert "\\caption{Differences from lean over 6 queries. Significance: p" in text
    assert re.search(r"^measure & system & difference", text, re.MULTILINE)


@pytest.fixture(scope="module")
def three() -> Comparison:
    labels, runs = many(12)
    wordy = runs["wordy"]
    return quietly(labels, runs | {"a{b}_long": wordy, "short": wordy.filter(iteration=1)}, "SRR@3 CG@3 nDCG@10 NumRet")


def test_without_a_baseline_latex_is_one_table_with_the_letters_of_the_systems_that_each_beats(
    three: Comparison,
) -> None:
    (tabular,) = read_tabulars(three.to_text("latex"))
    header, *rows = tabular
    assert header[2:] == [r"SRR@3 $\downarrow$", r"CG@3 $\uparrow$", r"nDCG@10 $\uparrow$", "NumRet --"]

    names = three.systems["system"].to_list()
    assert [row[0] for row in rows] == [*"abcd"] and len(names) == 4
    expected: dict[tuple[str, str], set[str]] = {}

    for pair in three.pairs.to_dicts():  # the signs, not the verdicts: a mean that is better, and a p that is small
        gain = pair["difference"] * {"up": 1, "down": -1, None: 0}[pair["better"]]
        if gain and pair["p_randomisation_holm"] <= 0.05:
            winner, other = (pair["system"], pair["against"]) if gain > 0 else (pair["against"], pair["system"])
            expected.setdefault((winner, pair["measure"]), set()).add("abcd"[names.index(other)])

    measures = three.means["measure"].unique(maintain_order=True)
    for name, row in zip(names, rows, strict=True):
        for measure, cell in zip(measures, row[2:], strict=True):
            marks = re.search(r"\$\^\{(\w+)\}\$$", cell)
            assert {*(marks[1] if marks else "")} == expected.get((name, measure), set()), (name, measure)
            assert not marks or marks[1] == "".join(sorted(marks[1]))

    assert expected


def test_the_marks_of_each_table_are_explained_below_it_and_notices_are_comments(two_agents: Comparison) -> None:
    for text in (two_agents.to_text("latex", rows=rows) for rows in ("systems", "measures")):
        head, *floats = text.split("\\begin{table}")
        notices = [line for line in head.splitlines() if line.startswith("% notice: ")]
        assert notices == [f"% notice: {note}" for note in two_agents.notes] and notices

        for one in floats:
            tabular, below = one.split("\\end{tabular}")
            for mark, meaning in (
                (r"\d \*", r"\* (marks|differs significantly)"),
                (r"\\textbf", "[Bb]old is best"),
                (r"\$\\uparrow", r"\$\\uparrow\$ higher"),
                (r"\$\\downarrow", r"\$\\downarrow\$ lower"),
                ("interval", "Intervals: (bootstrap|all differences that the randomisation test)"),
            ):
                assert bool(re.search(mark, tabular)) <= bool(re.search(meaning, below)), (mark, below)
            assert not any(note in below for note in two_agents.notes)


def test_letters_are_explained_and_those_of_neighbours_say_so(three: Comparison) -> None:
    said = "Raised letters name the systems that a system is significantly better than."
    assert said in three.to_text("latex") and "<" not in three.to_text("latex").replace("textless", "")
    labels, runs = many(12)
    previous = quietly(labels, runs, "SRR@3", against="previous").to_text("latex")
    assert "Each system is compared only with the one before it." in previous


def test_a_markdown_table_with_a_caption_still_says_what_its_star_means(two_agents: Comparison) -> None:
    text = two_agents.to_text("markdown", rows="systems", caption="Two agents")
    means, below = text.split("\n\n**Differences")[0].split("\n\n- ")
    assert r"\*" in means and below == r"\* differs significantly from quick."
    title = r"**Two agents. Means over 25 queries. Significance: p \<= 0.05, randomisation test, uncorrected over measures**"
    assert means.startswith(f"{title}\n")


def test_captions_have_the_queries_and_the_test_with_its_correction(two_agents: Comparison, three: Comparison) -> None:
    captions = re.findall(r"\\caption\{(.*)\}", two_agents.to_text("latex", rows="systems"))
    test = r"Significance: p $\le$ 0.05, randomisation test"
    assert captions[:3] == [
        f"Means over 25 queries. {test}, uncorrected over measures",
        f"Differences from quick over 25 queries. {test}, uncorrected over measures",
        f"Differences from quick by group. {test}, corrected by Holm's method over all groups and pairs of a measure",
    ]
    (caption,) = re.findall(r"\\caption\{(.*)\}", three.to_text("latex"))
    assert caption.endswith("corrected by Holm's method over the 6 pairs of a measure; not over measures")


@pytest.mark.parametrize("form", ["markdown", "latex"])
@pytest.mark.parametrize("rows", ["systems", "measures"])
def test_the_table_of_groups_has_the_p_that_decides(form: str, rows: str, two_agents: Comparison) -> None:
    assert two_agents.groups is not None
    text = two_agents.to_text(form, rows=rows, places=-1).replace("\\", "")
    between = " & " if form == "latex" else " | "
    for row in two_agents.groups.iter_rows(named=True):
        assert row["p_randomisation_holm"] is not None
        lines = [
            line for line in text.splitlines() if row["measure"] in line and f"{between}{row['group']}{between}" in line
        ]
        (line,) = lines
        assert f"{between}{row['p_randomisation_holm']}" in line


def test_intervals_of_means_are_in_the_table_of_means_on_request() -> None:
    files = TWO / "qrels.txt", TWO / "quick.run", TWO / "late.run"
    intervals = gg.evaluate(TWO / "qrels.txt", TWO / "late.run", "nCG@3", interval=True).intervals
    assert intervals is not None
    low, high = intervals["nCG@3"]
    for form in ("markdown", "latex", "table"):
        means = [
            run_command("compare", *files, "-m", "nCG@3", "-o", form, *more).stdout for more in ([], ["--intervals"])
        ]
        shown = f"[{low:.4f}, {high:.4f}]"
        assert [shown in re.sub(r"[\\{}]", "", text) for text in means] == [False, True], form


def test_every_float_has_a_caption_and_a_label_of_its_own(two_agents: Comparison, three: Comparison) -> None:
    for text in (two_agents.to_text("latex", label="tab:x"), two_agents.to_text("latex"), three.to_text("latex")):
        floats, labels = text.count("\\begin{table}"), re.findall(r"\\label\{(.*?)\}", text)
        assert text.count("\\caption{") == floats == len({*labels}) == len(labels)
    named = [f"tab:comparison{end}" for end in ("", "-differences", "-groups", "-correlations")]
    assert re.findall(r"\\label\{(.*?)\}", two_agents.to_text("latex")) == named


@pytest.mark.slow
def test_many_systems_have_numbers_in_place_of_letters() -> None:
    labels, runs = many(6)
    every = {f"s{k}": runs["lean" if k % 2 else "wordy"] for k in range(28)}
    (tabular,) = read_tabulars(quietly(labels, every, "SRR@3", resamples=100).to_text("latex"))
    assert [row[0] for row in tabular[1:]] == [*map(str, range(1, 29))]


def read_tabulars(text: str) -> list[list[list[str]]]:
    """Return the cells of each tabular; what LaTeX would refuse raises: braces, environments, numbers of columns."""
    source = re.sub(r"(?m)^%.*$", "", text)
    opened: list[str] = []
    for begin, end, sign in re.findall(r"\\begin\{(\w+)\}|\\end\{(\w+)\}|((?<!\\)[{}])", source):
        if begin or sign == "{":
            opened.append(begin or sign)
        else:
            assert opened.pop() == (end or "{")

    assert not opened and source.count("$") - source.count(r"\$") == 2 * len(re.findall(r"\$\^?\\?[^$]*\$", source))
    found = []
    pattern = r"\\begin\{(?:tabular|longtable)\}\{([lr]+)\}\n(.*?)\\end\{(?:tabular|longtable)\}"

    for columns, body in re.findall(pattern, source, re.DOTALL):
        lines = [line.removesuffix(r" \\") for line in body.splitlines() if line.endswith(r"\\")]
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)&", line)] for line in lines]
        assert {len(row) for row in rows} == {len(columns)}
        found.append(rows)

    return found


def test_caption_and_label_are_those_of_the_user(two_agents: Comparison) -> None:
    text = two_agents.to_text("latex", rows="systems", caption="Two agents & more", label="tab:two")
    assert re.search(r"\\caption\{Two agents \\& more\. Means over .*\}\n\\label\{tab:two\}\n", text)
    assert "\\label{tab:two-differences}" in text
    assert two_agents.to_text("markdown", caption="Two agents.").startswith("**Two agents. Means over 25 queries**")


@pytest.mark.parametrize("rows", ["systems", "measures", None])
def test_latex_compiles_and_the_differences_fit_a_column(
    rows: str | None, two_agents: Comparison, three: Comparison, tmp_path: Path
) -> None:
    text = (two_agents if rows else three).to_text("latex", rows=rows, label="tab:two")
    assert len(read_tabulars(text)) == (4 if rows else 1)
    head = "\\documentclass[twocolumn]{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    log = compile_latex(head, text, tmp_path)
    if rows == "systems":
        lines = text.splitlines()
        first = next(k for k, line in enumerate(lines, head.count("\n") + 1) if "tab:two-differences" in line)
        last = next(k for k, line in enumerate(lines, head.count("\n") + 1) if k > first and "end{tabular}" in line)
        wide = re.findall(r"Overfull .* at lines (\d+)--(\d+)", log)
        assert not [places for places in wide if first <= int(places[0]) <= last]


def compile_latex(head: str, text: str, folder: Path) -> str:
    """Compile a page, and return the log of pdflatex."""
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex here: install texlive-latex-base and texlive-latex-recommended")
    (folder / "page.tex").write_text(f"{head}{text}\n\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


#: Commands of docs/paper.md that write LaTeX, with the files that they write.
EXAMPLES_OF_PAPER = [
    line.removeprefix("$ ")
    for line in (ROOT / "docs" / "paper.md").read_text("utf-8").splitlines()
    if re.match(r"(\$ )?goodgain .*(latex|\.tex)", line)
]


def test_the_examples_of_the_paper_page_compile_and_fit_a_page(tmp_path: Path) -> None:
    (tmp_path / "qrels_examples").symlink_to(EXAMPLES)
    pages = []
    for command in EXAMPLES_OF_PAPER:
        done = run_command(*shlex.split(command)[1:], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        written = re.findall(r"\S+\.tex$", command)
        pages.append((tmp_path / written[0]).read_text("utf-8") if written else done.stdout)
    assert len(pages) == 3 and all("\\toprule" in page for page in pages)
    head = "\\documentclass{article}\n\\usepackage{booktabs}\n\\usepackage{longtable}\n\\begin{document}\n"
    assert "Overfull" not in compile_latex(head, "\n".join(pages), tmp_path)


def test_latex_of_many_queries_is_a_row_a_query_and_continues_on_the_next_page(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(
        "".join(f"{number}_{part} 0 d 2\n" for number in range(1, 40) for part in (10, 2, 1))
    )
    (tmp_path / "a.run").write_text("1_2 1 d 1 1 t\n1_10 1 x 1 1 t\n")
    text = run_command(
        "evaluate", "qrels", "a.run", "b=a.run", "-m", "nCG RR", "-q", "-n", "-o", "latex", cwd=tmp_path
    ).stdout
    assert "query & nCG a & RR a & nCG b & RR b \\\\\n" in text

    rows = [line.split(" & ") for line in text.splitlines() if line.endswith("0 \\\\")]
    assert [row[0] for row in rows[:4]] == [r"1\_1", r"1\_2", r"1\_10", r"2\_1"] and len(rows) == 3 * 39
    assert rows[1][1:] == ["1.0000", "1.0000", "1.0000", "1.0000 \\\\"]

    head = "\\documentclass{article}\n\\usepackage{booktabs}\n\\usepackage{longtable}\n\\begin{document}\n"
    log = compile_latex(head, text, tmp_path)
    assert "Overfull" not in log and "(3 pages" in log


def test_decimals_hold_for_every_shown_form_of_a_curve() -> None:
    files = TWO / "qrels.txt", TWO / "late.run"
    for form in ("markdown", "latex"):
        text = run_command("curve", *files, "-m", "nCG", "-p", "3", "-o", form).stdout
        assert "0.020 " in text and "0.0203" not in text
    assert "0.0203760683" in run_command("curve", *files, "-m", "nCG", "-p", "3", "-o", "csv").stdout


def test_results_become_frames_of_polars_and_pandas(two_agents: Comparison) -> None:
    scores = gg.evaluate(TWO / "qrels.txt", TWO / "quick.run", "nCG@3")
    for result, frame in ((two_agents, two_agents.pairs), (scores, scores.per_query)):
        assert isinstance(result.to_polars(), pl.DataFrame) and result.to_polars().equals(frame)
        assert isinstance(result.to_pandas(), pd.DataFrame) and len(result.to_pandas()) == frame.height


def test_a_comparison_of_all_pairs_has_no_stars(three: Comparison) -> None:
    assert "*" not in three.to_text("latex")


def test_values_of_queries_and_of_single_runs_come_from_the_command_line(tmp_path: Path) -> None:
    files = TWO / "qrels.txt", TWO / "quick.run", TWO / "late.run"
    done = run_command(
        "evaluate", *files, "-m", "nCG@3 SRR@3", "-q", "-n", "-o", "latex", "--rows", "systems", "-p", "2"
    )
    ((header, *rows),) = read_tabulars(done.stdout)
    assert header == ["query", "system", "nCG@3", "SRR@3"] and len(rows) == 2 * 25
