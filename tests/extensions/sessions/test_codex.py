"""Rollouts of Codex: words that are written twice, copies in forks, and compressed files."""

import json
import shutil
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from io import BytesIO
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from types import SimpleNamespace
from typing import Any

import pytest

from mimo.extensions.sessions.model import Kind, Part, Progress, Unavailable
from mimo.extensions.sessions.readers import lines
from mimo.extensions.sessions.readers.codex import Codex
from mimo.extensions.sessions.readers.parts import patched
from tests.conftest import read_tree
from tests.extensions.sessions.homes import (
    ANSWERED,
    ASKED,
    COMMAND,
    Read,
    by_id,
    home_of,
    read,
    source,
    without_zstd,
    write_lines,
)

__all__ = ["without_zstd"]

MAIN, FORK, ARCHIVED, COMPRESSED = (f"019a0000-0000-7000-8000-{n:012d}" for n in range(1, 5))
TURN = "019a0000-0000-7000-8000-0000000000a1"
NAME = f"rollout-2026-11-05T09-00-00-{MAIN}.jsonl"


def record(kind: str, /, **payload: Any) -> dict[str, Any]:
    """Returns a record of a rollout."""
    return {"timestamp": "2026-11-05T09:00:00.000Z", "type": kind, "payload": payload}


def meta(**more: Any) -> dict[str, Any]:
    """Returns the first record."""
    return record("session_meta", id=MAIN, cwd="/home/mina/shop", **more)


def model(role: str, text: str) -> dict[str, Any]:
    """Returns a message as the model has it."""
    return record("response_item", type="message", role=role, content=[{"text": text}])


def shown(type: str, **item: Any) -> dict[str, Any]:
    """Returns an item as it is shown."""
    return record("event_msg", type="item_completed", turn_id=TURN, item={"type": type, **item})


def event(type: str, /, **payload: Any) -> dict[str, Any]:
    """Returns an event of versions before items."""
    return record("event_msg", type=type, **payload)


def called(name: str, arguments: Any, id: str = "c1", **more: Any) -> dict[str, Any]:
    """Returns a call as the model made it."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"type": "function_call", "name": name, "arguments": given, "call_id": id}
    return record("response_item", **call, **more)


def output(value: Any, id: str = "c1") -> dict[str, Any]:
    """Returns the output of a call."""
    return record("response_item", type="function_call_output", call_id=id, output=value)


def session(folder: Path, *records: Mapping[str, Any], name: str = NAME) -> Read:
    """Returns what the reader makes of some records."""
    return read(Codex(), source(write_lines(folder / name, *records)))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the story."""
    return home_of("codex", tmp_path / "home")


@pytest.fixture
def story(home: Path, without_zstd: None) -> dict[str, Read]:
    """The sessions of the story without the compressed one, by the client's ids."""
    return by_id(Codex(), home)


def with_library(monkeypatch: pytest.MonkeyPatch, stream: Any) -> None:
    """Makes a library that reads a compressed file as a stream."""
    module = SimpleNamespace(open=lambda file, mode: stream)
    monkeypatch.setattr(lines, "import_module", lambda name: module)


def test_a_fork_has_the_ids_of_the_turns_that_it_repeats(story: dict[str, Read]) -> None:
    fork = story[FORK]
    ids = {turn.native_id for turn in story[MAIN].turns}
    assert len(ids) == len(story[MAIN].turns)
    own = [turn.text for turn in fork.turns if turn.native_id not in ids]
    assert own == ["And now the same for invoices.", "Invoices, too."]
    assert fork.facts.parent == MAIN


def test_the_records_of_the_parent_do_not_describe_its_fork(tmp_path: Path) -> None:
    fork = meta(forked_from_id="parent-1", git={"branch": "own"})
    parent = record("session_meta", id="parent-1", cwd="/other", git={"branch": "other"})
    facts = session(tmp_path, fork, parent).facts
    assert (facts.native_id, facts.cwd, facts.branch) == (MAIN, "/home/mina/shop", "own")


def test_older_sessions_are_read(story: dict[str, Read]) -> None:
    archived = story[ARCHIVED]
    assert archived.prompts == [ASKED]
    assert archived.answers == [ANSWERED]
    assert archived.calls == [(COMMAND, "1 failed in 0.10s")]
    assert not archived.unknown


