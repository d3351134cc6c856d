"""Bursts of changed files for the real daemon.

Two projects are registered. In one, memories are written, renamed and removed, and files beside
them, several at a time; half-way, the other project is deleted. At the end, the newest memory must
be found, SIGTERM must end the daemon, and no temporary file may be left.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.bench.soak.clients import MIND
from tests.bench.soak.process import Cost, cost, leftovers, until
from tests.bench.stores import note

PARTS = 10
FILES = 300
"""Memories that exist at a time."""
WORDS = 1_000
"""Different words that the changes bring: people draw from a vocabulary, too."""
MOST = 8
"""The most changes of a burst; a burst has half as many on average."""
GROWTH, MORE = 1.1, 4
"""The most that memory may be as a multiple of that after the first part; threads in addition."""

HEADS = (
    "| bursts | changes | resident MB | CPU s | threads | descriptors |\n"
    "|---:|---:|---:|---:|---:|---:|"
)


def project(folder: Path, environ: dict[str, str]) -> Path:
    """Makes a project and returns its root."""
    folder.mkdir()
    subprocess.run([*MIND, "init"], cwd=folder, env=environ, check=True, capture_output=True)
    (folder / ".mind" / "facts").mkdir(exist_ok=True)
    return folder


def change(root: Path, draw: random.Random, number: int) -> None:
    """Changes one file, which the daemon may see as one event or more."""
    name = draw.randrange(FILES)
    path = root / ".mind" / "facts" / f"fact_note_{name}.md"
    kind = draw.random()
    if kind < 0.1:
        (root / f"{name}.txt").write_text(str(number), encoding="utf-8")
    elif kind < 0.25:
        path.unlink(missing_ok=True)
    elif kind < 0.4:
        new = path.with_suffix(".new")
        new.write_text(f"{note(name)}Written {number % WORDS}.\n", encoding="utf-8")
        new.replace(path)
    else:
        path.write_text(f"{note(name)}Written {number % WORDS}.\n", encoding="utf-8")


def watched(home: Path) -> list[str]:
    """Returns the projects that the daemon watches; none before it has started."""
    try:
        watching: list[str] = json.loads((home / "daemon.json").read_text())["watching"]
    except (OSError, ValueError):
        return []
    return watching


class Soak:
    """A run, and its figures so far."""

    def __init__(self, folder: Path, bursts: int, minutes: float) -> None:
        """Takes an empty folder, the number of bursts, and the most minutes that they may take."""
        self._folder, self._bursts = folder, bursts
        self._deadline = time.monotonic() + 60 * minutes
        self._environ = os.environ | {"MIND_HOME": str(folder / "home")}
        self.rows: list[str] = []
        self.faults: list[str] = []

    def run(self) -> None:
        """Runs the daemon while files change."""
        home = self._folder / "home"
        shop, deleted = (project(self._folder / name, self._environ) for name in ("shop", "old"))
        with (self._folder / "stderr").open("wb") as errors:
            words = [*MIND, "daemon", "run"]
            daemon = subprocess.Popen(words, env=self._environ, cwd=self._folder, stderr=errors)
        try:
            until(lambda: len(watched(home)) == 2, 90, "the daemon watches both projects")
            self._change(shop, deleted, daemon.pid)
            until(lambda: watched(home) == [str(shop)], 90, "the deleted project is not watched")
            self._check_newest(shop)
        finally:
            daemon.send_signal(signal.SIGTERM)
            status = daemon.wait(timeout=60)
        left = leftovers(self._folder)
        if status or left:
            self.faults.append(f"status {status}, left behind: {left}")
        errors_written = (self._folder / "stderr").read_text()
        if "Traceback" in errors_written:
            self.faults.append(errors_written)

    def _change(self, shop: Path, deleted: Path, pid: int) -> None:
        """Changes files in bursts, and adds a row for each part."""
        draw, changes = random.Random(1), 0
        first: Cost | None = None
        for burst in range(1, self._bursts + 1):
            for _ in range(draw.randint(1, MOST)):
                changes += 1
                change(shop, draw, changes)
            if burst == self._bursts // 2:
                shutil.rmtree(deleted)
            if burst % max(1, self._bursts // PARTS) == 0:
                now = cost(pid)
                self._add(burst, changes, now)
                first = first or now
                self._compare(first, now)
            if time.monotonic() > self._deadline:
                shutil.rmtree(deleted, ignore_errors=True)
                break

    def _add(self, burst: int, changes: int, now: Cost) -> None:
        figures = f"{now.resident_kb / 1024:.1f} | {now.cpu_seconds:.1f} | {now.threads}"
        self.rows.append(f"| {burst:,} | {changes:,} | {figures} | {now.descriptors} |")
        print(self.rows[-1], flush=True)

    def _compare(self, first: Cost, now: Cost) -> None:
        if now.resident_kb > GROWTH * first.resident_kb:
            self.faults.append(f"memory grew from {first.resident_kb} to {now.resident_kb} kB")
        for name in ("threads", "descriptors", "children"):
            before, after = getattr(first, name), getattr(now, name)
            if after > before + MORE:
                self.faults.append(f"{name} grew from {before} to {after}")

    def _check_newest(self, root: Path) -> None:
        path = root / ".mind" / "facts" / "fact_last.md"
        text = "---\nid: fact_last\ntype: fact\n---\nThe zebra came last.\n"
        path.write_text(text, encoding="utf-8")
        words = [*MIND, "search", "zebra", "--json"]
        found = subprocess.run(
            words, cwd=root, env=self._environ, check=True, capture_output=True, text=True
        )
        if "fact_last" not in found.stdout:
            self.faults.append("the newest memory was not found")
