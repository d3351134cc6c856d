"""Measures work at the same time: a merge of two branches, and agents that ask side by side."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.stores import MIND, Server, note, question, run, store
from mimo.project.git import DRIVER

_TEXTUAL = "git merge-file %A %O %B"
_IDENTITY = {
    f"GIT_{who}_{what}": "bench@example.com"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
_PAUSE_SECONDS = 0.1
"""The time between two questions of one agent, which is far less than that of real ones."""


def merged(changes: int) -> Iterator[tuple[str, str]]:
    """Yields the row for a merge of that many memories, changed on both sides.

    It is compared with a driver that only runs `git merge-file` for each file.
    """
    with store(0) as (root, environ):
        environ.update(_IDENTITY)
        program = root.parent / "bin" / "mind"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {" ".join(MIND)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        environ["PATH"] = f"{program.parent}{os.pathsep}{environ['PATH']}"

        def git(*words: str) -> float:
            return run(["git", *words], root, environ)[0]

        facts = root / ".mind" / "facts"
        git("init", "-q", "-b", "main")
        run([*MIND, "init"], root, environ)
        _write(facts, changes, "")
        git("add", "-A")
        git("commit", "-qm", "first")
        for branch in ("left", "right"):
            git("checkout", "-qb", branch, "main")
            _write(facts, changes, branch)
            git("commit", "-qam", branch)
        took = {}
        for driver in (_TEXTUAL, DRIVER):
            git("config", "merge.mind.driver", driver)
            git("checkout", "-q", "--detach", "left")
            took[driver] = git("merge", "-q", "--no-edit", "right")
        figure = f"{took[DRIVER]:.2f} s ({took[DRIVER] / took[_TEXTUAL]:.1f} × `git merge-file`)"
        yield f"merge of {changes} memories changed on both sides", figure


def _write(folder: Path, count: int, branch: str) -> None:
    """Writes notes whose first line the left branch has changed, and whose last one the right."""
    for number in range(count):
        text = note(number)
        if branch == "left":
            text = text.replace("tags: [bench]", "tags: [bench, left]")
        elif branch == "right":
            text += "\nOn the right.\n"
        (folder / f"fact_note_{number}.md").write_text(text, encoding="utf-8")


def side_by_side(size: int, clients: int) -> Iterator[tuple[str, str]]:
    """Yields the row for agents that ask at the same time, each with a server of its own."""
    with store(size) as (root, environ):
        run([*MIND, "index"], root, environ)
        servers = [Server(root, environ) for _ in range(clients)]
        for server in servers:
            server.searches(1)
        alone = _times(servers[0], 0)
        with ThreadPoolExecutor(clients) as pool:
            asked = pool.map(_times, servers, range(clients))
            together = sorted(took for each in asked for took in each)
        for server in servers:
            server.close()
        high, alone_high = together[len(together) * 95 // 100], alone[len(alone) * 95 // 100]
        figure = (
            f"p50 {statistics.median(together):.1f} ms, p95 {high:.1f} ms"
            f" ({high / alone_high:.1f} × the p95 of one)"
        )
        pause = f"{1000 * _PAUSE_SECONDS:.0f} ms"
        yield f"MCP search, {size:,}, {clients} clients that ask every {pause}", figure


def _times(server: Server, client: int) -> list[float]:
    """Returns how long each of 50 questions took, in rising order."""
    took = []
    for number in range(50):
        took.append(server.search(question(100 * client + number)))
        time.sleep(_PAUSE_SECONDS)
    return sorted(took)
