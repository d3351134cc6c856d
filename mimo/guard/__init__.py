"""The checks of every call: permissions, rate limits, privacy and the audit log."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """The effect of a call on the stored data."""

    READ = "read"
    WRITE = "write"


class PiiAction(StrEnum):
    """The treatment of a value that holds personal data; the strictest comes first."""

    REFUSE = "refuse"
    REDACT = "redact"
    ALLOW = "allow"
