"""`mind undo`: what commands removed or replaced comes back, byte for byte."""

import errno
import os
import random
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.config import load
from mimo.data import disk, files
from mimo.data.failures import failure
from mimo.errors import Invalid, NotFound, StorageFailed
from mimo.guard.policy import Operation, Request
from mimo.index.index import Index
from mimo.memory.model import Kind
from mimo.operations import lookup, saving, undoing
from mimo.project.trash import Trash
from tests import kit
from tests.conftest import NOW, Clock, git
from tests.kit import do, put

COMMANDS = all_commands()


def added(call: Call, content: str = "Staging is reset", **fields: object) -> str:
    return str(do(call, "add", content=content, **fields).id)


def contents(call: Call) -> dict[str, bytes]:
    """Returns every file that people can see, by its path."""
    root = call.mind.project.root
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not {".local", ".index", ".git", ".gitignore"} & set(path.parts)
    }


def rename(call: Call, id: str, path: str) -> None:
    """Moves a memory to another file, as a command that records the change."""
    request = Request(tool="rename", operation=Operation.WRITE, at=NOW)
    with undoing.recorded(call, request, command="rename", is_tool=True):
        saving.move(call, [(lookup.one(call, id), path)])


def path_of(call: Call, id: str) -> Path:
    return call.mind.project.root / lookup.one(call, id).place.path


def test_an_undo_ends_the_approval_that_a_decision_supersedes_and_a_redo_restores_it(
    call: Call,
) -> None:
    call.mind.trust.follow(follow=False)
    first, second = (
        do(call, "save decision", topic="queue", decision=text, reasoning="Known").id
        for text in ("Use Redis", "Use Rabbit")
    )
    path = path_of(call, second)
    text = path.read_text("utf-8").replace("Use Rabbit", "Use nothing")
    do(call, "undo")
    path.write_text(text, "utf-8")  # As a pull could.
    assert do(call, "show", id=first).superseded_by is None
    path.unlink()
    do(call, "redo")
    path.write_text(text, "utf-8")
    assert do(call, "show", id=first).superseded_by == second


def test_an_undo_of_several_files_reports_its_progress_and_may_be_stopped(call: Call) -> None:
    do(call, "rm", id=added(call, "One fact"), ids=[added(call, "Another fact")])
    before = contents(call)

    def stop(label: str, done: int, total: int) -> None:
        if (done, total) == (1, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(kit.with_console(call, progress=stop), "undo")

    assert contents(call) == before


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
    call: Call, words: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, arguments = words
    root = call.mind.project.root
    monkeypatch.chdir(root)
    (root / "doc.md").write_text("# One\n\nA first section.\n\n# Two\n\nA second one.\n", "utf-8")
    (root / "CLAUDE.md").write_text("# Ours\n", "utf-8")
    ingested = do(call, "ingest", path=str(root / "doc.md"))
    names = {"OLD": added(call), "SOURCE": ingested.source_id, "CHUNK": ingested.ids[0]}
    names["FIRST"] = do(
        call, "save decision", topic="queue", decision="Use Redis", reasoning="Known"
    ).id
    names["MIDDLE"] = do(
        call, "save decision", topic="queue", decision="Use Rabbit", reasoning="Known"
    ).id
    names["NEW"] = do(
        call, "save decision", topic="queue", decision="Use SQS", reasoning="Known"
    ).id
    names["DOC"] = str(root / "doc.md")
    names["FILE"] = path_of(call, names["OLD"]).read_text("utf-8").replace("is reset", "is wiped")
    do(call, "value put", namespace="agent.build", key="last", value=1)
    (root / "doc.md").write_text("# One\n\nA section that changed.\n", "utf-8")
    call.mind.trust.follow(follow=False)
    call.mind.trust.revoke([lookup.one(call, names["OLD"]).place.approval])
    kept = reviews(root)
    arguments = {k: names.get(v, v) if isinstance(v, str) else v for k, v in arguments.items()}
    before = contents(call)

    do(call, path, **arguments)
    after = contents(call)
    reviewed = reviews(root)
    assert (after, reviewed) != (before, kept)

    do(call, "undo")
    assert contents(call) == before
    assert reviews(root) == kept
    do(call, "redo")
    assert contents(call) == after
    assert reviews(root) == reviewed


def reviews(root: Path) -> dict[str, bytes]:
    """Returns the user's review decisions, by file."""
    local = root / ".mind" / ".local"
    files = (path for path in local.glob("reviewed-*") if path.suffix != ".lock")
    return {path.name: path.read_bytes() for path in files}


def test_an_import_and_its_rollback_are_undone(call: Call, tmp_path: Path) -> None:
    from tests.mama_databases import example

    database = example(tmp_path / "mama.db")
    before = contents(call)
    do(call, "import mama", db=str(database))
    imported = contents(call)
    do(call, "import mama", db=str(database), rollback=True)
    assert contents(call) == before

    do(call, "undo")
    assert contents(call) == imported
    do(call, "import mama", db=str(database), rollback=True)
    assert contents(call) == before


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
    call: Call, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    _ingested(call)
    before = contents(call)
    asked = list[Path]()

    def fail() -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refusing_second(asked, fail))
        with pytest.raises((StorageFailed, KeyboardInterrupt)) as caught:
            do(call, "undo")

    if isinstance(caught.value, StorageFailed):
        assert caught.value.hint.endswith("it was not changed; nothing was undone")
    assert len(asked) == 2
    assert contents(call) == before
    assert [each.undone for each in undoing.changes(call, 9)] == [False]
    do(call, "undo")
    assert not any(path.startswith(".mind/sources/") for path in contents(call))


