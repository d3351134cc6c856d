"""The store of a project: which files are memories, and how they come and go."""

import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mimo.data import disk, files
from mimo.data.locks import lock
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.memory.codec.file import normal
from mimo.memory.model import Kind, Memory, Outcome, Problem
from mimo.project.memories import MemoryStore
from mimo.project.walk import Files

NOW = datetime(2026, 11, 20, tzinfo=UTC)
MEMORY = Memory(id="fact_x_20261120_abcdef", type=Kind.FACT, content="It rains.", created=NOW)


@pytest.fixture
def root(tmp_path):
    (tmp_path / ".mind").mkdir()
    return tmp_path


def test_files_that_are_added_together_are_as_if_each_was_added():
    numbers = [(1, 2, 3, 4), (5, 6, 7, 8), (1, -1, 2**80, 3), (9, 9, 9, 2**64 - 1)]
    kept = [*numbers[:2], (1, -1, 2**63 - 1, 3), numbers[3]]
    for count in range(len(numbers) + 1):
        each, together = Files(), Files()
        for place, values in enumerate(numbers[:count]):
            each.add(f"folder/{place}.md", values)
        together.add_all("folder", [f"{place}.md" for place in range(count)], numbers[:count])

        assert list(together.items()) == list(each.items())
        assert together.digest == each.digest
        assert [stamp for _, stamp in together.items()] == kept[:count]
        assert len(together) == count


def put(root, path, text="text\n"):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def test_every_markdown_file_of_the_store_is_found_and_nothing_else(root):
    memories = [
        ".mind/MEMORY.md",
        ".mind/a.md",
        ".mind/decisions/b.MD",
        ".mind/notes/deep/c.markdown",
        ".mind/notes/rule.mdc",
        ".mind/private/facts/d.md",
        ".mind/sources/e.md",
        ".mind/notes/values/f.md",
        ".mind/facts/한국어.md",
    ]
    skipped = [
        ".mind/config.toml",
        ".mind/.index/a.md",
        ".mind/.local/a.md",
        ".mind/notes/.obsidian/a.md",
        ".mind/notes/.hidden.md",
        ".mind/values/ns/a.md",
        ".mind/procedures/p@1.md",
        ".mind/private/values/ns/a.md",
        "docs/a.md",
        ".mind/facts/.mind-1-a.tmp",
    ]
    for path in [*memories, *skipped, ".mind/notes/picture.png"]:
        put(root, path)
    seen = MemoryStore(root).walk()
    assert sorted(seen.files) == sorted(memories)
    assert seen.problems == []
    assert seen.others == [".mind/notes/picture.png"]


@pytest.mark.parametrize("time_ns", [1, -1, 2**63 - 1])
def test_a_stamp_has_the_systems_numbers(root, time_ns):
    put(root, ".mind/b.md")
    os.utime(file := put(root, ".mind/a.md"), ns=(0, time_ns))
    status = file.stat()
    stamp = MemoryStore(root).stamps()[".mind/a.md"]
    assert stamp == (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("docs/decisions/*.md", ["docs/decisions/1.md"]),
        ("./docs/decisions/*", ["docs/decisions/1.md"]),
        ("docs/**/*.md", ["docs/a.md", "docs/decisions/1.md", "docs/x/y/z.md"]),
        ("docs/**", ["docs/a.md", "docs/decisions/1.md", "docs/x/y/z.md"]),
        ("d?cs/[a-b].md", ["docs/a.md"]),
        ("CLAUDE.md", ["CLAUDE.md"]),
        ("docs/decisions/*.txt", []),
        (".cursor/rules/*.mdc", [".cursor/rules/r.mdc"]),
        ("**/r.mdc", []),
        ("nowhere/*.md", []),
        ("**/*.md", ["CLAUDE.md", "docs/a.md", "docs/decisions/1.md", "docs/x/y/z.md"]),
    ],
)
def test_globs_of_the_config_include_files_elsewhere(root, pattern, expected):
    for path in (
        "CLAUDE.md",
        "docs/a.md",
        "docs/decisions/1.md",
        "docs/decisions/2.txt",
        "docs/x/y/z.md",
        "docs/.hidden/a.md",
        "node_modules/p/README.md",
        ".git/a.md",
        ".cursor/rules/r.mdc",
    ):
        put(root, path)
    walk = MemoryStore(root, [pattern]).walk()
    assert sorted(walk.files) == sorted(expected)
    assert walk.problems == []


@pytest.mark.parametrize(
    "pattern",
    ["../a.md", "docs/../../a.md", "/etc/*.md", "", "a//b.md", "C:/a.md", "a\\b.md", ".git/*.md"],
)
def test_a_glob_that_leaves_the_project_is_reported_and_not_followed(root, pattern):
    put(root, ".mind/a.md")
    walk = MemoryStore(root, [pattern]).walk()
    assert list(walk.files) == [".mind/a.md"]
    (problem,) = walk.problems
    assert problem.path == ".mind/config.toml"
    assert "include" in problem.reason


