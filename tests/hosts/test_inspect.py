"""Scores inside Inspect, against its real package."""
