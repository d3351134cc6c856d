"""Whether a value looks drawn at random or chosen as a password, or is a word that stands for one.

Whoever writes notes writes `password: <yours>` and `token = config.token` far more often than the
real thing, so a value must earn its place.
"""

import re
from collections import Counter
from itertools import pairwise
from math import log2

from mimo.privacy.model import compiled

_PLACEHOLDER = (
    r"[<>{}]|^[$(=|-]|^[@*#&~]{2}|^%\w{1,40}%$|\.\.\.|…|x{4}|X{4}|\*{3}|_{3}|0{6}|1234567|abcdef[^0-9]|abcdefgh|"
    r"(?i:example|sample|change_?me|your|placeholder|redacted|insert|dummy|replace|secrets?\.|"
    r"\benv\b|environ|getenv|foobar|lorem|ENC\[|op://|vault:|fake)"
)
_FEIGNED = r"(?i)s3cr|passw0rd"
"""How people spell a password that they make up for an example."""
_WORD = r"(?:[A-Za-z]{3,}|[A-Za-z]{1,2}(?![A-Za-z]))?\d{0,4}"
_HEX = r"[0-9a-f]+|[0-9A-F]+"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_PATH = r"(?:\.{0,2}|~)/[a-z.]+(?:/|$)|\.\w|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]{0,20}://|\w[\w.-]{0,60}\.[a-z]{2,5}$"
_OWN_ID = (
    r"[\w.-]{0,128}_\d{8}_[a-z2-7]{6}(?:\.\d{1,6})?"
    r"|(?:fact|observation|action|plan|decision|checkpoint|insight|context|issue|edge)_[a-z0-9_.-]{1,120}"
)
_TYPICAL = r"(?!(?i:passw|secret|admin|test|user|my|welcome))[A-Z][a-z]{2,20}\d{2,4}[!@#$%^&*]{1,3}"
"""A password as people choose them for each other: a word, a year and a sign."""
_ENOUGH = 96
"""So many characters of a value show whether it is a secret."""
_CASES = ("[a-z]", "[A-Z]", r"\d", r"[^A-Za-z0-9]")
_STOCK = frozenset(
    "password passwd pass pwd secret token user username admin root postgres mysql test guest "
    "default changeme letmein qwerty foo bar baz guest rabbit redis mongo mongodb "
    "api_key apikey key p password123 password1 12345 123456 12345678 pw abc123 "
    "passw0rd dev prod local localhost".split()
)


_SAYS_SO = re.compile(r"(?i)passw|pwd|secret|token|key")


def entropy(text: str) -> float:
    """Returns the bits a character, by how often each stands in the text (Shannon's entropy)."""
    size = len(text)
    counts = Counter(text).values()
    return -sum(n / size * log2(n / size) for n in counts)


def is_placeholder(value: str) -> bool:
    """Returns whether a value only shows where one belongs."""
    return bool(compiled(_PLACEHOLDER).search(value)) or value.lower() in _STOCK


def is_random(value: str) -> bool:
    """Returns whether the part of a token that differs from one to the next looks drawn."""
    return not _STANDS_FOR.search(value) and len(set(value)) >= min(8, 3 + len(value) // 5)


_STANDS_FOR = re.compile(r"(?i:example|x{5}|redacted|placeholder|your[_-]|1234567890|abcdefghij)")


def is_mixed(value: str) -> bool:
    """Returns whether small and large letters and digits take turns, as they do by chance alone."""
    kinds = [one.isdigit() + 2 * one.isupper() for one in value]
    return sum(one != other for one, other in pairwise(kinds)) >= 3


def is_secret(value: str, *, chosen: bool) -> bool:
    """Returns whether a value that is assigned to a telling name is a secret.

    `chosen` is for passwords, which people make up: they are shorter than what machines draw.
    """
    value = value[:_ENOUGH]
    if not any(map(str.isdigit, value)):
        return False
    if is_placeholder(value) or compiled(_FEIGNED).search(value):
        return False
    if chosen and compiled(_TYPICAL).fullmatch(value):
        return True
    value = value.rstrip("!")
    if len(value) < 8 or _is_named(value):
        return False
    if compiled(_HEX).fullmatch(value):
        return len(value) >= 32 and entropy(value) >= 3 and not value.isdigit()
    kinds = sum(bool(re.search(one, value)) for one in _CASES)
    if len(value) >= 20 and kinds >= 2 and entropy(value) >= 3.5:
        return True
    return chosen and kinds >= 3


def is_said(value: str) -> bool:
    """Returns whether words stand where a secret belongs, as in `docker-password`."""
    return bool(_SAYS_SO.search(value)) and _is_named(value)


def is_own_id(text: str) -> bool:
    """Returns whether a text is the id of a memory, or the end of one."""
    return compiled(_OWN_ID).fullmatch(text) is not None


def _is_named(value: str) -> bool:
    """Returns whether a value is a path, an address, or words as programs write them."""
    if compiled(_PATH).match(value) or compiled(_UUID).fullmatch(value) or is_own_id(value):
        return True
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", _spaced(value)) if part]
    return all(compiled(_WORD).fullmatch(part) for part in parts)


def _spaced(value: str) -> str:
    """Returns a name in camel case with its words apart."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", value)
