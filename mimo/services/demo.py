"""The main job, run for real in a scratch project: what `mind demo` shows."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from mimo.errors import Internal
from mimo.frozen import frozen

_SKIPPED = frozenset({"node_modules", "venv", "build", "dist", "tests", "private"})
_MOST_FILES = 200
_SECONDS = 120

_MEMORIES: tuple[tuple[str, ...], ...] = (
    (
        *("--type", "decision", "--topic", "auth_strategy", "--tag", "auth"),
        "Use JWT with short-lived access tokens; server sessions did not survive the second node.",
    ),
    (
        *("--type", "insight", "--tag", "ci"),
        "Flaky uploads came from the proxy's body limit, not from our retry logic.",
    ),
    ("--private", "--tag", "me", "My test account on staging is called marmot."),
)

_SEARCHES = (
    "what happens to memory from a stranger's clone",
    "rank fusion",
    "why was the upload failing",
)


@frozen
class Step:
    """One command of the demo and what it printed."""

    title: str
    command: str
    output: str


def steps(scratch: Path, source: Path) -> Iterator[Step]:
    """Yields each step after it was run in `scratch`, with the Markdown below `source`."""
    copied = _copy_markdown(source, scratch)
    told = f"Make a project; {copied} Markdown files of {source.name}/ are copied into it"
    yield _mind(scratch, told, "init")
    yield _mind(scratch, "Count those documents as memories", "config", "include", "docs/**/*.md")
    yield _mind(scratch, "Approve what came with them", "trust", "--follow")
    for memory in _MEMORIES:
        yield _mind(scratch, f"Remember: {memory[-1]}", "add", *memory)
    for query in _SEARCHES:
        yield _mind(scratch, f"Search: {query}", "search", "-n", "3", query)
    yield _over_mcp(scratch, _SEARCHES[0])
    yield _mind(scratch, "How the memory is", "status")


def _copy_markdown(source: Path, scratch: Path) -> int:
    """Copies the Markdown below `source` into the scratch project and returns how many files.

    Memories keep their place, documents go into `docs/`; private memories and links stay behind.
    """
    found = list(islice(_markdown(source), _MOST_FILES))
    for path in found:
        place = path.relative_to(source)
        target = scratch / place if place.parts[0] == ".mind" else scratch / "docs" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return len(found)


def _markdown(source: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(source):
        at_top = Path(folder) == source
        folders[:] = sorted(n for n in folders if not _is_skipped(n) or (at_top and n == ".mind"))
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(".md") and not path.is_symlink():
                yield path


def _is_skipped(folder: str) -> bool:
    return folder.startswith(".") or folder in _SKIPPED


def _mind(scratch: Path, title: str, *words: str) -> Step:
    return Step(title=title, command=shlex.join(["mind", *words]), output=_run(scratch, words))


def _over_mcp(scratch: Path, query: str) -> Step:
    """Asks the real server over a real pipe, as an agent's client would."""
    call = {"name": "mind_search", "arguments": {"query": query, "limit": 1}}
    client = {"name": "demo", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    )
    answers = _converse(scratch, [json.dumps(message) for message in messages], last=2)
    content = answers["result"]["structuredContent"]
    return Step(
        title="What an agent gets over MCP",
        command=f"mind mcp    # tools/call {json.dumps(call)}",
        output=json.dumps(content, indent=2, ensure_ascii=False),
    )


def _converse(scratch: Path, lines: list[str], *, last: int) -> dict[str, Any]:
    """Returns the server's answer to the message whose id is `last`."""
    with subprocess.Popen(
        [sys.executable, "-m", "mimo", "mcp"],
        cwd=scratch,
        env=_environment(scratch),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise Internal("the server has no pipe")
        server.stdin.write("\n".join(lines) + "\n")
        server.stdin.flush()
        for line in server.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == last:
                server.stdin.close()
                return answer
    raise Internal("the server closed before it answered")


def _run(scratch: Path, words: tuple[str, ...]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mimo", *words],
        cwd=scratch,
        env=_environment(scratch),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=_SECONDS,
        check=False,
    )
    return done.stdout.rstrip()


def _environment(scratch: Path) -> dict[str, str]:
    """Returns an environment in which the demo leaves no trace in the user's own home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MIND_")}
    return kept | {"MIND_HOME": str(scratch.parent / "home")}
