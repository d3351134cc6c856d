"""HTTP requests of procedures: only to hosts that the user's own settings name."""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from mimo.domain.procedures.outcome import Outcome, Refused, failed
from mimo.frozen import frozen

if TYPE_CHECKING:
    from http.client import HTTPConnection

MOST_BYTES = 1024 * 1024
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@frozen
class Target:
    """Where a request goes."""

    secure: bool
    host: str
    port: int
    path: str


def target(url: str, hosts: Collection[str]) -> Target:
    """Returns where a URL leads.

    Raises `Refused` for one that is not HTTP, or whose host the user has not named.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
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
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(secure=secure, host=host, port=port or (443 if secure else 80), path=path)


def address_of(host: str, port: int) -> str:
    """Returns the address that a host has now.

    Raises `Refused` where that is not a public one, unless the host is itself an address or
    `localhost`: a name that the user allowed must not become a door to what is near.
    """
    import socket

    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectionError(f"`{host}` is not known: {error.strerror}") from None
    address = str(found[0][4][0])
    if not (is_public(address) or host == "localhost" or _is_address(host)):
        raise Refused(
            f"`{host}` leads to `{address}`, which is no public address; "
            f"allow the address itself if that is meant"
        )
    return address


def _is_address(host: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_public(address: str) -> bool:
    """Returns whether an address is one of the Internet, not of this machine or what is near."""
    from ipaddress import IPv6Address, ip_address

    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found.sixtofour or found
    return found.is_global and not found.is_multicast


class Request:
    """One request, which can be given up."""

    def __init__(self, args: Mapping[str, Any], hosts: Collection[str], seconds: float) -> None:
        """Take the arguments of the step; nothing is sent yet. Raises `Refused`."""
        self._url = str(args["url"])
        self._target = target(self._url, hosts)
        self._seconds = seconds
        self._method = str(args.get("method", "GET")).upper()
        if self._method not in _METHODS:
            raise Refused(f"`{self._method}` is no HTTP method")
        self._headers, self._body = _body(args)
        self._key = str(args.get("result_key", "http_response"))
        self._connection: HTTPConnection | None = None

    def send(self) -> Outcome:
        """Returns what the server answers, under `result_key`; other than 2xx is an error.

        A redirection is such an error too: it may lead to any host. Raises `Refused`.
        """
        from http.client import HTTPException

        what = f"{self._method} {self._url}"
        try:
            self._connection = _connection(self._target, self._seconds)
            self._connection.request(
                self._method, self._target.path, body=self._body, headers=self._headers
            )
            answer = self._connection.getresponse()
            body = answer.read(MOST_BYTES + 1)
        except (OSError, HTTPException, ValueError) as error:
            return failed(f"{what}: {str(error) or type(error).__name__}")
        finally:
            self.stop()
        if not 200 <= answer.status < 300:
            return failed(f"{what}: {answer.status} {answer.reason}")
        if len(body) > MOST_BYTES:
            return failed(f"{what}: the answer is larger than {MOST_BYTES:,} bytes", again=False)
        return Outcome(merge={self._key: _parsed(body), "http_status": answer.status})

    def stop(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()


def _connection(target: Target, seconds: float) -> "HTTPConnection":
    """Returns a connection to the address that was looked at, not to what the name means next."""
    import socket
    from http.client import HTTPConnection, HTTPSConnection

    address = address_of(target.host, target.port)
    made = (HTTPSConnection if target.secure else HTTPConnection)(
        target.host, target.port, timeout=seconds
    )
    made.sock = socket.create_connection((address, target.port), timeout=seconds)
    if target.secure:
        from ssl import create_default_context

        made.sock = create_default_context().wrap_socket(made.sock, server_hostname=target.host)
    return made


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
