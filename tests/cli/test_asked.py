"""The same command lines with and without a server, which must print the same."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from mimo.call import Call
from mimo.cli import asked
from mimo.cli.answering import reply as reply_of
from mimo.cli.main import main
from mimo.data.disk import _FINE_GRAIN_NS
from mimo.errors import Cancelled
from mimo.mind import Mind
from mimo.operations import asking, finding
from mimo.rendering import Screen
from mimo.rendering.terminal import TerminalScreen
from tests.kit import put, served

Run = Callable[..., tuple[int | None, str, str]]

NOTES = {
    "fact_tea_1": "---\nid: fact_tea_1\ntype: fact\ntags: [tea]\n---\nGreen tea is drunk plain.\n",
    "fact_tea_2": "---\nid: fact_tea_2\ntype: fact\n---\nBlack tea\u2014with milk \u001b[31m.\n",
}


@pytest.fixture
def shop(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two facts, in which commands run."""
    for name, text in NOTES.items():
        put(project / ".mind" / "facts" / f"{name}.md", text)
    # A file that was written just before it was indexed is indexed again, at another time.
    time.sleep(2 * _FINE_GRAIN_NS / 1e9)
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def alone(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process."""

    def run(*argv: str) -> tuple[int | None, str, str]:
        status = main(list(argv))
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def by_server(capsys: pytest.CaptureFixture[str]) -> Run:
    """Lets a server answer a command line."""

    def run(*argv: str) -> tuple[int | None, str, str]:
        status = asked.answer(argv)
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def server(home: Path, shop: Path) -> Iterator[None]:
    with served(home, shop):
        yield


LINES = (
    ("search", "which tea with milk"),
    ("search", "--json", "tea"),
    ("search", "--type", "decision", "nothing"),
    ("search", ""),
    ("search", "tea", "--threshold", "2"),
    ("search", "recent"),
    ("recall", "green tea"),
    ("list",),
    ("list", "--json", "--limit", "1"),
    ("show", "fact_tea_1"),
    ("show", "fact_tea"),
    ("show", "missing", "--json"),
    ("memory", "list"),
    ("status",),
    ("status", "--json"),
)


@pytest.mark.parametrize("argv", LINES, ids=" ".join)
@pytest.mark.usefixtures("server")
def test_a_server_prints_what_the_command_prints(
    argv: tuple[str, ...], alone: Run, by_server: Run
) -> None:
    expected = alone(*argv)

    assert by_server(*argv) == expected


@pytest.mark.usefixtures("server")
def test_a_change_is_in_the_next_answer(shop: Path, by_server: Run) -> None:
    by_server("list")
    (shop / ".mind/facts/fact_tea_1.md").write_text(
        NOTES["fact_tea_1"].replace("Green", "White"), encoding="utf-8"
    )

    assert "White tea" in by_server("list")[1]


@pytest.mark.parametrize(
    "argv",
    [
        ("add", "White tea"),
        ("review",),
        ("search", "--scope", "all", "tea"),
        ("search", "--at", "HEAD", "tea"),
        ("list", "--project", "."),
        ("list", "--unknown"),
        ("list", "--help"),
        ("search", "--version"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("server")
def test_what_a_server_must_not_or_need_not_do_is_left(
    argv: tuple[str, ...], by_server: Run
) -> None:
    assert by_server(*argv) == (None, "", "")


@pytest.mark.parametrize("argv", [[], ["--json"], ["--", "--json"], ["memory"], [1], "list", None])
def test_odd_words_print_nothing_in_the_server(
    argv: object, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    request = {"ask": "command", "argv": argv, "size": None, "colour": False}

    assert reply_of(call, request) is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("server")
def test_a_server_answers_in_the_zone_of_the_user(by_server: Run, alone: Run) -> None:
    assert alone("config", "time.zone", "Pacific/Kiritimati")[0] == 0

    for argv in (("list", "--when", "today"), ("show", "fact_tea_1"), ("list",)):
        assert by_server(*argv) == alone(*argv)
    assert "Pacific/Kiritimati" in by_server("list", "--when", "today")[2]


@pytest.mark.parametrize("name", ["TZ", "HOME", "MIND_BACKGROUND", "SANDBOX_DIR", "GIT_DIR"])
@pytest.mark.usefixtures("server")
def test_a_server_with_another_environment_is_not_used(
    name: str, by_server: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {**os.environ, name: "/other"}
    request = {
        "ask": "command",
        "argv": ["list"],
        "folder": str(Path.cwd()),
        "size": None,
        "colour": False,
        **asking.surroundings(environ),
    }

    assert by_server("list")[0] == 0
    assert asking.ask(str(home), str(Path.cwd()), request) is None
    monkeypatch.setenv(asking.OFF, "off")
    assert by_server("list")[0] is None


@pytest.mark.usefixtures("server")
def test_the_setting_switches_it_off(home: Path, by_server: Run) -> None:
    (home / "config.toml").write_text('[server]\nsocket = "off"\n', encoding="utf-8")

    assert by_server("list")[0] is None


@pytest.mark.usefixtures("server")
def test_uses_and_audit_are_those_of_the_command(
    shop: Path, by_server: Run, alone: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent is that of the shell that asks."""

    def recorded() -> list[tuple[str, str]]:
        path = shop / ".mind/.local/audit.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        events = [json.loads(line).get("event", {}) for line in lines]
        return [(event["tool"], event.get("agent", "")) for event in events if "tool" in event]

    def uses() -> int:
        call = Call(Mind.open(shop))
        try:
            return finding.uses(call)["fact_tea_1"].times
        finally:
            call.mind.close()

    monkeypatch.setenv("CLAUDECODE", "1")
    alone("show", "fact_tea_1")
    rows, count = recorded(), uses()
    by_server("show", "fact_tea_1")

    assert rows == [("mind_show", "claude-code")]
    assert recorded() == rows * 2
    assert uses() == 2 * count


def test_a_server_gives_up_when_the_process_does(home: Path, shop: Path) -> None:
    """The process runs the command itself, and then alone records it."""
    cancelled = Event()

    def late(call: Call, request: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            while True:
                call.check_cancelled()
                time.sleep(0.01)
        except Cancelled:
            cancelled.set()
            raise

    words = {"argv": ["show", "fact_tea_1"], "folder": str(shop), "size": None, "colour": False}
    request = {"ask": "command", **words, **asking.surroundings(os.environ)}
    with pytest.MonkeyPatch.context() as patched, served(home, shop, late):
        patched.setattr(asking, "ANSWER_SECONDS", 0.2)
        assert asking.ask(str(home), str(shop), request, seconds=0.2) is None
        assert cancelled.wait(9)


@pytest.mark.usefixtures("server")
def test_completion_is_left(by_server: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(asked.COMPLETING, "1")
    assert by_server("list", "--ta") == (None, "", "")


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.usefixtures("server")
def test_a_server_draws_for_the_terminal(
    alone: Run, by_server: Run, monkeypatch: pytest.MonkeyPatch, colour: bool
) -> None:
    def screen(*_: object, colour: bool) -> Screen:
        return TerminalScreen(colour=colour and "NO_COLOR" not in os.environ, width=44, height=99)

    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("mimo.rendering.results.screen_for", screen)
    monkeypatch.setattr(asked, "_size", lambda: (44, 99))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for argv in (("search", "tea"), ("list",), ("show", "fact_tea_1"), ("list", "--json")):
        expected = alone(*argv)
        assert by_server(*argv) == expected
        assert ("\x1b[1;35m" in expected[1]) is (colour and "--json" not in argv)


@pytest.mark.usefixtures("server")
def test_a_long_answer_is_paged(by_server: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[str] = []
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("mimo.rendering.page", pages.append)
    monkeypatch.setattr(asked, "_size", lambda: (80, 1))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    assert by_server("list")[1] == ""
    assert "Green tea" in by_server("list", "--no-pager")[1]
    assert "Green tea" in by_server("list", "--json")[1]
    assert len(pages) == 1


def test_a_server_answers_with_the_users_memory_and_sees_its_changes(
    home: Path, shop: Path, by_server: Run, alone: Run
) -> None:
    with served(home, shop):
        assert alone("add", "--user", "Always use pnpm, never npm")[0] == 0
        assert by_server("search", "pnpm") == alone("search", "pnpm")
        assert "Always use pnpm" in by_server("list", "--user")[1]

        (file,) = (home / "memories" / ".mind" / "facts").iterdir()
        file.write_text(file.read_text("utf-8").replace("pnpm", "zebra"), encoding="utf-8")
        status, out, _ = by_server("search", "zebra")

    assert (status, "Always use zebra" in out) == (0, True)
