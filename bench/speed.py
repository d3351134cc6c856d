"""`make bench`: what a user of mind meets, beside other tools, by turns in the same run.

The notes are real ones, and the questions are in other words than theirs. × is the least processor
time of several runs as a multiple of that of `python -c pass`, which runs by turns with the others;
the time of a server is the mean over all questions. ▼ marks the rows that mind loses to another
tool, whose figure is bold.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench import notes
from bench.notes import Note, Question
from bench.peers import TOOLS, Mind, Tool, installed
from bench.stores import MIND, Server, left_behind, run
from scripts import marked

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
    "named": Row("… asked by words of its title", "%", more_is_better=True),
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
    "index": Row("first index, by words", "s", {10_000: 3.5}),
    "encode": Row("preparing a note for questions in other words", "ms", _all(18)),
    "disk": Row("index on disk, times the text", targets=_all(5.2)),
    "tools": Row("list of the MCP tools", "kB", {1_000: 14}),
    "install": Row("installation", "MB", {1_000: 290}),
    "left": Row("processes left behind", "", _all(0)),
}
"""What users read about."""
MORE = {
    "five": Row("… is among the first five, asked in other words", "%", more_is_better=True),
    "faults": Row("MCP search, page faults", "", _all(100)),
    "p95": Row("MCP search, 95 of 100 answers come within", "ms"),
    "memory": Row("MCP server, resident after the searches", "MB"),
    "list": Row("`mind list`", targets={10_000: 8}),
    "show": Row("`mind show`", targets={10_000: 8}),
    "status": Row("`mind status`", targets={10_000: 10}),
    "save": Row("`mind save decision`", targets=_all(8)),
    "session": Row("hook at the start of a session", targets=_all(4)),
    "tool": Row("hook before a change of a file", targets=_all(4)),
    "again": Row("`mind index`, nothing changed"),
    "served": Row("search in other words while a server runs"),
    "version": Row("`mind --version`"),
    "completion": Row("completion of an id"),
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


class Command(NamedTuple):
    """A command, with where it runs."""

    words: list[str]
    cwd: Path
    environ: dict[str, str]
    data: bytes = b""
    most: int = 0
    """The largest exit status that means success."""


def by_turns(
    asked: Mapping[str, Sequence[Command]], rounds: Mapping[str, int]
) -> Iterator[tuple[str, float]]:
    """Yields for each name its processor time as a multiple of that of `python -c pass`.

    That is the mean over its commands, each with the least of its rounds.
    """
    base = math.inf
    least = {name: [math.inf] * len(commands) for name, commands in asked.items()}
    for number in range(max(rounds.values(), default=0)):
        for step in range(max(map(len, asked.values()))):
            base = min(base, run([sys.executable, "-c", "pass"], Path.cwd(), dict(os.environ))[0])
            for name, commands in asked.items():
                if number < rounds[name] and step < len(commands):
                    words, cwd, environ, data, most = commands[step]
                    with suppress(SystemExit):
                        seconds, _ = run(words, cwd, environ, data, most)
                        least[name][step] = min(least[name][step], seconds)
    for name, each in least.items():
        if each and max(each) < math.inf:
            yield name, statistics.fmean(each) / base
        elif each:
            print(f"{name} failed", file=sys.stderr)


def measured(size: int, more: Path | None, names: Sequence[str] | None) -> Iterator[Figure]:
    """Yields the figures of the tools with that many notes."""
    known, questions = notes.notes(size, more)
    with TemporaryDirectory(prefix="mind-bench-") as scratch:
        tools = [tool(Path(scratch) / tool.name) for tool in installed(names) if size <= tool.most]
        text = sum(len(note.file().encode()) for note in known)
        for tool in tools:
            print(f"{size:,}: {tool.name}: writing and indexing", file=sys.stderr)
            tool.write(known)
            yield from careful(tool, indexed(tool, size, text))
        yield from searched(tools, known, questions)
        mind = tools[0]
        assert isinstance(mind, Mind)
        yield from commands(mind, known, questions)
        yield from served(tools, known, questions)
        time.sleep(2)
        for tool in tools:
            left = left_behind(tool.folder)
            yield Figure("left", tool.name, len(left))
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, 15)


def careful(tool: Tool, figures: Iterator[Figure]) -> Iterator[Figure]:
    """Yields figures; what fails in another tool does not end the run."""
    try:
        yield from figures
    except (SystemExit, OSError) as error:
        if isinstance(tool, Mind):
            raise
        print(f"{tool.name}: {error}", file=sys.stderr)


def indexed(tool: Tool, size: int, text: int) -> Iterator[Figure]:
    """Yields the figures of the first index."""
    if words := tool.index():
        if isinstance(tool, Mind):
            tool.run("config", "--user", "embedding.encoder", "off")
        seconds, _ = run(words, tool.notes, tool.environ)
        yield Figure("index", tool.name, seconds)
        if isinstance(tool, Mind):
            tool.run("config", "--user", "embedding.encoder", "on")
            print(f"{size:,}: preparing for questions in other words", file=sys.stderr)
            seconds, _ = run(words, tool.notes, tool.environ)
            tool.run("trust", "--all")  # All texts of a user's own store are approved.
            yield Figure("encode", tool.name, 1000 * seconds / size)
        files = (path for folder in tool.index_files() for path in folder.rglob("*"))
        yield Figure("disk", tool.name, sum(p.stat().st_size for p in files if p.is_file()) / text)
    if size == SIZES[0] and tool.place().exists():
        yield Figure("install", tool.name, _installation(tool.place()) / 1e6)


def _installation(folder: Path) -> int:
    """Returns the bytes of an installation, without Python, Node and compiled files."""
    paths = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    own = (path for path in paths if "node_modules/node/" not in f"{path}")
    return sum(path.lstat().st_size for path in own if path.suffix != ".pyc")


def searched(
    tools: Sequence[Tool], known: Sequence[Note], questions: Sequence[Question]
) -> Iterator[Figure]:
    """Yields the figures of searches and of adding in new processes."""
    step = len(questions) // 5
    rounds = {tool.name: tool.rounds for tool in tools}
    for key in ("natural", "words"):
        turns: dict[str, list[Command]] = {}
        for tool in tools:
            for question in questions[::step][: tool.questions]:
                text = question.text if key == "natural" else named(question, known)
                if asked := tool.search(text):
                    command = Command(asked, tool.notes, tool.environ, most=tool.most_status)
                    turns.setdefault(tool.name, []).append(command)
        for name, ratio in by_turns(turns, rounds):
            yield Figure(key, name, ratio)
    adding = {
        tool.name: [Command(tool.add(1), tool.notes, tool.environ)] for tool in tools if tool.add(1)
    }
    for name, ratio in by_turns(adding, rounds):
        yield Figure("add", name, ratio)


def named(question: Question, known: Sequence[Note]) -> str:
    """Returns words of the title of the right note."""
    title = next(note.title for note in known if note.name[-6:] in question.right)
    return " ".join(notes.longest(title))


def commands(mind: Mind, known: Sequence[Note], questions: Sequence[Question]) -> Iterator[Figure]:
    """Yields the figures of other commands of mind, and of its hooks."""
    decision = ["save", "decision", "login", "Use JWT", "No server state", "--again"]
    typed = {"_MIND_COMPLETE": "1"}
    moments: dict[str, dict[str, Any]] = {
        "session": {"hook_event_name": "SessionStart", "source": "startup"},
        "hook": {"hook_event_name": "UserPromptSubmit", "prompt": questions[0].text},
        "tool": {
            "hook_event_name": "PreToolUse",
            "tool_input": {"file_path": "a.py", "content": "import jwt\n" * 40},
        },
    }
    asked = {
        "list": Command([*MIND, "list"], mind.notes, mind.environ),
        "show": Command([*MIND, "show", known[7].name], mind.notes, mind.environ),
        "status": Command([*MIND, "status"], mind.notes, mind.environ),
        "save": Command([*MIND, *decision], mind.notes, mind.environ),
        "again": Command(mind.index(), mind.notes, mind.environ),
        "version": Command([*MIND, "--version"], mind.notes, mind.environ),
        "completion": Command([*MIND, "show", "fact_n"], mind.notes, mind.environ | typed),
    }
    for key, fields in moments.items():
        event = json.dumps({"session_id": "bench", "cwd": f"{mind.notes}"} | fields).encode()
        asked[key] = Command([*MIND, "hook"], mind.notes, mind.environ, event)
    turns = {key: [command] for key, command in asked.items()}
    for key, ratio in by_turns(turns, dict.fromkeys(turns, 5)):
        yield Figure(key, mind.name, ratio)


def served(
    tools: Sequence[Tool], known: Sequence[Note], questions: Sequence[Question]
) -> Iterator[Figure]:
    """Yields the figures of MCP servers: each question is put to each of them by turns."""
    sessions = [Session(tool) for tool in tools if tool.server() and _starts(tool)]
    by_words = [question._replace(text=named(question, known)) for question in questions]
    put(by_words[:10], sessions)  # The first searches of a server read what the others find ready.
    put(questions, sessions)
    for session in sessions:
        yield from session.figures(len(questions))
    put(by_words, sessions)
    for session in sessions:
        yield Figure("named", session.tool.name, session.share(1))
    mind = sessions[0].tool
    command = Command(mind.search(questions[0].text), mind.notes, mind.environ)
    for _, ratio in by_turns({"served": [command]}, {"served": 5}):
        yield Figure("served", "mind", ratio)
    for session in sessions:
        session.server.close()


def put(questions: Sequence[Question], sessions: Sequence[Session]) -> None:
    """Puts questions to all servers by turns, each of which counts from now on."""
    for session in sessions:
        session.begin()
    for question in questions:
        for session in sessions:
            session.ask(question)


def _starts(tool: Tool) -> bool:
    try:
        Session(tool).server.close()
    except (SystemExit, OSError, KeyError, subprocess.TimeoutExpired) as error:
        print(f"{tool.name}: its server failed: {error!r}", file=sys.stderr)
        return isinstance(tool, Mind)
    return True


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
        self.server = Server(self.tool.notes, self.tool.environ, self.tool.server())
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
        name, arguments = self.tool.question(question.text)
        start = time.perf_counter()
        answer = self.server.ask("tools/call", {"name": name, "arguments": arguments})
        self.took.append(1000 * (time.perf_counter() - start))
        found = self.tool.found(answer.get("result", {}))
        self.ranks.append(next((n for n, one in enumerate(found) if one in question.right), 99))

    def share(self, most: int) -> float:
        """Returns how many of 100 questions had the right note among the first."""
        return 100 * statistics.fmean(rank < most for rank in self.ranks)

    def figures(self, count: int) -> Iterator[Figure]:
        """Yields what was counted."""
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


def other() -> Iterator[Figure]:
    """Yields the figures that have no size."""
    with TemporaryDirectory(prefix="mind-bench-") as scratch:
        mind = Mind(Path(scratch) / "mind")
        mind.write([])
        mind.run("config", "--user", "embedding.encoder", "off")
        shutil.copytree("docs", mind.notes / "docs", ignore=shutil.ignore_patterns("images"))
        seconds, _ = run([*MIND, "ingest", "docs"], mind.notes, mind.environ)
        pages = sum(1 for _ in (mind.notes / "docs").rglob("*.md"))
        yield Figure("ingest", "mind", 1000 * seconds / pages)


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
    row = EVERY[key]
    own, *rest = (values.get((key, name, size)) for name in ("mind", *names))
    cells, lost = [], False
    for value in rest:
        better = (
            own is not None
            and value is not None
            and shown(key, own) != shown(key, value)
            and (value > own) == row.more_is_better
        )
        lost |= better
        cells.append(f"**{shown(key, value)}**" if better else shown(key, value))
    return [f"{shown(key, own)}{' ▼' if lost else ''}", *cells]


def write(values: Values, first: str, asked: int) -> None:
    """Writes the page for users and that of all figures."""
    sizes = sorted({size for _, _, size in values})
    names = [tool.name for tool in TOOLS if any(name == tool.name for _, name, _ in values)][1:]
    missing = [tool.name for tool in TOOLS[1:] if tool.name not in names]
    said = [f"- {tool.name}: {tool.says}." for tool in TOOLS if tool.name in names]
    said += [f"- Not installed where this was measured: {', '.join(missing)}."] if missing else []
    small, *larger = sizes
    titles = ["", f"mind, {small:,}", *(f"{size:,}" for size in larger)]
    titles += [f"{name}, {small:,}" for name in names]

    def row(key: str) -> list[str]:
        own, *rest = beside(key, values, small, names)
        more = (values.get((key, "mind", size)) for size in larger)
        return [EVERY[key].label, own, *(shown(key, value) for value in more), *rest]

    about = f"{first} Servers were asked {asked} questions.\n\n"
    table = marked.table(titles, map(row, ROWS))
    marked.write_part(USERS, "figures", f"{about}{table}\n\n" + "\n".join(said))
    parts = [
        marked.table(
            ["", *map("{:,}".format, sizes), "target"], map(_with_target(values, sizes), EVERY)
        )
    ]
    for size in sizes:
        rows = ([EVERY[key].label, *beside(key, values, size, names)] for key in ROWS)
        parts.append(
            f"## Beside other tools, {size:,} notes\n\n{marked.table(['', 'mind', *names], rows)}"
        )
    head = (
        f"# Benchmarks\n\nGenerated by `make bench`. {(__doc__ or '').partition(': ')[2]}\n{about}"
    )
    LAB.write_text(head + "\n\n".join(parts) + "\n", encoding="utf-8")


def _with_target(values: Values, sizes: Sequence[int]) -> Callable[[str], list[str]]:
    def row(key: str) -> list[str]:
        row = EVERY[key]
        own = [shown(key, values.get((key, "mind", size))) for size in sizes]
        limits = dict.fromkeys(shown(key, row.targets.get(size)) for size in sizes)
        return [row.label, *own, " / ".join(limits)]

    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, help="a folder of more real notes")
    parser.add_argument("--largest", type=int, default=10_000, help="the last size")
    parser.add_argument("--tools", nargs="*", help="the other tools (all that are installed)")
    parser.add_argument("--write", action="store_true", help="write the pages")
    args = parser.parse_args()
    nothing = [sys.executable, "-c", "pass"]
    base = min(run(nothing, Path.cwd(), dict(os.environ))[0] for _ in range(15))
    first = f"`python -c pass` took {1000 * base:.1f} ms."
    asked = len(notes.labelled()[1])
    values: Values = {}
    for size in (size for size in SIZES if size <= args.largest):
        for key, tool, value in chain(
            measured(size, args.markdown, args.tools), other() if size == SIZES[0] else ()
        ):
            values[key, tool, size] = value
            print(f"{size:,}: {tool}: {EVERY[key].label}: {shown(key, value)}", flush=True)
        if args.write:  # After each size: the largest takes most of the time.
            write(values, first, asked)


if __name__ == "__main__":
    main()
