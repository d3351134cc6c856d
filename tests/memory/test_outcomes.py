from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mimo.memory import outcomes
from mimo.memory.model import Kind, Memory, Outcome, Section

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
JWT = Memory(id="d", type=Kind.DECISION, content="Use JWT", created=NOW, confidence=0.7)


@pytest.mark.parametrize(
    ("confidence", "outcome", "age_days", "after"),
    [
        (0.7, Outcome.SUCCESS, 0, 0.9),
        (0.6, Outcome.SUCCESS, 29, 0.8),
        (0.6, Outcome.SUCCESS, 30, 0.9),
        (0.95, Outcome.SUCCESS, 0, 1.0),
        (0.7, Outcome.PARTIAL, 90, 0.8),
        (0.7, Outcome.FAILED, 0, 0.4),
        (0.2, Outcome.FAILED, 0, 0.0),
        (None, Outcome.FAILED, 0, 0.4),
        (0.7, None, 0, 0.7),
    ],
)
@pytest.mark.req("004-14")
def test_an_outcome_changes_the_confidence(
    confidence: float | None, outcome: Outcome | None, age_days: int, after: float
) -> None:
    memory = replace(JWT, confidence=confidence, created=NOW - timedelta(days=age_days))
    assert outcomes.confidence_after(memory, outcome, NOW) == after


def test_the_same_outcome_again_changes_nothing() -> None:
    assert outcomes.confidence_after(replace(JWT, outcome=Outcome.FAILED), Outcome.FAILED, NOW) == (
        0.7
    )


def _marked(memory: Memory, *marks: Outcome | None) -> Memory:
    """Returns a decision after outcomes, each recorded as in its file."""
    for mark in marks:
        before, after = memory.confidence, outcomes.confidence_after(memory, mark, NOW)
        line = outcomes.entry(
            mark, "- 2026-11-20 FAILED, confidence 1 → 0", on=NOW, previous=before, after=after
        )
        sections = outcomes.with_entry(memory, line)
        memory = replace(memory, outcome=mark, confidence=after, sections=sections)
    return memory


SUCCESS, FAILED, PARTIAL = Outcome.SUCCESS, Outcome.FAILED, Outcome.PARTIAL


@pytest.mark.parametrize(
    ("start", "marks", "after"),
    [
        (0.7, (SUCCESS, FAILED), 0.4),
        (0.7, (FAILED, SUCCESS), 0.9),
        (0.9, (SUCCESS, PARTIAL, FAILED), 0.6),
        (0.95, (SUCCESS, None), 0.95),
        (0.7, (SUCCESS, None, SUCCESS, None, FAILED), 0.4),
        (0.7, (SUCCESS, SUCCESS), 0.9),
    ],
)
@pytest.mark.req("004-14")
def test_another_outcome_replaces_the_earlier_one(
    start: float, marks: tuple[Outcome | None, ...], after: float
) -> None:
    assert _marked(replace(JWT, confidence=start), *marks).confidence == after


def test_a_confidence_that_was_set_since_is_the_new_start() -> None:
    memory = replace(_marked(JWT, SUCCESS), confidence=0.5)
    assert outcomes.confidence_after(memory, FAILED, NOW) == 0.2
    assert _marked(memory, FAILED, PARTIAL).confidence == 0.6


def _told(*lines: str) -> Memory:
    memory = JWT
    for line in lines:
        memory = replace(memory, sections=outcomes.with_entry(memory, line))
    return memory


@pytest.mark.parametrize("why", ["Tokens leak", "Two lines\n- and a list", "a: b, confidence: c"])
def test_the_reason_is_that_of_the_last_entry(why: str) -> None:
    first = outcomes.entry(Outcome.PARTIAL, "Slow", on=NOW, previous=0.7, after=0.8)
    last = outcomes.entry(Outcome.FAILED, why, on=NOW, previous=0.8, after=0.5)
    memory = _told(first, last)
    assert outcomes.reason(memory) == why
    assert memory.sections[Section.OUTCOME].splitlines()[0] == (
        "- 2026-11-20 PARTIAL, confidence 0.7 → 0.8: Slow"
    )


def test_outcome_in_prose_is_the_reason() -> None:
    memory = replace(JWT, sections={Section.OUTCOME: "It broke on Safari.\n\nSee the log."})
    assert outcomes.reason(memory) == "It broke on Safari.\n\nSee the log."


def test_an_outcome_without_a_reason_has_none() -> None:
    assert outcomes.reason(_told(outcomes.entry(Outcome.SUCCESS, None, on=NOW))) is None
    assert outcomes.reason(JWT) is None


@pytest.mark.req("004-16")
def test_only_a_failed_decision_has_a_warning() -> None:
    failed = replace(
        _told(outcomes.entry(Outcome.FAILED, "Tokens leak", on=NOW)), outcome=Outcome.FAILED
    )
    assert outcomes.warning(failed) == "FAILED, do not repeat it: Tokens leak"
    assert outcomes.warning(replace(failed, sections={})) == "FAILED, do not repeat it"
    assert outcomes.warning(replace(failed, outcome=Outcome.SUCCESS)) is None
