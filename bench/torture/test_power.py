"""The model of a disk: what a loss of power may leave of recorded writes."""

import stat
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.torture.power import (
    EMPTY,
    LOST,
    NAMELESS,
    ZEROS,
    Event,
    Loss,
    Record,
    digests,
    make,
    tree,
)
from bench.torture.shim import KINDS

FILE, FOLDER = stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "a.md").write_text("old")
    return folder


def record(top: Path, *events: Event) -> Record:
    """Returns events of the objects 1 (the folder `notes`), 2 (`a.md`) and new ones."""
    made = Record(top, top.parent / "stdout")
    for event in events:
        if event.kind in ("create", "mkdir"):
            made.new(event.object, event.mode)
    made.events = list(events)
    made.answered = len(events)
    return made


def texts(record: Record, loss: Loss) -> dict[str, bytes]:
    return {path: node.data for path, node in record.tree(loss).items() if stat.S_ISREG(node.mode)}


def at_the_end(record: Record, way: str) -> Sequence[dict[str, bytes]]:
    losses = [loss for loss in record.losses(1) if loss.after == len(record.events)]
    return [texts(record, loss) for loss in losses if loss.way == way]


CREATE = Event("create", 3, folder=1, name="b.tmp", mode=FILE)
WRITE = Event("write", 3, data=b"new")
FLUSH = Event("fsync", 3)
RENAME = Event("rename", 3, folder=1, name="a.md", old_folder=1, old_name="b.tmp")
FLUSH_FOLDER = Event("fsync", 1)


def test_a_file_that_is_flushed_and_then_named_is_there_whole(top: Path) -> None:
    written = record(top, CREATE, WRITE, FLUSH, RENAME, FLUSH_FOLDER)

    assert {
        tuple(texts(written, loss).items()) for loss in written.losses(1) if loss.after == 5
    } == {(("notes/a.md", b"new"),)}


def test_before_the_folder_is_flushed_the_old_text_may_be_there(top: Path) -> None:
    written = record(top, CREATE, WRITE, FLUSH, RENAME)

    assert at_the_end(written, LOST) == [{"notes/a.md": b"old"}]
    assert at_the_end(written, EMPTY) == [{"notes/a.md": b"new"}]


def test_a_name_without_its_data_is_empty_or_has_zeros(top: Path) -> None:
    written = record(top, CREATE, WRITE, RENAME, FLUSH_FOLDER)

    assert at_the_end(written, EMPTY) == [{"notes/a.md": b""}]
    assert at_the_end(written, ZEROS) == [{"notes/a.md": b"\0\0\0"}]


def test_a_folder_whose_name_is_lost_takes_its_files_with_it(top: Path) -> None:
    made = Event("mkdir", 3, folder=0, name="new", mode=FOLDER)
    file = Event("create", 4, folder=3, name="c.md", mode=FILE)
    written = record(top, made, file, Event("fsync", 4), Event("fsync", 3))

    assert at_the_end(written, NAMELESS) == [{"notes/a.md": b"old"}]


def test_a_tree_is_made_from_another(top: Path) -> None:
    written = record(top, CREATE, WRITE)
    before, after = written.before(), written.everything()
    make(after, before, top)

    assert tree(top) == after
    assert digests(after, before) != digests(before, before)
    make(before, after, top)
    assert tree(top) == before


def test_a_run_has_answered_once_it_printed_the_awaited_text(top: Path) -> None:
    answers = top.parent / "stdout"
    answers.touch()
    inode, note = answers.stat().st_ino, (top / "notes/a.md").stat().st_ino

    def called(kind: int, inode: int, data: bytes, mode: int = FILE) -> bytes:
        return struct.pack("=2i4q", kind, mode, inode, 0, len(data), 2) + b"\0\0" + data

    made = Record(top, answers, '"id":2')
    first, other = called(-1, inode, b'{"id":1}\n{"i'), called(-1, inode, b'"id":2', mode=0)
    write = called(KINDS.index("write"), note, b"new")
    made.read(first + write + other + write + called(-1, inode, b'd":2}\n') + write)

    assert len(made.events) == 3
    assert made.answered == 2
