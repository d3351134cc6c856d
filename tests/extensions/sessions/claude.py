"""A user's home with transcripts, and the store that they are read into, for tests."""

import os
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

from mimo.data import disk
from mimo.extensions.sessions import store
from mimo.extensions.sessions.readers import reader_of
from mimo.extensions.sessions.reading import Read, Reading, Selection
from mimo.extensions.sessions.store import Session, Store
from tests.claude_sessions import records, text_of
from tests.conftest import NOW
from tests.extensions.sessions.homes import CWD

__all__ = ["CWD", "text_of"]


def said(
    id: str, *texts: str, cwd: str = CWD, minute: int = 0, **more: Any
) -> list[dict[str, Any]]:
    """Returns records of turns of the user and the agent in turn; their ids begin with `id`."""
    talk = zip(cycle(("user", "agent")), texts, strict=False)
    at = NOW - timedelta(days=1) + timedelta(minutes=minute)
    return records(id, cwd, talk, at, "trunk", **more)


def edited(id: str, path: str, cwd: str = CWD) -> dict[str, Any]:
    """Returns the record of a call that edits a file."""
    (record,) = records(id, cwd, [("edit", path)], NOW - timedelta(days=1), "trunk")
    return record


class Clients:
    """The user's home with transcripts of a client, and the store that they are read into."""

    def __init__(self, folder: Path, client: str = "claude-code") -> None:
        """Takes a folder in which the user's and mind's homes are."""
        self.client, self.home, self.now = client, folder / "user", NOW
        self.store = Store(disk.home_of({"MIND_HOME": str(folder / "mind")}))
        self.project = self.home / ".claude" / "projects" / "-home-mina-shop"
        self.selection = Selection(clients=frozenset({client}))

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
        readers = [reader_of(self.client)]
        return Reading(self.store, readers, self.selection, environment, self.home, self.now)

    def read(self, **environment: str) -> Read:
        """Reads what is new."""
        return self.reading(**environment).run()

    def sessions(self) -> dict[str, Session]:
        """Returns the kept sessions by the client's ids."""
        with self.store.reading() as sql:
            return {each.native_id: each for each in store.sessions(sql)}

    def texts(self, native_id: str) -> list[str]:
        """Returns the texts of the turns of a session; none if it is not kept."""
        return [text for _, text in self.numbered(native_id)]

    def numbered(self, native_id: str) -> list[tuple[int, str]]:
        """Returns the numbers and texts of the turns of a session."""
        session = self.sessions().get(native_id)
        with self.store.reading() as sql:
            turns = store.turns(sql, session.key) if session else []
        return [(n, turn.text) for n, turn in turns]

    def forget(self, native_ids: Sequence[str]) -> int:
        """Forgets sessions for good."""
        kept = self.sessions()
        with self.store.writing() as sql:
            return store.forget(sql, [kept[id] for id in native_ids], marks=True)
