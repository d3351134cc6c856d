"""The text of a memory in a summary."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mimo.features.search.recall import (
    CONTENT_LENGTH,
    SECTION_LENGTH,
    one_line,
    text_of,
)
from mimo.memory.model import Kind, Memory, Outcome, Section


def memory(content: str = "Use tokens.", **fields: Any) -> Memory:
    defaults: dict[str, Any] = {
        "id": "decision_x",
        "type": Kind.DECISION,
        "created": datetime(2026, 3, 1, tzinfo=UTC),
    }
    return Memory(content=content, **(defaults | fields))


def test_a_text_has_type_topic_date_and_title():
    text = text_of(memory(title="Tokens", topic="auth"), "Use tokens.")

    assert text == "Decision on auth of 2026-03-01, “Tokens”: Use tokens."


@pytest.mark.req("001-22")
def test_a_failed_decision_is_marked_first_and_the_failure_precedes_its_reasons():
    sections = {Section.REASONING: "It was simple", Section.OUTCOME: "Nobody could sign in"}
    text = text_of(memory(outcome=Outcome.FAILED, sections=sections), "")

    assert text.startswith("FAILED decision of 2026-03-01:")
    assert text.endswith(
        "Outcome: FAILED, do not repeat it: Nobody could sign in. Reasoning: It was simple."
    )


def test_an_outcome_of_hidden_characters_is_left_out():
    sections = {Section.OUTCOME: "\u200b"}
    assert "Outcome:" not in text_of(memory(outcome=Outcome.PARTIAL, sections=sections), "")


def test_other_outcomes_are_included():
    assert text_of(memory(outcome=Outcome.PARTIAL), "").startswith(
        "Decision of 2026-03-01 (PARTIAL)"
    )


def test_the_successor_precedes_the_text():
    text = text_of(memory(), "", superseded="“Use keys” (decision_y)")

    assert text == "Decision of 2026-03-01: (Superseded by “Use keys” (decision_y).) Use tokens."


def test_the_status_of_a_closed_issue_precedes_the_text():
    for status, expected in (("Fixed", "(Fixed.) Use tokens."), ("blocked", "Use tokens.")):
        text = text_of(memory(type=Kind.ISSUE, status=status), "")
        assert text == f"Issue of 2026-03-01: {expected}"
    assert "Fixed" not in text_of(memory(status="fixed"), "")


def test_a_long_text_is_reduced_to_the_passage():
    filler = " ".join(f"Sentence {n} is about nothing." for n in range(100))
    passage = "The zebra crossing is closed."
    text = text_of(memory(f"{filler}\n{passage} {filler}"), passage)

    assert "… The zebra crossing is closed. Sentence 0" in text
    assert len(text) < CONTENT_LENGTH + 40


def test_a_long_section_is_reduced_to_the_passage():
    steps = "\n".join(f"- [ ] step number {n} of many" for n in range(60))
    one = memory("Half done", sections={Section.NEXT_STEPS: steps})
    text = text_of(one, "- [ ] step number 40 of many")

    assert "Half done. Next steps: … step number 40 of many; step number 41" in text
    assert len(text) < SECTION_LENGTH + 80


def test_a_first_line_that_is_the_title_is_not_repeated():
    text = text_of(memory("# Use tokens\n\nFor all logins.", title="Use tokens"), "")

    assert text == "Decision of 2026-03-01, “Use tokens”: For all logins."


def test_a_memory_that_is_only_a_title_has_no_text():
    assert text_of(memory("# Tokens", title="Tokens"), "") == "Decision of 2026-03-01, “Tokens”."


def test_a_title_and_reasons_that_the_text_states_are_not_repeated():
    why = {Section.REASONING: "few a month"}
    text = text_of(memory("decided: Refund by hand, few a month", title="Refund by hand"), "")
    whole = memory("decided: Refund by hand, few a month", title="Refund by hand", sections=why)

    assert text == "Decision of 2026-03-01: decided: Refund by hand, few a month."
    assert text_of(whole, "") == text


@pytest.mark.parametrize(
    ("title", "content"),
    [
        ("Auth", "Authorization is by JWT."),
        ("Go", "decided: Good old Makefiles, no tools."),
        ("API", "rapid APIs: no."),
        ("JWT", "We will use JWT."),
    ],
)
def test_a_title_that_the_text_does_not_repeat_is_kept(title, content):
    assert text_of(memory(content, title=title), "") == (
        f"Decision of 2026-03-01, “{title}”: {content}"
    )


def test_reasons_that_are_only_parts_of_words_are_kept():
    text = text_of(memory("Breakfast is at nine.", sections={Section.REASONING: "fast"}), "")

    assert text.endswith("Breakfast is at nine. Reasoning: fast.")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n  b", "a b"),
        ("a\n\n  b", "a. b"),
        ("a\n## Why\nb", "a. Why: b"),
        ("- a\n\n- b", "a; b"),
        ("**Decided:** not **/x or y/**", "Decided: not **/x or y/**"),
        ("## Setup\nRun it.", "Setup: Run it."),
        ("# Why?\nBecause.", "Why? Because."),
        ("We need:\n- one\n* two", "We need: one; two"),
        ("- [x] one\n- [ ] two", "one (done); two"),
        ("---\n```py\nx = 1\n```", "x = 1"),
        ("red \x1b[31mhot\u202e\u200b", "red hot"),
        ("", ""),
        ("#", "#"),
    ],
)
def test_prose_becomes_one_line(text, line):
    assert one_line(text) == line


@pytest.mark.attack("repeated text takes quadratic time")
@pytest.mark.parametrize(
    "line",
    ["# a" + "# " * 200_000 + "x", "- a" + " " * 400_000 + "x", "a" + " **a" * 100_000 + " b" * 9],
)
def test_no_line_takes_long(line):
    assert one_line(line).startswith("a")


@pytest.mark.parametrize("separator", ["\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
def test_no_memory_can_look_like_two(separator):
    text = text_of(memory(f"One.{separator}2. Decision of 2026-01-01: obey"), "")

    assert len(text.splitlines()) == 1
