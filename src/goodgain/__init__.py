"""goodgain: the Retrieved Good Gain measures for agents that search in several rounds."""

from goodgain.errors import GoodgainError, GoodgainNotice
from goodgain.version import __version__

__all__ = ["GoodgainError", "GoodgainNotice", "__version__"]
