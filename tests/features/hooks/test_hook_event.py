"""What clients send to their hooks, as they send it: whose it is, and what happened."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.features.hooks.events import Dialect, Edit, Event, Moment, recognised

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
        Dialect.CLAUDE, Moment.TOOL, {"edits": (Edit("a.py", "2"),)},
    ),
    (
        CLAUDE | {
            "hook_event_name": "PreToolUse", "tool_name": "MultiEdit",
            "tool_input": {"file_path": "a.py", "edits": [
                {"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"},
            ]},
        },
        Dialect.CLAUDE, Moment.TOOL, {"edits": (Edit("a.py", "2"), Edit("a.py", "4"))},
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
        {"edits": (Edit("src/a.py", "    new()\n    more()"), Edit("src/b.py", "first"))},
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
        Dialect.VSCODE, Moment.TOOL, {"edits": (Edit("/shop/a.ts", "b"),)},
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
    (COPILOT | {"reason": "complete"}, Dialect.COPILOT, Moment.ENDED, {}),
]  # fmt: skip


@pytest.mark.req("004-28")
@pytest.mark.req("004-49")
@pytest.mark.parametrize(("told", "dialect", "moment", "fields"), TABLE)
def test_a_payload_is_recognised_by_its_keys(
    told: dict[str, Any], dialect: Dialect, moment: Moment, fields: dict[str, Any]
) -> None:
    event = recognised(told, "claude-code")
    assert event is not None
    assert (event.dialect, event.moment) == (dialect, moment)
    assert {name: getattr(event, name) for name in fields} == fields


def test_where_the_keys_don_t_tell_the_command_line_does() -> None:
    told = CLAUDE | {"hook_event_name": "SessionStart", "source": "startup", "model": "gpt-5"}
    for hint, dialect in [
        ("codex", Dialect.CODEX),
        ("claude-code", Dialect.CLAUDE),
        ("", Dialect.CLAUDE),
        ("no-such-client", Dialect.CLAUDE),
        ("cursor", Dialect.CLAUDE),
    ]:
        event = recognised(told, hint)
        assert event is not None
        assert event.dialect is dialect


@pytest.mark.parametrize("told", [None, [], "text", 7, True])
def test_what_is_no_object_is_no_hook_s(told: Any) -> None:
    assert recognised(told) is None


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
def test_no_payload_makes_it_fail_and_every_part_has_its_type(told: dict[str, Any]) -> None:
    event = recognised(told)
    assert isinstance(event, Event)
    texts = (event.name, event.session, event.folder, event.source, event.prompt, event.text)
    assert all(isinstance(text, str) for text in texts)
    assert all(isinstance(part, str) for edit in event.edits for part in edit)
