"""The daemon: its reactions to changes, and a real one that starts and stops."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.errors import DaemonNotRunning, Invalid, StorageFailed
from mimo.features import daemon, ingest
from mimo.features.daemon import commands, process
from mimo.features.daemon.process import Loop
from mimo.memory.model import Filter, Kind
from mimo.mind import Mind
from mimo.operations import refresh, removing, saving
from mimo.project.init import init
from mimo.project.projects import Registered, explicit
from tests.conftest import descriptors, git
from tests.kit import put

TEXT = "---\nid: fact_tea\ntype: fact\n---\nTea is served at four\n"


def everywhere(call: Call) -> Call:
    """Returns a memory that has no project of its own, as a daemon's."""
    return Call(Mind(home=call.mind.home, project=None, clock=call.mind.clock, environ={}))


@pytest.fixture
def loop(call: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    """The loop of a daemon that gets its changes from the test."""
    monkeypatch.setattr("mimo.project.watch.changes", lambda *_, **__: iter(()))
    loop = Loop(everywhere(call).mind)
    loop.update_projects()
    yield loop
    loop.end()
    loop.run()


def count(call: Call) -> int:
    return call.mind.index.count(Filter())


def test_a_change_is_indexed_at_once(loop: Loop, call: Call) -> None:
    path = put(call.mind.folder / "facts" / "fact_tea.md", TEXT)
    assert count(call) == 0
    loop.take(frozenset({path}))
    assert count(call) == 1


def open_files() -> set[str]:
    """Returns the paths of the files that this process has open."""
    return {os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()}


def test_its_end_closes_the_index_of_each_memory(call: Call, loop: Loop) -> None:
    user = call.user(make=True)
    assert user
    loop.check()
    opened = [*loop._projects.values(), loop._user]
    folders = [each.index_folder for each in opened if each]
    files = {str(path) for folder in folders for path in folder.glob("index*.db")}
    assert len(files) == 2
    assert files <= open_files()

    loop.end()
    loop.run()

    assert not files & open_files()


def test_the_users_memory_for_all_projects_is_kept_fresh(loop: Loop, call: Call) -> None:
    user = call.user(make=True)
    assert user
    loop.take(frozenset({call.mind.home / "memories"}))  # It appears while the daemon runs.
    path = put(user.mind.folder / "facts" / "fact_tea.md", TEXT)

    loop.take(frozenset({path}))

    assert count(user) == 1


def test_changed_files_are_read_for_their_meaning_without_another_process(
    loop: Loop, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MIND_BACKGROUND")
    path = put(call.mind.folder / "facts" / "fact_tea.md", TEXT)

    loop.take(frozenset({path}))

    until(lambda: vectors_of(call) == 1)


def vectors_of(call: Call) -> int:
    """Returns the number of the encoder's vectors of a project."""
    with closing(call.mind.reopened()) as opened:
        assert opened.index.meanings
        return opened.index.meanings.vectors.count()


@pytest.mark.req("003-38")
def test_a_session_ends_after_half_an_hour_without_activity(
    loop: Loop, call: Call, clock, project: Path
) -> None:
    loop.take(frozenset({project / ".git" / "COMMIT_EDITMSG"}))
    clock.forward(minutes=29)
    loop.check()
    assert set(loop.active) == {project}
    loop.take(frozenset({project / "README.md"}))
    clock.forward(minutes=29)
    loop.check()
    assert set(loop.active) == {project}
    clock.forward(minutes=1)
    loop.check()
    assert loop.active == {}


def ingested(call: Call, name: str = "guide.md") -> str:
    """Ingests a file, and returns the id of its source."""
    path = call.mind.project.root / name
    path.write_text("# Guide\n\nWater boils.\n", encoding="utf-8")
    (report,) = ingest.ingest_files(call, [str(path)], ingest.Options()).files
    assert report.source_id
    return report.source_id


def texts(call: Call) -> list[str]:
    return [path.read_text("utf-8") for path in (call.mind.folder / "sources").glob("*.md")]


def calls(call: Call) -> int:
    """Returns the number of calls in the audit log."""
    return sum(
        len(path.read_bytes().splitlines()) for path in call.mind.folder.rglob("audit*.jsonl")
    )


def test_nothing_happens_for_a_file_whose_source_was_removed(
    loop: Loop, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    removing.remove_source(call, call.mind.index.parts(ingested(call)))
    (call.mind.project.root / "guide.md").write_text("# Guide\n\nWater freezes.\n", "utf-8")
    before = calls(call)
    loop.check()
    assert not caplog.records
    assert (texts(call), calls(call)) == ([], before)
    ingested(call)  # It is followed again.
    (call.mind.project.root / "guide.md").write_text("# Guide\n\nWater flows.\n", "utf-8")
    loop.check()
    assert "Water flows" in texts(call)[0]


def test_an_emptied_file_keeps_its_chunks_until_it_is_filled_again(
    loop: Loop, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    ingested(call)
    guide = call.mind.project.root / "guide.md"
    before = calls(call)
    guide.write_text("", "utf-8")
    loop.check()
    assert "Water boils" in texts(call)[0]
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    assert calls(call) == before
    guide.write_text("# Guide\n\nWater flows.\n", "utf-8")
    loop.check()
    assert "Water flows" in texts(call)[0]
    guide.write_text("", "utf-8")
    ingest.update_files(call, [str(guide)], ingest.Options())
    assert texts(call) == []


def test_a_file_is_followed_on_the_branches_where_it_is_ingested(
    loop: Loop, call: Call, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    git(project, "init", "-q", "-b", "main")
    (project / "guide.md").write_text("# Guide\n", encoding="utf-8")
    git(project, "add", ".")
    git(project, "commit", "-qm", "begin")
    git(project, "switch", "-qc", "other")
    ingested(call)
    git(project, "add", ".")
    git(project, "commit", "-qm", "ingested")
    git(project, "switch", "-q", "main")
    (project / "guide.md").write_text("# Guide\n\nWater freezes.\n", "utf-8")
    before = calls(call)
    for _ in range(2):
        loop.check()
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    assert (texts(call), calls(call)) == ([], before)

    git(project, "stash", "-q")
    git(project, "switch", "-q", "other")
    (project / "guide.md").write_text("# Guide\n\nWater flows.\n", "utf-8")
    refresh.refresh(Call(loop._projects[project]))  # As after the events of the checkout.
    loop.check()
    assert "Water flows" in texts(call)[0]


def test_a_file_that_cannot_be_ingested_is_reported_once(
    loop: Loop, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    ingested(call)
    (call.mind.project.root / "guide.md").write_bytes(b"binary \0")
    loop.check()
    before = calls(call)
    loop.check()
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "guide.md was not ingested again: `guide.md` is binary" in warnings[0]
    assert calls(call) == before
    (call.mind.project.root / "guide.md").write_text("# Guide\n\nWater flows.\n", "utf-8")
    loop.check()
    assert "Water flows" in texts(call)[0]


@pytest.fixture
def diverged(call: Call, project: Path) -> Path:
    """A project on the branch `other`; it and `main` changed the same line of an ingested file."""
    git(project, "init", "-q", "-b", "main")
    ingested(call)
    git(project, "add", ".")
    git(project, "commit", "-qm", "begin")
    git(project, "branch", "-q", "other")
    for branch, word in (("main", "freezes"), ("other", "flows")):
        git(project, "switch", "-q", branch)
        (project / "guide.md").write_text(f"# Guide\n\nWater {word}.\n", "utf-8")
        git(project, "commit", "-qam", branch)
    return project


def test_nothing_is_written_during_a_rebase(loop: Loop, call: Call, diverged: Path) -> None:
    git(diverged, "rebase", "-q", "main", check=False)
    assert ">>>>>>>" in (diverged / "guide.md").read_text("utf-8")
    loop.check()
    (diverged / "guide.md").write_text("# Guide\n\nWater freezes and flows.\n", "utf-8")
    git(diverged, "add", "guide.md")
    loop.check()
    assert git(diverged, "status", "--porcelain") == "M  guide.md"
    git(diverged, "-c", "core.editor=true", "rebase", "--continue")
    loop.check()
    assert "Water freezes and flows" in texts(call)[0]


def test_an_unreadable_git_folder_stops_no_other_project(
    loop: Loop, call: Call, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "blog").mkdir()
    init(tmp_path / "blog", home, now=call.mind.now())
    blog = Call(
        Mind(
            home=home, project=explicit(tmp_path / "blog", home), clock=call.mind.clock, environ={}
        )
    )
    ingested(blog)
    (blog.mind.project.root / "guide.md").write_text("# Guide\n\nWater flows.\n", "utf-8")
    (call.mind.project.root / ".git").write_text(f"gitdir: /{'a' * 300}\n", encoding="utf-8")
    loop.check()
    assert "Water flows" in texts(blog)[0]


def test_a_file_with_a_conflict_of_git_is_not_ingested(
    loop: Loop, call: Call, diverged: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guide = diverged / "guide.md"
    guide.write_text("# Guide\n\nWater boils at last.\n", "utf-8")
    git(diverged, "stash", "-q")
    git(diverged, "switch", "-q", "main")
    git(diverged, "stash", "pop", "-q", check=False)
    assert ">>>>>>>" in guide.read_text("utf-8")
    loop.check()
    assert "`guide.md` has a conflict of git that is not resolved" in caplog.text
    with pytest.raises(Invalid, match="has a conflict of git that is not resolved"):
        ingest.ingest_files(call, [str(guide)], ingest.Options())
    assert "Water boils." in texts(call)[0]
    git(diverged, "add", "guide.md")  # The text may be about conflicts.
    (report,) = ingest.ingest_files(call, [str(guide)], ingest.Options()).files
    assert report.ids


@pytest.mark.parametrize("rule", ["", "mind_context: {operations: []}", "ingest: {operations: []}"])
def test_the_policy_binds_what_the_daemon_writes(
    loop: Loop, call: Call, clock, project: Path, rule: str
) -> None:
    saving.store(call, saving.draft(Kind.DECISION, "Use JWT for auth"))
    (project / "guide.md").write_text("# Guide\n\nWater boils.\n", encoding="utf-8")
    ingest.ingest_files(call, [str(project / "guide.md")], ingest.Options())
    (project / ".gitignore").write_text("CLAUDE.*\n", encoding="utf-8")
    (project / "guide.md").write_text("# Guide\n\nWater freezes.\n", encoding="utf-8")
    (call.mind.folder / "policy.yaml").write_text(
        f"tool_permissions: {{{rule}}}\n", encoding="utf-8"
    )
    loop.take(frozenset({project / "README.md"}))
    clock.forward(minutes=30)
    loop.check()
    loop.check()

    assert loop.active == {}
    assert any(project.glob("CLAUDE.*")) is not rule.startswith("mind_context")
    texts = [path.read_text("utf-8") for path in (call.mind.folder / "sources").glob("*.md")]
    assert any("freezes" in text for text in texts) is not rule.startswith("ingest")
    log = call.mind.folder / ".local" / "audit.jsonl"
    events = [json.loads(line)["event"] for line in log.read_text("utf-8").splitlines()]
    tools = [event["tool"] for event in events if event.get("agent") == ingest.DAEMON]
    written = {"ingest", "mind_context_write"}
    assert sorted(tools) == sorted(tool for tool in written if tool[:6] != rule[:6])


def test_removed_and_new_projects_are_noticed(
    loop: Loop, call: Call, project: Path, tmp_path: Path, home: Path, clock
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    init(other, home, now=clock())
    loop.take(frozenset({home / "projects.json"}))
    assert set(watched_projects(home)) == {str(project), str(other)}
    (project / ".mind").rename(project / "gone")
    loop.take(frozenset({project / "gone"}))
    assert set(watched_projects(home)) == {str(other)}


def test_removed_projects_are_not_made_again(
    loop: Loop, call: Call, project: Path, tmp_path: Path, home: Path, clock, monkeypatch
) -> None:
    put(call.mind.folder / "facts" / "fact_a.md", TEXT)
    other = tmp_path / "other"
    other.mkdir()
    init(other, home, now=clock())
    monkeypatch.setattr("mimo.features.daemon.process._SETTLE_SECONDS", 0)
    loop.update_projects()
    loop._restart_watching()  # Each project is checked once more afterwards.

    shutil.rmtree(project)
    shutil.rmtree(other)
    loop._settle()

    assert not project.exists()
    assert not other.exists()
    assert watched_projects(home) == ()


def set_project(call: Call, text: str) -> frozenset[Path]:
    """Writes a project's settings, and returns the paths of the change."""
    path = call.mind.folder / "config.toml"
    path.write_text(f"format = 1\n{text}\n", encoding="utf-8")
    return frozenset({path})


@pytest.fixture
def watched(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that the loop begins to watch."""
    folders: list[Path] = []

    def changes(
        begun: list[Path], *, stop: threading.Event, recursive: bool
    ) -> Iterator[frozenset[Path]]:
        folders.extend(begun)
        stop.wait()
        yield from ()

    monkeypatch.setattr("mimo.project.watch.changes", changes)
    return folders


def test_an_included_folder_is_watched_as_soon_as_a_check_finds_it(
    loop: Loop, call: Call, project: Path, watched: list[Path]
) -> None:
    loop.take(set_project(call, 'include = ["docs/*.md"]'))
    assert project / "docs" not in watched
    (project / "docs").mkdir()
    loop.check()
    until(lambda: project / "docs" in watched)


def test_an_included_folder_out_of_reach_does_not_end_the_loop(
    loop: Loop, call: Call, project: Path, watched: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "docs").mkdir()
    stat = os.stat

    def refused(path: Any, *args: Any, **named: Any) -> os.stat_result:
        if os.fspath(path) == str(project / "docs"):
            raise PermissionError
        return stat(path, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", refused)
        loop.take(set_project(call, 'include = ["docs/*.md"]'))
    assert project / "docs" not in watched
    loop.check()
    until(lambda: project / "docs" in watched)


def test_settings_that_change_while_projects_are_read_are_applied(
    loop: Loop, call: Call, project: Path, watched: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Mind.at
    (project / "docs").mkdir()
    (project / "docs" / "tea.md").write_text(TEXT, encoding="utf-8")

    def changing(self: Mind, registered: Registered) -> Mind | None:
        set_project(call, 'include = ["docs/*.md"]')
        return at(self, registered)

    monkeypatch.setattr(Mind, "at", changing)
    loop.update_projects()
    until(lambda: project / "docs" in watched)
    assert count(Call(call.mind.reopened())) == 1


def test_included_memories_stay_indexed_after_the_settings_change(
    loop: Loop, call: Call, project: Path, watched: list[Path]
) -> None:
    (project / "docs").mkdir()
    (project / "docs" / "tea.md").write_text(TEXT, encoding="utf-8")
    set_project(call, 'include = ["docs/*.md"]')
    assert refresh.refresh(Call(call.mind.reopened())).added == 1

    (call.mind.folder / "new").mkdir()
    loop.take(frozenset({call.mind.folder / "new"}))  # All files are compared.

    assert count(Call(call.mind.reopened())) == 1
    until(lambda: project / "docs" in watched)


def test_changed_settings_leave_no_files_open(loop: Loop, call: Call) -> None:
    opened = []
    for number in range(6):
        loop.take(set_project(call, f"trash.days = {10 + number}"))
        opened.append(descriptors())
    for number in range(6):
        path = call.mind.home / "config.toml"
        path.write_text(f"[trash]\ndays = {20 + number}\n", encoding="utf-8")
        loop.take(frozenset({path}))
        opened.append(descriptors())

    assert max(opened[2:]) <= opened[1]


def test_a_changed_pause_between_checks_holds_at_once(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_checked, path = threading.Event(), call.mind.home / "config.toml"
    monkeypatch.setattr("mimo.project.watch.changes", lambda *_, **__: iter(()))
    monkeypatch.setattr(Loop, "check", lambda _: is_checked.set())
    loop = Loop(everywhere(call).mind)
    thread = threading.Thread(target=loop.run)
    thread.start()
    until(lambda: loop._projects)
    path.write_text("[daemon]\ncheck_seconds = 1\n", encoding="utf-8")
    loop._events.put(frozenset({path}))
    try:
        assert is_checked.wait(30)
    finally:
        loop.end()
        thread.join()


def test_it_counts_as_started_before_the_first_index_is_made(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[tuple[str, ...]] = []
    monkeypatch.setattr("mimo.project.watch.changes", lambda *_, **__: iter(()))

    def note(_: Call) -> refresh.Refreshed:
        watched.append(watched_projects(call.mind.home))
        return refresh.Refreshed()

    monkeypatch.setattr("mimo.operations.refresh.refresh", note)
    loop = Loop(everywhere(call).mind)
    loop.update_projects()
    loop.end()
    loop.run()
    assert watched == [(str(call.mind.project.root),)]


def watched_projects(home: Path) -> tuple[str, ...]:
    with daemon.held(home):
        current = daemon.running(home)
    assert current is not None
    return current.watching


def test_files_are_compared_if_watching_fails(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> Iterator[frozenset[Path]]:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr("mimo.project.watch.changes", fails)
    loop = Loop(everywhere(call).mind)
    loop.update_projects()
    until(loop.is_blind)
    put(call.mind.folder / "facts" / "fact_tea.md", TEXT)
    loop.check()
    assert count(call) == 1
    loop.end()
    loop.run()


@pytest.fixture
def busy(call: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    """A loop that runs in a thread, while a file beside the memories changes all the time."""

    def always(_: object, *, stop: threading.Event, recursive: bool) -> Iterator[frozenset[Path]]:
        while not stop.wait(0.02):
            yield frozenset() if recursive else frozenset({call.mind.project.root / "build.log"})

    monkeypatch.setattr("mimo.project.watch.changes", always)
    (call.mind.home / "config.toml").write_text("[daemon]\ncheck_seconds = 1\n", encoding="utf-8")
    loop = Loop(everywhere(call).mind)
    thread = threading.Thread(target=loop.run)
    thread.start()
    yield loop
    loop.end()
    thread.join()


def test_a_missed_change_is_indexed_while_other_files_change(busy: Loop, call: Call) -> None:
    until(lambda: busy.active)
    put(call.mind.folder / "facts" / "fact_tea.md", TEXT)
    until(lambda: count(call) == 1)


def test_projects_are_checked_while_files_change(
    busy: Loop, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: busy.active)
    checks = 0

    def check(_: Loop) -> None:
        nonlocal checks
        checks += 1

    monkeypatch.setattr(Loop, "check", check)
    until(lambda: checks > 1)


def test_a_full_disk_is_logged(
    loop: Loop, call: Call, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise StorageFailed("no space left")

    monkeypatch.setattr("mimo.operations.refresh.refresh_changed", fails)
    with caplog.at_level("WARNING", "mind.daemon"):
        loop.take(frozenset({call.mind.folder / "facts" / "x.md"}))
    assert "no space left" in caplog.text


def until(holds: Callable[[], object]) -> None:
    """Waits for another process or thread."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def running(call: Call) -> Iterator[Call]:
    """A memory with a real daemon beside it."""
    call.mind.environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process.start(call.mind)
    yield call
    if daemon.running(call.mind.home):
        process.stop(call.mind)


@pytest.mark.req("003-33", "003-34")
def test_a_daemon_starts_sees_a_change_and_stops(running: Call) -> None:
    current, already = process.start(running.mind)
    assert already
    assert commands.status(running).projects == (str(running.mind.project.root),)
    put(running.mind.folder / "facts" / "fact_tea.md", TEXT)
    until(lambda: count(running) == 1)
    assert process.stop(running.mind).pid == current.pid
    assert daemon.running(running.mind.home) is None
    assert any(line.endswith("INFO ended") for line in daemon.newest(running, 2))


def test_a_killed_daemon_does_not_count_as_running(running: Call) -> None:
    current = daemon.running(running.mind.home)
    assert current is not None
    os.kill(current.pid, signal.SIGKILL)
    until(lambda: daemon.running(running.mind.home) is None)
    with pytest.raises(DaemonNotRunning):
        process.stop(running.mind)
    again, already = process.start(running.mind)
    assert (again.pid != current.pid, already) == (True, False)


def test_a_second_daemon_refuses_to_start(running: Call) -> None:
    current = daemon.running(running.mind.home)
    assert current is not None
    done = subprocess.run(
        [sys.executable, "-m", "mimo", "daemon", "run"],
        env={**running.mind.environ, "MIND_HOME": str(running.mind.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"process {current.pid}" in done.stderr
