"""`make bench-limits`: large folders, stores, notes, numbers of links and of projects.

Each step runs real commands, and prints the processor seconds and the memory of each, or the error
with which a command refuses the work. The figures of each step are kept in a folder, from which
`--write` makes the tables of a page.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.clients import Http, outcome, port_of, token_of
from bench.soak.process import cost, until
from bench.stores import MIND, QUERIES, note, project
from scripts.marked import table, write_part

SECONDS = 3600
NOTE_BYTES = 100_000_000
LINKS = (1_250, 5_000)
PROJECTS = 1_000


class Row(NamedTuple):
    """A command, and what it took."""

    what: str
    seconds: float
    """Of the processor."""
    megabytes: float
    error: str = ""
    """The message with which the command refused the work."""


class Place:
    """A scratch folder with a project and a home of its own."""

    def __init__(self, folder: Path) -> None:
        """Makes the project."""
        self.folder, self.root = folder, folder / "shop"
        self.environ = os.environ | {"MIND_HOME": f"{folder / 'home'}", "MIND_BACKGROUND": "off"}
        self.environ.pop("MIND_PROJECT", None)
        self.facts = project(self.root, self.environ, 0) / ".mind" / "facts"

    def row(self, what: str, words: list[str], data: Path | None = None) -> Row:
        """Runs a command, and returns its row. Its input is a file, or nothing."""
        process, errors = [*MIND, *words], self.folder / "errors"
        with (data or Path(os.devnull)).open("rb") as given, errors.open("wb") as file:
            running = subprocess.Popen(
                process, cwd=self.root, env=self.environ, stdin=given, stdout=file, stderr=file
            )
            _, status, usage = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        lines = errors.read_text("utf-8", "replace").splitlines()
        failed = [line for line in lines if line.startswith(("error:", "hint:"))]
        if running.returncode and not failed and words[0] != "doctor":
            raise SystemExit(f"{words} failed with {running.returncode}: {lines[-5:]}")
        made = Row(
            what=what or f"`mind {' '.join(words)}`",
            seconds=usage.ru_utime + usage.ru_stime,
            megabytes=usage.ru_maxrss / 1024,
            error=" ".join(failed) if running.returncode else "",
        )
        print(made, flush=True)
        return made

    def hook(self, what: str, event: dict[str, str]) -> Row:
        """Returns the row of a hook."""
        data = self.folder / "event"
        data.write_text(json.dumps(event | {"session_id": "bench", "cwd": f"{self.root}"}))
        return self.row(what, ["hook"], data)

    def git(self, *words: str) -> None:
        """Runs git in the project."""
        names = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", *names, *words], cwd=self.root, check=True, capture_output=True)


def memories(place: Place, size: int) -> Iterator[Row]:
    """Yields the rows of a store whose memories are all in one folder."""
    for number in range(size):
        (place.facts / f"fact_note_{number}.md").write_text(note(number), "utf-8")
    yield place.row("first index", ["index"])
    yield place.row("index, nothing changed", ["index"])
    for words in (
        ["search", QUERIES[0]], ["list"], ["show", "fact_note_7"], ["status"], ["doctor"],
        ["review"], ["add", "--again", "The lantern is lit"], ["rm", "fact_note_9"],
        ["search", "lantern"],
    ):  # fmt: skip
        yield place.row("", words)
    prompt = {"hook_event_name": "UserPromptSubmit", "prompt": QUERIES[0]}
    yield place.hook("`mind hook` at a session", {"hook_event_name": "SessionStart"})
    yield place.hook("`mind hook` at a prompt", prompt)


def large_note(place: Place) -> Iterator[Row]:
    """Yields the rows of a note of 100 MB."""
    text = place.folder / "large.md"
    line = "The lantern is lit when the harbour master sees the pilot boat.\n"
    with text.open("w", encoding="utf-8") as file:
        # A child's memory is counted from that of this process on, so keep this one small.
        file.writelines(line for _ in range(NOTE_BYTES // len(line)))
    yield place.row("`mind add -` from standard input", ["add", "-"], text)
    for copy in (place.facts / "large.md", place.root / "large.md"):
        shutil.copy(text, copy)
    yield place.row("`mind index`, the note is a file in `.mind/`", ["index"])
    yield place.row("`mind list`, as above", ["list"])
    yield place.row("`mind doctor`, as above", ["doctor"])
    (place.facts / "large.md").unlink()
    yield place.row("`mind ingest large.md`", ["ingest", "large.md"])


def linked(place: Place, count: int) -> Iterator[Row]:
    """Yields the rows of a memory with many links to and from it."""
    links = "".join(f"- relates_to [[fact_note_{number}]]\n" for number in range(count))
    for number in range(2 * count):
        text = note(number)
        if number >= count:
            text += "\n## Links\n- builds_on [[fact_hub]]\n"
        (place.facts / f"fact_note_{number}.md").write_text(text, "utf-8")
    hub = place.facts / "fact_hub.md"
    text = f"---\nid: fact_hub\ntype: fact\n---\nThe hub.\n\n## Links\n{links}"
    hub.write_text(text, "utf-8")
    yield place.row("`mind index`", ["index"])
    for words in (
        ["graph", "fact_hub"], ["graph", "fact_hub", "--depth", "5", "--limit", "1000"],
        ["graph", "--limit", "1000"], ["show", "fact_hub"], ["review"], ["doctor"],
        ["link", "fact_note_3", "fact_hub"],
    ):  # fmt: skip
        yield place.row("", words)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "base"]):
        place.git(*words)
    base, theirs = place.folder / "base", place.folder / "theirs"
    shutil.copy(hub, base)
    lines = text.splitlines(keepends=True)
    theirs.write_text("".join(lines) + "- refines [[fact_note_1]]\n", "utf-8")
    hub.write_text("".join(lines[:-2]) + "- refines [[fact_note_2]]\n", "utf-8")
    yield place.row("merge of the memory, changed on both sides", [
        "merge-driver", f"{base}", f"{hub}", f"{theirs}", ".mind/facts/fact_hub.md",
    ])  # fmt: skip


def projects(place: Place, count: int) -> Iterator[Row]:
    """Yields the rows of a machine with many projects."""
    code = (
        "import os, sys; from pathlib import Path; from datetime import datetime, UTC\n"
        "from mimo.project.init import init; from mimo.data.disk import home_of\n"
        "for number in range(int(sys.argv[1])):\n"
        "    root = Path(sys.argv[2], f'p{number}'); root.mkdir(parents=True)\n"
        "    init(root, home_of(os.environ), now=datetime.now(UTC))\n"
        "    (root / '.mind/facts').mkdir(exist_ok=True)\n"
        "    (root / '.mind/facts/n.md').write_text(\n"
        "        f'---\\nid: n{number}\\ntype: fact\\n---\\nThe lantern {number} is lit.\\n')\n"
    )
    words = [sys.executable, "-c", code, f"{count}", f"{place.folder / 'many'}"]
    subprocess.run(words, env=place.environ, check=True)
    yield place.row("", ["projects"])
    yield place.row(
        "the first search of all (indexes them)", ["search", "--scope", "all", "lantern"]
    )
    yield place.row("", ["search", "--scope", "all", "lantern"])
    yield place.row("", ["list", "--all-projects"])
    yield place.row("", ["doctor"])
    yield from daemon(place, count)
    yield from server(place, count)


@contextmanager
def process(place: Place, words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program meanwhile, and ends it."""
    with (place.folder / "output").open("wb") as output:
        running = subprocess.Popen(
            [*MIND, *words], cwd=place.folder, env=place.environ, stdout=output, stderr=output
        )
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=120)


