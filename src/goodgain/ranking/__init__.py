"""From a run to one ranking a query: in memory, or on the engine where its rows are."""
