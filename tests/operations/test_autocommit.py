"""Commits in the background: batched, and never delaying a command."""

import subprocess
import sys
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.config import setting
from mimo.errors import Invalid
from mimo.operations import syncing


@pytest.fixture
def started(monkeypatch):
    """The projects for which a process was started."""
    results: list[Path] = []
    monkeypatch.setattr(syncing, "_start", lambda root, _: results.append(root))
    return results


@pytest.fixture
def on(project, home):
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("autocommit = true\n", encoding="utf-8")


@pytest.fixture
def repository(project, monkeypatch):
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.com")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=project, check=True)
    return project


def say(mind, *words):
    assert main(words, open=lambda _: mind) == 0


def subjects(root):
    done = subprocess.run(
        ["git", "log", "--format=%s"], cwd=root, capture_output=True, encoding="utf-8", check=False
    )
    return done.stdout.splitlines()


def test_it_is_off_unless_it_is_set(mind, started):
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


def test_the_process_is_told_where_it_commits(monkeypatch, tmp_path):
    calls = []

    class Process:
        returncode = None

        def __init__(self, words, **_):
            calls.append(words)

    monkeypatch.setattr("subprocess.Popen", Process)
    syncing._start(tmp_path, tmp_path / "home")
    assert calls == [
        [sys.executable, "-m", "mimo.operations.syncing", str(tmp_path), str(tmp_path / "home")]
    ]


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False)])
def test_a_yes_or_no_is_read_as_such(text, value):
    assert setting("autocommit").parse(text) is value
    with pytest.raises(Invalid):
        setting("autocommit").parse("perhaps")
