"""Keeping a store healthy: the project, its settings, its index, and the checks of all."""
