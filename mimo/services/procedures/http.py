"""HTTP requests of procedures: only to hosts that the user's own settings name."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from mimo.domain.procedures.outcome import Outcome, Refused, failed

MOST_BYTES = 1024 * 1024
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def allowed(url: str, hosts: Collection[str]) -> None:
    """Raises `Refused` for a URL that is not HTTP, or whose host the user has not named."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Refused(f"`{url}` is no URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Refused(f"`{url}` is no http or https URL")
    if parts.username is not None:
        raise Refused("a URL must hold no user and no password")
    named = {known.lower() for known in hosts}
    if host not in named and f"{host}:{port}" not in named:
        raise Refused(
            f"requests to `{host}` are not allowed; "
            f"allow them with `mind config --user procedures.http_hosts {host}`"
        )


def request(args: Mapping[str, Any], hosts: Collection[str], seconds: float) -> Outcome:
    """Returns what a server answers, under `result_key`; other than 2xx is an error."""
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class NoRedirect(HTTPRedirectHandler):
        """Leaves a redirection unfollowed: it may lead to any host."""

        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    url = str(args["url"])
    allowed(url, hosts)
    method = str(args.get("method", "GET")).upper()
    if method not in _METHODS:
        raise Refused(f"`{method}` is no HTTP method")
    headers, data = _body(args)
    sent = Request(url, data=data, headers=headers, method=method)  # noqa: S310 - checked above
    try:
        with build_opener(NoRedirect).open(sent, timeout=seconds) as answer:
            body, status = answer.read(MOST_BYTES + 1), answer.status
    except HTTPError as error:
        with error:
            return failed(f"{method} {url}: {error.code} {error.reason}")
    except (URLError, OSError, ValueError) as error:
        return failed(f"{method} {url}: {getattr(error, 'reason', None) or error}")
    if len(body) > MOST_BYTES:
        return failed(
            f"{method} {url}: the answer is larger than {MOST_BYTES:,} bytes", again=False
        )
    key = str(args.get("result_key", "http_response"))
    return Outcome(merge={key: _parsed(body), "http_status": status})


def _body(args: Mapping[str, Any]) -> tuple[dict[str, str], bytes | None]:
    given = args.get("headers") or {}
    if not isinstance(given, dict):
        raise Refused("`headers` must be a mapping")
    headers = {str(name): str(value) for name, value in given.items()}
    body = args.get("body")
    if body is None or isinstance(body, str):
        return headers, None if body is None else body.encode()
    headers.setdefault("Content-Type", "application/json")
    return headers, json.dumps(body).encode()


def _parsed(body: bytes) -> Any:
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
