"""The evaluation packages that take our measures: a file or folder for each, imported on use."""
