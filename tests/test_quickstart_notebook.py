"""notebooks/quickstart.ipynb runs from top to bottom and shows what is stored in it.

python tests/test_quickstart_notebook.py      # writes the outputs of now into the notebook: read the diff
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is a development dependency")
nbclient = pytest.importorskip("nbclient", reason="nbclient is a development dependency")

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "notebooks" / "quickstart.ipynb"


def executed() -> Any:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    where = {"metadata": {"path": str(NOTEBOOK.parent)}}
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources=where, record_timing=False
    ).execute()
    notebook.metadata["language_info"] = {"name": "python"}  # no versions of whoever ran it last
    return notebook


def outputs(notebook: Any) -> list[str]:
    """What each cell shows, as text."""
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output["data"]["text/plain"] for output in shown]


def test_the_notebook_runs_and_shows_what_is_stored_in_it() -> None:
    stored = outputs(nbformat.read(NOTEBOOK, as_version=4))
    assert outputs(executed()) == stored
    _, values, _, ledger, in_ir_measures, in_pytrec_eval = stored
    assert "'SRE@3': 0.5" in values
    assert "'SRR@3': 0.375" in values
    assert "│ q1       ┆ 3         ┆ 3" in ledger
    assert "'SRR': 0.375" in in_ir_measures
    assert "'srr': 0.375" in in_pytrec_eval


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)
