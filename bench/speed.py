"""Measures start-up, search, saving, refresh and rebuild, as ratios within one run.

Times are the minimum processor time of several runs; × is a multiple of that of `python -c pass`,
which runs by turns with the command. Answers over MCP are wall time, and every question is another
one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import growth, queries, together
from bench.clients import HELLO
from bench.stores import (
    MIND,
    QUERIES,
    TOPICS,
    Server,
    least,
    note,
    run,
    store,
    times,
)
from bench.stores import words as words_of
from mimo.call.table import all_commands
from mimo.guard.audit import Ending
from mimo.guard.policy import Request
from mimo.mind import Mind
from tests import mama_databases, privacy_fakes

PARTS = ("table", "growth")


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    operation: str
    figure: str
    target: str


def cold(size: int, targets: dict[str, str]) -> Iterator[Row]:
    """Yields the rows for commands in a new process, over a store of that size."""
    with store(size) as (root, environ):
        rebuilt, _ = run([*MIND, "index"], root, environ)
        yield Row(f"first index of {size:,}", f"{rebuilt:.2f} s", targets.get("index", ""))
        # No server makes vectors meanwhile.
        alone = environ | {"MIND_BACKGROUND": "off"}
        again, _ = least([*MIND, "index"], root, alone, 5)
        yield Row(f"index of {size:,}, unchanged", f"{again:.2f} s", targets.get("again", ""))
        edited = root / ".mind" / "facts" / "fact_note_7.md"
        seconds = []
        for number in range(5):
            edited.write_text(f"{note(7)}\nEdit {number}.\n", encoding="utf-8")
            seconds.append(run([*MIND, "index"], root, alone)[0])
        figure = f"{max(0.0, min(seconds) - again):.2f} s more"
        yield Row(f"index of {size:,} after one edit", figure, targets.get("edit", ""))
        asked = [*MIND, "search", QUERIES[0]]
        ratio, memory = times(asked, root, alone)
        figure = f"{ratio:.1f} × ({memory / 1024:.0f} MB)"
        yield Row(f"`mind search`, cold, {size:,}", figure, targets.get("search", ""))
        decision = ["save", "decision", "login", "Use JWT", "No server state", "--again"]
        for words, target in (
            (["list"], "list"),
            (["show", "fact_note_7"], "list"),
            (["status"], "list"),
            (["add", "--again", "--type", "decision", "Use JWT"], "add"),
            (decision, "add"),
        ):
            ratio, _ = times([*MIND, *words], root, alone)
            what = f"`mind {words[0]}`, cold, {size:,}"
            yield Row(what, f"{ratio:.1f} ×", targets.get(target, ""))
        for command in ("status", "review"):
            took, _ = least([*MIND, command, "--json"], root, alone, 3)
            yield Row(f"`mind {command}`, {size:,}", f"{took:.2f} s", targets.get(command, ""))
        run([*MIND, "trust", "--all"], root, alone)  # All texts of a user's own store are approved.
        yield from hooks(size, root, alone)


_MOMENTS: dict[str, dict[str, Any]] = {
    "a session": {"hook_event_name": "SessionStart", "source": "startup"},
    "a prompt": {"hook_event_name": "UserPromptSubmit", "prompt": QUERIES[0]},
    "a tool": {
        "hook_event_name": "PreToolUse",
        "tool_input": {"file_path": "a.py", "content": "import jwt\n" * 40},
    },
}


def hooks(size: int, root: Path, environ: dict[str, str]) -> Iterator[Row]:
    """Yields the rows for the hooks that clients run."""
    for name, fields in _MOMENTS.items():
        event = json.dumps({"session_id": "bench", "cwd": str(root)} | fields).encode()
        ratio, _ = times([*MIND, "hook"], root, environ, data=event)
        yield Row(f"`mind hook` at {name}, {size:,}", f"{ratio:.1f} ×", "≤ 4 ×")


def document(number: int) -> str:
    """Returns a Markdown file of some sections, the same for the same number."""
    draw = random.Random(number)
    parts = [f"# Document {number}"]
    for part in range(4):
        sentence = draw.choice(TOPICS).format(n=number)
        words = words_of(draw, 60)
        parts.append(f"## Part {part}\n\n{sentence}.\n\n- {words}\n\n```\nmake {part}\n```")
    return "\n\n".join(parts) + "\n"


def ingested(files: int) -> Iterator[Row]:
    """Yields the rows for taking in a folder of that many files."""
    with store(0) as (root, environ):
        folder = root / "docs"
        folder.mkdir()
        for number in range(files):
            (folder / f"{number}.md").write_text(document(number), encoding="utf-8")
        yield from taken_in(root, environ, f"{files:,} files")


def taken_in(root: Path, environ: dict[str, str], what: str) -> Iterator[Row]:
    """Yields the rows for taking in the folder `docs` of a project."""
    files = sum(1 for path in (root / "docs").rglob("*") if path.is_file())
    seconds, memory = run([*MIND, "ingest", "docs"], root, environ)
    figure = f"{seconds:.2f} s, {files / seconds:.0f} files a second ({memory / 1024:.0f} MB)"
    yield Row(f"`mind ingest` of {what}", figure, "")
    seconds, _ = least([*MIND, "ingest", "docs"], root, environ, 3)
    yield Row(f"`mind ingest` of {what}, unchanged", f"{seconds:.2f} s", "")


LISTING = b"".join(
    json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"
    for id, method, params in ((1, "initialize", HELLO), (2, "tools/list", {}))
)
"""The messages of a client that asks for the list of tools and leaves."""


def warm(size: int, targets: dict[str, str]) -> Iterator[Row]:
    """Yields the rows for the MCP server over a store of that size."""
    with store(size) as (root, environ):
        run([*MIND, "index"], root, environ)
        ratio, _ = times([*MIND, "mcp"], root, environ, data=LISTING)
        yield Row(f"`mind mcp` to the list of tools, {size:,}", f"{ratio:.1f} ×", "≤ 12 ×")
        imported = [sys.executable, "-c", "import mcp.server.lowlevel, mcp.server.stdio"]
        sdk, _ = least(imported, root, environ, 5)
        start = time.perf_counter()
        server = Server(root, environ)
        server.search(QUERIES[0])
        first = time.perf_counter() - start
        figure = f"{first:.2f} s (importing the SDK takes {sdk:.2f} s)"
        yield Row(f"`mind mcp` to its first search, {size:,}", figure, "≤ 1.1 × + 0.1 s")
        idle = server.resident()
        took = server.searches(100)
        figure = f"p50 {statistics.median(took):.1f} ms, p95 {took[94]:.1f} ms"
        yield Row(f"MCP search, warm, {size:,}", figure, targets.get("search", ""))
        memory = f"{idle / 1024:.0f} MB idle, {server.resident() / 1024:.0f} MB after 100 searches"
        yield Row(f"`mind mcp`, resident, {size:,}", memory, targets.get("memory", ""))
        server.close()


def private(size: int) -> Iterator[Row]:
    """Yields the rows for looking for secrets: in all files, and in every answer of the server."""
    with store(size) as (root, environ):
        seconds, _ = least([*MIND, "scan"], root, environ, 3)
        yield Row(f"`mind scan`, {size:,}", f"{seconds:.1f} s", "")
        fakes = [fake for fake in privacy_fakes.secrets(1) if fake.kind == "github_token"]
        for number in range(size):
            path = root / ".mind" / "facts" / f"fact_note_{number}.md"
            path.write_text(f"{note(number)}{fakes[number % 5].text}\n", encoding="utf-8")
        run([*MIND, "index"], root, environ)
        server = Server(root, environ)
        figure = f"p50 {statistics.median(server.searches(100)):.1f} ms"
        yield Row(f"MCP search, warm, {size:,}, a secret in every hit", figure, "≤ 5 ms")
        server.close()


def linked(size: int) -> Iterator[Row]:
    """Yields the rows for walks along links: three from each memory, to any others.

    Each walk is asked for once more, when it is remembered.
    """
    with store(size) as (root, environ):
        for number in range(size):
            path = root / ".mind" / "facts" / f"fact_note_{number}.md"
            others = random.Random(number).sample(range(size), 3)
            rows = "".join(f"  - {{to: fact_note_{n}, type: refines}}\n" for n in others)
            text = note(number).replace("tags: [bench]\n", f"tags: [bench]\nlinks:\n{rows}")
            path.write_text(text, encoding="utf-8")
        run([*MIND, "index"], root, environ)
        server = Server(root, environ)
        for depth, limit, target in ((2, 100, "≤ 5 ms"), (5, 100, "≤ 100 ms"), (5, 1_000, "")):
            asked = [
                {"id": f"fact_note_{n}", "depth": depth, "limit": limit}
                for n in range(0, 1_000, 20)
            ]
            first = statistics.median(server.call("mind_graph", **each) for each in asked)
            again = statistics.median(server.call("mind_graph", **asked[-1]) for _ in asked)
            figure = f"p50 {first:.1f} ms, again {again:.1f} ms"
            what = f"MCP `mind_graph`, {size:,} with {3 * size:,} links, depth {depth}"
            yield Row(f"{what}, nearest {limit:,}", figure, target)
        server.close()


def guarded(size: int) -> Iterator[Row]:
    """Yields the row for the checks before a call, as a share of a warm search in this process.

    The policy limits the search, so that each call is counted on the disk, too.
    """
    with store(size) as (root, environ):
        run([*MIND, "index"], root, environ)
        limits = "rate_limits: {tools: {mind_search: {sustained: 1000000, burst: 1000000}}}\n"
        (root / ".mind" / "policy.yaml").write_text(limits, encoding="utf-8")
        with closing(Mind.open(root, environ=environ)) as mind:
            mind.watch()
            guard, spec = mind.guard, all_commands().at("search")
            request = Request(tool=spec.name, operation=spec.needs.operation, at=mind.now())

            def stand_before(step: int) -> None:
                guard.authorise(request)
                if step:
                    guard.limit(request)
                guard.record(request, Ending())

            def search(step: int) -> None:
                spec.function(mind, QUERIES[step % len(QUERIES)])

            search(0)
            whole, first, both = (
                _median(search, range(100)),
                _median(stand_before, [0] * 1_000),
                _median(stand_before, [1] * 1_000),
            )
            figure = (
                f"{1000 * first:.0f} µs ({100 * first / whole:.1f} %), "
                f"{1000 * both:.0f} µs ({100 * both / whole:.1f} %) where it is limited"
            )
            yield Row(f"guard of a warm search, {size:,}", figure, "≤ 10 %")


def _median(work: Callable[[int], None], steps: Iterable[int]) -> float:
    """Returns the milliseconds that one step takes."""
    times = []
    for step in steps:
        start = time.perf_counter()
        work(step)
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def imported(size: int) -> Iterator[Row]:
    """Yields the rows for a database of MAMA's with that many decisions."""
    with store(0) as (root, environ):
        source = mama_databases.many(root.parent / "mama.db", size)
        command = [*MIND, "import", "mama", "--db", str(source)]
        for what in ("", ", again"):
            seconds, _ = run(command, root, environ)
            yield Row(f"`mind import mama`, {size:,} decisions{what}", f"{seconds:.1f} s", "")
        seconds, _ = run([*command, "--rollback"], root, environ)
        yield Row(f"`mind import mama --rollback`, {size:,}", f"{seconds:.1f} s", "")


