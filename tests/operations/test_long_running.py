"""A memory that a server keeps open answers as one that was opened for the call."""

import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.table import all_commands
from mimo.errors import MindError
from mimo.operations.invoke import invoke
from mimo.operations.listening import Memory
from tests.conftest import Clock, git
from tests.kit import put, repository

AGENT = Caller(surface=Surface.MCP, name="bench")
PERSON = Caller(surface=Surface.CLI)
WORDS = "tea kettle cache redis deploy token login sessions queue retry timeout proxy".split()
TOPICS = ("auth", "cache", "queue")


def called(call: Call, caller: Caller, path: str, arguments: Mapping[str, Any]) -> str:
    try:
        answer: object = invoke(all_commands().at(path), call.by(caller), arguments)
    except MindError as error:
        answer = f"{type(error).__name__}: {error.message}"
    return repr(answer)


class Others:
    """Changes by other processes, editors and git, in an order that a seed gives."""

    def __init__(self, seed: int, open: Callable[[], Call], root: Path, clock: Clock) -> None:
        self.draw, self.open, self.root, self.clock = random.Random(seed), open, root, clock
        self.actions = (
            *(self.add, self.decide, self.fail, self.edit, self.link, self.remove, self.undo),
            *(self.approve, self.revoke, self.configure, self.write, self.change, self.move),
            *(self.log, self.commit, self.switch, self.lose_index, self.damage_index),
        )

    def act(self) -> str:
        action = self.draw.choice(self.actions)
        self.clock.forward(minutes=1)
        action()
        return action.__name__

    def text(self) -> str:
        return " ".join(self.draw.choices(WORDS, k=self.draw.randint(3, 8)))

    def files(self) -> list[Path]:
        folders = ("facts", "plans", "decisions")
        return sorted(path for name in folders for path in (self.root / ".mind" / name).glob("*"))

    def id(self) -> str:
        return self.draw.choice([path.stem for path in self.files()] or ["none"])

    def run(self, path: str, **arguments: Any) -> None:
        call = self.open()
        called(call, PERSON, path, arguments)
        call.mind.close()

    def add(self) -> None:
        self.run("add", content=self.text(), tags=[self.draw.choice(WORDS)])

    def decide(self) -> None:
        topic = self.draw.choice(TOPICS)
        self.run("save decision", topic=topic, decision=self.text(), reasoning=self.text())

    def fail(self) -> None:
        self.run("evolve outcome", id=self.draw.choice(TOPICS), outcome="FAILED", reason="slow")

    def edit(self) -> None:
        self.run("edit", id=self.id(), content=self.text())

    def link(self) -> None:
        self.run("link", id=self.id(), other=self.id(), type="supersedes")

    def remove(self) -> None:
        self.run("rm", id=self.id())

    def undo(self) -> None:
        self.run("undo")

    def approve(self) -> None:
        self.run("trust", all=True)

    def revoke(self) -> None:
        self.run("untrust", ids=[self.id()])

    def configure(self) -> None:
        key, value = self.draw.choice((("include", "docs/*.md"), ("time.zone", "Asia/Seoul")))
        if self.draw.random() < 0.5:
            self.run("config", key=key, unset=True)
        else:
            self.run("config", key=key, value=value)

    def write(self) -> None:
        for folder in ("docs", ".mind/facts"):
            put(
                self.root / folder / f"n{self.draw.randint(0, 5)}.md",
                f"---\ndate: 2026-03-0{self.draw.randint(1, 9)}\n---\n{self.text()}\n",
            )

    def change(self) -> None:
        for path in self.files()[:2]:
            path.write_text(f"{path.read_text()}\n{self.text()}\n")

    def move(self) -> None:
        for path in self.files()[:1]:
            (self.root / ".mind/plans").mkdir(exist_ok=True)
            path.rename(self.root / ".mind/plans" / path.name)

    def log(self) -> None:
        with (self.root / ".mind/MEMORY.md").open("a") as file:
            file.write(f"\n## 2026-11-0{self.draw.randint(1, 9)}\n**Decided:** {self.text()}\n")

    def commit(self) -> None:
        git(self.root, "add", "--all")
        git(self.root, "commit", "-q", "--allow-empty", "-m", self.text())

    def switch(self) -> None:
        self.commit()
        git(self.root, "checkout", "-q", "-B", self.draw.choice(["a", "b"]), "HEAD~1")

    def lose_index(self) -> None:
        shutil.rmtree(self.root / ".mind/.index", ignore_errors=True)

    def damage_index(self) -> None:
        for path in (self.root / ".mind/.index").glob("index*.db"):
            data = bytearray(path.read_bytes())
            data[self.draw.randrange(len(data))] ^= 0xFF
            path.write_bytes(data)

    def questions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        word, topic, id = self.draw.choice(WORDS), self.draw.choice(TOPICS), self.id()
        asked: list[tuple[str, dict[str, Any]]] = [
            ("list", {"limit": 100}),
            ("list", {"sort": "importance", "tags": [word]}),
            ("search", {"query": word, "threshold": 0.0}),
            ("search", {"query": self.text(), "threshold": 0.0, "limit": 30}),
            ("search", {"query": word, "at": "HEAD"}),
            ("search by-topic", {"topic": topic}),
            ("recall", {"query": self.text()}),
            ("show", {"id": id}),
            ("show", {"id": topic}),
            ("graph", {}),
            ("graph", {"id": id}),
            ("review", {}),
            ("pitfalls check", {}),
            ("context show", {}),
            ("memory stats", {}),
            ("diff", {}),
        ]
        yield from asked


def test_answers_are_those_of_a_new_process(
    call: Call, clock: Clock, ann: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = call.mind.project.root
    repository(root)
    monkeypatch.chdir(root)
    others = Others(random.randrange(1_000), lambda: Call(call.mind.reopened()), root, clock)
    for _ in range(6):
        others.add()
    others.commit()
    others.commit()
    server = Memory(call.mind.reopened)
    done = []
    for _ in range(8):
        done += [others.act() for _ in range(others.draw.randint(1, 2))]
        new = call.mind.reopened()
        for path, arguments in others.questions():
            kept = called(Call(server.mind()), AGENT, path, arguments)
            expected = called(Call(new), AGENT, path, arguments)
            assert kept == expected, json.dumps([done[-3:], path, arguments])
        new.close()
    server.close()
