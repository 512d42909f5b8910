"""What is made of scores: comparisons, explanations, curves, pictures and the report."""
