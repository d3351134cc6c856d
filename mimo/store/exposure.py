"""What the newest prompt asked for, handed from a client's hook to the server by a file.

`.mind/.local/exposure.json` is one JSON object; whatever can't be read counts as none.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from mimo.domain.exposure import Intent
from mimo.errors import MindError
from mimo.store import files

PLACE = ".mind/.local/exposure.json"
_MOST_BYTES = 16_384
_MOST_TOOLS = 100
_LONGEST = 200


class Exposure(NamedTuple):
    """What a prompt asked for, in which session, and when."""

    session: str
    """The client's own name of the session."""
    intent: Intent
    confidence: float
    tools: tuple[str, ...] | None
    """Canonical names, those that come first in front; None for every tool."""
    at: datetime
    """Time zone aware, UTC."""


def write(root: Path, exposure: Exposure) -> None:
    """Puts the exposure in the place of the last one. Raises `StorageFailed`."""
    told = {
        "session": exposure.session[:_LONGEST],
        "intent": exposure.intent.value,
        "confidence": exposure.confidence,
        "tools": exposure.tools,
        "at": exposure.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }
    files.replace(files.safe_path(root, PLACE), f"{json.dumps(told)}\n".encode(), mode=0o600)


def read(root: Path) -> Exposure | None:
    """Returns what the newest prompt asked for; None where there is nothing that can be read."""
    try:
        data, _ = files.look(files.safe_path(root, PLACE), limit=_MOST_BYTES)
        return _exposure(json.loads(data))
    except (OSError, MindError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _exposure(told: Any) -> Exposure:
    """Returns the exposure that a file tells; raises `ValueError` where it tells none."""
    session, confidence, tools = told["session"], told["confidence"], told["tools"]
    at = datetime.fromisoformat(told["at"])
    listed = tools is None or (isinstance(tools, list) and len(tools) <= _MOST_TOOLS)
    texts = [session, *(tools or ())] if listed else [None]
    if not all(isinstance(text, str) and len(text) <= _LONGEST for text in texts):
        raise ValueError(told)
    if type(confidence) not in (int, float) or not 0 <= confidence <= 1 or at.tzinfo is None:
        raise ValueError(told)
    return Exposure(
        session=session,
        intent=Intent(told["intent"]),
        confidence=float(confidence),
        tools=None if tools is None else tuple(tools),
        at=at.astimezone(UTC),
    )
