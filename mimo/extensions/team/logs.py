"""The log of the server: short records, or lines of JSON with requests.

With `--log-json`, each request has an id, which its records, its answer and the proxy's log share.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Collection
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mimo.api import Context, Redacting, loopback, session_name

log = logging.getLogger("mind.requests")

HEADER = "x-request-id"
FIELDS = "mind_fields"
"""The name of the further fields of a log record, and of those of a request in its scope."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SESSION = re.compile(r"\b[0-9a-f]{32}\b")

_request: ContextVar[str] = ContextVar("request", default="")


class Brief(Redacting):
    """Formats a record without the text of its exception, which may contain a memory.

    An id of a session lets a client continue it, so the record has the short name of the session.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the lines of a record."""
        return _SESSION.sub(lambda id: session_name(id[0]), super().format(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - overrides
        """Returns the type of an exception, and the place that raised it."""
        kind, _, trace = ei
        while trace and trace.tb_next:
            trace = trace.tb_next
        place = f" in {trace.tb_frame.f_code.co_qualname}" if trace else ""
        return f"{kind.__name__ if kind else 'an error'}{place}"


class Json(Brief):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns an object with the time, the level, the message, and the id of the request."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": super().format(record),
            "request": _request.get() or None,
            **getattr(record, FIELDS, {}),
        }
        return json.dumps({name: value for name, value in fields.items() if value is not None})


def follow(ctx: Context) -> None:
    """Gives later records of this task the id of a call's request, which began in another task."""
    _request.set(getattr(ctx.request, "headers", {}).get(HEADER, ""))


class Requests:
    """An application that logs each request: the user, the project, the status and the time.

    The id is that of the header `X-Request-Id`, if a proxy sends one. Paths and texts are not
    logged, nor are requests for one of the `quiet` paths, such as those of probes.
    """

    def __init__(self, app: ASGIApp, quiet: Collection[str]) -> None:
        """Takes the application that answers."""
        self._app, self._quiet = app, quiet
        log.setLevel(logging.INFO)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, and logs it after its end."""
        if scope["type"] != "http" or scope["path"] in self._quiet:
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0
        name = HEADER.encode()
        stated = dict(scope["headers"]).get(name, b"").decode("latin-1")
        id = stated if _ID.fullmatch(stated) else loopback.new_token()[:16]
        headers = [(key, value) for key, value in scope["headers"] if key != name]
        fields: dict[str, Any] = {"method": scope["method"]}
        scope = {**scope, "headers": [*headers, (name, id.encode())], FIELDS: fields}
        _request.set(id)

        async def respond(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], (name, id.encode())]}
            await send(message)

        try:
            await self._app(scope, receive, respond)
        finally:
            milliseconds = round((time.monotonic() - began) * 1000, 1)
            ended = {**fields, "status": status or None, "ms": milliseconds}
            log.info("request", extra={FIELDS: ended})
