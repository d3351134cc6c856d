"""Lets writing commands fail at each of their writing calls, and checks what is left.

    python -m tests.bench.torture [--minutes N] [--seed N] [--points N] [--only COMMAND]

A shim in C (torture.c, loaded with LD_PRELOAD) counts the calls that write below a scratch folder,
in `mind` and in the git that it runs. At the n-th one it kills all of them, cuts a write short, or
lets the call fail with an error. After each run the project is examined without the shim: a command
that ended with 0 did all of its work; any other left every file as it was or complete; approvals,
the record of calls and the index are right; the next command works.

This process imports mind once and forks for each run and for each examination. Points that leave
the same files share an examination, and `--jobs` divides the points among processes.
"""

import argparse
import contextlib
import errno
import gc
import hashlib
import io
import itertools
import json
import mmap
import os
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.marked import write_part

SHIM = Path(__file__).with_suffix(".c")
KINDS = (
    "write", "pwrite", "writev", "ftruncate", "rename", "unlink",
    "link", "mkdir", "create", "fsync", "chmod",
)  # fmt: skip
_HEADER = struct.Struct("=6i4q1024s")
_STATE_BYTES = _HEADER.size + (1 << 16)
_LONGEST_SECONDS = 60

_WRITES = ("write", "pwrite")
_GROWS = (*_WRITES, "writev", "create", "mkdir", "link", "rename", "fsync")


class Fault(NamedTuple):
    """One way in which a call fails."""

    name: str
    how: int
    kinds: Sequence[str]
    error: int = 0
    lasting: bool = False
    """True if all later calls of these kinds fail, too."""

    @property
    def mask(self) -> int:
        """Returns the kinds as bits."""
        return sum(1 << KINDS.index(kind) for kind in self.kinds)


FAULTS = (
    Fault("killed before the call", 1, KINDS),
    Fault("killed in the middle of the write, or after the call", 2, KINDS),
    Fault("short write", 3, _WRITES),
    Fault("disk full (ENOSPC) from here on", 4, _GROWS, errno.ENOSPC, lasting=True),
    Fault("quota used up (EDQUOT) from here on", 4, _GROWS, errno.EDQUOT, lasting=True),
    Fault("read-only (EROFS) from here on", 4, KINDS, errno.EROFS, lasting=True),
    Fault("input/output error (EIO), once", 4, KINDS, errno.EIO),
    Fault("too many open files (EMFILE), once", 4, ("create",), errno.EMFILE),
    Fault("interrupted (EINTR), once", 4, (*_WRITES, "create", "fsync", "ftruncate"), errno.EINTR),
)


class Command(NamedTuple):
    """A command that is tried, and what must be there before it."""

    name: str
    words: tuple[str, ...]
    before: Callable[["Scratch"], None] = lambda scratch: None


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


Facts = Mapping[str, tuple[str, ...]]
"""Data that a user could lose, by a name for it: each must be whole."""


class Shim:
    """The shared state of the shim."""

    def __init__(self, path: Path, root: Path) -> None:
        """Maps the state file; nothing is counted yet."""
        self._file = path.open("r+b")
        self._map = mmap.mmap(self._file.fileno(), _STATE_BYTES)
        self._root = os.fsencode(root)

    def arm(self, fault: Fault | None, at: int, now: int) -> None:
        """Counts from now on, and lets the call with number `at` fail. The time of day is `now`."""
        words = (fault.how, fault.error, fault.lasting, fault.mask) if fault else (0, 0, 0, 0)
        _HEADER.pack_into(self._map, 0, 1, *words, 0, at, 0, now, 0, self._root)

    def disarm(self) -> tuple[bool, list[int]]:
        """Stops counting; returns whether a call failed, and the kinds of all calls."""
        _, _, _, _, _, acted, _, count, *_ = _HEADER.unpack_from(self._map, 0)
        self._map[0:4] = b"\0" * 4
        return bool(acted), list(self._map[_HEADER.size + 1 : _HEADER.size + 1 + count])


