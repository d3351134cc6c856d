"""Text from memories and files, made harmless for terminals, build logs and JSON."""

from __future__ import annotations

import re
from functools import cache

from mimo.frozen import names_of, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SEQUENCES = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    # OSC and kin. A new one ends the last, as on a terminal; otherwise time would be quadratic.
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
"""Escape sequences of terminals."""

HIDDEN = (
    "\u061c\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e01ef"
)
"""Invisible and bidirectional characters, as a character class.

Tag characters and the variation selectors of the supplement can carry hidden bytes.
"""

_JOINING = "\u200c\u200d\ufe00-\ufe0f"
"""Joiners and variation selectors: one after a character is text, several are hidden data."""

RUNS = f"(?!\ufe0f\u200d(?![{_JOINING}]))[{_JOINING}]{{2,}}"
"""Several in a row, except the selector and joiner between two parts of an emoji."""

_CONTROLS = f"[\x00-\x08\x0b-\x1f\x7f-\x9f{HIDDEN}]"

_UNSEEN = (
    r"[\x00-\x1f\x7f-\x9f\xad\u034f\u115f\u1160\u17b4\u17b5\u2028\u2029\u2800\u3164\uffa0"
    rf"\ufff0-\ufff8\U0001d173-\U0001d17a\U000e01f0-\U000e0fff{HIDDEN}]|{RUNS}"
    rf"|(?<![^\x00-\x7f])[{_JOINING}]"
)
"""Characters without a shape, and joiners except those within a word or an emoji."""

_COMMANDS = r"(?mi)^([^\S\n]*)(?=::[\w-]+(?:[^\S\n][^\n]*?)?::)|(#)(?=#(?:vso|teamcity)?\[)"
"""Commands in a log, as GitHub, Azure Pipelines and TeamCity read them.

`::set-env name=x::y` at the start of a line; `##[set-env name=x]y` and `##vso[…]` anywhere.
"""

_HARMFUL = rf"[\x7f-\x9f{HIDDEN}]|{RUNS}|#(?=#(?:vso|teamcity)?\[)"


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Returns a pattern that is compiled on first use: most texts never need it."""
    return re.compile(pattern)


def clean(text: str) -> str:
    """Returns the text without escape sequences, control, bidirectional and hidden characters.

    Line ends and tabs stay.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        if text.isascii():
            return text
        # Variation selectors count as printable.
        return compiled(RUNS).sub("", compiled(f"[{HIDDEN}]").sub("", text))
    cleaned = compiled(_CONTROLS).sub("", compiled(SEQUENCES).sub("", text))
    return compiled(RUNS).sub("", cleaned)


def visible(text: str, keep: str = "") -> str:
    """Returns the text with each character that can't be seen as an escape, except those to keep.

    Unlike `clean`, it hides nothing: a person reads the whole text that is about to be used.
    """

    def escape(part: re.Match[str]) -> str:
        return part[0] if part[0] in keep else part[0].encode("unicode_escape").decode()

    return compiled(_UNSEEN).sub(escape, text)


def exposed(value: Any) -> Any:
    """Returns an unapproved value as it is shown before a person approves it.

    In its texts, the characters that can't be seen are escapes.
    """
    if isinstance(value, str):
        shown = visible(value, keep="\n\t")
        return value if shown == value else shown
    if isinstance(value, dict):
        return {exposed(key): exposed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(exposed, value))
    names = names_of(value)
    return replace(value, **{n: exposed(getattr(value, n)) for n in names}) if names else value


def storable(text: str) -> str:
    """Returns text without NUL and halves of surrogate pairs, which no memory can hold."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Returns the clean text on one line."""
    return " ".join(clean(text).splitlines())


def inert(text: str) -> str:
    """Returns the text with a backslash in each command for a build service."""
    if "::" not in text and "##" not in text:
        return text
    return compiled(_COMMANDS).sub(r"\1\2\\", text)


def in_mermaid(text: str) -> str:
    """Returns a line for a label of a Mermaid diagram, with the signs of its syntax as entities."""
    # A dash or a number with a full stop at the beginning would start a list.
    signs = r"[!-+:-@\[-^`{-~]|^-|(?<=^\d)\.|(?<=^\d\d)\."
    return re.sub(signs, lambda sign: f"#{ord(sign[0])};", text) or "#8203;"


def escaped(text: str) -> str:
    """Returns JSON text with harmful characters as escapes, which decode to the same text."""
    if text.isascii() and "\x7f" not in text and "##" not in text:
        return text
    return compiled(_HARMFUL).sub(lambda harmful: _escape(harmful[0]), text)


def _escape(text: str) -> str:
    from json import dumps

    return f"\\u{ord(text):04x}" if text.isascii() else dumps(text)[1:-1]
