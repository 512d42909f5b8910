"""Grades 0..4 from a language model: prompts, calls and answers."""
