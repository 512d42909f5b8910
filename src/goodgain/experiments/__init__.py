"""Experiments, which read and count qrels and systems once for several analyses."""
