"""Reads files of traces: their JSON documents one by one, each with its place for error messages."""
