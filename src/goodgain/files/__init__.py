"""Reads and decompresses files, parses tables, and writes files atomically."""
