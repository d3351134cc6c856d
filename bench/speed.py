"""`make bench`: what a user of mind meets, beside other tools, by turns in the same run.

The notes are real ones, and a question is in other words than its answer, or has words of its
title. × is the least processor time of several runs as a multiple of that of `python -c pass`,
which runs by turns with the others; the time of a server is the mean over all questions, after a
few that load its models. ▼ marks the rows in which another tool is better than mind; its figure is
bold. – is what a tool does not have or was not asked for. A target is a limit for mind, at all
sizes or at each of them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench import notes
from bench.notes import Note, Question, longest
from bench.peers import OTHERS, Tool, installed
from bench.stores import Server, left_behind, run
from scripts import marked

_MIND = ("-m", "mimo")
_ROUNDS = 3
_NONE: Mapping[str, bytes] = {}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
USERS, LAB = Path("docs/how-fast-it-is.md"), Path("docs/lab/benchmarks.md")


@dataclass(frozen=True)
class Row:
    """What is measured, with the targets by size."""

    label: str
    unit: str = "×"
    targets: Mapping[int, float] = field(default_factory=dict)
    more_is_better: bool = False


def _all(most: float) -> dict[int, float]:
    return dict.fromkeys(SIZES[:3], most)


ROWS = {
    "first": Row("the right note is first, asked in other words", "%", more_is_better=True),
    "named": Row("the right note is first, asked by words of its title", "%", more_is_better=True),
    "natural": Row("search in other words, in a new process", targets={1_000: 14, 10_000: 16}),
    "words": Row("search by words of a title, in a new process", targets={1_000: 9, 10_000: 12}),
    "mcp": Row(
        "MCP search, processor time of the server",
        "ms",
        {1_000: 6, 10_000: 8, 100_000: 15},
    ),
    "p50": Row("MCP search, median until the answer", "ms", {10_000: 10}),
    "start": Row("MCP server, processor time to its first answer", "s", _all(0.25)),
    "add": Row("add a note", targets=_all(8)),
    "hook": Row("hook at a prompt", targets=_all(4)),
    "index": Row("first index of all notes, by words", "s", {10_000: 3.5}),
    "encode": Row("reading a note for its meaning", "ms", _all(18)),
    "disk": Row("index on disk, times the text", targets=_all(5.2)),
    "tools": Row("list of the MCP tools", "kB", {1_000: 14}),
    "install": Row("installation on disk", "MB", {1_000: 290}),
    "left": Row("processes left behind", "", _all(0)),
}
"""What users read about."""
MORE = {
    "five": Row(
        "the right note is in the first five, asked in other words", "%", more_is_better=True
    ),
    "faults": Row("MCP search, page faults of the server", "", _all(100)),
    "p95": Row("MCP search, time within which 95 % are answered", "ms"),
    "memory": Row("MCP server, memory after the searches", "MB"),
    "list": Row("`mind list`", targets={10_000: 8}),
    "show": Row("`mind show`", targets={10_000: 8}),
    "status": Row("`mind status`", targets={10_000: 10}),
    "save": Row("`mind save decision`", targets=_all(8)),
    "session": Row("hook at the start of a session", targets=_all(4)),
    "tool": Row("hook before a change of a file", targets=_all(4)),
    "again": Row("`mind index`, nothing changed"),
    "served": Row("search in other words while a server runs"),
    "version": Row("`mind --version`"),
    "ingest": Row("`mind ingest`, a file of this project's pages", "ms"),
}
"""What docs/lab has beside that."""
EVERY = ROWS | MORE


class Figure(NamedTuple):
    """A measured value of a row."""

    key: str
    tool: str
    value: float


Values = dict[tuple[str, str, int], float]
"""The values by row, tool and size."""


def by_turns(
    asked: Mapping[str, Sequence[tuple[Tool, Sequence[str]]]],
    data: Mapping[str, bytes] = _NONE,
) -> Iterator[Figure]:
    """Yields for each name the processor time of commands, as a multiple of `python -c pass`.

    That is the mean over its commands, each with the least of its rounds.
    """
    base, nothing = math.inf, [sys.executable, "-c", "pass"]
    least = {name: [math.inf] * len(commands) for name, commands in asked.items()}
    for number, step in product(range(_ROUNDS), range(max(map(len, asked.values())))):
        base = min(base, run(nothing, Path.cwd(), dict(os.environ))[0])
        for name, commands in asked.items():
            tool, words = commands[min(step, len(commands) - 1)]
            if step < len(commands) and number < tool.rounds:
                given = data.get(name, b"")
                with suppress(SystemExit):
                    command = tool.command(words)
                    took, _ = run(command, tool.notes, tool.environ, given, tool.most_status)
                    least[name][step] = min(least[name][step], took)
    for name, each in least.items():
        if max(each) < math.inf:
            yield Figure("", name, statistics.fmean(each) / base)
        else:
            print(f"{name} failed", flush=True)


def measured(size: int, more: Path | None, names: Sequence[str] | None) -> Iterator[Figure]:
    """Yields the figures of the tools with that many notes."""
    known, questions = notes.notes(size, more)
    titles = {note.name[-6:]: note.title for note in known}
    by_words = [
        question._replace(text=" ".join(longest(titles[min(question.right)])))
        for question in questions
    ]
    with TemporaryDirectory(prefix="mind-bench-") as scratch:
        tools = [tool for tool in installed(Path(scratch), names) if size <= tool.most]
        for tool in tools:
            print(f"{size:,}: {tool.name}: writing and indexing", flush=True)
            tool.write(known)
            yield from indexed(tool, known)
        for key, asked in ("natural", questions), ("words", by_words):
            few = asked[:: len(asked) // 5]
            yield from _named(
                key,
                by_turns(
                    {
                        tool.name: [
                            (tool, tool.search(each.text)) for each in few[: tool.questions]
                        ]
                        for tool in tools
                        if tool.search
                    }
                ),
            )
        yield from _named("add", by_turns({t.name: [(t, t.add)] for t in tools if t.add}))
        yield from commands(tools[0], known[7].name, questions[0].text)
        yield from served(tools, questions, by_words)
        if size == SIZES[0]:
            yield from taken_in(tools[0])
        time.sleep(2)
        for tool in tools:
            left = left_behind(tool.folder)
            yield Figure("left", tool.name, len(left))
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)


def _named(key: str, figures: Iterable[Figure]) -> Iterator[Figure]:
    return (figure._replace(key=key) for figure in figures)


def indexed(tool: Tool, known: Sequence[Note]) -> Iterator[Figure]:
    """Yields the figures of the first index, and of the installation."""
    if tool.index:
        is_mind = tool.name == "mind"
        # The first command indexes mind's notes by words, and `mind index` reads their meaning.
        steps = {"index": (*_MIND, "list", "-n", "1"), "encode": tool.index}
        for key, command in steps.items() if is_mind else [("index", tool.index)]:
            with suppress(SystemExit):  # What another tool can't do is not measured.
                took, _ = run(tool.command(command), tool.notes, tool.environ)
                yield Figure(key, tool.name, took if key == "index" else 1000 * took / len(known))
        if is_mind:  # All texts of a user's own store are approved.
            tool.run(*_MIND, "trust", "--all")
        text = sum(len(note.file().encode()) for note in known)
        yield Figure("disk", tool.name, bytes_in(tool.folder / tool.indexed) / text)
    if len(known) == SIZES[0] and tool.place.exists():
        yield Figure("install", tool.name, bytes_in(tool.place) / 1e6)


def bytes_in(folder: Path) -> int:
    """Returns the bytes of the files in a folder, without Node and what Python compiles."""
    paths = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    own = (path for path in paths if "node_modules/node/" not in f"{path}")
    return sum(path.lstat().st_size for path in own if path.suffix != ".pyc")


def commands(mind: Tool, id: str, question: str) -> Iterator[Figure]:
    """Yields the figures of other commands of mind, and of its hooks."""
    moments: dict[str, dict[str, Any]] = {
        "session": {"hook_event_name": "SessionStart", "source": "startup"},
        "hook": {"hook_event_name": "UserPromptSubmit", "prompt": question},
        "tool": {
            "hook_event_name": "PreToolUse",
            "tool_input": {"file_path": "a.py", "content": "import jwt\n" * 40},
        },
    }
    common = {"session_id": "bench", "cwd": f"{mind.notes}"}
    events = {key: json.dumps(common | fields).encode() for key, fields in moments.items()}
    asked = {
        "list": ["list"],
        "show": ["show", id],
        "status": ["status"],
        "save": ["save", "decision", "login", "Use JWT", "No server state", "--again"],
        "again": ["index"],
        "version": ["--version"],
    } | {key: ["hook"] for key in moments}
    turns = {key: [(mind, [*_MIND, *words])] for key, words in asked.items()}
    yield from (Figure(key, "mind", value) for _, key, value in by_turns(turns, events))


def taken_in(mind: Tool) -> Iterator[Figure]:
    """Yields the figure of taking in the pages of this project."""
    shutil.copytree("docs", mind.notes / "docs", ignore=shutil.ignore_patterns("images"))
    mind.run(*_MIND, "config", "--user", "embedding.encoder", "off")
    took, _ = run(mind.command([*_MIND, "ingest", "docs"]), mind.notes, mind.environ)
    yield Figure("ingest", "mind", 1000 * took / sum(1 for _ in Path("docs").rglob("*.md")))


def served(
    tools: Sequence[Tool], questions: Sequence[Question], by_words: Sequence[Question]
) -> Iterator[Figure]:
    """Yields the figures of MCP servers: each question is put to each of them by turns."""
    sessions = []
    for tool in tools:
        try:
            if tool.server is not None:
                sessions.append(Session(tool))
        except (SystemExit, OSError, KeyError) as error:
            print(f"{tool.name}: its server failed: {error!r}", flush=True)
    # The first searches of a server load its models, also that of other languages than English.
    put([*by_words[:10], Question("welche Datenbank?", frozenset())], sessions)
    put(questions, sessions)
    for session in sessions:
        yield from session.figures()
    put(by_words, sessions)
    for session in sessions:
        yield Figure("named", session.tool.name, session.share(1))
    mind = tools[0]
    asked = [*_MIND, "search", questions[0].text]
    yield from _named("served", by_turns({"mind": [(mind, asked)]}))
    for session in sessions:
        session.server.close()


def put(questions: Sequence[Question], sessions: Sequence[Session]) -> None:
    """Puts questions to all servers by turns, each of which counts from now on."""
    for session in sessions:
        session.begin()
    for question in questions:
        for session in sessions:
            session.ask(question)


class Session:
    """A session with the MCP server of a tool."""

    def __init__(self, tool: Tool) -> None:
        """Starts the server three times."""
        self.tool = tool
        self.first = math.inf
        self._start()
        for _ in range(2):
            self.server.close()
            self._start()

    def _start(self) -> None:
        words = self.tool.command(self.tool.server or [])
        self.server = Server(self.tool.notes, self.tool.environ, words)
        listing = self.server.ask("tools/list", {})["result"]["tools"]
        self.first = min(self.first, self.server.spent()[0])
        self.listing = len(json.dumps(listing, ensure_ascii=False, separators=(",", ":")).encode())

    def begin(self) -> None:
        """Counts from now on."""
        self.took: list[float] = []
        self.ranks: list[int] = []
        self.before = self.server.spent()

    def ask(self, question: Question) -> None:
        """Puts a question, and takes down the place of the right note among the answers."""
        assert self.tool.question is not None
        name, arguments = self.tool.question(question.text)
        start = time.perf_counter()
        answer = self.server.ask("tools/call", {"name": name, "arguments": arguments})
        self.took.append(1000 * (time.perf_counter() - start))
        found = self.tool.found(answer.get("result", {}))
        self.ranks.append(next((n for n, one in enumerate(found) if one in question.right), 99))

    def share(self, most: int) -> float:
        """Returns how many of 100 questions had the right note among the first."""
        return 100 * statistics.fmean(rank < most for rank in self.ranks)

    def figures(self) -> Iterator[Figure]:
        """Yields what was counted."""
        count = len(self.took)
        seconds, faults = self.server.spent()
        values = {
            "start": self.first,
            "tools": self.listing / 1000,
            "mcp": 1000 * (seconds - self.before[0]) / count,
            "faults": (faults - self.before[1]) / count,
            "p50": statistics.median(self.took),
            "p95": sorted(self.took)[count * 95 // 100],
            "memory": self.server.resident() / 1024,
            "first": self.share(1),
            "five": self.share(5),
        }
        yield from (Figure(key, self.tool.name, value) for key, value in values.items())


# The pages.


def shown(key: str, value: float | None) -> str:
    """Returns a value with its unit."""
    if value is None:
        return "–"
    unit = EVERY[key].unit
    digits = 1 if value < 100 and unit not in {"", "%", "MB", "kB"} else 0
    digits = 2 if unit == "s" and value < 10 else digits
    return f"{value:,.{digits}f} {unit}".strip()


def beside(key: str, values: Values, size: int, names: Sequence[str]) -> list[str]:
    """Returns the figures of mind and of others, those that are better in bold."""
    own, *rest = (values.get((key, name, size)) for name in ("mind", *names))
    cells = [shown(key, own)]
    for value in rest:
        cell = shown(key, value)
        gain = 0.0 if own is None or value is None or cell == shown(key, own) else value - own
        if (gain > 0) if EVERY[key].more_is_better else (gain < 0):
            cell, cells[0] = f"**{cell}**", f"{shown(key, own)} ▼"
        cells.append(cell)
    return cells


def write(values: Values, first: str) -> None:
    """Writes the page for users and that of all figures."""
    sizes = sorted({size for _, _, size in values})
    names = [tool.name for tool in OTHERS if any(name == tool.name for _, name, _ in values)]
    said = [f"- {tool.name}: {tool.says}." for tool in OTHERS if tool.name in names]
    if missing := [tool.name for tool in OTHERS if tool.name not in names]:
        said.append(f"- Not installed where this was measured: {', '.join(missing)}.")
    small, *larger = map("{:,}".format, sizes)

    def mine(key: str) -> list[str]:
        return [shown(key, values.get((key, "mind", size))) for size in sizes]

    def row(key: str) -> list[str]:
        own, *rest = beside(key, values, sizes[0], names)
        return [EVERY[key].label, own, *mine(key)[1:], *rest]

    def with_target(key: str) -> list[str]:
        limits = dict.fromkeys(shown(key, EVERY[key].targets.get(size)) for size in sizes)
        return [EVERY[key].label, *mine(key), " / ".join(limits)]

    titles = ["", f"mind, {small}", *larger, *(f"{name}, {small}" for name in names)]
    table = marked.table(titles, map(row, ROWS))
    marked.write_part(USERS, "figures", f"{first}\n\n{table}\n\n" + "\n".join(said))
    parts = [f"# Benchmarks\n\nGenerated by {(__doc__ or '').strip()}", first]
    parts.append(marked.table(["", small, *larger, "target"], map(with_target, EVERY)))
    for size in sizes:
        rows = ([EVERY[key].label, *beside(key, values, size, names)] for key in ROWS)
        parts.append(f"## Beside other tools, {size:,} notes")
        parts.append(marked.table(["", "mind", *names], rows))
    LAB.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, help="a folder of more real notes")
    parser.add_argument("--largest", type=int, default=10_000, help="the last size")
    parser.add_argument("--tools", nargs="*", help="the other tools (all that are installed)")
    parser.add_argument("--write", action="store_true", help="write the pages")
    args = parser.parse_args()
    nothing = [sys.executable, "-c", "pass"]
    base = min(run(nothing, Path.cwd(), dict(os.environ))[0] for _ in range(15))
    first = f"`python -c pass` took {1000 * base:.1f} ms, and a server was asked "
    first += f"{len(notes.labelled()[1])} questions of each kind."
    values: Values = {}
    for size in (size for size in SIZES if size <= args.largest):
        for key, tool, value in measured(size, args.markdown, args.tools):
            values[key, tool, size] = value
            print(f"{size:,}: {tool}: {EVERY[key].label}: {shown(key, value)}", flush=True)
        if args.write:  # After each size: the largest takes most of the time.
            write(values, first)


if __name__ == "__main__":
    main()
