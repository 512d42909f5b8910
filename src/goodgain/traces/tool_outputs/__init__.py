"""From what a tool gave back to results, for every format."""
