"""The block in the project's files: who asked for it, what git thinks of it, what else is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Conflict, Invalid, MindError, StorageFailed
from mimo.features.context import files
from mimo.features.context.commands import show, write
from mimo.features.context.files import notes_for_agents
from mimo.features.daemon.process import Loop
from mimo.features.notes.commands import add
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import saving
from mimo.project.init import init
from mimo.project.trust import Trust
from tests.conftest import git


def remember(call: Call, content: str = "Use JWT for auth") -> None:
    saving.store(call, saving.draft(Kind.DECISION, content))


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "--quiet")
    return project


@pytest.mark.req("003-35")
def test_write_puts_the_block_into_claude_md(call: Call) -> None:
    remember(call)
    done = write(call)
    text = (call.mind.project.root / "CLAUDE.md").read_text(encoding="utf-8")
    assert [(file.path, file.created, file.changed) for file in done.files] == [
        ("CLAUDE.md", True, True)
    ]
    assert text.startswith("<!-- MIND:CONTEXT")
    assert "\n## Recent Decisions\n- Use JWT for auth (Nov 20)\n" in text
    assert text.endswith("<!-- MIND:END -->\n")


def test_what_is_shown_is_what_is_written(call: Call) -> None:
    remember(call)
    write(call)
    shown = show(call)
    assert shown.text in (call.mind.project.root / "CLAUDE.md").read_text(encoding="utf-8")
    assert (shown.notes, shown.characters) == (1, len(shown.text))
    assert shown.tokens == -(-shown.characters // 4)


def test_an_unchanged_block_leaves_the_file_untouched(call: Call) -> None:
    remember(call)
    write(call)
    before = (call.mind.project.root / "CLAUDE.md").stat()
    assert not write(call).files[0].changed
    assert (call.mind.project.root / "CLAUDE.md").stat().st_mtime_ns == before.st_mtime_ns


def test_an_empty_memory_creates_no_file_but_empties_a_block(call: Call) -> None:
    done = write(call)
    assert (done.files, done.notice) == ((), "there are no notes yet, so CLAUDE.md was not changed")
    assert not (call.mind.project.root / "CLAUDE.md").exists()
    remember(call)
    write(call)
    call.mind.trust.forget()
    assert write(call).files[0].changed
    text = (call.mind.project.root / "CLAUDE.md").read_text(encoding="utf-8")
    assert "JWT" not in text
    assert files.NOTHING in text


def test_a_project_of_facts_has_the_most_important_and_the_newest(call: Call, clock) -> None:
    for number in range(7):
        clock.forward(days=1)
        add(
            call,
            f"Machine {number} is in rack {number}",
            importance=0.9 if number == 2 else 0.5,
        )
    add(call, "My desk is in room 4", private=True)
    documents = call.mind.project.root / "docs"
    documents.mkdir()
    (documents / "guide.md").write_text("# Guide\n\nRead me.\n", encoding="utf-8")
    config = call.mind.folder / "config.toml"
    config.write_text(config.read_text("utf-8") + 'include = ["docs/**/*.md"]\n', "utf-8")

    text = notes_for_agents(Call(call.mind.reopened())).text

    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert [line[10] for line in lines] == ["2", "6", "5", "4", "3"]
    assert lines[0] == "- Machine 2 is in rack 2 (Nov 23)"
    assert "## Facts" in text


def test_a_budget_is_kept(call: Call) -> None:
    for number in range(20):
        remember(call, f"Decision number {number} about something long enough to fill a line")
    assert show(call, budget=400).characters <= 400
    assert show(call).notes == 5


def test_other_files_are_named_or_set(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(call)
    monkeypatch.chdir(call.mind.project.root)
    assert write(call, ("AGENTS.md", "docs/../GEMINI.md")).files[1].path == "GEMINI.md"
    (call.mind.folder / "config.toml").write_text(
        '[context]\nfiles = ["AGENTS.md", "GEMINI.md"]\n', encoding="utf-8"
    )
    assert [file.path for file in write(Call(call.mind.reopened())).files] == [
        "AGENTS.md",
        "GEMINI.md",
    ]


@pytest.mark.parametrize("name", ["../CLAUDE.md", "/etc/CLAUDE.md", "main.py", ".mind/x.md"])
def test_no_other_file_is_written(call: Call, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(call)
    monkeypatch.chdir(call.mind.project.root)
    with pytest.raises(Invalid):
        write(call, (name,))


@pytest.mark.parametrize("name", ["notes.txt", "AGENTS.md", "TWICE.md", "folder.md"])
def test_all_files_are_written_or_none(
    call: Call, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(call)
    monkeypatch.chdir(call.mind.project.root)
    (call.mind.project.root / "folder.md").mkdir()
    write(call, ("AGENTS.md",))
    path = call.mind.project.root / "AGENTS.md"
    block = path.read_text(encoding="utf-8")
    (call.mind.project.root / "TWICE.md").write_text(block * 2, encoding="utf-8")
    path.write_text(block.replace("JWT", "PASETO"), encoding="utf-8")
    with pytest.raises(MindError, match=name):
        write(call, ("CLAUDE.md", name))
    assert not (call.mind.project.root / "CLAUDE.md").exists()


def test_a_file_that_is_named_twice_is_written_once(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(call)
    monkeypatch.chdir(call.mind.project.root)
    assert [file.path for file in write(call, ("CLAUDE.md", "./CLAUDE.md")).files] == ["CLAUDE.md"]


@pytest.mark.parametrize("name", ["main.py", "../CLAUDE.md", ".git/x.md", ".mind/MEMORY.md"])
def test_settings_of_a_clone_can_t_name_another_file(call: Call, name: str) -> None:
    remember(call)
    config = f'[context]\nfiles = ["{name}"]\n'
    (call.mind.folder / "config.toml").write_text(config, encoding="utf-8")
    with pytest.raises(Invalid):
        write(Call(call.mind.reopened()))


@pytest.mark.attack("symbolic link")
def test_a_link_is_not_followed(call: Call, tmp_path: Path) -> None:
    remember(call)
    other = tmp_path / "other.md"
    other.write_text("mine\n", encoding="utf-8")
    (call.mind.project.root / "CLAUDE.md").symlink_to(other)
    with pytest.raises(StorageFailed):
        write(call)
    assert other.read_text(encoding="utf-8") == "mine\n"


def test_a_hand_edited_block_stays(call: Call) -> None:
    remember(call)
    write(call)
    path = call.mind.project.root / "CLAUDE.md"
    edited = path.read_text(encoding="utf-8").replace("JWT", "PASETO")
    path.write_text(edited, encoding="utf-8")
    with pytest.raises(Conflict, match="by hand"):
        write(call)
    assert path.read_text(encoding="utf-8") == edited
    assert write(call, force=True).files[0].changed


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


@pytest.mark.req("003-45")
def test_without_a_daemon_the_block_stays_as_it_was(call: Call, clock) -> None:
    remember(call)
    write(call)
    before = (call.mind.project.root / "CLAUDE.md").read_bytes()
    clock.forward(days=30)
    remember(call, "Use Postgres for orders")
    assert (call.mind.project.root / "CLAUDE.md").read_bytes() == before


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
