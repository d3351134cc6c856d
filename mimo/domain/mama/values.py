"""Single values of a MAMA database: what they say, and how a memory can hold it.

SQLite keeps any kind of value in any column, so nothing is taken for granted.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

from mimo.domain.codec.dates import read_moment
from mimo.domain.lists import bullets

Row = Mapping[str, Any]

SECONDS_BELOW = 1_577_836_800_000
"""A smaller number is a time in seconds, any other one in milliseconds: MAMA's own rule."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST = 200
"""Characters of a value that a header shows on its one line."""
_DEEPEST = 3
_LARGEST = 2**63
_NUMBER = re.compile(r"[+-]?\d{1,20}(?:\.\d*)?")
_ID_TIME = re.compile(r"_(\d{13})(?:_|$)")
_TURN = {"role", "content"}


def text(value: Any) -> str | None:
    """Returns a value as text that a file can hold, or None where it says nothing."""
    if value is None:
        return None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    told = _clean(str(value))
    return told if told.strip() else None


def moment(value: Any) -> datetime | None:
    """Returns the time that a value means, UTC; None where it means none that can be right."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        when = read_moment(value)
    else:
        when = _counted(value)
    return when if when and _EARLIEST <= when < _LATEST else None


def moment_in_id(name: str) -> datetime | None:
    """Returns the time that an id such as `decision_auth_1763650800000_x1y2` holds."""
    found = _ID_TIME.search(name)
    return moment(int(found[1])) if found else None


def unit(value: Any) -> float | None:
    """Returns a number from 0 to 1, or None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number <= 1 else None


def data(value: Any) -> Any:
    """Returns what a value says as JSON-like data; None where that is nothing.

    Empty texts and lists say nothing, nor do zeros: they are what a new row has. Text that is a
    JSON list or object becomes one; broken JSON stays the text that it is.
    """
    if isinstance(value, bytes | str):
        told = text(value)
        if told is None or told.strip() == "null":
            return None
        return _parsed(told) if told.lstrip()[0] in "[{" else told
    return _plain(value) or None


def is_small(value: Any) -> bool:
    """Returns whether a header can show the data on one line that people can read."""
    if isinstance(value, str):
        return len(value) <= _LONGEST and value.isprintable()
    if not isinstance(value, list | dict):
        return True
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return False
    return len(shown) <= _LONGEST and "\\n" not in shown and _depth(value) < _DEEPEST


def prose(value: Any) -> str:
    """Returns data as Markdown: text as it is, a list as bullets, talk by its speakers."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return bullets(value)
    if isinstance(value, list) and all(_is_turn(item) for item in value):
        return "\n\n".join(f"**{item['role']}:** {item['content']}" for item in value)
    return fenced(json.dumps(value, ensure_ascii=False, indent=2), "json")


def fenced(code: str, language: str) -> str:
    """Returns a block of code, with a fence longer than any within."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def items(value: Any) -> list[str]:
    """Returns the texts of a JSON list, or the one text that is no such list."""
    told = data(value)
    if not isinstance(told, list):
        return [] if told is None else [told if isinstance(told, str) else json.dumps(told)]
    dumped = (item if isinstance(item, str) else json.dumps(item) for item in told)
    return [item for item in dumped if item.strip()]


def _counted(value: Any) -> datetime | None:
    try:
        number = float(value)
        milliseconds = number if number >= SECONDS_BELOW else number * 1000
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except (TypeError, ValueError, OverflowError):
        return None


def _parsed(told: str) -> Any:
    try:
        return _plain(json.loads(told)) or None
    except (ValueError, RecursionError):
        return told


def _plain(value: Any) -> Any:
    """Returns JSON-like data as a file can hold it."""
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {_clean(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    infinite = isinstance(value, float) and not isfinite(value)
    huge = isinstance(value, int) and abs(value) > _LARGEST
    return str(value) if infinite or huge else value


def _clean(told: str) -> str:
    """Returns text without what is no character: NUL and halves of surrogate pairs."""
    return told.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _depth(value: Any) -> int:
    if not isinstance(value, list | dict) or not value:
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(_depth(item) for item in inner)


def _is_turn(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.keys() == _TURN
        and all(isinstance(told, str) for told in item.values())
    )