def test_without_events_the_models_messages_count(tmp_path: Path) -> None:
    log = session(
        tmp_path,
        meta(),
        model("developer", "Obey."),
        model("user", "# AGENTS.md instructions for /home/mina/shop\n\nUse tabs."),
        model("user", "<environment_context>x</environment_context>"),
        model("user", "One."),
        model("assistant", "Done."),
        model("user", "<turn_aborted>x</turn_aborted>"),
        model("user", "Two."),
        called("exec_command", {"cmd": "make"}),
        output("Process exited with code 0\nOutput:\nfine"),
        model("user", "Three."),
    )
    assert log.prompts == ["One.", "Two."]  # the third may be shown, too
    assert log.answers == ["Done."]
    assert log.calls == [("make", "")]


def test_what_is_shown_replaces_what_the_model_got(tmp_path: Path) -> None:
    log = session(
        tmp_path,
        meta(),
        model("user", "An injection of next month's version."),
        model("user", "One. With more for the model."),
        event("user_message", message="One.", kind="plain"),
        event("user_message", message="x", kind="environment_context"),
        model("assistant", "Done."),
        event("agent_message", message="Done."),
        model("user", "Another injection."),
        event("agent_message", message="Going on."),
        model("assistant", "Going on."),
        shown("UserMessage", content=[{"type": "text", "text": "Two."}]),
        shown("AgentMessage", content=[{"type": "Text", "text": "Done."}]),
    )
    assert log.prompts == ["One.", "Two."]
    assert log.answers == ["Done.", "Going on.", "Done."]


def test_records_before_the_envelope_are_read(tmp_path: Path) -> None:
    first = {"id": MAIN, "timestamp": "2025-05-01T09:00:00Z", "instructions": None}
    prompt = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "One."}],
    }
    done = {"type": "message", "role": "assistant", "content": [{"text": "Done."}]}
    log = session(tmp_path, first, prompt, done)
    assert (log.prompts, log.answers, log.unknown) == (["One."], ["Done."], 0)


@pytest.mark.parametrize(
    ("call", "line", "files"),
    [
        (called("shell", {"command": ["bash", "-lc", "make test"]}), "make test", []),
        (called("shell", {"command": ["git", "log"]}), "git log", []),
        (called("exec_command", {"cmd": "make\n  test"}), "make test", []),
        (called("update_plan", {"plan": [1]}), "update_plan", []),
        (called("shell", "not JSON"), "shell", []),
        (
            called(
                "shell", {"command": ["apply_patch", "*** Begin Patch\n*** Add File: a b.py\n"]}
            ),
            "apply_patch a b.py",
            ["a b.py"],
        ),
        (
            record(
                "response_item",
                type="custom_tool_call",
                call_id="c1",
                name="apply_patch",
                input="*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n*** End Patch",
            ),
            "apply_patch a.py b.py",
            ["a.py", "b.py"],
        ),
        (
            record(
                "response_item",
                type="local_shell_call",
                call_id="c1",
                action={"type": "exec", "command": ["ls", "-l"]},
            ),
            "ls -l",
            [],
        ),
        (
            shown("FileChange", id="c1", changes={"a.py": {"move_path": "b.py"}, "c.py": None}),
            "apply_patch a.py c.py b.py",
            ["a.py", "c.py", "b.py"],
        ),
        (shown("McpToolCall", id="c1", server="mind", tool="mind_search"), "mind mind_search", []),
        (event("exec_command_begin", call_id="c1", command=["sh", "-c", "ls"]), "ls", []),
        (
            event("patch_apply_begin", call_id="c1", changes={"a.py": {}}),
            "apply_patch a.py",
            ["a.py"],
        ),
    ],
)
def test_a_call_is_one_line(
    tmp_path: Path, call: dict[str, Any], line: str, files: Sequence[str]
) -> None:
    log = session(tmp_path, meta(), call, output("fine"), output("fine"))
    assert log.calls == [(line, "")] or (line.startswith("mind ") and log.calls == [("mind", "")])
    assert log.files == files
    assert not log.unknown


