"""Counts of a server's calls and their durations, as text for Prometheus.

They hold names of tools and codes of errors only: no project, no user, and no text of a memory.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from threading import Lock

from mimo.text.tool_names import underscored

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds, in seconds, of the counted durations."""


class Counts:
    """The calls of one process; may be used by several threads."""

    def __init__(self) -> None:
        """Starts with no calls."""
        self._lock = Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, tool: str, result: str, seconds: float) -> None:
        """Counts a call of a tool that exists."""
        tool = underscored(tool)
        with self._lock:
            self._calls[tool, result] += 1
            self._seconds[tool] += seconds
            for bound in BUCKETS:
                if seconds <= bound:
                    self._buckets[tool, bound] += 1

    def text(self, gauges: Mapping[str, tuple[str, int]]) -> str:
        """Returns the counts, and gauges with their descriptions, in the format of Prometheus."""
        with self._lock:
            lines = list(self._lines())
        for name, (help_, value) in gauges.items():
            lines += [*_head(name, "gauge", help_), f"{name} {value}"]
        return "\n".join(lines) + "\n"

    def _lines(self) -> Iterator[str]:
        name = "mind_calls_total"
        help_ = "Tool calls by tool and result: ok or the code of an error"
        yield from _head(name, "counter", help_)
        for (tool, result), number in sorted(self._calls.items()):
            yield f'{name}{{tool="{tool}",result="{result}"}} {number}'
        name = "mind_call_seconds"
        yield from _head(name, "histogram", "Duration of tool calls")
        for tool in sorted(self._seconds):
            total = sum(number for (each, _), number in self._calls.items() if each == tool)
            for bound in BUCKETS:
                count = self._buckets[tool, bound]
                yield f'{name}_bucket{{tool="{tool}",le="{bound:g}"}} {count}'
            yield f'{name}_bucket{{tool="{tool}",le="+Inf"}} {total}'
            yield f'{name}_sum{{tool="{tool}"}} {self._seconds[tool]:.6f}'
            yield f'{name}_count{{tool="{tool}"}} {total}'


def _head(name: str, kind: str, help_: str) -> tuple[str, str]:
    return f"# HELP {name} {help_}", f"# TYPE {name} {kind}"
