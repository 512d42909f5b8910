"""Counts run and qrels into two small tables, the ledger and the pools."""
