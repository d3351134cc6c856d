"""Spans for whoever traces this process: nothing is imported, and nothing done, for others.

A program that traces has loaded OpenTelemetry's API before it calls us (`opentelemetry-instrument
mind mcp` does); one that has not would have nowhere to send a span to.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from typing import Any

from mimo import disk
from mimo.guard.privacy import for_log
from mimo.text.clean import clean, inert

# Logs that give nothing away and command nothing: an exception's text may hold a memory.


class PrivateFile(RotatingFileHandler):
    """A log in a private place: every file of it is made with mode 0600."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, opener=disk.opener)


class Redacting(logging.Formatter):
    """Formats a record without secrets, personal data, control characters and commands."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the lines; all but the first are indented, so none looks like a record."""
        lines = clean(for_log(super().format(record))).splitlines()
        return inert("\n  ".join(lines))


TRACER = "mimo"


@contextmanager
def span(name: str, attributes: Mapping[str, str | int | float | None]) -> Iterator["Any"]:
    """Runs a block within a span, which it may get more attributes from; gives None without one."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield None
        return
    known = {key: value for key, value in attributes.items() if value is not None}
    # An error's text may hold a memory, so a span tells no more of it than its kind.
    quiet = {"record_exception": False, "set_status_on_exception": False}
    with trace.get_tracer(TRACER).start_as_current_span(name, attributes=known, **quiet) as started:
        try:
            yield started
        except BaseException as error:
            started.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise
