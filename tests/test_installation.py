"""The code of a long process: an update or an edit on disk does not mix old with new."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mimo
from mimo.call import Call
from mimo.data import locks
from mimo.features import daemon
from mimo.features.daemon import commands
from mimo.features.upkeep import checks
from mimo.operations import asking

PACKAGE = Path(mimo.__file__).parent


def copied(folder: Path) -> Path:
    """Installs the package into a folder; the model is linked, because it is large."""
    shutil.rmtree(folder / "mimo", ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "model")
    copy = shutil.copytree(PACKAGE, folder / "mimo", ignore=ignored)
    (copy / "model").symlink_to(PACKAGE / "model")
    return copy


def run(code: str, folder: Path) -> str:
    """Returns what a program prints that uses the package in a folder, or in an archive."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environ, cwd="/", check=True, capture_output=True, text=True
    ).stdout


GREETING = "from mimo.operations.asking import GREETING; print(GREETING)"
DIGEST = "from mimo.installation import digest; print(digest())"


def test_processes_of_an_installation_greet_alike_until_it_is_updated(tmp_path: Path) -> None:
    copied(tmp_path)
    first = run(GREETING, tmp_path)
    digest = run(DIGEST, tmp_path)
    assert run(GREETING, tmp_path) == first
    link = tmp_path.with_name("link")
    link.symlink_to(tmp_path)
    assert run(GREETING, link) == first
    assert run(DIGEST, link) == digest

    copied(tmp_path)
    assert run(GREETING, tmp_path) != first
    assert run(DIGEST, tmp_path) != digest
    assert json.dumps(asking.GREETING) not in first


def test_an_archive_is_an_installation(tmp_path: Path) -> None:
    archive = tmp_path / "mimo.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(mimo.__file__, "mimo/__init__.py")
    code = (
        "import os, mimo; print(mimo.BUILD);"
        "os.utime(PATH, (1, 1)); print(mimo.installed());"
        "os.unlink(PATH); print(mimo.installed())"
    )
    before, updated, removed, _ = run(code.replace("PATH", repr(f"{archive}")), archive).split("\n")
    assert before.endswith("mimo.zip")
    assert updated not in {"", before}
    assert removed == ""


def test_an_archive_that_was_replaced_is_not_read(tmp_path: Path) -> None:
    archive = tmp_path / "mimo.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in PACKAGE.rglob("*.py"):
            file.write(path, path.relative_to(PACKAGE.parent))
    code = f"""
import os
from mimo import installation
from mimo.errors import Updated
installation.keep()
import mimo.text
os.utime({str(archive)!r}, (1, 1))
try:
    import mimo.zones
except Updated:
    print("refused")
"""
    assert run(code, archive) == "refused\n"


def test_a_changed_module_is_not_loaded_into_an_old_process(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    code = f"""
from pathlib import Path
from mimo import installation
from mimo.errors import Updated
from mimo.operations import asking
installation.keep()
installation.keep()
before = installation.digest()
assert not installation.is_changed()
for name in ("zones.py", "operations/asking.py"):
    path = Path({str(copy)!r}, name)
    path.write_text(path.read_text() + "# edited")
Path({str(copy)!r}, "added.py").touch()
import mimo.config, mimo.operations.asking
for name in ("zones", "added"):
    try:
        __import__("mimo." + name)
    except Updated:
        print(name)
assert installation.is_changed() and installation.digest() == before
installation.check_installed()
"""
    assert run(code, tmp_path).split() == ["zones", "added"]


@contextmanager
def server(folder: Path, project: Path) -> Iterator[Any]:
    """Yields a function that calls a tool of `mind mcp`, and returns its text."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "mimo", "mcp"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, cwd=project, text=True,
    ) as running:  # fmt: skip
        assert running.stdin
        assert running.stdout
        given, taken = running.stdin, running.stdout

        def ask(method: str, **params: object) -> Any:
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            print(json.dumps(request), file=given, flush=True)
            while (answer := json.loads(taken.readline())).get("id") != 1:
                pass
            return answer["result"]

        client = {"name": "x", "version": "1"}
        ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        print('{"jsonrpc": "2.0", "method": "notifications/initialized"}', file=given, flush=True)
        yield lambda tool, **given: ask("tools/call", name=tool, arguments=given)["content"][0][
            "text"
        ]
        given.close()


def test_a_server_whose_package_was_replaced_says_so_and_writes_nothing(
    tmp_path: Path, project: Path
) -> None:
    copy = copied(tmp_path / "site")
    with server(tmp_path / "site", project) as call:
        assert "coffee" in call("mind_add", text="coffee at nine")
        copied(tmp_path / "site")
        message = "error: mind was updated or removed while this process was running [MIND_UPDATED]"
        assert call("mind_add", text="tea at four").startswith(message)
        assert "start a new session" in call("mind_search", query="coffee")
        shutil.rmtree(copy)
        assert call("mind_add", text="tea at four").startswith(message)
    texts = [path.read_text() for path in (project / ".mind").rglob("*.md")]
    assert not any("tea" in text for text in texts)


def test_a_daemon_of_another_build_is_named(call: Call) -> None:
    with locks.lock(call.mind.home / "daemon.pid"):
        daemon.write_state(call.mind.home, started=call.mind.now(), watching=())
        assert commands.status(call).notice is None
        state = json.loads((call.mind.home / "daemon.json").read_text())
        (call.mind.home / "daemon.json").write_text(json.dumps({**state, "code": "other"}))
        named = "the daemon runs another build of mind than this command"
        assert named in str(commands.status(call).notice)
        started = commands.start(call)
        assert started.already
        assert "mind daemon restart" in str(started.notice)
        (warning,) = [check for check in checks.examine(call) if check.message == named]
        assert warning.verdict == checks.Verdict.WARNING
