"""Where a listing goes on: the last key, sealed.

A cursor says nothing to who holds it, since a key may be what somebody else must not see, and it
fits only the namespace and prefix that it was made for. It names a key and no place in a list, so
that what others write meanwhile moves nothing.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

from mimo.errors import Invalid

_MOST = 400
_SEAL = 16
_FORM = re.compile(r"[A-Za-z0-9_-]+")


def seal(secret: bytes, namespace: str, prefix: str, key: str) -> str:
    """Returns the cursor behind a key."""
    plain = key.encode()
    mark = _mark(secret, namespace, prefix, plain)
    return urlsafe_b64encode(mark + _mixed(secret, mark, plain)).decode().rstrip("=")


def unseal(secret: bytes, namespace: str, prefix: str, cursor: str) -> str:
    """Returns the key that a cursor stands behind; raises `Invalid` for one of another listing."""
    if len(cursor) <= _MOST and _FORM.fullmatch(cursor) and len(cursor) % 4 != 1:
        data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        mark, mixed = data[:_SEAL], data[_SEAL:]
        plain = _mixed(secret, mark, mixed)
        if hmac.compare_digest(mark, _mark(secret, namespace, prefix, plain)):
            return plain.decode()
    raise Invalid(
        "`cursor` is not one of this namespace and prefix",
        hint="begin again without it, or give the `cursor` of the page before as it was",
        details={"field": "cursor"},
    )


def _mark(secret: bytes, *parts: str | bytes) -> bytes:
    texts = [part.encode() if isinstance(part, str) else part for part in parts]
    joined = b"\0".join([b"mark", *texts])
    return hmac.digest(secret, joined, "sha256")[:_SEAL]


def _mixed(secret: bytes, mark: bytes, text: bytes) -> bytes:
    """Returns the text under a stream that only who has the secret can make; twice undoes it."""
    stream = hashlib.shake_256(secret + b"\0stream" + mark).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, stream, strict=True))
