"""Lines that are no messages, calls that are cancelled, and signals, over a real pipe."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.kit import environment, put
from tests.sample_procedures import SLOW, text

Property = Callable[[str, object], None]
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}
FILES = 600
TOGETHER = 128
"""The number of new files that are written together."""


def request(number: int, method: str, params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def listing(number: int) -> str:
    return request(number, "tools/call", {"name": "memory", "arguments": {"operation": "list"}})


class Server:
    """A running `mind mcp`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def until(self, number: int) -> list[Any]:
        """Returns what is read up to the answer to a request."""
        messages = [self.read()]
        while messages[-1].get("id") != number:
            messages.append(self.read())
        return messages


@contextmanager
def running(folder: Path, *args: str) -> Iterator[Server]:
    with subprocess.Popen(
        [sys.executable, *(args or ("-m", "mimo", "mcp"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(),
    ) as process:
        server = Server(process)
        try:
            if not args:
                server.send(request(1, "initialize", INITIALIZE))
                server.until(1)
                server.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
            yield server
        finally:
            process.kill()


DEEP = "[" * 5_000 + "]" * 5_000
BAD = [
    ("not json", None, -32700),
    ("[]", None, -32600),
    ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"mem', None, -32700),
    ('{"method":"tools/call","params":{"arguments":{"id":7', None, -32700),
    ('{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"x":' + DEEP + "}}", 10, -32700),
    ('{"method":"x","params":{"x":' + DEEP + '},"jsonrpc":"2.0","id":11}', 11, -32700),
    ('{"jsonrpc":"1.0","id":12,"method":"x"}', 12, -32600),
    ("{" * 5_000, None, -32700),
]


@pytest.mark.attack("line that is not a message, over stdio")
def test_each_line_that_is_not_a_message_is_answered_and_the_server_lives_on(
    project: Path, record_property: Property
) -> None:
    record_property("tried", len(BAD))
    with running(project) as server:
        for line, identity, code in BAD:
            server.send(line)
            reply = server.read()
            assert (reply["id"], reply["error"]["code"]) == (identity, code), line[:80]
            where = "at line 1 column" in reply["error"]["message"]
            assert where == (code == -32700), reply
        server.send(listing(20))
        assert server.until(20)[-1]["result"]["structuredContent"]["total"] == 0


def ingesting(project: Path, server: Server, number: int) -> None:
    """Asks for an ingest of many files."""
    for note in range(FILES):
        put(project / f"note-{note}.txt", f"Note number {note}.\n")
    call = {"name": "ingest", "arguments": {"path": "note-*.txt"}, "_meta": {"progressToken": "p"}}
    server.send(request(number, "tools/call", call))


def cancelled(number: int) -> str:
    params = {"requestId": number, "reason": "enough"}
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return json.dumps(message)


@pytest.mark.req("001-16")
@pytest.mark.attack("cancelled call that goes on")
def test_a_cancelled_ingest_stops_is_not_answered_and_leaves_everything_whole(
    project: Path,
) -> None:
    with running(project) as server:
        ingesting(project, server, 2)
        progress = server.read()["params"]
        while progress["message"] != "Ingesting" or progress["progress"] <= TOGETHER + 1:
            progress = server.read()["params"]
        server.send(cancelled(2))
        server.send(listing(3))
        messages = server.until(3)
        stored = len(list((project / ".mind/sources").glob("*.md")))
        server.send(listing(4))
        messages += server.until(4)

    assert [message["id"] for message in messages if "id" in message] == [3, 4]
    assert TOGETHER <= stored < FILES
    assert len(list((project / ".mind/sources").glob("*.md"))) - stored <= TOGETHER
    add = [sys.executable, "-m", "mimo", "add", "Tea is at four"]
    # The lock is free, and the index can be used.
    subprocess.run(add, cwd=project, env=environment(), capture_output=True, check=True)


@pytest.mark.req("000-28")
@pytest.mark.attack("cancelled call that goes on")
def test_a_cancelled_procedure_stops_and_is_not_answered(project: Path) -> None:
    def call(number: int, tool: str, **arguments: object) -> str:
        meta = {"progressToken": "p"}
        return request(number, "tools/call", {"name": tool, "arguments": arguments, "_meta": meta})

    with running(project) as server:
        server.send(call(2, "register_procedure", text=text("waiting", SLOW, description="Try")))
        assert not server.until(2)[-1]["result"].get("isError")
        server.send(call(3, "run_procedure", name="waiting"))
        assert server.read()["params"]["message"] == "waiting: second"
        server.send(cancelled(3))
        messages: list[Any] = []
        execution = {"status": "running"}
        numbers = count(4)
        while execution["status"] == "running":
            server.send(call(number := next(numbers), "procedure_status", execution_id="latest"))
            messages += server.until(number)
            execution = messages[-1]["result"]["structuredContent"]

    assert (execution["status"], execution["current_state"]) == ("interrupted", "second")
    assert execution["error"] == "the caller cancelled the call"
    assert 3 not in {message.get("id") for message in messages}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.attack("signal that has to be sent twice")
def test_one_signal_ends_the_server_while_it_waits_and_while_it_works(
    project: Path, number: signal.Signals
) -> None:
    for works in (False, True):
        with running(project) as server:
            if works:
                ingesting(project, server, 2)
                assert server.read()["method"] == "notifications/progress"
            server.process.send_signal(number)
            assert server.process.wait(timeout=60) == 128 + number
            assert server.process.stderr is not None
            assert b"Traceback" not in server.process.stderr.read()


COMMAND = """
import sys, time
import mimo.__main__, mimo.cli.main

def waits():
    print("{}", flush=True)
    while True:  # A signal that comes just before the call would not end a longer one.
        time.sleep(0.05)

mimo.cli.main.main = waits
sys.argv = ["mind", "status"]
sys.exit(mimo.__main__.main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.attack("signal that has to be sent twice")
def test_one_signal_ends_any_command(project: Path, number: signal.Signals) -> None:
    with running(project, "-c", COMMAND) as command:
        assert command.read() == {}
        command.process.send_signal(number)
        assert command.process.wait(timeout=60) == 128 + number
