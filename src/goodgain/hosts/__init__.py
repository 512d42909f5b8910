"""The evaluation packages that take our measures: one file or folder each, imported on use."""

from __future__ import annotations

import importlib
from typing import Any

from goodgain.errors import InputError


def import_host(module: str, extra: str) -> Any:
    """Return a module of a host that an extra installs.

    Raises:
        InputError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        package = module.partition(".")[0]
        raise InputError(f'{package} is not installed: pip install "goodgain[{extra}]"') from None
