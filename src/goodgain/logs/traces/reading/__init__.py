"""Reads files of traces into the results frame: finds the files, their formats, queries and searches."""
