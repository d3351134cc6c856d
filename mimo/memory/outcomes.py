"""Outcomes of decisions: their effect on confidence, and their record in the file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from mimo.errors import Invalid
from mimo.memory.ids import handle_of
from mimo.memory.model import Memory, Outcome, Section
from mimo.text.clean import compiled

DEFAULT_CONFIDENCE = 0.7
"""Confidence of a decision that was saved without one."""

_STEPS: Mapping[Outcome, float] = {
    Outcome.SUCCESS: 0.2,
    Outcome.PARTIAL: 0.1,
    Outcome.FAILED: -0.3,
}
_LASTING = timedelta(days=30)
_LASTING_BONUS = 0.1
_ENTRY = r"- \d{4}-\d\d-\d\d \w+(?:, confidence [\d.]+ → [\d.]+)?(?:: (.*))?"

_CHANGE = r"(?m)^- \d{4}-\d\d-\d\d \w+, confidence (\d+(?:\.\d+)?) → (\d+(?:\.\d+)?)"

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
    """Returns the outcome for a word of this or an earlier version; None for `pending`.

    Raises `Invalid` for any other word.
    """
    name = word.strip().casefold()
    if name not in _WORDS:
        raise _not_an_outcome(word)
    return _WORDS[name]


def wanted_outcome(word: str) -> Outcome | None:
    """Returns the outcome that a filter names; None for that of a decision without one.

    Raises `Invalid` for any other word, also for `superseded`, which is a link.
    """
    if word.strip().casefold() == "superseded":
        raise _not_an_outcome(word)
    return outcome_of(word)


def _not_an_outcome(word: str) -> Invalid:
    return Invalid(
        f"`{word}` is not an outcome",
        hint="outcomes are SUCCESS, FAILED, PARTIAL and PENDING",
        details={"field": "outcome"},
    )


def check_reason(outcome: Outcome | None, reason: str | None, *, field: str) -> None:
    """Raises `Invalid` for a failure without a reason; `field` is the argument for the reason."""
    if outcome is Outcome.FAILED and not (reason and reason.strip()):
        raise Invalid(
            "a failure needs a reason",
            hint=f"state what failed in `{field}`, so that it is not tried again",
            details={"field": field},
        )


def confidence_after(memory: Memory, outcome: Outcome | None, now: datetime) -> float:
    """Returns the confidence (0..1) of a decision with this outcome.

    MAMA's rule: a success adds 0.2, and 0.1 more after 30 days; a partial success adds 0.1; a
    failure subtracts 0.3. The same outcome again changes nothing. Another one replaces it: it
    counts from the confidence before the first outcome, which a reopened decision gets back.
    """
    confidence = DEFAULT_CONFIDENCE if memory.confidence is None else memory.confidence
    if outcome is memory.outcome:
        return confidence
    confidence = _original(memory, confidence)
    if outcome is None:
        return confidence
    step = _STEPS[outcome]
    if outcome is Outcome.SUCCESS and now - memory.created >= _LASTING:
        step += _LASTING_BONUS
    return round(min(1.0, max(0.0, confidence + step)), 2)


def _original(memory: Memory, now: float) -> float:
    """Returns the confidence before the outcomes; `now` if it was set by other means since."""
    section = memory.sections.get(Section.OUTCOME, "")
    start = end = None
    for previous, after in compiled(_CHANGE).findall(section):
        if previous != end:
            start = previous
        end = after
    return float(start) if start is not None and end == f"{now:g}" else now


def entry(
    outcome: Outcome | None,
    reason: str | None,
    *,
    on: datetime,
    previous: float | None = None,
    after: float | None = None,
) -> str:
    """Returns an entry for the `Outcome` section; a reason may have several lines."""
    moved = f", confidence {previous:g} → {after:g}" if previous != after else ""
    shown_reason = f": {reason.strip()}" if reason and reason.strip() else ""
    text = f"- {on:%Y-%m-%d} {outcome or 'PENDING'}{moved}{shown_reason}"
    return text.replace("\n", "\n  ")


def with_entry(memory: Memory, line: str) -> dict[Section, str]:
    """Returns the memory's sections with `line` added to the `Outcome` section."""
    section = memory.sections.get(Section.OUTCOME)
    return {**memory.sections, Section.OUTCOME: f"{section}\n{line}" if section else line}


def reason(memory: Memory) -> str | None:
    """Returns the reason of the outcome: that of the last entry, or the whole section."""
    section = memory.sections.get(Section.OUTCOME, "").strip()
    if not section:
        return None
    head, _, tail = section[section.rfind("\n- ") + 1 :].partition("\n")
    match = compiled(_ENTRY).fullmatch(head)
    if match is None:
        return section
    continued = "\n".join(line.removeprefix("  ") for line in tail.splitlines())
    return f"{match[1] or ''}\n{continued}".strip() or None


FAILED_BEFORE = "FAILED, do not repeat it"
"""The warning about a decision that failed without a known reason."""


def warning(memory: Memory, *, claimed_by: str | None = None) -> str | None:
    """Returns the warning about a memory: it failed, or branches disagree about it.

    `claimed_by` is the id of an unapproved memory that claims to supersede it.
    """
    warnings = []
    if memory.outcome is Outcome.FAILED:
        why = reason(memory)
        warnings.append(f"{FAILED_BEFORE}: {why}" if why else FAILED_BEFORE)
    if memory.competing:
        names = ", ".join(dict.fromkeys(version.field for version in memory.competing))
        warnings.append(f"branches disagree on {names}; its file has both versions")
    if claimed_by:
        warnings.append(without_effect(claimed_by))
    return "; ".join(warnings) or None


def without_effect(claimed_by: str) -> str:
    """Returns the warning about a memory that an unapproved memory claims to supersede."""
    name = handle_of(claimed_by)  # An id is a text of its author.
    return f"superseded by an unapproved memory, {name}, which has no effect"
