"""Two-phase deduplication: finds the results of a query that are the same document, and explains why."""

from goodgain.formats.urls import normalise_url
from goodgain.logs.dedup.candidates import SkippedPairs
from goodgain.logs.dedup.deduplication import Deduplication, deduplicate
from goodgain.logs.dedup.reports import Agreement, Explanation, Summary

__all__ = ["Agreement", "Deduplication", "Explanation", "SkippedPairs", "Summary", "deduplicate", "normalise_url"]
