"""A million requests of `mind mcp` on a pipe, or over HTTP with two clients at once."""

import os
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from tests.bench.soak.clients import MIND, Http, Pipe, token_of
from tests.bench.soak.mix import MEMORIES, Requests
from tests.bench.soak.process import Cost, Usage, cost, leftovers, until, usage
from tests.bench.stores import note

PARTS = 10
GROWTH = {"resident": 1.1, "index": 1.25, "files": 1.25, "CPU": 1.25, "p50": 2, "p95": 2}
"""The most that the last part may be, as a multiple of the first.

Latency depends on the load of the machine, too, more than the time of the server's processor does.
"""
MORE = 4
"""The most threads and descriptors that it may have in addition."""
AHEAD = 15_000_000
"""The bytes that the index may have in addition: 4 MB that SQLite writes ahead, for each of three
databases, and 10,000 vectors of earlier texts."""
LOGS = 120_000_000
"""The most bytes of logs: 26 files of the audit log with 4 MiB each, and 3 MB of events."""


class Part(NamedTuple):
    """A tenth of the run."""

    requests: int
    p50: float
    """Milliseconds."""
    p95: float
    cpu: float
    """Milliseconds of the server for each request."""
    cost: Cost
    usage: Usage


class Run:
    """The requests of one server so far."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]") -> None:
        """Takes the folder of the server's files, and its process."""
        self.folder, self.process = folder, process
        self.parts: list[Part] = []
        self.outcomes: Counter[tuple[str, str]] = Counter()

    def part(self, clients: list[Requests], count: int, deadline: float) -> bool:
        """Lets the clients send their shares of some requests; False if the time is up."""
        took: list[float] = []
        before = cost(self.process.pid).cpu_seconds
        share = count // len(clients)
        threads = [Thread(target=self._ask, args=(each, share, took, deadline)) for each in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(took) < share * len(clients):
            return False
        now = cost(self.process.pid)
        took.sort()
        self.parts.append(
            Part(
                requests=len(took),
                p50=1000 * statistics.median(took),
                p95=1000 * took[int(0.95 * len(took))],
                cpu=1000 * (now.cpu_seconds - before) / len(took),
                cost=now,
                usage=usage(self.folder),
            )
        )
        return True

    def _ask(self, client: Requests, count: int, took: list[float], deadline: float) -> None:
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
        """Returns what grew by more than the tolerance, and unexpected answers."""
        faults = [f"{kind}: {result}" for kind, result in self.outcomes if "unexpected" in result]
        if len(self.parts) < 2:
            return [*faults, "fewer than two parts"]
        first, last = self.parts[0], self.parts[-1]
        measured = {
            "resident": (first.cost.resident_kb, last.cost.resident_kb),
            "index": (first.usage.of_index, last.usage.of_index),
            "files": (first.usage.rest, last.usage.rest),
            "CPU": (first.cpu, last.cpu),
            "p50": (first.p50, last.p50),
            "p95": (first.p95, last.p95),
        }
        for name, (before, after) in measured.items():
            if after > before * GROWTH[name] + (AHEAD if name == "index" else 0):
                faults.append(f"{name} grew from {before:.6g} to {after:.6g}")
        for name in ("threads", "descriptors", "children"):
            before, after = getattr(first.cost, name), getattr(last.cost, name)
            if after > before + MORE:
                faults.append(f"{name} grew from {before} to {after}")
        if last.usage.logs > LOGS:
            faults.append(f"logs have {last.usage.logs:,} bytes")
        return faults


def project(folder: Path, environ: dict[str, str]) -> Path:
    """Makes a project with a few notes and one pitfall, and returns its root."""
    root = folder / "shop"
    root.mkdir()

    def mind(*words: str) -> None:
        subprocess.run([*MIND, *words], cwd=root, env=environ, check=True, capture_output=True)

    mind("init")
    mind("config", "--user", "embedding.encoder", "off")
    for number in range(MEMORIES):
        path = root / ".mind" / "facts" / f"fact_note_{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(note(number), encoding="utf-8")
    mind("index")
    return root


@contextmanager
def serving(
    kind: str, folder: Path, root: Path, environ: dict[str, str]
) -> Iterator[tuple["subprocess.Popen[bytes]", list[Requests]]]:
    """Starts a server, and yields it with its connected clients."""
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
    try:
        if kind == "http":
            until(lambda: "listening on" in errors.read_text(), 30, "it listens")
            port = int(errors.read_text().partition("127.0.0.1:")[2].partition("/")[0])
            token = token_of(folder / "home")
            yield process, [Requests(Http(port, token, root.name), seed) for seed in (1, 2)]
        else:
            yield process, [Requests(Pipe(process), 1)]
    finally:
        process.terminate()
        start = time.monotonic()
        status = process.wait(timeout=30)
        print(f"ended {time.monotonic() - start:.2f} s after SIGTERM with status {status}")


def soak(kind: str, folder: Path, requests: int, minutes: float) -> Run:
    """Returns a run of all requests, or of those that the minutes allow."""
    environ = os.environ | {"MIND_HOME": str(folder / "home")}
    root = project(folder, environ)
    deadline = time.monotonic() + 60 * minutes
    with serving(kind, folder, root, environ) as (process, clients):
        run = Run(folder, process)
        run.outcomes.update(asked for client in clients for asked in client.warm_up())
        print(HEADS, flush=True)
        for number in range(PARTS):
            if not run.part(clients, requests // PARTS, deadline):
                break
            print(row(number + 1, run.parts[-1]), flush=True)
    print(f"left behind: {leftovers(folder) or 'nothing'}")
    print(f"on standard error: {(folder / 'stderr').stat().st_size} bytes")
    return run


HEADS = (
    "| part | requests | p50 ms | p95 ms | CPU ms | resident MB | descriptors | threads | index kB "
    "| logs MB | other files kB |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def row(number: int, part: Part) -> str:
    """Returns a line of the table."""
    return (
        f"| {number} | {part.requests:,} | {part.p50:.2f} | {part.p95:.2f} | {part.cpu:.2f} "
        f"| {part.cost.resident_kb / 1024:.1f} | {part.cost.descriptors} | {part.cost.threads} "
        f"| {part.usage.of_index / 1e3:,.0f} | {part.usage.logs / 1e6:.1f} "
        f"| {part.usage.rest / 1e3:,.0f} |"
    )
