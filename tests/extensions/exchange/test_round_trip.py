"""An export that is imported into an empty project gives the same memories."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mimo.call import Call, Caller, Surface
from mimo.call.spec import declared
from mimo.errors import Invalid
from mimo.extensions.exchange.commands import ExportWritten, export
from mimo.features.importing.commands import import_
from mimo.memory.codec import normal
from mimo.memory.model import Kind, Link, Memory
from mimo.mind import Mind
from mimo.operations import finding
from mimo.operations.invoke import invoke
from mimo.project.init import init
from mimo.project.trust import Trust
from tests.conftest import NOW
from tests.properties.test_codec_properties import MEMORIES

CALLER = Caller(surface=Surface.CLI)


def project(root: Path, home: Path) -> Call:
    root.mkdir()
    init(root, home, now=NOW)
    Trust(home, root).follow(True)
    return Call(Mind.open(root, environ={"MIND_HOME": str(home)}, clock=lambda: NOW))


def contents(call: Call) -> dict[str, tuple[Memory, bool]]:
    records = finding.listing(Call(call.mind.reopened())).records
    return {record.memory.id: (record.memory, record.place.private) for record in records}


def stored(call: Call, memories: list[Memory]) -> None:
    for number, memory in enumerate(memories):
        try:
            call.mind.store.create(memory, private=number % 3 == 2)
        except Invalid:
            continue  # Text that no file can hold.


def check(root: Path, memories: list[Memory], format: str, output: str) -> None:
    first, second = project(root / "a", root / "home"), project(root / "b", root / "home")
    try:
        stored(first, memories)
        path = root / output
        options = {"format": format, "output": str(path), "private": True}
        result = invoke(declared(export), first.by(CALLER), options)
        assert isinstance(result, ExportWritten)
        before = contents(first)
        assert result.memories == len(before)
        if before:
            invoke(declared(import_), second.by(CALLER), {"source": str(path), "trust": True})
        hidden = {id for id, (_, private) in before.items() if private}
        assert contents(second) == {
            id: (memory, private)
            for id, (memory, private) in before.items()
            # No import lets a shared memory name a private one.
            if private or not any(link.to in hidden for link in memory.links)
        }
    finally:
        first.mind.close()
        second.mind.close()


@pytest.mark.parametrize(
    ("format", "output"), [("jsonl", "m.jsonl"), ("markdown", "m"), ("markdown", "m.zip")]
)
@given(
    memories=st.lists(
        MEMORIES.filter(lambda memory: not memory.id.startswith(".")),
        max_size=4,
        unique_by=lambda memory: memory.id.casefold(),
    )
)
# Without shrinking: each example makes two projects.
@settings(max_examples=8, phases=[Phase.explicit, Phase.generate])
def test_an_imported_export_gives_the_same_memories(memories, format, output):
    with TemporaryDirectory() as folder:
        check(Path(folder), [normal(memory) for memory in memories], format, output)


@pytest.mark.parametrize(
    ("format", "output"), [("jsonl", "m.jsonl"), ("markdown", "m"), ("markdown", "m.zip")]
)
def test_links_titles_and_names_survive(tmp_path: Path, format: str, output: str) -> None:
    names = ("con", "index", "A", "fact_x", "notes.2026")
    links = tuple(Link(to=name, type="builds_on") for name in (*names[1:], ""))
    memories = [
        Memory(
            id=name,
            type=kind,
            content=f"# Title of {name}\n\nSee [[fact_x]] and [[Title of A|another]].",
            created=NOW,
            links=links if name == "con" else (),
            extra={"aliases": ["mine"]} if name == "A" else {},
        )
        for name, kind in zip(
            names, (Kind.FACT, Kind.DECISION, Kind.EDGE, Kind.PLAN, Kind.ISSUE), strict=True
        )
    ]
    check(tmp_path, [normal(memory) for memory in memories], format, output)
