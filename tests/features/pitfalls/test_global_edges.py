"""Edges in the user's own home."""

import os
import re
from pathlib import Path

import pytest

from mimo.data import disk
from mimo.features.pitfalls import storage
from mimo.features.pitfalls.sources import unusable
from mimo.features.pitfalls.storage import STARTER, edge_in, read_all, starter

EDGE = "---\nid: edge_one\ntype: edge\ntitle: One\nseverity: info\n---\nIt happens\n"


@pytest.fixture
def folder(home):
    path = home / "edges"
    path.mkdir(parents=True)
    return path


def put(folder, name, text, *, age=3_600):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    written = path.stat().st_mtime - age
    os.utime(path, (written, written))


def titles(home):
    return [edge.title for edge in read_all(home)[0]]


@pytest.mark.req("003-43")
def test_a_home_without_edges_has_none(home):
    assert read_all(home) == ([], [])


def test_files_without_an_edge_are_reported(home, folder):
    put(folder, "one.md", EDGE)
    put(folder, "fact.md", EDGE.replace("type: edge", "type: fact"))
    put(folder, "broken.md", "x\0")
    put(folder, "plain.md", "# Two\n\nA plain note\n")
    put(folder, ".hidden.md", EDGE)
    (folder / "link.md").symlink_to(folder / "one.md")

    assert titles(home) == ["One", "Two"]
    assert {problem.path for problem in read_all(home)[1]} == {
        "edges/fact.md",
        "edges/broken.md",
        "edges/link.md",
    }


def test_an_unchanged_file_is_not_parsed_again(home, folder, monkeypatch):
    put(folder, "one.md", EDGE)
    monkeypatch.setattr(storage, "_SETTLED_NS", -1)  # the file counts as written long ago
    first = read_all(home)

    with monkeypatch.context() as patch:
        patch.delattr("mimo.memory.codec.parse")
        assert read_all(home) == first
    put(folder, "one.md", EDGE.replace("title: One", "title: Another"))
    assert titles(home) == ["Another"]


def test_a_change_is_seen_at_once(home, folder):
    put(folder, "one.md", EDGE)
    assert titles(home) == ["One"]
    put(folder, "one.md", EDGE.replace("title: One", "title: Two"))
    assert titles(home) == ["Two"]
    (folder / "one.md").unlink()
    assert titles(home) == []


def test_a_change_while_a_file_is_read_is_seen(home, folder, monkeypatch):
    put(folder, "one.md", EDGE)
    stamp = disk.Stamp.of((folder / "one.md").stat())
    now_ns = stamp.ctime_ns

    def slowly(*given):
        nonlocal now_ns
        now_ns += 5_000_000_000
        return edge_in(*given)

    monkeypatch.setattr(storage, "edge_in", slowly)
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    # Two changes within one step of the file system's clock.
    monkeypatch.setattr(storage, "stamp_of", lambda _: stamp)
    assert titles(home) == ["One"]
    put(folder, "one.md", EDGE.replace("title: One", "title: Two"))

    assert titles(home) == ["Two"]


def test_a_read_only_home_is_read(home, folder):
    put(folder, "one.md", EDGE)
    (home / "cache").write_text("in the way", encoding="utf-8")

    assert titles(home) == ["One"]


def test_every_starter_edge_is_complete_and_names_its_source():
    every = starter()

    assert len(every) == len(list(STARTER.glob("*.md")))
    for record in every:
        edge = edge_in(record)
        assert re.match(r"https://\S+$", record.memory.source or ""), edge.title
        assert edge.description
        assert edge.workaround
        assert edge.detection
        assert unusable(edge.detection) == []
        assert Path(edge.file).stem == edge.id


def test_an_adopted_edge_is_the_same_byte_for_byte(home):
    record = starter()[0]
    with storage.locked(home):
        adopted = storage.adopt(home, record)

    name = Path(record.place.path).name
    assert disk.read(home / adopted.place.path) == disk.read(STARTER / name)
