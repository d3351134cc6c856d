"""Transcripts of Claude Code for tests, in few words."""

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.extensions.sessions.store import digest_of
from tests.conftest import NOW
from tests.kit import do, put

KEYSET = "1ccba294-0000-4000-8000-0000aaaaaaaa"
OTHER = "2ccba294-0000-4000-8000-0000bbbbbbbb"
LONG = "3ccba294-0000-4000-8000-0000cccccccc"

Talk = Sequence[tuple[str, str]]
"""Turns: `user` and `agent` with their words, `run` with a command, `edit` with a file, and `fail`
with the output of the call before."""

TALK: Talk = (
    ("user", "Let's use keyset pagination for orders, because OFFSET took 4 s."),
    ("edit", "orders/pages.py"),
    ("run", "pytest -q tests/test_pages.py"),
    ("fail", "1 failed in 0.10s"),
    ("agent", "The root cause was a missing index; orders are paged by key now."),
    ("user", "Thanks. And rename the helper."),
    ("agent", "Renamed."),
)


@pytest.fixture
def user(tmp_path: Path, home: Path, project: Path) -> Path:
    """The home folder of a user who turned sessions on, with two sessions."""
    put(home / "config.toml", '[sessions]\nenabled = "on"\n')
    place = tmp_path / "user"
    talk = [(role, str(project / text) if role == "edit" else text) for role, text in TALK]
    claude_code(place, KEYSET, project, talk, NOW - timedelta(days=20))
    redis = [("user", "Why does redis time out?"), ("agent", "The pool is too small.")]
    claude_code(place, OTHER, tmp_path / "bank", redis, NOW - timedelta(days=400))
    return place


@pytest.fixture
def kept(user: Path, call: Call) -> Call:
    """A call after these sessions were read."""
    assert do(call, "sessions index").sessions == 2
    return call


def claude_code(
    home: Path, id: str, cwd: Path | str, talk: Talk, at: datetime, branch: str = "main"
) -> Path:
    """Writes a transcript below the home folder of a user, with a turn each minute."""
    lines = []
    for number, (role, text) in enumerate(talk):
        record = _record(role, text, f"{id}-{number}", number)
        time = (at + timedelta(minutes=number)).isoformat()
        record |= {"timestamp": time, "cwd": str(cwd), "uuid": f"{id}-{number}"}
        lines.append(json.dumps(record | {"sessionId": id, "gitBranch": branch}))
    folder = "".join(char if char.isalnum() else "-" for char in str(cwd))
    path = put(home / ".claude" / "projects" / folder / f"{id}.jsonl", "\n".join(lines) + "\n")
    os.utime(path, ((at + timedelta(minutes=len(talk))).timestamp(),) * 2)
    return path


def _record(role: str, text: str, id: str, number: int) -> dict[str, Any]:
    if role == "user":
        return {"type": "user", "message": {"role": "user", "content": text}}
    if role == "fail":
        result = {"type": "tool_result", "tool_use_id": str(number - 1), "content": text}
        content: Any = [result | {"is_error": True}]
        return {"type": "user", "message": {"role": "user", "content": content}}
    content = {"type": "text", "text": text}
    if role == "run":
        content = {"type": "tool_use", "name": "Bash", "input": {"command": text}}
    if role == "edit":
        content = {"type": "tool_use", "name": "Edit", "input": {"file_path": text}}
    content["id"] = str(number)
    return {"type": "assistant", "message": {"id": id, "role": "assistant", "content": [content]}}


RULE, OTHER_RULE = "Prices are never floats, always cents.", "From now on, tags are lowercase."
"""Sentences that are proposed as memories."""


def id_of(sentence: str) -> str:
    """Returns the id of the proposal of a sentence."""
    return f"p{digest_of(sentence).hex()[:7]}"
