"""Locks: one writer at a time, and the name of the holder for the others."""

import os
import subprocess
import sys
import threading

import pytest

from mimo.data.locks import lock
from mimo.errors import StorageFailed

COUNT = """
import sys
from pathlib import Path
from mimo.data.locks import lock
counter = Path(sys.argv[1])
for _ in range(50):
    with lock(counter.with_name("lock")):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


def test_a_held_lock_names_its_holder(tmp_path):
    path = tmp_path / "new" / "lock"
    with lock(path), pytest.raises(StorageFailed) as raised, lock(path, wait=0):
        pass
    assert f"process {os.getpid()}" in raised.value.message
    assert raised.value.details["pid"] == os.getpid()
    assert raised.value.hint


def test_a_lock_is_released_after_an_error(tmp_path):
    with pytest.raises(ValueError, match="x"), lock(tmp_path / "lock"):
        raise ValueError("x")
    with lock(tmp_path / "lock", wait=0):
        pass


def test_a_waiting_thread_gets_the_lock_when_it_is_free(tmp_path):
    got = []

    def wait():
        with lock(tmp_path / "lock"):
            got.append(True)

    with lock(tmp_path / "lock"):
        thread = threading.Thread(target=wait)
        thread.start()
        assert got == []
    thread.join(10)
    assert got == [True]


def test_processes_take_turns(tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", COUNT, str(counter)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    running = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert counter.read_text() == "150"


@pytest.mark.attack("symbolic link")
def test_a_lock_that_is_a_link_is_refused(tmp_path):
    target = tmp_path / "target"
    target.write_text("theirs")
    (tmp_path / "lock").symlink_to(target)
    with pytest.raises(StorageFailed, match="symbolic link"), lock(tmp_path / "lock"):
        pass
    assert target.read_text() == "theirs"
