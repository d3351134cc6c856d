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
from mimo.store.events import EventLog
from tests.conftest import git

pytestmark = pytest.mark.req("G-15")


def store(mind, text="Tea is served at five", *, kind=Kind.FACT, **fields):
    return saving.store(mind, saving.draft(kind, text, **fields))


def events(mind, name="mimo.memory."):
    return [
        (event.name.removeprefix(name), dict(event.metadata))
        for event in mind.events.read()[0]
        if event.name.startswith(name)
    ]


def run(mind, *argv):
    return main(list(argv), open=lambda _: mind)


def test_a_new_memory_is_created(mind):
    id = store(mind).memory.id

    assert events(mind) == [("created", {"id": id, "type": "fact"})]
    (event,) = mind.events.read()[0]
    assert (event.time, event.measurements) == (mind.now(), {"count": 1})


def test_no_event_contains_a_text(mind):
    record = store(mind, title="Xylophone", tags=("yacht",), topic="zebra")
    saving.edit(mind, record, content="Quokkas are served at six")

    logged = (mind.folder / ".local" / "events.jsonl").read_text(encoding="utf-8").casefold()
    for word in ("served", "five", "yacht", "quokka", "xylophone"):
        assert word not in logged


def test_a_changed_memory_is_updated(mind):
    record = store(mind)
    changed = saving.edit(mind, record, tags=("drink",))
    text = saving.file_text(mind, changed).replace("at five", "at six")
    saving.rewrite(mind, changed, text)

    assert events(mind)[1:] == [("updated", {"id": record.memory.id, "type": "fact"})] * 2


def test_a_moved_memory_is_updated(mind):
    record = store(mind)
    saving.move(mind, [(record, ".mind/plans/tea.md")])

    assert events(mind)[1:] == [("updated", {"id": record.memory.id, "type": "plan"})]


def test_a_memory_with_another_path_alone_is_updated(mind):
    record = store(mind)
    (moved,) = saving.move(mind, [(record, ".mind/facts/tea.md")])
    (again,) = saving.move(mind, [(moved, ".mind/facts/green.md")])

    assert again.place.digest == moved.place.digest
    assert [name for name, _ in events(mind)] == ["created", "updated", "updated"]


def test_a_change_to_the_same_is_no_event(mind):
    record = store(mind, tags=("drink",))
    saving.edit(mind, record, tags=("drink",))

    assert [name for name, _ in events(mind)] == ["created"]


def test_a_duplicate_that_is_not_stored_is_no_event(mind):
    for _ in range(2):
        saving.store_once(mind, saving.draft(Kind.FACT, "Tea is served at five"))

    assert [name for name, _ in events(mind)] == ["created"]


def test_a_removed_memory_is_deleted(mind):
    id = store(mind).memory.id
    removing.remove(mind, id)

    assert events(mind)[1:] == [("deleted", {"id": id, "type": "fact"})]


def test_new_links_are_linked_once(mind):
    first = store(mind, "Tea grows on hills").memory.id
    second = store(mind, "Tea is picked by hand", links=(Link(to=first, type="refines"),))
    third = store(mind, "Tea is dried in the sun").memory.id
    links = (*second.memory.links, Link(to=third))
    saving.edit(mind, second, links=links)

    own = second.memory.id
    assert [data for name, data in events(mind) if name == "linked"] == [
        {"id": own, "to": first, "type": "refines"},
        {"id": own, "to": third, "type": "relates_to"},
    ]


def test_a_decision_supersedes_the_earlier_one_on_its_topic(mind):
    first, second = (
        decisions.save(
            mind, saving.draft(Kind.DECISION, text, topic="auth", confidence=0.7)
        ).record.memory.id
        for text in ("Use JWT", "Use PASETO")
    )

    assert events(mind) == [
        ("created", {"id": first, "type": "decision"}),
        ("created", {"id": second, "type": "decision"}),
        ("superseded", {"id": first, "by": second}),
    ]


def test_removing_a_successor_supersedes_the_memory_before_it(mind):
    first, second, third = (
        decisions.save(
            mind, saving.draft(Kind.DECISION, text, topic="auth", confidence=0.7)
        ).record.memory.id
        for text in ("Use JWT", "Use PASETO", "Use cookies")
    )
    removing.remove(mind, second)

    assert events(mind)[5:] == [
        ("deleted", {"id": second, "type": "decision"}),
        ("updated", {"id": third, "type": "decision"}),
        ("superseded", {"id": first, "by": third}),
    ]


