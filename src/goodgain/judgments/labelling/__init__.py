"""Asks language models for grades 0..4 of documents."""
