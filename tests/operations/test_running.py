"""The user's running servers are listed while they run."""

import os
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.features.upkeep.status import status
from mimo.operations import running
from mimo.operations.running import Kind, Server, registered, servers
from tests.conftest import NOW


def test_a_server_is_listed_while_it_runs(home: Path, project: Path) -> None:
    with registered(home, Kind.STDIO, project, NOW):
        assert servers(home, project) == [Server(NOW, Kind.STDIO, os.getpid())]
    assert servers(home, project) == []
    assert list((home / "run").iterdir()) == []


def test_a_server_of_another_project_is_not_listed(home: Path, project: Path) -> None:
    with registered(home, Kind.WEB, project, NOW), registered(home, Kind.HTTP, None, NOW):
        assert {process.kind for process in servers(home, project)} == {Kind.WEB, Kind.HTTP}
        assert {process.kind for process in servers(home, project / "other")} == {Kind.HTTP}
        assert {process.kind for process in servers(home, None)} == {Kind.WEB, Kind.HTTP}


def test_the_file_of_a_killed_server_is_removed(home: Path, project: Path) -> None:
    (home / "run").mkdir(parents=True, exist_ok=True)
    (home / "run" / "123-web.server").write_text("{}", encoding="utf-8")
    assert servers(home, project) == []
    assert list((home / "run").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "x", "pid": 1, "since": "then"}'])
def test_a_damaged_file_is_left_out(home: Path, project: Path, text: str) -> None:
    with registered(home, Kind.WEB, project, NOW):
        (path,) = (home / "run").iterdir()
        path.write_text(text, encoding="utf-8")
        assert servers(home, project) == []


def test_a_server_runs_if_it_can_not_be_listed(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_folder", lambda home: home / "index-owner" / "run")
    (home / "index-owner").write_text("a file", encoding="utf-8")
    with registered(home, Kind.WEB, project, NOW):
        assert servers(home, project) == []


def test_the_status_lists_what_runs(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    root = call.mind.project.root
    assert status(call).running == ()
    with registered(call.mind.home, Kind.STDIO, root, NOW):
        (row,) = status(call).running
        main(["status"], open=lambda _: call.mind)
    printed = capsys.readouterr().out
    assert f"`mind mcp` runs as process {os.getpid()}, started {NOW:%Y-%m-%d}" in printed
    assert (row.kind, row.pid, row.since) == (Kind.STDIO, os.getpid(), NOW)
