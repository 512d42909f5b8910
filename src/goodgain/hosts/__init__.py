"""Adapters for other evaluation packages. Each adapter is a file or folder, and is imported when used."""
