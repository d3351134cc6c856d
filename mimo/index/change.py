"""What the index is told about a file."""

from mimo.domain.memory import Problem, Record
from mimo.domain.stamp import Stamp
from mimo.frozen import frozen


@frozen
class Change:
    """What a look at one file found."""

    path: str
    stamp: Stamp | None
    """None where the file is gone."""
    records: tuple[Record, ...] = ()
    problem: Problem | None = None
