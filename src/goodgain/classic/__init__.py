"""Classic measures, asked of the providers of ir_measures on the ranking of a run."""
