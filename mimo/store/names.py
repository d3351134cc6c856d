"""The names of mind's own folders, which the lightest paths need before anything else."""

from mimo.permissions import STORE as STORE

LOCAL = f"{STORE}/.local"
"""What is of this machine alone."""

ALONE = "alone:"
"""Begins the digest of a text that is only trusted where it was approved itself: what anybody's
commit says comes from outside `.mind/`, and is not what somebody chose to follow."""
