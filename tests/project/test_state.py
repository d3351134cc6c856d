"""State files: damage to one has the meaning of its class, and later versions are respected."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.data import locks
from mimo.data.state import StateFile
from mimo.errors import Invalid, LaterFormat, StorageFailed
from mimo.features import daemon
from mimo.features.clients import storage
from mimo.features.clients.storage import Note
from mimo.features.hooks import exposure
from mimo.features.hooks.events import recognised
from mimo.features.hooks.scene import Scene, Session
from mimo.features.importing import manifest
from mimo.features.importing.manifest import Manifest
from mimo.features.pitfalls import storage as edges
from mimo.frozen import NamedTuple
from mimo.guard.audit import AuditLog
from mimo.operations.freshness import IngestedFiles, Seen
from mimo.project import projects
from mimo.project.projects import Project

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


def names(data: Any) -> tuple[str, ...]:
    return tuple(data["names"])


CACHE = StateFile(names, limit=1_000)
DECISION = StateFile(names, limit=1_000, hint="make another")

DAMAGES = {
    "empty": b"",
    "torn": b'{"names": ["a',
    "other kind": b"[]",
    "null": b"null",
    "other fields": b'{"other": 1}',
    "other type": b'{"names": 1}',
    "not UTF-8": b"\xff\xfe",
    "NUL": b"\0" * 100,
    "deep": b"[" * 900,
    "number": b'{"names": 1e999}',
    "not JSON": b'{"names": NaN}',
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_empties_a_cache_and_is_refused_in_a_decision(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "names.json"
    path.write_bytes(damage)

    assert CACHE.read(tmp_path, path.name) is None
    with pytest.raises(StorageFailed, match=r"names.json` is damaged") as raised:
        DECISION.read(tmp_path, path.name)
    assert raised.value.hint == "make another"
    assert path.read_bytes() == damage

    CACHE.write(tmp_path, path.name, {"names": ["a"]})
    assert CACHE.read(tmp_path, path.name) == DECISION.read(tmp_path, path.name) == ("a",)


def test_a_missing_file_has_no_value(tmp_path: Path) -> None:
    assert CACHE.read(tmp_path, "a/names.json") is None
    assert DECISION.read(tmp_path, "a/names.json") is None


@pytest.mark.attack("symbolic link")
@pytest.mark.parametrize("kind", ["folder", "link", "large", "in a link"])
def test_another_kind_of_file_is_never_read(tmp_path: Path, kind: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.json").write_text('{"names": ["secret"]}')
    path = tmp_path / "a" / "x.json"
    if kind == "in a link":
        (tmp_path / "a").symlink_to(tmp_path / "other")
    elif kind == "folder":
        path.mkdir(parents=True)
    else:
        path.parent.mkdir()
        path.symlink_to(tmp_path / "other" / "x.json") if kind == "link" else None
        path.write_text(json.dumps({"names": ["x" * 1_000]})) if kind == "large" else None

    assert CACHE.read(tmp_path, "a/x.json") is None
    with pytest.raises(StorageFailed):
        DECISION.read(tmp_path, "a/x.json")
    if "link" in kind:
        with pytest.raises(StorageFailed, match="symbolic link"):
            CACHE.write(tmp_path, "a/x.json", {"names": []})
    assert "secret" in (tmp_path / "other" / "x.json").read_text()


def test_a_file_of_a_later_version_is_refused_unless_it_is_a_cache(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"format": 2, "names": ["a"]}')

    assert CACHE.read(tmp_path, "x.json") is None
    with pytest.raises(LaterFormat, match=r"x.json` has format 2; this mind writes format 1"):
        DECISION.read(tmp_path, "x.json")
    (tmp_path / "x.json").write_text('{"format": 1, "names": ["a"]}')
    assert DECISION.read(tmp_path, "x.json") == ("a",)


@given(st.lists(st.text()), st.booleans())
def test_what_is_written_is_read(tmp_path: Path, texts: list[str], cached: bool) -> None:
    kind = CACHE if cached else StateFile(names, hint="make another")
    kind.write(tmp_path, "x.json", {"names": texts})
    assert (tmp_path / "x.json").stat().st_mode & 0o077 == 0
    if not cached or (tmp_path / "x.json").stat().st_size <= 1_000:
        assert kind.read(tmp_path, "x.json") == tuple(texts)


# Every state file, with the behaviour of its class.


class Kind(NamedTuple):
    write: Callable[[Path], object]
    read: Callable[[Path], object]
    path: str
    """A pattern of the file's path."""
    empty: object = None
    """The value of a missing file; `REFUSED` for a decision."""


REFUSED = object()
NOTE = Note(clients=("cursor",), before=None, after="x")
FILE = Path("/somewhere/settings.json")
MADE = manifest.manifest_path("mama", "x.db", "owner")


