"""Builds a trace from the messages of a conversation: turns, steps, calls and their answers."""
