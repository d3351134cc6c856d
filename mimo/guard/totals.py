"""The totals of the audit log: numbers of calls, their durations, denials and redactions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from math import ceil, log
from typing import Any

from mimo.guard.chain import Link
from mimo.text.tool_names import underscored

QUANTILES = (0.5, 0.9, 0.99)
MOST_NAMESPACES = 200
"""Number of namespaces that are counted apart, the first ones: each session may have its own."""
OTHERS = "(others)"
"""The name under which the calls of all other namespaces are counted; no namespace has it."""

_GROWTH = 1.1
"""The ratio of the upper bounds of two neighbouring buckets of durations."""
_MAX_NUMBER = 1e12
"""The largest number that a record can have."""
_SMALLEST = 1e-6
"""Seconds; shorter calls count as this long."""
_COUNTERS = {"requests": 3, "denies": 2, "redactions": 1, "seconds": 1, "buckets": 2}
"""The sums in `Totals`, and how many labels each of their keys has."""
_LARGEST_BUCKET = ceil(log(_MAX_NUMBER) / log(_GROWTH))

Labels = tuple[str, ...]


class Totals:
    """The sums over all records: calls, durations, denials and redactions."""

    def __init__(self) -> None:
        """Starts with no records."""
        self.through = 0
        """The number of the last counted record."""
        self.requests: Counter[Labels] = Counter()
        """By tool, namespace and status."""
        self._namespaces: set[str] = set()
        self.denies: Counter[Labels] = Counter()
        """By tool and reason."""
        self.redactions: Counter[Labels] = Counter()
        """By tool."""
        self.seconds: defaultdict[Labels, float] = defaultdict(float)
        """The sum of all durations, by tool."""
        self.buckets: Counter[Labels] = Counter()
        """Calls, by tool and by the bucket of their duration."""

    def add(self, link: Link) -> None:
        """Counts a record. Ignored if it was counted already, or is not the record of a call."""
        event = link.event
        if link.number <= self.through:
            return
        self.through = link.number
        if event.get("event_type") != "tool_call":
            return
        tool = underscored(str(event.get("tool")))
        seconds, redactions = (
            number_of(event.get("seconds")),
            int(number_of(event.get("redactions"))),
        )
        namespace = self.counted_as(str(event.get("namespace", "")))
        self.requests[tool, namespace, str(event.get("status"))] += 1
        if reason := event.get("reason"):
            self.denies[tool, str(reason)] += 1
        if redactions:
            self.redactions[(tool,)] += redactions
        self.seconds[(tool,)] += seconds
        bucket = ceil(log(max(seconds, _SMALLEST)) / log(_GROWTH))
        self.buckets[tool, str(bucket)] += 1

    def counted_as(self, namespace: str) -> str:
        """Returns the namespace, or `OTHERS` if as many others have been counted already."""
        if namespace not in self._namespaces:
            if len(self._namespaces) >= MOST_NAMESPACES:
                return OTHERS
            self._namespaces.add(namespace)
        return namespace

    def tools(self) -> list[str]:
        """Returns the names of all tools that were called, sorted."""
        return sorted({tool for tool, *_ in self.requests})

    def calls(self, tool: str, status: str | None = None) -> int:
        """Returns the number of calls of a tool, of one status if it is given."""
        return sum(
            number
            for (name, _, ended), number in self.requests.items()
            if name == tool and status in (None, ended)
        )

    def latency(self, tool: str, quantile: float) -> float:
        """Returns the seconds within which the `quantile` of a tool's calls was answered.

        It is the value with the same relative distance to both bounds of its bucket.
        """
        buckets = sorted((int(b), n) for (name, b), n in self.buckets.items() if name == tool)
        rank = quantile * sum(number for _, number in buckets)
        passed = 0
        for bucket, number in buckets:
            passed += number
            if passed >= rank:
                return float(2 * _GROWTH**bucket / (1 + _GROWTH))
        return 0.0

    def as_json(self) -> dict[str, Any]:
        """Returns the totals as JSON, which `totals_of` reads."""
        sums = {name: [[*key, n] for key, n in getattr(self, name).items()] for name in _COUNTERS}
        return {"through": self.through, **sums}


def number_of(value: object) -> float:
    """Returns a number of a record, which may have come with a clone; 0 for any other value."""
    return value if isinstance(value, int | float) and abs(value) < _MAX_NUMBER else 0


def totals_of(data: Mapping[str, Any]) -> Totals:
    """Returns totals from JSON. Raises `ValueError`, `TypeError` or `KeyError` for other JSON."""
    totals = Totals()
    totals.through = int(number_of(data["through"]))
    for name, labels in _COUNTERS.items():
        counter = getattr(totals, name)
        for *key, number in data[name]:
            if len(key) != labels:
                raise ValueError(key)
            texts = [underscored(str(key[0])), *map(str, key[1:])]
            if name == "requests":
                texts[1] = totals.counted_as(texts[1])
            counter[tuple(texts)] += number_of(number)
    if any(abs(int(bucket)) > _LARGEST_BUCKET for _, bucket in totals.buckets):
        raise ValueError(totals.buckets)
    return totals
