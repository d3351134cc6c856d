"""The checks of every call: permissions, rate limits, privacy and the audit log."""
