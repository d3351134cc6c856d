"""The door for foreign data: every text of JSON, TOML or YAML from another program is read here.

Its size, its levels and the digits of its numbers are limited before a library parses it, in time
linear in its length. So a hostile text raises the same error as a mistyped one, and the result can
be walked by recursion. (The headers of memories have a stricter YAML of their own, which
`mimo.memory.codec.front_matter` reads event by event.)
"""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn

    Syntax = Literal["json", "toml", "yaml"]

MAX_DEPTH = 100
"""The most levels of a value that mind stores."""
_MAX_BYTES = 64_000_000
_DEPTH = 128
"""A value that is stored can have some levels around it."""
_MAX_DIGITS = 4_300
"""Python's own limit, which an environment variable can lift; reading digits is quadratic."""

_NOT_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_PASSES = 8
"""The levels of most texts of JSON."""
_TOO_DEEP = "nested too deeply"
_TOO_LONG = "a number has too many digits"
_JSON_MARK = r'(?s)"(?:[^"\\]|\\.)*+"?|[][}{]'
_TOML_MARK = (
    r'(?s)"""(?:[^"\\]|\\.|"{1,2}(?!"))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'{1,2}(?!'))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+"
    r"|[][}{.,\n]"
    rf"|[0-9_]{{{_MAX_DIGITS + 1}}}"
)
_DIGITS = frozenset("0123456789_")
_TOML_PLACE = r" \(at line (\d+), column (\d+)\)$"
_YAML_DIGITS = rf"[0-9_:]{{{_MAX_DIGITS + 1}}}"


class DataError(ValueError):
    """Foreign data can't be read. The message begins with the line and column, if known."""

    def __init__(
        self,
        reason: str,
        line: int | None = None,
        column: int | None = None,
        *,
        is_well_formed: bool = False,
    ) -> None:
        """Takes the reason and the place, both numbers from 1.

        `is_well_formed` is true if the syntax is right, but a part of the data exceeds a limit or
        would be lost.
        """
        place = f"line {line}, column {column}: " if line and column else ""
        super().__init__(f"{place or (f'line {line}: ' if line else '')}{reason}")
        self.reason = reason
        self.line = line
        self.column = column
        self.is_well_formed = is_well_formed


def loads(
    data: bytes | str,
    syntax: Syntax = "json",
    *,
    limit: int = _MAX_BYTES,
    depth: int = _DEPTH,
    exact: bool = False,
) -> Any:
    """Returns the value of a text; bytes are UTF-8, with or without a byte order mark.

    `limit` limits the bytes, or the characters of a text, and `depth` the levels: of lists,
    objects, tables and dotted keys. If an object of JSON has a key twice, the last one counts,
    unless `exact`. Raises `DataError`.
    """
    text = bounded(data, syntax, limit=limit, depth=depth)
    if syntax == "json":
        return _json(text, exact=exact)
    return _toml(text) if syntax == "toml" else _yaml(text, depth)


def loads_or_none(data: bytes | str, syntax: Syntax = "json") -> Any:
    """Returns the value of a text; None if it can't be read."""
    try:
        return loads(data, syntax)
    except ValueError:
        return None


def bounded(
    data: bytes | str, syntax: Syntax, *, limit: int = _MAX_BYTES, depth: int = _DEPTH
) -> str:
    """Returns the text within the limits, for a library that keeps comments. Raises `DataError`.

    YAML is checked as it is parsed.
    """
    if len(data) > limit:
        raise DataError(f"larger than {limit:,} bytes")
    try:
        # Texts that `json` writes can hold halves of characters.
        text = data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8", error.object.count(b"\n", 0, error.start) + 1) from None
    text = text.removeprefix("\ufeff")
    if syntax == "json":
        if text.count("[") + text.count("{") > depth:
            _check_json(text, depth)
    elif syntax == "toml":
        _check_toml(text, depth)
    return text


def levels(value: Any) -> int:
    """Returns the levels of a value, at most one above `MAX_DEPTH`: it may contain itself."""
    level, number = [value], 0
    while level and number <= MAX_DEPTH:
        inner = [value for value in level if isinstance(value, dict | list | tuple | Mapping)]
        parts = (value.values() if isinstance(value, Mapping) else value for value in inner)
        level = [item for part in parts for item in part]
        number += bool(inner)
    return number


def _refuse(text: str, place: int, reason: str) -> NoReturn:
    """Raises the error for a limit that is exceeded at a place of a text."""
    line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
    raise DataError(reason, line, column, is_well_formed=True)


class _Exact:
    """Hooks of the parser of JSON, and the problems that they met."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def integer(self, digits: str) -> int:
        size = len(digits.lstrip("-"))
        if size <= _MAX_DIGITS:
            return int(digits)
        limit = f"{size:,} digits, and at most {_MAX_DIGITS:,} fit"
        self.problems.append(f"the integer `{digits[:12]}…` has {limit}")
        return 0

    def mapping(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                self.problems.append(f"an object has the key `{key}` twice")
            result[key] = value
        return result


def _constant(word: str) -> NoReturn:
    raise DataError(f"`{word}` is not a number in JSON")


def _json(text: str, *, exact: bool) -> Any:
    import json

    # The parser is faster without hooks; digits that are far too many contain a whole block.
    hooks = None
    if exact or (
        len(text) > _MAX_DIGITS
        and any(text[at : at + _MAX_DIGITS].isdecimal() for at in range(0, len(text), _MAX_DIGITS))
    ):
        hooks = _Exact()
    try:
        value = json.loads(
            text,
            parse_constant=_constant,
            parse_int=hooks.integer if hooks else None,
            object_pairs_hook=hooks.mapping if hooks and exact else None,
        )
    except json.JSONDecodeError as error:
        raise DataError(_lowered(error.msg), error.lineno, error.colno) from None
    except DataError:
        raise
    except ValueError:
        raise DataError(_TOO_LONG, is_well_formed=True) from None
    if hooks and hooks.problems:
        raise DataError(hooks.problems[0], is_well_formed=True)
    return value


def _check_json(text: str, depth: int) -> None:
    """Raises `DataError` if a text is nested too deeply, unless its syntax is wrong before that."""
    import re

    if _is_flat(text, depth):
        return
    level = 0
    for token in re.finditer(_JSON_MARK, text):
        level += (token[0] in "[{") - (token[0] in "]}")
        if level > depth:
            _check_json_prefix(text, token.start())
            _refuse(text, token.start(), _TOO_DEEP)


def _is_flat(text: str, depth: int) -> bool:
    """Returns whether a quick look shows that a text of JSON has at most so many levels.

    Only brackets and quotes are kept, then only brackets, of which each pass drops the innermost:
    a small part of the time that the parser takes.
    """
    import re

    data = text.encode("utf-8", "surrogatepass")
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = data.translate(_ONE_KIND, _NOT_MARKS).replace(b'""', b"")
    brackets = re.sub(rb'"[^"]*+"?', b"", marks)
    passes = min(depth, _PASSES)
    for _ in range(passes):
        brackets = brackets.replace(b"[]", b"")
    return brackets.count(b"[") <= depth - passes


def _check_json_prefix(text: str, place: int) -> None:
    """Raises `DataError` if the syntax is wrong before a place, as in a text that is not JSON."""
    try:
        _json(text[:place], exact=False)
    except DataError as error:
        end = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
        if error.line and (error.line, error.column) < end:
            raise


def _lowered(message: str) -> str:
    return f"{message[:1].lower()}{message[1:]}"


def _toml(text: str) -> dict[str, Any]:
    import re
    import tomllib

    try:
        return tomllib.loads(text)
    except ValueError as error:
        message = _lowered(str(error))
        place = re.search(_TOML_PLACE, message)
        if place is None:
            raise DataError(message) from None
        raise DataError(message[: place.start()], int(place[1]), int(place[2])) from None


def _check_toml(text: str, depth: int) -> None:
    """Raises `DataError` if a number has too many digits, or a table too many levels.

    Each bracket and each dot of a key is a level. A header has at most half of the levels, and a
    key with its value the other half.
    """
    import re

    if sum(map(text.count, "[{.")) <= depth // 2 and len(text) <= _MAX_DIGITS:
        return
    level = 0
    outer: list[int] = []
    """The levels around each open bracket."""
    for token in re.finditer(_TOML_MARK, text):
        match token[0][0]:
            case "[" | "{":
                outer.append(level)
                level += 1
            case "]" | "}" if outer:
                level = outer.pop()
            case "," | "\n":
                level = outer[-1] + 1 if outer else 0
            case ".":
                level += 1
            case mark if mark in _DIGITS:
                _refuse(text, token.start(), _TOO_LONG)
        if level > depth // 2:
            _refuse(text, token.start(), _TOO_DEEP)


def _yaml(text: str, depth: int) -> Any:
    """Returns a value of YAML 1.1, as PyYAML's safe loader.

    An alias within an anchored value is refused, since a few levels of them make billions of items.
    """
    import re

    import yaml

    if digits := re.search(_YAML_DIGITS, text):
        _refuse(text, digits.start(), _TOO_LONG)
    loader: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    anchored: list[bool] = []
    """For each open list and mapping, whether it or one around it has an anchor."""
    try:
        for event in yaml.parse(text, loader):
            mark: Any = event.start_mark
            if isinstance(event, yaml.CollectionStartEvent):
                anchored.append(bool(event.anchor) or any(anchored[-1:]))
            elif isinstance(event, yaml.CollectionEndEvent):
                anchored.pop()
            elif isinstance(event, yaml.AliasEvent) and any(anchored[-1:]):
                _refuse(text, mark.index, "an alias within an anchor")
            if len(anchored) > depth:
                _refuse(text, mark.index, _TOO_DEEP)
        return yaml.load(text, loader)  # noqa: S506 - one of the safe loaders
    except DataError:
        raise
    except Exception as error:  # noqa: BLE001 - a tag that does not fit its value raises anything
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "a value can't be read"
        raise DataError(reason, mark and mark.line + 1, mark and mark.column + 1) from None
