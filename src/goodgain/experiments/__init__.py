"""Experiments. The analyses of an experiment share the qrels and runs, and the counts made from them."""
