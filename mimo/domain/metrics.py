"""What the records of calls add up to: how many, how long, how often denied and redacted.

Durations go into buckets whose bounds grow by a fixed factor, so that a quantile is at most 5 %
off, whatever the durations are, and the buckets of two files can be added (Masson, Rim and Lee,
"DDSketch", VLDB 2019).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from math import ceil, log
from typing import Any

from mimo.domain.chain import Link

QUANTILES = (0.5, 0.9, 0.99)
_GROWTH = 1.1
_SMALLEST = 1e-6
"""Seconds; shorter calls count as this long."""

Labels = tuple[str, ...]


class Totals:
    """Counts since the first record that was counted."""

    def __init__(self) -> None:
        """Begin with nothing counted."""
        self.through = 0
        """The number of the last record that is counted."""
        self.requests: Counter[Labels] = Counter()
        """By tool, namespace and status."""
        self.denies: Counter[Labels] = Counter()
        """By tool and reason."""
        self.redactions: Counter[Labels] = Counter()
        """By tool."""
        self.seconds: defaultdict[Labels, float] = defaultdict(float)
        """The sum of all durations, by tool."""
        self.buckets: Counter[Labels] = Counter()
        """Calls, by tool and by the number of the bucket that their duration is in."""

    def add(self, link: Link) -> None:
        """Counts a record, unless it was counted already or is of something else than a call."""
        event = link.event
        if link.number <= self.through:
            return
        self.through = link.number
        if event.get("event_type") != "tool_call":
            return
        tool = str(event.get("tool"))
        self.requests[tool, str(event.get("namespace", "")), str(event.get("status"))] += 1
        if reason := event.get("reason"):
            self.denies[tool, str(reason)] += 1
        if redactions := event.get("redactions"):
            self.redactions[(tool,)] += int(redactions)
        seconds = float(event.get("seconds", 0.0))
        self.seconds[(tool,)] += seconds
        self.buckets[tool, str(_bucket(seconds))] += 1

    def tools(self) -> list[str]:
        """Returns every tool that was called, in the order of names."""
        return sorted({tool for tool, *_ in self.requests})

    def calls(self, tool: str, status: str | None = None) -> int:
        """Returns how often a tool was called, and perhaps ended so."""
        return sum(
            number
            for (name, _, ended), number in self.requests.items()
            if name == tool and status in (None, ended)
        )

    def latency(self, tool: str, quantile: float) -> float:
        """Returns the seconds within which such a part of a tool's calls was answered."""
        found = sorted((int(b), n) for (name, b), n in self.buckets.items() if name == tool)
        rank = quantile * sum(number for _, number in found)
        passed = 0
        for bucket, number in found:
            passed += number
            if passed >= rank:
                return _middle(bucket)
        return 0.0

    def as_json(self) -> dict[str, Any]:
        """Returns what `totals_of` takes."""
        kept = {name: [[*key, n] for key, n in getattr(self, name).items()] for name in _COUNTERS}
        return {"through": self.through, **kept}


_COUNTERS = ("requests", "denies", "redactions", "seconds", "buckets")


def totals_of(data: Mapping[str, Any]) -> Totals:
    """Returns totals from JSON. Raises `ValueError`, `TypeError` or `KeyError` for other JSON."""
    totals = Totals()
    totals.through = int(data["through"])
    for name in _COUNTERS:
        counter = getattr(totals, name)
        for *key, number in data[name]:
            counter[tuple(str(part) for part in key)] = number + 0
    return totals


def _bucket(seconds: float) -> int:
    """Returns the number of the bucket: its upper bound is the growth to that power."""
    return ceil(log(max(seconds, _SMALLEST)) / log(_GROWTH))


def _middle(bucket: int) -> float:
    """Returns what is equally far from both bounds of a bucket, relatively."""
    return float(2 * _GROWTH**bucket / (1 + _GROWTH))
