"""`mind review` and `mind trust` on a real terminal; `keys.transcript` has what each key does."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mimo.memory.ids import handle_of
from tests.conftest import make_store
from tests.kit import write

TWO = (
    "---\nid: d1\ntype: decision\ntopic: auth\noutcome: FAILED\ncreated: 2026-11-01T08:00:00Z\n"
    "---\nUse JWT\n\n## Competing: outcome\nSUCCESS\n\n## Competing: the text\nUse sessions\n"
)
PATIENCE = 60
"""Seconds after which a prompt that does not come counts as never coming."""


class Terminal:
    """A program on a terminal: what it shows, and what is typed."""

    def __init__(self, number: int, process: "subprocess.Popen[bytes]") -> None:
        self.number = number
        self.process = process
        self.shown = ""
        self.raw = b""
        """Everything that was written so far, with its colours."""

    def until(self, words: str) -> str:
        """Returns what was shown up to `words`, which the program waits behind."""
        end = time.monotonic() + PATIENCE
        poll = select.poll()  # It takes any descriptor, unlike `select`.
        poll.register(self.number, select.POLLIN)
        while words not in self.shown:
            if not poll.poll(max(0, end - time.monotonic()) * 1000):
                raise AssertionError(f"{words!r} never came; {self.shown!r}")
            try:
                data = os.read(self.number, 4096)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"it ended before {words!r}; {self.shown!r}")
            self.raw += data
            self.shown += re.sub(r"\x1b\[[0-9;]*m", "", data.decode("utf-8", "replace"))
        seen, _, self.shown = self.shown.partition(words)
        return seen + words

    def press(self, key: str) -> None:
        """Types a key once the program reads keys, as the terminal's mode shows."""
        import termios

        end = time.monotonic() + PATIENCE
        while termios.tcgetattr(self.number)[3] & termios.ICANON and time.monotonic() < end:
            time.sleep(0.01)
        os.write(self.number, key.encode())

    def ended(self) -> int:
        """Returns the exit status after reading what is left."""
        with_end = time.monotonic() + PATIENCE
        while time.monotonic() < with_end:
            try:
                data = os.read(self.number, 4096)
            except OSError:
                break
            if not data:
                break
            self.shown += data.decode("utf-8", "replace")
        return self.process.wait(PATIENCE)


@contextmanager
def terminal(root: Path, *words: str, **settings: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    environment = {"TERM": "xterm", "COLUMNS": "200", "LINES": "50", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mimo", *words],
        cwd=root,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, **environment, **settings},
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_each_version_is_chosen_by_one_key(project):
    path = write(project, "decisions/d1.md", TWO)
    with terminal(project, "review") as screen:
        shown = screen.until("? the keys")
        assert "the branches disagree on outcome" in shown
        assert "2. SUCCESS" in shown
        screen.press("2")
        screen.until("outcome: version 2")
        screen.until("? the keys")
        screen.press("b")
        screen.until("2 resolved; nothing is left")
        assert screen.ended() == 0
    assert path.read_text("utf-8") == (
        "---\nid: d1\ntype: decision\ntopic: auth\noutcome: SUCCESS\n"
        "created: 2026-11-01T08:00:00Z\n---\nUse JWT\n\nUse sessions\n"
    )


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_quitting_changes_nothing(project, key):
    path = write(project, "decisions/d1.md", TWO)
    with terminal(project, "review") as screen:
        screen.until("? the keys")
        screen.press(key)
        screen.until("nothing was changed; 1 left")
        assert screen.ended() == 0
    assert path.read_text("utf-8") == TWO


def test_interrupted_trust_approves_nothing(tmp_path):
    root = tmp_path / "clone"
    make_store(root, "facts")
    (root / ".mind" / "facts" / "a.md").write_text("tea is hot\n", "utf-8")
    with terminal(root, "trust") as screen:
        screen.until("[y/N] ")
        screen.press("\x03")
        screen.until("interrupted")
        assert screen.ended() == 130
    assert not (tmp_path / "home" / "trust.db").exists()


def test_in_a_pipe_and_on_a_dumb_terminal_it_is_a_list(project):
    write(project, "decisions/d1.md", TWO)
    done = subprocess.run(
        [sys.executable, "-m", "mimo", "review"],
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    settle = f"mind review settle {handle_of('d1')} --field 'the text' --take"
    assert all(f"{settle} {take}\n" in done.stdout for take in (1, 2, "both"))
    assert done.stdout.rstrip().endswith("to review: versions 1")
    with terminal(project, "review", TERM="dumb") as screen:
        screen.until("to review: versions 1")
        assert screen.ended() == 0
