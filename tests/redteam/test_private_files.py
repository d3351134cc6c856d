"""Private places are the user's alone, under any umask; `private.transcript` has the repairs."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mimo.call import Surface
from mimo.call.spec import Effect
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.data import disk, files
from tests import mama_databases, sample_procedures
from tests.kit import is_of_core, put, repository

pytestmark = pytest.mark.attack("private file read by another user")

Run = Callable[..., str]


@pytest.fixture(params=[0o000, 0o077], ids=["umask 000", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """A umask that takes nothing away, or all."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in the project and returns what it printed."""
    monkeypatch.chdir(project)
    (Path(os.environ["HOME"])).mkdir()

    def run(*argv: str, status: int = 0) -> str:
        assert main(argv) == status, (argv, capsys.readouterr().err)
        return capsys.readouterr().out

    return run


def exposed(*folders: Path) -> dict[str, str]:
    """Returns the files and folders that other users may use, with their modes."""
    modes = {}
    for top in folders:
        for path in (top, *top.rglob("*")):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & 0o077:
                modes[str(path)] = oct(mode)
    return modes


def private_folders(project: Path, home: Path) -> list[Path]:
    places = [project / ".mind" / name for name in disk.PRIVATE_FOLDERS]
    return [home, *(place for place in places if place.exists())]


def id_in(printed: str) -> str:
    return str(json.loads(printed)["id"])


def writing() -> set[str]:
    """Returns the command lines of all commands of the core that write."""
    return {
        spec.path
        for spec in all_commands().all()
        if is_of_core(spec) and Surface.CLI in spec.surfaces and spec.effect is not Effect.READ
    }


BY_HAND = {
    "import",
    "daemon run",
    "daemon restart",
    "procedure resume",
    "procedure send",
    "review settle",
}
"""Commands that need another process, a conflict or a format of an extension."""

ELSEWHERE = {"demo"}
"""Commands that write to a project and a home of their own, by running other commands."""


@pytest.mark.usefixtures("ann")
def test_no_command_leaves_a_private_file_open_to_others(
    run: Run, project: Path, home: Path, tmp_path: Path
) -> None:
    os.umask(0)
    repository(project)
    (project / "notes.txt").write_text("The cache holds 300 entries.\n", encoding="utf-8")
    done: set[str] = set()

    def step(*argv: str, status: int = 0) -> str:
        done.add(next(w for n in (2, 1) if (w := " ".join(argv[:n])) in names))
        return run(*argv, status=status)

    names = {spec.path for spec in all_commands().all()}
    step("init", ".")
    step("config", "commits", "10")
    step("config", "decay.rate", "0.2")
    step("install", "cursor", "--scope", "user")
    step("uninstall", "cursor", "--scope", "user")
    added = id_in(step("add", "The staging database is reset", "--private", "--json"))
    step("edit", added, "--content", "The staging database is reset every night", "--add-tag", "db")
    step("tags", "rename", "db", "staging")
    step("keep", added)
    step("review", "keep", added, "--kind", "untrusted", status=1)
    private = ("--private", "--json")
    decision = id_in(step("save", "decision", "auth", "Use JWT", "Stateless", *private))
    step("link", decision, added, "--type", "builds_on")
    step("projects", "forget")
    step("save", "checkpoint", "Half of the migration is done", *private)
    step("save", "insight", "Caches need limits", *private)
    step("evolve", "outcome", decision, "FAILED", "It broke")
    step("evolve", "supersede", decision, "Use sessions", "They can be revoked", *private)
    stored = id_in(step("memory", "store", "Retry after 30 seconds", *private))
    step("memory", "delete", stored)
    step("ingest", "notes.txt", "--private")
    edge = ("pitfalls", "add", "--description", "It answers 429", "--workaround", "Wait")
    step(*edge, "--title", "Safari drops cookies", "--intent", "x")
    step(*edge, "--project", *private, "--title", "Staging is slow", "--intent", "y")
    step("pitfalls", "starter")
    step("value", "put", "agent.preferences", "theme", '"dark"')
    step("value", "put", "session.current", "step", "3")
    step("value", "rm", "agent.preferences", "theme")
    step("procedure", "new", "release")
    put(tmp_path / "greet.md", sample_procedures.text("greet", sample_procedures.GREET))
    step("procedure", "add", str(tmp_path / "greet.md"))
    step("trust")
    step("procedure", "run", "greet", "--context", '{"who": "Ada"}')
    (execution,) = (project / ".mind/.local/executions").iterdir()
    step("procedure", "cancel", execution.name)
    mama_databases.example(tmp_path / "mama.db")
    step("import", "mama", "--db", str(tmp_path / "mama.db"))
    step("context", "write")
    step("module", "install")
    step("index", "--rebuild")
    step("sync")
    step("rm", added)
    step("undo")
    step("redo")
    step("undo")
    step("rm", added)
    public = id_in(step("add", "The API allows 100 calls a minute", "--json"))
    step("sync")
    step("edit", public, "--content", "The API allows 200 calls a minute")
    step("sync")
    step("restore", public)
    step("untrust")
    try:
        step("daemon", "start")
    finally:
        step("daemon", "stop")
    for reading in ("search calls", "status", "doctor", "recall calls", "events", "metrics"):
        run(*reading.split())

    assert writing() - BY_HAND - ELSEWHERE <= done
    assert exposed(*private_folders(project, home)) == {}
    assert (home / "logs" / "daemon.log").exists()
    assert {path.name for path in home.iterdir()} <= {*disk.HOME_NAMES}


