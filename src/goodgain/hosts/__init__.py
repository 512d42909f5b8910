"""The evaluation packages that take our measures: one file or folder each, imported on use."""
