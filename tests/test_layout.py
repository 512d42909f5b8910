"""The names of the package's folders, and of the folders of its tests."""

from __future__ import annotations

import pkgutil
from pathlib import Path

import goodgain

MODULES = {module.name for module in pkgutil.iter_modules(goodgain.__path__)}


def test_no_module_has_the_name_of_a_public_function() -> None:
    # goodgain.NAME would be the module or the function, whichever was imported last
    assert MODULES.isdisjoint(goodgain.__all__)


def test_tests_stand_in_folders_named_as_those_of_the_package() -> None:
    folders = {path.parent.name for path in Path(__file__).parent.glob("*/__init__.py")}
    assert folders <= MODULES | {"support", "browser"}
