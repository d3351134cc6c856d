"""Values as a header shows them: one line each, read back as exactly the same data."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mimo.domain.codec.restricted_yaml import MAX_DEPTH, MAX_KEYS, resolve
from mimo.errors import Invalid

GONE: Any = object()
"""Stands for the value of a key that is to be removed."""

# A parser of YAML looks no further than 1,024 characters for a key's colon.
_LONGEST_KEY = 200

# Words and common marks that mean nothing in YAML; all else is quoted.
_PLAIN = re.compile(r"[^\W\d_](?:[\w .,/()+@%;!?='-]|:(?=[\w/]))*(?<! )")
_PLAIN_IN_LIST = re.compile(r"[^\W\d_](?:[\w ./()+@%;!?=-])*(?<! )")
# What older readers take for a boolean.
_OLD_WORDS = frozenset(("y", "n", "yes", "no", "on", "off"))
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def lines(header: Mapping[str, Any]) -> str:
    """Returns a whole header, each key as `entry` shows it. Raises `Invalid`."""
    _check_size(header)
    return "".join(f"{entry(key, value)}\n" for key, value in header.items())


def entry(key: str, value: Any) -> str:
    """Returns the line or lines of one key, without the last line end.

    `links` stand one on a line. Raises `Invalid` for what is no JSON-like data.
    """
    return f"{scalar(_key(key))}:{block(value) if key == 'links' else ' ' + flow(value, 2)}"


def block(items: Any) -> str:
    """Returns a list with one item a line, as it follows the key's colon."""
    return "".join(f"\n  - {flow(item, 3)}" for item in items)


def flow(value: Any, depth: int = 2, *, nested: bool = False) -> str:
    """Returns a value on one line, as YAML; `depth` is its level in the header, from 1."""
    if isinstance(value, str):
        return scalar(value, nested=nested)
    if isinstance(value, Mapping | list | tuple):
        if depth > MAX_DEPTH:
            raise Invalid(f"header values can't be nested deeper than {MAX_DEPTH}")
        if not isinstance(value, Mapping):
            return f"[{', '.join(flow(item, depth + 1, nested=True) for item in value)}]"
        _check_size(value)
        pairs = (
            f"{scalar(_key(key), nested=True)}: {flow(item, depth + 1, nested=True)}"
            for key, item in value.items()
        )
        return f"{{{', '.join(pairs)}}}"
    return _atom(value)


def scalar(text: str, *, nested: bool = False) -> str:
    """Returns text as a YAML scalar on one line, quoted where plain could mean something else."""
    pattern = _PLAIN_IN_LIST if nested else _PLAIN
    if (
        pattern.fullmatch(text)
        and isinstance(resolve(text), str)
        and text.lower() not in _OLD_WORDS
    ):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def moment(when: datetime) -> str:
    """Returns a time as ISO 8601 in UTC with `Z`."""
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise Invalid(f"a header key must be text, not `{key!r}`")
    if len(key) > _LONGEST_KEY:
        raise Invalid(f"the header key `{key[:40]}…` is too long", hint="put it into the content")
    return key


def _check_size(mapping: Mapping[str, Any]) -> None:
    if len(mapping) > MAX_KEYS:
        raise Invalid(f"a header can't hold {len(mapping)} keys, only {MAX_KEYS}")


def _atom(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        text = repr(value)
        if type(resolve(text)) is type(value):
            return text
    raise Invalid(f"a header can't hold `{value!r}`", hint="use text, numbers, lists or mappings")