@pytest.mark.parametrize(
    "result",
    [
        output("Process exited with code 2\nOutput:\nmake: error 2"),
        output("Exit code: 2\nWall time: 1 s\nOutput:\nmake: error 2"),
        output(json.dumps({"output": "make: error 2\n", "metadata": {"exit_code": 2}})),
        output({"content": "make: error 2", "success": False}),
        output([{"type": "input_text", "text": "Exit code 2\nmake: error 2"}]),
        shown("CommandExecution", id="c1", exit_code=2, aggregated_output="make: error 2"),
        shown("CommandExecution", id="c1", status="failed", aggregated_output="make: error 2"),
        event("exec_command_end", call_id="c1", exit_code=2, aggregated_output="make: error 2"),
        event("patch_apply_end", call_id="c1", success=False, stderr="make: error 2"),
    ],
)
def test_a_failed_call_has_its_last_line(tmp_path: Path, result: dict[str, Any]) -> None:
    log = session(tmp_path, meta(), called("shell", {"command": "make"}), result, output("fine"))
    assert log.calls == [("make", "make: error 2")]


def test_a_call_that_is_shown_first_is_one(tmp_path: Path) -> None:
    ended = shown("CommandExecution", id="c1", command="make", exit_code=0)
    assert session(tmp_path, ended, called("shell", {"command": "make"})).calls == [("make", "")]


@pytest.mark.parametrize(
    ("more", "kind", "parent"),
    [
        ({"source": "exec"}, Kind.HEADLESS, ""),
        ({"originator": "codex_exec"}, Kind.HEADLESS, ""),
        ({"thread_source": "subagent", "parent_thread_id": "p-1"}, Kind.SUBAGENT, "p-1"),
        ({"source": {"subagent": "review"}}, Kind.SUBAGENT, ""),
        (
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p-1"}}}},
            Kind.SUBAGENT,
            "p-1",
        ),
        ({"forked_from_id": "p-1"}, Kind.MAIN, "p-1"),
        ({"source": "cli", "parent_thread_id": None}, Kind.MAIN, ""),
        ({"source": 5, "git": 5, "forked_from_id": "../x"}, Kind.MAIN, ""),
    ],
)
def test_kinds_of_sessions(tmp_path: Path, more: dict[str, Any], kind: Kind, parent: str) -> None:
    log = session(tmp_path, meta(**more), event("user_message", message="One."))
    assert (log.facts.kind, log.facts.parent) == (kind, parent)
    assert log.turns[0].is_typed is (kind is Kind.MAIN)


def test_words_that_have_no_turn_have_no_id(tmp_path: Path) -> None:
    """An id that other sessions could have by chance would make their turns copies."""
    log = session(tmp_path, event("task_started", turn_id="1"), event("user_message", message="x"))
    assert log.turns[0].native_id == ""


def test_unknown_records_are_counted(tmp_path: Path) -> None:
    log = session(
        tmp_path,
        record("next_months", x=1),
        event("never heard"),
        record("response_item", type="never heard"),
        event("token_count"),
        record("compacted", message="x"),
        record("token_usage_record", total=20),
        record("response_item", type="tool_search_output", call_id="1"),
    )
    assert (log.records, log.unknown) == (7, 3)


# Files and the database of titles.


def test_a_plain_file_is_preferred_to_a_compressed_one(home: Path) -> None:
    names = {source.path.name for source in Codex().sources({}, home)}
    assert len(names) == 4
    (compressed,) = (home / ".codex").rglob("*.zst")
    compressed.with_suffix("").write_bytes(b"")
    assert {source.path.name for source in Codex().sources({}, home)} == {
        *(names - {compressed.name}),
        compressed.stem,
    }


def test_a_compressed_file_needs_a_library(home: Path, without_zstd: None) -> None:
    (path,) = (home / ".codex").rglob("*.zst")
    with pytest.raises(Unavailable, match="zstandard"):
        read(Codex(), source(path))


