"""Logs that give nothing away: an exception's text may hold a memory."""

import logging

from mimo.guard.privacy import for_log


class Redacting(logging.Formatter):
    """Formats a record without secrets and personal data, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line, or lines, that may be written."""
        return for_log(super().format(record))
