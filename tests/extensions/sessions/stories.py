"""The words of one story that clients' transcripts tell, and what a reader makes of them."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from mimo.extensions.sessions import store
from mimo.extensions.sessions.model import Facts, Progress, Reader, Role, Turn
from mimo.extensions.sessions.reading import Reading, Selection
from mimo.extensions.sessions.store import Session, Store

CWD = "/home/mina/shop"
FILE = f"{CWD}/orders/pages.py"
ASKED = "Let's use keyset pagination for orders, because OFFSET took 4 s on page 900."
CORRECTED = "No, don't call it offset anywhere. Rename it to key."
DONE, RENAMED = "Orders are paged by key now, and the test is green.", "Renamed."
COMMAND = "uv run pytest -q tests/test_pages.py"
OUTPUT = "E   NameError: name 'key' is not defined\n1 failed in 0.10s"
NOTE = "<mind-context>\nDecision: Send uploads in parts of 50 MB\n</mind-context>"
RULES = "# Rules\nUse tabs.\n"
TITLE = "Orders by key"

NOW = datetime(2030, 1, 1, tzinfo=UTC)
"""A time after that of the files, which the tests write."""


class Transcript(NamedTuple):
    """A session as a reader yields it."""

    facts: Facts
    turns: Sequence[Turn]
    records: int
    unknown: int

    def of(self, role: Role) -> list[str]:
        """The texts of the turns of a role."""
        return [turn.text for turn in self.turns if turn.role is role]

    @property
    def files(self) -> list[str]:
        """The files that its calls edited."""
        return [file for turn in self.turns for file in turn.files]

    @property
    def errors(self) -> list[str]:
        """The last lines of its failed calls."""
        return [turn.error for turn in self.turns if turn.error]


def read(
    reader: Reader, home: Path, environment: Mapping[str, str] | None = None
) -> list[Transcript]:
    """Returns what a reader yields of all sources, in their order."""
    sessions: dict[str, Transcript] = {}
    for source in reader.sources(environment or {}, home):
        for part in reader.read(source, Progress()):
            id = part.facts.native_id
            former = sessions.get(id, Transcript(part.facts, (), 0, 0))
            turns = part.turns if part.replaces else (*former.turns, *part.turns)
            sessions[id] = Transcript(
                part.facts, turns, former.records + part.records, former.unknown + part.unknown
            )
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
