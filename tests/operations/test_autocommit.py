"""Commits in the background: batched, and never delaying a command."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.config import setting
from mimo.data import disk
from mimo.errors import Invalid, StorageFailed
from mimo.features.upkeep.checks import doctor
from mimo.features.upkeep.status import status
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import committing, saving, syncing
from mimo.project import commit, projects
from tests import kit, mama_databases
from tests.conftest import git, wait_until_forgotten
from tests.kit import script


@pytest.fixture
def started(monkeypatch):
    """The projects for which a process was started."""
    results: list[Path] = []
    monkeypatch.setattr(syncing, "_start", lambda root, home: results.append(root))
    return results


@pytest.fixture
def on(project, home):
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("autocommit = true\n", encoding="utf-8")


@pytest.fixture
def repository(project, ann):
    kit.repository(project)
    return project


def say(call, *words):
    assert main(words, open=lambda _: call.mind) == 0


def subjects(root):
    return git(root, "log", "--format=%s").splitlines()


def test_automatic_commits_are_off_by_default(call, started):
    say(call, "add", "Tea")
    assert started == []


def test_many_changes_start_one_process_and_become_one_commit(on, call, repository, started, home):
    for text in ("Tea", "Coffee"):
        say(call, "add", text)
    say(call, "list")
    assert started == [repository]

    committing.commit_scheduled(repository, home)

    assert subjects(repository) == ["memory: 2 remembered"]
    say(call, "add", "Milk")
    assert len(started) == 2


@pytest.mark.parametrize(
    "words",
    [
        ("import", "mama", "--db", "mama.db"),
        ("ingest", "docs"),
        ("value", "put", "agent.ci", "last", "1"),
        ("procedure", "new", "release"),
    ],
)
def test_every_command_that_writes_shared_files_schedules_a_commit(
    on, call, repository, started, monkeypatch, words
):
    (repository / "docs").mkdir()
    for name in ("one", "two"):
        (repository / "docs" / f"{name}.md").write_text(f"# {name}\n\nEnough words for a chunk.\n")
    mama_databases.example(repository / "mama.db")
    monkeypatch.chdir(repository)

    say(call, *words)

    assert started == [repository]


def test_a_failed_commit_is_reported_until_one_succeeds(on, call, repository, started, home):
    hook = script(
        repository / ".git" / "hooks" / "pre-commit",
        "#!/bin/sh\necho 'error: no commits on Friday' >&2\nexit 1\n",
    )
    say(call, "add", "Tea")

    committing.commit_scheduled(repository, home)

    reported = [check for check in doctor(call).checks if check.name == "autocommit"]
    assert [check.verdict for check in reported] == ["warning"]
    assert "failed: git commit: no commits on Friday" in reported[0].message
    assert any("no commits on Friday" in warning for warning in status(call).warnings)
    assert git(repository, "diff", "--cached", "--name-only") == ""
    hook.unlink()
    committing.commit_scheduled(repository, home)
    assert not [check for check in doctor(call).checks if check.name == "autocommit"]


@pytest.mark.parametrize("has_git", [False, True])
def test_a_project_that_is_not_in_git_reports_no_failed_commit(
    on, call, project, home, started, has_git
):
    if has_git:
        kit.repository(project)
        (project / ".gitignore").write_text(".mind\n", encoding="utf-8")
    say(call, "add", "Tea")
    committing.commit_scheduled(project, home)
    assert syncing.failure_of_commit(call) is None


def test_a_process_that_died_does_not_stop_the_next_one(on, call, repository, started, monkeypatch):
    say(call, "add", "Tea")
    monkeypatch.setattr(syncing, "_LOST_SECONDS", 0)
    say(call, "add", "Coffee")
    assert len(started) == 2


@pytest.mark.parametrize("days", [-2, 2])
def test_a_process_that_seems_old_or_of_the_future_does_not_stop_the_next_one(
    on, call, repository, started, days
):
    say(call, "add", "Tea")
    moment = time.time() + days * 86_400
    os.utime(repository / ".mind" / ".local" / "autocommit", (moment, moment))
    say(call, "add", "Coffee")
    assert len(started) == 2


def test_nothing_is_committed_on_a_detached_head(on, call, repository, started, home):
    git(repository, "commit", "-qm", "begin", "--allow-empty")
    git(repository, "checkout", "-q", "--detach")
    say(call, "add", "Tea")
    committing.commit_scheduled(repository, home)
    assert subjects(repository) == ["begin"]
    assert "failed: HEAD is detached" in (syncing.failure_of_commit(call) or "")
    git(repository, "switch", "-q", "main")
    committing.commit_scheduled(repository, home)
    assert subjects(repository) == ["memory: remembered fact: Tea", "begin"]


def test_the_editor_of_a_commit_is_not_disturbed(on, call, repository, started, home, tmp_path):
    git(repository, "commit", "-qm", "begin", "--allow-empty")
    (repository / "app.py").write_text("x = 1\n", encoding="utf-8")
    git(repository, "add", "app.py")
    say(call, "add", "Tea")
    begun, end = tmp_path / "begun", tmp_path / "end"
    editor = f"touch {begun}; while ! test -e {end}; do sleep 0.05; done; echo app >"
    with subprocess.Popen(
        ["git", "commit", "-q"], cwd=repository, env={**os.environ, "GIT_EDITOR": f"{editor}"}
    ) as user:
        while not begun.exists():
            time.sleep(0.05)
        committing.commit_scheduled(repository, home)
        assert "`git commit` may be waiting" in (syncing.failure_of_commit(call) or "")
        end.touch()
        assert user.wait() == 0
    committing.commit_scheduled(repository, home)
    assert subjects(repository) == ["memory: remembered fact: Tea", "app", "begin"]


def test_all_steps_wait_for_a_stale_lock_together(on, call, repository, started, home, monkeypatch):
    monkeypatch.setattr(disk, "WAIT_SECONDS", 0.5)
    limits = []
    waited = commit._waited

    def recorded(*args, **named):
        limits.append(disk.current())
        return waited(*args, **named)

    monkeypatch.setattr(commit, "_waited", recorded)
    git(repository, "commit", "-qm", "begin", "--allow-empty")
    say(call, "add", "Tea")
    (repository / ".git" / "index.lock").touch()
    committing.commit_scheduled(repository, home)
    assert "index.lock` is held by another process" in (syncing.failure_of_commit(call) or "")
    assert len(limits) > 1
    assert len(set(limits)) == 1


def test_an_abandoned_commit_delays_the_next_one_for_an_hour(on, call, repository, started, home):
    git(repository, "commit", "-qm", "begin", "--allow-empty")
    say(call, "add", "Tea")
    message = repository / ".git" / "COMMIT_EDITMSG"
    message.write_text("\n# Please enter the commit message\n", encoding="utf-8")
    for age, commits in ((3500, 1), (3700, 2)):
        moment = time.time() - age
        os.utime(message, (moment, moment))
        os.utime(repository / ".git" / "logs" / "HEAD", (moment - 1, moment - 1))
        committing.commit_scheduled(repository, home)
        assert len(subjects(repository)) == commits


def test_a_message_that_a_hook_refused_is_not_an_open_editor(on, call, repository, started, home):
    git(repository, "commit", "-qm", "begin", "--allow-empty")
    script(
        repository / ".git" / "hooks" / "commit-msg",
        "#!/bin/sh\necho 'error: no ticket' >&2\nexit 1\n",
    )
    say(call, "add", "Tea")
    for _ in range(2):
        committing.commit_scheduled(repository, home)
        assert "failed: git commit: no ticket" in (syncing.failure_of_commit(call) or "")


def test_the_message_of_a_sync_that_a_hook_refused_is_not_an_open_editor(
    on, call, repository, started, home
):
    git(repository, "commit", "-qm", "begin", "--allow-empty")
    hook = repository / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    refusal = "#!/bin/sh\necho 'Ticket: none' >>\"$1\"\necho 'error: no ticket' >&2\nexit 1\n"
    script(hook, refusal)
    say(call, "add", "Tea")
    with pytest.raises(StorageFailed, match="no ticket"):
        syncing.sync(call, message=None)
    hook.unlink()
    committing.commit_scheduled(repository, home)
    assert subjects(repository) == ["memory: remembered fact: Tea", "begin"]


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_commit_in_a_worktree_without_reflogs_is_not_an_open_editor(
    on, call, repository, started, home, is_packed
):
    git(repository, "add", "-A", ".mind")
    git(repository, "commit", "-qm", "begin")
    tree = repository.parent / "tree"
    git(repository, "worktree", "add", "-q", str(tree))
    git(repository, "config", "core.logAllRefUpdates", "false")
    for log in (repository / ".git").rglob("logs/HEAD"):
        log.unlink()
    hour_ago = time.time() - 3600
    os.utime(repository / ".git" / "worktrees" / "tree" / "HEAD", (hour_ago, hour_ago))
    git(tree, "commit", "-qm", "app", "--allow-empty")
    if is_packed:
        git(tree, "pack-refs", "--all")
    other = Call(Mind(home=home, project=projects.explicit(tree, home), environ={}))
    saving.store(other, saving.draft(Kind.FACT, "Tea"))
    committing.commit_scheduled(tree, home)
    assert syncing.failure_of_commit(other) is None
    assert subjects(tree) == ["memory: remembered fact: Tea", "app", "begin"]


def test_a_command_does_not_fail_where_nothing_can_be_committed(on, call, project, home):
    (project / ".mind" / ".local").mkdir(exist_ok=True)
    (project / ".mind" / ".local" / "autocommit").mkdir()
    say(call, "add", "Tea")
    committing.commit_scheduled(project, home)


def test_the_process_gets_the_project_and_the_home(monkeypatch, tmp_path):
    calls = []

    class Process:
        pid = 1

        def __init__(self, words, **_):
            calls.append(words)

        def wait(self):
            return 0

    monkeypatch.setattr("subprocess.Popen", Process)
    syncing._start(tmp_path, tmp_path / "home")
    words = [str(tmp_path), str(tmp_path / "home"), "20"]
    assert calls == [[sys.executable, "-m", "mimo.operations.committing", *words]]


def test_a_module_in_the_current_folder_is_not_run(monkeypatch, tmp_path):
    planted = tmp_path / "mimo" / "operations"
    planted.mkdir(parents=True)
    for folder in (planted.parent, planted):
        (folder / "__init__.py").touch()
    text = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
    (planted / "committing.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    monkeypatch.setattr(syncing, "PAUSE_SECONDS", 0)
    wait_until_forgotten(syncing._start(tmp_path, tmp_path / "home"))

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False)])
def test_the_setting_is_a_boolean(text, value):
    assert setting("autocommit").parse(text) is value
    with pytest.raises(Invalid):
        setting("autocommit").parse("perhaps")
