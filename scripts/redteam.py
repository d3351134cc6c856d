"""Runs the tests marked `attack` and prints, by kind, how many attempts were made and got through.

Usage: redteam.py [PYTEST ARGUMENT...]

A test counts as one attempt, or as the number that it records with
`record_property("tried", count)`. A test that fails counts as one that got through.
"""

import sys
from collections import Counter

import pytest


class Tally:
    """A pytest plugin that counts attempts by kind."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self.tried: Counter[str] = Counter()
        self.through: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts the report of one test."""
        properties = dict(report.user_properties)
        kind = properties.get("attack")
        if kind is None or report.skipped or (report.when != "call" and report.passed):
            return
        self.tried[str(kind)] += int(str(properties.get("tried", 1)))
        self.through[str(kind)] += report.failed

    def table(self) -> str:
        """Returns the counts as a table, one kind a line."""
        width = max(map(len, self.tried), default=4)
        rows = [f"{'attack':{width}}  {'tried':>6}  {'through':>7}"]
        for kind, tried in sorted(self.tried.items()):
            rows.append(f"{kind:{width}}  {tried:>6,}  {self.through[kind]:>7,}")
        total, through = self.tried.total(), self.through.total()
        rows.append(f"{'all':{width}}  {total:>6,}  {through:>7,}")
        return "\n".join(rows)


def main() -> int:
    """Returns pytest's exit status after printing the table."""
    tally = Tally()
    status = pytest.main(["-q", "-m", "attack", *sys.argv[1:]], plugins=[tally])
    print(f"\n{tally.table()}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
