"""Reads runs and qrels from any file or frame, and writes them to files."""

from goodgain.formats.qrels import Qrels, read_qrels, write_qrels
from goodgain.formats.run import Run
from goodgain.formats.run_reading import read_run, write_run

__all__ = ["Qrels", "Run", "read_qrels", "read_run", "write_qrels", "write_run"]
