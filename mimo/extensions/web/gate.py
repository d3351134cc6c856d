"""The gate before the viewer: it lets in only the browser of the user who started the viewer.

Another page in that browser, another user of the machine and another machine can all send requests
to a port on loopback. `docs/web.md` lists those threats, and which rule here answers each.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mimo.api import loopback

VIEWS = ("", "memory", "timeline", "decisions", "graph", "pitfalls", "review", "sessions")
"""The first parts of the addresses of the page, whose script shows the views."""

ENTRY = "/#in="
"""Precedes the token in the URL. Browsers send no part after `#` to any server."""

TOKEN_HEADER = "x-mind-token"  # noqa: S105 - the name of the header

MOST_BODY = 64 * 1024

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Nothing runs that is not a file of the viewer, and no script can turn text into markup."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Gate:
    """Checks each request, and adds the headers of security to each response."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        """Takes the application behind the gate."""
        self._app = app
        self._hosts = loopback.hosts_of(loopback.NAMES, port)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        request = Request(scope)
        try:
            self.check(request)
        except loopback.Refused as refusal:
            answer = PlainTextResponse(f"{refusal.reason}\n", refusal.status)
            await answer(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def check(self, request: Request) -> None:
        """Raises `Refused` unless the request comes from the user's own page.

        The files of the page are public: they contain no memory and no secret.
        """
        origin = request.headers.get("origin")
        loopback.check_source(request.headers.getlist("host"), self._hosts, origin)
        if request.method not in ("GET", "HEAD", "POST"):
            raise loopback.Refused(405, "The viewer has no such method")
        site = request.headers.get("sec-fetch-site", "same-origin")
        is_view = request.url.path.removeprefix("/").partition("/")[0] in VIEWS
        opens = is_view and request.headers.get("sec-fetch-mode") == "navigate"
        if site != "same-origin" and not opens:
            raise loopback.Refused(403, "The request comes from another site")
        is_page = request.method != "POST" and not request.url.path.startswith("/api/")
        if not is_page and not loopback.same(request.headers.get(TOKEN_HEADER), self._token):
            raise loopback.Refused(401, "Open the URL that `mind web` printed")
        if request.method == "POST":
            self._check_change(request, origin)

    def _check_change(self, request: Request, origin: str | None) -> None:
        if origin is None:
            raise loopback.Refused(403, "The request names no origin")
        if request.headers.get("content-type") != "application/json":
            raise loopback.Refused(415, "The request is not JSON")
        length = request.headers.get("content-length", "")
        is_number = length.isascii() and length.isdecimal() and len(length) < 20
        if not is_number or int(length) > MOST_BODY:
            raise loopback.Refused(
                413, f"The request is longer than {MOST_BODY:,} bytes, or has no length"
            )
