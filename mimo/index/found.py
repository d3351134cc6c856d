"""What a search is asked, and what it answers."""

from datetime import datetime
from typing import NamedTuple

from mimo.domain.memory import Record
from mimo.domain.query import Filter
from mimo.frozen import frozen


class Newer(NamedTuple):
    """What claims to supersede a memory; the ids are newest first."""

    superseded_by: tuple[str, ...] = ()
    claimed_by: tuple[str, ...] = ()
    """Memories that are not approved, while the older one is: what they claim has no effect."""

    @property
    def successor(self) -> str | None:
        """Returns the newest memory that supersedes it."""
        return next(iter(self.superseded_by), None)

    @property
    def claimant(self) -> str | None:
        """Returns the newest memory that claims to supersede it, without effect."""
        return next(iter(self.claimed_by), None)


@frozen
class Hit:
    """A memory that answers a query."""

    record: Record
    score: float
    """0..1; 0.3 parts related from unrelated."""
    passage: str
    """The part of its text that matches best."""
    line: int
    """The 1-based line of the file on which the passage begins."""
    newer: Newer
    embedded: bool
    """Whether it could be compared by meaning, and not by words alone."""


@frozen
class Found:
    """The answer to a query."""

    hits: tuple[Hit, ...]
    considered: int
    """How many memories passed the filter."""
    notice: str | None = None
    """Says so where the search was less than whole."""


class Request(NamedTuple):
    """What is looked for."""

    text: str
    filter: Filter
    limit: int
    threshold: float
    nearest: int
    """How many to answer with where none reaches the threshold."""
    now: datetime
