"""The promises of every reader, also about files that are damaged or hostile."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.extensions.sessions.model import Kind, Progress, Reader, Role, Unavailable
from mimo.extensions.sessions.readers import CLIENTS, parts, reader_of, resuming
from tests.conftest import read_tree
from tests.extensions.sessions.homes import (
    ANSWERED,
    ASKED,
    COMMAND,
    CORRECTED,
    CWD,
    ERROR,
    FILE,
    FIXTURES,
    RENAMED,
    TITLE,
    UNSAID,
    Read,
    by_id,
    home_of,
    read,
    sessions,
    source,
    without_zstd,
)
from tests.kit import put

__all__ = ["without_zstd"]
pytestmark = pytest.mark.usefixtures("without_zstd")

HOSTILE: list[Any] = [
    *(None, True, 0, -1, 5, 1e308, float("inf"), float("nan"), 10**400, "", "x", "\0", "\ud800"),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "--help", "../../x", "\x1b[2J"),
    *([], {}, [[]], [None], [{}], {"": {}}, {"type": 5}, [{"type": "text", "text": 5}]),
    *(["text", 5], {"type": ["user"]}, "<system-reminder>", "<mind-context>", '{"a": 5', "[" * 200),
]
BYTES = (
    *(b"\0", b"\n", b"\r\n", b"\xff", b"\xe2\x82", b"\xef\xbb\xbf", b"{}\n", b"[]\n", b"5\n"),
    *(b"\n" + b"[" * 10_000 + b"\n", b'"\\ud800"', b'"type":"user"', b'{"type":"user"}\n'),
    *("é\n{}\n".encode("utf-16"), b"SQLite format 3\0", b"\x28\xb5\x2f\xfd", b"1" * 5_000),
)


def check(part_of: Read) -> None:
    """Checks what the store and the index rely on."""
    values = [getattr(part_of.facts, name) for name in type(part_of.facts).__annotations__]
    for turn in part_of.turns:
        values += [turn.text, turn.native_id, turn.error, *turn.files]
        assert turn.at is None or (turn.at.tzinfo == UTC and 2000 <= turn.at.year < 2200)
        assert turn.role is Role.TOOL or turn.text.strip()
    for value in values:
        value.encode()
    assert 0 <= part_of.unknown <= part_of.records or not part_of.records


def read_all(reader: Reader, home: Path) -> None:
    """Reads all that can be; what a reader may raise is what the caller reports."""
    with suppress(OSError, sqlite3.Error):
        for each in list(reader.sources({}, home)):
            with suppress(OSError, sqlite3.Error, Unavailable):
                check(read(reader, each))


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """Each client that has a reader."""
    name: str = request.param
    return name


def test_a_session_has_the_users_words_and_none_of_a_program(client: str, tmp_path: Path) -> None:
    prompts = []
    for _, session in sessions(reader_of(client), home_of(client, tmp_path)):
        check(session)
        prompts += session.prompts
        assert session.facts.client == client
        assert session.facts.native_id
        assert all("mind-context" not in text for text in session.answers)
    assert ASKED in prompts
    assert not [(word, text) for word in UNSAID for text in prompts if word in text]


@pytest.mark.parametrize(
    ("client", "id", "edit", "title", "branch"),
    [
        ("codex", "019a0000-0000-7000-8000-000000000001", f"apply_patch {FILE}", "", "trunk"),
        ("gemini", "5ac46628-0000-4000-8000-000000000001", f"replace {FILE}", TITLE, ""),
        ("copilot", "f559dc29-0000-4000-8000-000000000001", f"edit {FILE}", TITLE, "trunk"),
        ("opencode", "ses_0001", f"edit {FILE}", TITLE, ""),
    ],
)
def test_the_story(
    client: str, id: str, edit: str, title: str, branch: str, tmp_path: Path
) -> None:
    session = by_id(reader_of(client), home_of(client, tmp_path))[id]
    assert session.prompts == [ASKED, CORRECTED]
    assert session.answers == [ANSWERED, RENAMED]
    assert session.calls == [(edit, ""), (COMMAND, ERROR)]
    assert session.files == [FILE]
    facts = session.facts
    assert (facts.cwd, facts.kind, facts.title, facts.branch) == (CWD, Kind.MAIN, title, branch)
    assert all(turn.is_typed and turn.at for turn in session.turns)
    assert not session.unknown


@pytest.mark.parametrize(
    ("client", "variable", "place"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude"),
        ("codex", "CODEX_HOME", ".codex"),
        ("gemini", "GEMINI_CLI_HOME", "."),
        ("opencode", "XDG_DATA_HOME", ".local/share"),
        ("opencode", "OPENCODE_DB", ".local/share/opencode/opencode.db"),
        ("copilot", "COPILOT_HOME", ".copilot"),
        ("cline", "CLINE_DIR", ".cline"),
        ("cline", "CLINE_DATA_DIR", ".cline/data"),
        ("cline", "CLINE_SESSION_DATA_DIR", ".cline/data/sessions"),
        ("cursor", "CURSOR_CONFIG_DIR", ".cursor"),
    ],
)
def test_the_files_of_a_client_can_be_moved(
    client: str, variable: str, place: str, tmp_path: Path
) -> None:
    home, reader = home_of(client, tmp_path), reader_of(client)
    below = [each for each in reader.sources({}, home) if each.path.is_relative_to(home / place)]
    environment = {variable: str(home / place)}
    assert list(reader.sources(environment, tmp_path / "nowhere")) == below != []


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        (".config", {}),
        ("moved/config", {"XDG_CONFIG_HOME": "moved/config"}),
        ("Library/Application Support", {}),
        ("AppData/Roaming", {}),
        ("moved/Roaming", {"APPDATA": "moved/Roaming"}),
    ],
    ids=["Linux", "Linux, moved", "macOS", "Windows", "Windows, moved"],
)
def test_the_editors_of_each_system_are_found(
    tmp_path: Path, settings: str, environment: dict[str, str]
) -> None:
    user = tmp_path / settings
    tasks = user / "Code/User/globalStorage/saoudrizwan.claude-dev/tasks"
    put(tasks / "1/api_conversation_history.json", "[]")
    put(user / "Cursor/User/globalStorage/state.vscdb", "")
    moved = {name: str(tmp_path / value) for name, value in environment.items()}
    for client in ("cline", "cursor"):
        (task,) = reader_of(client).sources(moved, tmp_path)
        assert user in task.path.parents


def test_nothing_is_written(client: str, tmp_path: Path) -> None:
    home = home_of(client, tmp_path)

    def state() -> dict[Path, tuple[int, int]]:
        paths = [home, *home.rglob("*")]
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}

    before, files = state(), read_tree(home)
    read_all(reader_of(client), home)
    assert state() == before
    assert read_tree(home) == files


def test_sources_are_regular_files_below_the_folder(client: str, tmp_path: Path) -> None:
    home = home_of(client, tmp_path / "home")
    reader = reader_of(client)
    before = {each.path for each in reader.sources({}, home)}
    for path in before:
        other = tmp_path / "other" / path.parent.name
        other.mkdir(parents=True, exist_ok=True)
        (other / path.name).write_bytes(path.read_bytes())
        name = path.with_name(path.name.replace("0", "7", 1))
        if not name.exists():
            name.symlink_to(other / path.name)
        if not (link := path.parent.with_name(f"linked-{path.parent.name}")).exists():
            link.symlink_to(other)
        if not (loop := path.parent / "loop").exists():
            loop.symlink_to(path.parent)
        if hasattr(os, "mkfifo") and not (fifo := path.with_name(f"fifo-{path.name}")).exists():
            os.mkfifo(fifo)
    assert {each.path for each in reader.sources({}, home)} == before


def test_a_missing_folder_has_no_sources(client: str, tmp_path: Path) -> None:
    assert not list(reader_of(client).sources({}, tmp_path / "nowhere"))


def test_a_source_that_is_missing_or_no_file_has_no_turns(client: str, tmp_path: Path) -> None:
    reader = reader_of(client)
    first = next(iter(reader.sources({}, home_of(client, tmp_path))))
    first.path.unlink()
    for make in (lambda path: None, Path.mkdir):
        make(first.path)
        with suppress(OSError, sqlite3.Error, Unavailable):
            assert not [turn for part in reader.read(first, Progress()) for turn in part.turns]


@given(data=st.data())
def test_damaged_files_raise_no_other_error(client: str, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        home = home_of(client, Path(folder))
        paths = sorted(path for path in home.rglob("*") if path.is_file())
        path = data.draw(st.sampled_from(paths), label="file")
        content = path.read_bytes()
        start = data.draw(st.integers(0, len(content)), label="start")
        size = data.draw(st.sampled_from([0, 1, 7, len(content)]), label="size")
        piece = data.draw(st.sampled_from([b"", *BYTES]) | st.binary(max_size=20), label="piece")
        path.write_bytes(content[:start] + piece + content[start + size :])
        read_all(reader_of(client), home)


def changed(value: Any, hostile: Any) -> Iterator[Any]:
    """Yields a value with each of its parts replaced once."""
    yield hostile
    if isinstance(value, dict):
        for key, each in value.items():
            for other in changed(each, hostile):
                yield {**value, key: other}
            yield {other: each for other, each in value.items() if other != key}
    elif isinstance(value, list):
        for place, each in enumerate(value):
            for other in changed(each, hostile):
                yield [*value[:place], other, *value[place + 1 :]]


def test_values_of_other_types_raise_no_error(client: str, tmp_path: Path) -> None:
    """Each value of each record is each hostile one once: in files of lines all in one file."""
    home = home_of(client, tmp_path)
    reader = reader_of(client)
    for path in sorted(home.rglob("*.json*")):
        content = path.read_bytes()
        records = content.splitlines() if path.suffix == ".jsonl" else [content]
        with suppress(ValueError):
            seen: dict[str, Any] = {}
            for each in map(json.loads, records):
                seen.setdefault(str(sorted(each) if isinstance(each, dict) else each)[:500], each)
            values = [json.dumps(v) for r in seen.values() for h in HOSTILE for v in changed(r, h)]
            if path.suffix == ".jsonl":
                path.write_text("\n".join([*values, content.decode()]), encoding="utf-8")
                read_all(reader, home)
            else:
                for value in values[:: 1 + len(values) // 200]:
                    path.write_text(value, encoding="utf-8")
                    read_all(reader, home)
        path.write_bytes(content)


LINES = {
    client: sorted(
        line
        for path in sorted((FIXTURES / client).rglob("*.jsonl"))
        for line in path.read_bytes().splitlines(keepends=True)
    )
    for client in CLIENTS
}
"""The records of clients whose files are of lines."""

GROWING = [client for client in ("claude-code", "codex", "copilot") if client in CLIENTS]


def two_steps(client: str, content: bytes, cut: int) -> None:
    """Checks that a file that is read half written has the same turns at the end."""
    reader = reader_of(client)
    with TemporaryDirectory() as folder:
        at_once, in_steps = Path(folder, "1", "a.jsonl"), Path(folder, "2", "a.jsonl")
        for path, size in ((at_once, len(content)), (in_steps, cut)):
            path.parent.mkdir()
            path.write_bytes(content[:size])
        whole = read(reader, source(at_once))
        first = read(reader, source(in_steps))
        assert first.progress.offset <= cut
        with in_steps.open("ab") as file:
            file.write(content[cut:])
        both = read(reader, source(in_steps), first)
        assert both == whole
        assert read(reader, source(in_steps), both).turns == both.turns


@pytest.mark.parametrize("client", GROWING)
@given(data=st.data())
def test_two_steps_yield_what_one_does(client: str, data: st.DataObject) -> None:
    lists = st.lists(
        st.sampled_from(LINES[client]), max_size=30, unique=client not in ("claude-code", "codex")
    )
    content = b"".join(data.draw(lists, label="lines"))
    two_steps(client, content, data.draw(st.integers(0, len(content)), label="cut"))


@pytest.mark.parametrize("client", GROWING)
def test_two_steps_yield_the_story(client: str) -> None:
    for path in sorted((FIXTURES / client).rglob("*.jsonl")):
        content = path.read_bytes()
        cuts = [place + more for place, byte in enumerate(content) if byte == 10 for more in (0, 1)]
        for cut in (1, *cuts, *range(7, len(content), 997)):
            two_steps(client, content, cut)


def test_the_progress_has_no_text(client: str, tmp_path: Path) -> None:
    """It is stored, and the texts in it were not masked."""
    for _, session in sessions(reader_of(client), home_of(client, tmp_path)):
        facts = session.facts
        texts = [facts.cwd, facts.branch, facts.title, *(turn.text for turn in session.turns)]
        assert not [text for text in texts if text and text in session.progress.state]


@pytest.mark.parametrize("client", GROWING)
def test_a_long_file_is_yielded_in_parts(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    story = max((FIXTURES / client).rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    content = story.read_bytes()
    path.write_bytes(content)
    whole = read(reader_of(client), source(path))
    monkeypatch.setattr(parts, "_TURNS", 2)
    pieces = list(reader_of(client).read(source(path), Progress()))
    assert len(pieces) > 2
    assert [piece.replaces for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert read(reader_of(client), source(path)) == whole
    for piece in pieces[:-1]:
        since = reader_of(client).read(source(path), piece.progress)
        rest = [turn for part in since for turn in part.turns]
        assert tuple(rest) == whole.turns[len(whole.turns) - len(rest) :]


@pytest.mark.parametrize("id", ["--help", "; rm -rf ~", "a b", "../x", "", "\ud800", "x" * 999])
def test_an_id_that_is_none_has_no_command(client: str, id: str) -> None:
    assert resuming(client, id) == ()


UUID = "019a0000-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("client", "id", "command"),
    [
        ("claude-code", UUID, f"claude --resume {UUID}"),
        ("claude-code", "agent-0a1b2c3d", ""),
        ("codex", UUID, f"codex resume {UUID}"),
        ("gemini", UUID, f"gemini --resume {UUID}"),
        ("opencode", "ses_1", "opencode -s ses_1"),
        ("copilot", UUID, f"copilot --resume={UUID}"),
        ("cline", "1793869200000_ab12c", "cline --id 1793869200000_ab12c"),
        ("cline", "1764583200000", ""),  # A task, which is continued in the editor.
        ("cursor", UUID, f"cursor-agent --resume={UUID}"),
        ("cursor", "comp1", ""),
        ("elsewhere", UUID, ""),
    ],
)
def test_a_session_is_continued_by_its_id(client: str, id: str, command: str) -> None:
    assert list(resuming(client, id)) == command.split()
