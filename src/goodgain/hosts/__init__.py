"""Adapters for other evaluation packages, with one file or folder each. They are imported on use."""
