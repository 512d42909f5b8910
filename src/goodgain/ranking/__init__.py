"""Makes one ranking per query from a run, in memory or on the engine of the run."""
