"""Transcripts of Claude Code for tests, in few words."""

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.kit import put

Talk = Sequence[tuple[str, str]]
"""Turns: `user` and `agent` with their words, `run` with a command, `edit` with a file, and `fail`
with the output of the call before."""


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
