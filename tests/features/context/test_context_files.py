"""The block in the project's files: who asked for it, what git thinks of it, what else is there."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Conflict
from mimo.features.context import files
from mimo.features.context.commands import write
from mimo.features.daemon.process import Loop
from mimo.features.hooks.command import react
from mimo.features.hooks.events import recognised
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import saving
from mimo.project.init import init
from mimo.project.trust import Trust
from tests.conftest import git
from tests.kit import do, put


def remember(call: Call, content: str = "Use JWT for auth") -> None:
    saving.store(call, saving.draft(Kind.DECISION, content))


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "--quiet")
    return project


def test_an_unchanged_block_leaves_the_file_untouched(call: Call) -> None:
    remember(call)
    write(call)
    before = (call.mind.project.root / "CLAUDE.md").stat()
    assert not write(call).files[0].changed
    assert (call.mind.project.root / "CLAUDE.md").stat().st_mtime_ns == before.st_mtime_ns


# The daemon


def test_the_daemon_does_not_write_tracked_files(call: Call, repository: Path) -> None:
    (repository / "CLAUDE.md").write_text("# Mine\n", encoding="utf-8")
    git(repository, "add", "CLAUDE.md")
    remember(call)
    assert files.write_untracked(call) == {}
    assert (repository / "CLAUDE.md").read_text(encoding="utf-8") == "# Mine\n"
    assert not (repository / "CLAUDE.local.md").exists()


def test_an_ignored_local_file_replaces_a_tracked_one(call: Call, repository: Path) -> None:
    (repository / "CLAUDE.md").write_text("# Mine\n", encoding="utf-8")
    (repository / ".gitignore").write_text("CLAUDE.local.md\n", encoding="utf-8")
    git(repository, "add", "CLAUDE.md")
    remember(call)
    assert list(files.write_untracked(call)) == ["CLAUDE.local.md"]
    assert "Use JWT" in (repository / "CLAUDE.local.md").read_text(encoding="utf-8")


def test_an_existing_untracked_file_is_written_but_none_is_created(
    call: Call, repository: Path
) -> None:
    remember(call)
    assert files.write_untracked(call) == {}, "a new file would show up in `git status`"
    (repository / "CLAUDE.md").write_text("# Mine\n", encoding="utf-8")
    assert list(files.write_untracked(call)) == ["CLAUDE.md"]


def test_outside_git_the_file_is_created(call: Call) -> None:
    remember(call)
    assert list(files.write_untracked(call)) == ["CLAUDE.md"]


def test_nothing_is_written_if_git_fails(call: Call) -> None:
    (call.mind.project.root / ".git").mkdir()
    remember(call)
    assert files.write_untracked(call) == {}


def test_a_hand_edited_block_is_reported_and_kept(call: Call) -> None:
    remember(call)
    files.write_untracked(call)
    path = call.mind.project.root / "CLAUDE.md"
    path.write_text(path.read_text(encoding="utf-8").replace("JWT", "X"), encoding="utf-8")
    assert isinstance(files.write_untracked(call)["CLAUDE.md"], Conflict)


@pytest.fixture
def told_to_leave_it(call: Call) -> None:
    (call.mind.home / "config.toml").write_text('[context]\ndaemon = "off"\n', encoding="utf-8")


@pytest.fixture
def loop(call: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    monkeypatch.setattr("mimo.project.watch.changes", lambda *_, **__: iter(()))
    made = Loop(Mind(home=call.mind.home, project=None, clock=call.mind.clock, environ={}))
    made.update_projects()
    yield made
    made.end()
    made.run()


@pytest.mark.req("003-33")
@pytest.mark.req("003-38")
def test_the_daemon_writes_after_the_end_of_a_session(loop: Loop, call: Call, clock) -> None:
    remember(call)
    path = call.mind.project.root / "CLAUDE.md"
    loop.take(frozenset({call.mind.folder / "decisions" / "x.md"}))
    clock.forward(minutes=29)
    loop.check()
    assert not path.exists()
    clock.forward(minutes=1)
    loop.check()
    assert "Use JWT" in path.read_text(encoding="utf-8")


def test_a_setting_stops_the_daemon_from_writing(
    told_to_leave_it: None, loop: Loop, call: Call, clock
) -> None:
    remember(call)
    loop.take(frozenset({call.mind.folder / "decisions" / "x.md"}))
    clock.forward(minutes=31)
    loop.check()
    assert not (call.mind.project.root / "CLAUDE.md").exists()


def test_two_machines_write_the_same(call: Call, tmp_path: Path, clock) -> None:
    remember(call)
    clock.forward(hours=2)
    saving.store(call, saving.draft(Kind.CHECKPOINT, "Half done"))
    write(call)
    other = tmp_path / "other"
    init(_made(other), tmp_path / "home2", now=clock())
    Trust(tmp_path / "home2", other).follow(True)
    for path in call.mind.folder.rglob("*.md"):
        copy = other / ".mind" / path.relative_to(call.mind.folder)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    environ = {"MIND_HOME": str(tmp_path / "home2")}
    write(Call(Mind.open(other, project=other, environ=environ, clock=clock)))
    assert (other / "CLAUDE.md").read_bytes() == (call.mind.project.root / "CLAUDE.md").read_bytes()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("text", "is_written"),
    [
        ("@../AGENTS.md", False),
        ("Read @../AGENTS.md.", False),
        ("@AGENTS.md", True),
        ("a@../AGENTS.md", True),
        ("@../AGENTS.md.bak", True),
        ("\xff@../AGENTS.md", True),
        (f"@{'/' * 500_000} @{'./' * 500_000}", True),
    ],
)
def test_a_file_that_imports_another_one_is_not_written(
    call: Call, text: str, is_written: bool
) -> None:
    root = call.mind.project.root
    put(root / "AGENTS.md", "# Agents\n")
    put(root / ".claude/CLAUDE.md", text)
    remember(call)
    assert [file.path for file in write(call).files] == [".claude/CLAUDE.md"] * is_written + [
        "AGENTS.md"
    ]


# Linked worktrees


@pytest.mark.parametrize("place", ["", "services/api"])
def test_the_files_of_the_worktree_are_written_read_and_purged(
    tmp_path: Path, home: Path, place: str
) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    root = main / place
    root.mkdir(parents=True)
    git(main, "init", "--quiet")
    for name in (".gitignore", "CLAUDE.md"):
        (root / name).write_text(".mind/\n", encoding="utf-8")
    git(main, "add", ".")
    git(main, "commit", "--quiet", "-m", "begin")
    git(main, "worktree", "add", "--quiet", str(tree))
    init(root, home, now=datetime(2026, 11, 20, tzinfo=UTC))
    environ = {"MIND_HOME": str(home)}
    with closing(Mind.open(tree / place, environ=environ)) as mind:
        call = Call(mind)
        id = saving.store(call, saving.draft(Kind.DECISION, "Use JWT for auth")).memory.id
        fields = {"session_id": "s", "cwd": str(tree / place), "source": "startup"}
        event = recognised({"hook_event_name": "SessionStart", **fields})
        assert event is not None
        assert "JWT" in str(react(event, home=home, now=mind.now(), environ=environ))
        written = do(call, "context write")
        text = (tree / place / "CLAUDE.md").read_text(encoding="utf-8")

        assert [file.path for file in written.files] == ["CLAUDE.md"]
        assert "can't undo this" in written.notice
        assert "Use JWT" in text
        assert (root / "CLAUDE.md").read_text(encoding="utf-8") == ".mind/\n"
        assert "JWT" not in str(react(event, home=home, now=mind.now(), environ=environ))

        do(call, "rm", id=id, purge=True)
        assert "JWT" not in (tree / place / "CLAUDE.md").read_text(encoding="utf-8")
