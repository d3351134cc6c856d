"""How times, ids and labels read, the same in every renderer."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mimo.commands.common import TrustLabel
from mimo.memory.model import Outcome
from mimo.rendering.screen import Part, bad, dim, good, warn

if TYPE_CHECKING:
    from mimo.commands.common import Remembered


def day(moment: datetime) -> str:
    """Returns the date in UTC, such as `2026-11-20`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def labels(
    *,
    outcome: Outcome | None = None,
    superseded_by: str | None = None,
    trust: TrustLabel = TrustLabel.TRUSTED,
    private: bool | None = None,
    competing: tuple[str, ...] | None = None,
) -> list[Part]:
    """Returns what a reader must not miss about a memory, each with a blank before it."""
    found: list[Part] = []
    if outcome is Outcome.FAILED:
        found.append(bad("FAILED"))
    elif outcome is not None:
        found.append(good(outcome) if outcome is Outcome.SUCCESS else warn(outcome))
    if superseded_by:
        found.append(warn(f"superseded by {superseded_by}"))
    if competing:
        found.append(warn(f"competes with {', '.join(competing)}"))
    if trust is TrustLabel.UNTRUSTED:
        found.append(warn("untrusted"))
    if private:
        found.append(dim("private"))
    return [part for label in found for part in ("  ", label)]


def row_labels(row: "Remembered") -> list[Part]:
    """Returns what a reader must not miss about a memory that a row tells all of."""
    return labels(
        outcome=row.outcome,
        superseded_by=row.superseded_by,
        trust=row.trust,
        private=row.private,
        competing=row.competing,
    )


def tagged(tags: tuple[str, ...]) -> str:
    """Returns tags as people write them: `#auth #api`."""
    return " ".join(f"#{tag}" for tag in tags)


def tally(numbers: Mapping[str, int]) -> str:
    """Returns how many there are of each kind, whose names have no plural: `untrusted 5`."""
    return ", ".join(f"{kind} {number:,}" for kind, number in numbers.items())


def count(number: int, one: str, many: str | None = None) -> str:
    """Returns a number with its noun: `1 memory`, `1,204 memories`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
