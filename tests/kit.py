"""The kit of tests: a command line, a caller, a memory file, a repository, a server, a client."""

import io
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from mimo.call import Call, Caller, Surface
from mimo.call.spec import Spec
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.frozen import replace
from mimo.mind import Mind
from mimo.operations import asking
from mimo.operations.invoke import invoke
from mimo.text.tool_names import spelled
from tests.conftest import Tree, git, read_tree, write_tree

if TYPE_CHECKING:
    from mcp.client import Client

    from mimo.call import Answers
    from mimo.operations.listening import Memory


class Ran(NamedTuple):
    """The exit status and output of a command line."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The answer of a command with `--json`, or its error."""
        return json.loads(self.out or self.err)


def run(call: Call | None, *words: str, status: int | None = 0, input: str | None = None) -> Ran:
    """Runs a command line in this process; without a call in the project of the working directory.

    Fails unless it exits with `status`, or if that is None. Standard input is a terminal at its
    end, unless there is `input`.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    stdin = io.TextIOWrapper(io.BytesIO((input or "").encode()), "utf-8")
    if input is None:
        stdin.isatty = lambda: True  # type: ignore[method-assign]
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", stdin):
        actual = main(words) if call is None else main(words, open=lambda _: call.mind)
    texts = (each.buffer.getvalue().decode() for each in (out, err))
    ran = Ran(actual, *texts)
    assert status in (None, ran.status), ran
    return ran


def ask(call: Call, *words: str) -> tuple[int, Any]:
    """Returns the exit status of a command line with `--json`, and its answer or error."""
    ran = run(call, *words, "--json", status=None)
    return ran.status, ran.data


def do(call: Call, path: str, by: Caller | str | None = None, /, **arguments: Any) -> Any:
    """Returns the result of a command that the user, an agent of that name, or a caller gives."""
    if not isinstance(by, Caller):
        by = Caller(surface=Surface.MCP if by else Surface.CLI, name=by)
    return invoke(all_commands().at(path), call.by(by), arguments)


def is_of_core(spec: Spec) -> bool:
    """Returns whether a command is of the core, not of an extension."""
    return spec.function.__module__.startswith("mimo.features.")


def acting_as(call: Call, name: str | None, **parts: Any) -> Call:
    """Returns a call of an agent that is connected over MCP; of a person if `name` is None."""
    surface = Surface.CLI if name is None else Surface.MCP
    return call.by(Caller(surface=surface, name=name, **parts))


def from_shell(call: Call, agent: str | None) -> Call:
    """Returns a call that an agent makes in its shell."""
    return call.by(replace(call.caller, agent=agent))


def with_console(call: Call, **parts: Any) -> Call:
    """Returns the call with other parts of its console, such as `ask`."""
    return Call(call.mind, call.caller, replace(call.console, **parts))


def memory(id: str, text: str, *, type: str = "fact", day: int = 1, more: str = "") -> str:
    """Returns the file of a memory of November; `more` is the rest of its header, in lines."""
    created = f"created: 2026-11-{day:02}T08:00:00Z"
    return f"---\nid: {id}\ntype: {type}\n{created}\n{more}---\n{text}\n"


def put(path: Path, text: str) -> Path:
    """Writes a file, in folders that it makes if they are missing, and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def script(path: Path, text: str) -> Path:
    """Writes a file that can be run, see `put`."""
    put(path, text).chmod(0o755)
    return path


def write(place: Call | Path, name: str, text: str) -> Path:
    """Writes a file below `.mind/` by hand, and returns its path; a `place` is a project's root."""
    root = place if isinstance(place, Path) else place.mind.project.root
    return put(root / ".mind" / name, text)


def fact(place: Call | Path, id: str, text: str, more: str = "") -> Path:
    """Writes a fact by hand, see `memory` and `write`."""
    return write(place, f"facts/{id}.md", memory(id, text, more=more))


