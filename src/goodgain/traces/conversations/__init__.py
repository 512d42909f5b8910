"""From the messages of a conversation to a trace: turns, steps, calls and their answers."""
