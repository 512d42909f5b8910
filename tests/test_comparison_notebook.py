"""notebooks/compare_agents.ipynb runs from top to bottom and shows what its text says.

python tests/test_comparison_notebook.py      # writes the outputs of now into the notebook: read the diff
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is a development dependency")
nbclient = pytest.importorskip("nbclient", reason="nbclient is a development dependency")

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "notebooks" / "compare_agents.ipynb"


def executed() -> Any:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    where = {"metadata": {"path": str(NOTEBOOK.parent)}}
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where, record_timing=False)
    client.execute()
    notebook.metadata["language_info"] = {"name": "python"}  # no versions of whoever ran it last
    return notebook


def outputs(notebook: Any) -> list[Any]:
    """What each cell shows, as text."""
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    data = [output.get("data", {}) for output in shown]
    return [o.get("text") or d.get("text/markdown") or d["text/plain"] for o, d in zip(shown, data, strict=True)]


def test_the_notebook_runs_and_shows_what_is_stored_in_it() -> None:
    stored = outputs(nbformat.read(NOTEBOOK, as_version=4))
    assert outputs(executed()) == stored
    orders, ours, comparison, verdicts, _ = stored
    assert "│ seen        ┆ late   ┆ 0.0 " in orders and "│ last        ┆ late   ┆ 1.0 " in orders
    assert "│ early  ┆ 5.666667 ┆" in ours
    assert "| nDCG@10 ↑ | late | early | -1.0000 |" in comparison and "worse" in comparison
    assert "│ last  ┆ nDCG@10 ┆ late   ┆ 1.0 " in verdicts


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    nbformat.write(executed(), NOTEBOOK)