def real(markdown: Path) -> Iterator[Row]:
    """Yields the rows for a folder of other people's Markdown."""
    with store(0) as (root, environ):
        shutil.copytree(markdown, root / ".mind" / "notes")
        files = sum(1 for path in (root / ".mind" / "notes").rglob("*.md"))
        rebuilt, _ = run([*MIND, "index"], root, environ)
        yield Row(f"first index of {files:,} real files", f"{rebuilt:.2f} s", "")
        ratio, memory = times([*MIND, "search", "how to rebase"], root, environ)
        figure = f"{ratio:.1f} × ({memory / 1024:.0f} MB)"
        yield Row(f"`mind search`, cold, {files:,} real files", figure, "")
    with store(0) as (root, environ):
        shutil.copytree(markdown, root / "docs")
        yield from taken_in(root, environ, f"{files:,} real files")


def start_up() -> Iterator[Row]:
    """Yields the rows for commands that must be quick in every store."""
    with store(1_000) as (root, environ):
        run([*MIND, "index"], root, environ)
        for words in (["--version"], ["--help"]):
            ratio, _ = times([*MIND, *words], root, environ)
            target = "≤ 2 ×" if words == ["--version"] else "≤ 6 ×"
            yield Row(f"`mind {words[0]}`", f"{ratio:.1f} ×", target)
        typed = {"a command": ["se"], "an option": ["search", "--t"], "an id": ["show", "fact"]}
        for what, words in typed.items():
            completing = environ | {"_MIND_COMPLETE": "1"}
            if not completed(words, root, completing):
                raise SystemExit(f"nothing completes {' '.join(words)}")
            ratio, _ = times([*MIND, *words], root, completing)
            yield Row(f"completion of {what}", f"{ratio:.1f} ×", "≤ 4 ×")


