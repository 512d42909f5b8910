"""Scoring: qrels and systems are opened, counted and scored once. Whoever only scores runs reads no other package."""
