"""Fixtures for every test: an opened memory in a folder of its own, with a fixed clock."""

import gc
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path
from random import Random
from threading import Lock
from time import process_time
from typing import Any, Self
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

from mimo.call import Call
from mimo.data import disk
from mimo.guard.audit import Session
from mimo.guard.guard import Guard
from mimo.memory.ids import handle_of
from mimo.mind import Mind
from mimo.operations.asking import MARKS, NAMED
from mimo.project import projects
from mimo.project.init import init
from mimo.project.trust import Trust
from mimo.surroundings import Timer

# The same examples each time, so that no change fails by chance.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile(
    "random", settings.get_profile("default"), derandomize=False, max_examples=40
)
settings.register_profile("thorough", settings.get_profile("random"), max_examples=1_000)
settings.load_profile("default")

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
"""A Friday."""

_ROOM = 2**31
"""More bytes than the tests have in files at once."""

_urandom = os.urandom

_SETTINGS = Path(__file__).with_name("gitconfig")


def pytest_configure(config: pytest.Config) -> None:
    """Lets Ctrl-C be tested, and keeps the files of tests in memory if there is room.

    A suite that runs in the background of a script inherits an ignored SIGINT, and so would each
    process that it starts. A flush to a disk takes milliseconds.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    memory = Path("/dev/shm")  # noqa: S108 - pytest makes a private folder in it
    if not os.environ.get("PYTEST_DEBUG_TEMPROOT") and os.access(memory, os.W_OK):
        volume = os.statvfs(memory)
        if volume.f_bavail * volume.f_frsize > _ROOM:
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(memory)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the long tests; puts kinds of attacks into reports for `make redteam`.

    One process has the long tests, and so starts the database servers; the others take over what
    comes after. A long test at the end would leave them without work.
    """
    items.sort(key=lambda item: item.path.parent.name not in ("postgres", "redteam"))
    for item in items:
        if (mark := item.get_closest_marker("attack")) is not None:
            item.user_properties.append(("attack", mark.args[0]))


def descriptors() -> int:
    """Returns the number of open files of this process."""
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 - faster than a Path


def descriptors_left() -> int:
    """Returns the number of open descriptors after the threads of closed watches have ended."""
    counts = []
    for _ in range(10):
        counts.append(descriptors())
        time.sleep(0.005)
    return min(counts)


def wait_until_forgotten(process: int) -> None:
    """Waits until a process has ended and is not a zombie of this one."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail(f"process {process} is still there")


class _Descriptors:
    """The number of files that were open after the last collection."""

    GROWTH = 200
    kept = 0


def assert_linear(work: Callable[[int], object], size: int = 20_000) -> None:
    """Fails unless four times the size takes at most six times the processor time.

    Patterns do their work in C, where no steps can be counted. Four times the size should take
    milliseconds in linear time, which 50 ms of tolerance hide, and half a second or more otherwise.
    """

    def seconds(size: int) -> float:
        start = process_time()
        work(size)
        return process_time() - start

    work(1)  # Compiles patterns.
    for is_last in (False, False, True):  # On a busy machine, both take longer now and then.
        small, large = (min(seconds(size * times) for _ in range(2)) for times in (1, 4))
        if large < 6 * small + 0.05:
            break
        assert not is_last, f"{small:.3f} s, and {large:.3f} s for four times the size"


def pytest_collection_finish() -> None:
    """Keeps the collected tests out of garbage collections, which get shorter by a third."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _few_descriptors() -> Iterator[None]:
    """Frees the memories that tests left open, now and then: a process has 1,024 descriptors."""
    yield
    if descriptors() > _Descriptors.kept + _Descriptors.GROWTH:
        gc.collect()
        _Descriptors.kept = descriptors()


class _Chance:
    """Bytes that depend on a name alone, in place of `os.urandom`.

    A process that a test forks has random bytes again, as two processes must differ.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._source = Random(0)
        self._lock = Lock()

    def begin(self, name: str) -> None:
        """Begins the bytes of a test, or of the fixtures of a module."""
        self._source.seed(name)

    def __call__(self, size: int) -> bytes:
        if os.getpid() != self._process:
            return _urandom(size)
        with self._lock:
            return self._source.randbytes(size)


class _SameDay(datetime):
    """A moment; the current one is always `NOW`."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(NOW.timestamp(), tz)


CHANCE = _Chance()
"""In place of `os.urandom`."""


def _exclude_chance() -> None:
    """Gives tests the same ids, names and time of day each time.

    Tests look for short words in texts that contain them. Times of files are real.
    """
    os.urandom = CHANCE
    disk.datetime = _SameDay  # type: ignore[attr-defined]
    defaults: dict[str, Any] = Mind.__init__.__kwdefaults__ or {}
    defaults["randomness"] = CHANCE


