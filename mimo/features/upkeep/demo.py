"""`mind demo`: the main job on real Markdown, in a scratch project."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

from mimo.commands.spec import Arg, Effect, Needs, Out, Surface, command
from mimo.errors import Internal
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.mind import Mind
from mimo.rendering import Screen, accent, dim, strong
from mimo.rendering.results import render

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
    """One command of the demo and its output."""

    title: str
    command: str
    output: str


def steps(scratch: Path, source: Path) -> Iterator[Step]:
    """Yields each step after it was run in `scratch`, with the Markdown below `source`."""
    copied = _copy_markdown(source, scratch)
    title = f"Make a project; {copied} Markdown files of {source.name}/ are copied into it"
    yield _mind(scratch, title, "init")
    yield _mind(scratch, "Count those documents as memories", "config", "include", "docs/**/*.md")
    yield _mind(scratch, "Approve what came with them", "trust", "--follow")
    for memory in _MEMORIES:
        yield _mind(scratch, f"Remember: {memory[-1]}", "add", *memory)
    for query in _SEARCHES:
        yield _mind(scratch, f"Search: {query}", "search", "-n", "3", query)
    yield _over_mcp(scratch, _SEARCHES[0])
    yield _mind(scratch, "Show the state of the memory", "status")


def _copy_markdown(source: Path, scratch: Path) -> int:
    """Copies the Markdown below `source` into the scratch project; returns the number of files.

    Memories keep their place, documents go into `docs/`. Private memories and links are left out.
    """
    paths = list(islice(_markdown(source), _MOST_FILES))
    for path in paths:
        place = path.relative_to(source)
        target = scratch / place if place.parts[0] == ".mind" else scratch / "docs" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return len(paths)


def _markdown(source: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(source):
        kept = (".mind",) if Path(folder) == source else ()
        folders[:] = sorted(
            name
            for name in folders
            if name in kept or not (name.startswith(".") or name in _SKIPPED)
        )
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(".md") and not path.is_symlink():
                yield path


def _mind(scratch: Path, title: str, *words: str) -> Step:
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
    return Step(title=title, command=shlex.join(["mind", *words]), output=done.stdout.rstrip())


def _over_mcp(scratch: Path, query: str) -> Step:
    """Asks the real server over a real pipe, as an agent's client does."""
    call = {"name": "mind_search", "arguments": {"query": query, "limit": 1}}
    client = {"name": "demo", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    )
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
        server.stdin.writelines(f"{json.dumps(message)}\n" for message in messages)
        server.stdin.flush()
        answers = map(json.loads, server.stdout)
        answer = next((answer for answer in answers if answer.get("id") == 2), None)
        server.stdin.close()
    if answer is None:
        raise Internal("the server closed before it answered")
    return Step(
        title="The answer that an agent gets over MCP",
        command=f"mind mcp    # tools/call {json.dumps(call)}",
        output=json.dumps(answer["result"]["structuredContent"], indent=2, ensure_ascii=False),
    )


def _environment(scratch: Path) -> dict[str, str]:
    """Returns an environment in which the demo leaves no trace in the user's own home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MIND_")}
    return kept | {"MIND_HOME": str(scratch.parent / "home")}


@frozen
class Demonstration:
    """The steps of the demo."""

    project: Annotated[str, Out("The scratch project, which you can use further")]
    home: Annotated[str, Out("Its MIND_HOME, so that your own is not changed")]
    steps: tuple[Step, ...]


@command(
    "mind_demo",
    cli="demo",
    effect=Effect.WRITE,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    examples=("mind demo", "mind demo ~/notes"),
)
def demo(
    mind: Mind,
    source: Annotated[str, Arg("Folder whose Markdown is searched", complete="path")] = ".",
) -> Demonstration:
    """Show the main commands in a scratch project

    Stores memories, searches by meaning and by words, and asks the MCP server over a real pipe, on
    a copy of the Markdown below a folder. Your own memory is not touched.
    """
    from tempfile import mkdtemp

    scratch = Path(mkdtemp(prefix="mind-demo-")) / "project"
    scratch.mkdir()
    done = tuple(steps(scratch, Path(source).expanduser().resolve()))
    return Demonstration(project=str(scratch), home=str(scratch.parent / "home"), steps=done)


@render.register
def _(result: Demonstration, screen: Screen) -> None:
    for number, step in enumerate(result.steps, 1):
        screen.line(dim(f"{number}. "), strong(step.title))
        screen.line(accent(f"$ {step.command}"), indent=3)
        screen.text(step.output, indent=3)
        screen.blank()
    screen.line("To try it yourself:")
    screen.line(accent(f"cd {result.project} && export MIND_HOME={result.home}"), indent=3)
    screen.line(accent("`mind search how is the index kept`"), indent=3)
    screen.line("In a project of your own, begin with ", accent("`mind init`"))
