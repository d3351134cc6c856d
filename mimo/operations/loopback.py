"""Servers on loopback: their sockets, their tokens, and the requests that they refuse.

Another page in the user's browser, another user of the machine and another machine can all send
requests to a port on loopback.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from hmac import compare_digest
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

from mimo.errors import StorageFailed

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
USUAL_PORT = 80
"""The port of a URL that names none."""


class Refused(Exception):
    """A request that does not come in; the text is safe to send."""

    def __init__(self, status: int, reason: str) -> None:
        """Takes the status code and the reason."""
        super().__init__(reason)
        self.status, self.reason = status, reason


def new_token() -> str:
    """Returns a secret of 192 bits."""
    return secrets.token_urlsafe(24)


def same(text: str | None, secret: str) -> bool:
    """Returns whether a given text is the secret, in a time that does not depend on the text."""
    return compare_digest((text or "").encode(), secret.encode())


def hosts_of(names: Collection[str], port: int) -> frozenset[str]:
    """Returns the values of the header `Host` for a server; clients leave out the usual port."""
    hosts = [f"[{name}]" if ":" in name else name for name in names]
    return frozenset([f"{name}:{port}" for name in hosts] + (hosts if port == USUAL_PORT else []))


def check_source(
    hosts: Sequence[str],
    own_hosts: Collection[str],
    origin: str | None,
    schemes: Sequence[str] = ("http",),
) -> None:
    """Raises `Refused` if a request names another host, or comes from a page of another site.

    `hosts` are the values of its headers `Host`, `own_hosts` the names of the server. A request
    names another host after DNS rebinding.
    """
    if len(hosts) != 1 or hosts[0] not in own_hosts:
        raise Refused(403, "The server answers only to its own address")
    if origin is not None and origin not in [f"{scheme}://{hosts[0]}" for scheme in schemes]:
        raise Refused(403, "The request comes from another site")


@contextmanager
def listening(port: int, address: str = ADDRESS, *, hint: str) -> Iterator[socket]:
    """Yields a socket at an address; a free port is chosen for 0.

    Raises `StorageFailed` with the hint if the port can't be used.
    """
    family = AF_INET6 if ":" in address else AF_INET
    # asyncio sends at once, without waiting to fill a packet, only if the protocol is named.
    with socket(family, SOCK_STREAM, IPPROTO_TCP) as listener:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
            listener.listen()  # From here on, a client waits until the server answers.
        except OSError as error:
            busy = error.errno == errno.EADDRINUSE
            raise StorageFailed(
                f"port `{port}` is in use" if busy else f"port `{port}`: {error.strerror}",
                hint=hint,
            ) from error
        yield listener
