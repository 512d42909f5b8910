"""Two-phase deduplication: which results of a query are the same document, and why."""

from goodgain.dedup.candidates import SkippedPairs
from goodgain.dedup.deduplication import Deduplication, deduplicate
from goodgain.dedup.reports import Agreement, Explanation, Summary
from goodgain.dedup.urls import normalise_url

__all__ = ["Agreement", "Deduplication", "Explanation", "SkippedPairs", "Summary", "deduplicate", "normalise_url"]
