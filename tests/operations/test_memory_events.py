"""Events `mimo.memory.*`: each change of a memory by a command, with ids and never a text."""

import json

import pytest

from mimo.cli.main import main
from mimo.features import decisions
from mimo.features.history import revisions
from mimo.features.ingest import Options, ingest_files
from mimo.memory.ids import handle_of
from mimo.memory.model import Kind, Link
from mimo.operations import removing, saving
from mimo.project.events import EventLog
from tests.conftest import git
from tests.kit import repository

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


def test_a_new_memory_is_created(call):
    id = store(call).memory.id

    assert events(call) == [("created", {"id": id, "type": "fact"})]
    (event,) = call.mind.events.read()[0]
    assert (event.time, event.measurements) == (call.mind.now(), {"count": 1})


def test_no_event_contains_a_text(call):
    record = store(call, title="Xylophone", tags=("yacht",), topic="zebra")
    saving.edit(call, record, content="Quokkas are served at six")

    logged = (call.mind.folder / ".local" / "events.jsonl").read_text(encoding="utf-8").casefold()
    for word in ("served", "five", "yacht", "quokka", "xylophone"):
        assert word not in logged


def test_a_changed_memory_is_updated(call):
    record = store(call)
    changed = saving.edit(call, record, tags=("drink",))
    text = saving.file_text(call, changed).replace("at five", "at six")
    saving.rewrite(call, changed, text)

    assert events(call)[1:] == [("updated", {"id": record.memory.id, "type": "fact"})] * 2


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


def test_a_change_to_the_same_is_no_event(call):
    record = store(call, tags=("drink",))
    saving.edit(call, record, tags=("drink",))

    assert [name for name, _ in events(call)] == ["created"]


def test_a_duplicate_that_is_not_stored_is_no_event(call):
    for _ in range(2):
        saving.store_once(call, saving.draft(Kind.FACT, "Tea is served at five"))

    assert [name for name, _ in events(call)] == ["created"]


def test_a_removed_memory_is_deleted(call):
    id = store(call).memory.id
    removing.remove(call, id)

    assert events(call)[1:] == [("deleted", {"id": id, "type": "fact"})]


def test_new_links_are_linked_once(call):
    first = store(call, "Tea grows on hills").memory.id
    second = store(call, "Tea is picked by hand", links=(Link(to=first, type="refines"),))
    third = store(call, "Tea is dried in the sun").memory.id
    links = (*second.memory.links, Link(to=third))
    saving.edit(call, second, links=links)

    own = second.memory.id
    assert [data for name, data in events(call) if name == "linked"] == [
        {"id": own, "to": first, "type": "refines"},
        {"id": own, "to": third, "type": "relates_to"},
    ]


def test_a_decision_supersedes_the_earlier_one_on_its_topic(call):
    first, second = (
        decisions.save(
            call, saving.draft(Kind.DECISION, text, topic="auth", confidence=0.7)
        ).record.memory.id
        for text in ("Use JWT", "Use PASETO")
    )

    assert events(call) == [
        ("created", {"id": first, "type": "decision"}),
        ("created", {"id": second, "type": "decision"}),
        ("superseded", {"id": first, "by": second}),
    ]


def test_removing_a_successor_supersedes_the_memory_before_it(call):
    first, second, third = (
        decisions.save(
            call, saving.draft(Kind.DECISION, text, topic="auth", confidence=0.7)
        ).record.memory.id
        for text in ("Use JWT", "Use PASETO", "Use cookies")
    )
    removing.remove(call, second)

    assert events(call)[5:] == [
        ("deleted", {"id": second, "type": "decision"}),
        ("updated", {"id": third, "type": "decision"}),
        ("superseded", {"id": first, "by": third}),
    ]


def test_an_ingested_file_is_deleted_as_one(call):
    (call.mind.project.root / "tea.md").write_text("# Green\n\nCool.\n\n# Black\n\nHot.\n")
    (report,) = ingest_files(call, [str(call.mind.project.root / "tea.md")], Options()).files
    assert events(call) == []
    assert [name for name, _ in events(call, "mimo.ingest.")] == ["file"]
    id = report.ids[0].rpartition(".")[0]

    assert run(call, "rm", id) == 0
    assert events(call) == [("deleted", {"id": id, "type": "source"})]
    assert call.mind.events.read()[0][-1].measurements == {"count": len(report.ids)}


def test_undoing_and_redoing_are_events(call):
    assert run(call, "add", "Tea is served at five") == 0
    ((_, data),) = events(call)
    assert run(call, "undo") == 0
    assert run(call, "undo") == 0

    assert events(call)[1:] == [("deleted", data), ("created", data)]


def test_a_restored_memory_is_created(call):
    id, root = store(call).memory.id, call.mind.project.root
    repository(root)
    git(root, "add", ".mind/facts")
    git(root, "commit", "-m", "tea")
    removing.remove(call, id)
    revisions.restore(call, id, "HEAD")

    assert [name for name, _ in events(call)] == ["created", "deleted", "created"]


def test_a_log_that_cannot_be_written_does_not_prevent_saving(call):
    first = store(call).memory.id
    log = call.mind.folder / ".local" / "events.jsonl"
    log.unlink()
    log.mkdir()
    second = store(call, "Coffee is served at six").memory.id

    removing.remove(call, first)
    assert [path.stem for path in (call.mind.folder / "facts").iterdir()] == [second]


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


def test_events_are_listed_by_their_name(call, capsys):
    assert run(call, "add", "Tea is served at five") == 0
    capsys.readouterr()
    assert run(call, "events", "mimo.memory", "--json") == 0

    (event,) = json.loads(capsys.readouterr().out)["events"]
    assert event["name"] == "mimo.memory.created"
    assert (call.mind.folder / "facts" / f"{event['metadata']['id']}.md").exists()