def test_a_memory_for_everyone_follows_the_umask(run: Run, project: Path) -> None:
    before = os.umask(0o002)
    try:
        run("add", "The API allows 100 calls a minute")
    finally:
        os.umask(before)

    (path,) = (project / ".mind" / "facts").iterdir()
    assert stat.S_IMODE(path.lstat().st_mode) == 0o664


def test_the_files_beside_an_open_database_are_private(
    run: Run, project: Path, home: Path, umask: int
) -> None:
    from mimo.call import Call
    from mimo.mind import Mind

    run("add", "The staging database is reset every night")
    call = Call(Mind.open(project))
    try:
        with call.mind.index._tables.writing() as sql:
            sql.execute("CREATE TABLE IF NOT EXISTS probe (x)")
            names = {path.suffix for path in (project / ".mind" / ".index").iterdir()}
            assert {".db-wal", ".db-shm"} <= names
            assert exposed(*private_folders(project, home)) == {}
            sql.execute("DROP TABLE probe")
    finally:
        call.mind.close()


def test_a_hook_leaves_nothing_open_to_others(project: Path, home: Path, umask: int) -> None:
    text = "We moved the cache to Redis because the file locks were slow. " * 5
    moments = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
    for moment in moments:
        event = {"session_id": "s1", "hook_event_name": moment, "cwd": str(project)}
        event |= {"prompt": "cache", "last_assistant_message": text, "source": "startup"}
        payload = json.dumps(event).encode()
        argv = [sys.executable, "-m", "mimo", "hook", "claude-code"]
        subprocess.run(argv, input=payload, check=True, cwd=project, capture_output=True)

    assert list((project / ".mind" / "private").rglob("*.md"))
    assert exposed(*private_folders(project, home)) == {}


def test_an_editor_that_puts_a_new_file_in_its_place_opens_nothing(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    kept = id_in(run("add", "The staging database is reset", "--private", "--json"))
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import os, pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "new = path.with_name('new')\n"
        "new.write_bytes(path.read_bytes() + b'Every night.\\n')\n"
        "new.replace(path)\n"
        f"pathlib.Path({str(tmp_path / 'mode')!r}).write_text(oct(path.parent.stat().st_mode))\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")

    run("edit", kept)

    assert (tmp_path / "mode").read_text(encoding="utf-8") == "0o40700"
    (path,) = (project / ".mind" / "private").rglob("*.md")
    assert path.read_text(encoding="utf-8").endswith("Every night.\n")
    assert exposed(project / ".mind" / "private") == {}
    assert not list(tmp_path.glob("mind-*"))


def test_a_shared_folder_is_never_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, own = tmp_path / "tmp", tmp_path / "user"
    for folder, mode in ((shared, 0o1777), (own, 0o755)):
        folder.mkdir()
        folder.chmod(mode)
        disk.home_of({"MIND_HOME": str(folder)})
        files.write_new(folder / "logs" / "x.log", b"x")

        assert stat.S_IMODE(folder.stat().st_mode | 0o1000) == mode | 0o1000
        assert exposed(folder / "logs") == {}


def test_a_hook_and_a_server_write_nothing_to_a_folder_with_other_things(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    var = tmp_path / "var"
    put(var / "lib/x", "x")
    var.chmod(0o755)
    monkeypatch.setenv("MIND_HOME", str(var))
    event = {"session_id": "s", "hook_event_name": "SessionStart", "cwd": str(Path.cwd())}
    for words in (["hook", "claude-code"], ["mcp"]):
        argv = [sys.executable, "-m", "mimo", *words]
        subprocess.run(argv, input=json.dumps(event).encode(), check=True)

    assert sorted(var.rglob("*")) == [var / "lib", var / "lib/x"]
    assert stat.S_IMODE(var.stat().st_mode) == 0o755


def test_no_file_is_open_for_a_moment_before_it_is_closed(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, int]] = []
    real_open, real_mkdir = os.open, os.mkdir

    def watching_open(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        if flags & os.O_CREAT and disk.private_place(Path(path)):
            opened.append((str(path), mode))
        return real_open(path, flags, mode, **more)

    def watching_mkdir(path: str, mode: int = 0o777, **more: int) -> None:
        if disk.private_place(Path(path)):
            opened.append((str(path), mode))
        real_mkdir(path, mode, **more)

    monkeypatch.setattr(os, "open", watching_open)
    monkeypatch.setattr(os, "mkdir", watching_mkdir)
    monkeypatch.chdir(project)

    assert main(["add", "The staging database is reset", "--private"]) == 0
    assert main(["search", "staging"]) == 0

    assert len(opened) > 10
    assert [(path, oct(mode)) for path, mode in opened if mode & 0o077] == []
