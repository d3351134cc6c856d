"""Transcripts in the form of Claude Code, for tests of what is read and kept."""

import json
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mimo.data import disk
from mimo.extensions.sessions import store
from mimo.extensions.sessions.readers import reader_of
from mimo.extensions.sessions.reading import Read, Reading, Selection
from mimo.extensions.sessions.store import Session, Store
from tests.conftest import NOW

CWD = "/home/mina/shop"


def said(
    id: str, *texts: str, cwd: str = CWD, minute: int = 0, **more: Any
) -> list[dict[str, Any]]:
    """Returns records of turns of the user and the agent in turn; their ids begin with `id`."""
    records = []
    for n, text in enumerate(texts):
        at = NOW - timedelta(days=1) + timedelta(minutes=minute + n)
        role = ("user", "assistant")[n % 2]
        records.append(
            {
                "type": role,
                "uuid": f"{id}-{n}",
                "timestamp": at.isoformat().replace("+00:00", "Z"),
                "cwd": cwd,
                "gitBranch": "trunk",
                "message": {"id": f"{id}-{n}", "content": [{"type": "text", "text": text}]},
            }
            | more
        )
    return records


def edited(id: str, path: str, text: str = "", cwd: str = CWD) -> dict[str, Any]:
    """Returns the record of a call that edits a file."""
    call = {"type": "tool_use", "id": id, "name": "Edit", "input": {"file_path": path}}
    (record,) = said(id, "", cwd=cwd)
    content = [call, {"type": "text", "text": text}]
    return record | {"type": "assistant", "message": {"id": id, "content": content}}


def text_of(records: Iterable[object]) -> str:
    """Returns records as lines of JSON."""
    return "".join(f"{json.dumps(record)}\n" for record in records)


class Clients:
    """The user's home with transcripts of Claude Code, and the store that they are read into."""

    def __init__(self, folder: Path) -> None:
        """Takes an empty folder; the user's and mind's homes are in it."""
        self.home, self.now = folder / "user", NOW
        self.store = Store(disk.home_of({"MIND_HOME": str(folder / "mind")}))
        self.project = self.home / ".claude" / "projects" / "-home-mina-shop"
        self.selection = Selection(clients=frozenset({"claude-code"}))

    def write(self, name: str, records: Iterable[object] | str, *, hours_ago: float = 1) -> Path:
        """Writes a transcript that was changed some hours ago; returns its path."""
        path = self.project / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(records if isinstance(records, str) else text_of(records), "utf-8")
        return self.touch(path, hours_ago=hours_ago)

    def append(self, name: str, records: Iterable[object] | str, *, hours_ago: float = 0.5) -> None:
        """Adds lines to a transcript."""
        path = self.project / f"{name}.jsonl"
        with path.open("a") as file:
            file.write(records if isinstance(records, str) else text_of(records))
        self.touch(path, hours_ago=hours_ago)

    def touch(self, path: Path, *, hours_ago: float) -> Path:
        """Sets the time at which a file was changed."""
        time = (self.now - timedelta(hours=hours_ago)).timestamp()
        os.utime(path, (time, time))
        return path

    def reading(self, **environment: str) -> Reading:
        """Returns a run over the transcripts."""
        readers = [reader_of("claude-code")]
        return Reading(self.store, readers, self.selection, environment, self.home, self.now)

    def read(self, **environment: str) -> Read:
        """Reads what is new."""
        return self.reading(**environment).run()

    def sessions(self) -> dict[str, Session]:
        """Returns the kept sessions by the client's ids."""
        with self.store.reading() as sql:
            return {each.native_id: each for each in store.sessions(sql)} if sql else {}

    def texts(self, native_id: str) -> list[str]:
        """Returns the texts of the turns of a session; none if it is not kept."""
        return [text for _, text in self.numbered(native_id)]

    def numbered(self, native_id: str) -> list[tuple[int, str]]:
        """Returns the numbers and texts of the turns of a session."""
        session = self.sessions().get(native_id)
        with self.store.reading() as sql:
            turns = store.turns(sql, session.key) if sql and session else []
        return [(n, turn.text) for n, turn in turns]

    def forget(self, native_ids: Sequence[str]) -> int:
        """Forgets sessions for good."""
        kept = self.sessions()
        with self.store.writing() as sql:
            return store.forget(sql, [kept[id] for id in native_ids], marks=True)


def moment(day: int) -> datetime:
    """Returns a day of November 2026."""
    return datetime(2026, 11, day, tzinfo=UTC)
