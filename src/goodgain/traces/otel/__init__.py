"""Spans of OpenTelemetry, and the conversations that they make."""
