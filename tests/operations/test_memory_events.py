"""Events `mimo.memory.*`: each change of a memory by a command, with ids and never a text."""

import pytest

from mimo.cli.main import main
from mimo.memory.ids import handle_of
from mimo.memory.model import Kind, Link
from mimo.operations import saving
from mimo.project.events import EventLog

pytestmark = pytest.mark.req("G-15")


def store(call, text="Tea is served at five", *, kind=Kind.FACT, **fields):
    return saving.store(call, saving.draft(kind, text, **fields))


def events(call, name="mimo.memory."):
    return [
        (event.name.removeprefix(name), dict(event.metadata))
        for event in call.mind.events.read()[0]
        if event.name.startswith(name)
    ]


def run(call, *argv):
    return main(list(argv), open=lambda _: call.mind)


def test_a_moved_memory_is_updated(call):
    record = store(call)
    saving.move(call, [(record, ".mind/plans/tea.md")])

    assert events(call)[1:] == [("updated", {"id": record.memory.id, "type": "plan"})]


def test_a_memory_with_another_path_alone_is_updated(call):
    record = store(call)
    (moved,) = saving.move(call, [(record, ".mind/facts/tea.md")])
    (again,) = saving.move(call, [(moved, ".mind/facts/green.md")])

    assert again.place.digest == moved.place.digest
    assert [name for name, _ in events(call)] == ["created", "updated", "updated"]


def test_a_save_holds_no_lock_of_the_event_log(call):
    store(call)
    assert [name for name, _ in events(call)] == ["created"]
    assert not (call.mind.folder / ".local" / "events.lock").exists()


def test_purging_leaves_only_the_short_id(call):
    secret = store(call, "The door opens to swordfish").memory.id
    other = store(call, "Tea is served at five", links=(Link(to=secret),)).memory.id
    _, place = call.mind.events.read()

    assert run(call, "rm", secret, "--purge") == 0

    short = handle_of(secret)
    assert [data for _, data in events(call)][:4] == [
        {"id": short, "type": "fact"},
        {"id": other, "type": "fact"},
        {"id": other, "to": short, "type": "relates_to"},
        {"id": short, "type": "fact"},
    ]
    assert b"swordfish" not in (call.mind.folder / ".local" / "events.jsonl").read_bytes()
    (deleted,), _ = EventLog(call.mind.project.root).since(place)
    assert (deleted.name, deleted.metadata["id"]) == ("mimo.memory.deleted", short)
