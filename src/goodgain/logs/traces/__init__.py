"""Reads the logs of search agents in many formats, and converts them to results and runs."""

from goodgain.formats.results import read_results, write_results
from goodgain.logs.traces.formats import formats
from goodgain.logs.traces.output.conversion import Conversion, convert_traces, read_traces
from goodgain.logs.traces.output.results_to_run import to_run
from goodgain.logs.traces.output.searches_in_memory import read_searches
from goodgain.logs.traces.reading_summary import Summary

__all__ = [
    "Conversion",
    "Summary",
    "convert_traces",
    "formats",
    "read_results",
    "read_searches",
    "read_traces",
    "to_run",
    "write_results",
]
