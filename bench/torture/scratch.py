"""A home and a project, and runs of `mind` in them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.torture.fingerprint import fingerprint
from bench.torture.shim import Shim

_LONGEST_SECONDS = 60


class Result(NamedTuple):
    """The end of one run of `mind`."""

    status: int
    """Negative for a signal."""
    output: str
    errors: str
    pid: int = 0

    @property
    def answer(self) -> Any:
        """Returns what `--json` printed, None if that is not JSON."""
        with contextlib.suppress(ValueError):
            return json.loads(self.output)
        return None


class Contents(NamedTuple):
    """Hashes of all files of a tree."""

    everything: bytes
    """Of an index, its fingerprint."""
    without_index: bytes


class Scratch:
    """A home and a project that can be put back to how they were."""

    def __init__(self, top: Path, shim: Shim | None = None) -> None:
        """Makes the folders. All paths stay the same after each return to a copy."""
        self.top, self.shim = top, shim
        self.tree = top / "tree"
        self.ids: dict[str, str] = {}
        self.saved_ns = 0
        self._loaded = ""
        self._stamps: dict[str, dict[str, tuple[int, ...]]] = {}
        self._ids: dict[str, dict[str, str]] = {}

    @property
    def home(self) -> Path:
        """Returns the user's home."""
        return self.tree / "home"

    @property
    def project(self) -> Path:
        """Returns the folder of the project."""
        return self.tree / "shop"

    def save(self, name: str) -> None:
        """Keeps the tree as it is now."""
        shutil.copytree(self.tree, self._saved(name), symlinks=True)
        self.saved_ns = time.time_ns()
        self._loaded, self._stamps[name] = name, self._stamped()
        self._ids[name] = dict(self.ids)

    def load(self, name: str) -> None:
        """Puts the tree back: what did not change since the last time stays where it is.

        The index takes such files as known, so a run does what it would do on a project in use.
        """
        if self._loaded != name:
            if self._loaded:
                self.tree.rename(self._kept(self._loaded))
            if self._kept(name).exists():
                self._kept(name).rename(self.tree)
            else:
                shutil.copytree(self._saved(name), self.tree, symlinks=True)
                self._stamps[name] = self._stamped()
            self._loaded = name
        self.ids = dict(self._ids[name])
        before, now = self._stamps[name], self._stamped()
        if changed := {path for path in {*before, *now} if before.get(path) != now.get(path)}:
            self._put_back(self._saved(name), changed)
            self._stamps[name] = self._stamped()

    def _saved(self, name: str) -> Path:
        return self.top / f"saved {name}"

    def _kept(self, name: str) -> Path:
        return self.top / f"kept {name}"

    def _put_back(self, saved: Path, changed: Iterable[str]) -> None:
        for path in sorted(changed):
            here, there = self.tree / path, saved / path
            if here.is_dir() and not here.is_symlink() and there.is_dir():
                shutil.copystat(there, here)
                continue
            if here.is_dir() and not here.is_symlink():
                shutil.rmtree(here)
            else:
                here.unlink(missing_ok=True)
            if there.is_dir():
                here.mkdir()
                shutil.copystat(there, here)
            elif there.exists() or there.is_symlink():
                shutil.copy2(there, here, follow_symlinks=False)

    def _stamped(self) -> dict[str, tuple[int, ...]]:
        """Returns by path what changes with a file. Of a folder that is only its mode."""
        stamps: dict[str, tuple[int, ...]] = {}
        waiting = [(str(self.tree), "")]
        while waiting:
            folder, below = waiting.pop()
            with os.scandir(folder) as entries:
                for entry in entries:
                    one, path = entry.stat(follow_symlinks=False), f"{below}{entry.name}"
                    stamps[path] = (one.st_mode,)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, f"{path}/"))
                    else:
                        stamps[path] += (one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)
        return stamps

    def enter(self) -> None:
        """Makes the project the working directory of this process, and the home its home."""
        os.chdir(self.project)
        os.environ.update(HOME=str(self.home), MIND_HOME=str(self.home / ".mind"))

    def call(self, *words: str) -> Result:
        """Runs `mind` in this process, which has entered the project."""
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                status = _run(words)
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else 1
        return Result(status, output.getvalue(), errors.getvalue())

    def git(self, *words: str) -> str:
        """Returns what git answers in the project."""
        command = ["git", "-C", str(self.project), *words]
        environ = {**os.environ, "HOME": str(self.home)}
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=environ
        ).stdout

    def write(self, path: str, text: str) -> None:
        """Writes a file of the project."""
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def mind(self, *words: str, input: str = "", until: str = "") -> Result:
        """Runs `mind` in a process of its own, whose input ends after it printed `until`."""
        return self.fork(lambda: _run(words, open=_steadily), input, until)

    def fork(self, work: Callable[[], int], input: str = "", until: str = "") -> Result:
        """Does `work` in a process of its own, and returns how that ended."""
        output, errors = self.top / "stdout", self.top / "stderr"
        output.write_bytes(b"")
        theirs, ours = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(ours)
            os.dup2(theirs, 0)
            self._become(work, output, errors)
        os.close(theirs)
        with os.fdopen(ours, "wb", buffering=0) as pipe:

            def end_input() -> None:
                if until.encode() in output.read_bytes():
                    pipe.close()

            with contextlib.suppress(BrokenPipeError):
                pipe.write(input.encode())
            status = _waited(pid, end_input)
        texts = [path.read_text("utf-8", "replace") for path in (output, errors)]
        return Result(status, texts[0], texts[1], pid)

    def _become(self, work: Callable[[], int], output: Path, errors: Path) -> None:
        """Is the process of one run, until its end."""
        status = 70
        try:
            os.setsid()
            for number, path in ((1, output), (2, errors)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
            self.enter()
            sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), "utf-8", write_through=True)
            sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), "utf-8", write_through=True)
            status = work()
            sys.stdout.flush()
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except BaseException:  # noqa: BLE001 - it is what a person would see
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)

    def contents(self, pid: int | None = None) -> Contents:
        """Returns hashes of all files after the run of a process, whose number does not count.

        Of a file that kept the time of the copy that was put back, that is part of it, as the index
        goes by that.
        """
        hashed = hashlib.sha256()
        own = str(pid).encode()
        times: dict[int, str] = {}
        indexes: list[Path] = []
        for folder, folders, files in os.walk(os.fsencode(self.tree)):
            folders.sort()
            for name in sorted([*files, *folders]):
                path = os.path.join(folder, name)  # noqa: PTH118 - bytes, and many of them
                status = os.lstat(path)
                for time_ns in (status.st_mtime_ns, status.st_ctime_ns):
                    times.setdefault(time_ns, os.fsdecode(path))
                if b"/.index/" in path:
                    continue
                if name == b".index":
                    indexes.append(Path(os.fsdecode(path)))
                kept, data = 0, b""
                if stat.S_ISREG(status.st_mode):
                    kept = status.st_mtime_ns if status.st_mtime_ns < self.saved_ns else 0
                    with open(path, "rb") as file:  # noqa: PTH123
                        data = file.read()
                    if data.strip() == own:  # who holds a lock
                        data = b"PID"
                head = (path.replace(own, b"PID"), status.st_mode, kept, len(data))
                hashed.update(repr(head).encode() + data)
        without_index = hashed.digest()
        for index in indexes:
            for line in fingerprint(index, times):
                hashed.update(f"{line}\n".encode("utf-8", "surrogateescape"))
        return Contents(hashed.digest(), without_index)


