"""What people look at: curves over iterations and of precision over recall, plots, and the ledger in a notebook."""

from goodgain.reporting.ledger_table import show_ledger

__all__ = ["show_ledger"]
