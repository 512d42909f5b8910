"""Makes curves, plots and reports, and shows ledgers and curves in a notebook."""

from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.plots.pictures import show_curve, show_ledger

__all__ = ["plots", "show_curve", "show_ledger"]
