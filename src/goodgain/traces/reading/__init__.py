"""From files of traces to the results frame: which files, in which format, which searches."""