def daemon(place: Place, count: int) -> Iterator[Row]:
    """Yields the rows of a daemon that watches many projects."""
    log = place.folder / "home" / "logs" / "daemon.log"
    with process(place, ["daemon", "run"]) as running:
        until(lambda: log.exists() and log.read_text().count(": watching") + log.read_text().count(
            "INFO watching") >= count, SECONDS, "all projects are watched")  # fmt: skip
        time.sleep(5)
        now = cost(running.pid)
        yield Row("daemon, all watched", now.cpu_seconds, now.resident_kb / 1024)
        print(now, flush=True)
        (place.folder / "many" / "p7" / ".mind" / "facts" / "n.md").write_text(
            "---\nid: n7\ntype: fact\n---\nThe zebra is lit.\n", "utf-8"
        )
        until(lambda: "1 files indexed" in log.read_text(), SECONDS, "the change is indexed")
        later = cost(running.pid)
        spent = later.cpu_seconds - now.cpu_seconds
        yield Row("daemon, one change", spent, later.resident_kb / 1024)
        time.sleep(70)
        last = cost(running.pid)
        spent = (last.cpu_seconds - later.cpu_seconds) * 60 / 70
        yield Row("daemon, a minute without changes", spent, last.resident_kb / 1024)


def server(place: Place, count: int) -> Iterator[Row]:
    """Yields the rows of an HTTP server that is asked about every project."""
    output = place.folder / "output"
    with process(place, ["mcp", "--http", "0"]) as running:
        port = port_of(output)
        now = cost(running.pid)
        yield Row("HTTP server, no request", now.cpu_seconds, now.resident_kb / 1024)
        token = token_of(place.folder / "home")
        call = {"name": "mind_search", "arguments": {"query": "lantern"}}
        outcomes = set()
        for number in range(count):
            client = Http(port, token, f"p{number}")
            outcomes.add(outcome(client.ask("tools/call", call)))
            client.end()
            client.close()
        assert outcomes == {"ok"}, outcomes
        later = cost(running.pid)
        print(later, flush=True)
        spent = (later.cpu_seconds - now.cpu_seconds) / count
        yield Row("HTTP server, a search in each project", spent, later.resident_kb / 1024)


