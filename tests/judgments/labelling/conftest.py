"""What tests of labelling share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test in an empty folder, without the address of an endpoint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
