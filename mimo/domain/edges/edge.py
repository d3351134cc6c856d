"""An edge, and the memory that holds it."""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from mimo.domain.patterns import LONGEST
from mimo.errors import Invalid

if TYPE_CHECKING:
    from mimo.domain.memory import Memory

WORKAROUND = "## Workaround"
"""The heading under which an edge's text says what to do."""

MOST_PATTERNS = 100
"""Keywords, or patterns, of one kind that an edge may have."""
_HEADING = re.compile(r"\\*## Workaround[ \t]*")
_CODE_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SHORTEST_SPAN = 4


class Severity(StrEnum):
    """How bad it is to run into an edge."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Returns 0 for the worst."""
        return [Severity.CRITICAL, Severity.WARNING, Severity.INFO].index(self)


class Detection(NamedTuple):
    """How an edge is recognised."""

    context: tuple[str, ...] = ()
    """Words for what a project is made with."""
    intent: tuple[str, ...] = ()
    """Words for what somebody is about to do."""
    code: tuple[str, ...] = ()
    """Regular expressions for code."""

    def __bool__(self) -> bool:
        """Returns whether there is anything to recognise it by."""
        return bool(self.context or self.intent or self.code)

    @classmethod
    def read(cls, given: Any) -> "Detection":
        """Returns what an argument says. Raises `Invalid` for anything that it can't be."""
        if not isinstance(given, Mapping):
            raise _wrong("must be an object", given)
        if unknown := sorted(str(key) for key in given if key not in ("context", "intent", "code")):
            raise _wrong(f"has no `{unknown[0]}`", given)
        return cls(**{name: _checked(name, words) for name, words in given.items()})


class Edge(NamedTuple):
    """What goes wrong, and what to do about it."""

    id: str
    title: str
    description: str
    workaround: str
    detection: Detection
    stack_tags: tuple[str, ...]
    severity: Severity
    verified_count: int = 0

    @property
    def literals(self) -> tuple[str, ...]:
        """Returns the code that the title of an edge without patterns names in backticks."""
        spans = () if self.detection.code else _CODE_SPAN.findall(self.title)
        return tuple(span.strip() for span in spans if len(span.strip()) >= _SHORTEST_SPAN)


class Told(NamedTuple):
    """As much of a memory as an edge is read from: to load all of one costs a hook too much."""

    id: str
    heading: str
    content: str
    extra: Mapping[str, Any]


def edge_of(memory: "Memory | Told") -> Edge:
    """Returns the edge that a memory tells of, whoever wrote it: what can't be read is left out."""
    description, workaround = _split(memory.content)
    extra = memory.extra
    if not workaround and (told := str(extra.get("workaround") or "")):
        # A line of the log says both; what is told apart stands beside it.
        workaround = told
        description = "\n".join([memory.heading, *memory.content.split("\n")[1:]])
    found = extra.get("detection")
    detection = Detection(
        **{
            name: _words(found.get(name))
            for name in ("context", "intent", "code")
            if isinstance(found, Mapping)
        }
    )
    level = str(extra.get("severity", "")).strip().lower()
    default = Severity.WARNING if detection else Severity.INFO
    count = extra.get("verified_count")
    return Edge(
        id=memory.id,
        title=memory.heading,
        description=description,
        workaround=workaround,
        detection=detection,
        stack_tags=_words(extra.get("stack_tags")),
        severity=Severity(level) if level in list(Severity) else default,
        verified_count=count if type(count) is int and count >= 0 else 0,
    )


def content_of(description: str, workaround: str) -> str:
    """Returns the text of the memory that holds an edge; `edge_of` reads it back."""
    told = "\n".join(f"\\{ln}" if _HEADING.fullmatch(ln) else ln for ln in description.split("\n"))
    return f"{told}\n\n{WORKAROUND}\n{workaround}" if workaround else told


def extra_of(
    detection: Detection, stack_tags: tuple[str, ...], severity: Severity
) -> dict[str, Any]:
    """Returns the header keys of the memory that holds an edge."""
    lists = {"context": detection.context, "intent": detection.intent, "code": detection.code}
    found = {name: list(words) for name, words in lists.items() if words}
    keys = {"severity": severity.value, "stack_tags": list(stack_tags), "detection": found}
    return {key: value for key, value in keys.items() if value}


def title_key(title: str) -> str:
    """Returns what two titles of the same edge have in common."""
    plain = unicodedata.normalize("NFKC", title).casefold()
    return " ".join(re.findall(r"\w+", plain)) or plain.strip()


def _split(content: str) -> tuple[str, str]:
    lines = content.split("\n")
    place = next((n for n, ln in enumerate(lines) if ln.rstrip() == WORKAROUND), len(lines))
    told = (
        ln[1:] if ln.startswith("\\") and _HEADING.fullmatch(ln) else ln for ln in lines[:place]
    )
    return "\n".join(told).strip("\n"), "\n".join(lines[place + 1 :]).strip("\n")


def _words(value: Any) -> tuple[str, ...]:
    """Returns the strings of a list, or of text with commas, as far as they can be used."""
    pieces = value.split(",") if isinstance(value, str) else value
    if not isinstance(pieces, list | tuple):
        return ()
    found = (str(piece).strip() for piece in pieces if isinstance(piece, str | int | float))
    return tuple(dict.fromkeys(word for word in found if word))[:MOST_PATTERNS]


def _checked(name: str, words: Any) -> tuple[str, ...]:
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise _wrong(f"`{name}` must be a list of strings", words)
    kept = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
    if len(kept) > MOST_PATTERNS:
        raise _wrong(f"`{name}` has more than {MOST_PATTERNS} items", len(kept))
    if long := next((word for word in kept if len(word) > LONGEST), None):
        raise _wrong(f"`{name}` has an item of more than {LONGEST} characters", long[:40])
    return kept


def _wrong(must: str, given: Any) -> Invalid:
    return Invalid(
        f"detection {must}, not `{str(given)[:60]}`",
        hint='it is {"context": […], "intent": […], "code": […]}, each a list of strings',
        details={"field": "detection"},
    )
