"""Lets tools that expect a pandas frame, such as ir_measures, use a run or qrels."""

from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from typing import Any


class PandasFacade:
    """Gives a run or qrels the attributes of a pandas frame. On first use, `host_frame` is converted to pandas."""

    @cached_property
    def _pandas(self) -> Any:
        return self.host_frame.to_pandas()

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling look for private names: they must not find those of pandas, nor wait until it is imported.
        if not name.startswith("_") and self._is_of_pandas(name):
            return getattr(self._pandas, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _is_of_pandas(self, name: str) -> bool:
        """Tell whether a pandas frame of these columns has the attribute, without a conversion."""
        return name in self.columns or hasattr(import_module("pandas").DataFrame, name)

    def __getitem__(self, key: Any) -> Any:
        return self._pandas[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pandas)
