"""mind on one machine uses no network: it works where every network socket is forbidden."""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts.dependencies import PAGE, REASONS, declared

FORBIDDING = """
import os, sys

def forbid(event, arguments):
    if event == "socket.getaddrinfo" or (
        event in ("socket.connect", "socket.bind", "socket.sendto")
        and isinstance(arguments[1], tuple)
    ):
        with open(os.environ["FORBIDDEN"], "a") as file:
            file.write(f"{event} {arguments[1:]}\\n")
        raise OSError(f"the network is forbidden: {event}")

sys.addaudithook(forbid)
"""

NETWORK = {
    "http.client", "urllib.request", "ssl", "httpx", "requests", "psycopg", "uvicorn", "smtplib",
    "huggingface_hub",
}  # fmt: skip

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
export
""".strip().splitlines()


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text(FORBIDDING, encoding="utf-8")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "guide.md").write_text("# Guide\n\nWater boils.\n", encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    own |= {"HOME": f"{tmp_path}/home", "MIND_HOME": f"{tmp_path}/home/.mind"}
    root = Path(__file__).parent.parent
    return own | {
        "PYTHONPATH": f"{tmp_path}/hooks{os.pathsep}{root}",
        "FORBIDDEN": f"{tmp_path}/forbidden",
    }


def mind(
    tmp_path: Path, environ: dict[str, str], *words: str, input: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mimo", *words],
        cwd=tmp_path / "shop",
        env=environ,
        input=input,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_commands_hooks_and_the_stdio_server_open_no_network_socket(
    tmp_path: Path, offline: dict[str, str]
) -> None:
    for line in LINES:
        run = mind(tmp_path, offline, *shlex.split(line))
        assert run.returncode == 0, f"{line}: {run.stdout}{run.stderr}"
    prompt = {"hook_event_name": "UserPromptSubmit", "prompt": "when is tea?", "session_id": "s"}
    assert mind(tmp_path, offline, "hook", input=json.dumps(prompt)).returncode == 0
    client = {"name": "t", "version": "1"}
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    search = {"name": "mind_search", "arguments": {"query": "when is tea served"}}
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": search},
    ]
    lines = "".join(f"{json.dumps({'jsonrpc': '2.0', **message})}\n" for message in messages)
    command = [sys.executable, "-m", "mimo", "mcp"]
    with subprocess.Popen(
        command,
        cwd=tmp_path / "shop",
        env=offline,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(lines)
        server.stdin.flush()
        answers = [server.stdout.readline(), server.stdout.readline()]
        server.stdin.close()
    assert "Tea is served" in answers[1]

    assert not Path(offline["FORBIDDEN"]).exists(), Path(offline["FORBIDDEN"]).read_text()


def test_the_network_is_forbidden_here(tmp_path: Path, offline: dict[str, str]) -> None:
    connect = "import socket; socket.create_connection(('127.0.0.1', 9))"
    run = subprocess.run(
        [sys.executable, "-c", connect], env=offline, capture_output=True, text=True, check=False
    )

    assert "the network is forbidden" in run.stderr


@pytest.mark.parametrize("line", ["search tea", "add x", "list", "index", "doctor", "hook"])
def test_no_module_for_the_network_is_imported(
    tmp_path: Path, offline: dict[str, str], line: str
) -> None:
    mind(tmp_path, offline, "init")
    script = (
        "import sys; sys.argv = ['mind', *sys.argv[1:]]\n"
        "from mimo.__main__ import main\n"
        "main(); print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, *line.split()],
        cwd=tmp_path / "shop",
        env=offline,
        input="{}",
        capture_output=True,
        encoding="utf-8",
        check=True,
    )

    assert NETWORK & set(run.stderr.split()) == set()


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
    assert "--require-hashes" in (root / "Makefile").read_text("utf-8")