class Contents(NamedTuple):
    """Hashes of all files of a tree."""

    everything: bytes
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

    def warm(self) -> None:
        """Imports, loads and compiles what a run needs, so that the forks need not.

        It runs on a copy of its own, as what a process remembers of files goes by their paths.
        """
        here, environ, own = Path.cwd(), dict(os.environ), self.tree
        self.tree = self.top / "warm"
        shutil.copytree(own, self.tree, symlinks=True)
        try:
            self.enter()
            facts(self, self.call(*LIST))
            list(_problems(self))
            _refreshed(self)
        finally:
            shutil.rmtree(self.tree)
            self.tree = own
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environ)
        gc.collect()
        gc.freeze()

    def enter(self) -> None:
        """Makes the project the working directory of this process, and the home its home."""
        os.chdir(self.project)
        os.environ.update(HOME=str(self.home), MIND_HOME=str(self.home / ".mind"))

    def call(self, *words: str) -> Result:
        """Runs `mind` in this process, which has entered the project."""
        from mimo.cli.main import main

        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                status = main(list(words))
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

    def mind(self, *words: str) -> Result:
        """Runs `mind` in a process of its own."""
        from mimo.cli.main import main

        return self.fork(lambda: main(list(words), open=_steadily))

    def fork(self, work: Callable[[], int]) -> Result:
        """Does `work` in a process of its own, and returns how that ended."""
        output, errors = self.top / "stdout", self.top / "stderr"
        pid = os.fork()
        if not pid:
            self._become(work, output, errors)
        status = _waited(pid)
        texts = [path.read_text("utf-8", "replace") for path in (output, errors)]
        return Result(status, texts[0], texts[1], pid)

    def _become(self, work: Callable[[], int], output: Path, errors: Path) -> None:
        """Is the process of one run, until its end."""
        status = 70
        try:
            os.setsid()
            for number, path in ((1, output), (2, errors)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
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

    def contents(self, pid: int) -> Contents:
        """Returns hashes of all files after the run of a process, whose number does not count.

        Of a file that kept the time of the copy that was put back, that is part of it, as the index
        goes by that.
        """
        hashed, without = hashlib.sha256(), hashlib.sha256()
        own = str(pid).encode()
        for folder, folders, files in os.walk(os.fsencode(self.tree)):
            folders.sort()
            for name in sorted([*files, *folders]):
                path = os.path.join(folder, name)  # noqa: PTH118 - bytes, and many of them
                status = os.lstat(path)
                kept, data = 0, b""
                if stat.S_ISREG(status.st_mode):
                    kept = status.st_mtime_ns if status.st_mtime_ns < self.saved_ns else 0
                    with open(path, "rb") as file:  # noqa: PTH123
                        data = file.read()
                    if data.strip() == own:  # who holds a lock
                        data = b"PID"
                head = (path.replace(own, b"PID"), status.st_mode, kept, len(data))
                line = repr(head).encode() + data
                hashed.update(line)
                if b"/.index/" not in path:
                    without.update(line)
        return Contents(hashed.digest(), without.digest())


def _steadily(project: Path | None) -> Any:
    """Opens a memory for which each question for the time takes a millisecond.

    How long something took is part of what is recorded: equal runs leave equal records.
    """
    from mimo.disk import working_directory
    from mimo.mind import Mind, Timer

    timer = Timer(monotonic=iter(number / 1000 for number in itertools.count()).__next__)
    mind = Mind.open(working_directory(), project=project)
    mind.timer = timer
    return mind


def _waited(pid: int) -> int:
    """Returns the exit status of a process, which is killed after a minute."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            # What it started must not write any more either.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -int(signal.SIGALRM)


# What there is before the commands


def prepared(scratch: Scratch) -> None:
    """Makes a project with a little of everything."""
    scratch.project.mkdir(parents=True)
    scratch.home.mkdir()
    (scratch.home / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n")
    scratch.git("init", "--quiet", "--initial-branch=main", "--template=")
    _done(scratch, "init")
    scratch.ids["fact"] = _done(scratch, "add", "Tea is served at four o'clock")["id"]
    scratch.ids["other"] = _done(scratch, "add", "The kettle holds two litres", "--private")["id"]
    words = ("save", "decision", "auth_strategy", "Use JWT", "--because", "No session store")
    scratch.ids["decision"] = _done(scratch, *words)["id"]
    scratch.write(
        "docs/guide.md", "".join(f"# Part {n}\n\n{'Water boils. ' * 30}\n\n" for n in range(4))
    )
    scratch.write("docs/short.md", "# Short\n\nCups are in the cupboard.\n")
    scratch.write("EDITED.md", "")
    _done(scratch, "sync")
    for line in ("doctor", "audit verify", "search tea", "list"):
        _done(scratch, *line.split())
    scratch.warm()


def _done(scratch: Scratch, *words: str) -> Any:
    result = scratch.mind(*words, "--json")
    if result.status:
        raise SystemExit(f"mind {' '.join(words)} failed: {result.errors or result.output}")
    return result.answer


def _untrusted(scratch: Scratch) -> None:
    _done(scratch, "untrust")


def _changed(scratch: Scratch) -> None:
    _done(scratch, "edit", scratch.ids["fact"], "--content", "Tea is served at five")


def _removed(scratch: Scratch) -> None:
    _done(scratch, "rm", scratch.ids["fact"])


def _unsynced(scratch: Scratch) -> None:
    _done(scratch, "add", "The pot is blue")


def _competing(scratch: Scratch) -> None:
    text = "---\nid: {}\ntype: decision\ntitle: {}\ntopic: db\n---\n{}\n"
    for name, title in (
        ("decision_db_20260101_aaaaaa", "Use A"),
        ("decision_db_20260102_bbbbbb", "Use B"),
    ):
        scratch.write(f".mind/decisions/{name}.md", text.format(name, title, title))
    scratch.git("add", ".mind")
    scratch.git("commit", "--quiet", "--message=two")
    _done(scratch, "trust")


def _foreign_database(scratch: Scratch) -> None:
    from tests import mama_databases

    mama_databases.example(scratch.tree / "mama.db")


def _procedure(scratch: Scratch) -> None:
    from tests.sample_procedures import GREET, text

    scratch.write("greet.md", text("greet", GREET))
    _done(scratch, "procedure", "add", "greet.md")


def _no_project(scratch: Scratch) -> None:
    shutil.rmtree(scratch.project / ".mind")
    shutil.rmtree(scratch.home / ".mind")


COMMANDS = (
    Command("add", ("add", "Milk goes in first")),
    Command("save decision", ("save", "decision", "cache", "Redis", "--because", "Fast")),
    Command("save checkpoint", ("save", "checkpoint", "Login works", "--next", "Write the test")),
    Command("save insight", ("save", "insight", "Safari drops cookies", "--tag", "safari")),
    Command("evolve outcome", ("evolve", "outcome", "auth_strategy", "failed", "--reason", "No")),
    Command(
        "evolve supersede",
        ("evolve", "supersede", "auth_strategy", "Use sessions", "--because", "Revocable"),
    ),
    Command("edit", ("edit", "{fact}", "--content", "Tea is served at six", "--tag", "tea")),
    Command("rm", ("rm", "{fact}")),
    Command("rm of a private memory", ("rm", "{other}")),
    Command("ingest", ("ingest", "docs/guide.md", "docs/short.md")),
    Command("value put", ("value", "put", "agent.build", "last", '{"ok": true}')),
    Command("trust", ("trust",), _untrusted),
    Command("untrust", ("untrust",)),
    Command("review settle", ("review", "settle", "decision_db_20260101_aaaaaa", "1"), _competing),
    Command("sync", ("sync",), _unsynced),
    Command("import", ("import", "mama", "--db", "../mama.db"), _foreign_database),
    Command("undo", ("undo",), _removed),
    Command("restore", ("restore", "{fact}"), _changed),
    Command(
        "edges add",
        (
            *("edges", "add", "--title", "Cold cup"),
            *("--description", "Tea cools", "--workaround", "Warm the cup"),
        ),
    ),
    Command("keep", ("keep", "{fact}")),
    Command("procedure run", ("procedure", "run", "greet", "--context", '{"who": 1}'), _procedure),
    Command("index --rebuild", ("index", "--rebuild")),
    Command("init", ("init",), _no_project),
    Command("config", ("config", "decay.rate", "0.05")),
    Command("context write", ("context", "write")),
    Command("install", ("install", "claude-code")),
)  # fmt: skip


# What must hold after each run

_VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?)?"), "TIME"),
    (re.compile(r"_\d{8}_[0-9a-z]{6}"), "_ID"),
    (re.compile(r"[0-9a-f]{16,}"), "HEX"),
    (re.compile(r"\b1\d{9}(\.\d+)?\b"), "SECONDS"),
)


def _same(text: str) -> str:
    for pattern, name in _VARIES:
        text = pattern.sub(name, text)
    return text


def facts(scratch: Scratch, listed: Result) -> Facts:
    """Returns what a person could lose, given the list of all memories."""
    found: dict[str, list[str]] = {}
    kept = [
        scratch.project / ".mind",
        scratch.home / ".mind/memories",
        scratch.home / ".mind/edges",
    ]
    single = [scratch.project / "CLAUDE.md", scratch.project / ".mcp.json"]
    single += [scratch.home / ".mind/projects.json", scratch.home / ".mind/config.toml"]
    single += sorted((scratch.project / ".claude").rglob("*.json"))
    for path in [*single, *(file for folder in kept for file in sorted(folder.rglob("*")))]:
        name = path.relative_to(scratch.tree).as_posix()
        passing = re.search(r"/\.(index|local)(/|$)|/\.mind-[^/]*\.tmp$|lock$", name)
        if path.is_file() and not passing:
            found.setdefault(_same(name), []).append(_same(path.read_text("utf-8", "replace")))
    for row in (listed.answer or {}).get("memories", []):
        found.setdefault(f"trust of {_same(row['id'])}", []).append(row["trust"])
    found["commits"] = [scratch.git("rev-list", "--count", "--all").strip()]
    return {name: tuple(sorted(texts)) for name, texts in found.items()}


def lost(acknowledged: bool, before: Facts, after: Facts, now: Facts, errors: str) -> Iterator[str]:
    """Yields what an acknowledged run did not do, and what another left half done."""
    for name in sorted({*before, *after, *now}):
        old, new, here = (one.get(name, ()) for one in (before, after, now))
        if here == new:
            continue
        if acknowledged:
            if not (name.startswith("trust of ") and "could not be approved" in errors):
                yield f"acknowledged, but {name} is not as it should be"
        elif any(text not in (*old, *new, *_unapproved(name, errors)) for text in here):
            yield f"{name} is neither as before nor as after"
        elif not here and old and new:
            yield f"{name} is lost"


def _unapproved(name: str, errors: str) -> tuple[str, ...]:
    """Returns the trust that a memory may have, too, if a failure kept mind from approving it.

    A killed process prints nothing, and leaves each text that it wrote approved.
    """
    return ("untrusted",) if errors and name.startswith("trust of ") else ()


LIST = ("list", "--limit", "500", "--json")


class Fresh(NamedTuple):
    """The facts that do not depend on the index that was left."""

    ids: Sequence[str]
    found: Sequence[str]
    """The ids that a search answers with."""
    error: str
    """Of the next command."""


class Examination(NamedTuple):
    """The state of the project and the home after a run."""

    facts: Facts
    problems: Sequence[str]
    """Their own faults."""
    fresh: Fresh | None = None


def examined(scratch: Scratch, command: Command, fresh: Fresh | None = None) -> Examination:
    """Returns what a process of its own finds, in which no call fails."""
    run = scratch.fork(lambda: _examine(scratch, command, fresh))
    if run.status:
        return Examination({}, [f"it can't be examined: {run.errors.strip()[-500:]}"])
    held, problems, again = run.answer
    texts = {name: tuple(texts) for name, texts in held.items()}
    return Examination(texts, problems, Fresh(*again))


def _examine(scratch: Scratch, command: Command, fresh: Fresh | None) -> int:
    listed = scratch.call(*LIST)
    held = facts(scratch, listed)
    problems = []
    if command.name == "init":
        if (again := scratch.call("init", "--json")).status:
            problems.append(f"init can't be repeated: {again.errors.strip()}")
        listed = scratch.call(*LIST)
    problems += _problems(scratch)
    here = (_ids(listed), _search(scratch))
    fresh = fresh or _refreshed(scratch)
    if here != (fresh.ids, fresh.found):
        problems.append(f"the index differs from a fresh one: {here} {fresh}")
    if fresh.error:
        problems.append(f"the next command fails: {fresh.error}")
    print(json.dumps((held, problems, fresh)))
    return 0


def _problems(scratch: Scratch) -> Iterator[str]:
    health = scratch.call("doctor", "--json").answer or {"checks": [{"verdict": "fault"}]}
    for check in health["checks"]:
        if check["verdict"] == "fault" or (check["name"] == "audit" and check.get("hint")):
            yield f"doctor: {check.get('name')}: {check.get('message')}"
    if (verdict := scratch.call("audit", "verify", "--json")).status:
        yield f"audit verify: {verdict.output[:300]}{verdict.errors[:200]}"


def _refreshed(scratch: Scratch) -> Fresh:
    shutil.rmtree(scratch.project / ".mind/.index", ignore_errors=True)
    ids, found = _ids(scratch.call(*LIST)), _search(scratch)
    added = scratch.call("add", "Biscuits are in the tin", "--json")
    listed = not added.status and added.answer["id"] in _ids(scratch.call(*LIST))
    error = "" if listed else added.errors.strip()[:300] or "it is not listed"
    return Fresh(ids, found, error)


def _ids(listed: Result) -> list[str]:
    """Returns the ids of all memories."""
    return sorted(row["id"] for row in (listed.answer or {}).get("memories", [{"id": "no answer"}]))


def _search(scratch: Scratch) -> list[str]:
    """Returns the ids of the memories that a search answers with."""
    found = scratch.call("search", "tea at four", "--json").answer or {}
    return [row["id"] for row in found.get("memories", found.get("results", []))]


class Point(NamedTuple):
    """One call at which one fault is tried."""

    command: str
    fault: str
    at: int
    kind: str
    is_index: bool
    """True if the call writes the index, which can be rebuilt."""


class Figures:
    """The points that there are, and what came of those that were tried."""

    def __init__(self) -> None:
        """Starts without a point."""
        self.points: dict[Point, None] = {}
        self.tried: dict[Point, None] = {}
        self.failed: dict[Point, None] = {}
        self.ended: Counter[str] = Counter()
        self.shared = 0
        """The number of points that shared the examination of an earlier one."""
        self.shared_but_index = 0
        """The number of others that shared the part without the index."""

    def add(self, path: Path) -> None:
        """Adds what a process kept."""
        for name, value in json.loads(path.read_text("utf-8")).items():
            if name == "ended":
                self.ended.update(value)
            elif name in _SUMS:
                setattr(self, name, getattr(self, name) + value)
            else:
                getattr(self, name).update(dict.fromkeys(Point(*one) for one in value))

    def keep(self, path: Path) -> None:
        """Writes the figures of this process."""
        values = {
            name: list(value) if isinstance(value, dict) and name != "ended" else value
            for name, value in vars(self).items()
        }
        path.write_text(json.dumps(values))


_SUMS = ("shared", "shared_but_index")


class Torture:
    """Tries the points of commands."""

    def __init__(self, scratch: Scratch, commands: Sequence[Command]) -> None:
        """Prepares the trees, and counts the calls of each command."""
        self._scratch = scratch
        self._before: dict[str, Facts] = {}
        self._after: dict[str, Facts] = {}
        self._now: dict[str, int] = {}
        self._examined: dict[tuple[str, bytes], Examination] = {}
        self._fresh: dict[tuple[str, bytes], Fresh | None] = {}
        self._commands = {command.name: command for command in commands}
        self.figures = Figures()
        prepared(scratch)
        scratch.save("base")
        for command in commands:
            self._count(command)

    def _words(self, command: Command) -> list[str]:
        return [word.format(**self._scratch.ids) if word[0] == "{" and word[-1] == "}" and
                word[1:-1] in self._scratch.ids else word for word in command.words]  # fmt: skip

    def _count(self, command: Command) -> None:
        scratch = self._scratch
        assert scratch.shim is not None
        scratch.load("base")
        command.before(scratch)
        if (scratch.project / ".mind").is_dir():
            _done(scratch, "list")
        scratch.save(command.name)
        self._before[command.name] = examined(scratch, command).facts
        # What one run changes is new to the index in the next: the second is like all others.
        self._run(command)
        result = self._run(command)
        _, kinds = scratch.shim.disarm()
        if result.status:
            raise SystemExit(f"mind {command.name} fails by itself: {result.errors}")
        self._after[command.name] = examined(scratch, command).facts
        for at, number in enumerate(kinds, 1):
            kind, is_index = KINDS[number & 127], number > 127
            suited = (fault.name for fault in FAULTS if kind in fault.kinds)
            points = (Point(command.name, fault, at, kind, is_index) for fault in suited)
            self.figures.points.update(dict.fromkeys(points))

    def _run(self, command: Command, fault: Fault | None = None, at: int = 0) -> Result:
        """Runs a command on its tree, with the shim armed."""
        scratch = self._scratch
        assert scratch.shim is not None
        scratch.load(command.name)
        now = self._now.setdefault(command.name, int(time.time()))
        scratch.shim.arm(fault, at, now)
        return scratch.mind(*self._words(command))

    def run(self, points: Sequence[Point], deadline: float) -> None:
        """Tries points until they or the time are used up."""
        for point in points:
            if time.monotonic() > deadline:
                return
            for what in self._try(point):
                self.figures.failed[point] = None
                place = f"{point.command}: {point.fault} at call {point.at} ({point.kind})"
                print(f"FAILED {place}: {what}", flush=True)

    def _try(self, point: Point) -> list[str]:
        scratch, figures, command = self._scratch, self.figures, self._commands[point.command]
        assert scratch.shim is not None
        fault = next(fault for fault in FAULTS if fault.name == point.fault)
        result = self._run(command, fault, point.at)
        acted, _ = scratch.shim.disarm()
        if not acted:
            return []
        figures.tried[point] = None
        way = "were killed" if result.status < 0 else "failed with an error"
        figures.ended[way if result.status else "did their work"] += 1
        problems = []
        if "inside mind" in result.errors or "Traceback" in result.errors or result.status == 70:
            problems.append(f"internal error: {result.errors.strip()[-300:]}")
        if result.status == -signal.SIGALRM:
            problems.append("it hangs")
        if result.status > 0 and "error:" not in result.errors:
            problems.append(f"exit status {result.status} without an error")
        contents = scratch.contents(result.pid)
        key, fresh = (command.name, contents.everything), (command.name, contents.without_index)
        figures.shared += key in self._examined
        figures.shared_but_index += key not in self._examined and fresh in self._fresh
        if key not in self._examined:
            self._examined[key] = examined(scratch, command, self._fresh.get(fresh))
            self._fresh[fresh] = self._examined[key].fresh
        now = self._examined[key]
        before, after = self._before[command.name], self._after[command.name]
        problems += lost(result.status == 0, before, after, now.facts, result.errors)
        problems += now.problems
        return problems


def ordered(points: Iterable[Point], seed: int) -> list[Point]:
    """Returns the points in a random order in which those of no kind come late.

    However early it ends, every command, every fault and every kind of call had its turn.
    """
    shuffled = list(points)
    random.Random(seed).shuffle(shuffled)
    rounds: Counter[object] = Counter()
    turns: Counter[object] = Counter()
    placed = []
    for point in shuffled:
        kind = (point.command, point.fault, point.kind, point.is_index)
        rounds[kind] += 1
        placed.append((rounds[kind], point))
    placed.sort(key=lambda one: one[0])
    taken = []
    for _, point in placed:
        turn = (point.command, point.is_index)
        turns[turn] += 1
        taken.append((turns[turn], point))
    taken.sort(key=lambda one: one[0])
    return [point for _, point in taken]


def report(figures: Figures, minutes: float) -> str:
    """Returns the figures as Markdown."""
    names = list(dict.fromkeys(point.command for point in figures.points))
    tried, points, failed = (
        len(_distinct(some)) for some in (figures.tried, figures.points, figures.failed)
    )
    ended = ", ".join(f"{number:,} {way}" for way, number in sorted(figures.ended.items()))
    lines = [
        f"{tried:,} of {points:,} points tried, {failed:,} failed.",
        f"There are {len(names)} commands, and the run took {minutes:.0f} minutes.",
        f"Of the runs, {ended or 'none was made'}.",
        f"{figures.shared:,} left the same files as an earlier one, and shared its examination;",
        f"{figures.shared_but_index:,} others left the same files except the index, and shared",
        "what does not depend on that.",
        "",
        "| fault | points | tried | failed |",
        "|---|---:|---:|---:|",
        *_rows(figures, "fault", [fault.name for fault in FAULTS]),
        "",
        "| command | points | tried | failed |",
        "|---|---:|---:|---:|",
        *_rows(figures, "command", names),
    ]
    return "\n".join([*lines, ""])


def _rows(figures: Figures, column: str, names: Sequence[str]) -> list[str]:
    every, tried, failed = (
        Counter(getattr(point, column) for point in _distinct(points))
        for points in (figures.points, figures.tried, figures.failed)
    )
    mark = "`" if column == "command" else ""
    return [
        f"| {mark}{name}{mark} | {every[name]:,} | {tried[name]:,} | {failed[name]:,} |"
        for name in names
        if every[name]
    ]


def _distinct(points: Iterable[Point]) -> Collection[Point]:
    """Returns one point for each call: its kind can differ between processes."""
    return {point[:3]: point for point in points}.values()


def _share(points: Iterable[Point], number: int, jobs: int) -> list[Point]:
    """Returns the points of one of several processes.

    Neighbours stay together, as they often leave the same files.
    """
    return [point for point in points if (point.at // 16) % jobs == number]


def built(folder: Path) -> Path | None:
    """Compiles the shim and returns its path, None if this system can't."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "torture.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"]
    done = subprocess.run(words, check=False, capture_output=True)
    return library if done.returncode == 0 else None


def _started(library: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Starts a part of the work with the shim loaded, in a folder of its own."""
    folder.mkdir()
    state = folder / "state"
    state.write_bytes(b"\0" * _STATE_BYTES)
    own = {"MIND_PROJECT", "SANDBOX_DIR", "MIND_HOME", "GIT_DIR"}
    environ = {name: value for name, value in os.environ.items() if name not in own}
    environ |= {"LD_PRELOAD": str(library), "TORTURE_STATE": str(state), "TMPDIR": str(folder)}
    words = [sys.executable, "-X", "utf8", "-m", "tests.bench.torture", *sys.argv[1:]]
    return subprocess.Popen([*words, "--part", folder.name], env=environ)


def _part(options: argparse.Namespace) -> None:
    """Does a part of the work, and keeps its figures."""
    deadline = time.monotonic() + options.minutes * 60
    state = Path(os.environ["TORTURE_STATE"])
    scratch = Scratch(state.parent, Shim(state, state.parent / "tree"))
    commands = [one for one in COMMANDS if not options.only or one.name in options.only]
    torture = Torture(scratch, commands)
    faults = [fault.name for fault in FAULTS if not options.fault or fault.name in options.fault]
    points = [point for point in torture.figures.points if point.fault in faults]
    points = ordered(points, options.seed)[: options.points]
    torture.run(_share(points, options.part, options.jobs), deadline)
    torture.figures.keep(state.parent / "figures")


def main() -> int:
    """Returns 1 if a point failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--points", type=int, help="most points to try")
    parser.add_argument("--only", action="append", help="a command to try (can be repeated)")
    parser.add_argument("--fault", action="append", help="a fault to try (can be repeated)")
    parser.add_argument("--write", type=Path, help="file to write the figures into")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        _part(options)
        return 0
    started = time.monotonic()
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made there
    place = memory if os.access(memory, os.W_OK) else None
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="mind-torture-", dir=place) as name:
        library = built(Path(name))
        if library is None:
            print("skipped: this needs Linux and a C compiler (`cc`)")
            return 0
        parts = [Path(name, str(number)) for number in range(options.jobs)]
        processes = [_started(library, folder) for folder in parts]
        try:
            statuses = [process.wait() for process in processes]
        finally:
            for process in processes:
                process.terminate()
        if any(statuses):
            return 2
        for folder in parts:
            figures.add(folder / "figures")
    text = report(figures, (time.monotonic() - started) / 60)
    print(text)
    if options.write:
        write_part(options.write, "torture", text)
    return 1 if figures.failed else 0


if __name__ == "__main__":
    sys.exit(main())
