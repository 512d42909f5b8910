"""Scores inside MLflow, against its real package."""