Step = tuple[str, Callable[[Place], Iterator[Row]]]


def steps(size: int) -> dict[str, Step]:
    """Returns the steps by name, each with its title."""
    few, many = LINKS
    title = "{:,} links of one memory, as many to it"
    return {
        "folder": ("100,000 memories in one folder", lambda place: memories(place, 100_000)),
        "memories": (f"{size:,} memories in one folder", lambda place: memories(place, size)),
        "note": (f"a note of {NOTE_BYTES // 10**6} MB", large_note),
        "few-links": (title.format(few), lambda place: linked(place, few)),
        "links": (title.format(many), lambda place: linked(place, many)),
        "projects": (f"{PROJECTS:,} projects", lambda place: projects(place, PROJECTS)),
    }


def tables(figures: Path) -> str:
    """Returns the tables of all steps that were measured."""
    parts = []
    for file in sorted(figures.glob("limits-*.json"), key=lambda path: path.stat().st_mtime):
        title, rows = json.loads(file.read_text("utf-8"))
        cells = (
            (f"{what}: {error}" if error else what, f"{seconds:,.1f} s", f"{megabytes:,.0f} MB")
            for what, seconds, megabytes, error in rows
        )
        parts.append(table((title, "CPU", "memory"), cells))
    return "\n\n".join(parts)


def main() -> None:
    """Runs the steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*")
    parser.add_argument("--memories", type=int, default=1_000_000)
    parser.add_argument("--figures", type=Path, default=Path("build/limits"))
    parser.add_argument("--write", type=Path, help="the page with the tables")
    options = parser.parse_args()
    options.figures.mkdir(parents=True, exist_ok=True)
    every = steps(options.memories)
    for name in options.steps or every:
        title, measure = every[name]
        print(title, flush=True)
        with tempfile.TemporaryDirectory(prefix="mind-limits-") as folder:
            rows = [*measure(Place(Path(folder).resolve()))]
        file = options.figures / f"limits-{name}.json"
        file.write_text(json.dumps([title, rows]), "utf-8")
    if options.write:
        write_part(options.write, "sizes", tables(options.figures))


if __name__ == "__main__":
    main()
