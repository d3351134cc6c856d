"""A session of a coding agent as its client stored it, and the interface of those who read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from mimo.api import NamedTuple, frozen

LONGEST_TEXT = 20_000
"""The most characters of a turn that are kept: more is a paste, of which both ends are."""


class Role(StrEnum):
    """The speaker of a turn."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    """A call of a tool, as one line."""


class Kind(StrEnum):
    """The way in which a session began."""

    MAIN = "main"
    SUBAGENT = "subagent"
    HEADLESS = "headless"
    """A run of a script: `claude -p`, `codex exec`."""


@frozen
class Turn:
    """The words of the user or the agent, or a call of a tool by the agent."""

    role: Role
    text: str
    """The words without the client's wrappings; of a call, the command or the tool's name."""
    at: datetime | None = None
    native_id: str = ""
    """The client's id of the record, which its copies in forks have, too; empty if it has none."""
    files: tuple[str, ...] = ()
    """The files that a call edited, as the client writes them."""
    error: str = ""
    """The last line of a failed call's output."""
    is_typed: bool = True
    """False for a user's turn that a program sent."""


@frozen
class Facts:
    """The facts of a session apart from its turns; empty if the client does not state them."""

    client: str
    native_id: str
    kind: Kind = Kind.MAIN
    cwd: str = ""
    """Its first working directory."""
    repository: str = ""
    """The main folder of a worktree, where the client names it."""
    branch: str = ""
    title: str = ""
    """The client's title; one that the user chose is preferred."""
    parent: str = ""
    """The id of the session that it was forked from, or whose sub-agent it is."""


class Source(NamedTuple):
    """A file that holds a session, or one session of a database."""

    path: Path
    key: str = ""
    """The session's id in a database that holds several."""
    size: int = 0
    mtime_ns: int = 0
    inode: int = 0


class Progress(NamedTuple):
    """The place up to which a source was read."""

    offset: int = 0
    """The bytes up to the end of the last whole line; 0 for a source that is always read whole."""
    state: str = ""
    """The reader's knowledge of the records before that place, as JSON."""


class Part(NamedTuple):
    """Some turns of a session, in order, and all that is known of it so far."""

    facts: Facts
    turns: Sequence[Turn]
    progress: Progress
    records: int = 0
    """The number of records that were read for this part."""
    unknown: int = 0
    """The number of them that have no known shape."""
    replaces: bool = True
    """True for the first part of a source that was read from its start."""


class Reader(Protocol):
    """A reader of the sessions of one client, without masking, projects or the index."""

    client: str
    """Its name in `mind install`: `claude-code`."""

    def sources(self, environment: Mapping[str, str], home: Path) -> Iterator[Source]:
        """Yields the sources by their states alone: none is opened but a database.

        Folders that are missing, and files that are not regular, yield none.
        """

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        """Yields the parts of a session after `since`. Nothing is ever written there.

        What has no known shape is skipped and counted, and a last line without an end waits. Raises
        `OSError` and `sqlite3.Error`, and `Unavailable` if a library is missing.
        """


class Unavailable(Exception):
    """A source needs a library that is not installed."""
