"""`mind undo`: what commands removed or replaced comes back, byte for byte."""

import errno
import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mimo import disk
from mimo.commands import all_commands
from mimo.commands.invoke import Caller, invoke
from mimo.commands.spec import Surface
from mimo.config import load
from mimo.errors import Conflict, Invalid, NotFound, StorageFailed
from mimo.failures import failure
from mimo.guard.policy import Call, Operation
from mimo.index.index import Index
from mimo.memory.model import Kind
from mimo.memory_tool import MemoryTool
from mimo.mind import Mind
from mimo.operations import lookup, saving, undoing
from mimo.operations.undoing import Action
from mimo.rendering import PlainScreen
from mimo.rendering.results import render, show_on
from mimo.store import files
from mimo.store.init import init
from mimo.store.projects import explicit
from mimo.store.trash import Trash
from tests.conftest import NOW, Clock, git

COMMANDS = all_commands()


def run(mind: Mind, path: str, by: str | None = None, /, **arguments: object) -> Any:
    surface = Surface.MCP if by else Surface.CLI
    return invoke(COMMANDS.at(path), mind, Caller(surface=surface, name=by), arguments)


def added(mind: Mind, content: str = "Staging is reset", **fields: object) -> str:
    return str(run(mind, "add", content=content, **fields).id)


def contents(mind: Mind) -> dict[str, bytes]:
    """Returns every file that people can see, by its path."""
    root = mind.project.root
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not {".local", ".index", ".git", ".gitignore"} & set(path.parts)
    }


def path_of(mind: Mind, id: str) -> Path:
    return mind.project.root / lookup.one(mind, id).place.path


def test_a_removed_memory_comes_back_and_goes_again(mind: Mind) -> None:
    id_ = added(mind)
    before = contents(mind)
    removed = run(mind, "rm", id=id_)
    assert removed.undo is not None

    undone = run(mind, "undo")
    assert [(record.action, record.changed) for record in undone.files] == [(Action.RESTORE, False)]
    assert contents(mind) == before
    assert lookup.one(mind, id_).memory.content == "Staging is reset"
    run(mind, "undo")
    with pytest.raises(NotFound):
        lookup.one(mind, id_)
    run(mind, "undo")
    assert contents(mind) == before


def test_an_undo_ends_the_approval_that_a_decision_supersedes_and_a_redo_restores_it(
    mind: Mind,
) -> None:
    mind.trust.follow(follow=False)
    first, second = (
        run(mind, "save decision", topic="queue", decision=text, reasoning="Known").id
        for text in ("Use Redis", "Use Rabbit")
    )
    path = path_of(mind, second)
    text = path.read_text("utf-8").replace("Use Rabbit", "Use nothing")
    run(mind, "undo")
    path.write_text(text, "utf-8")  # As a pull could.
    assert run(mind, "show", id=first).superseded_by is None
    path.unlink()
    run(mind, "undo")
    path.write_text(text, "utf-8")
    assert run(mind, "show", id=first).superseded_by == second


