"""Edges in the user's own home."""

import os
import re
from pathlib import Path

import pytest

from mimo import disk
from mimo.features.edges import edge as edges
from mimo.features.edges.sources import unusable
from mimo.features.edges.storage import STARTER, EdgeCache, GlobalEdges, starter

EDGE = "---\nid: edge_one\ntype: edge\ntitle: One\nseverity: info\n---\nIt happens\n"


@pytest.fixture
def folder(home):
    found = home / "edges"
    found.mkdir(parents=True)
    return found


def put(folder, name, text, *, age=3_600):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    written = path.stat().st_mtime - age
    os.utime(path, (written, written))


def titles(home):
    return [record.memory.heading for record in GlobalEdges(home).all()[0]]


@pytest.mark.req("003-43")
def test_a_home_without_edges_has_none(home):
    assert GlobalEdges(home).all() == ((), ())


def test_files_without_an_edge_are_reported(home, folder):
    put(folder, "one.md", EDGE)
    put(folder, "fact.md", EDGE.replace("type: edge", "type: fact"))
    put(folder, "broken.md", "---\nid: [\n---\nx\n")
    put(folder, "plain.md", "# Two\n\nA plain note\n")
    put(folder, ".hidden.md", EDGE)
    (folder / "link.md").symlink_to(folder / "one.md")

    assert titles(home) == ["One", "Two"]
    found = {problem.path for problem in GlobalEdges(home).all()[1]}
    assert found == {"edges/fact.md", "edges/broken.md", "edges/link.md"}


def test_a_cached_file_is_read_again_only_after_a_change(home, folder):
    put(folder, "one.md", EDGE)
    path = folder / "one.md"
    known = EdgeCache(home / "cache" / "edges.json")
    stamp = _old(path)
    record = GlobalEdges(home).all()[0][0]
    known.put("one.md", stamp, record)
    known.save()

    again = EdgeCache(home / "cache" / "edges.json")
    assert again.get("one.md", stamp) == record
    assert again.get("one.md", stamp._replace(size=1)) is None
    assert again.get("two.md", stamp) is None


def _old(path):
    from mimo.store.walk import stamp_of

    return stamp_of(path.lstat())._replace(ctime_ns=1, mtime_ns=1)


def test_a_change_is_seen_at_once(home, folder):
    put(folder, "one.md", EDGE)
    assert titles(home) == ["One"]
    put(folder, "one.md", EDGE.replace("title: One", "title: Two"))
    assert titles(home) == ["Two"]
    (folder / "one.md").unlink()
    assert titles(home) == []


@pytest.mark.parametrize(
    "data",
    ["", "[]", "{", '{"format": 1}', '{"format": 1, "edges": {"one.md": [1]}}', "[" * 99_999],
)
def test_a_damaged_cache_is_ignored(home, folder, data):
    put(folder, "one.md", EDGE)
    cache = home / "cache" / "edges.json"
    cache.parent.mkdir()
    cache.write_text(data, encoding="utf-8")

    assert titles(home) == ["One"]


def test_a_read_only_home_is_read(home, folder):
    put(folder, "one.md", EDGE)
    (home / "cache").write_text("in the way", encoding="utf-8")

    assert titles(home) == ["One"]


def test_every_starter_edge_is_complete_and_names_its_source():
    found = starter()

    assert len(found) == len(list(STARTER.glob("*.md")))
    for record in found:
        edge = edges.edge_of(record.memory)
        assert re.match(r"https://\S+$", record.memory.source or ""), edge.title
        assert edge.description
        assert edge.workaround
        assert edge.detection
        assert unusable(edge.detection) == []
        assert Path(record.place.path).stem == edge.id


def test_an_adopted_edge_is_the_same_byte_for_byte(home):
    record = starter()[0]
    store = GlobalEdges(home)
    with store.locked():
        adopted = store.adopt(record)

    name = Path(record.place.path).name
    assert disk.read(home / adopted.place.path) == disk.read(STARTER / name)
