"""goodgain: the Retrieved Good Gain measures for agents that search in several rounds.

`import goodgain` registers the measures with ir_measures.
"""

import goodgain.interrupts  # noqa: F401  # isort: skip  # first: the imports below take long

import importlib
import pkgutil
import re
from typing import Any

import ir_measures  # noqa: F401  # first: loading entry points imports all of goodgain

from goodgain.files.notebooks import show_in_cells
from goodgain.hosts.ir_measures import register

register()
show_in_cells()

_STUB = (pkgutil.get_data(__name__, "__init__.pyi") or b"").decode()  # also from an archive
#: Public name -> its module. A module is imported when the name is used: some modules import slow libraries.
_MODULES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as", _STUB, re.MULTILINE)}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
