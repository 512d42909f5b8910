"""Reads files of any kind, decompressed, and writes them whole or not at all."""