def completed(words: list[str], cwd: Path, environ: dict[str, str]) -> str:
    """Returns what is printed for the shell to choose from."""
    done = subprocess.run([*MIND, *words], cwd=cwd, env=environ, capture_output=True, check=True)
    return done.stdout.decode()


def in_context(size: int) -> Iterator[Row]:
    """Yields the rows for a question in other words than the notes', which the encoder answers.

    It is asked without a server, and while the daemon runs.
    """
    asked = [*MIND, "search", "which translations did customers abroad get for the amounts"]
    with store(size, encoder=True) as (root, environ):
        seconds, _ = run([*MIND, "index"], root, environ)
        yield Row(f"first index of {size:,} with the encoder", f"{seconds:.1f} s", "")
        ratio, _ = times(asked, root, environ)
        what = f"`mind search` in other words, cold, {size:,}"
        yield Row(what, f"{ratio:.1f} ×", "≤ 15 ×")
        run([*MIND, "daemon", "start"], root, environ)
        try:
            least(asked, root, environ, 3)
            ratio, _ = times(asked, root, environ)
            yield Row(f"{what}, the daemon runs", f"{ratio:.1f} ×", "≤ 5 ×")
        finally:
            run([*MIND, "daemon", "stop"], root, environ)


def rows(markdown: Path | None, *, large: bool) -> Iterator[Row]:
    yield from start_up()
    yield from cold(1_000, {"search": "≤ 6 ×", "add": "≤ 7 ×"})
    targets = {"index": "≤ 2 s", "search": "≤ 8 ×", "add": "≤ 7 ×"}
    yield from cold(10_000, targets | {"status": "≤ 0.3 s", "review": "≤ 0.3 s"})
    yield from in_context(1_000)
    yield from ingested(1_000)
    mcp = {"search": "p50 ≤ 2.5 ms, p95 ≤ 5 ms", "memory": "≤ 90 MB idle, ≤ 150 MB after searches"}
    yield from warm(10_000, mcp)
    yield from (Row(*row, "≤ 2 × the p95 of one") for row in together.side_by_side(10_000, 8))
    yield from (Row(*row, "≤ 3 ×") for row in together.merged(500))
    yield from (Row(*row, "") for row in queries.by_fields(10_000))
    yield from guarded(10_000)
    yield from private(10_000)
    yield from linked(10_000)
    yield from imported(10_000)
    yield from (Row(*row, "") for row in queries.narrowed(100_000 if large else 10_000))
    if large:
        targets = {"search": "≤ 15 ×", "list": "≤ 8 ×", "add": "≤ 7 ×"}
        yield from cold(100_000, targets | {"again": "≤ 0.1 s", "edit": "≤ 0.05 s"})
        yield from warm(100_000, {"search": "p50 ≤ 6 ms, p95 ≤ 12 ms"})
    if markdown:
        yield from real(markdown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, help="a folder of real notes to measure on, too")
    parser.add_argument("--small", action="store_true", help="leave out the 100,000 notes")
    parser.add_argument(
        "--largest", type=int, default=100_000, help="the last size of the curves of growth"
    )
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--write", type=Path, help="the folder of the pages to write")
    args = parser.parse_args()
    nothing = [sys.executable, "-c", "pass"]
    base, _ = least(nothing, Path.cwd(), dict(os.environ), 15)
    first = f"`python -c pass` took {1000 * base:.1f} ms when this run began."
    print(first, flush=True)
    if "table" in args.only:
        lines = ["| operation | measured | target |", "|---|---|---|"]
        for row in rows(args.markdown, large=not args.small):
            lines.append(f"| {row.operation} | {row.figure} | {row.target} |")
            print(lines[-1], flush=True)
        _write(args.write, "benchmarks.md", "Benchmarks", __doc__, [first, "", *lines])
    if "growth" in args.only:
        sizes = tuple(size for size in growth.SIZES if size <= args.largest)
        curves = growth.measured(sizes)
        lines = [growth.table(curves)]
        print(lines[0], flush=True)
        if args.write and growth.draw(curves, args.write.parent / "images" / "growth.svg"):
            lines = ["![Curves of growth](../images/growth.svg)", "", *lines]
        _write(args.write, "benchmarks-growth.md", "Growth", growth.__doc__, [first, "", *lines])


def _write(
    folder: Path | None, name: str, title: str, text: str | None, lines: Iterable[str]
) -> None:
    """Writes a page, if there is a folder to write to."""
    if folder:
        head = f"# {title}\n\nGenerated by `make bench`. {(text or '').strip()}\n\n"
        (folder / name).write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
