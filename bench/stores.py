"""Stores of realistic notes, commands that are run and timed, and a server, for the benches."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import mimo
from bench.clients import Pipe

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - callers make folders of their own there
IN_MEMORY = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
"""The folder of files in memory; None, the default of `tempfile`, if there is none."""

MIND = [sys.executable, "-m", "mimo"]
MODEL = Path(mimo.__file__).parent / "model"
TOPICS = (
    "the login token expires after {n} minutes and must be refreshed by the gateway",
    "uploads above {n} megabytes fail because the proxy cuts the body",
    "the nightly job {n} rebuilds the search index and takes the lock for a while",
    "we chose postgres over mongo for order {n} because reports need joins",
    "retry {n} times with back-off when the payment provider answers with a timeout",
    "the cache key of page {n} lacks the locale, so German visitors saw English prices",
    "feature flag {n} guards the new checkout; remove it after the release",
    "test {n} is flaky on slow machines since it waits for a fixed time",
)
QUERIES = (
    "why do uploads fail",
    "token refresh",
    "which database did we choose",
    "flaky test on slow machines",
    "prices in the wrong language",
)


def note(number: int) -> str:
    """Returns the file of a short note, the same for the same number."""
    return f"---\nid: fact_note_{number}\ntype: fact\ntags: [bench]\n---\n{text(number)}"


def text(number: int) -> str:
    """Returns the text of a note, 40 to 110 words."""
    draw = random.Random(number)
    sentence = draw.choice(TOPICS).format(n=number)
    return f"{sentence}.\n{words(draw, draw.randint(30, 100))}.\n"


def words(draw: random.Random, number: int) -> str:
    """Returns words as frequent as in developers' notes, so that a store has rare ones, too."""
    words, weights = _vocabulary()
    return " ".join(draw.choices(words, cum_weights=weights, k=number))


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """Returns the stems of the packaged list, and the sums of their shares so far."""
    lines = (MODEL / "background.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    stems = [(stem, math.exp(-int(tenths) / 10)) for stem, tenths in rows if stem.isalpha()]
    return [stem for stem, _ in stems], list(accumulate(share for _, share in stems))


def question(number: int) -> str:
    """Returns a question that many notes answer, another one for each number."""
    draw = random.Random(-number)
    return f"{draw.choice(QUERIES)} {words(draw, 2)}"


@contextmanager
def store(size: int) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yields a project with that many notes, and the environment to run mind in.

    Without the encoder, an index has words and static vectors only: preparing 10,000 notes for
    comparison in context takes minutes, and would be most of each row.
    """
    with TemporaryDirectory(prefix="mind-bench-") as folder:
        environ = os.environ | {"MIND_HOME": str(Path(folder) / "home")}
        # Without compiled files every start would measure the compiler.
        for name in ("MIND_PROJECT", "PYTHONDONTWRITEBYTECODE"):
            environ.pop(name, None)
        yield project(Path(folder) / "project", environ, size), environ


def project(root: Path, environ: dict[str, str], size: int) -> Path:
    """Makes a project with that many notes, which are not indexed yet; returns its root."""
    root.mkdir()
    run([*MIND, "init"], root, environ)
    run([*MIND, "config", "--user", "embedding.encoder", "off"], root, environ)
    facts = root / ".mind" / "facts"
    facts.mkdir(exist_ok=True)
    for number in range(size):
        (facts / f"fact_note_{number}.md").write_text(note(number), encoding="utf-8")
    return root


def run(
    command: list[str], cwd: Path, environ: dict[str, str], data: bytes = b"", most: int = 0
) -> tuple[float, int]:
    """Returns the processor seconds of a command, and its resident memory in kB.

    Raises `SystemExit` if its exit status is larger than the most.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environ,
        stdin=subprocess.PIPE if data else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if process.stdin:
        process.stdin.write(data)
        process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if not 0 <= process.returncode <= most:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


class Server(Pipe):
    """The MCP server over a pipe, and its only client."""

    def __init__(
        self, root: Path, environ: dict[str, str], command: Sequence[str] = (*MIND, "mcp")
    ) -> None:
        """Starts it in a project."""
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        super().__init__(
            subprocess.Popen(command, cwd=root, env=environ, stdin=pipe, stdout=pipe, stderr=null)
        )

    def spent(self) -> tuple[float, int]:
        """Returns the processor seconds and the page faults so far, with those of its children."""
        fields = [_fields(pid) for pid in _tree(self.process.pid)]
        seconds = sum(sum(map(int, each[11:15])) for each in fields) / os.sysconf("SC_CLK_TCK")
        return seconds, sum(int(each[7]) + int(each[8]) for each in fields)

    def resident(self) -> int:
        """Returns the resident memory in kB, or 0 if the system does not report it."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return 0
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    def close(self) -> None:
        """Ends the server."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def _fields(pid: int) -> list[str]:
    """Returns what the system says of a process, from its state on; zeros where it says nothing."""
    path = Path(f"/proc/{pid}/stat")
    return path.read_text().rpartition(")")[2].split() if path.exists() else ["0"] * 15


def _tree(pid: int) -> Iterator[int]:
    """Yields a process, its children, and theirs."""
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            yield from _tree(int(child))


def left_behind(folder: Path) -> list[int]:
    """Returns the processes whose environment names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if os.fsencode(folder) in path.read_bytes():
                found.append(int(path.parent.name))
    return found
