"""From a run to one ranking per query: in memory, or on the engine of the run."""
