"""The ways to call mind: command lines, servers over pipes, and an HTTP server."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from bench.clients import Http
from bench.concurrent.operations import CAN_BE_KILLED, Call, Outcome
from bench.stores import MIND, Server

TOKEN = "a-token-of-the-bench"
_BEHIND = "not indexed yet"
_LONGEST_SECONDS = 120


class Caller(Protocol):
    """One of the processes."""

    def call(self, call: Call) -> Outcome:
        """Returns the outcome of an operation."""

    def close(self) -> None:
        """Ends what the caller started."""


class CommandLine:
    """Runs command lines in this process, and some of them as processes of their own.

    Each opens the memory again, as a command does.
    """

    def __init__(self, draw: random.Random, real: float, killed: float) -> None:
        """Takes the shares of real processes, and of those that are killed."""
        self._draw, self._real, self._killed = draw, real, killed

    def call(self, call: Call) -> Outcome:
        """Runs one command line."""
        drawn = self._draw.random()
        if drawn < self._killed and call.name in CAN_BE_KILLED:
            return self._process(call, kill_after=self._draw.uniform(0.02, 0.4))
        if drawn < self._real:
            return self._process(call)
        from mimo.cli.asked import answer
        from mimo.cli.main import main

        words = [*call.words, "--json"]
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status = answer(words)
            status = main(words) if status is None else status
        return outcome_of(status, output.getvalue(), errors.getvalue())

    def _process(self, call: Call, kill_after: float | None = None) -> Outcome:
        process = subprocess.Popen(
            [*MIND, *call.words, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=kill_after or _LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if kill_after:
                return Outcome(killed=True)
            return Outcome(error="HANGS", message=" ".join(call.words))
        return outcome_of(process.returncode, output, errors)

    def close(self) -> None:
        """Nothing was started."""


def outcome_of(status: int, output: str, errors: str) -> Outcome:
    """Returns the outcome of a command line with `--json`."""
    is_behind = _BEHIND in errors
    if status == 0:
        return Outcome(json.loads(output), is_behind=is_behind)
    for line in errors.splitlines():
        with contextlib.suppress(ValueError, LookupError, TypeError):
            error = json.loads(line)["error"]
            message = errors[-2000:] if error["code"] == "INTERNAL_ERROR" else error["message"]
            return Outcome(error=error["code"], message=message, is_behind=is_behind)
    return Outcome(error=f"STATUS {status}", message=errors[-2000:])


def _outcome_of(result: Mapping[str, Any]) -> Outcome:
    """Returns the outcome in the result of a tool."""
    if result.get("isError"):
        error = result.get("_meta", {}).get("mind/error", {}).get("error", {})
        message = error.get("message") or str(result["content"])
        return Outcome(error=error.get("code", "UNKNOWN"), message=message)
    answer = result["structuredContent"]
    is_behind = _BEHIND in json.dumps(answer.get("notice", "")) or _BEHIND in str(
        result["content"][0]["text"]
    )
    return Outcome(answer, is_behind=is_behind)


class Served:
    """A client of a server, over pipes or HTTP."""

    def __init__(self, client: Server | Http) -> None:
        """Takes a client with an open session."""
        self._client = client

    def call(self, call: Call) -> Outcome:
        """Calls one tool."""
        reply = self._client.ask("tools/call", {"name": call.tool, "arguments": call.arguments})
        if "error" in reply:
            return Outcome(error="PROTOCOL", message=str(reply["error"]))
        return _outcome_of(reply["result"])

    def close(self) -> None:
        """Ends the server over pipes, or the connection."""
        self._client.close()


class HttpServer:
    """`mind mcp --http` for one project."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        """Starts it, and waits until it listens."""
        with (root.parent / "http.log").open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [*MIND, "mcp", "--http", "0", "--project", str(root)],
                env={**environ, "MIND_HTTP_TOKEN": TOKEN},
                cwd=root,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout
        line = self._process.stdout.readline()
        self.port = int(line.partition("127.0.0.1:")[2].partition("/")[0])

    def close(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.communicate(timeout=30)


class Daemon:
    """The daemon, in the foreground."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        """Starts it, and waits until it runs."""
        self._process = subprocess.Popen(
            [*MIND, "daemon", "run"],
            env=environ,
            cwd=root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        state = Path(environ["MIND_HOME"], "daemon.json")
        deadline = time.monotonic() + 30
        while not state.exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    def close(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait(timeout=60)
