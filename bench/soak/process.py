"""The resources that a process and its folders take."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """The resources of a process at a moment."""

    resident_kb: int
    cpu_seconds: float
    threads: int
    descriptors: int
    children: int


def cost(pid: int) -> Cost:
    """Returns the resources of a process, from /proc."""
    folder = Path(f"/proc/{pid}")
    lines = (folder / "status").read_text(encoding="utf-8").splitlines()
    status = dict(line.split(":", 1) for line in lines)
    times = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    children = [file.read_text().split() for file in folder.glob("task/*/children")]
    return Cost(
        resident_kb=int(status["VmRSS"].split()[0]),
        cpu_seconds=(int(times[11]) + int(times[12])) / _TICKS,
        threads=int(status["Threads"]),
        descriptors=len(list((folder / "fd").iterdir())),
        children=sum(map(len, children)),
    )


class Usage(NamedTuple):
    """The bytes of the files of mind: those of projects and of the user's home."""

    of_index: int
    """Those of the index without its vectors and the files that SQLite writes ahead."""
    vectors: int
    """The vectors in use, and those of earlier texts up to a limit."""
    ahead: int
    """The largest file that SQLite writes ahead."""
    logs: int
    """What grows up to limits of its own, and approvals."""
    rest: int


_LOGS = ("audit", "events", "accesses", "daemon.log")
"""How the names of logs begin."""


def usage(folder: Path) -> Usage:
    """Returns the bytes of the files below a folder, without any that is removed meanwhile."""
    sums = dict.fromkeys(Usage._fields, 0)
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            if name.endswith(("-wal", "-shm")):
                sums["ahead"] = max(sums["ahead"], size)
            elif name.startswith(_LOGS) or name.startswith("trust."):
                sums["logs"] += size
            elif ".index" not in path.parts:
                sums["rest"] += size
            else:
                sums["vectors" if name.startswith(("vectors", "units")) else "of_index"] += size
    return Usage(**sums)


def until(holds: Callable[[], bool], seconds: float, condition: str) -> None:
    """Waits for a condition. Raises `SystemExit` if it takes longer than some seconds."""
    start = time.monotonic()
    while not holds():
        if time.monotonic() - start > seconds:
            raise SystemExit(f"after {seconds:g} seconds still not true: {condition}")
        time.sleep(0.05)


def ended(
    process: subprocess.Popen[bytes], folder: Path, seconds: float, expected: int = 0
) -> list[str]:
    """Ends a process by SIGTERM, after some seconds by SIGKILL; returns the faults of its end.

    It must have the expected status. Its standard error is the file `stderr` in the folder.
    """
    faults = []
    if (early := process.poll()) is not None:
        faults.append(f"it ended by itself, with status {early}")
    process.terminate()
    try:
        status = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    for stream in filter(None, (process.stdin, process.stdout)):
        with suppress(BrokenPipeError):
            stream.close()
    left = leftovers(folder)
    if status != expected or left:
        faults.append(f"status {status}, left behind: {left}")
    errors = (folder / "stderr").read_text(encoding="utf-8", errors="replace")
    if "Traceback" in errors:
        faults.append(errors[-3000:])
    return faults


def leftovers(folder: Path) -> list[str]:
    """Returns the files that only a process that died would leave; an empty journal is none.

    Caches keep their write-ahead logs.
    """
    names = (".tmp", "-wal", "-shm", "-journal", ".new")
    paths = [path for path in folder.rglob("*") if path.name.endswith(names)]
    kept = {path for path in paths if path.name.endswith(names[1:3]) and ".index" in path.parts}
    return [
        str(path.relative_to(folder)) for path in paths if path not in kept and path.stat().st_size
    ]
