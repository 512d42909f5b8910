"""From a run to one ranking per query: in memory, or on the engine where its rows are."""
