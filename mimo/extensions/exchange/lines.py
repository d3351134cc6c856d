"""Memories as lines of JSON, the format of `mind export`; `mind import` reads it.

The first line describes the file, each other one is a memory, and the last one has their number,
so that a file that was cut is noticed. The keys of a memory are those of its header on disk, beside
its texts. docs/reference/rules/export.md describes the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from mimo.api import (
    Invalid,
    Kind,
    Memory,
    NamedTuple,
    Section,
    Version,
    codec,
    escaped,
    iso_utc,
    replace,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1
"""The version of the format. A reader refuses a later one."""

LINKS = "<!-- mind: links -->"
"""The line after the text of a memory in a Markdown export; the links below are for people."""

_REQUIRED = ("id", "type", "created")


class Target(NamedTuple):
    """A memory that a link leads to."""

    id: str
    type: Kind
    title: str


class Exported(NamedTuple):
    """A memory in an export, its secrets masked, and the facts that its file does not have."""

    memory: Memory
    private: bool = False
    untrusted: bool = False
    """True if its text was not approved on the exporting machine."""
    path: str = ""
    """Its file, relative to the project."""
    successor: str | None = None
    """The id of the memory that supersedes it, if that is exported, too."""
    is_past: bool = False
    """True if another memory supersedes it, exported or not."""
    targets: Mapping[str, Target] = MappingProxyType({})
    """The exported memories at the other end of its links, by `to` of the link."""


def header_line(project: str, *, user: bool = False) -> str:
    """Returns the first line; `user` marks the user's memory for all projects."""
    data: dict[str, Any] = {"kind": "mind", "format": FORMAT, "project": project}
    return _line(data | ({"user": True} if user else {}))


def memory_line(exported: Exported) -> str:
    """Returns the line of a memory."""
    return _line({"kind": "memory", **to_data(exported.memory), **_marks(exported)})


def end_line(memories: int) -> str:
    """Returns the last line."""
    return _line({"kind": "end", "memories": memories})


def _line(data: Mapping[str, Any]) -> str:
    # ASCII: no terminal, editor or line splitter changes it, and no build service obeys it. The
    # reader gets the same text.
    return escaped(json.dumps(data, separators=(",", ":"))) + "\n"


def _marks(exported: Exported) -> dict[str, Any]:
    marks: dict[str, Any] = {"private": True} if exported.private else {}
    return marks | ({"trust": "untrusted"} if exported.untrusted else {})


def to_data(memory: Memory) -> dict[str, Any]:
    """Returns a memory as JSON-like data, without defaults and empty fields."""
    texts: dict[str, Any] = {
        "content": memory.content,
        "sections": {name.value: text for name, text in memory.sections.items()},
        "competing": [{"field": rival.field, "text": rival.text} for rival in memory.competing],
        "extra": dict(memory.extra),
    }
    filled = {key: value for key, value in texts.items() if value or key == "content"}
    return codec.written(memory, memory.links) | {"created": iso_utc(memory.created)} | filled


def from_data(data: Mapping[str, Any]) -> Memory:
    """Returns the memory of a line. Raises `Invalid` with the reason.

    Unknown keys are ignored: a later version may add some.
    """
    for key in _REQUIRED:
        if not isinstance(data.get(key), str):
            raise Invalid(f"the memory has no `{key}`")
    content, extra = data.get("content"), data.get("extra", {})
    if not isinstance(content, str):
        raise Invalid("the memory has no `content`")
    if not isinstance(extra, dict):
        raise Invalid("`extra` must be an object")
    fields, wrong = codec.understand({key: data[key] for key in codec.KEYS if key in data})
    if wrong:
        raise Invalid(f"`{next(iter(wrong))}` has a value without a meaning")
    return Memory(
        **fields,
        content=content,
        sections=_sections(data.get("sections", {})),
        competing=tuple(map(_version, _list(data.get("competing", []), "competing"))),
        extra=extra,
    )


def _sections(value: Any) -> dict[Section, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise Invalid("`sections` must be an object of texts")
    try:
        return {Section(name): text for name, text in value.items()}
    except ValueError as error:
        names = ", ".join(Section)
        raise Invalid(f"`sections`: {error}", hint=f"sections are {names}") from None


def _version(value: Any) -> Version:
    parts = value if isinstance(value, dict) else {}
    field, text = parts.get("field"), parts.get("text")
    if not isinstance(field, str) or not isinstance(text, str):
        raise Invalid("`competing` must be a list of objects with `field` and `text`")
    return Version(field=field, text=text)


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Invalid(f"`{name}` must be a list")
    return value


# A file of a Markdown export.


def without_links(data: bytes) -> bytes:
    """Returns a file of a Markdown export without the links that were added below the text.

    A checkout may have converted its line ends.
    """
    texts = (data.rpartition(f"{end}{LINKS}{end}".encode())[0] for end in ("\n", "\r\n"))
    return next(filter(None, texts), data)


def without_additions(memory: Memory) -> Memory:
    """Returns the memory of such a file without the keys that were added to its header."""
    added = {"aliases": [memory.heading], "trust": "untrusted"}
    extra = {k: v for k, v in memory.extra.items() if k not in added or added[k] != v}
    return replace(memory, extra=extra)
