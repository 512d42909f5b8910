"""A notebook shows a result, and under it the notices of the call; `plot()` draws what `plots` draws."""

from __future__ import annotations

from typing import Any

import nbclient
import nbformat
import pytest

import goodgain as gg
from goodgain import plots
from tests.support.tables import ROOT
from tests.test_notebooks import is_ended_progress

TWO = ROOT / "qrels_examples" / "two_agents"
USES = ROOT / "qrels_examples" / "opened_and_cited"
SYSTEMS = {name: TWO / f"{name}.run" for name in ("quick", "late")}
SETUP = """
import warnings
import goodgain as gg
qrels, run = {"q": {"a": 2}}, {"<script>": {"q": {"a": 1.0, "x": 0.5}}}
x = gg.Experiment(qrels, run)
"""
LOW = "coverage is low: 0.50 of the 2 unique results have a label"
#: A cell -> how often it says that coverage is low, under its output.
CELLS = {
    "gg.evaluate(qrels, run['<script>'], 'nDCG@2')": 1,
    "scores = gg.Experiment(qrels, run).evaluate('CG'); scores": 1,
    "scores": 1,
    "kept = gg.evaluate(qrels, run['<script>'], 'nDCG@2')": 1,
    "gg.curve(qrels, run, 'CG')": 1,
    "gg.ledger(qrels, run['<script>'])": 1,
    "gg.compare(qrels, {**run, 'b': run['<script>']}, 'CG')": 1,
    "gg.explain(qrels, run['<script>'], run['<script>'])": 1,
    "warnings.filterwarnings('ignore'); gg.curve(qrels, run, 'CG')": 0,
}


@pytest.fixture(scope="module")
def cells() -> list[Any]:
    code = [SETUP, *CELLS]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in code])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.outputs = [output for output in cell.outputs if not is_ended_progress(output)]
    return notebook.cells[1:]


def read_html(output: Any) -> str:
    data = output.get("data", {})
    return data.get("text/html") or data.get("text/plain") or output.get("text", "")


@pytest.mark.slow
def test_notices_stand_once_under_the_result_and_nothing_is_on_stderr(cells: list[Any]) -> None:
    for cell in cells:
        shown = [read_html(output) for output in cell.outputs]
        assert "".join(shown).count("coverage is low") == CELLS[cell.source], (cell.source, shown)
        assert all(output.get("name") != "stderr" for output in cell.outputs), cell.source
        assert "<script>" not in "".join(html for html in shown if "<div" in html), cell.source
        if len(shown) > 1:
            assert "<table" in shown[0] and "coverage is low" in shown[1]
        if cell.source == "scores":
            assert shown[0].index("</table>") < shown[0].index("coverage is low")


PROGRESS = """
from goodgain.errors import tell_progress
import time
tell_progress("counting <b>", 1, 4)
time.sleep(5)
"""


@pytest.mark.slow
def test_a_slow_cell_says_every_two_seconds_what_it_does_and_a_fast_cell_nothing() -> None:
    code = ["import goodgain", PROGRESS, PROGRESS.replace("sleep(5)", "sleep(0)")]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in code])
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
    shown: list[str] = []
    process = client.process_message

    def listen(message: Any, *arguments: Any) -> Any:
        if message["msg_type"].endswith("display_data"):
            shown.append(message["content"]["data"]["text/html"])
        return process(message, *arguments)

    client.process_message = listen  # type: ignore[method-assign]
    client.execute()
    texts = [html.partition(">")[2].removesuffix("</div>") for html in shown]
    assert texts[:2] == ["counting &lt;b&gt; 25% (2 s)", "counting &lt;b&gt; 25% (4 s)"] and texts[-1] == ""
    assert [len(cell.outputs) for cell in notebook.cells] == [0, 1, 0]


def list_lines(figure: Any) -> list[Any]:
    return [line.get_xydata().tolist() for ax in figure.axes for line in ax.get_lines()]


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_plot_of_a_result_draws_what_plots_draws() -> None:
    x = gg.Experiment(TWO / "qrels.txt", SYSTEMS, resamples=200)
    curve = x.curve("nCG SRR")
    for number, measure in enumerate(("nCG", "SRR")):
        alone = plots.curve(curve, measure).figure
        assert list_lines(alone)[0] == list_lines(curve.plot())[number * len(list_lines(alone))]
    assert x.curve("nCG", over="searches").plot().axes[0].get_xlabel()

    recalls = x.pr_curve()
    assert list_lines(recalls.plot()) == list_lines(plots.precision_recall(recalls).figure) != []

    compared = x.compare("nCG@6")
    drawn, wanted = compared.plot().axes[0], plots.per_query(compared)
    widths = [[bar.get_width() for bar in ax.patches] for ax in (drawn, wanted)]
    assert widths[0] == widths[1] != []

    funnel = gg.funnel(USES / "judgments.qrels", USES / "uses.jsonl")
    bars = [[bar.get_height() for bar in ax.patches] for ax in (funnel.plot().axes[0], plots.funnel(funnel))]
    assert bars[0] == bars[1] != []


def test_a_curve_is_a_polars_frame_all_the_same() -> None:
    curve = gg.curve(TWO / "qrels.txt", SYSTEMS, "nCG")
    assert curve.filter(system="late").height + curve.filter(system="quick").height == curve.height
    assert curve.head(3).plot().axes
