"""The words of one story that clients' transcripts tell, and what a reader makes of them."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mimo.extensions.sessions import store
from mimo.extensions.sessions.model import Progress, Reader, Role
from mimo.extensions.sessions.reading import Reading, Selection
from mimo.extensions.sessions.store import Session, Store
from tests.extensions.sessions.homes import ASKED, COMMAND, CORRECTED, CWD, FILE, Read, joined

__all__ = ["ASKED", "COMMAND", "CORRECTED", "CWD", "FILE", "Read"]

DONE, RENAMED = "Orders are paged by key now, and the test is green.", "Renamed."
OUTPUT = "E   NameError: name 'key' is not defined\n1 failed in 0.10s"
NOTE = "<mind-context>\nDecision: Send uploads in parts of 50 MB\n</mind-context>"
RULES = "# Rules\nUse tabs.\n"
TITLE = "Orders by key"

NOW = datetime(2030, 1, 1, tzinfo=UTC)
"""A time after that of the files, which the tests write."""


def read(reader: Reader, home: Path, environment: Mapping[str, str] | None = None) -> list[Read]:
    """Returns what a reader yields of all sources, in their order."""
    sessions: dict[str, Read] = {}
    for source in reader.sources(environment or {}, home):
        for part in reader.read(source, Progress()):
            id = part.facts.native_id
            sessions[id] = joined(sessions.get(id), part)
    return list(sessions.values())


def index(reader: Reader, home: Path, place: Path) -> tuple[list[Session], list[list[str]]]:
    """Reads all that is new into a store, and returns its sessions with the words of the user."""
    kept = Store(place)
    selection = Selection(clients=frozenset({reader.client}), keep=timedelta(days=10_000))
    Reading(kept, [reader], selection, {}, home, NOW).run()
    with kept.reading() as sql:
        assert sql is not None
        sessions = store.sessions(sql)
        words = [
            [turn.text for _, turn in store.turns(sql, each.key) if turn.role is Role.USER]
            for each in sessions
        ]
    kept.close()
    return sessions, words


def write_json(path: Path, value: Any) -> Path:
    """Writes a file of JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_lines(path: Path, *records: Any) -> Path:
    """Writes a file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path
