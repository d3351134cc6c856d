"""Procedures: kept as files, run as state machines, followed from any process."""