def test_an_undo_that_can_not_be_put_back_names_the_file(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ingested(call)
    before = contents(call)
    asked = list[Path]()

    def fail() -> None:
        monkeypatch.setattr(files, "write_new", full)
        raise OSError(errno.EPERM, "not permitted")

    def full(path: Path, data: bytes, mode: int = 0) -> None:
        raise failure("write", path, OSError(errno.ENOSPC, "full"))

    monkeypatch.setattr(Path, "unlink", refusing_second(asked, fail))
    with pytest.raises(StorageFailed, match="no space left") as caught:
        do(call, "undo")
    monkeypatch.undo()

    first = asked[0].relative_to(call.mind.project.root)
    redo = do(call, "undo", list=True).changes[0].id
    assert caught.value.hint.endswith(f"`{first}` was changed; `mind undo {redo}` puts it back")
    do(call, "redo")
    assert contents(call) == before


def _ingested(call: Call) -> None:
    """Ingests two files, as the last change."""
    folder = call.mind.project.root / "notes"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe text of {name}.\n", "utf-8")
    do(call, "ingest", path=str(folder))


def test_approvals_stay_as_they_were(call: Call) -> None:
    call.mind.trust.follow(follow=False)
    id_ = added(call)
    path = path_of(call, id_)
    path.write_bytes(path.read_bytes() + b"By another user.\n")
    foreign = lookup.one(call, id_).place.approval
    do(call, "edit", "claude-code", id=id_, importance=0.9)
    do(call, "undo")
    assert lookup.one(call, id_).place.approval == foreign
    assert not call.mind.trust.trusted(foreign)

    own = added(call, "Approved text")
    approved = lookup.one(call, own).place.approval
    do(call, "rm", id=own)
    do(call, "undo")
    assert call.mind.trust.trusted(approved)
    do(call, "untrust", ids=[own])
    do(call, "rm", id=own)
    do(call, "undo")
    assert not call.mind.trust.trusted(approved)


def test_a_private_memory_is_private_in_the_trash_and_after(call: Call) -> None:
    id_ = added(call, private=True)
    path = path_of(call, id_)
    path.chmod(0o600)
    do(call, "rm", id=id_)
    (entry,) = [
        p
        for p in (call.mind.folder / ".local" / "trash").iterdir()
        if b"Staging is reset" in p.read_bytes()
    ]
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600

    do(call, "undo")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lookup.one(call, id_).place.private


@pytest.mark.attack("undo copies of other files lost")
def test_purge_keeps_the_copies_of_other_files_of_that_name(call: Call) -> None:
    for folder in ("facts", "decisions"):
        (call.mind.folder / folder).mkdir(exist_ok=True)
    (call.mind.folder / "facts" / "auth.md").write_text("Hunter2", "utf-8")
    other = call.mind.folder / "decisions" / "auth.md"
    other.write_text("---\nid: other\n---\nKeep this\n", "utf-8")
    do(call, "value put", namespace="agent.x", key="auth", value="important: auth")
    do(call, "value rm", namespace="agent.x", key="auth")
    do(call, "rm", id="other")
    do(call, "rm", id="auth", purge=True)

    do(call, "undo", id=do(call, "undo", list=True).changes[0].id)
    assert "Keep this" in other.read_text("utf-8")
    do(call, "undo", id=do(call, "undo", list=True).changes[2].id)
    assert do(call, "value get", namespace="agent.x", key="auth").value == "important: auth"


def test_purge_finds_the_copies_at_an_earlier_path(call: Call) -> None:
    id_ = added(call, "Hunter2 and more")
    rename(call, id_, ".mind/facts/b.md")
    assert path_of(call, id_).name == "b.md"
    do(call, "rm", id=id_, purge=True)

    assert do(call, "undo", list=True).changes == ()
    assert not list((call.mind.folder / ".local" / "trash").iterdir())


def holding(call: Call, *words: bytes) -> list[Path]:
    """Returns the files in the project and in $MIND_HOME that contain one of these words."""
    every = [path for top in (call.mind.project.root, call.mind.home) for path in top.rglob("*")]
    texts = {path: path.read_bytes().lower() for path in every if path.is_file()}
    return [path for path, text in texts.items() if any(word in text for word in words)]


def test_purge_leaves_no_copy_in_any_file(call: Call) -> None:
    id_ = added(call, "Swordfish opens the door\n\nand the cellar")
    point = do(call, "save checkpoint", summary="Stopped at the swordfish").id
    tea = added(call, "Tea is at five")
    do(call, "edit", id=id_, content="Swordfish opens the door\n\nand the cellar, too")
    (sessions := call.mind.folder / ".local" / "sessions").mkdir()
    (sessions / "a.json").write_text(f'{{"shown": ["{id_}#12ab", "{tea}#12ab"]}}', "utf-8")
    for query in ("swordfish cellar", "tea"):
        assert do(call, "search", query=query).results
    call.mind.accesses.flush()
    assert {path.name for path in holding(call, b"swordfish")} >= {
        "accesses.log", "trust.db", "a.json", "events.jsonl",
    }  # fmt: skip

    other = Call(call.mind.reopened())  # As another process that has the index open.
    assert len(do(other, "list").memories) == 3
    do(call, "rm", id=id_, purge=True)
    do(call, "rm", id=point, purge=True)
    assert holding(call, b"swordfish", b"cellar") == []
    for each in (call, other, Call(call.mind.reopened())):
        assert [row.id for row in do(each, "search", query="tea five").results] == [tea]
    assert tea in call.mind.accesses.uses()
    assert tea in (sessions / "a.json").read_text("utf-8")


def test_purge_reports_what_may_be_left(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = added(call, "Swordfish opens the door")
    assert do(call, "search", query="swordfish").results
    (call.mind.folder / ".local" / "accesses.log").unlink(missing_ok=True)
    (call.mind.folder / ".local" / "accesses.log").mkdir()

    def full(index: Index) -> None:
        raise StorageFailed("no space left")

    monkeypatch.setattr(Index, "purge", full)
    notice = do(call, "rm", id=id_, purge=True).notice
    assert notice.startswith("a file in `.mind/.local` may still have its id (")
    assert notice.endswith(
        f"the index may still have its words (no space left): remove `{call.mind.index_folder}`"
    )
    assert do(call, "list").memories == ()


def test_purge_reports_that_another_process_reads_the_index(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = added(call, "Swordfish opens the door")
    assert do(call, "search", query="swordfish").results
    monkeypatch.setattr(disk, "WAIT_SECONDS", 0.01)
    (path,) = call.mind.index_folder.glob("index-v*.db")
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM memories").fetchone() == (1,)
        notice = do(call, "rm", id=id_, purge=True).notice
    assert notice.startswith("the index may still have its words (another process is reading")
    do(call, "undo", id="all", purge=True)
    assert holding(call, b"swordfish") == []


@pytest.fixture
def repository(project: Path, ann: None) -> Path:
    kit.repository(project)
    (project / "app.py").write_text("x = 1\n", "utf-8")
    git(project, "add", "app.py")
    return project


def published(repository: Path) -> str:
    """Commits everything that is staged, and returns its changes."""
    git(repository, "commit", "-q", "--allow-empty", "-m", "mine")
    return git(repository, "log", "-p", "--format=")


def test_purge_unstages_a_later_text_and_the_text_at_another_path(
    repository: Path, call: Call
) -> None:
    id_ = added(call, "Harmless")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "memory")
    do(call, "edit", id=id_, content="Hunter2 and more")
    git(repository, "add", "-A")
    rename(call, id_, ".mind/facts/b.md")
    do(call, "rm", id=id_, purge=True)
    assert "Hunter2" not in published(repository)
    assert git(repository, "status", "--short") == f"D .mind/facts/{id_}.md"


def test_purge_warns_if_the_text_cannot_be_unstaged(
    repository: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = added(call, "Hunter2 and more")
    git(repository, "add", "-A")
    (repository / ".git" / "index.lock").touch()
    monkeypatch.setattr(disk, "WAIT_SECONDS", 0.2)
    notice = do(call, "rm", id=id_, purge=True).notice
    assert notice.startswith("git may still have the text staged")
    assert f"`git rm -r --cached -- .mind/facts/{id_}.md`" in notice


@pytest.mark.attack("undo copies of other files lost")
def test_purge_keeps_the_copies_of_another_memory_at_an_earlier_path(call: Call) -> None:
    id_ = added(call, "Hunter2 and more")
    rename(call, id_, ".mind/facts/b.md")
    (call.mind.folder / f"facts/{id_}.md").write_text("---\nid: other\n---\nTea\n", "utf-8")
    do(call, "rm", id="other")
    do(call, "rm", id=id_, purge=True)

    assert len(do(call, "undo", list=True).changes) == 1
    do(call, "undo")
    assert b"Tea" in path_of(call, "other").read_bytes()


def test_the_oldest_changes_go_when_the_trash_is_full_or_old(call: Call, clock: Clock) -> None:
    config = put(call.mind.home / "config.toml", "[trash]\nmegabytes = 1\ndays = 10\n")
    call = Call(call.mind.reopened())
    assert load(user=config, project=None)["trash.days"] == 10
    ids = [added(call, f"{n} " + "word" * 22_500) for n in range(14)]
    for id_ in ids:
        clock.forward(minutes=1)
        do(call, "rm", id=id_)
    rows = do(call, "undo", list=True).changes
    assert [row.command for row in rows] == ["rm"] * 12

    clock.forward(days=11)
    added(call, "Much later")
    assert [row.command for row in do(call, "undo", list=True).changes] == ["add", "rm"]


def test_undo_steps_over_a_command_that_was_killed_before_its_change(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = contents(call)
    id_ = added(call)
    before = contents(call)
    announce = files._announce

    def killed(results: Any) -> None:
        announce(results)
        raise SystemExit  # as if the process ended here

    with monkeypatch.context() as patched:
        patched.setattr(files, "_announce", killed)
        patched.setattr("mimo.project.trash.Recorder.forget_if", lambda *_: None)
        with pytest.raises(SystemExit):
            do(call, "rm", id=id_)
    assert contents(call) == before
    assert len(do(call, "undo", list=True).changes) == 2
    killed_id = do(call, "undo", list=True).changes[0].id
    with pytest.raises(NotFound, match="has nothing to undo"):
        do(call, "undo", id=killed_id)
    assert [file.action for file in do(call, "undo").files] == ["nothing"]
    assert contents(call) == before
    do(call, "undo")
    assert contents(call) == empty
    do(call, "redo")
    do(call, "redo")
    assert contents(call) == before
    with pytest.raises(NotFound, match="no change to redo"):
        do(call, "redo")


@pytest.mark.parametrize("seed", range(20))
def test_undo_and_redo_walk_through_the_states(call: Call, seed: int) -> None:
    chance = random.Random(seed)
    id_ = added(call, "Text 0")
    back, forward = [contents(call)], list[dict[str, bytes]]()
    for number in range(1, 25):
        match chance.choice(("edit", "undo", "undo", "redo")):
            case "edit":
                do(call, "edit", id=id_, content=f"Text {number}")
                back.append(contents(call))
                forward.clear()
            case "undo" if len(back) > 1:
                do(call, "undo")
                forward.append(back.pop())
            case "redo" if forward:
                do(call, "redo")
                back.append(forward.pop())
            case "redo":
                with pytest.raises(NotFound, match="no change to redo"):
                    do(call, "redo")
        assert contents(call) == back[-1]


def test_the_undo_of_an_earlier_change_is_a_change(call: Call) -> None:
    added(call, "One")
    earlier = do(call, "undo", list=True).changes[0].id
    added(call, "Two")
    both = contents(call)
    do(call, "undo", id=earlier)
    with pytest.raises(NotFound, match="no change to redo"):
        do(call, "redo")
    do(call, "undo")
    assert contents(call) == both
    do(call, "undo", id=earlier)
    do(call, "undo")
    do(call, "undo")
    assert both.keys() - contents(call).keys() == {path for path in both if "two" in path}


def test_two_undos_at_once_undo_two_changes(call: Call) -> None:
    before = contents(call)
    added(call, "One")
    added(call, "Two")
    words = [sys.executable, "-X", "utf8", "-m", "mimo", "undo"]
    root, environment = call.mind.project.root, kit.environment()
    running = [subprocess.Popen(words, cwd=root, env=environment) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert contents(call) == before


def test_a_command_that_fails_leaves_no_entry(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = added(call)
    monkeypatch.setattr(Path, "unlink", _full)
    with pytest.raises(Exception, match="no space left"):
        do(call, "rm", id=id_)
    monkeypatch.undo()
    monkeypatch.setenv("MIND_HOME", str(call.mind.home))
    assert [row.command for row in do(call, "undo", list=True).changes] in (
        ["add"],
        ["rm", "add"],
    )
    assert lookup.one(call, id_).memory.content == "Staging is reset"


def _full(path: Path, **_: object) -> None:
    raise OSError(28, "No space left on device", str(path))


def test_outside_of_a_command_nothing_is_recorded(call: Call) -> None:
    saving.store(call, saving.draft(Kind.FACT, "By a hook"))
    with pytest.raises(NotFound):
        do(call, "undo")


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
    call: Call, named: list[Path]
) -> None:
    id_ = added(call)
    trash = call.mind.project.root / ".mind/.local/trash"
    do(call, "rm", id=id_)
    named.clear()

    do(call, "undo")
    assert trash in named


def test_a_replaced_text_is_on_the_disk_if_the_command_first_created_a_file(
    call: Call, named: list[Path]
) -> None:
    root = call.mind.project.root
    (root / "old.md").write_text("before")
    request = Request(tool="mind_import", operation=Operation.WRITE, at=call.mind.now())
    with undoing.recorded(call, request, command="import", is_tool=True):
        files.replace(root / "new.md", b"new")
        named.clear()
        files.replace(root / "old.md", b"after")

    assert named[0] == root / ".mind/.local/trash"


def test_the_name_of_an_entry_is_flushed_once(call: Call, named: list[Path]) -> None:
    root = call.mind.project.root
    for name in ("a.md", "b.md", "c.md"):
        (root / name).write_text("before")
    request = Request(tool="mind_import", operation=Operation.WRITE, at=call.mind.now())
    with undoing.recorded(call, request, command="import", is_tool=True):
        files.replace(root / "new.md", b"new")
        named.clear()
        for name in ("a.md", "b.md", "c.md"):
            files.replace(root / name, b"after")

    assert named.count(root / ".mind/.local/trash") == 1


def test_texts_are_restored_after_a_failed_flush_of_the_name(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = call.mind.project.root
    for name in ("a.md", "b.md"):
        (root / name).write_text("before")
    request = Request(tool="mind_import", operation=Operation.WRITE, at=call.mind.now())

    def broken(folder: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), f"{folder}")

    with undoing.recorded(call, request, command="import", is_tool=True) as recorder:
        files.replace(root / "new.md", b"new")
        with monkeypatch.context() as patched:
            patched.setattr(disk, "flush_folder", broken)
            with pytest.raises(StorageFailed):
                files.replace(root / "a.md", b"after")
        assert (root / "a.md").read_text() == "before"
        files.replace(root / "b.md", b"after")

    assert recorder.id
    kept = {copy.path: copy.before for copy in call.mind.trash.kept(recorder.id)}
    assert kept == {"new.md": None, "b.md": b"before"}


def test_a_later_change_does_not_hide_that_an_earlier_one_cannot_be_undone(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = call.mind.project.root
    request = Request(tool="mind_import", operation=Operation.WRITE, at=call.mind.now())

    def full(*_: object, **__: object) -> None:
        raise StorageFailed("the disk is full")

    with undoing.recorded(call, request, command="import", is_tool=True):
        with monkeypatch.context() as patched:
            patched.setattr(Trash, "append", full)
            files.replace(root / "first.md", b"1")
        files.replace(root / "second.md", b"2")
    assert "can't undo this: the disk is full" in (call.notice or "")

    with undoing.recorded(call, request, command="import", is_tool=True):
        files.replace(root / "third.md", b"3")
    assert not call.notice


def chained(call: Call, clock: Clock) -> list[str]:
    """Returns the ids of three decisions, of which each supersedes the one before."""
    chain = []
    for text in ("Use sessions", "Use JWT zebra", "Use PASETO"):
        written = do(call, "save decision", topic="auth", decision=text, reasoning="r")
        chain.append(str(written.id))
        clock.forward(days=1)
    return chain


def test_a_purge_whose_successor_cannot_be_changed_removes_nothing(
    call: Call, clock: Clock
) -> None:
    chain = chained(call, clock)
    do(call, "edit", id=chain[1], content="Use JWT, the zebra")
    path_of(call, chain[2]).write_text(
        f"---\n{{id: {chain[2]}, type: decision, topic: auth, # chosen by Ana\n"
        f"  links: [{{to: {chain[1]}, type: supersedes}}]}}\n---\nUse PASETO\n"
    )
    before, kept = contents(call), call.mind.trash.ids()

    for purge in (True, False):
        with pytest.raises(Invalid, match="in braces"):
            do(call, "rm", id=chain[1], purge=purge)

    assert (contents(call), call.mind.trash.ids()) == (before, kept)


def test_a_chain_is_closed_also_if_its_end_changes_meanwhile(
    call: Call, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = chained(call, clock)
    end, delete = path_of(call, chain[2]), call.mind.store.delete

    def changing(record: Any) -> str | None:
        rest = delete(record)
        end.write_text(f"{end.read_text()}\nTokens last an hour.\n")
        return rest

    monkeypatch.setattr(call.mind.store, "delete", changing)
    do(call, "rm", id=chain[1])

    last = lookup.one(call, chain[2]).memory
    assert [link.to for link in last.links] == [chain[0]]
    assert "Tokens last an hour" in end.read_text()
