"""The same command lines with and without a server, which must print the same."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.call import Call
from mimo.cli import asked
from mimo.cli.answering import reply as reply_of
from mimo.cli.main import main
from mimo.disk import _FINE_GRAIN_NS
from mimo.mind import Mind
from mimo.operations import asking, finding
from mimo.rendering import PlainScreen, Screen, Styled
from mimo.rendering.results import Recorded, replay
from tests.serving import serving

Run = Callable[..., tuple[int | None, str, str]]

NOTES = {
    "fact_tea_1": "---\nid: fact_tea_1\ntype: fact\ntags: [tea]\n---\nGreen tea is drunk plain.\n",
    "fact_tea_2": "---\nid: fact_tea_2\ntype: fact\n---\nBlack tea\u2014with milk \u001b[31m.\n",
}


@pytest.fixture
def shop(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two facts, in which commands run."""
    for name, text in NOTES.items():
        path = project / ".mind" / "facts" / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
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
    with serving(home, shop):
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
    request = {"ask": "command", "argv": argv, "screen": False, "wide": True}

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
        "screen": False,
        "wide": True,
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


def test_an_answer_that_comes_too_late_is_recorded_once(home: Path, shop: Path, alone: Run) -> None:
    """The process that has waited runs the command, and records it."""
    goes_on = Event()

    def late(call: Call, request: Mapping[str, Any]) -> dict[str, Any] | None:
        reply = reply_of(call, request)
        goes_on.wait(9)
        return reply

    def recorded() -> int:
        path = shop / ".mind/.local/audit.jsonl"
        return path.read_text("utf-8").count('"mind_show"') if path.exists() else 0

    words = {"argv": ["show", "fact_tea_1"], "folder": str(shop), "screen": False, "wide": True}
    request = {"ask": "command", **words, **asking.surroundings(os.environ)}
    with serving(home, shop, late):
        assert asking.ask(str(home), str(shop), request, seconds=0.05) is None
        goes_on.set()
        assert asking.ask(str(home), str(shop), request)
    assert recorded() == 1
    alone("show", "fact_tea_1")
    assert recorded() == 2


@pytest.mark.usefixtures("server")
def test_completion_is_the_same(
    alone: Run, by_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone("list")
    monkeypatch.setenv(asked.COMPLETING, "1")
    for argv in (("show", "fact_"), ("list", "--ta"), ("add", "--file", ""), ("", "")):
        assert by_server(*argv) == alone(*argv)
    # The path is one from the working directory, which the server does not have.
    assert by_server("--project=.", "show", "fact_") == (None, "", "")


PARTS = st.text(max_size=8) | st.builds(
    Styled, st.text(max_size=8), st.sampled_from(["dim", "strong"])
)
CALLS = st.one_of(
    st.tuples(st.just("line"), st.lists(PARTS, max_size=3), st.just(2)),
    st.tuples(st.sampled_from(["text", "markdown", "verbatim"]), st.text(), st.just(0)),
    st.tuples(st.just("table"), st.lists(st.tuples(PARTS, PARTS), max_size=3), st.just(0)),
)


@given(st.lists(CALLS, max_size=5))
def test_a_recorded_screen_replays_as_it_was(calls: list[tuple[str, object, int]]) -> None:
    written: list[str] = []

    class Kept(PlainScreen):
        def finish(self, *, pager: bool) -> None:
            written.extend(self._lines)

    def draw(screen: Screen) -> None:
        for name, body, indent in calls:
            if name == "line":
                screen.line(*body, indent=indent)  # type: ignore[misc]  # as generated
            elif name == "table":
                screen.table(("a", "b"), body)  # type: ignore[arg-type]  # as generated
            else:
                getattr(screen, name)(body)

    recorded, direct = Recorded(), Kept()
    draw(recorded)
    draw(direct)
    direct.finish(pager=False)
    expected = list(written)
    written.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mimo.rendering.results.screen_for", lambda *_, **__: Kept())
        replay(json.loads(json.dumps(recorded.calls)), {})

    assert written == expected
    assert recorded.plain == "".join(f"{line}\n" for line in expected)


def test_a_server_answers_with_the_users_memory_and_sees_its_changes(
    home: Path, shop: Path, by_server: Run, alone: Run
) -> None:
    with serving(home, shop):
        assert alone("add", "--user", "Always use pnpm, never npm")[0] == 0
        assert by_server("search", "pnpm") == alone("search", "pnpm")
        assert "Always use pnpm" in by_server("list", "--user")[1]

        (file,) = (home / "memories" / ".mind" / "facts").iterdir()
        file.write_text(file.read_text("utf-8").replace("pnpm", "zebra"), encoding="utf-8")
        status, out, _ = by_server("search", "zebra")

    assert (status, "Always use zebra" in out) == (0, True)
