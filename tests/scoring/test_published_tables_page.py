"""docs/published_tables.md against the runs of its repository.

The data are not kept here: GOODGAIN_ECIR2023 names a clone of iai-group/ecir2023-reproducibility with unpacked runs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from goodgain.scoring.system_scores import SystemScores
from tests.support.tables import ROOT

PAGE = (ROOT / "docs" / "published_tables.md").read_text(encoding="utf-8")
CLONE = os.environ.get("GOODGAIN_ECIR2023")


def test_the_page_has_code_in_the_one_language_that_is_tried_here() -> None:
    assert set(re.findall(r"^```(\w+)$", PAGE, flags=re.MULTILINE)) == {"python", "text"}


@pytest.mark.skipif(CLONE is None, reason="GOODGAIN_ECIR2023 names no clone of ecir2023-reproducibility")
@pytest.mark.filterwarnings("ignore::goodgain.errors.GoodgainNotice")  # coverage
def test_the_page_has_the_values_of_the_public_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(str(CLONE)) / "data" / "runs" / "2021")
    code = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)[0]
    names: dict[str, SystemScores] = {}
    exec(code.replace("print(scores)", ""), names)
    means = {tuple(f"{mean:.4f}" for mean in system.means.values()) for system in names["scores"].systems.values()}
    shown = [tuple(re.findall(r"\b0\.\d{4}\b", line)) for line in PAGE.splitlines() if line.startswith("| ")]
    shown = [values for values in shown if values]
    assert [len(values) for values in shown] == [5] * 10 and set(shown) <= means