@pytest.mark.parametrize(
    "words",
    [
        ("add", {"content": "Another fact"}),
        ("edit", {"id": "OLD", "content": "Staging is reset daily"}),
        ("edit", {"id": "OLD", "file_text": "FILE"}),
        ("rm", {"id": "OLD"}),
        ("rm", {"id": "MIDDLE"}),
        ("memory delete", {"id": "OLD"}),
        ("keep", {"id": "OLD"}),
        ("evolve outcome", {"id": "NEW", "outcome": "FAILED", "reason": "too slow"}),
        ("evolve supersede", {"id": "NEW", "decision": "Use Kafka", "reasoning": "Fast"}),
        ("save decision", {"topic": "queue", "decision": "Use Kafka", "reasoning": "Fast"}),
        ("ingest", {"path": "DOC", "force": True}),
        ("rm", {"id": "SOURCE"}),
        ("rm", {"id": "CHUNK"}),
        ("value put", {"namespace": "agent.build", "key": "last", "value": 2}),
        ("value rm", {"namespace": "agent.build", "key": "last"}),
        ("value put", {"namespace": "agent.build", "key": "last", "value": 2, "ttl_seconds": 60}),
        ("context write", {"file": ["CLAUDE.md"]}),
        ("config", {"key": "commits", "value": "7"}),
        ("review keep", {"id": "OLD", "kind": "untrusted"}),
    ],
    ids=lambda words: f"{words[0]} {' '.join(words[1])}",
)
def test_every_command_is_undone_and_redone(
    mind: Mind, words: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, arguments = words
    root = mind.project.root
    monkeypatch.chdir(root)
    (root / "doc.md").write_text("# One\n\nA first section.\n\n# Two\n\nA second one.\n", "utf-8")
    (root / "CLAUDE.md").write_text("# Ours\n", "utf-8")
    ingested = run(mind, "ingest", path=str(root / "doc.md"))
    names = {"OLD": added(mind), "SOURCE": ingested.source_id, "CHUNK": ingested.ids[0]}
    names["FIRST"] = run(
        mind, "save decision", topic="queue", decision="Use Redis", reasoning="Known"
    ).id
    names["MIDDLE"] = run(
        mind, "save decision", topic="queue", decision="Use Rabbit", reasoning="Known"
    ).id
    names["NEW"] = run(
        mind, "save decision", topic="queue", decision="Use SQS", reasoning="Known"
    ).id
    names["DOC"] = str(root / "doc.md")
    names["FILE"] = path_of(mind, names["OLD"]).read_text("utf-8").replace("is reset", "is wiped")
    run(mind, "value put", namespace="agent.build", key="last", value=1)
    (root / "doc.md").write_text("# One\n\nA section that changed.\n", "utf-8")
    mind.trust.follow(follow=False)
    mind.trust.revoke([lookup.one(mind, names["OLD"]).place.digest])
    kept = reviews(root)
    arguments = {k: names.get(v, v) if isinstance(v, str) else v for k, v in arguments.items()}
    before = contents(mind)

    run(mind, path, **arguments)
    after = contents(mind)
    reviewed = reviews(root)
    assert (after, reviewed) != (before, kept)

    run(mind, "undo")
    assert contents(mind) == before
    assert reviews(root) == kept
    run(mind, "undo")
    assert contents(mind) == after
    assert reviews(root) == reviewed


def reviews(root: Path) -> dict[str, bytes]:
    """Returns the user's review decisions, by file."""
    local = root / ".mind" / ".local"
    files = (path for path in local.glob("reviewed-*") if path.suffix != ".lock")
    return {path.name: path.read_bytes() for path in files}


def test_a_restored_value_replaces_the_temporary_one(mind: Mind) -> None:
    place = {"namespace": "agent.u", "key": "K"}
    run(mind, "value put", **place, value="permanent")
    run(mind, "value put", **place, value="temporary", ttl_seconds=600)
    run(mind, "value put", **place | {"key": "other"}, value="stays", ttl_seconds=600)

    run(mind, "undo")

    assert run(mind, "value get", **place).value == "permanent"
    assert run(mind, "value get", **place | {"key": "other"}).value == "stays"


def test_an_import_and_its_rollback_are_undone(mind: Mind, tmp_path: Path) -> None:
    from tests.mama_databases import example

    database = example(tmp_path / "mama.db")
    before = contents(mind)
    run(mind, "import mama", db=str(database))
    imported = contents(mind)
    run(mind, "import mama", db=str(database), rollback=True)
    assert contents(mind) == before

    run(mind, "undo")
    assert contents(mind) == imported
    run(mind, "import mama", db=str(database), rollback=True)
    assert contents(mind) == before


def test_one_command_is_one_change_newest_first(mind: Mind, clock: Clock) -> None:
    first, second = added(mind, "One"), added(mind, "Two")
    clock.forward(minutes=1)
    run(mind, "rm", id=first)
    rows = run(mind, "undo", list=True).changes

    assert [(row.command, len(row.files), row.undone) for row in rows] == [
        ("rm", 1, False),
        ("add", 1, False),
        ("add", 1, False),
    ]
    run(mind, "undo", id=rows[0].id)
    rows = run(mind, "undo", list=True).changes
    assert [(row.command, row.undone) for row in rows[:2]] == [("undo", False), ("rm", True)]
    assert rows[0].undoes == rows[1].id
    assert second in run(mind, "undo", list=True, limit=4).changes[-2].files[0]


def test_a_file_that_changed_since_is_not_overwritten(mind: Mind) -> None:
    id_ = added(mind)
    run(mind, "edit", id=id_, importance=0.9)
    change = run(mind, "undo", list=True).changes[0].id
    path = path_of(mind, id_)
    by_hand = path.read_bytes() + b"By hand.\n"
    path.write_bytes(by_hand)

    with pytest.raises(Conflict, match="has changed since `mind edit`") as refused:
        run(mind, "undo")
    assert "--force" in (refused.value.hint or "")
    assert path.read_bytes() == by_hand

    run(mind, "undo", id=change, force=True)
    assert b"By hand" not in path.read_bytes()
    run(mind, "undo")
    assert path.read_bytes() == by_hand


def refusing_second(asked: list[Path], fail: Callable[[], None]) -> Callable[..., None]:
    """Returns `Path.unlink` that notes the files of sources, and fails at the second one."""
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.parent.name == "sources" and path.suffix == ".md":
            asked.append(path)
            if len(asked) == 2:
                fail()
        unlink(path, missing_ok)

    return refuse


@pytest.mark.parametrize("error", [OSError(errno.EPERM, "not permitted"), KeyboardInterrupt()])
def test_an_undo_that_fails_at_a_file_undoes_none(
    mind: Mind, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    _ingested(mind)
    before = contents(mind)
    asked = list[Path]()

    def fail() -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refusing_second(asked, fail))
        with pytest.raises((StorageFailed, KeyboardInterrupt)) as caught:
            run(mind, "undo")

    if isinstance(caught.value, StorageFailed):
        assert caught.value.hint.endswith("it was not changed; nothing was undone")
    assert len(asked) == 2
    assert contents(mind) == before
    assert [each.undone for each in undoing.changes(mind, 9)] == [False]
    run(mind, "undo")
    assert not any(path.startswith(".mind/sources/") for path in contents(mind))


def test_an_undo_that_can_not_be_put_back_names_the_file(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ingested(mind)
    before = contents(mind)
    asked = list[Path]()

    def fail() -> None:
        monkeypatch.setattr(files, "write_new", full)
        raise OSError(errno.EPERM, "not permitted")

    def full(path: Path, data: bytes, mode: int = 0) -> None:
        raise failure("write", path, OSError(errno.ENOSPC, "full"))

    monkeypatch.setattr(Path, "unlink", refusing_second(asked, fail))
    with pytest.raises(StorageFailed, match="no space left") as caught:
        run(mind, "undo")
    monkeypatch.undo()

    first = asked[0].relative_to(mind.project.root)
    assert caught.value.hint.endswith(f"`{first}` stays undone; `mind undo` puts it back")
    run(mind, "undo")
    assert contents(mind) == before


def _ingested(mind: Mind) -> None:
    """Ingests two files, as the last change."""
    folder = mind.project.root / "notes"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe text of {name}.\n", "utf-8")
    run(mind, "ingest", path=str(folder))


def test_a_later_change_of_the_file_is_named(mind: Mind) -> None:
    id_ = added(mind)
    run(mind, "edit", id=id_, importance=0.9)
    run(mind, "edit", id=id_, importance=0.1)
    later, first, _ = run(mind, "undo", list=True).changes

    with pytest.raises(Conflict) as refused:
        run(mind, "undo", id=first.id)
    assert f"mind undo {later.id}" in (refused.value.hint or "")
    run(mind, "undo", id=later.id)
    run(mind, "undo", id=first.id)
    assert lookup.one(mind, id_).memory.importance == 0.5


def test_an_empty_id_names_no_change(mind: Mind) -> None:
    run(mind, "add", content="Tea is green")

    with pytest.raises(NotFound, match="trash has no ``"):
        run(mind, "undo", id="")


def test_a_dry_run_changes_nothing(mind: Mind) -> None:
    id_ = added(mind)
    run(mind, "rm", id=id_)
    before = contents(mind)
    shown = run(mind, "undo", dry_run=True)

    assert (shown.dry_run, shown.redo, shown.files[0].action) == (True, None, Action.RESTORE)
    assert contents(mind) == before
    assert len(run(mind, "undo", list=True).changes) == 2


def test_a_change_is_not_undone_twice(mind: Mind) -> None:
    run(mind, "rm", id=added(mind))
    change = run(mind, "undo", list=True).changes[0].id
    run(mind, "undo", id=change)
    with pytest.raises(NotFound, match="has nothing to undo"):
        run(mind, "undo", id=change)


def last_note(result: Any, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    screen = PlainScreen()
    show_on(screen, result)
    screen.finish(pager=False)
    return capsys.readouterr().err


@pytest.mark.usefixtures("ann")
@pytest.mark.parametrize("is_source", [False, True])
def test_the_note_of_a_restore_states_the_effect_of_an_undo(
    mind: Mind, capsys: pytest.CaptureFixture[str], is_source: bool
) -> None:
    git(mind.project.root, "init", "-q")
    guide = mind.project.root / "guide.md"
    guide.write_text("# Guide\n\nTea is hot and served at four.\n", "utf-8")

    def store() -> str:
        return str(run(mind, "ingest", path=str(guide)).source_id)

    id_ = store() if is_source else added(mind)
    run(mind, "sync")
    committed = contents(mind)
    unchanged = run(mind, "restore", id=id_)
    assert (unchanged.replaced, unchanged.undo) == (None, None)
    assert last_note(unchanged, capsys) == ""

    run(mind, "rm", id=id_)
    before = contents(mind)
    brought = run(mind, "restore", id=id_)
    assert contents(mind) == committed
    assert last_note(brought, capsys) == "note: `mind undo` removes it again\n"
    run(mind, "undo")
    assert contents(mind) == before

    run(mind, "undo")
    if is_source:
        guide.write_text("# Guide\n\nTea is cold and served at five.\n", "utf-8")
        store()
    else:
        run(mind, "edit", id=id_, content="Staging is reset at night")
    before = contents(mind)
    replaced = run(mind, "restore", id=id_)
    assert replaced.replaced
    expected = "note: the text before is in the trash; `mind undo` brings it back\n"
    assert last_note(replaced, capsys) == expected
    run(mind, "undo")
    assert contents(mind) == before


@pytest.mark.usefixtures("ann")
def test_restore_keeps_uncommitted_edits(mind: Mind) -> None:
    git(mind.project.root, "init", "-q")
    id_ = added(mind)
    run(mind, "sync")
    run(mind, "edit", id=id_, content="Never committed")
    restored = run(mind, "restore", id=id_)

    assert lookup.one(mind, id_).memory.content == "Staging is reset"
    run(mind, "undo", id=restored.undo)
    assert lookup.one(mind, id_).memory.content == "Never committed"


def test_approvals_stay_as_they_were(mind: Mind) -> None:
    mind.trust.follow(follow=False)
    id_ = added(mind)
    path = path_of(mind, id_)
    path.write_bytes(path.read_bytes() + b"By another user.\n")
    foreign = lookup.one(mind, id_).place.digest
    run(mind, "edit", "claude-code", id=id_, importance=0.9)
    run(mind, "undo")
    assert lookup.one(mind, id_).place.digest == foreign
    assert not mind.trust.trusted(foreign)

    own = added(mind, "Approved text")
    approved = lookup.one(mind, own).place.digest
    run(mind, "rm", id=own)
    run(mind, "undo")
    assert mind.trust.trusted(approved)
    run(mind, "rm", id=own)
    mind.trust.revoke([approved])
    run(mind, "undo")
    assert not mind.trust.trusted(approved)


def test_a_private_memory_is_private_in_the_trash_and_after(mind: Mind) -> None:
    id_ = added(mind, private=True)
    path = path_of(mind, id_)
    path.chmod(0o600)
    run(mind, "rm", id=id_)
    (entry,) = [
        p
        for p in (mind.folder / ".local" / "trash").iterdir()
        if b"Staging is reset" in p.read_bytes()
    ]
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600

    run(mind, "undo")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lookup.one(mind, id_).place.private


def test_purge_leaves_nothing_in_the_trash(mind: Mind) -> None:
    other, id_ = added(mind, "Harmless"), added(mind, "Hunter2 and more")
    run(mind, "edit", id=id_, content="Hunter2 and much more")
    removed = run(mind, "rm", id=id_, purge=True)

    assert removed.undo is None
    trash = mind.folder / ".local" / "trash"
    assert all(b"Hunter2" not in path.read_bytes() for path in trash.iterdir())
    assert run(mind, "undo", list=True).changes[0].files == (f".mind/facts/{other}.md",)


@pytest.mark.attack("undo copies of other files lost")
def test_purge_keeps_the_copies_of_other_files_of_that_name(mind: Mind) -> None:
    for folder in ("facts", "decisions"):
        (mind.folder / folder).mkdir(exist_ok=True)
    (mind.folder / "facts" / "auth.md").write_text("Hunter2", "utf-8")
    other = mind.folder / "decisions" / "auth.md"
    other.write_text("---\nid: other\n---\nKeep this\n", "utf-8")
    run(mind, "value put", namespace="agent.x", key="auth", value="important: auth")
    run(mind, "value rm", namespace="agent.x", key="auth")
    run(mind, "rm", id="other")
    run(mind, "rm", id="auth", purge=True)

    run(mind, "undo", id=run(mind, "undo", list=True).changes[0].id)
    assert "Keep this" in other.read_text("utf-8")
    run(mind, "undo", id=run(mind, "undo", list=True).changes[2].id)
    assert run(mind, "value get", namespace="agent.x", key="auth").value == "important: auth"


def test_purge_finds_the_copies_at_an_earlier_path(mind: Mind) -> None:
    id_ = added(mind, "Hunter2 and more")
    old, new = f"/memories/facts/{id_}.md", "/memories/facts/b.md"
    tool = MemoryTool(mind.project.root)
    assert not tool.handle({"command": "rename", "old_path": old, "new_path": new}).is_error
    assert path_of(mind, id_).name == "b.md"
    run(mind, "rm", id=id_, purge=True)

    assert run(mind, "undo", list=True).changes == ()
    assert not list((mind.folder / ".local" / "trash").iterdir())


def test_purge_reports_another_file_with_the_id(mind: Mind) -> None:
    id_ = added(mind, "Hunter2 and more")
    place = f".mind/private/facts/{id_}.md"
    (copy := mind.project.root / place).parent.mkdir(parents=True)
    copy.write_bytes(path_of(mind, id_).read_bytes())

    notice = run(mind, "rm", id=id_, purge=True).notice
    assert notice == f"{place} has the same id: repeat the command to purge it too"
    assert run(mind, "rm", id=id_, purge=True).notice is None
    assert not copy.exists()


def holding(mind: Mind, *words: bytes) -> list[Path]:
    """Returns the files in the project and in $MIND_HOME that contain one of these words."""
    every = [path for top in (mind.project.root, mind.home) for path in top.rglob("*")]
    texts = {path: path.read_bytes().lower() for path in every if path.is_file()}
    return [path for path, text in texts.items() if any(word in text for word in words)]


def test_purge_leaves_no_copy_in_any_file(mind: Mind) -> None:
    id_ = added(mind, "Swordfish opens the door\n\nand the cellar")
    point = run(mind, "save checkpoint", summary="Stopped at the swordfish").id
    tea = added(mind, "Tea is at five")
    run(mind, "edit", id=id_, content="Swordfish opens the door\n\nand the cellar, too")
    (sessions := mind.folder / ".local" / "sessions").mkdir()
    (sessions / "a.json").write_text(f'{{"shown": ["{id_}#12ab", "{tea}#12ab"]}}', "utf-8")
    for query in ("swordfish cellar", "tea"):
        assert run(mind, "search", query=query).results
    mind.accesses.flush()
    assert {path.name for path in holding(mind, b"swordfish")} >= {
        "accesses.log", "trust.db", "a.json", "events.jsonl",
    }  # fmt: skip

    other = mind.reopened()  # As another process that has the index open.
    assert len(run(other, "list").memories) == 3
    run(mind, "rm", id=id_, purge=True)
    run(mind, "rm", id=point, purge=True)
    assert holding(mind, b"swordfish", b"cellar") == []
    for each in (mind, other, mind.reopened()):
        assert [row.id for row in run(each, "search", query="tea five").results] == [tea]
    assert tea in mind.accesses.uses()
    assert tea in (sessions / "a.json").read_text("utf-8")


def test_purge_reports_what_may_be_left(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = added(mind, "Swordfish opens the door")
    assert run(mind, "search", query="swordfish").results
    (mind.folder / ".local" / "accesses.lock").unlink(missing_ok=True)
    (mind.folder / ".local" / "accesses.lock").mkdir()

    def full(index: Index) -> None:
        raise StorageFailed("no space left")

    monkeypatch.setattr(Index, "purge", full)
    notice = run(mind, "rm", id=id_, purge=True).notice
    assert notice.startswith("a file in `.mind/.local` may still have its id (")
    assert notice.endswith(
        f"the index may still have its words (no space left): remove `{mind.index_folder}`"
    )
    assert run(mind, "list").memories == ()


def test_purge_reports_that_another_process_reads_the_index(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = added(mind, "Swordfish opens the door")
    assert run(mind, "search", query="swordfish").results
    monkeypatch.setattr(disk, "WAIT_SECONDS", 0.01)
    (path,) = mind.index_folder.glob("index-v*.db")
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM memories").fetchone() == (1,)
        notice = run(mind, "rm", id=id_, purge=True).notice
    assert notice.startswith("the index may still have its words (another process is reading")
    run(mind, "undo", id="all", purge=True)
    assert holding(mind, b"swordfish") == []


def test_a_purged_change_leaves_no_copy_in_any_file(mind: Mind) -> None:
    added(mind, "Swordfish opens the door")
    run(mind, "undo")
    kept = added(mind, "Harmless")
    run(mind, "edit", id=kept, content="Harmless without a herring")
    run(mind, "undo")
    run(mind, "undo", id="all", purge=True)
    assert holding(mind, b"swordfish", b"herring") == []
    assert kept in (mind.folder / ".local" / "events.jsonl").read_text("utf-8")


def test_purge_removes_the_note_from_claude_md_and_its_copies(mind: Mind) -> None:
    notes = mind.project.root / "CLAUDE.md"
    notes.write_text("Our rules\n", "utf-8")
    swordfish, kept = added(mind, "Swordfish opens the door. Ask Ann"), added(mind, "Tea at five")
    run(mind, "context write")
    run(mind, "edit", id=kept, content="Tea is at six")
    run(mind, "context write")
    notice = run(mind, "rm", id=swordfish, purge=True).notice
    assert notice.startswith("its lines in CLAUDE.md were removed")
    assert "Tea is at six" in notes.read_text("utf-8")
    assert notes.read_text("utf-8").endswith("Our rules\n")
    run(mind, "edit", id=kept, content="Tea is at seven")
    assert run(mind, "context write").files[0].changed
    assert holding(mind, b"swordfish") == []

    other = added(mind, "Herring opens the cellar")
    notes.write_text(notes.read_text("utf-8") + "Remember: HERRING opens the *cellar*!\n", "utf-8")
    notice = run(mind, "rm", id=other, purge=True).notice
    assert notice == "CLAUDE.md may still have its text: remove it by hand"


def test_purge_removes_quotes_of_an_earlier_version_and_in_any_language(mind: Mind) -> None:
    notes = mind.project.root / "CLAUDE.md"
    id_, korean = added(mind, "Swordfish opens the door"), added(mind, "비밀번호")
    run(mind, "context write")
    run(mind, "edit", id=id_, content="The door is shut")
    assert run(mind, "rm", id=korean, purge=True).notice
    assert run(mind, "rm", id=id_, purge=True).notice
    assert "Swordfish" not in notes.read_text("utf-8")
    assert holding(mind, b"swordfish", "비밀번호".encode()) == []


@pytest.fixture
def repository(project: Path, ann: None) -> Path:
    git(project, "init", "-q", "-b", "main")
    (project / "app.py").write_text("x = 1\n", "utf-8")
    git(project, "add", "app.py")
    return project


def published(repository: Path) -> str:
    """Commits everything that is staged, and returns its changes."""
    git(repository, "commit", "-q", "--allow-empty", "-m", "mine")
    return git(repository, "log", "-p", "--format=")


@pytest.mark.parametrize("is_first", [True, False])
def test_purge_unstages_the_text(repository: Path, mind: Mind, is_first: bool) -> None:
    if not is_first:
        git(repository, "commit", "-qm", "app")
    id_, other = added(mind, "Hunter2 and more"), added(mind, "Harmless")
    git(repository, "add", "-A")
    removed = run(mind, "rm", id=id_, purge=True)
    assert removed.notice == f"git had the text staged; it was unstaged: .mind/facts/{id_}.md"
    changes = published(repository)
    assert "Hunter2" not in changes
    assert other in changes
    last = git(repository, "rev-parse", "--short", "HEAD")
    notice = run(mind, "rm", id=other, purge=True).notice
    assert notice == f"git's history keeps it, such as in {last}: revoke a secret"
    assert run(mind, "rm", id=added(mind, "New"), purge=True).notice is None


def test_purge_unstages_a_later_text_and_the_text_at_another_path(
    repository: Path, mind: Mind
) -> None:
    id_ = added(mind, "Harmless")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "memory")
    run(mind, "edit", id=id_, content="Hunter2 and more")
    git(repository, "add", "-A")
    old, new = f"/memories/facts/{id_}.md", "/memories/facts/b.md"
    tool = MemoryTool(mind.project.root)
    assert not tool.handle({"command": "rename", "old_path": old, "new_path": new}).is_error
    run(mind, "rm", id=id_, purge=True)
    assert "Hunter2" not in published(repository)
    assert git(repository, "status", "--short") == f"D .mind/facts/{id_}.md"


def test_purge_in_a_folder_of_a_repository_unstages_the_text(repository: Path, home: Path) -> None:
    inner = repository / "services" / "api"
    inner.mkdir(parents=True)
    init(inner, home, now=NOW)
    mind = Mind(home=home, project=explicit(inner, home), clock=lambda: NOW, environ={})
    id_ = added(mind, "Harmless")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "memory")
    run(mind, "edit", id=id_, content="Hunter2 and more")
    git(repository, "add", "-A")
    run(mind, "rm", id=id_, purge=True)
    assert "Hunter2" not in published(repository)
    assert git(repository, "ls-files").count("/.mind/facts/") == 1


@pytest.mark.parametrize("folder", [".", "services/api"])
@pytest.mark.parametrize("is_first", [True, False])
def test_purge_unstages_the_notes_that_quote_the_memory(
    repository: Path, home: Path, folder: str, is_first: bool
) -> None:
    inner = repository / folder
    inner.mkdir(parents=True, exist_ok=True)
    init(inner, home, now=NOW)
    mind = Mind(home=home, project=explicit(inner, home), clock=lambda: NOW, environ={})
    notes = inner / "CLAUDE.md"
    if not is_first:
        notes.write_text("Our rules\n", "utf-8")
        git(repository, "add", "-A")
        git(repository, "commit", "-qm", "rules")
    id_ = added(mind, "Swordfish opens the door")
    run(mind, "context write")
    (repository / "app.py").write_text("x = 2\n", "utf-8")
    git(repository, "add", "-A")
    notice = run(mind, "rm", id=id_, purge=True).notice
    assert "git had the text staged; it was unstaged: CLAUDE.md" in notice
    shown = published(repository)
    assert "Swordfish" not in shown
    assert "x = 2" in shown
    assert "Our rules" in notes.read_text("utf-8") or is_first


def test_purge_keeps_notes_staged_that_do_not_quote_the_memory(
    repository: Path, mind: Mind
) -> None:
    added(mind, "Tea is at five")
    run(mind, "context write")
    git(repository, "add", "-A")
    id_ = added(mind, "Swordfish opens the door")
    assert run(mind, "rm", id=id_, purge=True).notice is None
    assert "Tea is at five" in git(repository, "show", ":CLAUDE.md")


def test_a_purged_change_unstages_its_text_in_the_notes(repository: Path, mind: Mind) -> None:
    id_ = added(mind, "Swordfish opens the door")
    run(mind, "context write")
    git(repository, "add", "-A")
    run(mind, "rm", id=id_)
    run(mind, "context write")
    run(mind, "undo", id="all", purge=True)
    assert "Swordfish" not in published(repository)


def test_purge_warns_if_the_text_cannot_be_unstaged(
    repository: Path, mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = added(mind, "Hunter2 and more")
    git(repository, "add", "-A")
    (repository / ".git" / "index.lock").touch()
    monkeypatch.setattr(disk, "WAIT_SECONDS", 0.2)
    notice = run(mind, "rm", id=id_, purge=True).notice
    assert notice.startswith("git may still have the text staged")
    assert f"`git rm -r --cached -- .mind/facts/{id_}.md`" in notice


def test_a_purged_change_unstages_its_text_unless_it_is_on_the_disk(
    repository: Path, mind: Mind
) -> None:
    added(mind, "Hunter2 and more")
    run(mind, "value put", namespace="agent.x", key="key", value="Hunter2")
    kept = added(mind, "Harmless")
    run(mind, "edit", id=kept, content="Tea")
    git(repository, "add", "-A")
    changes = run(mind, "undo", list=True).changes
    run(mind, "undo", id=changes[-1].id)
    run(mind, "value rm", namespace="agent.x", key="key")
    run(mind, "undo", id="all", purge=True)
    shown = published(repository)
    assert "Hunter2" not in shown
    assert "Tea" in shown


@pytest.mark.attack("undo copies of other files lost")
def test_purge_keeps_the_copies_of_another_memory_at_an_earlier_path(mind: Mind) -> None:
    id_ = added(mind, "Hunter2 and more")
    old, new = f"/memories/facts/{id_}.md", "/memories/facts/b.md"
    tool = MemoryTool(mind.project.root)
    assert not tool.handle({"command": "rename", "old_path": old, "new_path": new}).is_error
    (mind.folder / f"facts/{id_}.md").write_text("---\nid: other\n---\nTea\n", "utf-8")
    run(mind, "rm", id="other")
    run(mind, "rm", id=id_, purge=True)

    assert len(run(mind, "undo", list=True).changes) == 1
    run(mind, "undo")
    assert b"Tea" in path_of(mind, "other").read_bytes()


def test_single_changes_and_all_are_purged(mind: Mind) -> None:
    for text in ("One", "Two", "Three"):
        added(mind, text)
    newest = run(mind, "undo", list=True).changes[0].id
    assert run(mind, "undo", id=newest, purge=True).purged == 1
    assert run(mind, "undo", id="all", purge=True).purged == 2
    assert run(mind, "undo", list=True).changes == ()
    with pytest.raises(NotFound, match="no change to undo"):
        run(mind, "undo")


def test_scan_looks_into_the_trash(mind: Mind) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    id_ = added(mind)
    path = path_of(mind, id_)
    path.write_text(path.read_text("utf-8") + f"The token is {token}\n", "utf-8")
    run(mind, "rm", id=id_)

    (secret,) = run(mind, "scan").found
    assert (secret.kind, secret.file) == ("github_token", f".mind/facts/{id_}.md")
    run(mind, "undo", id=secret.trash, purge=True)
    assert run(mind, "scan").clean


def test_nothing_in_the_trash_is_found_or_staged(mind: Mind) -> None:
    git(mind.project.root, "init", "-q")
    run(mind, "rm", id=added(mind, "Xylophone in the trash"))

    assert not [
        row for row in run(mind, "search", query="xylophone").results if "Xylo" in row.title
    ]
    listed = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=mind.project.root, check=True,
        capture_output=True, encoding="utf-8",
    ).stdout  # fmt: skip
    assert ".local" not in listed


def test_the_oldest_changes_go_when_the_trash_is_full_or_old(mind: Mind, clock: Clock) -> None:
    config = mind.home / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text("[trash]\nmegabytes = 1\ndays = 10\n", "utf-8")
    mind = mind.reopened()
    assert load(user=config, project=None)["trash.days"] == 10
    ids = [added(mind, f"{n} " + "word" * 22_500) for n in range(14)]
    for id_ in ids:
        clock.forward(minutes=1)
        run(mind, "rm", id=id_)
    rows = run(mind, "undo", list=True).changes
    assert [row.command for row in rows] == ["rm"] * 12

    clock.forward(days=11)
    added(mind, "Much later")
    assert [row.command for row in run(mind, "undo", list=True).changes] == ["add", "rm"]


def test_a_command_killed_before_its_change_has_nothing_to_undo(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = added(mind)
    before = contents(mind)
    announce = files._announce

    def killed(results: Any) -> None:
        announce(results)
        raise SystemExit  # as if the process ended here

    with monkeypatch.context() as patched:
        patched.setattr(files, "_announce", killed)
        patched.setattr("mimo.store.trash.Recorder.forget_if", lambda *_: None)
        with pytest.raises(SystemExit):
            run(mind, "rm", id=id_)
    assert contents(mind) == before
    assert len(run(mind, "undo", list=True).changes) == 2
    with pytest.raises(NotFound, match="has nothing to undo"):
        run(mind, "undo")
    assert contents(mind) == before


def test_a_command_that_fails_leaves_no_entry(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = added(mind)
    monkeypatch.setattr(Path, "unlink", _full)
    with pytest.raises(Exception, match="no space left"):
        run(mind, "rm", id=id_)
    monkeypatch.undo()
    monkeypatch.setenv("MIND_HOME", str(mind.home))
    assert [row.command for row in run(mind, "undo", list=True).changes] in (["add"], ["rm", "add"])
    assert lookup.one(mind, id_).memory.content == "Staging is reset"


def _full(path: Path, **_: object) -> None:
    raise OSError(28, "No space left on device", str(path))


def test_the_trash_works_without_git_and_for_another_process(mind: Mind, home: Path) -> None:
    run(mind, "rm", id=added(mind))
    other = Mind.open(mind.project.root, environ={"MIND_HOME": str(home), **os.environ})
    assert not shutil.which("git") or not (mind.project.root / ".git").exists()
    assert run(other, "undo").files[0].action is Action.RESTORE


def test_an_undo_is_in_the_events(mind: Mind) -> None:
    run(mind, "rm", id=added(mind))
    run(mind, "undo")
    last = mind.events.read()[0][-1]
    assert (last.name, last.metadata["command"], last.measurements["files"]) == (
        "mimo.undo", "rm", 1,
    )  # fmt: skip


def test_outside_of_a_command_nothing_is_recorded(mind: Mind) -> None:
    saving.store(mind, saving.draft(Kind.FACT, "By a hook"))
    with pytest.raises(NotFound):
        run(mind, "undo")


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Returns the folders whose names were flushed to the disk."""
    flushed: list[Path] = []
    flush = disk.flush_folder

    def spy(folder: Path) -> None:
        flushed.append(folder)
        flush(folder)

    monkeypatch.setattr(disk, "flush_folder", spy)
    return flushed


def test_an_undo_is_on_the_disk_even_if_it_only_restores_files(
    mind: Mind, named: list[Path]
) -> None:
    id_ = added(mind)
    trash = mind.project.root / ".mind/.local/trash"
    run(mind, "rm", id=id_)
    named.clear()

    run(mind, "undo")
    assert trash in named


def test_a_replaced_text_is_on_the_disk_if_the_command_first_created_a_file(
    mind: Mind, named: list[Path]
) -> None:
    root = mind.project.root
    (root / "old.md").write_text("before")
    call = Call(tool="mind_import", operation=Operation.WRITE, at=mind.now())
    with undoing.recorded(mind, call, command="import", is_tool=True):
        files.replace(root / "new.md", b"new")
        named.clear()
        files.replace(root / "old.md", b"after")

    assert named[0] == root / ".mind/.local/trash"


def test_the_name_of_an_entry_is_flushed_once(mind: Mind, named: list[Path]) -> None:
    root = mind.project.root
    for name in ("a.md", "b.md", "c.md"):
        (root / name).write_text("before")
    call = Call(tool="mind_import", operation=Operation.WRITE, at=mind.now())
    with undoing.recorded(mind, call, command="import", is_tool=True):
        files.replace(root / "new.md", b"new")
        named.clear()
        for name in ("a.md", "b.md", "c.md"):
            files.replace(root / name, b"after")

    assert named.count(root / ".mind/.local/trash") == 1


def test_texts_are_restored_after_a_failed_flush_of_the_name(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = mind.project.root
    for name in ("a.md", "b.md"):
        (root / name).write_text("before")
    call = Call(tool="mind_import", operation=Operation.WRITE, at=mind.now())

    def broken(folder: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), f"{folder}")

    with undoing.recorded(mind, call, command="import", is_tool=True) as recorder:
        files.replace(root / "new.md", b"new")
        with monkeypatch.context() as patched:
            patched.setattr(disk, "flush_folder", broken)
            with pytest.raises(StorageFailed):
                files.replace(root / "a.md", b"after")
        assert (root / "a.md").read_text() == "before"
        files.replace(root / "b.md", b"after")

    assert recorder.id
    kept = {copy.path: copy.before for copy in mind.trash.kept(recorder.id)}
    assert kept == {"new.md": None, "b.md": b"before"}


def test_a_later_change_does_not_hide_that_an_earlier_one_cannot_be_undone(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = mind.project.root
    call = Call(tool="mind_import", operation=Operation.WRITE, at=mind.now())

    def full(*_: object, **__: object) -> None:
        raise StorageFailed("the disk is full")

    with undoing.recorded(mind, call, command="import", is_tool=True):
        with monkeypatch.context() as patched:
            patched.setattr(Trash, "append", full)
            files.replace(root / "first.md", b"1")
        files.replace(root / "second.md", b"2")
    assert "can't undo this: the disk is full" in (mind.notice or "")

    with undoing.recorded(mind, call, command="import", is_tool=True):
        files.replace(root / "third.md", b"3")
    assert not mind.notice


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[object], str]:
    def text_of(result: object) -> str:
        screen = PlainScreen()
        render(result, screen)
        screen.finish(pager=False)
        return capsys.readouterr().out

    return text_of


def test_a_change_of_a_tool_without_a_command_is_not_called_a_command(
    mind: Mind, printed: Callable[[object], str]
) -> None:
    tool = MemoryTool(mind.project.root)
    tool.handle({"command": "create", "path": "/memories/a.md", "file_text": "Tea"})
    tool.handle(
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "Tea", "new_str": "Mate"}
    )

    listed = printed(run(mind, "undo", list=True))
    undone = printed(run(mind, "undo"))

    assert "  memory tool: str_replace  " in listed
    assert "  memory tool: create  " in listed
    assert undone.startswith("✓ undid memory tool: str_replace  ")
    assert "memory-files" not in listed + undone
    assert all(len(line) <= 80 for line in listed.splitlines())


def test_people_do_not_read_of_the_list_that_an_import_keeps(
    mind: Mind, tmp_path: Path, printed: Callable[[object], str]
) -> None:
    notes = tmp_path / "notes"
    (notes / ".obsidian").mkdir(parents=True)
    (notes / "Tea.md").write_text("# Tea\nBrew it.\n", "utf-8")
    run(mind, "import", source=str(notes))
    first = run(mind, "undo", list=True).changes[0]
    assert any("/.local/" in path for path in first.files)
    (notes / "Water.md").write_text("# Water\nFilter it.\n", "utf-8")
    run(mind, "import", source=str(notes))

    with pytest.raises(Conflict) as refused:
        run(mind, "undo", id=first.id)
    texts = printed(run(mind, "undo", list=True)), printed(run(mind, "undo"))

    assert ".local" not in refused.value.message
    assert ".local" not in "".join(texts)
    assert "facts/fact_water" in texts[1]


def chained(mind: Mind, clock: Clock) -> list[str]:
    """Returns the ids of three decisions, of which each supersedes the one before."""
    chain = []
    for text in ("Use sessions", "Use JWT zebra", "Use PASETO"):
        written = run(mind, "save decision", topic="auth", decision=text, reasoning="r")
        chain.append(str(written.id))
        clock.forward(days=1)
    return chain


def test_a_purge_whose_successor_cannot_be_changed_removes_nothing(
    mind: Mind, clock: Clock
) -> None:
    chain = chained(mind, clock)
    run(mind, "edit", id=chain[1], content="Use JWT, the zebra")
    path_of(mind, chain[2]).write_text(
        f"---\n{{id: {chain[2]}, type: decision, topic: auth, # chosen by Ana\n"
        f"  links: [{{to: {chain[1]}, type: supersedes}}]}}\n---\nUse PASETO\n"
    )
    before, kept = contents(mind), mind.trash.ids()

    for purge in (True, False):
        with pytest.raises(Invalid, match="in braces"):
            run(mind, "rm", id=chain[1], purge=purge)

    assert (contents(mind), mind.trash.ids()) == (before, kept)


def test_a_purge_of_a_document_removes_nothing(mind: Mind) -> None:
    document = mind.project.root / "docs" / "guide.md"
    document.parent.mkdir()
    document.write_text("# Guide\n\nFirst\n")
    run(mind, "config", key="include", value="docs/*.md")
    mind = mind.reopened()
    (row,) = run(mind, "list").memories
    run(mind, "trust", ids=[row.id])
    run(mind, "edit", id=row.id, content="Second")
    kept = mind.trash.ids()

    with pytest.raises(Invalid, match="does not remove"):
        run(mind, "rm", id=row.id, purge=True)

    assert mind.trash.ids() == kept


def test_a_chain_is_closed_also_if_its_end_changes_meanwhile(
    mind: Mind, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = chained(mind, clock)
    end, delete = path_of(mind, chain[2]), mind.store.delete

    def changing(record: Any) -> str | None:
        rest = delete(record)
        end.write_text(f"{end.read_text()}\nTokens last an hour.\n")
        return rest

    monkeypatch.setattr(mind.store, "delete", changing)
    run(mind, "rm", id=chain[1])

    last = lookup.one(mind, chain[2]).memory
    assert [link.to for link in last.links] == [chain[0]]
    assert "Tokens last an hour" in end.read_text()