_exclude_chance()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begins the bytes of fixtures that the tests of a module share."""
    CHANCE.begin(item.nodeid.partition("::")[0])


@pytest.fixture(autouse=True)
def _no_chance(request: pytest.FixtureRequest) -> None:
    CHANCE.begin(request.node.nodeid)


class Clock:
    """A clock that moves only by `forward`."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **delta: float) -> None:
        self.now += timedelta(**delta)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a test does may reach the developer's own memory or settings."""
    monkeypatch.chdir(".")  # It is returned to, as the folders of a test are removed.
    monkeypatch.setenv("MIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("MIND_BACKGROUND", "off")  # No process outlives the folder of a test.
    # No test uses TLS, and each client would read the certificates of the system.
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("mimo.data.disk._homes", {f"{tmp_path / 'home'}/": None})
    for name in ("MIND_PROJECT", "SANDBOX_DIR", "CLAUDE_PROJECT_DIR", "NO_COLOR", "MIND_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    for name in (NAMED, *MARKS, "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


Tree = dict[str, tuple[int, bytes | None]]
"""The modes and contents of files by their paths in a folder; None is the content of a folder."""


def read_tree(folder: Path) -> Tree:
    """Returns the files and folders below a folder, each folder before its files."""
    return {
        path.relative_to(folder).as_posix(): (
            path.stat().st_mode & 0o777,
            None if path.is_dir() else path.read_bytes(),
        )
        for path in sorted(folder.rglob("*"))
    }


def write_tree(tree: Tree, folder: Path) -> None:
    """Writes files and folders into a folder, where some folders may exist."""
    for name, (mode, data) in tree.items():
        path = folder / name
        if data is None:
            path.mkdir(mode, exist_ok=True)
        else:
            with os.fdopen(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb"
            ) as file:
                file.write(data)


@cache
def _initialised() -> tuple[str, Tree]:
    """Returns a folder with a project and its home, and the files that were in it.

    `mind init` takes longer than most tests, so that they copy its files. Only the list of projects
    contains the path of the folder.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        root, home = folder / "shop", folder / "home"
        root.mkdir()
        with patch.dict(disk._homes, {f"{home}/": None}):
            CHANCE.begin("project")
            init(root, home, now=NOW)
            Trust(home, root).follow(True)
        return str(folder), read_tree(folder)


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> Path:
    """An initialised project's root, outside git; files that a test writes there are trusted."""
    folder, tree = _initialised()
    write_tree(tree, tmp_path)
    projects_file = home / projects.REGISTRY
    projects_file.write_text(
        projects_file.read_text("utf-8").replace(folder, str(tmp_path)), "utf-8"
    )
    CHANCE.begin(request.node.nodeid)
    return tmp_path / "shop"


def make_store(root: Path, *folders: str) -> Path:
    """Makes a `.mind/` by hand, as one comes with a clone, and returns it."""
    store = root / ".mind"
    for name in (".", *folders):
        (store / name).mkdir(parents=True, exist_ok=True)
    (store / "config.toml").write_text("format = 1\n", encoding="utf-8")
    return store


def git(
    root: Path,
    *words: str,
    check: bool = True,
    at: str = "",
    errors: bool = False,
    input: str = "",
    **environ: str,
) -> str:
    """Runs git as Ann, unless the repository names another user; returns its output, stripped.

    `at` is the date of commits. With `errors`, the output contains the messages on stderr; without
    `check`, git may fail.
    """
    dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
    done = subprocess.run(
        ["git", *words],
        cwd=root,
        env={"GIT_CONFIG_GLOBAL": str(_SETTINGS), **os.environ, **dates, **environ},
        check=False,
        input=input,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors else subprocess.PIPE,
        encoding="utf-8",
    )
    assert not check or done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout.strip()


@pytest.fixture
def ann(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets commits by mind be Ann's."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ann@example.com")


class Unguarded:
    """A stand-in for a Mind that can be invoked: the default policy, and a time."""

    is_users = False
    source = ""

    def __init__(self) -> None:
        session = Session({}, started=NOW)
        self.guard = Guard(root=None, trusted=lambda _: False, owner=str, session=session)
        self.timer = Timer()

    def now(self) -> datetime:
        return NOW

    zone = UTC

    def handle(self, id: str) -> tuple[str, int]:
        return handle_of(id), 0

    def note(self, about: str, notice: str | None) -> bool:
        """Returns False: it keeps no notices from call to call."""
        return False

    def notices(self) -> tuple[str, ...]:
        """Returns nothing, see `note`."""
        return ()

    def user(self, *, make: bool = False) -> None:
        """Returns nothing: there is no memory for all projects."""

    def check_format(self) -> None:
        """A real one would refuse a store of a later version."""

    def check(self) -> None:
        """It has no home that another user could own."""


def _counting() -> Callable[[int], bytes]:
    drawn = 0

    def randomness(size: int) -> bytes:
        nonlocal drawn
        if size == 32:
            return bytes(range(32))  # A key: no example shows it, and it must not change their ids.
        drawn += 1
        return (drawn * 7919).to_bytes(8, "big")[-size:]

    return randomness


@pytest.fixture
def randomness() -> Callable[[int], bytes]:
    """A source of ids that are the same in each run."""
    return _counting()


@pytest.fixture
def call(
    project: Path, home: Path, clock: Clock, randomness: Callable[[int], bytes]
) -> Iterator[Call]:
    """An opened memory with nothing in it."""
    opened = Call(
        Mind(
            home=home,
            project=projects.explicit(project, home),
            clock=clock,
            randomness=randomness,
            environ={},
        )
    )
    yield opened
    opened.mind.close()
