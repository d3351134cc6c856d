"""The clock is set back or forward, or the machine sleeps, while the daemon and servers run.

A library in C moves the time of day of real processes; see clock.c.
"""

import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.clients import Http, Pipe, outcome, port_of, token_of
from bench.preload import built
from bench.soak.process import cost
from bench.stores import MIND
from mimo.call import Call
from mimo.memory.ids import handle_of
from mimo.project.init import init

HOUR, YEAR = 3_600, 365 * 86_400


class Clock:
    """The clock of the processes that have its environment."""

    def __init__(self, library: Path, file: Path) -> None:
        """Takes the library and a new file for the shift, which is mapped while they run."""
        self._file = file
        file.write_bytes(bytes(8))
        self.environ = {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(file)}

    def set(self, seconds: int) -> None:
        """Moves the time of day, counted from the real one."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", seconds))


class Running:
    """The daemon, a server on a pipe and one over HTTP, of one project."""

    def __init__(self, call: Call, clock: Clock, stack: ExitStack) -> None:
        self.call, self.clock = call, clock
        self.environ = os.environ | clock.environ | {"MIND_HOME": str(call.mind.home)}
        self.environ |= {"MIND_BACKGROUND": "off"}
        self.errors = call.mind.home / "errors"
        self.processes = [
            stack.enter_context(self._started(*words))
            for words in (["daemon", "run"], ["mcp"], ["mcp", "--http", "0"])
        ]
        port = port_of(self.errors)
        self.clients: tuple[Pipe, Http] = (
            Pipe(self.processes[1]),
            Http(port, token_of(call.mind.home), call.mind.project.root.name),
        )
        stack.callback(self.clients[1].close)

    @contextmanager
    def _started(self, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
        with self.errors.open("ab") as errors:
            process = subprocess.Popen(
                [*MIND, *words],
                cwd=self.call.mind.project.root,
                env=self.environ,
                stdin=subprocess.PIPE,
                stdout=errors if "mcp" not in words or "--http" in words else subprocess.PIPE,
                stderr=errors,
            )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)

    def ask(self, client: Pipe | Http, tool: str, **arguments: Any) -> Any:
        """Returns the structured result of a tool, which must succeed."""
        answer = client.ask("tools/call", {"name": tool, "arguments": arguments})
        assert outcome(answer) == "ok", answer
        return answer["result"]["structuredContent"]

    def store(self, text: str) -> str:
        """Stores a memory by the server on the pipe."""
        stored = self.ask(self.clients[0], "memory", operation="store", content=text)
        return handle_of(str(stored["id"]))

    def newest(self, count: int) -> list[str]:
        """Returns the newest memories, which both servers must list in the same order."""
        first, second = (
            [
                row["id"]
                for row in self.ask(each, "memory", operation="list", limit=count)["memories"]
            ]
            for each in self.clients
        )
        assert first == second
        return first

    def idle(self) -> float:
        """Returns the share of a processor that all processes take without requests."""
        before, seconds = sum(cost(each.pid).cpu_seconds for each in self.processes), 0.4
        time.sleep(seconds)
        return (sum(cost(each.pid).cpu_seconds for each in self.processes) - before) / seconds


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def running(call: Call, tmp_path: Path) -> Iterator[Running]:
    library = built(Path(__file__).with_name("clock.c"), tmp_path)
    if library is None:
        pytest.skip("needs Linux and a C compiler")
    call.mind.home.mkdir(exist_ok=True)
    (call.mind.home / "config.toml").write_text('[embedding]\nencoder = "off"\n', encoding="utf-8")
    init(call.mind.project.root, call.mind.home, now=call.mind.now())
    with ExitStack() as stack:
        yield Running(call, Clock(library, tmp_path / "shift"), stack)


def test_all_keep_working_while_the_clock_is_set(running: Running) -> None:
    for seconds in (-HOUR, 3 * YEAR, -20 * YEAR):
        earlier = running.store(f"The kettle is old, {seconds}")
        put = {"namespace": "session.clock", "key": f"step{abs(seconds)}"}
        running.ask(running.clients[0], "putMemory", **put, value=1, ttl_seconds=HOUR)
        for process in running.processes:
            process.send_signal(signal.SIGSTOP)
        running.clock.set(seconds)  # While they sleep.
        for process in running.processes:
            process.send_signal(signal.SIGCONT)

        first = running.store(f"The lantern is lit, {seconds}")
        second = running.store(f"The zebra is striped, {seconds}")

        listed = running.newest(20)
        assert listed.index(second) < listed.index(first)
        # A date that is years ahead does not spread to later memories.
        assert (listed.index(first) < listed.index(earlier)) is (seconds > -YEAR)
        for client in running.clients:
            answer = running.ask(client, "mind_search", query=f"lantern lit {seconds}")
            assert answer["results"][0]["id"] == first
            value = outcome(client.ask("tools/call", {"name": "getMemory", "arguments": put}))
            assert value == ("NOT_FOUND" if seconds > HOUR else "ok")
        check_changes(running)
        running.ask(running.clients[0], "memory", operation="delete", id=second)
        root = running.call.mind.project.root
        subprocess.run([*MIND, "undo"], cwd=root, env=running.environ, check=True)
        assert second in running.newest(20)
        assert running.idle() < 0.5
        running.clock.set(0)
        assert running.idle() < 0.5
    assert b"Traceback" not in running.errors.read_bytes()
    assert all(process.poll() is None for process in running.processes)


def check_changes(running: Running) -> None:
    """Checks that changes of a file are noticed whose times are in the future, and the same."""
    path = running.call.mind.project.root / ".mind" / "facts" / "by_hand.md"
    future = time.time_ns() + YEAR * 10**9
    for text in ("A quagga grazes.", "A quagga sleeps."):
        path.write_text(f"---\nid: by_hand\ntype: fact\n---\n{text}\n", encoding="utf-8")
        os.utime(path, ns=(future, future))
        for client in running.clients:
            assert running.ask(client, "mind_show", id="by_hand")["content"].strip() == text
