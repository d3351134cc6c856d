"""Measures start-up, search, saving, refresh and rebuild, as ratios within one run.

Times are the minimum processor time of several runs, as a multiple of `python -c pass` in the same
environment, which is measured once, at the start. On a machine whose speed changes meanwhile, all
multiples are off by as much. Warm answers over MCP are the median wall time in milliseconds,
followed by the multiple.
"""

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

from mimo.commands import all_commands
from mimo.guard.audit import Ending
from mimo.guard.policy import Call
from mimo.mind import Mind
from tests import mama_databases, privacy_fakes
from tests.bench import growth, peers, queries, timed, together
from tests.bench.stores import MIND, QUERIES, TOPICS, Server, least, note, run, store, subject, text
from tests.bench.stores import words as words_of

PARTS = ("table", "growth", "peers")


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    operation: str
    figure: str
    target: str


def cold(size: int, base: float, targets: dict[str, str]) -> Iterator[Row]:
    """Yields the rows for commands in a new process, over a store of that size."""
    with store(size) as (root, environ):
        rebuilt, _ = run([*MIND, "index"], root, environ)
        yield Row(f"first index of {size:,}", f"{rebuilt:.2f} s", targets.get("index", ""))
        again, _ = least([*MIND, "index"], root, environ, 5)
        yield Row(f"index of {size:,}, unchanged", f"{again:.2f} s", targets.get("again", ""))
        seconds, memory = least([*MIND, "search", QUERIES[0]], root, environ)
        figure = f"{seconds / base:.1f} × ({memory / 1024:.0f} MB)"
        yield Row(f"`mind search`, cold, {size:,}", figure, targets.get("search", ""))
        for words, target in (
            (["list"], targets.get("list", "")),
            (["show", "fact_note_7"], targets.get("list", "")),
            (["status"], targets.get("list", "")),
        ):
            seconds, _ = least([*MIND, *words], root, environ)
            yield Row(f"`mind {words[0]}`, cold, {size:,}", f"{seconds / base:.1f} ×", target)
        seconds, _ = least([*MIND, "review", "--json"], root, environ, 3)
        yield Row(f"`mind review`, {size:,}", f"{seconds:.2f} s", targets.get("review", ""))
        seconds, _ = least(
            [*MIND, "add", "--again", "--type", "decision", "Use JWT"], root, environ
        )
        yield Row(f"`mind add`, cold, {size:,}", f"{seconds / base:.1f} ×", targets.get("add", ""))
        yield from hooks(size, base, root, environ)


_MOMENTS: dict[str, dict[str, Any]] = {
    "a session": {"hook_event_name": "SessionStart", "source": "startup"},
    "a prompt": {"hook_event_name": "UserPromptSubmit", "prompt": QUERIES[0]},
    "a tool": {
        "hook_event_name": "PreToolUse",
        "tool_input": {"file_path": "a.py", "content": "import jwt\n" * 40},
    },
}


def hooks(size: int, base: float, root: Path, environ: dict[str, str]) -> Iterator[Row]:
    """Yields the rows for the hooks that clients run."""
    for name, fields in _MOMENTS.items():
        event = json.dumps({"session_id": "bench", "cwd": str(root)} | fields).encode()
        seconds, _ = least([*MIND, "hook"], root, environ, data=event)
        yield Row(f"`mind hook` at {name}, {size:,}", f"{seconds / base:.1f} ×", "≤ 4 ×")


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


def warm(size: int, base: float, targets: dict[str, str]) -> Iterator[Row]:
    """Yields the rows for the MCP server over a store of that size."""
    with store(size) as (root, environ):
        run([*MIND, "index"], root, environ)
        server = Server(root, environ)
        idle = server.resident()
        server.search(QUERIES[0])
        times = sorted(server.search(QUERIES[i % len(QUERIES)]) for i in range(100))
        middle, high = statistics.median(times), times[94]
        ratio = middle / (1000 * base)
        figure = f"p50 {middle:.1f} ms, p95 {high:.1f} ms ({ratio:.2f} ×)"
        yield Row(f"MCP search, warm, {size:,}", figure, targets.get("search", ""))
        memory = f"{idle / 1024:.0f} MB idle, {server.resident() / 1024:.0f} MB after 100 searches"
        yield Row(f"`mind mcp`, resident, {size:,}", memory, targets.get("memory", ""))
        server.close()


