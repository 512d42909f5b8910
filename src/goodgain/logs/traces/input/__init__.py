"""Yields the JSON documents in files of traces one by one, and the place of each document, which error messages name."""
