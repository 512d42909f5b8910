"""Measures that a test or an example defines are forgotten after it."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest

#: The module and name of each table to which `goodgain.define` adds a measure.
_TABLES = (
    ("goodgain.measures.declaration", "DECLARATIONS"),
    ("goodgain.measures.families", "HOST_NAMES"),
    ("ir_measures.measures.base", "registry"),
    ("ranx.data_structures.report", "metric_labels"),
)


class ForgetDefinitions:
    """A plugin, because the hooks of tests/conftest.py do not see the examples in src."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        tables = [getattr(sys.modules[module], name) for module, name in _TABLES if module in sys.modules]
        before = [dict(table) for table in tables]
        try:
            return (yield)
        finally:
            for table, kept in zip(tables, before, strict=True):
                table.clear()
                table.update(kept)