@cache
def _template() -> Tree:
    """Returns the files and folders of an empty repository."""
    with tempfile.TemporaryDirectory() as folder:
        git(Path(folder), "init", "-q", "-b", "main")
        tree = read_tree(Path(folder))
    return {name: content for name, content in tree.items() if not name.endswith(".sample")}


def repository(root: Path) -> Path:
    """Makes a git repository of a folder, in a tenth of the time of `git init`."""
    root.mkdir(parents=True, exist_ok=True)
    write_tree(_template(), root)
    return root


def client(
    call: Call,
    question: "Callable[[Client], Awaitable[Any]]",
    toolsets: Sequence[str] = ("all", "legacy"),
    naming: str = "underscore",
    era: Any = "auto",
    **settings: Any,
) -> Any:
    """Returns what a client of the SDK with these settings gets from a server in this process."""
    import anyio
    from mcp.client import Client

    from mimo.operations.listening import Memory
    from mimo.server.answers import answer_schema
    from mimo.server.app import App

    app = App(Memory(lambda: call.mind), all_commands(), toolsets=toolsets, naming=naming)

    tools = {spelled(name, naming): specs for name, specs in all_commands().tools().items()}

    class Checked(Client):
        """A client that fails if the schema of a tool does not name a field of its answer."""

        async def call_tool(self, name: str, *args: Any, **options: Any) -> Any:
            result = await super().call_tool(name, *args, **options)
            if name in tools and not getattr(result, "is_error", True):
                assert not list(unnamed(result.structured_content, answer_schema(tools[name])))
            return result

    async def talk() -> Any:
        async with Checked(app.server(), mode=era, **settings) as connected:
            return await question(connected)

    return anyio.run(talk)


def unnamed(answer: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields the fields of an answer, at any depth, that its schema does not name."""
    if isinstance(answer, dict) and (fields := schema.get("properties")):
        yield from answer.keys() - fields
        for name in answer.keys() & fields:
            yield from unnamed(answer[name], fields[name])
    elif isinstance(answer, list):
        for item in answer:
            yield from unnamed(item, schema.get("items", {}))


def over_pipe(
    folder: Path,
    question: "Callable[[Client], Awaitable[Any]]",
    *args: str,
    era: Any = "auto",
    list_roots: Any = None,
    elicit: Any = None,
    **env: str,
) -> Any:
    """Returns what a client gets from a process of `mind mcp` in a folder."""
    import anyio
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mimo", "mcp", *args],
        env=environment(**env),
        cwd=folder,
    )

    async def talk() -> Any:
        asked = {"list_roots_callback": list_roots, "elicitation_callback": elicit}
        async with Client(server, mode=era, **asked) as connected:
            return await question(connected)

    return anyio.run(talk)


def environment(**more: str) -> dict[str, str]:
    """Returns the variables of a process of mind, which fails if Python warns."""
    kept = {name: os.environ[name] for name in ("MIND_HOME", "HOME", "PATH")}
    return kept | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "error"} | more


def call_tool(call: Call, tool: str, arguments: Mapping[str, object], **server: Any) -> Any:
    """Returns what a client gets from a tool, see `client`."""
    return client(call, lambda connected: connected.call_tool(tool, dict(arguments)), **server)


def status(home: Path, root: Path) -> dict[str, Any] | None:
    """Returns the reply of a server to the question whether it answers."""
    environ = Mind(home=home, project=None).environ
    request = {"ask": "status", "folder": str(root), **asking.surroundings(environ)}
    return asking.ask(str(home), str(root), request)


@contextmanager
def served(home: Path, root: Path, reply: "Answers | None" = None) -> "Iterator[Memory]":
    """Runs the block while a server of a project answers in a thread."""
    from mimo.cli.answering import reply as reply_of
    from mimo.operations.listening import Listener, Memory

    memory = Memory(lambda: Mind.open(root, project=root))
    listener = Listener(home, memory, reply or reply_of)
    listener.start()
    for _ in range(3_000):
        if status(home, root):
            break
        Event().wait(0.01)
    else:
        raise AssertionError("the server does not answer")
    try:
        yield memory
    finally:
        listener.close()
        memory.close()
