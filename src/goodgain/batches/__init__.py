"""Reads large runs in batches of whole queries, so that memory does not grow with the file."""
