"""The trace formats. Each file in this folder is one format, with the name of the file."""