def narrowed(size: int) -> Iterator[Row]:
    """Yields the rows for searches that are narrowed to a time."""
    for asked, figure in timed.rows(size, text, subject, QUERIES):
        yield Row(asked, figure, "")


def private(size: int, base: float) -> Iterator[Row]:
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
        server.search(QUERIES[0])
        middle = statistics.median(server.search(QUERIES[i % len(QUERIES)]) for i in range(100))
        figure = f"p50 {middle:.1f} ms ({middle / (1000 * base):.2f} ×)"
        yield Row(f"MCP search, warm, {size:,}, a secret in every hit", figure, "≤ 5 ms")
        server.close()


def linked(size: int, base: float) -> Iterator[Row]:
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
            figure = f"p50 {first:.1f} ms ({first / (1000 * base):.2f} ×), again {again:.1f} ms"
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
            call = Call(tool=spec.name, operation=spec.needs.operation, at=mind.now())

            def stand_before(step: int) -> None:
                guard.authorise(call)
                if step:
                    guard.limit(call)
                guard.record(call, Ending())

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


def real(markdown: Path, base: float) -> Iterator[Row]:
    """Yields the rows for a folder of other people's Markdown."""
    with store(0) as (root, environ):
        shutil.copytree(markdown, root / ".mind" / "notes")
        files = sum(1 for path in (root / ".mind" / "notes").rglob("*.md"))
        rebuilt, _ = run([*MIND, "index"], root, environ)
        yield Row(f"first index of {files:,} real files", f"{rebuilt:.2f} s", "")
        seconds, memory = least([*MIND, "search", "how to rebase"], root, environ)
        figure = f"{seconds / base:.1f} × ({memory / 1024:.0f} MB)"
        yield Row(f"`mind search`, cold, {files:,} real files", figure, "")
    with store(0) as (root, environ):
        shutil.copytree(markdown, root / "docs")
        yield from taken_in(root, environ, f"{files:,} real files")


def start_up(base: float) -> Iterator[Row]:
    """Yields the rows for commands that must be quick in every store."""
    with store(1_000) as (root, environ):
        run([*MIND, "index"], root, environ)
        for words in (["--version"], ["--help"]):
            seconds, _ = least([*MIND, *words], root, environ)
            target = "≤ 2 ×" if words == ["--version"] else "≤ 6 ×"
            yield Row(f"`mind {words[0]}`", f"{seconds / base:.1f} ×", target)
        typed = {"a command": ["se"], "an option": ["search", "--t"], "an id": ["show", "fact"]}
        for what, words in typed.items():
            completing = environ | {"_MIND_COMPLETE": "1"}
            if not completed(words, root, completing):
                raise SystemExit(f"nothing completes {' '.join(words)}")
            seconds, _ = least([*MIND, *words], root, completing)
            yield Row(f"completion of {what}", f"{seconds / base:.1f} ×", "≤ 4 ×")


def completed(words: list[str], cwd: Path, environ: dict[str, str]) -> str:
    """Returns what is printed for the shell to choose from."""
    done = subprocess.run([*MIND, *words], cwd=cwd, env=environ, capture_output=True, check=True)
    return done.stdout.decode()


