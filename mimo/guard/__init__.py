"""The checks of every call: permissions, rate limits, privacy and the audit log."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """The effect of a call on the stored data."""

    READ = "read"
    WRITE = "write"
