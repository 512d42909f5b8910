"""From run and qrels to the ledger and the pools, of which every measure is a function: at once, or some queries at a time."""
