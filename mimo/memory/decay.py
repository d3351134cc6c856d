"""The fading of a memory: a score to report, never a reason to delete.

score = importance * e^(-rate * days) * (1 + 0.1 * ln(1 + accesses)), clamped to 0..1
(the forgetting curve of the system that the `memory` tool comes from). `days` count from the last
access, or from the creation if there was none; `rate` is the setting `decay.rate`. They are 0 for a
memory that does not fade.

A memory fades to the floor (the setting `decay.floor`) in ln(score / floor) / rate days from now.
At the default rate, an unused memory of importance 0.5 is at risk after 161 days and forgotten
after 230, one of importance 0.7 after 195 and 264.
"""

from __future__ import annotations

import math
from collections.abc import Container
from datetime import datetime

from mimo.frozen import NamedTuple
from mimo.memory.model import Kind, Record, is_elsewhere

RATE = 0.01
"""Share lost a day, as the exponent's factor: the half-life is ln(2) / rate, 69 days."""
FLOOR = 0.05
"""A memory below this score counts as forgotten."""
AT_RISK = 0.1
"""A memory below this score is reported as at risk."""


class Use(NamedTuple):
    """Number of times that a memory was found or shown, and the last time (time zone aware)."""

    times: int
    last: datetime


def days_between(earlier: datetime, now: datetime) -> float:
    """Returns the days from `earlier` to `now`; a time in the future counts as now."""
    return max(0.0, (now - earlier).total_seconds() / 86_400)


def score(importance: float, days: float, *, accesses: int = 0, rate: float = RATE) -> float:
    """Returns the remaining strength, 0..1, after `days` without an access."""
    strength = importance * math.exp(-rate * days) * (1 + 0.1 * math.log1p(accesses))
    return min(1.0, max(0.0, strength))


def strength(
    importance: float,
    created: datetime,
    *,
    now: datetime,
    use: Use | None = None,
    rate: float = RATE,
) -> float:
    """Returns a memory's decay score at `now`, 0..1."""
    if use is None:
        return score(importance, days_between(created, now), rate=rate)
    days = days_between(max(use.last, created), now)
    return score(importance, days, accesses=use.times, rate=rate)


def days_until_forgotten(now_score: float, *, floor: float = FLOOR, rate: float = RATE) -> float:
    """Returns the days until the score reaches `floor`; infinite for `rate` 0."""
    if now_score <= floor:
        return 0.0
    return math.log(now_score / floor) / rate if rate else math.inf


_LASTING = frozenset(kind.value for kind in Kind if kind.protected)


def never_fades(
    type: str, path: str, *, protected: bool | None, is_part: bool, is_reviewed: bool
) -> bool:
    """Returns whether a memory of this type, at this path, keeps its strength.

    `protected` is what its file states, which decides. By default, decisions (superseded ones too:
    they are the reasons of the current one), checkpoints and edges last, and so do texts that mind
    did not write, which are documents outside `.mind/` and parts of ingested files, and texts that
    the user approved (`is_reviewed`). Writing a memory is not approving it: agents write, too.
    """
    if protected is not None:
        return protected
    return type in _LASTING or is_part or is_reviewed or is_elsewhere(path)


def is_protected(record: Record, reviewed: Container[str] = frozenset()) -> bool:
    """Returns whether the memory never fades; `reviewed` has the digests that the user approved."""
    memory, place = record.memory, record.place
    return never_fades(
        memory.type,
        place.path,
        protected=memory.protected,
        is_part=record.parent is not None,
        is_reviewed=place.approval in reviewed,
    )
