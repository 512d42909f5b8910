"""Asks the providers of ir_measures for classic measures, on the flattened ranking of a run."""
