"""From files to the documents in them, each with its place."""