def test_links_and_special_files_are_reported_and_not_followed(root, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    put(outside, "secret.md")
    (root / ".mind" / "link.md").symlink_to(outside / "secret.md")
    (root / ".mind" / "folder").symlink_to(outside, target_is_directory=True)
    os.mkfifo(root / ".mind" / "pipe.md")
    (root / "docs").symlink_to(outside, target_is_directory=True)
    store = MemoryStore(root, ["docs/*.md"])
    walk = store.walk()
    assert not walk.files
    assert {problem.path for problem in walk.problems} == {
        ".mind/link.md",
        ".mind/folder",
        ".mind/pipe.md",
        "docs",
    }
    for path in (".mind/link.md", ".mind/folder/secret.md", ".mind/pipe.md", "docs/secret.md"):
        assert isinstance(store.read(path), Problem)


def test_a_name_that_is_not_utf8_is_reported(root):
    name = os.fsencode(root / ".mind") + b"/caf\xe9.md"
    try:
        descriptor = os.open(name, os.O_CREAT | os.O_WRONLY)
    except OSError:
        pytest.skip("this file system refuses such names")
    os.close(descriptor)
    walk = MemoryStore(root).walk()
    assert not walk.files
    assert [problem.path for problem in walk.problems] == [".mind/caf\ufffd.md"]


def test_a_folder_that_cant_be_listed_is_reported(root, monkeypatch):
    put(root, ".mind/a.md")
    put(root, ".mind/closed/b.md")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    walk = MemoryStore(root).walk()
    assert list(walk.files) == [".mind/a.md"]
    assert [(p.path, p.reason) for p in walk.problems] == [
        (".mind/closed", "can't be listed: permission denied")
    ]


def test_a_file_is_read_with_its_place(root):
    put(root, ".mind/private/facts/a.md", "---\ntitle: T\n---\n\nx\n")
    result = MemoryStore(root).read(".mind/private/facts/a.md")
    assert not isinstance(result, Problem)
    (record,) = result
    assert (record.memory.title, record.memory.content) == ("T", "x")
    assert (record.place.line, record.place.private, record.place.owned) == (5, True, False)
    assert record.place.digest == files.digest(b"---\ntitle: T\n---\n\nx\n")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../a.md", "not a path within"),
        (".mind/gone.md", "no such file"),
        (".mind", "not a regular file"),
    ],
)
def test_an_unreadable_file_is_a_problem_and_not_an_error(root, path, reason):
    problem = MemoryStore(root).read(path)
    assert isinstance(problem, Problem)
    assert reason in problem.reason


def test_a_file_that_is_too_large_is_a_problem(root):
    put(root, ".mind/a.md", "x" * 2_000_000)
    problem = MemoryStore(root).read(".mind/a.md")
    assert isinstance(problem, Problem)
    assert problem.reason.startswith("too large: 2,000,000 bytes")


def test_a_new_memory_is_in_its_types_folder(root):
    store = MemoryStore(root)
    record = store.create(MEMORY)
    hidden = store.create(replace(MEMORY, type=Kind.INSIGHT), private=True)
    assert record.place.path == ".mind/facts/fact_x_20261120_abcdef.md"
    assert hidden.place.path == ".mind/private/insights/fact_x_20261120_abcdef.md"
    assert hidden.place.private
    assert store.read(record.place.path) == (record,)
    assert store.read(hidden.place.path) == (hidden,)
    assert set(store.stamps()) == {record.place.path, hidden.place.path}


def test_a_new_memory_never_takes_anothers_place(root):
    store = MemoryStore(root)
    first = store.create(MEMORY)
    with pytest.raises(Conflict):
        store.create(replace(MEMORY, content="other"))
    assert store.read(first.place.path) == (first,)


@pytest.mark.parametrize("bad", ["", "a/b", "../a", ".hidden", "x" * 129, "한"])
def test_an_invalid_id_is_never_a_file_name(root, bad):
    with pytest.raises(Invalid):
        MemoryStore(root).create(replace(MEMORY, id=bad))
    assert MemoryStore(root).stamps() == {}


def test_update_writes_the_differences_and_returns_the_memory_as_read(root):
    store = MemoryStore(root)
    record = store.create(MEMORY)
    changed = store.update(record, replace(record.memory, outcome=Outcome.FAILED))
    assert changed.memory == normal(replace(record.memory, outcome=Outcome.FAILED))
    assert store.read(record.place.path) == (changed,)
    assert store.update(changed, changed.memory) == changed


def test_a_changed_file_is_neither_updated_nor_deleted(root):
    store = MemoryStore(root)
    record = store.create(MEMORY)
    path = root / record.place.path
    path.write_bytes(path.read_bytes() + b"by hand\n")
    with pytest.raises(Conflict):
        store.update(record, replace(record.memory, topic="t"))
    with pytest.raises(Conflict):
        store.delete(record)
    assert path.read_bytes().endswith(b"by hand\n")


def test_delete_removes_the_file(root):
    store = MemoryStore(root)
    record = store.create(MEMORY)
    store.delete(record)
    assert store.stamps() == {}
    with pytest.raises(StorageFailed):
        store.update(record, record.memory)


@pytest.mark.attack("symbolic link")
def test_writing_never_goes_through_a_link(root, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (root / ".mind" / "facts").symlink_to(outside, target_is_directory=True)
    with pytest.raises(StorageFailed, match="symbolic link"):
        MemoryStore(root).create(MEMORY)
    assert list(outside.iterdir()) == []


def test_a_write_waits_no_longer_than_the_command_may(root):
    held = lock(root / ".mind" / ".local" / "lock")
    with held, disk.shared(0), pytest.raises(StorageFailed):
        MemoryStore(root).create(MEMORY)
