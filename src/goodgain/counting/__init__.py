"""Makes two small tables of counts from a run and qrels: the ledger (per iteration) and the pools (per query)."""
