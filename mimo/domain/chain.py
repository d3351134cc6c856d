"""A chain of records, each sealed over the one before it, so that no change stays unseen.

hash = SHA-256(previous hash, or nothing for the first, followed by the record as canonical JSON);
hmac = HMAC-SHA256(key, hash). The hashes show a change to everybody, the keyed ones also to
those who could compute all hashes anew.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mimo.errors import Invalid

INTERRUPTED = "interrupted"
"""The type of a record that closes a line that was torn by an interrupted write."""


class Link(NamedTuple):
    """One record of a chain; hashes are in hex."""

    event: dict[str, Any]
    prev: str | None
    """The hash of the record before, None for the first of all."""
    hash: str
    hmac: str

    @property
    def number(self) -> int:
        """Returns its place in the chain, from 1; 0 where it says none."""
        number = self.event.get("n")
        return number if isinstance(number, int) else 0

    @property
    def home(self) -> str | None:
        """Returns the mark of the key that the record claims, None in records of before marks."""
        home = self.event.get("home")
        return home if isinstance(home, str) else None


def sealed(event: Mapping[str, Any], prev: str | None, key: bytes) -> Link:
    """Returns an event as the next link of a chain."""
    own = _hash(event, prev)
    return Link(dict(event), prev, own, _keyed(own, key))


def mark_of(key: bytes) -> str:
    """Returns what names a key without revealing it."""
    import hashlib

    return hashlib.sha256(b"mind audit home " + key).hexdigest()[:12]


def fault(link: Link, key: bytes | None) -> str | None:
    """Returns what is wrong with a link by itself, or None; without a key its hash is checked."""
    if _hash(link.event, link.prev) != link.hash:
        return "it was changed"
    if key is not None and not _same(_keyed(link.hash, key), link.hmac):
        return "it was not sealed with this machine's key"
    return None


def line_of(link: Link) -> bytes:
    """Returns a link as a line of a file."""
    record = {"event": link.event, "prev": link.prev, "hash": link.hash, "hmac": link.hmac}
    return _canonical(record) + b"\n"


def link_of(line: bytes) -> Link:
    """Returns the link in a line, with or without its line end.

    Raises `Invalid` if it has none, or not in the exact form of `line_of`: of a key that occurs
    twice, other readers may see the other value.
    """
    try:
        record = json.loads(line)
        event, prev = record["event"], record["prev"]
        own, keyed = record["hash"], record["hmac"]
        exact = _canonical(record) == line.removesuffix(b"\n")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Invalid("it is no record") from None
    texts = isinstance(own, str) and isinstance(keyed, str)
    linked = isinstance(event, dict) and (prev is None or isinstance(prev, str))
    if not (exact and texts and linked):
        raise Invalid("it is no record")
    return Link(event, prev, own, keyed)


def _canonical(value: Mapping[str, Any]) -> bytes:
    """Returns JSON with sorted keys and no spaces: the same bytes for the same record."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _hash(event: Mapping[str, Any], prev: str | None) -> str:
    import hashlib

    return hashlib.sha256((prev or "").encode() + _canonical(event)).hexdigest()


def _keyed(text: str, key: bytes) -> str:
    import hmac

    return hmac.digest(key, text.encode(), "sha256").hex()


def _same(first: str, second: str) -> bool:
    import hmac

    return hmac.compare_digest(first.encode(), second.encode("utf-8", "surrogatepass"))
