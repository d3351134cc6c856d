"""The project of targets that call tools: the same at the start of each input."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from unittest.mock import patch

from bench.stores import IN_MEMORY
from mimo.call import Call
from mimo.features.procedures import executing
from mimo.memory.codec.value import render
from mimo.mind import Mind
from mimo.project import projects
from mimo.project.init import init
from tests.conftest import git
from tests.redteam.hostile import FILES
from tests.sample_procedures import GREET, WAIT, Time, begun, put

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECRET = "zanzibar"
"""A word of a memory, which a client needs the token to read."""

IDS = ("fact_tea_20261120_aaaaaa", "decision_auth_20261120_bbbbbb", "edge_lock_20261120_cccccc")
RUN = "wait_20261120_pxhaaa"
"""A run of a procedure that was interrupted at its start."""

_LARGEST = 4_000_000
"""The bytes of a home, which holds the records of calls, at which it is made again."""

_CREATED = "created: 2026-11-20T12:00:00Z"
_FILES = {
    f"facts/{IDS[0]}.md": (
        f"---\nid: {IDS[0]}\ntype: fact\ntags: [api]\n{_CREATED}\n---\n\nTea in {SECRET} is hot\n"
    ),
    f"decisions/{IDS[1]}.md": (
        f"---\nid: {IDS[1]}\ntype: decision\ntopic: auth\noutcome: failed\nconfidence: 0.5\n"
        f"{_CREATED}\n---\n\nUse JWT, see [[{IDS[0]}]]\n\n## Reasoning\n\nStateless\n"
    ),
    f"edges/{IDS[2]}.md": (
        f"---\nid: {IDS[2]}\ntype: edge\nseverity: critical\n{_CREATED}\n"
        "detection: {code: ['pip \\w'], tasks: [install a package]}\n---\n\n# pip\n\nUse uv\n"
    ),
    "values/agent.build/k.md": render("agent.build", "k", {"a": [1]}).decode(),
}


@cache
def scratch() -> Path:
    """Returns a folder for files that must be on a disk, which is removed at the end."""
    folder = tempfile.mkdtemp(prefix="mind-fuzz-", dir=IN_MEMORY)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def file(name: str, data: bytes) -> Path:
    """Returns a file with these bytes."""
    path = scratch() / name
    path.write_bytes(data)
    path.chmod(0o600)
    return path


class _Project:
    """The project, and the time, which moves on so that no limit of calls per minute is met."""

    def __init__(self, name: str) -> None:
        self.root, self.home = scratch() / name, scratch() / f"{name}-home"
        self.now = NOW
        self.made: dict[str, tuple[int, int]] | None = None

    def make(self) -> None:
        """Makes the project as it was at first, from a copy: git takes longer."""
        folders, copies = (self.root, self.home), scratch() / "copies"
        if self.made is None:
            self._make_first()
            for folder in folders:
                shutil.copytree(folder, copies / folder.name)
        else:
            for folder in folders:
                shutil.rmtree(folder)
                shutil.copytree(copies / folder.name, folder)
        self.made = self.state()

    def _make_first(self) -> None:
        """Makes the project, with two commits."""
        self.root.mkdir()
        self.home.mkdir(mode=0o700)
        # The encoder takes most of the time of a search, and reads no text by itself.
        settings = 'embedding.encoder = "off"\nhook.capture = "on"\n'
        (self.home / "config.toml").write_text(settings, encoding="utf-8")
        git(self.root, "init", "--quiet")
        for words in ("user.name Ann", "user.email ann@example.com"):
            git(self.root, "config", *words.split(" "))
        init(self.root, self.home, now=NOW)
        call = self.opened()
        with closing(call.mind):
            call.mind.trust.follow(True)
            put(call, "greet", GREET)
            put(call, "wait", WAIT)
            assert begun(call, "wait").id == RUN
        (self.root / "guide.md").write_bytes(b"# Guide\n\nTea needs water.\n")
        (self.root / "odd.md").write_bytes(FILES["front matter of wrong types"])
        for outcome in ("success", "failed"):
            for name, content in _FILES.items():
                path = self.root / ".mind" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                written = content.replace("outcome: failed", f"outcome: {outcome}")
                path.write_text(written, encoding="utf-8")
            git(self.root, "add", ".")
            git(self.root, "commit", "--quiet", "-m", outcome, at=NOW.isoformat())

    def state(self) -> dict[str, tuple[int, int]]:
        """Returns what changes if a file of the project does."""
        store = self.root / ".mind"
        run = store / ".local" / "executions" / RUN
        return {
            entry.path: (entry.stat().st_mtime_ns, entry.stat().st_size)
            for folder in (self.root, store, run, *store.glob("[a-z]*/"))
            for entry in os.scandir(folder)
            if not entry.is_dir() or not entry.name.startswith(".")
        }

    def is_changed(self) -> bool:
        log = sum(path.stat().st_size for path in self.home.rglob("*") if path.is_file())
        return self.made != self.state() or log > _LARGEST

    def opened(self) -> Call:
        drawn = iter(range(1, 2**31))
        return Call(
            Mind(
                home=self.home,
                project=projects.explicit(self.root, self.home),
                clock=lambda: self.now,
                randomness=lambda size: (next(drawn) * 7919).to_bytes(size, "big")[-size:],
                environ={"HOME": str(scratch()), "MIND_HOME": str(self.home)},
                timer=Time().timer(),
            )
        )


_project = cache(_Project)


def contents() -> dict[str, bytes]:
    """Returns the bytes of the files that people see, by their paths."""
    root = _project("shop").root
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return {os.fspath(path): (root / path).read_bytes() for path in paths if not _is_hidden(path)}


def _is_hidden(path: Path) -> bool:
    return any(name[0] == "." and name != ".mind" for name in path.parts)


def is_changed(name: str = "shop") -> bool:
    """Returns whether a file of a project differs from the time at which it was made."""
    project = _project(name)
    return project.made != project.state()


@contextmanager
def a_project(name: str = "shop") -> Iterator[Call]:
    """Yields the memory of a project with a few memories, which may be changed.

    Runs of procedures in the background are not started: they would outlive it.
    """
    project = _project(name)
    if project.made is None or project.is_changed():
        project.make()
    project.now += timedelta(hours=1)
    call = project.opened()
    try:
        with patch.object(executing, "start", return_value=1):
            yield call
    finally:
        call.mind.close()
