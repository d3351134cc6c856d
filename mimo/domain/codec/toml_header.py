"""Headers in TOML (`+++`), as Hugo writes them: read, and edited line by line."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from mimo.domain.codec.document import Unreadable
from mimo.domain.codec.emit import GONE, moment
from mimo.errors import Invalid

_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def load(text: str) -> dict[str, Any]:
    """Returns the data of a header, dates and times as ISO text.

    Raises `Unreadable` with the 1-based line in `text`.
    """
    import tomllib

    try:
        plain = _plain(tomllib.loads(text.replace("\r\n", "\n")), depth=1)
    except (ValueError, OverflowError, RecursionError) as error:
        found = re.search(r" ?\(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else 1
        reason = str(error).replace(found[0], "") if found else str(error)
        raise Unreadable(f"header: {reason[:1].lower()}{reason[1:]}", line) from None
    return {str(key): value for key, value in plain.items()}


def edit(text: str, changes: Mapping[str, Any]) -> str:
    """Returns the header with some top-level keys set, or removed where the value is GONE.

    All other text stays as it is. Raises `Invalid` where a key can't be told apart.
    """
    for key, value in changes.items():
        line = "" if value is GONE else f"{_key(key)} = {_value(value)}\n"
        start, end = _extent(text, key)
        text = text[:start] + line + text[end:]
    return text


def _extent(text: str, key: str) -> tuple[int, int]:
    """Returns where the lines of `key` are, or the empty place where it would go."""
    table = _TABLE.search(text)
    top = table.start() if table else len(text)
    name = re.escape(key)
    found = re.compile(rf"^[ \t]*(?:{name}|\"{name}\"|'{name}')[ \t]*=", re.MULTILINE).search(text)
    if found is None or found.start() >= top:
        if re.search(rf"^[ \t]*\[+[ \t]*{name}[ \t]*[.\]]", text, re.MULTILINE):
            raise Invalid(f"`{key}` is a table in this file's header", hint="edit it by hand")
        return top, top
    end = found.end()
    while end < len(text):
        end = text.find("\n", end) + 1 or len(text)
        if _is_whole(text[found.start() : end]):
            return found.start(), end
    raise Invalid(f"`{key}` can't be changed in this file's header", hint="edit it by hand")


def _is_whole(text: str) -> bool:
    import tomllib

    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {_value(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise Invalid(f"a TOML header can't hold `{value!r}`", hint="edit it by hand")


def _plain(value: Any, depth: int) -> Any:
    """Returns TOML's data as JSON-like data."""
    if depth > 20:
        raise Unreadable("header: nested too deeply", 1)
    if isinstance(value, dict):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, datetime):
        return moment(value) if value.tzinfo else moment(value.replace(tzinfo=UTC))
    if isinstance(value, date | time):
        return value.isoformat()
    return value
