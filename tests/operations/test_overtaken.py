"""Processes that overtake one another: the later text stays, in the files and in the index."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.errors import Conflict, Invalid, NotFound
from mimo.features import decisions
from mimo.index.index import Index
from mimo.memory.model import Filter, Kind, Record
from mimo.mind import Mind
from mimo.operations import lookup, refresh, removing, saving
from mimo.project.memories import MemoryStore


@pytest.fixture
def server(project: Path) -> Call:
    """The memory as a server has it: it indexes only files that the system reports as changed."""
    call = Call(Mind.open(project, project=project))
    call.mind.watch()
    refresh.refresh(call)
    return call


def store(call: Call, text: str) -> Record:
    return saving.store(call, saving.draft(Kind.FACT, text))


def before_it_writes(monkeypatch: pytest.MonkeyPatch, slow: Call, do: Callable[[], object]) -> None:
    """Calls a function once `slow` has read the changed files, before it writes the index."""
    write = Index.write

    def overtaken(index: Index, batches: Any, *arguments: Any, **named: Any) -> Any:
        if index is slow.mind.index:
            monkeypatch.setattr(Index, "write", write)
            do()
        return write(index, batches, *arguments, **named)

    monkeypatch.setattr(Index, "write", overtaken)


def texts(call: Call) -> list[str]:
    refresh.refresh(call)
    return [record.memory.content for record in call.mind.index.records(Filter())]


def test_an_older_text_does_not_replace_a_newer_one_in_the_index(
    call: Call, server: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = store(call, "Tea at four")
    assert texts(server) == ["Tea at four"]
    path = project / record.place.path
    path.write_text(path.read_text("utf-8").replace("at four", "at five"), "utf-8")
    slow = Call(Mind.open(project, project=project))

    def edit() -> None:
        saving.edit(call, lookup.one(call, record.memory.id), content="Tea at six")
        assert texts(server) == ["Tea at six"]

    before_it_writes(monkeypatch, slow, edit)
    assert texts(slow) == ["Tea at six"]
    assert texts(server) == ["Tea at six"]


def test_a_removed_memory_does_not_come_back_into_the_index(
    call: Call, server: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = store(call, "Tea at four")
    path = project / record.place.path
    path.write_text(path.read_text("utf-8").replace("at four", "at five"), "utf-8")
    slow = Call(Mind.open(project, project=project))

    def remove() -> None:
        removing.remove(call, record.memory.id)
        assert texts(server) == []

    before_it_writes(monkeypatch, slow, remove)
    assert texts(slow) == []
    assert texts(server) == []


def test_a_new_memory_stays_in_the_index(
    call: Call, server: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = store(call, "Tea at four")
    path = project / record.place.path
    data = path.read_bytes()
    path.unlink()
    slow = Call(Mind.open(project, project=project))

    def restore() -> None:
        path.write_bytes(data)
        assert texts(server) == ["Tea at four"]

    before_it_writes(monkeypatch, slow, restore)
    assert texts(slow) == ["Tea at four"]
    assert texts(server) == ["Tea at four"]


def test_a_memory_that_was_removed_meanwhile_is_a_conflict(call: Call, project: Path) -> None:
    record = store(call, "Tea at four")
    (project / record.place.path).unlink()
    for change in (
        lambda: saving.edit(call, record, content="Tea at six"),
        lambda: saving.rewrite(call, record, "text"),
        lambda: call.mind.store.delete(record),
    ):
        with pytest.raises(Conflict, match="removed since it was read"):
            change()


def test_of_two_processes_that_supersede_a_decision_one_does(
    call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decisions.save(call, saving.draft(Kind.DECISION, "Use A", topic="db"))
    other = Call(Mind.open(project, project=project))
    started, create = threading.Barrier(2), MemoryStore.create

    def together(self: MemoryStore, *arguments: Any, **named: Any) -> Record:
        """Lets both find the old decision before one of them writes, if they can."""
        with suppress(threading.BrokenBarrierError):
            started.wait(0.3)
        return create(self, *arguments, **named)

    monkeypatch.setattr(MemoryStore, "create", together)
    errors = []

    def supersede(call: Call, text: str) -> None:
        draft = saving.draft(Kind.DECISION, text)
        try:
            decisions.supersede(call, "db", draft, reason=None)
        except Invalid as error:
            errors.append(error.message)

    threads = [
        threading.Thread(target=supersede, args=(each, text))
        for each, text in ((call, "Use B"), (other, "Use C"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert len(refresh.up_to_date(Call(Mind.open(project, project=project))).current("db")) == 1


def test_a_suggested_memory_that_was_removed_meanwhile_is_not_an_internal_error(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = store(call, "Tea at four")
    monkeypatch.setattr(call.mind.index, "get", lambda _: None)
    with pytest.raises(NotFound, match="not found"):
        lookup.one(call, record.memory.id.replace("four", "five"))
