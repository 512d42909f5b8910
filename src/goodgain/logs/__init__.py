"""Reads the logs of search agents as results, and finds the results that are the same document."""