def test_an_ingested_file_is_deleted_as_one(mind):
    (mind.project.root / "tea.md").write_text("# Green\n\nCool.\n\n# Black\n\nHot.\n")
    (report,) = ingest_files(mind, [str(mind.project.root / "tea.md")], Options()).files
    assert events(mind) == []
    assert [name for name, _ in events(mind, "mimo.ingest.")] == ["file"]
    id = report.ids[0].rpartition(".")[0]

    assert run(mind, "rm", id) == 0
    assert events(mind) == [("deleted", {"id": id, "type": "source"})]
    assert mind.events.read()[0][-1].measurements == {"count": len(report.ids)}


def test_undoing_and_redoing_are_events(mind):
    assert run(mind, "add", "Tea is served at five") == 0
    ((_, data),) = events(mind)
    assert run(mind, "undo") == 0
    assert run(mind, "undo") == 0

    assert events(mind)[1:] == [("deleted", data), ("created", data)]


def test_imported_memories_are_created_and_rolled_back_ones_deleted(mind, tmp_path):
    source = tmp_path / "outside.jsonl"
    for text in ("Tea is served at five", "Coffee is served at six"):
        store(mind, text)
    assert run(mind, "export", "-o", str(source)) == 0
    ids = [data["id"] for _, data in events(mind)]
    for id in ids:
        removing.remove(mind, id)
    before = len(events(mind))

    assert run(mind, "import", str(source)) == 0
    created = events(mind)[before:]
    assert [name for name, _ in created] == ["created"] * 2
    assert run(mind, "import", str(source), "--rollback") == 0

    assert sorted(data["id"] for _, data in events(mind)[before + 2 :]) == sorted(
        data["id"] for _, data in created
    )
    assert [name for name, _ in events(mind)[before + 2 :]] == ["deleted"] * 2


def test_a_restored_memory_is_created(mind):
    id, root = store(mind).memory.id, mind.project.root
    git(root, "init")
    git(root, "add", ".mind/facts")
    git(root, "commit", "-m", "tea")
    removing.remove(mind, id)
    revisions.restore(mind, id, "HEAD")

    assert [name for name, _ in events(mind)] == ["created", "deleted", "created"]


def test_a_log_that_cannot_be_written_does_not_prevent_saving(mind):
    first = store(mind).memory.id
    log = mind.folder / ".local" / "events.jsonl"
    log.unlink()
    log.mkdir()
    second = store(mind, "Coffee is served at six").memory.id

    removing.remove(mind, first)
    assert [path.stem for path in (mind.folder / "facts").iterdir()] == [second]


def test_a_save_holds_no_lock_of_the_event_log(mind):
    store(mind)
    assert [name for name, _ in events(mind)] == ["created"]
    assert not (mind.folder / ".local" / "events.lock").exists()


def test_purging_leaves_only_the_short_id(mind):
    secret = store(mind, "The door opens to swordfish").memory.id
    other = store(mind, "Tea is served at five", links=(Link(to=secret),)).memory.id
    _, place = mind.events.read()

    assert run(mind, "rm", secret, "--purge") == 0

    short = handle_of(secret)
    assert [data for _, data in events(mind)][:4] == [
        {"id": short, "type": "fact"},
        {"id": other, "type": "fact"},
        {"id": other, "to": short, "type": "relates_to"},
        {"id": short, "type": "fact"},
    ]
    assert b"swordfish" not in (mind.folder / ".local" / "events.jsonl").read_bytes()
    (deleted,), _ = EventLog(mind.project.root).since(place)
    assert (deleted.name, deleted.metadata["id"]) == ("mimo.memory.deleted", short)


def test_events_are_listed_by_their_name(mind, capsys):
    assert run(mind, "add", "Tea is served at five") == 0
    capsys.readouterr()
    assert run(mind, "events", "mimo.memory", "--json") == 0

    (event,) = json.loads(capsys.readouterr().out)["events"]
    assert event["name"] == "mimo.memory.created"
    assert (mind.folder / "facts" / f"{event['metadata']['id']}.md").exists()
