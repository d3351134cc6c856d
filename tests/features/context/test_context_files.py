"""The block in the project's files: who asked for it, what git thinks of it, what else is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mimo.errors import Conflict, Invalid, MindError, StorageFailed
from mimo.features.context import files
from mimo.features.context.commands import show, write
from mimo.features.context.files import shown
from mimo.features.daemon.process import Loop
from mimo.features.notes.commands import add
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import saving
from mimo.store.init import init
from mimo.store.trust import Trust
from tests.conftest import git


def remember(mind: Mind, content: str = "Use JWT for auth") -> None:
    saving.store(mind, saving.draft(Kind.DECISION, content))


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "--quiet")
    return project


@pytest.mark.req("003-35")
def test_write_puts_the_block_into_claude_md(mind: Mind) -> None:
    remember(mind)
    done = write(mind)
    text = (mind.project.root / "CLAUDE.md").read_text(encoding="utf-8")
    assert [(file.path, file.created, file.changed) for file in done.files] == [
        ("CLAUDE.md", True, True)
    ]
    assert text.startswith("<!-- MIND:CONTEXT")
    assert "\n## Recent Decisions\n- Use JWT for auth (Nov 20)\n" in text
    assert text.endswith("<!-- MIND:END -->\n")


def test_what_is_shown_is_what_is_written(mind: Mind) -> None:
    remember(mind)
    write(mind)
    shown = show(mind)
    assert shown.text in (mind.project.root / "CLAUDE.md").read_text(encoding="utf-8")
    assert (shown.notes, shown.characters) == (1, len(shown.text))
    assert shown.tokens == -(-shown.characters // 4)


def test_an_unchanged_block_leaves_the_file_untouched(mind: Mind) -> None:
    remember(mind)
    write(mind)
    before = (mind.project.root / "CLAUDE.md").stat()
    assert not write(mind).files[0].changed
    assert (mind.project.root / "CLAUDE.md").stat().st_mtime_ns == before.st_mtime_ns


def test_an_empty_memory_creates_no_file_but_empties_a_block(mind: Mind) -> None:
    done = write(mind)
    assert (done.files, done.notice) == ((), "there are no notes yet, so CLAUDE.md was not changed")
    assert not (mind.project.root / "CLAUDE.md").exists()
    remember(mind)
    write(mind)
    mind.trust.forget()
    assert write(mind).files[0].changed
    text = (mind.project.root / "CLAUDE.md").read_text(encoding="utf-8")
    assert "JWT" not in text
    assert files.NOTHING in text


def test_a_project_of_facts_has_the_most_important_and_the_newest(mind: Mind, clock) -> None:
    for number in range(7):
        clock.forward(days=1)
        add(mind, f"Machine {number} is in rack {number}", importance=0.9 if number == 2 else 0.5)
    add(mind, "My desk is in room 4", private=True)
    documents = mind.project.root / "docs"
    documents.mkdir()
    (documents / "guide.md").write_text("# Guide\n\nRead me.\n", encoding="utf-8")
    config = mind.folder / "config.toml"
    config.write_text(config.read_text("utf-8") + 'include = ["docs/**/*.md"]\n', "utf-8")

    text = shown(mind.reopened()).text

    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert [line[10] for line in lines] == ["2", "6", "5", "4", "3"]
    assert lines[0] == "- Machine 2 is in rack 2 (Nov 23)"
    assert "## Facts" in text


def test_a_budget_is_kept(mind: Mind) -> None:
    for number in range(20):
        remember(mind, f"Decision number {number} about something long enough to fill a line")
    assert show(mind, budget=400).characters <= 400
    assert show(mind).notes == 5


def test_other_files_are_named_or_set(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(mind)
    monkeypatch.chdir(mind.project.root)
    assert write(mind, ("AGENTS.md", "docs/../GEMINI.md")).files[1].path == "GEMINI.md"
    (mind.folder / "config.toml").write_text(
        '[context]\nfiles = ["AGENTS.md", "GEMINI.md"]\n', encoding="utf-8"
    )
    assert [file.path for file in write(mind.reopened()).files] == ["AGENTS.md", "GEMINI.md"]


@pytest.mark.parametrize("name", ["../CLAUDE.md", "/etc/CLAUDE.md", "main.py", ".mind/x.md"])
def test_no_other_file_is_written(mind: Mind, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(mind)
    monkeypatch.chdir(mind.project.root)
    with pytest.raises(Invalid):
        write(mind, (name,))


@pytest.mark.parametrize("name", ["notes.txt", "AGENTS.md", "TWICE.md", "folder.md"])
def test_all_files_are_written_or_none(
    mind: Mind, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(mind)
    monkeypatch.chdir(mind.project.root)
    (mind.project.root / "folder.md").mkdir()
    write(mind, ("AGENTS.md",))
    path = mind.project.root / "AGENTS.md"
    block = path.read_text(encoding="utf-8")
    (mind.project.root / "TWICE.md").write_text(block * 2, encoding="utf-8")
    path.write_text(block.replace("JWT", "PASETO"), encoding="utf-8")
    with pytest.raises(MindError, match=name):
        write(mind, ("CLAUDE.md", name))
    assert not (mind.project.root / "CLAUDE.md").exists()


def test_a_file_that_is_named_twice_is_written_once(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(mind)
    monkeypatch.chdir(mind.project.root)
    assert [file.path for file in write(mind, ("CLAUDE.md", "./CLAUDE.md")).files] == ["CLAUDE.md"]


@pytest.mark.parametrize("name", ["main.py", "../CLAUDE.md", ".git/x.md", ".mind/MEMORY.md"])
def test_settings_of_a_clone_can_t_name_another_file(mind: Mind, name: str) -> None:
    remember(mind)
    config = f'[context]\nfiles = ["{name}"]\n'
    (mind.folder / "config.toml").write_text(config, encoding="utf-8")
    with pytest.raises(Invalid):
        write(mind.reopened())


@pytest.mark.attack("symbolic link")
def test_a_link_is_not_followed(mind: Mind, tmp_path: Path) -> None:
    remember(mind)
    other = tmp_path / "other.md"
    other.write_text("mine\n", encoding="utf-8")
    (mind.project.root / "CLAUDE.md").symlink_to(other)
    with pytest.raises(StorageFailed):
        write(mind)
    assert other.read_text(encoding="utf-8") == "mine\n"


def test_a_hand_edited_block_stays(mind: Mind) -> None:
    remember(mind)
    write(mind)
    path = mind.project.root / "CLAUDE.md"
    edited = path.read_text(encoding="utf-8").replace("JWT", "PASETO")
    path.write_text(edited, encoding="utf-8")
    with pytest.raises(Conflict, match="by hand"):
        write(mind)
    assert path.read_text(encoding="utf-8") == edited
    assert write(mind, force=True).files[0].changed


# The daemon


def test_the_daemon_does_not_write_tracked_files(mind: Mind, repository: Path) -> None:
    (repository / "CLAUDE.md").write_text("# Mine\n", encoding="utf-8")
    git(repository, "add", "CLAUDE.md")
    remember(mind)
    assert files.write_untracked(mind) == {}
    assert (repository / "CLAUDE.md").read_text(encoding="utf-8") == "# Mine\n"
    assert not (repository / "CLAUDE.local.md").exists()


def test_an_ignored_local_file_replaces_a_tracked_one(mind: Mind, repository: Path) -> None:
    (repository / "CLAUDE.md").write_text("# Mine\n", encoding="utf-8")
    (repository / ".gitignore").write_text("CLAUDE.local.md\n", encoding="utf-8")
    git(repository, "add", "CLAUDE.md")
    remember(mind)
    assert list(files.write_untracked(mind)) == ["CLAUDE.local.md"]
    assert "Use JWT" in (repository / "CLAUDE.local.md").read_text(encoding="utf-8")


def test_an_existing_untracked_file_is_written_but_none_is_created(
    mind: Mind, repository: Path
) -> None:
    remember(mind)
    assert files.write_untracked(mind) == {}, "a new file would show up in `git status`"
    (repository / "CLAUDE.md").write_text("# Mine\n", encoding="utf-8")
    assert list(files.write_untracked(mind)) == ["CLAUDE.md"]


def test_outside_git_the_file_is_created(mind: Mind) -> None:
    remember(mind)
    assert list(files.write_untracked(mind)) == ["CLAUDE.md"]


def test_nothing_is_written_if_git_fails(mind: Mind) -> None:
    (mind.project.root / ".git").mkdir()
    remember(mind)
    assert files.write_untracked(mind) == {}


def test_a_hand_edited_block_is_reported_and_kept(mind: Mind) -> None:
    remember(mind)
    files.write_untracked(mind)
    path = mind.project.root / "CLAUDE.md"
    path.write_text(path.read_text(encoding="utf-8").replace("JWT", "X"), encoding="utf-8")
    assert isinstance(files.write_untracked(mind)["CLAUDE.md"], Conflict)


@pytest.fixture
def told_to_leave_it(mind: Mind) -> None:
    (mind.home / "config.toml").write_text('[context]\ndaemon = "off"\n', encoding="utf-8")


@pytest.fixture
def loop(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    monkeypatch.setattr("mimo.store.watch.changes", lambda *_, **__: iter(()))
    made = Loop(Mind(home=mind.home, project=None, clock=mind.clock, environ={}))
    made.update_projects()
    yield made
    made.end()
    made.run()


@pytest.mark.req("003-33")
@pytest.mark.req("003-38")
def test_the_daemon_writes_after_the_end_of_a_session(loop: Loop, mind: Mind, clock) -> None:
    remember(mind)
    path = mind.project.root / "CLAUDE.md"
    loop.take(frozenset({mind.folder / "decisions" / "x.md"}))
    clock.forward(minutes=29)
    loop.check()
    assert not path.exists()
    clock.forward(minutes=1)
    loop.check()
    assert "Use JWT" in path.read_text(encoding="utf-8")


def test_a_setting_stops_the_daemon_from_writing(
    told_to_leave_it: None, loop: Loop, mind: Mind, clock
) -> None:
    remember(mind)
    loop.take(frozenset({mind.folder / "decisions" / "x.md"}))
    clock.forward(minutes=31)
    loop.check()
    assert not (mind.project.root / "CLAUDE.md").exists()


@pytest.mark.req("003-45")
def test_without_a_daemon_the_block_stays_as_it_was(mind: Mind, clock) -> None:
    remember(mind)
    write(mind)
    before = (mind.project.root / "CLAUDE.md").read_bytes()
    clock.forward(days=30)
    remember(mind, "Use Postgres for orders")
    assert (mind.project.root / "CLAUDE.md").read_bytes() == before


def test_two_machines_write_the_same(mind: Mind, tmp_path: Path, clock) -> None:
    remember(mind)
    clock.forward(hours=2)
    saving.store(mind, saving.draft(Kind.CHECKPOINT, "Half done"))
    write(mind)
    other = tmp_path / "other"
    init(_made(other), tmp_path / "home2", now=clock())
    Trust(tmp_path / "home2", other).follow(True)
    for path in mind.folder.rglob("*.md"):
        copy = other / ".mind" / path.relative_to(mind.folder)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    environ = {"MIND_HOME": str(tmp_path / "home2")}
    write(Mind.open(other, project=other, environ=environ, clock=clock))
    assert (other / "CLAUDE.md").read_bytes() == (mind.project.root / "CLAUDE.md").read_bytes()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
