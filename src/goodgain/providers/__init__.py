"""Classic measures that the providers of ir_measures compute, on the flattened ranking of a run."""