def scene(root: Path) -> Scene:
    event = recognised({"hook_event_name": "SessionStart"})
    assert event is not None
    return Scene(event, home=root / "home", root=root, now=NOW, environ={})


def log(root: Path) -> AuditLog:
    return AuditLog(root / "home", root, os.urandom, largest=400)


def write_log(root: Path) -> None:
    for place in range(9):
        log(root).append({"event_type": "tool_call", "tool": f"t{place}", "status": "ok"})


def write_state(root: Path) -> None:
    daemon.write_state(root / "home", started=NOW, watching=[root])


def running(root: Path) -> daemon.Running | None:
    with locks.lock(root / "home" / "daemon.pid"):
        return daemon.running(root / "home")


def register(root: Path) -> None:
    (root / "home").mkdir(exist_ok=True)
    projects.register(root / "home", Project(root, "shop"), now=NOW)


def registered(root: Path) -> projects.Registry:
    registry = projects.registered(root / "home")
    if registry.problem:
        raise registry.problem
    return registry


def write_exposure(root: Path) -> None:
    exposure.write(root, exposure.classify("continue")._replace(session="s", at=NOW))


def write_edges(root: Path) -> None:
    edge = edges.edge_in(edges.starter()[0])
    edges._CACHE.write(root / "home", edges.CACHE, {"one.md": ([1, 2, 3, 4], edge._asdict())})


def write_manifest(root: Path) -> None:
    manifest.write_manifest(root, Manifest(path=MADE, source="x.db", backup="", files={}))


EVERY = {
    "session": Kind(
        lambda root: scene(root).save_session("s", Session(last="Done.")),
        lambda root: scene(root).load_session("s"),
        ".mind/.local/sessions/*.json",
        Session(),
    ),
    "exposure": Kind(write_exposure, exposure.read, ".mind/.local/exposure.json"),
    "ingested files": Kind(
        lambda root: IngestedFiles(root, "owner").add({"a.md": Seen(1, 2, "x")}),
        lambda root: IngestedFiles(root, "owner").read(),
        ".mind/.local/ingested-*.json",
        {},
    ),
    "daemon": Kind(
        write_state,
        running,
        "home/daemon.json",
        daemon.Running(pid=os.getpid(), started=None, watching=()),
    ),
    "note of a client's file": Kind(
        lambda root: storage.write_note(root / "home", FILE, NOTE),
        lambda root: storage.note_of(root / "home", FILE),
        "home/clients/settings.json-*.json",
    ),
    "folders for clients": Kind(
        lambda root: storage._remember_folders(root / "home", root / "new" / "a.json"),
        lambda root: storage._made_folders(root / "home"),
        "home/clients/folders.json",
        set(),
    ),
    "edges": Kind(
        write_edges,
        lambda root: edges._CACHE.read(root / "home", edges.CACHE),
        f"home/{edges.CACHE}",
    ),
    "projects": Kind(register, registered, "home/projects.json", REFUSED),
    "manifest": Kind(
        write_manifest, lambda root: manifest.read_manifest(root, MADE), MADE, REFUSED
    ),
}


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda data: data[: len(data) // 2],
    "of zeros": lambda data: bytes(len(data)),
    "deep": lambda _: b"[" * 9_000,
    "not UTF-8": lambda data: b"\xff" + data,
    "two bytes more": lambda data: data + b"]]",
}


@pytest.mark.attack("damaged state")
@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
@pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY)
def test_damage_to_each_file_has_the_meaning_of_its_class(
    tmp_path: Path, kind: Kind, spoil: Callable[[bytes], bytes]
) -> None:
    (tmp_path / ".mind").mkdir()
    kind.write(tmp_path)
    before = kind.read(tmp_path)
    (path,) = tmp_path.glob(kind.path)
    data = path.read_bytes()
    path.write_bytes(spoil(data))

    if kind.empty is REFUSED:
        with pytest.raises((StorageFailed, Invalid), match="is damaged") as raised:
            kind.read(tmp_path)
        assert raised.value.hint
        assert path.read_bytes() == spoil(data)
        path.write_bytes(data)
    else:
        assert kind.read(tmp_path) == kind.empty
        kind.write(tmp_path)
    assert kind.read(tmp_path) == before


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_damaged_totals_of_calls_are_counted_again(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    (tmp_path / ".mind").mkdir()
    write_log(tmp_path)
    (path,) = (tmp_path / ".mind/.local").glob("metrics-*.json")
    assert json.loads(path.read_text())["through"] > 0
    path.write_bytes(spoil(path.read_bytes()))
    assert log(tmp_path).totals().requests.total() == 9
