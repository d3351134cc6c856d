"""mind on one machine uses no network: it works where every network socket is forbidden."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts.dependencies import PAGE, REASONS, declared
from tests.conftest import git

WATCHING = """
import atexit, os, sys

def forbid(event, arguments):
    if event == "socket.getaddrinfo" or (
        event in ("socket.connect", "socket.bind", "socket.sendto")
        and isinstance(arguments[1], tuple)
    ):
        with open(os.environ["FORBIDDEN"], "a") as file:
            file.write(f"{event} {arguments[1:]}\\n")
        raise OSError(f"the network is forbidden: {event}")

def report(argv=sys.orig_argv):
    with open(os.environ["IMPORTED"], "a") as file:
        file.write("\\t".join([" ".join(argv[1:]), *sys.modules]) + "\\n")

sys.addaudithook(forbid)
atexit.register(report)
"""
"""Forbids the network to Python, and writes the modules of each process into a file."""

NETWORK = {
    "aiohttp", "anthropic", "ftplib", "http.client", "http.server", "httpcore", "httpcore2",
    "httpx", "httpx2", "huggingface_hub", "imaplib", "mcp", "openai", "poplib", "psycopg",
    "requests", "smtplib", "socketserver", "sse_starlette", "ssl", "starlette", "urllib.request",
    "urllib3", "uvicorn", "websockets", "xmlrpc.client",
    "mimo.operations.loopback",
}  # fmt: skip
"""Modules that can use the network, and those of mind that import them for it."""

OF_THE_SDK = {
    "http.client", "httpcore2", "httpx2", "mcp", "socketserver", "sse_starlette", "ssl",
    "starlette", "urllib.request", "uvicorn",
}  # fmt: skip
"""Those that `import mcp` imports for its other transports. docs/lab/dependencies.md lists them."""

ISOLATED = ("unshare", "-rn")
"""Runs a program without any network, which covers git and libraries in C too."""

LINES = """
init
add "Tea is served at four o'clock" --tag tea
add "The kettle holds two litres" --private
save decision auth "Use JWT" --because "No session store"
search "when is tea served"
list --when "last week"
show auth
ingest guide.md
value put agent.build last 1
edges starter
edges check guide.md
graph
context write
trust
doctor
index
install claude-code
review
sync
undo
daemon start
daemon status
daemon stop
""".strip().splitlines()


EVENTS: list[dict[str, object]] = [
    {"hook_event_name": "SessionStart", "source": "startup"},
    {"hook_event_name": "UserPromptSubmit", "prompt": "when is tea?"},
    {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "git push"}},
    {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "git push"}},
    {"hook_event_name": "PreCompact", "trigger": "auto"},
    {"hook_event_name": "Stop"},
    {"hook_event_name": "SessionEnd"},
]


def is_isolated() -> bool:
    try:
        return subprocess.run([*ISOLATED, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


IS_ISOLATED = is_isolated()
needs_isolation = pytest.mark.skipif(
    not IS_ISOLATED, reason="this system permits no network namespaces (`unshare -rn`)"
)
ways = pytest.mark.parametrize(
    "way",
    [
        pytest.param(ISOLATED, id="without a network", marks=needs_isolation),
        # Sockets of Python are forbidden above, too.
        *([] if IS_ISOLATED else [pytest.param((), id="sockets of Python forbidden")]),
    ],
)


class Offline(NamedTuple):
    """A project whose commands can't use the network."""

    top: Path
    environ: dict[str, str]
    way: tuple[str, ...]

    def command(self, *words: str) -> list[str]:
        return [*self.way, sys.executable, *words]

    def run(self, *words: str, input: str = "") -> str:
        """Runs `mind`, and returns its output."""
        run = subprocess.run(
            self.command("-m", "mimo", *words),
            cwd=self.top / "shop",
            env=self.environ,
            input=input,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert run.returncode == 0, f"{words}: {run.stdout}{run.stderr}"
        return run.stdout

    def answers(self, *messages: dict[str, object]) -> list[str]:
        """Starts the server on standard input and output, and returns its answers."""
        with subprocess.Popen(
            self.command("-m", "mimo", "mcp"),
            cwd=self.top / "shop",
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            for message in messages:
                server.stdin.write(f"{json.dumps({'jsonrpc': '2.0', **message})}\n")
            server.stdin.flush()
            answers = [server.stdout.readline() for message in messages if "id" in message]
            server.stdin.close()
        assert server.returncode == 0
        return answers

    def forbidden(self) -> str:
        """Returns the attempts of Python to use the network."""
        log = Path(self.environ["FORBIDDEN"])
        return log.read_text("utf-8") if log.exists() else ""

    def imported(self) -> dict[str, set[str]]:
        """Returns the modules for the network that each process imported, by its words."""
        lines = Path(self.environ["IMPORTED"]).read_text("utf-8").splitlines()
        processes = [line.split("\t") for line in lines]
        return {words: NETWORK.intersection(modules) for words, *modules in processes}


@pytest.fixture
def way() -> tuple[str, ...]:
    return ()


@pytest.fixture
def offline(tmp_path: Path, way: tuple[str, ...]) -> Offline:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text(WATCHING, encoding="utf-8")
    (tmp_path / "shop").mkdir()
    git(tmp_path / "shop", "init", "-q")
    for setting, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(tmp_path / "shop", "config", setting, value)
    (tmp_path / "shop" / "guide.md").write_text("# Guide\n\nWater boils.\n", encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    own |= {"HOME": f"{tmp_path}/home", "MIND_HOME": f"{tmp_path}/home/.mind"}
    root = Path(__file__).parent.parent
    environ = own | {
        "PYTHONPATH": f"{tmp_path}/hooks{os.pathsep}{root}",
        "FORBIDDEN": f"{tmp_path}/forbidden",
        "IMPORTED": f"{tmp_path}/imported",
    }
    return Offline(tmp_path, environ, way)


@ways
@pytest.mark.req("000-111")
def test_commands_hooks_and_the_daemon_use_no_network_and_import_no_module_for_it(
    offline: Offline,
) -> None:
    for line in LINES:
        offline.run(*shlex.split(line))
    for event in EVENTS:
        offline.run("hook", input=json.dumps({"session_id": "s", **event}))

    imported = offline.imported()
    assert len(imported) > len(LINES)
    assert any("daemon run" in words for words in imported), imported.keys()
    assert {words: names for words, names in imported.items() if names} == {}
    assert offline.forbidden() == ""


@ways
def test_the_stdio_server_uses_no_network_and_imports_only_what_its_sdk_does(
    offline: Offline,
) -> None:
    offline.run("init")
    offline.run("add", "Tea is served at four o'clock")
    client = {"name": "t", "version": "1"}
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    search = {"name": "mind_search", "arguments": {"query": "when is tea served"}}
    add = {"name": "mind_add", "arguments": {"text": "The kettle holds two litres"}}

    answers = offline.answers(
        {"id": 1, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": search},
        {"id": 4, "method": "tools/call", "params": add},
    )

    assert any("Tea is served" in answer for answer in answers)  # in the order of their ends
    assert "kettle" in offline.run("list")
    sdk = subprocess.run(
        offline.command("-c", "import mcp"), env=offline.environ, capture_output=True, check=True
    )
    assert sdk.stderr == b""
    imported = offline.imported()
    assert imported["-m mimo mcp"] - OF_THE_SDK == set()
    assert imported["-m mimo mcp"] - imported["-c import mcp"] == set()
    assert offline.forbidden() == ""


def test_the_page_lists_the_modules_that_the_sdk_imports() -> None:
    page = PAGE.read_text("utf-8")

    assert [name for name in OF_THE_SDK - {"mcp"} if f"`{name}`" not in page] == []


@ways
def test_the_network_is_forbidden_here(offline: Offline) -> None:
    """Without the hook for Python too, if the kernel forbids it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
        connect = f"import socket; socket.create_connection({place})"
        options = ("-I",) if offline.way else ()
        run = subprocess.run(
            offline.command(*options, "-c", connect),
            env=offline.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    assert run.returncode == 1
    assert ("unreachable" if offline.way else "the network is forbidden") in run.stderr


def test_each_dependency_has_a_reason_and_is_on_the_page() -> None:
    page = PAGE.read_text("utf-8")

    assert declared().keys() == REASONS.keys()
    assert all(f"| {name} |" in page for name in declared())


def test_packages_for_development_are_locked_with_hashes() -> None:
    root = Path(__file__).parent.parent
    lock = (root / "requirements-dev.txt").read_text("utf-8")
    groups = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["dependency-groups"]

    for line in lock.split("\n"):
        if "==" in line:
            assert line.endswith("\\"), line
    assert lock.count("--hash=sha256:") > lock.count("==") >= len(groups["test"])
    installing = [
        line
        for line in (root / "Makefile").read_text("utf-8").splitlines()
        if "pip install" in line and ("$(LOCK)" in line or re.search(r"\buv\b[^/ ]*$", line))
    ]
    assert len(installing) == 2
    assert all("--require-hashes" in line for line in installing)


def test_each_extra_is_tried_with_its_lowest_versions() -> None:
    root = Path(__file__).parent.parent
    tried = re.findall(r'--editable "\.\[(.+?)\]"', (root / "Makefile").read_text("utf-8"))
    weekly = (root / ".github" / "workflows" / "weekly.yml").read_text("utf-8")
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]

    assert {extra for line in tried for extra in line.split(",")} == {
        *project["optional-dependencies"]
    }
    assert "make test-adapters RESOLUTION=lowest-direct" in weekly
