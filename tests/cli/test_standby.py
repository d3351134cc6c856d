"""The server in the background, which a command starts in a project with very many memories."""

import time
from pathlib import Path
from threading import Thread

import pytest

from mimo.call import Call
from mimo.cli import asked, standby
from mimo.cli.main import main
from mimo.features.notes.commands import add
from mimo.store.locks import holding


@pytest.fixture
def noted(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A project in which processes in the background are allowed, with enough memories."""
    monkeypatch.setattr(asked, "MANY", 1)
    monkeypatch.delenv("MIND_BACKGROUND")
    add(call, "Green tea is drunk plain.")
    return call


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The projects for which a process was started; none is."""
    roots: list[Path] = []
    monkeypatch.setattr(
        "mimo.operations.background.start", lambda module, root, home: roots.append(root)
    )
    return roots


@pytest.mark.parametrize(("most", "times"), [(1, 1), (2, 0)])
def test_a_command_starts_it_among_very_many_memories(
    noted: Call, started: list[Path], monkeypatch: pytest.MonkeyPatch, most: int, times: int
) -> None:
    monkeypatch.setattr(asked, "MANY", most)
    monkeypatch.chdir(noted.mind.project.root)

    main(["list"])
    main(["log"])

    assert started == [noted.mind.project.root] * times


def test_it_is_not_started_twice(noted: Call, started: list[Path]) -> None:
    with holding(noted.mind.index_folder / "standby"):
        asked.serve_the_next(noted)

    assert started == []


@pytest.mark.parametrize("name", ["MIND_BACKGROUND", "MIND_SOCKET"])
def test_a_variable_prevents_it(
    noted: Call, started: list[Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "off")

    asked.serve_the_next(noted)

    assert started == []


def test_it_answers_commands_and_ends_when_nothing_asks(
    noted: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, home = noted.mind.project.root, noted.mind.home
    monkeypatch.chdir(root)
    thread = Thread(target=standby.serve, args=(root, home, 1.0))
    thread.start()

    deadline = time.monotonic() + 20
    while asked.answer(["list"]) is None and time.monotonic() < deadline:
        time.sleep(0.02)

    assert "Green tea" in capsys.readouterr().out
    thread.join(20)
    assert not thread.is_alive()
    assert asked.answer(["list"]) is None


def test_it_makes_room_for_another_after_an_update(
    noted: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.installation.is_changed", lambda: True)
    thread = Thread(target=standby.serve, args=(noted.mind.project.root, noted.mind.home, 60.0))
    thread.daemon = True
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
