"""Two calls share the project and nothing else, also at the same time.

`CALLS=500 pytest tests/operations/test_calls.py` makes that number in each of eight threads.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from threading import get_ident
from typing import Any

import pytest

from mimo.call import Call, Caller, Console, Surface
from mimo.call.table import all_commands
from mimo.errors import RateLimited
from mimo.operations.invoke import invoke
from mimo.operations.listening import Memory

THREADS, CALLS = 8, int(os.environ.get("CALLS", "25"))


@pytest.fixture
def memory(call: Call) -> Iterator[Memory]:
    opened = Memory(call.mind.reopened)
    yield opened
    opened.close()


class Agent:
    """A client of the server with a thread, a name and a console of its own."""

    def __init__(self, memory: Memory, number: int) -> None:
        self.memory, self.number, self.name = memory, number, f"agent-{number}"
        self.draw = Random(number)
        self.written: list[str] = []
        self.heard: set[int] = set()

    def run(self, path: str, **arguments: Any) -> Any:
        console = Console(progress=lambda *_: self.heard.add(get_ident()))
        call = Call(self.memory.mind(), Caller(surface=Surface.MCP, name=self.name), console)
        return invoke(all_commands().at(path), call, arguments)

    def work(self) -> int:
        """Makes mixed calls, and checks that each answer is that of its own call."""
        for step in range(CALLS):
            match self.draw.randrange(6):
                case 0:
                    text = f"{self.name} keeps cup {step} on shelf {self.draw.random():.6f}"
                    self.written.append(self.run("add", content=text).id)
                case 1:
                    dated = self.run("search", query="cup", time_filter="yesterday")
                    assert "yesterday" in dated.notice
                case 2:
                    assert "yesterday" not in (self.run("search", query="cup").notice or "")
                case 3:
                    place = {"namespace": f"agent.{self.name}", "key": "step"}
                    with suppress(RateLimited):  # After some hundred in a minute.
                        self.run("value put", **place, value=step)
                        assert self.run("value get", **place).value == step
                case 4 if self.written:
                    assert self.name in self.run("show", id=self.draw.choice(self.written)).content
                case _:
                    assert self.run("list", limit=3).notice is None
        return get_ident()


def test_calls_in_several_threads_share_the_project_alone(memory: Memory) -> None:
    agents = [Agent(memory, number) for number in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        threads = list(pool.map(Agent.work, agents))

    mind = memory.mind()
    for agent, thread in zip(agents, threads, strict=True):
        assert agent.heard <= {thread}
        for id in agent.written:
            record = mind.index.get(id)
            assert record is not None
            assert record.memory.by == agent.name
    assert mind.index.totals().memories >= sum(len(agent.written) for agent in agents) > 0
