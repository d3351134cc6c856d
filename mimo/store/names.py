"""The names of mind's own folders, which the lightest paths need before anything else."""

STORE = ".mind"
"""The folder of a project's memory."""

LOCAL = f"{STORE}/.local"
"""What is of this machine alone."""
