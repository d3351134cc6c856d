"""What the index is told about a file."""

from dataclasses import dataclass

from mimo.domain.memory import Problem, Record
from mimo.domain.stamp import Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a look at one file found."""

    path: str
    stamp: Stamp | None
    """None where the file is gone."""
    records: tuple[Record, ...] = ()
    problem: Problem | None = None