def _run(words: Sequence[str], **options: Any) -> int:
    """Runs `mind`, or the program that the first word names, and returns its exit status."""
    if words[0] == "git":
        git = subprocess.run(words, check=False, capture_output=True, text=True)
        sys.stdout.write(git.stdout)
        # The words of mind's own errors; git's are `fatal:` and others.
        sys.stderr.write(f"error: {git.stderr}" if git.returncode else git.stderr)
        return git.returncode
    if words[0] == "memory-tool":
        from mimo.extensions.adapters.memory_tool import answers

        for line in answers(sys.stdin):
            sys.stdout.write(f"{line}\n")
        return 0
    from mimo.cli.main import main

    return main(list(words), **options)


def _steadily(project: Path | None) -> Any:
    """Opens a memory for which each question for the time takes a millisecond.

    How long something took is part of what is recorded: equal runs leave equal records.
    """
    from mimo.data.disk import working_directory
    from mimo.mind import Mind
    from mimo.surroundings import Timer

    timer = Timer(monotonic=iter(number / 1000 for number in itertools.count()).__next__)
    mind = Mind.open(working_directory(), project=project)
    mind.timer = timer
    return mind


def _waited(pid: int, meanwhile: Callable[[], object]) -> int:
    """Returns the exit status of a process, which is killed after a minute."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            # What it started must not write any more either.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status)
        meanwhile()
        time.sleep(0.002)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -int(signal.SIGALRM)
