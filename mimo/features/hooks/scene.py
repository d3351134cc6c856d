"""Where a hook runs: the project, whom it trusts, and what the user allows."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from mimo.errors import MindError
from mimo.features.hooks.events import Event
from mimo.index.glance import Glance, open_index
from mimo.store import append_log, files, projects
from mimo.store import projects as place
from mimo.store.projects import Project
from mimo.store.trust import Trust
from mimo.text.clean import clean

# The log of `mind hook`: one line for each thing, and never much of it.


MOST_BYTES = 256 * 1024
_LONGEST = 400


def path_of(home: Path) -> Path:
    """Returns where the log is."""
    return home / "logs" / "hook.log"


def note(home: Path, now: datetime, what: str) -> None:
    """Adds one line; that it can't be written is no reason to fail."""
    path = path_of(home)
    line = " ".join(clean(what).split())[:_LONGEST]
    with suppress(OSError, MindError):
        stamp = now.isoformat(timespec="seconds").replace("+00:00", "Z")
        append_log.append(path, f"{stamp} {line}\n".encode("utf-8", "replace"), durable=False)
        if path.stat().st_size > MOST_BYTES:
            kept = files.read(path)[-MOST_BYTES // 2 :]
            files.replace(path, kept[kept.find(b"\n") + 1 :], mode=0o600)


class Allowed(NamedTuple):
    """What the settings allow."""

    context: bool = True
    edges: bool = True
    summaries: bool = True
    budget: int = 6_000
    only: tuple[str, ...] = ()
    """Whose commits may be followed; nothing for everybody's."""


class Scene:
    """What a hook needs to know; each part is read when it is asked for."""

    def __init__(
        self, event: Event, *, home: Path, root: Path, now: datetime, environ: Mapping[str, str]
    ) -> None:
        """Take what happened, and where."""
        self.event = event
        self.home = home
        self.root = root
        self.now = now
        self.environ = environ
        self.allowed = _allowed(home, root)
        # Git is not asked here: what it said when a command of mind last asked it counts.
        self.trust = Trust(home, root, self.allowed.only)

    def log(self, what: str) -> None:
        """Adds a line to the log."""
        note(self.home, self.now, f"{self.event.dialect} {self.event.name}: {what}")

    def failed(self, why: str) -> None:
        """Adds a line that says why nothing was said: without what a client told in confidence."""
        from mimo.guard.privacy import for_log

        self.log(f"nothing said: {for_log(why)}")

    def session_key(self, name: str) -> str:
        """Returns the key under which a session is kept, which no author of a clone can know.

        Raises `StorageFailed` if the user's secret can be neither read nor made.
        """
        return f"{name}\n{place.index_owner(self.home, os.urandom)}"

    @contextmanager
    def look(self) -> Iterator[Glance | None]:
        """Gives a look at the index; None where there is none yet."""
        folder = place.index_folder(self.root, self.home)
        # None is made here: where there is no owner yet, no index is ours.
        owner = place.known_owner(self.home)
        if owner is None:
            yield None
            return
        with open_index(folder, owner, self.trust.checker(), self.root) as look:
            yield look


def found(event: Event, *, home: Path, now: datetime, environ: Mapping[str, str]) -> Scene | None:
    """Returns where a hook runs; None outside of any project."""
    projects.check_home(home)
    named = environ.get("MIND_PROJECT")
    start = Path(event.folder or environ.get("CLAUDE_PROJECT_DIR") or ".")
    if named:
        project: Project | None = projects.explicit(Path(named), home)
    else:
        project = projects.find(start, home) if start.is_dir() else None
    if project is None:
        return None
    return Scene(event, home=home, root=project.root, now=now, environ=environ)


_TOLD = (b"hook", b"context", b"trust")


def _says_something(path: Path) -> bool:
    """Returns whether a settings file may set something of hooks, outside of its comments."""
    with suppress(OSError, MindError):
        lines = files.look(path, limit=100_000)[0].splitlines()
        said = [line for line in lines if not line.lstrip().startswith(b"#")]
        return any(any(word in line for word in _TOLD) for line in said)
    return False


def _allowed(home: Path, root: Path) -> Allowed:
    """Returns what the settings allow; they are only understood where they say something of it."""
    user, of_project = home / "config.toml", root / ".mind" / "config.toml"
    if not any(map(_says_something, (user, of_project))):
        return Allowed()
    from mimo.config import load

    config = load(user=user, project=of_project)
    return Allowed(
        context=config["hook.context"] == "on",
        edges=config["hook.edges"] == "on",
        summaries=config["hook.summaries"] == "on",
        budget=config["context.budget"],
        only=config["trust.only"],
    )
