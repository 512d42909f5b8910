"""What small files of every format say: `small_files.json` has a file each, the columns that it gives, and the notices."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import goodgain as gg
from tests.support.tables import ROOT

CASES = json.loads(Path(__file__).with_name("small_files.json").read_text(encoding="utf-8"))


def read(kind: str, path: Path, case: dict[str, Any]) -> Any:
    """Read the file as grades, qrels or a run, and check which queries and documents it lists beside its rows."""
    options = case.get("options", {})
    if kind == "grades":
        return gg.aggregate(path, **options)
    if kind == "run":
        run = gg.read_run(path, **options)
        assert run.never_searched.to_list() == case.get("never_searched", [])
        return run.frame
    qrels = gg.read_qrels(path, **options)
    assert (None if qrels.ungraded is None else qrels.ungraded["doc_id"].to_list()) == case.get("ungraded")
    return qrels.frame


@pytest.mark.each
@pytest.mark.parametrize("name", CASES)
def test_a_small_file_gives_these_columns_and_notices(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = ROOT / case["path"] if "path" in case else tmp_path / case["file"]
    if "text" in case:
        path.write_bytes(case["text"].encode())
    for kind in case["read"].split():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            frame = read(kind, path, case)
        assert frame.select(case["gives"].keys()).to_dict(as_series=False) == case["gives"]
        texts, wanted = [str(one.message) for one in told], case.get("notices", [])
        assert len(texts) == len(wanted) and all(any(re.search(one, text) for text in texts) for one in wanted), texts
