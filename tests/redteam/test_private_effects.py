"""Nothing that is written for others depends on a private memory, in any of its roles."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.features.graph.commands import Format
from mimo.mind import Mind
from mimo.project import projects
from mimo.project.init import init
from tests.conftest import NOW, Clock, git
from tests.kit import do, put, repository

pytestmark = pytest.mark.attack("private text in shared output")

PERSON = Caller(surface=Surface.CLI)
WORD = "zanzibar"
"""In each private memory, and nowhere else."""


def decide(call: Call, topic: str, decision: str, **more: Any) -> str:
    saved = do(call, "save decision", topic=topic, decision=decision, reasoning="r", **more)
    return str(saved.id)


@pytest.fixture
def other(tmp_path: Path, home: Path, clock: Clock) -> Iterator[Call]:
    """Another project on this machine."""
    root = tmp_path / "other"
    root.mkdir()
    init(root, home, now=NOW)
    opened = Call(Mind(home=home, project=projects.explicit(root, home), clock=clock, environ={}))
    yield opened
    opened.mind.close()


@pytest.fixture
def ids(call: Call, clock: Clock, ann: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The shared memories, one in each role that a private memory may touch, by name."""
    repository(call.mind.project.root)
    monkeypatch.chdir(call.mind.project.root)
    made = {"cache": decide(call, "cache", "Use Redis")}
    made["queue"] = decide(call, "queue", "Use Kafka")
    made["rival"] = decide(call, "queue", "Use Rabbit", keep_current=True)
    made["old"] = decide(call, "login", "Use sessions")
    clock.forward(minutes=1)
    made["new"] = decide(call, "login", "Use tokens")
    do(call, "evolve outcome", id=made["old"], outcome="FAILED", reason="they were lost")
    do(call, "evolve outcome", id=made["cache"], outcome="FAILED", reason="it evicted too much")
    made["plain"] = decide(call, "plain", "Use tabs", links=[f"builds_on:{made['queue']}"])
    made["fact"] = do(call, "add", content="The deploy is on Tuesdays", tags=["ops"]).id
    made["alone"] = do(call, "add", content="Grafana has the dashboards").id
    made["kept"] = do(call, "add", content="Never delete the bucket", importance=0.9).id
    do(call, "keep", id=made["kept"])
    for kind in ("issue", "edge", "context", "observation"):
        made[kind] = do(call, "add", content=f"A shared {kind}", type=kind).id
    for name in ("Zulu", "Yankee"):
        made[name] = do(call, "add", content=f"{name} has the keys", title=name).id
        made[f"to {name}"] = do(call, "add", content=f"Ask [[{name}]] for the keys").id
    made["checkpoint"] = do(call, "save checkpoint", summary="Half done", next_steps="Go on").id
    (call.mind.project.root / "guide.md").write_text("# Deploying\n\nRun make deploy.\n", "utf-8")
    do(call, "ingest", path="guide.md")
    clock.forward(minutes=1)
    return made


def plant(call: Call, clock: Clock, ids: dict[str, str]) -> None:
    """Adds private memories that replace, link, repeat and outnumber the shared ones."""
    for name in ("cache", "rival", "old", "plain", "fact", "kept", "issue", "edge", "observation"):
        clock.forward(minutes=1)
        link = [f"supersedes:{ids[name]}"]
        made = decide(call, f"{WORD}_{name}", f"Use {WORD} {name}", private=True, links=link)
        do(call, "evolve outcome", id=made, outcome="FAILED", reason=f"{WORD} was wrong")
    for start, end in (("alone", "new"), ("fact", "alone"), ("queue", "alone")):
        link = [f"builds_on:{ids[start]}", f"contradicts:{ids[end]}"]
        text = f"{WORD} between {start} and {end}"
        do(call, "save insight", insight=text, private=True, links=link)
    decide(call, "queue", f"Use {WORD}", private=True, keep_current=True)
    for kind in ("fact", "issue", "edge", "context", "observation", "plan"):
        do(
            call,
            "add",
            content=f"A private {kind}, {WORD}",
            type=kind,
            tags=["ops", WORD],
            importance=1.0,
            private=True,
        )
    # A link leads to an id before a title, and to the first id of several with one title.
    for id, title in (("0", "Zulu"), ("Yankee", WORD)):
        text = f"---\nid: {id}\ntype: fact\ntitle: {title}\n---\n{WORD} has the keys\n"
        put(call.mind.project.root / f".mind/private/facts/{id}.md", text)
        do(call, "trust", ids=[id])
    do(call, "save checkpoint", summary=f"In {WORD}", next_steps="Stop", private=True)
    (call.mind.project.root / f"{WORD}.md").write_text(f"# {WORD}\n\nRun {WORD}.\n", "utf-8")
    do(call, "ingest", path=f"{WORD}.md", private=True)


def written(call: Call, ids: dict[str, str]) -> dict[str, object]:
    """Returns everything that commands of the core write for others, by command."""
    texts: dict[str, object] = {}
    do(call, "context write")
    texts["CLAUDE.md"] = (call.mind.project.root / "CLAUDE.md").read_text("utf-8")
    texts["context"] = do(call, "context show").text
    for drawn in set(Format) - {Format.TREE}:
        for name, id in {"everything": None, **ids}.items():
            for types in ((), ("builds_on",)):
                for limit in (3, 100):
                    answer = do(call, "graph", id=id, format=drawn, types=types, limit=limit)
                    texts[f"{drawn} of {name}, {types}, {limit}"] = answer.drawing
    return texts


def from_elsewhere(other: Call) -> dict[str, object]:
    """Returns what a question in another project is answered with."""
    listed = do(other, "list", all_projects=True, limit=1000).memories
    matches = do(other, "search", query="use", scope="all", threshold=0.0, limit=100).results
    rows = {row.id: (row.superseded_by, row.warning) for row in listed}
    return rows | {f"match {row.id}": (row.superseded_by, row.competing) for row in matches}


def test_private_memories_change_nothing_that_is_written_for_others(
    call: Call, clock: Clock, ids: dict[str, str], other: Call
) -> None:
    before, before_elsewhere = written(call, ids), from_elsewhere(other)

    plant(call, clock, ids)

    after, after_elsewhere = written(call, ids), from_elsewhere(other)
    assert WORD not in json.dumps([after, *after_elsewhere.items()], default=str).casefold()
    for name, text in before.items():
        assert after[name] == text, name
    assert after_elsewhere == before_elsewhere


def test_a_commit_has_and_names_no_private_memory(
    call: Call, clock: Clock, ids: dict[str, str]
) -> None:
    plant(call, clock, ids)
    do(call, "context write")

    do(call, "sync")

    assert WORD not in git(call.mind.project.root, "log", "-p", "--all", "--stat").casefold()