def test_a_compressed_file_is_read_whole(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (plain,) = (home / ".codex" / "archived_sessions").iterdir()
    (path,) = (home / ".codex").rglob("*.zst")
    text = plain.read_bytes().replace(ARCHIVED.encode(), COMPRESSED.encode())
    with_library(monkeypatch, BytesIO(text))
    log = read(Codex(), source(path))
    assert (log.facts.native_id, log.prompts) == (COMPRESSED, [ASKED])
    assert log.progress == Progress()


def test_a_compressed_file_is_read_with_the_real_library(home: Path) -> None:
    pytest.importorskip("zstandard")
    (path,) = (home / ".codex").rglob("*.zst")
    log = read(Codex(), source(path))
    assert (log.facts.native_id, log.prompts) == (COMPRESSED, [ASKED])


@pytest.mark.parametrize(
    ("piece", "pieces", "window", "problem"),
    [
        (b"\0", 256, 0, "larger than a transcript may be"),
        (b"\n", 1, 0, "more lines than a transcript may have"),
        (b"\0", 1, 31, "requires too much memory"),
    ],
)
def test_a_few_bytes_that_stand_for_many_cost_little(
    home: Path, piece: bytes, pieces: int, window: int, problem: str
) -> None:
    zstd = pytest.importorskip("zstandard")
    options = zstd.ZstdCompressionParameters.from_level(
        1, **{"window_log": window} if window else {}
    )
    compressor = zstd.ZstdCompressor(compression_params=options).compressobj()
    frame = compressor.compress(piece * (1 << 24)) + compressor.flush()
    (path,) = (home / ".codex").rglob("*.zst")
    path.write_bytes(frame * pieces)
    assert path.stat().st_size < 500_000
    before, began = getrusage(RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(OSError, match=problem):
        read(Codex(), source(path))
    assert time.process_time() - began < 20
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 100_000  # Kilobytes.


def test_a_damaged_compressed_file_has_what_is_before(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = (home / ".codex").rglob("*.zst")
    whole = json.dumps(event("user_message", message="One.")).encode() + b"\n{"

    class Damaged(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            if not data:
                raise EOFError("ended before the end-of-stream marker")
            return data

    with_library(monkeypatch, Damaged(whole))
    pieces: list[Part] = []
    with pytest.raises(OSError, match="damaged: ended before"):
        pieces.extend(Codex().read(source(path), Progress()))
    assert [turn.text for piece in pieces for turn in piece.turns] == ["One."]
    monkeypatch.setattr(lines, "LARGEST_DECOMPRESSED", 1_000)
    with_library(monkeypatch, BytesIO(b"x" * 100_000))
    with pytest.raises(OSError, match="larger"):
        read(Codex(), source(path))


def test_a_patch_is_read_in_a_time_that_its_length_states() -> None:
    assert patched("*** Add File: a" + " " * 200_000 + "b\n*** Move to: c d.py \r\n") == ("c d.py",)


def test_titles_are_those_of_the_newest_database(home: Path) -> None:
    folder = home / ".codex"
    for number, name in ((9, "Old"), (10, "Orders by key")):
        with closing(sqlite3.connect(folder / f"state_{number}.sqlite")) as sql, sql:
            sql.execute("PRAGMA journal_mode=WAL")
            sql.execute("CREATE TABLE threads (id, title, name)")
            rows = [(MAIN, "First prompt", name), (FORK, "First prompt", None), (5, b"\xff", 7)]
            sql.executemany("INSERT INTO threads VALUES (?, ?, ?)", rows)
    before = read_tree(home)
    titles = {id: each.facts.title for id, each in by_id(Codex(), home).items()}
    assert (titles[MAIN], titles[FORK], titles[ARCHIVED]) == ("Orders by key", "First prompt", "")
    assert read_tree(home) == before


def test_a_log_in_a_copied_home_is_read_and_gets_no_file_beside_it(home: Path) -> None:
    path, copy = home / "state_5.sqlite", home / ".codex" / "state_5.sqlite"
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("PRAGMA journal_mode=WAL")
        sql.execute("CREATE TABLE threads (id, title)")
        sql.execute("INSERT INTO threads VALUES (?, 'Orders by key')", (MAIN,))
        sql.commit()
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
    before = read_tree(home)
    assert "Orders by key" in {each.facts.title for each in by_id(Codex(), home).values()}
    assert read_tree(home) == before


@pytest.mark.parametrize(
    "sql", ["", "CREATE TABLE threads (x)", "CREATE TABLE threads (id, title); DROP TABLE threads"]
)
def test_a_database_of_another_form_is_no_error(home: Path, sql: str) -> None:
    path = home / ".codex" / "state_5.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.executescript(sql)
    assert {each.facts.title for each in by_id(Codex(), home).values()} == {""}
    path.write_bytes(b"SQLite format 3\0" + b"x" * 500)
    assert {each.facts.title for each in by_id(Codex(), home).values()} == {""}


def test_a_name_that_the_user_chose_is_the_title(tmp_path: Path) -> None:
    named = event("thread_name_updated", thread_name="Orders by key")
    assert session(tmp_path, meta(), named).facts.title == "Orders by key"
