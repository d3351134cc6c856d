"""How a decision turned out: what that does to its confidence, and how its file tells it."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from mimo.errors import Invalid
from mimo.memory.model import Memory, Outcome, Section

DEFAULT_CONFIDENCE = 0.7
"""That of a decision of which nobody said how sure it is."""

_STEPS: Mapping[Outcome, float] = {
    Outcome.SUCCESS: 0.2,
    Outcome.PARTIAL: 0.1,
    Outcome.FAILED: -0.3,
}
_LASTING = timedelta(days=30)
_LASTING_BONUS = 0.1
_ENTRY = re.compile(r"- \d{4}-\d\d-\d\d \w+(?:, confidence [\d.]+ → [\d.]+)?(?:: (.*))?")


_WORDS: Mapping[str, Outcome | None] = {
    "success": Outcome.SUCCESS,
    "succeeded": Outcome.SUCCESS,
    "failed": Outcome.FAILED,
    "failure": Outcome.FAILED,
    "partial": Outcome.PARTIAL,
    "pending": None,
    "superseded": None,
}


def outcome_of(word: str) -> Outcome | None:
    """Returns the outcome that a word of any earlier version names; None for `pending`.

    Raises `Invalid` for any other word.
    """
    name = word.strip().casefold()
    if name not in _WORDS:
        raise Invalid(
            f"`{word}` is not an outcome",
            hint="outcomes are SUCCESS, FAILED, PARTIAL and PENDING",
            details={"field": "outcome"},
        )
    return _WORDS[name]


def confidence_after(memory: Memory, outcome: Outcome | None, now: datetime) -> float:
    """Returns the confidence (0..1) of a decision that turned out so.

    MAMA's rule: a success adds 0.2, and 0.1 more where it has lasted 30 days, a partial one adds
    0.1, a failure takes 0.3. An outcome that is already known, or open again, moves nothing.
    """
    before = DEFAULT_CONFIDENCE if memory.confidence is None else memory.confidence
    if outcome is None or outcome is memory.outcome:
        return before
    step = _STEPS[outcome]
    if outcome is Outcome.SUCCESS and now - memory.created >= _LASTING:
        step += _LASTING_BONUS
    return round(min(1.0, max(0.0, before + step)), 2)


def entry(
    outcome: Outcome | None,
    reason: str | None,
    *,
    on: datetime,
    before: float | None = None,
    after: float | None = None,
) -> str:
    """Returns the line that a memory's `Outcome` section gets; a reason may have several."""
    moved = f", confidence {before:g} → {after:g}" if before != after else ""
    told = f": {reason.strip()}" if reason and reason.strip() else ""
    text = f"- {on:%Y-%m-%d} {outcome or 'PENDING'}{moved}{told}"
    return text.replace("\n", "\n  ")


def with_entry(memory: Memory, line: str) -> dict[Section, str]:
    """Returns the memory's sections with `line` at the end of what is told of its outcome."""
    told = memory.sections.get(Section.OUTCOME)
    return {**memory.sections, Section.OUTCOME: f"{told}\n{line}" if told else line}


def reason(memory: Memory) -> str | None:
    """Returns why the memory turned out as it did: the last entry's reason, or all that is told."""
    told = memory.sections.get(Section.OUTCOME, "").strip()
    if not told:
        return None
    first, _, rest = told[_last_entry(told) :].partition("\n")
    match = _ENTRY.fullmatch(first)
    if match is None:
        return told
    continued = "\n".join(line.removeprefix("  ") for line in rest.splitlines())
    return f"{match[1] or ''}\n{continued}".strip() or None


def _last_entry(told: str) -> int:
    return told.rfind("\n- ") + 1


def warning(memory: Memory, *, claimed_by: str | None = None) -> str | None:
    """Returns what a reader must not miss about a memory: that it failed, or branches disagree.

    `claimed_by` names a memory that claims to supersede it, without effect: it is not approved.
    """
    told = []
    if memory.outcome is Outcome.FAILED:
        why = reason(memory)
        told.append(f"FAILED, do not repeat it: {why}" if why else "FAILED, do not repeat it")
    if memory.competing:
        names = ", ".join(dict.fromkeys(one.field for one in memory.competing))
        told.append(f"branches said different things of {names}; both stand in its file")
    if claimed_by:
        told.append(without_effect(claimed_by))
    return "; ".join(told) or None


def without_effect(claimed_by: str) -> str:
    """Returns what is said of a memory that an unapproved one claims to supersede."""
    return f"superseded by an unapproved memory, {claimed_by}, which has no effect"
