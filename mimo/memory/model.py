"""Memories: types, fields, links, places, and the filters of lists and searches."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from mimo.errors import Invalid
from mimo.frozen import field, frozen
from mimo.text.phrases import heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def topic_key(topic: str) -> str:
    """Returns the key of a topic, the same for all its spellings.

    `Auth strategy`, `auth-strategy` and `auth_strategy` are one topic. The key of a text without
    a word is empty.
    """
    # The capital İ of Turkish becomes an i with a second dot.
    plain = unicodedata.normalize("NFKC", topic).casefold().replace("i\u0307", "i")
    return re.sub(r"[\s_-]+", "_", plain).strip("_")


def tag_key(tag: str) -> str:
    """Returns the key of a tag, the same in upper and lower case and in each form of Unicode."""
    return unicodedata.normalize("NFC", tag).casefold()


MAX_CONTENT_BYTES = 100_000
"""Largest content of one memory, in bytes of UTF-8."""

ID_PATTERN = r"[A-Za-z0-9_.-]{1,128}"


class Kind(StrEnum):
    """The type of a memory, which is also the folder that it lives in."""

    FACT = "fact"
    OBSERVATION = "observation"
    ACTION = "action"
    PLAN = "plan"
    DECISION = "decision"
    CHECKPOINT = "checkpoint"
    INSIGHT = "insight"
    CONTEXT = "context"
    ISSUE = "issue"
    EDGE = "edge"

    @property
    def folder(self) -> str:
        """Returns the folder under `.mind/`, such as `decisions`."""
        return f"{self.value}s"

    @property
    def category(self) -> Category:
        """Returns the `memory` tool's category that this type is shown as."""
        return _CATEGORIES[self]

    @property
    def protected(self) -> bool:
        """Returns whether such a memory never fades by default."""
        return self in (Kind.DECISION, Kind.CHECKPOINT, Kind.EDGE)


class Category(StrEnum):
    """The four categories of the `memory` and `ingest` tools: a projection of the type."""

    FACT = "fact"
    OBSERVATION = "observation"
    ACTION = "action"
    PLAN = "plan"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Returns every type that is shown as this category."""
        return tuple(kind for kind in Kind if _CATEGORIES[kind] is self)


_CATEGORIES = {
    Kind.FACT: Category.FACT,
    Kind.OBSERVATION: Category.OBSERVATION,
    Kind.ACTION: Category.ACTION,
    Kind.PLAN: Category.PLAN,
    Kind.DECISION: Category.PLAN,
    Kind.CHECKPOINT: Category.ACTION,
    Kind.INSIGHT: Category.OBSERVATION,
    Kind.ISSUE: Category.OBSERVATION,
    Kind.CONTEXT: Category.FACT,
    Kind.EDGE: Category.FACT,
}

KIND_ALIASES: Mapping[str, Kind] = MappingProxyType(
    {"learning": Kind.INSIGHT, "pitfall": Kind.EDGE, "gotcha": Kind.EDGE}
)


def kind_of(word: str) -> Kind:
    """Returns the type that `word` names, also in the plural; aliases are included.

    Raises `Invalid` for any other word.
    """
    name = word.strip().lower().removesuffix("s")
    try:
        return KIND_ALIASES.get(name) or Kind(name)
    except ValueError:
        types = ", ".join([*Kind, *KIND_ALIASES])
        raise Invalid(f"`{word}` is not a type of memory", hint=f"types are {types}") from None


class Outcome(StrEnum):
    """The outcome of a decision."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    PARTIAL = "PARTIAL"


class Section(StrEnum):
    """The fixed headings for long prose in the body of a memory."""

    REASONING = "Reasoning"
    OUTCOME = "Outcome"
    OPEN_FILES = "Open files"
    NEXT_STEPS = "Next steps"


SUPERSEDES = "supersedes"
"""The type of the link from a newer memory to the one that it replaces."""


@frozen
class Link:
    """A typed link from the memory that holds it to another one."""

    to: str
    type: str = "relates_to"
    given: str | None = None
    """The words that were given for the type, where they differ (`as` in the file)."""
    confidence: float | None = None
    by: str | None = None


@frozen
class Version:
    """The value of a field on another branch, kept by a merge until the user resolves it."""

    field: str
    """A key of the header, or `the text`, `the section Reasoning`."""
    text: str
    """The value as the header writes it (`null` where it was removed), or the text."""


