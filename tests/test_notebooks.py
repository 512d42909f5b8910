"""The notebooks run from top to bottom, and show what is stored in them.

python tests/test_notebooks.py      # writes the outputs of now into the notebooks: read the diff
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> Any:
    """The notebook with its outputs of now."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(FOLDER)}}
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where, record_timing=False)
    client.execute()
    notebook.metadata["language_info"] = {"name": "python"}  # no versions of whoever ran it last
    return notebook


def outputs(notebook: Any) -> list[str]:
    """What each cell shows, as text; on stderr stands what a machine has to say, such as that it compiles."""
    of_cells = (output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
    shown = [output for output in of_cells if output.get("name") != "stderr"]
    data = [output.get("data", {}) for output in shown]
    return [o.get("text") or d.get("text/markdown") or d["text/plain"] for o, d in zip(shown, data, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_stored_in_it(path: Path) -> None:
    assert outputs(executed(path)) == outputs(nbformat.read(path, as_version=4))


def test_the_comparison_of_agents_shows_what_its_text_says() -> None:
    orders, ours, comparison, verdicts, _, report = outputs(
        nbformat.read(FOLDER / "compare_agents.ipynb", as_version=4)
    )
    assert "│ seen        ┆ late   ┆ 0.0 " in orders
    assert "│ last        ┆ late   ┆ 1.0 " in orders
    assert "│ early  ┆ 5.666667 ┆" in ours
    assert "| nDCG@10 ↑ | late | early | -1.0000 |" in comparison
    assert "│ last  ┆ nDCG@10 ┆ late   ┆ 1.0 " in verdicts
    assert "nCG@1 ↑" in report
    assert "IterationsForAllGoodResults ↓" in report


if __name__ == "__main__":
    for notebook in NOTEBOOKS:
        nbformat.write(executed(notebook), notebook)
