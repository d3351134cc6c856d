"""A whole day with hooks, as a client runs them: the transcript of what they say."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DECIDED = [
    "save",
    "decision",
    "auth_strategy",
    "Use JWT with refresh tokens",
    "No cookies on phones.",
]
EDGE = """---
id: edge_guessable
type: edge
title: Guessable tokens
severity: critical
detection: {code: ['Math\\.random']}
---
Tokens of `Math.random()` can be guessed.

## Workaround
Use crypto.randomUUID.
"""
SUMMARY = (
    "The login moved from sessions to JWT with refresh tokens. The rotation test is still red: the "
    "clock of the fake provider runs backwards. Tomorrow: inject the clock, then remove the old "
    "middleware and its migration."
)


@pytest.fixture
def day(tmp_path: Path, project: Path) -> "Day":
    return Day(project)


class Day:
    """A project, a client and the command line."""

    def __init__(self, project: Path) -> None:
        self.project = project
        kept = {name: os.environ[name] for name in ("MIND_HOME", "HOME", "PATH")}
        self.environ = kept | {"PYTHONPATH": str(ROOT)}

    def run(self, *words: str, data: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mimo", *words],
            input=data,
            capture_output=True,
            encoding="utf-8",
            cwd=self.project,
            env=self.environ,
            check=True,
        )
        return done.stdout

    def hook(self, session: str, name: str, **fields: Any) -> dict[str, Any]:
        event = {"session_id": session, "cwd": str(self.project), "hook_event_name": name} | fields
        output = self.run("hook", "claude-code", data=json.dumps(event))
        answer: dict[str, Any] = json.loads(output) if output else {}
        specific: dict[str, Any] = answer.get("hookSpecificOutput", {})
        return specific

    def notes(self, session: str, name: str, **fields: Any) -> list[str]:
        text = self.hook(session, name, **fields).get("additionalContext", "")
        return [line for line in text.splitlines() if line and not line.startswith("<")]


def write(name: str, code: str) -> dict[str, Any]:
    return {"tool_name": "Write", "tool_input": {"file_path": name, "content": code}}


@pytest.mark.req("004-28")
def test_a_day_is_remembered_on_the_next_morning(day: Day) -> None:
    # Yesterday left a checkpoint, and the project has an edge.
    day.run("save", "checkpoint", "Compared sessions with JWT", "--next", "Decide on the auth")
    edges = day.project / ".mind" / "edges"
    edges.mkdir(exist_ok=True)
    (edges / "edge_guessable.md").write_text(EDGE, encoding="utf-8")
    day.run("status")

    # The session starts.
    start = day.notes("monday", "SessionStart", source="startup")
    assert start[:2] == ["## Gotchas", "- Guessable tokens → Use crypto.randomUUID."]
    assert start[2] == "## Continue From"
    assert start[3].endswith(": Compared sessions with JWT")
    assert start[4] == "- Next: Decide on the auth"

    # Resuming adds nothing: the start had it.
    assert day.notes("monday", "UserPromptSubmit", prompt="어제 작업 이어서 하자") == []
    state = (day.project / ".mind" / ".local" / "exposure.json").read_text(encoding="utf-8")
    assert json.loads(state)["tools"][0] == "load/checkpoint"

    # A decision is made; a later session of the same day gets it with a prompt.
    day.run(*DECIDED)
    notes = day.notes("other", "UserPromptSubmit", prompt="which auth strategy do we use?")
    assert len(notes) == 1
    assert "Use JWT with refresh tokens" in notes[0]

    # A risky edit is stopped by the edge, once.
    risky = write("src/token.js", "export const token = () => Math.random()\n")
    stopped = day.hook("monday", "PreToolUse", **risky)
    assert stopped["permissionDecision"] == "ask"
    assert "Guessable tokens → Use crypto.randomUUID." in stopped["permissionDecisionReason"]
    assert day.hook("monday", "PreToolUse", **risky) == {}
    assert day.hook("monday", "PreToolUse", **write("a.js", "crypto.randomUUID()\n")) == {}

    # The conversation is compacted: its summary is kept, and its notes are given again.
    day.hook("monday", "PostCompact", trigger="auto", compact_summary=SUMMARY)
    again = day.notes("monday", "SessionStart", source="compact")
    assert "- Next: Decide on the auth" in again
    day.hook("monday", "SessionEnd", reason="prompt_input_exit")
    private = list((day.project / ".mind" / "private").rglob("context_*.md"))
    assert len(private) == 1
    ignored = (day.project / ".mind" / ".gitignore").read_text(encoding="utf-8")
    assert "private/" in ignored.splitlines()

    # The next morning.
    morning = day.notes("tuesday", "SessionStart", source="startup")
    assert any("Use JWT with refresh tokens" in line for line in morning)
    assert any("The login moved from sessions to JWT" in line for line in morning)
    assert not any("FAILED" in line for line in morning)
