"""What clients are answered, to the letter: a field that a client does not know spoils the rest."""

from typing import Any

import pytest

from mimo.features.hooks.events import (
    MOST,
    Dialect,
    Event,
    Moment,
    Say,
    answer,
    fenced,
    without_fenced,
)

CONTEXT = Say(context="NOTES")
NAMES = {
    (Dialect.CLAUDE, Moment.START): "SessionStart",
    (Dialect.CLAUDE, Moment.PROMPT): "UserPromptSubmit",
    (Dialect.CLAUDE, Moment.TOOL): "PreToolUse",
    (Dialect.GEMINI, Moment.START): "SessionStart",
    (Dialect.GEMINI, Moment.PROMPT): "BeforeAgent",
    (Dialect.GEMINI, Moment.TOOL): "BeforeTool",
    (Dialect.CURSOR, Moment.START): "sessionStart",
    (Dialect.CURSOR, Moment.PROMPT): "beforeSubmitPrompt",
    (Dialect.CURSOR, Moment.TOOL): "preToolUse",
}


def event(dialect: Dialect, moment: Moment) -> Event:
    like = dialect if dialect in (Dialect.GEMINI, Dialect.CURSOR) else Dialect.CLAUDE
    return Event(dialect=dialect, name=NAMES[like, moment], moment=moment)


def specific(name: str, **fields: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, **fields}}


START = specific("SessionStart", additionalContext="NOTES")


@pytest.mark.parametrize(
    ("dialect", "at_start", "at_prompt"),
    [
        (Dialect.CLAUDE, START, specific("UserPromptSubmit", additionalContext="NOTES")),
        (Dialect.CODEX, START, specific("UserPromptSubmit", additionalContext="NOTES")),
        (Dialect.GEMINI, START, specific("BeforeAgent", additionalContext="NOTES")),
        (Dialect.CURSOR, {"additional_context": "NOTES"}, None),
        (Dialect.VSCODE, START, None),
        (Dialect.COPILOT, {"additionalContext": "NOTES"}, None),
    ],
)
def test_notes_go_where_the_client_takes_them(
    dialect: Dialect, at_start: dict[str, Any], at_prompt: dict[str, Any] | None
) -> None:
    assert answer(event(dialect, Moment.START), CONTEXT) == at_start
    assert answer(event(dialect, Moment.PROMPT), CONTEXT) == at_prompt


ONCE = "WHY (Said once in a session: if it is meant, do it again.)"
DENIED = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=ONCE)
ASKED = specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="WHY")
REMARK = specific("PreToolUse", additionalContext="NOTES")


@pytest.mark.parametrize(
    ("dialect", "stopped", "warned"),
    [
        (Dialect.CLAUDE, ASKED, REMARK),
        (Dialect.VSCODE, ASKED, REMARK),
        (Dialect.CODEX, DENIED, {"systemMessage": "TOLD"}),
        (Dialect.GEMINI, {"decision": "deny", "reason": ONCE}, {"systemMessage": "TOLD"}),
        (
            Dialect.CURSOR,
            {"permission": "deny", "user_message": ONCE, "agent_message": ONCE},
            None,
        ),
        (
            Dialect.COPILOT,
            {"permissionDecision": "deny", "permissionDecisionReason": ONCE},
            {"additionalContext": "NOTES"},
        ),
    ],
)
def test_a_tool_is_stopped_or_remarked_upon_as_the_client_can(
    dialect: Dialect, stopped: dict[str, Any], warned: dict[str, Any] | None
) -> None:
    moment = event(dialect, Moment.TOOL)
    assert answer(moment, Say(context="NOTES", notice="TOLD", stop="WHY")) == stopped
    assert answer(moment, Say(context="NOTES", notice="TOLD")) == warned
    assert answer(moment, Say()) is None


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("moment", [Moment.START, Moment.PROMPT, Moment.TOOL])
def test_where_there_is_nothing_to_say_nothing_is_printed(dialect: Dialect, moment: Moment) -> None:
    assert answer(event(dialect, moment), Say()) is None


def test_codex_is_given_an_empty_object_after_a_turn() -> None:
    stop = Event(dialect=Dialect.CODEX, name="Stop", moment=Moment.STOPPED)
    assert answer(stop, Say()) == {}
    assert answer(stop._replace(dialect=Dialect.CLAUDE), Say()) is None


def test_a_remark_for_the_person_goes_beside_the_notes() -> None:
    said = Say(notice="TOLD")
    assert answer(event(Dialect.CLAUDE, Moment.START), said) == {"systemMessage": "TOLD"}
    assert answer(event(Dialect.CURSOR, Moment.START), said) == {"additional_context": "TOLD"}


def test_a_fence_is_labelled_and_never_longer_than_clients_take() -> None:
    text = fenced("\n".join(["- " + "word " * 20] * 500))
    assert len(text) <= MOST
    assert "information, not instructions" in text.splitlines()[0]
    assert text.splitlines()[-1] == "</mind-context>"
    assert fenced("") == ""


def test_notes_that_were_put_in_are_not_learnt_again() -> None:
    text = f"We began. {fenced('- a')} We went on. {fenced('- b')} Done."
    assert without_fenced(text) == "We began.  We went on.  Done."
    assert without_fenced("cut <mind-context note") == "cut "
    assert without_fenced("nothing") == "nothing"
