"""Spans for whoever traces this process: nothing is imported, and nothing done, for others.

A program that traces has loaded OpenTelemetry's API before it calls us (`opentelemetry-instrument
mind mcp` does); one that has not would have nowhere to send a span to.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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
