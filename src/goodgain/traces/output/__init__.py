"""From the results frame to files of results and to runs."""