def in_context(size: int, base: float) -> Iterator[Row]:
    """Yields the rows for a question in other words than the notes', which the encoder answers.

    It is asked without a server, and while the daemon runs.
    """
    asked = [*MIND, "search", "which translations did customers abroad get for the amounts"]
    with store(size, encoder=True) as (root, environ):
        seconds, _ = run([*MIND, "index"], root, environ)
        yield Row(f"first index of {size:,} with the encoder", f"{seconds:.1f} s", "")
        seconds, _ = least(asked, root, environ)
        what = f"`mind search` in other words, cold, {size:,}"
        yield Row(what, f"{seconds / base:.1f} ×", "≤ 15 ×")
        run([*MIND, "daemon", "start"], root, environ)
        try:
            least(asked, root, environ, 3)
            seconds, _ = least(asked, root, environ)
            yield Row(f"{what}, the daemon runs", f"{seconds / base:.1f} ×", "≤ 5 ×")
        finally:
            run([*MIND, "daemon", "stop"], root, environ)


def rows(base: float, markdown: Path | None, *, large: bool) -> Iterator[Row]:
    yield from start_up(base)
    yield from cold(1_000, base, {"search": "≤ 6 ×", "add": "≤ 7 ×"})
    targets = {"index": "≤ 2 s", "again": "≤ 0.1 s", "search": "≤ 8 ×", "add": "≤ 7 ×"}
    yield from cold(10_000, base, targets | {"review": "≤ 0.3 s"})
    yield from in_context(1_000, base)
    yield from ingested(1_000)
    mcp = {"search": "p50 ≤ 2.5 ms, p95 ≤ 5 ms", "memory": "≤ 90 MB idle, ≤ 150 MB after searches"}
    yield from warm(10_000, base, mcp)
    yield from (Row(*row, "≤ 2 × the p95 of one") for row in together.side_by_side(10_000, 8))
    yield from (Row(*row, "≤ 3 ×") for row in together.merged(500))
    yield from (Row(*row, "") for row in queries.rows(10_000))
    yield from guarded(10_000)
    yield from private(10_000, base)
    yield from linked(10_000, base)
    yield from imported(10_000)
    yield from narrowed(100_000 if large else 10_000)
    if large:
        yield from cold(100_000, base, {"search": "≤ 15 ×", "list": "≤ 8 ×", "add": "≤ 7 ×"})
        yield from warm(100_000, base, {"search": "p50 ≤ 6 ms, p95 ≤ 12 ms"})
    if markdown:
        yield from real(markdown, base)


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
    first = f"`python -c pass` takes {1000 * base:.1f} ms here; × is a multiple of it."
    print(first, flush=True)
    if "table" in args.only:
        lines = _heading("operation", "measured", "target")
        for row in rows(base, args.markdown, large=not args.small):
            lines.append(f"| {row.operation} | {row.figure} | {row.target} |")
            print(lines[-1], flush=True)
        _write(args.write, "benchmarks.md", "Benchmarks", __doc__, [first, "", *lines])
    if "peers" in args.only:
        lines = _heading("tool", "measured")
        for what, figure in peers.rows(1_000, base):
            lines.append(f"| {what} | {figure} |")
            print(lines[-1], flush=True)
        _write(args.write, "benchmarks-peers.md", "Other tools", peers.__doc__, [first, "", *lines])
    if "growth" in args.only:
        sizes = tuple(size for size in growth.SIZES if size <= args.largest)
        curves = growth.measured(base, sizes)
        lines = list(growth.table(curves))
        print("\n".join(lines), flush=True)
        if args.write and growth.draw(curves, args.write / "images" / "growth.svg"):
            lines = ["![Curves of growth](images/growth.svg)", "", *lines]
        _write(args.write, "benchmarks-growth.md", "Growth", growth.__doc__, [first, "", *lines])


def _heading(*titles: str) -> list[str]:
    """Returns the lines that a Markdown table begins with."""
    return [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]


def _write(
    folder: Path | None, name: str, title: str, text: str | None, lines: Iterable[str]
) -> None:
    """Writes a page, if there is a folder to write to."""
    if folder:
        head = f"# {title}\n\nGenerated by `make bench`. {(text or '').strip()}\n\n"
        (folder / name).write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
