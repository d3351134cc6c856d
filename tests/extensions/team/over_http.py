"""`mind mcp --http` as a process of its own, and clients of it."""

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from mimo.project.init import init
from tests.conftest import NOW

TOKEN = "a-token-of-the-tests"


def two_projects(factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a home and the projects `shop` and `bank`."""
    folder = factory.mktemp("team")
    for name in ("shop", "bank"):
        (folder / name).mkdir()
        init(folder / name, folder / "home", now=NOW)
    return folder


class Served:
    """A running server."""

    def __init__(self, process: "subprocess.Popen[str]", line: str) -> None:
        self.process, self.line = process, line
        address = re.search(r"http://\S+", line)
        assert address, line
        self.url = address[0]
        self.base = self.url.removesuffix("/mcp")

    def headers(self, **more: str) -> dict[str, str]:
        """Returns the headers of a client with the token."""
        return {"authorization": f"Bearer {TOKEN}", **more}

    def asked(
        self,
        era: Any,
        ask: Callable[[Client], Awaitable[Any]],
        at: str = "",
        **settings: Any,
    ) -> Any:
        """Returns what a client of the SDK gets at a path below `/mcp`."""

        async def talk() -> Any:
            async with self.client(era, at, **settings) as client:
                return await ask(client)

        return anyio.run(talk)

    @asynccontextmanager
    async def client(self, era: Any, at: str = "", **settings: Any) -> AsyncGenerator[Client]:
        """Yields a client of the SDK."""
        headers = self.headers(**settings.pop("headers", {}))
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            transport = streamable_http_client(f"{self.url}{at}", http_client=http)
            async with Client(transport, mode=era, **settings) as client:
                yield client

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Ends the server, and returns its exit status and its log."""
        self.process.send_signal(number)
        log = self.process.communicate(timeout=30)[1]
        return self.process.returncode, log


HURRIED = """
import sys
from mimo.__main__ import main
from mimo.extensions.team import hosting
from mimo.extensions.team.postgres import connection

hosting.SHARE_SECONDS = connection._AGAIN_SECONDS = 0.2
sys.exit(main())
"""
"""The program `mind` with a shorter wait until it pushes, and asks a database that failed again."""


@contextmanager
def served(
    home: Path,
    *args: str,
    folder: Path | None = None,
    most_files: int = 0,
    program: Sequence[str] = ("-m", "mimo"),
    **env: str,
) -> Iterator[Served]:
    """Yields a server of a home with projects, which may open at most so many files."""
    surroundings = {
        "MIND_HOME": str(home),
        "HOME": str(home.parent),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONWARNINGS": "error",
        "MIND_BACKGROUND": "off",
        "MIND_HTTP_TOKEN": TOKEN,
    }
    limited = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (most_files, most_files))
    process = subprocess.Popen(
        [sys.executable, *program, "mcp", "--http", "0", *args],
        preexec_fn=limited if most_files else None,  # noqa: PLW1509 - it takes no lock
        env=surroundings | env,
        cwd=folder or home.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    try:
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate()[1])
        yield Served(process, line)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
