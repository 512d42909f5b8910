"""Reads spans of OpenTelemetry, and groups them to turns and conversations."""
