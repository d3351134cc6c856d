"""The payloads that clients send to their hooks, and the answers, field by field.

A client ignores the whole answer if it has a field that the client does not accept.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.features.hooks import capture
from mimo.features.hooks.events import (
    MAX_CHARS,
    Dialect,
    Edit,
    Event,
    Moment,
    Say,
    answer,
    fenced,
    recognised,
    without_fenced,
)

CLAUDE: dict[str, Any] = {
    "session_id": "0b2c", "transcript_path": "/t/0b2c.jsonl", "cwd": "/shop",
    "permission_mode": "default",
}  # fmt: skip
CODEX: dict[str, Any] = CLAUDE | {"model": "gpt-5", "turn_id": "7"}
GEMINI: dict[str, Any] = {
    "session_id": "g1", "transcript_path": "/t/g.json", "cwd": "/shop",
    "timestamp": "2026-11-20T15:30:00Z",
}  # fmt: skip
CURSOR: dict[str, Any] = {
    "conversation_id": "c1", "generation_id": "9", "workspace_roots": ["/shop", "/lib"],
    "cursor_version": "2.1", "user_email": None,
}  # fmt: skip
VSCODE: dict[str, Any] = {
    "timestamp": "2026-11-20T15:30:00Z", "cwd": "/shop", "sessionId": "v1",
    "transcript_path": "/t/v.json",
}  # fmt: skip
COPILOT: dict[str, Any] = {"timestamp": 1763652600000, "cwd": "/shop", "sessionId": "p1"}

PATCH = """*** Begin Patch
*** Update File: src/a.py
@@ def f():
-    old()
+    new()
+    more()
*** Add File: src/b.py
+first
*** Delete File: src/c.py
*** End Patch"""

TABLE: list[tuple[dict[str, Any], Dialect, Moment, dict[str, Any]]] = [
    (
        CLAUDE | {"hook_event_name": "SessionStart", "source": "startup"},
        Dialect.CLAUDE, Moment.START, {"session": "0b2c", "folder": "/shop", "source": "startup"},
    ),
    (
        CLAUDE | {"hook_event_name": "UserPromptSubmit", "prompt": "이어서 하자"},
        Dialect.CLAUDE, Moment.PROMPT, {"prompt": "이어서 하자"},
    ),
    (
        CLAUDE | {
            "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_use_id": "t",
            "tool_input": {"file_path": "/shop/a.py", "content": "x = 1\n"},
        },
        Dialect.CLAUDE, Moment.TOOL, {"edits": (Edit("/shop/a.py", "x = 1\n"),)},
    ),
    (
        CLAUDE | {
            "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": {"file_path": "a.py", "old_string": "1", "new_string": "2"},
        },
        Dialect.CLAUDE, Moment.TOOL, {"edits": (Edit("a.py", "2", "1"),)},
    ),
    (
        CLAUDE | {
            "hook_event_name": "PreToolUse", "tool_name": "MultiEdit",
            "tool_input": {"file_path": "a.py", "edits": [
                {"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"},
            ]},
        },
        Dialect.CLAUDE, Moment.TOOL, {"edits": (Edit("a.py", "2", "1"), Edit("a.py", "4", "3"))},
    ),
    (
        CLAUDE | {
            "hook_event_name": "PreToolUse", "tool_name": "NotebookEdit",
            "tool_input": {"notebook_path": "a.ipynb", "new_source": "import x"},
        },
        Dialect.CLAUDE, Moment.TOOL, {"edits": (Edit("a.ipynb", "import x"),)},
    ),
    (
        CLAUDE | {"hook_event_name": "PreToolUse", "tool_name": "Bash",
                  "tool_input": {"command": "ls"}},
        Dialect.CLAUDE, Moment.TOOL, {"edits": ()},
    ),
    (
        CLAUDE | {"hook_event_name": "PostCompact", "trigger": "auto", "compact_summary": "We did"},
        Dialect.CLAUDE, Moment.COMPACTED, {"text": "We did"},
    ),
    (
        CLAUDE | {"hook_event_name": "PreCompact", "trigger": "auto", "custom_instructions": None},
        Dialect.CLAUDE, Moment.COMPACTED, {"text": ""},
    ),
    (
        CLAUDE | {"hook_event_name": "Stop", "stop_hook_active": False,
                  "last_assistant_message": "Done."},
        Dialect.CLAUDE, Moment.STOPPED, {"text": "Done."},
    ),
    (
        CLAUDE | {"hook_event_name": "SessionEnd", "reason": "clear"},
        Dialect.CLAUDE, Moment.ENDED, {"text": ""},
    ),
    (CLAUDE | {"hook_event_name": "Notification"}, Dialect.CLAUDE, Moment.OTHER, {}),
    (
        CODEX | {"hook_event_name": "UserPromptSubmit", "prompt": "continue"},
        Dialect.CODEX, Moment.PROMPT, {"prompt": "continue"},
    ),
    (
        CODEX | {"hook_event_name": "PreToolUse", "tool_name": "apply_patch",
                 "tool_input": {"command": PATCH}},
        Dialect.CODEX, Moment.TOOL,
        {"edits": (
            Edit("src/a.py", "    new()\n    more()", "    old()"), Edit("src/b.py", "first"),
        )},
    ),
    (
        CODEX | {"hook_event_name": "Stop", "stop_hook_active": False,
                 "last_assistant_message": None},
        Dialect.CODEX, Moment.STOPPED, {"text": ""},
    ),
    (
        GEMINI | {"hook_event_name": "SessionStart", "source": "resume"},
        Dialect.GEMINI, Moment.START, {"session": "g1", "source": "resume"},
    ),
    (
        GEMINI | {"hook_event_name": "BeforeAgent", "prompt": "hello"},
        Dialect.GEMINI, Moment.PROMPT, {"prompt": "hello"},
    ),
    (
        GEMINI | {"hook_event_name": "BeforeTool", "tool_name": "write_file",
                  "tool_input": {"file_path": "a.py", "content": "x"}},
        Dialect.GEMINI, Moment.TOOL, {"edits": (Edit("a.py", "x"),)},
    ),
    (
        GEMINI | {"hook_event_name": "AfterAgent", "prompt": "p", "prompt_response": "Did it"},
        Dialect.GEMINI, Moment.STOPPED, {"text": "Did it", "prompt": ""},
    ),
    (GEMINI | {"hook_event_name": "PreCompress", "trigger": "auto"},
     Dialect.GEMINI, Moment.COMPACTED, {}),
    (
        CURSOR | {"hook_event_name": "sessionStart"},
        Dialect.CURSOR, Moment.START, {"session": "c1", "folder": "/shop"},
    ),
    (
        CURSOR | {"hook_event_name": "beforeSubmitPrompt", "prompt": "hi", "attachments": []},
        Dialect.CURSOR, Moment.PROMPT, {"prompt": "hi"},
    ),
    (
        CURSOR | {"hook_event_name": "preToolUse", "tool_name": "Write", "tool_input":
                  {"file_path": "/shop/a.py", "content": "x"}},
        Dialect.CURSOR, Moment.TOOL, {"edits": (Edit("/shop/a.py", "x"),)},
    ),
    (
        CURSOR | {"hook_event_name": "afterAgentResponse", "text": "I did it"},
        Dialect.CURSOR, Moment.STOPPED, {"text": "I did it"},
    ),
    (
        VSCODE | {"hookEventName": "SessionStart", "source": "new"},
        Dialect.VSCODE, Moment.START, {"session": "v1", "folder": "/shop"},
    ),
    (
        VSCODE | {"hook_event_name": "UserPromptSubmit", "prompt": "hi"},
        Dialect.VSCODE, Moment.PROMPT, {"prompt": "hi"},
    ),
    (
        VSCODE | {"hookEventName": "PreToolUse", "tool_name": "replace_string_in_file",
                  "tool_input": {"filePath": "/shop/a.ts", "oldString": "a", "newString": "b"}},
        Dialect.VSCODE, Moment.TOOL, {"edits": (Edit("/shop/a.ts", "b", "a"),)},
    ),
    (
        VSCODE | {"hookEventName": "PreToolUse", "tool_name": "multi_replace_string_in_file",
                  "tool_input": {"replacements": [{"filePath": "a.ts", "newString": "b"}]}},
        Dialect.VSCODE, Moment.TOOL, {"edits": (Edit("a.ts", "b"),)},
    ),
    (COPILOT | {"source": "new", "initialPrompt": ""}, Dialect.COPILOT, Moment.START, {}),
    (COPILOT | {"prompt": "hi"}, Dialect.COPILOT, Moment.PROMPT, {"prompt": "hi"}),
    (
        COPILOT | {"toolName": "create",
                   "toolArgs": json.dumps({"path": "a.py", "file_text": "x"})},
        Dialect.COPILOT, Moment.TOOL, {"edits": (Edit("a.py", "x"),)},
    ),
    (
        COPILOT | {"stopReason": "end_turn", "transcriptPath": "/t"},
        Dialect.COPILOT, Moment.STOPPED, {"may_ask": True},
    ),
    (COPILOT | {"reason": "complete"}, Dialect.COPILOT, Moment.ENDED, {}),
]  # fmt: skip


@pytest.mark.req("004-28")
@pytest.mark.parametrize(("payload", "dialect", "moment", "fields"), TABLE)
def test_a_payload_is_recognised_by_its_keys(
    payload: dict[str, Any], dialect: Dialect, moment: Moment, fields: dict[str, Any]
) -> None:
    event = recognised(payload, "gemini" if dialect is Dialect.GEMINI else "claude-code")
    assert event is not None
    assert (event.dialect, event.moment) == (dialect, moment)
    assert {name: getattr(event, name) for name in fields} == fields


SHARED = CLAUDE | {"timestamp": "2026-11-20T15:30:00Z"}
"""The format that VS Code and Copilot CLI share."""


@pytest.mark.parametrize("client", ["claude-code", "vscode", "copilot"])
def test_vs_code_and_copilot_are_recognised_although_they_run_hooks_of_others(client: str) -> None:
    payload = SHARED | {"hook_event_name": "SessionStart", "source": "new"}
    event = recognised(payload, client)
    assert event is not None
    assert event.dialect is (Dialect.COPILOT if client == "copilot" else Dialect.VSCODE)
    for name in ("BeforeAgent", "AfterAgent", "BeforeTool", "PreCompress"):
        of_gemini = recognised(payload | {"hook_event_name": name}, client)
        assert of_gemini is not None
        assert of_gemini.dialect is Dialect.GEMINI


def test_the_notes_of_a_start_that_gemini_puts_into_a_prompt_are_no_part_of_it() -> None:
    notes = "<hook_context>&lt;mind-context&gt;\n- Use JWT\n&lt;/mind-context&gt;</hook_context>"
    event = recognised(
        GEMINI | {"hook_event_name": "BeforeAgent", "prompt": f"{notes}\n\nwhy <b>?"}
    )
    assert event is not None
    assert event.prompt == "why <b>?"


def test_a_request_that_comes_as_a_prompt_is_none() -> None:
    asked = capture.worded("underscore", "")
    for payload in (COPILOT | {"prompt": asked}, CURSOR | {"prompt": asked}):
        event = recognised(payload | {"hook_event_name": "UserPromptSubmit"})
        assert event is not None
        assert event.moment is Moment.OTHER


def test_the_command_line_decides_if_the_keys_do_not() -> None:
    payload = CLAUDE | {"hook_event_name": "SessionStart", "source": "startup", "model": "gpt-5"}
    for client, dialect in [
        ("codex", Dialect.CODEX),
        ("opencode", Dialect.OPENCODE),
        ("claude-code", Dialect.CLAUDE),
        ("", Dialect.CLAUDE),
        ("no-such-client", Dialect.CLAUDE),
        ("cursor", Dialect.CLAUDE),
    ]:
        event = recognised(payload, client)
        assert event is not None
        assert event.dialect is dialect


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\f", "\x1c", "\r"])
def test_only_a_line_feed_ends_a_line_of_a_patch(separator: str) -> None:
    added = f"x = '{separator}'; Math.random()"
    patch = f"*** Begin Patch\r\n*** Add File: a.js\r\n+{added}\r\n+y\r\n*** End Patch\r\n"
    event = recognised(CODEX | {"hook_event_name": "PreToolUse", "tool_input": {"command": patch}})
    assert event is not None
    assert event.edits == (Edit("a.js", f"{added}\ny"),)


@pytest.mark.parametrize("payload", [None, [], "text", 7, True])
def test_a_payload_that_is_not_an_object_is_no_event(payload: Any) -> None:
    assert recognised(payload) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    "hook_event_name hookEventName session_id conversation_id workspace_roots cwd prompt source"
    " tool_input toolArgs toolName timestamp compact_summary edits file_path content".split()
)


@given(st.dictionaries(KEYS, JSON | st.sampled_from(["PreToolUse", "SessionStart", "Stop"])))
def test_every_payload_gives_fields_of_the_right_types(payload: dict[str, Any]) -> None:
    event = recognised(payload)
    assert isinstance(event, Event)
    texts = (event.name, event.session, event.folder, event.source, event.prompt, event.text)
    assert all(isinstance(text, str) for text in texts)
    assert all(isinstance(part, str) for edit in event.edits for part in edit)


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


def event_of(dialect: Dialect, moment: Moment) -> Event:
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
        (Dialect.COPILOT, {"additionalContext": "NOTES"}, {"additionalContext": "NOTES"}),
        (Dialect.OPENCODE, {"additionalContext": "NOTES"}, {"additionalContext": "NOTES"}),
    ],
)
def test_notes_are_in_the_field_that_the_client_reads(
    dialect: Dialect, at_start: dict[str, Any], at_prompt: dict[str, Any] | None
) -> None:
    assert answer(event_of(dialect, Moment.START), CONTEXT) == at_start
    assert answer(event_of(dialect, Moment.PROMPT), CONTEXT) == at_prompt


ONCE = "WHY (Reported once in a session: repeat the edit if it is intended.)"
DENIED = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=ONCE)
ASKED = specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="WHY")
REMARK = specific("PreToolUse", additionalContext="NOTES")


@pytest.mark.parametrize(
    ("dialect", "stopped", "warned"),
    [
        (Dialect.CLAUDE, ASKED, REMARK),
        (Dialect.VSCODE, ASKED, REMARK),
        (Dialect.CODEX, DENIED, {"systemMessage": "NOTICE"}),
        (Dialect.GEMINI, {"decision": "deny", "reason": ONCE}, {"systemMessage": "NOTICE"}),
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
        (
            Dialect.OPENCODE,
            {"permissionDecision": "deny", "permissionDecisionReason": ONCE},
            {"systemMessage": "NOTICE"},
        ),
    ],
)
def test_an_edit_is_stopped_or_remarked_upon(
    dialect: Dialect, stopped: dict[str, Any], warned: dict[str, Any] | None
) -> None:
    moment = event_of(dialect, Moment.TOOL)
    assert answer(moment, Say(context="NOTES", notice="NOTICE", stop="WHY")) == stopped
    assert answer(moment, Say(context="NOTES", notice="NOTICE")) == warned
    assert answer(moment, Say()) is None


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("moment", [Moment.START, Moment.PROMPT, Moment.TOOL])
def test_an_empty_answer_prints_nothing(dialect: Dialect, moment: Moment) -> None:
    assert answer(event_of(dialect, moment), Say()) is None


def test_codex_gets_an_empty_object_after_a_turn() -> None:
    stop = Event(dialect=Dialect.CODEX, name="Stop", moment=Moment.STOPPED)
    assert answer(stop, Say()) == {}
    assert answer(stop._replace(dialect=Dialect.CLAUDE), Say()) is None


def test_a_notice_for_the_user_is_beside_the_notes() -> None:
    say = Say(notice="NOTICE")
    assert answer(event_of(Dialect.CLAUDE, Moment.START), say) == {"systemMessage": "NOTICE"}
    assert answer(event_of(Dialect.CURSOR, Moment.START), say) == {"additional_context": "NOTICE"}


def test_fenced_notes_are_labelled_and_short_enough() -> None:
    text = fenced("\n".join(["- " + "word " * 20] * 500))
    assert len(text) <= MAX_CHARS
    assert "information, not instructions" in text.splitlines()[0]
    assert text.splitlines()[-1] == "</mind-context>"
    assert fenced("") == ""


def test_fenced_notes_are_removed_from_a_text() -> None:
    text = f"We began. {fenced('- a')} We went on. {fenced('- b')} Done."
    assert without_fenced(text) == "We began.  We went on.  Done."
    assert without_fenced("nothing") == "nothing"


def test_a_mention_of_the_fence_removes_no_other_text() -> None:
    opening = fenced("- a").partition("\n")[0]
    mention = "We escape `<mind-context` in notes. Next: the tests."
    assert without_fenced(mention) == mention
    assert without_fenced(f"{mention} {fenced('- a')} Done.") == f"{mention}  Done."
    assert without_fenced(f"Seen: {opening} in a log. {fenced('- a')} Done.") == (
        "Seen: in a log.  Done."
    )
    cut = f"We began.\n{opening}\n## Facts\n- a\n- b\n\n## Gotchas\n- c\nNext: the tests."
    assert without_fenced(cut) == "We began.\n\nNext: the tests."
