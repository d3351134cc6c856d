"""Lets the real daemon see many changes of files, and prints what that costs it.

    python -m tests.bench.soak [EVENTS] [--rate CHANGES_A_SECOND]

Two projects are registered. In one, memories are written, renamed and removed, and files beside
them, as often as asked; half-way the other is deleted under the daemon. At last it is ended by
SIGTERM. What it holds in memory must be flat, and nothing may be left behind.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.bench.stores import note

MIND = [sys.executable, "-m", "mimo"]
FILES = 300
"""Memories that are there at a time."""
WORDS = 1_000
"""Different words that the changes bring: people draw from a vocabulary, too."""
ROWS = 12
"""Lines of the table."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """The resources of a process at a moment."""

    resident_kb: int
    cpu_seconds: float
    threads: int
    descriptors: int
    children: int


def cost(pid: int) -> Cost:
    """Returns what the process takes, from /proc."""
    folder = Path(f"/proc/{pid}")
    said = dict(
        line.split(":", 1) for line in (folder / "status").read_text(encoding="utf-8").splitlines()
    )
    times = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    children = [one.read_text().split() for one in folder.glob("task/*/children")]
    return Cost(
        resident_kb=int(said["VmRSS"].split()[0]),
        cpu_seconds=(int(times[11]) + int(times[12])) / _TICKS,
        threads=int(said["Threads"]),
        descriptors=len(list((folder / "fd").iterdir())),
        children=sum(map(len, children)),
    )


def project(folder: Path, environ: dict[str, str]) -> Path:
    """Makes a project and returns its root."""
    folder.mkdir()
    subprocess.run([*MIND, "init"], cwd=folder, env=environ, check=True, capture_output=True)
    (folder / ".mind" / "facts").mkdir(exist_ok=True)
    return folder


def change(root: Path, draw: random.Random, number: int) -> None:
    """Changes one file, which the daemon may see as one change or more."""
    name = draw.randrange(FILES)
    path = root / ".mind" / "facts" / f"fact_note_{name}.md"
    what = draw.random()
    if what < 0.1:
        (root / f"{name}.txt").write_text(str(number), encoding="utf-8")
    elif what < 0.25:
        path.unlink(missing_ok=True)
    elif what < 0.4:
        new = path.with_suffix(".new")
        new.write_text(f"{note(name)}Written {number % WORDS}.\n", encoding="utf-8")
        new.replace(path)
    else:
        path.write_text(f"{note(name)}Written {number % WORDS}.\n", encoding="utf-8")


def state(home: Path) -> list[str]:
    """Returns the projects that the daemon says it watches; none before it says so."""
    try:
        told: list[str] = json.loads((home / "daemon.json").read_text())["watching"]
    except (OSError, ValueError):
        return []
    return told


def until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    """Waits for something, and gives up where it takes too long."""
    start = time.monotonic()
    while not holds():
        if time.monotonic() - start > seconds:
            raise SystemExit(f"after {seconds:g} seconds still not so: {what}")
        time.sleep(0.05)


def search(root: Path, environ: dict[str, str], words: str) -> str:
    """Returns what a person finds."""
    done = subprocess.run(
        [*MIND, "search", words, "--json"], cwd=root, env=environ, check=True, capture_output=True
    )
    return done.stdout.decode()


def leftovers(folder: Path) -> list[str]:
    """Returns the files that only a process that died would leave."""
    names = (".tmp", "-wal", "-shm", "-journal", ".new")
    return [
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.name.endswith(names)
    ]


def soak(folder: Path, events: int, rate: float) -> None:
    """Runs all of it in a folder of its own."""
    environ = os.environ | {"MIND_HOME": str(folder / "home")}
    shop, gone = (project(folder / name, environ) for name in ("shop", "gone"))
    with (folder / "stderr").open("wb") as errors:
        daemon = subprocess.Popen([*MIND, "daemon", "run"], env=environ, cwd=folder, stderr=errors)
    try:
        until(lambda: len(state(folder / "home")) == 2, 30, "it watches both projects")
        print("| changes | resident MB | CPU s | threads | descriptors | children |")
        print("|---:|---:|---:|---:|---:|---:|")
        row(0, cost(daemon.pid))
        changed(shop, gone, daemon.pid, events, rate)
        until(lambda: state(folder / "home") == [str(shop)], 40, "the deleted project is let go")
        settled(shop, environ)
        print("the deleted project was let go; what was written last is found")
    finally:
        daemon.send_signal(signal.SIGTERM)
        start = time.monotonic()
        status = daemon.wait(timeout=30)
    print(f"ended {time.monotonic() - start:.2f} s after SIGTERM with status {status}")
    print(f"left behind: {leftovers(folder) or 'nothing'}")
    print(f"on standard error: {(folder / 'stderr').read_text() or 'nothing'}")
    logs = [path.stat().st_size for path in (folder / "home" / "logs").iterdir()]
    print(f"logs: {sum(logs):,} bytes in {len(logs)} files")


def changed(shop: Path, gone: Path, pid: int, events: int, rate: float) -> None:
    """Makes the changes at an even pace, prints the table and deletes the other project."""
    draw = random.Random(1)
    start = time.monotonic()
    for number in range(1, events + 1):
        change(shop, draw, number)
        if number == events // 2:
            shutil.rmtree(gone)
        if number % max(1, events // ROWS) == 0:
            row(number, cost(pid))
        ahead = start + number / rate - time.monotonic() if rate else 0
        if ahead > 0:
            time.sleep(ahead)
    print(f"\n{events:,} changes of files in {time.monotonic() - start:.0f} s")


def settled(root: Path, environ: dict[str, str]) -> None:
    """Checks that what was written last is found."""
    path = root / ".mind" / "facts" / "fact_last.md"
    path.write_text("---\nid: fact_last\ntype: fact\n---\nThe zebra came last.\n", encoding="utf-8")
    assert "fact_last" in search(root, environ, "zebra")


def row(number: int, now: Cost) -> None:
    """Prints a line of the table."""
    figures = (f"{now.resident_kb / 1024:.1f}", f"{now.cpu_seconds:.1f}", *now[2:])
    print(f"| {number:,} | {' | '.join(map(str, figures))} |", flush=True)


def main() -> None:
    """Runs it with what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", nargs="?", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=0, help="changes a second; as many as can be")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mind-soak-") as folder:
        soak(Path(folder).resolve(), args.events, args.rate)


if __name__ == "__main__":
    main()
