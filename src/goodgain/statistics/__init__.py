"""Statistical tests and intervals on paired values, without any knowledge of runs or measures."""
