"""Agent traces: logs of agents that search, in the formats they come in, to results and runs."""

from goodgain.traces.adapters import formats
from goodgain.traces.reading import read_traces
from goodgain.traces.summary import Summary

__all__ = ["Summary", "formats", "read_traces"]
