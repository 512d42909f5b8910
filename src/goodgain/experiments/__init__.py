"""Experiments: qrels and systems that are read and counted once, for several analyses."""
