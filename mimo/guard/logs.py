"""Log files without memories: an exception's text may contain one."""

from __future__ import annotations

import logging
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler

from mimo.data import disk
from mimo.guard.privacy import for_log
from mimo.text.clean import clean, inert


class PrivateFile(RotatingFileHandler):
    """A log in a private place: all its files are created with mode 0600."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, opener=disk.opener)


class Redacting(logging.Formatter):
    """Formats a record without secrets, personal data, control characters and commands."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the lines; all but the first are indented, so none of them imitates a record."""
        lines = clean(for_log(super().format(record))).splitlines()
        return inert("\n  ".join(lines))
