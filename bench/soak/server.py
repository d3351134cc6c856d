"""A million requests of `mind mcp` on a pipe, or over HTTP with two clients at once."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from bench.clients import Http, Pipe, port_of, token_of
from bench.soak.mix import MEMORIES, Requests
from bench.soak.process import cost, ended
from bench.soak.runs import PARTS, Part, fill, growth, heads, part, row
from bench.stores import MIND, project
from bench.stores import run as ran

HEADS = heads("requests")
END_SECONDS = 30.0
"""The time in which SIGTERM must end the server; after it, SIGKILL does."""


class Run:
    """The requests of one server so far."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        """Takes the folder of the server's files, and its process."""
        self.folder, self.process = folder, process
        self.parts: list[Part] = []
        self.vectors = math.inf
        """The bytes of all vectors when those of earlier texts were first removed."""
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.failures: list[str] = []

    def part(self, clients: list[Requests], count: int, deadline: float) -> bool:
        """Lets the clients send their shares of some requests.

        Returns False if the time is up, or a client failed.
        """
        took: list[float] = []
        before = cost(self.process.pid)
        share = count // len(clients)
        threads = [Thread(target=self._ask, args=(each, share, took, deadline)) for each in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(took) < share * len(clients):
            return False
        self.parts.append(part(took, before, self.process.pid, self.folder))
        return True

    def _ask(self, client: Requests, count: int, took: list[float], deadline: float) -> None:
        with self.noting():
            self._send(client, count, took, deadline)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Keeps an error of a client or of its server as a failure."""
        try:
            yield
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any error of a thread
            self.failures.append(f"a client failed: {error!r}")

    def _send(self, client: Requests, count: int, took: list[float], deadline: float) -> None:
        done = 0
        while done < count and time.monotonic() < deadline:
            start = time.perf_counter()
            for asked in client.once():
                if done < count:
                    took.append(time.perf_counter() - start)
                self.outcomes[asked] += 1
                done += 1
                start = time.perf_counter()

    def faults(self) -> list[str]:
        """Returns what failed or grew by more than the tolerance, and unexpected answers."""
        faults = [f"{kind}: {result}" for kind, result in self.outcomes if "unexpected" in result]
        return [*self.failures, *faults, *growth(self.parts, self.vectors)]


@contextmanager
def serving(
    kind: str, folder: Path, root: Path, environ: dict[str, str]
) -> Iterator[tuple[Run, list[Requests]]]:
    """Starts a server, and yields a run of it with its connected clients; then ends it."""
    errors = folder / "stderr"
    words = ["mcp", "--toolsets", "default", *(["--http", "0"] if kind == "http" else [])]
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [*MIND, *words],
            cwd=root,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=stderr if kind == "http" else subprocess.PIPE,
            stderr=stderr,
        )
    run = Run(folder, process)
    clients: list[Requests] = []
    try:
        if kind == "http":
            port, token = port_of(errors), token_of(folder / "home")
            clients = [Requests(Http(port, token, root.name), seed) for seed in (1, 2)]
        else:
            clients = [Requests(Pipe(process), 1)]
        with run.noting():
            yield run, clients
    finally:
        start = time.monotonic()
        run.failures += ended(process, folder, END_SECONDS, 128 + signal.SIGTERM)
        for each in clients:
            each.client.close()
        print(f"ended {time.monotonic() - start:.2f} s after SIGTERM")


def soak(kind: str, folder: Path, requests: int, minutes: float) -> Run:
    """Returns a run of all requests, or of those that the minutes allow."""
    environ = os.environ | {"MIND_HOME": str(folder / "home")}
    root = project(folder / "shop", environ, MEMORIES)
    ran([*MIND, "index"], root, environ)
    deadline = time.monotonic() + 60 * minutes
    with serving(kind, folder, root, environ) as (run, clients):
        run.vectors = fill(root, clients[0].store_and_delete)
        run.outcomes.update(asked for client in clients for asked in client.warm_up())
        print(HEADS, flush=True)
        for number in range(PARTS):
            if not run.part(clients, requests // PARTS, deadline):
                break
            print(row(number + 1, run.parts[-1]), flush=True)
    print(f"on standard error: {(folder / 'stderr').stat().st_size} bytes")
    return run
