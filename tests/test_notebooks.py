"""The notebooks run from top to bottom, and show what is stored in them.

python tests/test_notebooks.py      # writes the outputs of now into the notebooks: read the diff
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
#: A notebook on data that are not kept here -> the variable that names their folder. Without it the notebook does not run.
NEEDS = {"conversations": "GOODGAIN_CAST"}


def executed(path: Path) -> Any:
    """The notebook with its outputs of now, without what a machine says on stderr, such as that it compiles."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(FOLDER)}}
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where, record_timing=False)
    client.execute()
    notebook.metadata["language_info"] = {"name": "python"}  # no versions of whoever ran it last
    for cell in list_code(notebook):
        cell.outputs = [
            output for output in cell.outputs if output.get("name") != "stderr" and not is_ended_progress(output)
        ]
    return notebook


def is_ended_progress(output: Any) -> bool:
    """Whether an output is the place where a slow cell showed its progress, which is empty at the end."""
    return output.output_type == "display_data" and output.data.get("text/plain") == ""


def list_code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: Any) -> list[str]:
    """What each cell shows, as text; a picture by its name and size."""
    shown = [output for cell in list_code(notebook) for output in cell.outputs]
    data = [output.get("data", {}) for output in shown]
    return [o.get("text") or d.get("text/markdown") or d["text/plain"] for o, d in zip(shown, data, strict=True)]


def count_pictures(notebook: Any) -> int:
    shown = [output.get("data", {}) for cell in list_code(notebook) for output in cell.outputs]
    return len([data for data in shown if data.get("image/png")])


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_stored_in_it(path: Path) -> None:
    if (variable := NEEDS.get(path.stem, "PATH")) not in os.environ:
        pytest.skip(f"{variable} names no folder of the data")
    stored, now = nbformat.read(path, as_version=4), executed(path)
    assert outputs(now) == outputs(stored)
    assert count_pictures(now) == count_pictures(stored)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_pictures_and_reads_frames_not_printed_text(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = "\n".join(cell.source for cell in list_code(notebook))
    assert count_pictures(notebook) == code.count(").figure") >= 2
    assert ".split(" not in code
    assert all(cell.execution_count == k for k, cell in enumerate(list_code(notebook), 1))


def test_the_comparison_of_agents_shows_what_its_text_says() -> None:
    joined = "\n".join(outputs(nbformat.read(FOLDER / "compare_agents.ipynb", as_version=4)))
    assert "│ seen        ┆ 0.608336 ┆ 0.187167 │" in joined
    assert "│ last        ┆ 0.218541 ┆ 0.244385 │" in joined
    verdicts = dict(re.findall(r"^\| (\S+) [↑↓] \| late \| quick \| .* \| (\w+) \|$", joined, flags=re.MULTILINE))
    assert verdicts["nDCG@10"] == verdicts["nDCGG@6"] == "worse"
    assert verdicts["nCG@6"] == "unclear"
    assert "SRR@6 ↓" in joined


if __name__ == "__main__":
    for notebook in NOTEBOOKS:
        if NEEDS.get(notebook.stem, "PATH") in os.environ:
            nbformat.write(executed(notebook), notebook)
