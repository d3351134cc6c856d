"""Transcripts of Claude Code for tests, in few words."""

import json
import os
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.kit import put

Talk = Iterable[tuple[str, str]]
"""Turns: `user` and `agent` with their words, `run` with a command, `edit` with a file, and `fail`
with the output of the call before."""


def claude_code(
    home: Path, id: str, cwd: Path | str, talk: Talk, at: datetime, branch: str = "main"
) -> Path:
    """Writes a transcript below the home folder of a user, with a turn each minute."""
    turns = records(id, cwd, talk, at, branch)
    path = put(folder_of(home, cwd) / f"{id}.jsonl", text_of(turns))
    os.utime(path, ((at + timedelta(minutes=len(turns))).timestamp(),) * 2)
    return path


def folder_of(home: Path, cwd: Path | str) -> Path:
    """Returns the folder for a project below the home folder of a user."""
    name = "".join(char if char.isalnum() else "-" for char in str(cwd))
    return home / ".claude" / "projects" / name


def records(
    id: str, cwd: Path | str, talk: Talk, at: datetime, branch: str, **more: Any
) -> list[dict[str, Any]]:
    """Returns the records of turns, one each minute; their ids begin with `id`."""
    about = {"cwd": str(cwd), "sessionId": id, "gitBranch": branch} | more
    return [
        {
            "type": "user" if role in ("user", "fail") else "assistant",
            "uuid": f"{id}-{number}",
            "timestamp": (at + timedelta(minutes=number)).isoformat(),
            "message": {"id": f"{id}-{number}", "content": [_block(role, text, id, number)]},
        }
        | about
        for number, (role, text) in enumerate(talk)
    ]


def _block(role: str, text: str, id: str, number: int) -> dict[str, Any]:
    if role == "fail":
        call = f"{id}-{number - 1}"
        return {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": True}
    if role in ("user", "agent"):
        return {"type": "text", "text": text}
    name, key = {"run": ("Bash", "command"), "edit": ("Edit", "file_path")}[role]
    return {"type": "tool_use", "id": f"{id}-{number}", "name": name, "input": {key: text}}


def text_of(records: Iterable[object]) -> str:
    """Returns records as lines of JSON."""
    return "".join(f"{json.dumps(record)}\n" for record in records)
