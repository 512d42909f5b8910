"""What people look at: curves over iterations, precision over recall, plots, and the ledger in a notebook."""

from goodgain.reporting.ledger_and_coverage import show_ledger

__all__ = ["show_ledger"]
