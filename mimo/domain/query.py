"""What a list or a search may be narrowed to, and how a list is sorted."""

from datetime import datetime
from enum import StrEnum

from mimo.domain.memory import Kind, Outcome
from mimo.frozen import frozen


@frozen
class Filter:
    """Conditions that a memory must meet, all of them; the empty filter admits every memory."""

    types: frozenset[Kind] | None = None
    tags: frozenset[str] = frozenset()
    """Every one of these tags is on the memory, in upper or lower case."""
    topic: str | None = None
    """The whole topic, in any spelling of it."""
    outcomes: frozenset[Outcome] = frozenset()
    """Any of these; the empty set admits every memory."""
    shared: bool = False
    """Only what is not private to this machine."""
    approved: bool = False
    """Only what the user has approved on this machine."""
    in_force: bool = False
    """Only what nothing supersedes."""
    since: datetime | None = None
    until: datetime | None = None
    """Created in `[since, until)`."""


class Sort(StrEnum):
    """The order of a list."""

    RECENT = "recent"
    IMPORTANCE = "importance"
