"""Telephone numbers in texts.

Any ten digits may be an id, so a number must be written as people write them: with a `+`, in groups
as in North America, after a zero and in groups, or after a word such as `phone`. The package
phonenumbers, if it is installed, decides which international numbers there can be.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

_INTERNATIONAL = re.compile(r"(?<![\w+])\+[1-9](?:[ ().-]{0,2}\d){6,14}(?!\d)")
_AMERICAN = re.compile(
    r"(?<![\w+./-])(?:\+?1[ .-]?)?(?:\([2-9]\d\d\) ?|[2-9]\d\d([ .-]))\d{3}[ .-]\d{4}"
    r"(?![\w-]|\.\d)"
)
_NATIONAL = re.compile(
    r"0(?<![\w+./,:-]0)[1-9]\d{0,4}[ /-]\d{3,4}(?:[ -]?\d{3,5}|\d{1,5})(?![\w/-]|[.,:]\d| \d)"
    r"|0(?<![\w+./,:-]0)(?<![0-9A-Fa-f]{2} 0)(?<![0-9A-Fa-f]{2}  0)[1-9](?:[ .]\d\d){4}"
    r"(?!\w|[.,:]\d| {1,2}[0-9A-Fa-f]{2}\b)"
)
"""Within a country: an area after a zero, then groups; or pairs, as in France."""
_NAMED = re.compile(
    r"(?i:\b(?:phone|telephone|tel|telefon|mobile|mobil|cell|handy|fax|whatsapp|sms))"
    r"(?i:[ _-]?(?:number|no|nr))?\.?[\"'`]{0,2}(?:\s{0,3}[:=]|\s{1,3}is)?\s{0,3}[\"'`]?"
    r"(\+?\(?\d(?:[ ()./-]{0,2}\d){6,14})(?![\w])"
)
_LEAST = 7


def phones(text: str) -> Iterator[tuple[int, int]]:
    """Yields where telephone numbers stand."""
    for match in _INTERNATIONAL.finditer(text):
        if not _is_fictional(match[0]) and _exists(match[0]):
            yield match.span()
    for match in _AMERICAN.finditer(text):
        if not _is_fictional(match[0]):
            yield match.span()
    for match in _NATIONAL.finditer(text):
        if 9 <= len(_digits(match[0])) <= 12:
            yield match.span()
    for match in _NAMED.finditer(text):
        if is_phone(match[1]):
            yield match.span(1)


def is_phone(text: str) -> bool:
    """Returns whether a text that is said to be a telephone number can be one."""
    digits = _digits(text)
    return _LEAST <= len(digits) <= 15 and len(set(digits)) > 1 and not _is_fictional(text)


def _digits(text: str) -> str:
    return "".join(one for one in text if one.isdigit())


def _is_fictional(text: str) -> bool:
    """Returns whether a number is one of those that films and manuals use, such as 555-0142."""
    digits = _digits(text)
    is_local = len(digits) in (7, 10, 11)
    return is_local and (digits[-7:-2] == "55501" or digits[-7:] == "5551212")


def _exists(text: str) -> bool:
    """Returns whether an international number can exist, as far as that is known here."""
    if text.startswith("+1"):
        return re.fullmatch(r"1[2-9]\d{9}", _digits(text)) is not None
    known = _library()
    if known is None:
        return len(_digits(text)) >= _LEAST + 1
    try:
        return bool(known.is_valid_number(known.parse(text, None)))
    except known.NumberParseException:
        return False


@cache
def _library() -> Any:
    try:
        import phonenumbers
    except ImportError:
        return None
    return phonenumbers
