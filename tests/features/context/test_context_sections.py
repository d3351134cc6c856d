"""The sections for agents: their memories, the order and the number."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.features.context import Notes, as_line, rendered, sections, within
from mimo.memory.note import Note

NOW = datetime(2025, 12, 10, 9, 0, tzinfo=UTC)


def note(number: int = 0, kind: str = "decision", **fields: object) -> Note:
    """Returns a note that is `number` days old."""
    given_ = {"title": f"Title {number}", "text": f"Text {number}."} | fields
    created = NOW - timedelta(days=number)
    return Note(id=f"{kind}_{number}", kind=kind, created=created, **given_)  # type: ignore[arg-type]


def many(kind: str, **fields: object) -> list[Note]:
    return [note(number, kind, **fields) for number in range(9)]


@pytest.mark.req("003-35")
def test_a_decision_has_a_short_date_and_its_reason() -> None:
    jwt = note(title="Use JWT for auth", sections={"Reasoning": "No cookies on mobile. And more."})
    assert rendered(sections(Notes(decisions=[jwt]))) == (
        "## Recent Decisions\n- Use JWT for auth (Dec 10) - No cookies on mobile."
    )


def test_every_section_has_its_order_and_limit() -> None:
    notes = Notes(
        state=[note(0, "context", title="Goal: ship")],
        keys=[note(1, "fact", keep=True)],
        decisions=many("decision"),
        issues=many("issue"),
        gotchas=many("edge"),
        sessions=many("context"),
        checkpoint=note(0, "checkpoint", text="Half done", sections={"Next steps": "- [ ] Test"}),
        facts=many("fact"),
    )
    counted = {section.title: len(section.lines) for section in sections(notes)}
    assert counted == {
        "Project State": 1,
        "Key (Never Forget)": 1,
        "Recent Decisions": 5,
        "Open Loops": 3,
        "Gotchas": 5,
        "Facts": 5,
        "Session History": 5,
        "Continue From": 2,
    }


def test_a_failed_decision_is_marked_with_its_reason() -> None:
    outcome = "- 2025-12-01 SUCCESS\n- 2025-12-09 FAILED, confidence 0.7 → 0.4: Tokens leaked."
    failed = note(outcome="FAILED", sections={"Reasoning": "Fast", "Outcome": outcome})
    assert as_line(failed).text == "- Title 0 (Dec 10) - FAILED, do not repeat it: Tokens leaked."


def test_an_edge_comes_with_its_workaround_and_the_worst_first() -> None:
    mild = note(0, "edge", title="Mild", text="Mild", extra={"severity": "info"})
    bad = note(
        1,
        "edge",
        title="Bad",
        text="Bad\n\n## Workaround\nUse that",
        extra={"severity": "critical"},
    )
    logged = note(2, "edge", title="Logged", text="x", extra={"workaround": "Do it so"})
    assert rendered(sections(Notes(gotchas=[mild, bad, logged]))) == (
        "## Gotchas\n- Bad → Use that\n- Logged → Do it so\n- Mild"
    )


def test_open_loops_are_open_issues_and_old_provisional_decisions() -> None:
    notes = Notes(
        decisions=[note(0), note(20, title="Cache in memory for now"), note(3, title="MVP login")],
        issues=[
            note(1, "issue", status="resolved"),
            note(2, "issue", title="Uploads fail", status="blocked"),
        ],
    )
    loops = next(s for s in sections(notes) if s.title == "Open Loops")
    assert [line.text for line in loops.lines] == [
        "- Uploads fail (Dec 8) - blocked",
        "- Still for now? Cache in memory for now (Nov 20)",
    ]


def test_a_key_memory_is_not_repeated_as_a_decision() -> None:
    kept = note(0, keep=True)
    titles = [s.title for s in sections(Notes(keys=[kept], decisions=[kept]))]
    assert titles == ["Key (Never Forget)"]


def test_a_memory_of_any_type_is_one_line() -> None:
    fact = note(0, "fact", title="", text="Tea is served at four\nand at five")
    assert as_line(fact).text == "- Fact (Dec 10): Tea is served at four and at five"
    titled = note(0, "insight", title="Tea", text="# Tea\n\nAt four.")
    assert as_line(titled).text == "- Insight (Dec 10): Tea: At four."


def test_a_closed_issue_or_plan_begins_with_its_status() -> None:
    closed = note(0, "issue", title="", text="Tea is cold", status="Resolved")
    assert as_line(closed).text == "- Issue (Dec 10): (Resolved.) Tea is cold"
    plan = note(0, "plan", title="", text="Buy tea", status="done")
    assert rendered(sections(Notes(facts=[plan]))) == "## Facts\n- (Done.) Buy tea (Dec 10)"
    blocked = note(0, "issue", title="", text="Tea is cold", status="blocked")
    assert as_line(blocked).text == "- Issue (Dec 10): Tea is cold"


@pytest.mark.parametrize(
    ("title", "text", "line"),
    [
        ("the build is cached", "TIL the build is cached", "TIL the build is cached"),
        ("test the expiry", "Next: test the expiry", "Next: test the expiry"),
        ("mails are sent twice", "It turns out mails are **sent twice**!", None),
        ("the queue is drained twice", "MEMORY: the queue is drained twice", None),
        ("the *API* is slow", "**Learned:** the *API* is slow. Cache it", None),
        (f"It is {'very ' * 30}late", f"TIL: It is {'very ' * 30}late", None),
        ("Tea", "At teatime, four cups", "Tea: At teatime, four cups"),
        ("Build cache", "TIL the build is cached", "Build cache: TIL the build is cached"),
        ("🍵", "TIL the build is cached", "🍵: TIL the build is cached"),
    ],
)
def test_a_title_that_the_text_contains_is_not_repeated(title, text, line):
    fact = note(0, "fact", title=title, text=text)
    assert as_line(fact).text == f"- Fact (Dec 10): {line or text}"


@given(st.integers(min_value=0, max_value=2_000))
def test_every_budget_is_kept(budget: int) -> None:
    notes = Notes(
        decisions=many("decision"),
        gotchas=many("edge"),
        checkpoint=note(0, "checkpoint", text="Half done " * 30),
    )
    every = sections(notes)
    kept = within(every, budget)
    assert len(rendered(kept)) <= budget
    assert [s.title for s in kept] == [s.title for s in every if s.title in {k.title for k in kept}]


def test_the_checkpoint_has_priority_in_a_small_budget() -> None:
    notes = Notes(decisions=many("decision"), checkpoint=note(0, "checkpoint", text="Half done"))
    assert rendered(within(sections(notes), 50)) == "## Continue From\n- Dec 10: Half done"
