"""Append logs: whole lines or none, however a write ends."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.data import append_log, disk, locks
from mimo.errors import StorageFailed

Record = Callable[[str, object], None]


def test_lines_are_added_to_a_new_and_to_an_existing_log(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "log"
    append_log.append(path, b"one\n")
    append_log.append(path, b"two\nthree\n", durable=False)
    assert append_log.split(disk.read(path)).lines == [b"one", b"two", b"three"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 4097, 8192, 10_000])
def test_a_torn_line_is_skipped_and_then_removed(tmp_path: Path, length: int) -> None:
    path = tmp_path / "log"
    for before in (b"", b"one\n", b"x" * 4095 + b"\n"):
        path.write_bytes(before + b"t" * length)
        assert append_log.split(disk.read(path)) == (before, b"t" * length)
        assert append_log.torn(path) == length
        append_log.append(path, b"three\n")
        assert path.read_bytes() == before + b"three\n"


def test_damage_elsewhere_is_left_for_its_reader_to_report(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n\0\0\n\nthree\n")
    append_log.append(path, b"four\n")
    assert append_log.split(disk.read(path)).lines == [b"one", b"\0\0", b"", b"three", b"four"]


def test_an_append_of_nothing_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\nto")
    append_log.append(path, b"")
    assert path.read_bytes() == b"one\nto"


@pytest.mark.attack("append cut short or failing")
def test_short_writes_are_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    data = b"first line\nsecond line\n"
    write = os.write
    for size in range(1, len(data) + 1):
        path = tmp_path / f"log{size}"
        monkeypatch.setattr(os, "write", lambda fd, part, size=size: write(fd, part[:size]))
        append_log.append(path, data)
        assert path.read_bytes() == data
    record_property("tried", len(data))


@pytest.mark.attack("append cut short or failing")
@pytest.mark.parametrize("code", ["ENOSPC", "EDQUOT", "EIO", "EROFS", "EFBIG"])
@pytest.mark.parametrize("durable", [True, False])
def test_a_failed_append_leaves_the_log_unchanged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
    code: str,
    durable: bool,
) -> None:
    path = tmp_path / "log"
    append_log.append(path, b"one\n")
    data = b"two\nthree\n"
    write = os.write

    def cut_short(size: int) -> Callable[[int, memoryview], int]:
        calls: list[int] = []

        def failing(descriptor: int, part: memoryview) -> int:
            if calls or not size:
                raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)))
            calls.append(size)
            return write(descriptor, part[:size])

        return failing

    for size in range(len(data)):
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", cut_short(size))
            with pytest.raises(StorageFailed) as caught:
                append_log.append(path, data, durable=durable)
        assert caught.value.details["errno"] == code
        assert path.read_bytes() == b"one\n"
    append_log.append(path, data)
    assert path.read_bytes() == b"one\n" + data
    record_property("tried", len(data))


@pytest.mark.attack("append cut short or failing")
def test_lines_that_could_not_be_flushed_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    append_log.append(path, b"one\n")

    def failing(_: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(StorageFailed):
            append_log.append(path, b"two\n")
    assert path.read_bytes() == b"one\n"


def test_an_append_goes_to_the_file_that_replaced_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"old\n")
    wait_for = locks.wait_for

    def replaced(descriptor: int, of: Path, wait: float) -> None:
        wait_for(descriptor, of, wait)
        if path.read_bytes() == b"old\n":
            (tmp_path / "new").write_bytes(b"new\n")
            (tmp_path / "new").replace(path)

    monkeypatch.setattr(locks, "wait_for", replaced)
    append_log.append(path, b"one\n")
    assert path.read_bytes() == b"new\none\n"
