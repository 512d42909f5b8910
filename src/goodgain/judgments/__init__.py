"""Relevance judgments from several judges, or from a language model."""
