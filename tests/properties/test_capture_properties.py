"""A session is asked at most once, in any order of events, and a hook never fails."""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mimo.features.hooks.capture import LIST_BUDGET, listed
from mimo.features.hooks.command import respond
from mimo.memory.note import Note
from mimo.project.init import init
from tests.conftest import NOW

SESSIONS = ("s1", "s2")
FLAGS = st.fixed_dictionaries(
    {},
    optional={
        "stop_hook_active": st.booleans(),
        "status": st.sampled_from(["completed", "aborted"]),
        "loop_count": st.integers(0, 2),
        "background_tasks": st.sampled_from([None, [], [{"id": "b"}]]),
        "permission_mode": st.sampled_from(["default", "plan", None, 7]),
        "last_assistant_message": st.sampled_from(["", "It works", None]),
        "source": st.sampled_from(["startup", "compact", "resume", "user", "system"]),
        "turn_id": st.just("7"),
        "timestamp": st.just("2026-11-20T15:30:00Z"),
    },
)
WORK = {"tool_name": "Write", "tool_input": {"file_path": "a.py", "content": "x = 1"}}
NAMES = st.sampled_from(
    [
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "PostCompact"),
        *("BeforeAgent", "AfterAgent", "beforeSubmitPrompt", "stop", "afterAgentResponse"),
    ]
)
EVENTS = st.lists(
    st.tuples(st.sampled_from(SESSIONS), NAMES, FLAGS, st.booleans(), st.sampled_from("ab")),
    min_size=5,
    max_size=30,
)


def is_request(answer: dict[str, Any]) -> bool:
    specific = answer.get("hookSpecificOutput", {})
    decided = answer.get("decision") or specific.get("decision")
    return bool(decided or "followup_message" in answer)


@given(EVENTS)
def test_a_session_is_asked_at_most_once(
    events: list[tuple[str, str, dict[str, Any], bool, str]],
):
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        for project in "ab":
            Path(folder, project).mkdir()
            init(Path(folder, project), home, now=NOW)
        (home / "config.toml").write_text("[hook]\ncapture = 'on'\n", encoding="utf-8")
        asked: Counter[str] = Counter()
        for session, name, flags, of_cursor, project in events:
            root = str(Path(folder, project))
            where: dict[str, Any] = {"conversation_id": session, "workspace_roots": [root]}
            if not of_cursor:
                where = {"session_id": session, "cwd": root}
            event = {**where, "hook_event_name": name, "prompt": "build it", **WORK, **flags}
            answer = respond(json.dumps(event).encode(), "", {"MIND_HOME": str(home)})
            asked[session] += is_request(answer or {})

        assert max(asked.values()) <= 1


@given(
    st.lists(st.builds(Note, st.text(max_size=300), st.just("fact"), st.text(), st.text(),
                       st.just(NOW)), max_size=40)
)  # fmt: skip
def test_a_list_of_any_memories_stays_within_its_budget(notes: list[Note]):
    text = listed(notes)

    assert len(text) <= LIST_BUDGET
    assert all(line.startswith("- ") for line in text.splitlines())
    assert len(text.splitlines()) <= len({note.id for note in notes})


def test_a_session_that_works_is_asked_exactly_once(tmp_path: Path):
    home, root = tmp_path / "home", tmp_path / "shop"
    root.mkdir()
    init(root, home, now=NOW)
    (home / "config.toml").write_text("[hook]\ncapture = 'on'\n", encoding="utf-8")
    asked = 0
    for name in ["UserPromptSubmit", "PreToolUse", "Stop"] * 4:
        event = {"session_id": "s1", "cwd": str(root), "hook_event_name": name, "prompt": "go"}
        data = json.dumps(event | WORK).encode()
        asked += is_request(respond(data, "", {"MIND_HOME": str(home)}) or {})

    assert asked == 1
