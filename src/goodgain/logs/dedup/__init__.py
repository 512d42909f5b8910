"""Two-phase deduplication: which results of a query are the same document, and why."""

from goodgain.formats.urls import normalise_url
from goodgain.logs.dedup.candidates import SkippedPairs
from goodgain.logs.dedup.deduplication import Deduplication, deduplicate
from goodgain.logs.dedup.reports import Agreement, Explanation, Summary

__all__ = ["Agreement", "Deduplication", "Explanation", "SkippedPairs", "Summary", "deduplicate", "normalise_url"]