@frozen
class Memory:
    """A memory."""

    id: str
    type: Kind
    content: str
    """The text without the fixed sections, stripped of surrounding blank lines."""
    created: datetime
    """Time zone aware, UTC."""
    title: str | None = None
    """From the header or the first heading; None if the file has neither."""
    topic: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    confidence: float | None = None
    outcome: Outcome | None = None
    category: str | None = None
    """An insight's own category."""
    source: str | None = None
    status: str | None = None
    by: str | None = None
    protected: bool | None = None
    """None if the type decides."""
    links: tuple[Link, ...] = ()
    sections: Mapping[Section, str] = field(default_factory=dict)
    competing: tuple[Version, ...] = ()
    """Versions of fields that a merge could not resolve."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Header keys that mind does not know, as plain JSON-like data."""

    @property
    def heading(self) -> str:
        """Returns the title, or the first line of the content cut to 80 characters."""
        return heading(self.title, self.content, self.topic or self.id)

    @property
    def progress(self) -> str | None:
        """Returns the status of an issue or a plan; None for other types."""
        return self.status if self.type in (Kind.ISSUE, Kind.PLAN) else None

    @property
    def headed_texts(self) -> dict[str, str]:
        """Returns the texts after the content by their headings, and the unresolved versions."""
        texts = {name.value: text for name, text in self.sections.items()}
        for version in self.competing:
            heading = f"Competing: {version.field}"
            texts[heading] = "\n\n".join(filter(None, (texts.get(heading), version.text)))
        return texts

    @property
    def text(self) -> str:
        """Returns all of its prose: the content, then each section under its heading."""
        parts = [self.content, *(f"## {name}\n{text}" for name, text in self.sections.items())]
        parts += [f"## Competing: {rival.field}\n{rival.text}" for rival in self.competing]
        return "\n\n".join(filter(None, parts))


@frozen
class Place:
    """The place of a memory on disk."""

    path: str
    """Relative to the project's root, with `/`."""
    line: int
    """The 1-based line on which the content begins."""
    digest: str
    """SHA-256 of the file's bytes, in hex."""
    private: bool = False
    owned: bool = True
    """True if mind wrote the file (it has our header), so that commands may change it."""
    approval: str = ""
    """The name by which the text is approved, see `memory.approval`; empty if nothing can be."""

    @property
    def elsewhere(self) -> bool:
        """Returns whether the file is a document of the project, outside `.mind/`."""
        return is_elsewhere(self.path)


SUFFIXES = (".md", ".markdown", ".mdown", ".mkd", ".mdc", ".mdx")
"""Endings of the names of Markdown files, in lower case."""
LOG = ".mind/MEMORY.md"
"""The user's log: many memories, line by line, that mind reads and never writes."""


def is_elsewhere(path: str) -> bool:
    """Returns whether a path is that of a document of the project, outside `.mind/`."""
    return not path.startswith(".mind/")


@frozen
class Record:
    """A memory together with its place; a part of a longer text knows its parent."""

    memory: Memory
    place: Place
    parent: str | None = None
    position: int = 0
    """0-based place among the parts of the same parent."""

    @property
    def origin(self) -> str:
        """Returns the path of the file that a chunk is from, relative to the project."""
        return str(self.memory.extra["source_file"])


@frozen
class Problem:
    """A file that could not be read as a memory, and the reason."""

    path: str
    line: int | None
    reason: str


def check_content(content: str) -> str:
    """Returns `content`; raises `Invalid` if it is empty or too long."""
    if not content.strip():
        raise Invalid("content is empty", hint="say what should be remembered")
    size = len(content.encode("utf-8", "surrogatepass"))  # Files refuse halves of pairs.
    if size > MAX_CONTENT_BYTES:
        raise Invalid(
            f"content has {size:,} bytes; a memory holds {MAX_CONTENT_BYTES:,} at most",
            hint="split it into several memories",
            details={"size": size, "max": MAX_CONTENT_BYTES},
        )
    return content


def check_unit(name: str, value: float) -> float:
    """Returns `value`; raises `Invalid` naming the field unless it is in 0..1."""
    if not 0 <= value <= 1:
        # An integer may be too large for a float, or to be printed.
        detail = f", not {value:g}" if abs(value) < 1e300 else ""
        raise Invalid(f"{name} must be between 0 and 1{detail}", details={"field": name})
    return float(value)


@frozen
class Filter:
    """Conditions that a memory must meet, all of them; the empty filter admits every memory."""

    ids: frozenset[str] | None = None
    """Any of these ids; a database takes some ten thousand."""
    types: frozenset[Kind] | None = None
    tags: frozenset[str] = frozenset()
    """Every one of these tags, or one below it, is on the memory, in upper or lower case."""
    topic: str | None = None
    """The whole topic, in any spelling of it."""
    outcomes: frozenset[Outcome | None] = frozenset()
    """Any of these, None for a decision without one; the empty set admits every memory."""
    shared: bool = False
    """Only memories that are not private to this machine."""
    private: bool = False
    """Only memories that are private to this machine."""
    approved: bool = False
    """Only memories that the user has approved on this machine."""
    unapproved: bool = False
    """Only memories that the user has not approved on this machine."""
    current: bool = False
    """Only memories that are not superseded."""
    whole: bool = False
    """Only memories in `.mind/`, without the parts of ingested files."""
    since: datetime | None = None
    until: datetime | None = None
    """Created in `[since, until)`."""


class Sort(StrEnum):
    """The order of a list."""

    RECENT = "recent"
    IMPORTANCE = "importance"
