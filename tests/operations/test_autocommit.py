"""Commits in the background: batched, and never delaying a command."""

import sys
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.config import setting
from mimo.errors import Invalid
from mimo.features.upkeep.checks import doctor
from mimo.features.upkeep.status import status
from mimo.operations import background, syncing
from tests.conftest import git, wait_until_forgotten


@pytest.fixture
def started(monkeypatch):
    """The projects for which a process was started."""
    results: list[Path] = []
    monkeypatch.setattr(syncing, "start", lambda module, root, home: results.append(root))
    return results


@pytest.fixture
def on(project, home):
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("autocommit = true\n", encoding="utf-8")


@pytest.fixture
def repository(project, ann):
    git(project, "init", "-q", "-b", "main")
    return project


def say(mind, *words):
    assert main(words, open=lambda _: mind) == 0


def subjects(root):
    return git(root, "log", "--format=%s").splitlines()


def test_automatic_commits_are_off_by_default(mind, started):
    say(mind, "add", "Tea")
    assert started == []


def test_many_changes_start_one_process_and_become_one_commit(on, mind, repository, started, home):
    for text in ("Tea", "Coffee"):
        say(mind, "add", text)
    say(mind, "list")
    assert started == [repository]

    syncing.commit_scheduled(repository, home)

    assert subjects(repository) == ["memory: 2 remembered"]
    say(mind, "add", "Milk")
    assert len(started) == 2


@pytest.mark.parametrize(
    "words",
    [
        ("import", "memories", "--from", "obsidian"),
        ("ingest", "docs"),
        ("value", "put", "agent.ci", "last", "1"),
        ("procedure", "new", "release"),
    ],
)
def test_every_command_that_writes_shared_files_schedules_a_commit(
    on, mind, repository, started, monkeypatch, words
):
    (repository / "docs").mkdir()
    for name in ("one", "two"):
        (repository / "docs" / f"{name}.md").write_text(f"# {name}\n\nEnough words for a chunk.\n")
    (repository / "memories").mkdir()
    (repository / "memories" / "tea.md").write_text("# Tea\n\nIt is served at four.\n")
    monkeypatch.chdir(repository)

    say(mind, *words)

    assert started == [repository]


def test_a_failed_commit_is_reported_until_one_succeeds(on, mind, repository, started, home):
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'error: no commits on Friday' >&2\nexit 1\n")
    hook.chmod(0o755)
    say(mind, "add", "Tea")

    syncing.commit_scheduled(repository, home)

    reported = [check for check in doctor(mind).checks if check.name == "autocommit"]
    assert [check.verdict for check in reported] == ["warning"]
    assert "failed: git commit: no commits on Friday" in reported[0].message
    assert any("no commits on Friday" in warning for warning in status(mind).warnings)
    assert git(repository, "diff", "--cached", "--name-only") == ""
    hook.unlink()
    syncing.commit_scheduled(repository, home)
    assert not [check for check in doctor(mind).checks if check.name == "autocommit"]


@pytest.mark.parametrize("has_git", [False, True])
def test_a_project_that_is_not_in_git_reports_no_failed_commit(
    on, mind, project, home, started, has_git
):
    if has_git:
        git(project, "init", "-q")
        (project / ".gitignore").write_text(".mind\n", encoding="utf-8")
    say(mind, "add", "Tea")
    syncing.commit_scheduled(project, home)
    assert syncing.failure_of_commit(mind) is None


def test_a_process_that_died_does_not_stop_the_next_one(on, mind, repository, started, monkeypatch):
    say(mind, "add", "Tea")
    monkeypatch.setattr(syncing, "_LOST_SECONDS", 0)
    say(mind, "add", "Coffee")
    assert len(started) == 2


def test_a_command_does_not_fail_where_nothing_can_be_committed(on, mind, project, home):
    (project / ".mind" / ".local").mkdir(exist_ok=True)
    (project / ".mind" / ".local" / "autocommit").mkdir()
    say(mind, "add", "Tea")
    syncing.commit_scheduled(project, home)


def test_the_process_gets_the_project_and_the_home(monkeypatch, tmp_path):
    calls = []

    class Process:
        pid = 1

        def __init__(self, words, **_):
            calls.append(words)

        def wait(self):
            return 0

    monkeypatch.setattr("subprocess.Popen", Process)
    background.start("mimo.operations.syncing", tmp_path, tmp_path / "home")
    assert calls == [
        [sys.executable, "-m", "mimo.operations.syncing", str(tmp_path), str(tmp_path / "home")]
    ]


def test_a_module_in_the_current_folder_is_not_run(monkeypatch, tmp_path):
    planted = tmp_path / "mimo" / "operations"
    planted.mkdir(parents=True)
    for folder in (planted.parent, planted):
        (folder / "__init__.py").touch()
    text = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
    (planted / "encoding.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    process = background.start("mimo.operations.encoding", tmp_path, tmp_path / "home")
    wait_until_forgotten(process)

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False)])
def test_the_setting_is_a_boolean(text, value):
    assert setting("autocommit").parse(text) is value
    with pytest.raises(Invalid):
        setting("autocommit").parse("perhaps")
