"""Sessions of Cursor: transcripts, stores and the editor's database."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mimo.extensions.sessions.model import Kind
from mimo.extensions.sessions.readers.cursor import Cursor
from tests.extensions.sessions.homes import (
    ANSWERED,
    ASKED,
    CWD,
    FILE,
    Read,
    by_id,
    home_of,
    sessions,
    write_lines,
)

STORED = "8616c508-0000-4000-8000-000000000001"
TRANSCRIPT = "9616c508-0000-4000-8000-000000000002"
TEXT = "7016c508-0000-4000-8000-000000000003"
FOLDER = ".cursor/projects/home-mina-shop/agent-transcripts"
EDITOR = ".config/Cursor/User/globalStorage/state.vscdb"


@pytest.fixture
def story(tmp_path: Path) -> dict[str, Read]:
    """The sessions of the story."""
    return by_id(Cursor(), home_of("cursor", tmp_path))


def transcript(home: Path, *records: Any, name: str = f"{TRANSCRIPT}/{TRANSCRIPT}") -> Read:
    """Returns what is read of a transcript."""
    path = write_lines(home / FOLDER / f"{name}.jsonl", *records)
    return by_id(Cursor(), home)[path.stem]


def message(role: str, *blocks: Any) -> dict[str, Any]:
    """Returns a record; a text is a block."""
    texts = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    return {"role": role, "message": {"content": texts}}


def call(name: str, **given: Any) -> dict[str, Any]:
    """Returns the block of a call."""
    return {"type": "tool_use", "name": name, "input": given}


def composer(home: Path, about: Any, **bubbles: Any) -> Read:
    """Returns what is read of a session in the editor's database."""
    path = home / EDITOR
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("create table cursorDiskKV (key text unique on conflict replace, value blob)")
        headers = [{"bubbleId": id, "type": 1} for id in bubbles]
        values = {"composerData:c1": {"fullConversationHeadersOnly": headers, **about}}
        values |= {f"bubbleId:c1:{id}": bubble for id, bubble in bubbles.items()}
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        sql.executemany("insert into cursorDiskKV values (?, ?)", rows)
        sql.commit()
    return by_id(Cursor(), home)["c1"]


def workspace(home: Path, name: str, folder: Any, *ids: str) -> None:
    """Writes a workspace of the editor, which lists sessions."""
    path = (home / EDITOR).parents[1] / "workspaceStorage" / name
    path.mkdir(parents=True)
    (path / "workspace.json").write_text(json.dumps({"folder": folder}))
    with closing(sqlite3.connect(path / "state.vscdb")) as sql:
        sql.execute("create table ItemTable (key text unique on conflict replace, value blob)")
        listed = json.dumps({"allComposers": [{"composerId": id} for id in ids]})
        sql.execute("insert into ItemTable values ('composer.composerData', ?)", (listed,))
        sql.commit()


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("file:///home/mina/my%20shop", "/home/mina/my shop"),
        ("file:///c%3A/Users/mina/shop", "c:/Users/mina/shop"),
        ("vscode-remote://ssh-remote%2Bhost/home/mina/shop", ""),
        ("file://server/share/shop", ""),
        (5, ""),
    ],
)
def test_a_session_of_the_editor_is_in_the_folder_of_its_workspace(
    tmp_path: Path, uri: Any, folder: str
) -> None:
    workspace(tmp_path, "0a", "file:///home/mina/other", "c2")
    workspace(tmp_path, "0b", uri, "c1")
    (tmp_path / EDITOR).parents[1].joinpath("workspaceStorage/0b2").mkdir()
    read = composer(tmp_path, {}, b1={"type": 1, "text": ASKED})
    assert (read.prompts, read.facts.cwd) == ([ASKED], folder)


def test_the_story(story: dict[str, Read]) -> None:
    assert set(story) == {STORED, TRANSCRIPT, TEXT, "comp1"}
    for id in (STORED, TRANSCRIPT, "comp1"):
        assert story[id].prompts == [ASKED]
        assert story[id].answers[-1] == ANSWERED
        assert not story[id].unknown
        assert story[id].turns[0].at
        assert story[id].turns[-1].at
    assert story[TEXT].prompts == ["Please add a config file."]
    assert story[TEXT].answers == ["Added."]
    assert story[TEXT].files == [f"{CWD}/config.toml"]
    assert story[STORED].files == story[TRANSCRIPT].files == [FILE]
    assert {story[id].facts.cwd for id in (STORED, TRANSCRIPT, TEXT)} == {CWD}
    assert story[STORED].facts.title == story["comp1"].facts.title == "Orders by key"


def test_a_session_in_three_places_is_read_once(tmp_path: Path) -> None:
    home = home_of("cursor", tmp_path)
    with closing(sqlite3.connect(home / EDITOR)) as sql:
        for id in (STORED, TRANSCRIPT):
            row = (f"composerData:{id}", json.dumps({"composerId": id}))
            sql.execute("insert into cursorDiskKV values (?, ?)", row)
        sql.commit()
    stored = next(home.glob(".cursor/chats/*")) / TRANSCRIPT / "store.db"
    stored.parent.mkdir()
    stored.write_bytes((stored.parents[1] / STORED / "store.db").read_bytes())
    (stored.parent / "meta.json").write_text('{"title": "By key", "createdAtMs": 1793869200000}')
    items = [(source.path.suffix, each.facts) for source, each in sessions(Cursor(), home)]
    suffixes = {facts.native_id: suffix for suffix, facts in items}
    assert len(items) == 4
    assert suffixes == {STORED: ".db", TRANSCRIPT: ".jsonl", TEXT: ".txt", "comp1": ".vscdb"}
    assert [facts.title for _, facts in items if facts.native_id == TRANSCRIPT] == ["By key"]


def test_calls_of_a_transcript(tmp_path: Path) -> None:
    log = transcript(
        tmp_path,
        message("user", "<user_info>\nWorkspace Path: /srv/x\n</user_info>"),
        message("user", "<user_query>\nRename it.\n</user_query>"),
        message(
            "assistant",
            call("Shell", command="make  test"),
            call("Write", path="a.py"),
            call("Read", path="b.py"),
            call("search_replace", file_path="c.py"),
            call("Grep", pattern="x"),
        ),
        message("assistant", "Renamed."),
        {"role": "narrator"},
        5,
    )
    assert [line for line, _ in log.calls] == [
        *("make test", "Write a.py", "Read b.py", "search_replace c.py", "Grep"),
    ]
    assert (log.files, log.facts.cwd) == (["a.py", "c.py"], "/srv/x")
    assert (log.prompts, log.records, log.unknown) == (["Rename it."], 6, 2)


def test_a_sub_agent_names_its_session(tmp_path: Path) -> None:
    agent = transcript(tmp_path, message("user", "Look."), name=f"{TRANSCRIPT}/subagents/a1")
    assert (agent.facts.kind, agent.facts.parent) == (Kind.SUBAGENT, TRANSCRIPT)
    assert not agent.turns[0].is_typed


def test_the_folder_of_a_session_without_files_is_one_that_exists(tmp_path: Path) -> None:
    project = tmp_path / "my.shop"
    (project / "src").mkdir(parents=True)
    name = str(project).strip("/").replace("/", "-").replace(".", "-").replace("_", "-")
    path = tmp_path / "home/.cursor/projects" / name / "agent-transcripts/a/a.jsonl"
    write_lines(path, message("user", "Look."))
    assert by_id(Cursor(), tmp_path / "home")["a"].facts.cwd == str(project)


def test_the_first_form_of_a_transcript(tmp_path: Path) -> None:
    path = tmp_path / FOLDER / f"{TEXT}.txt"
    path.parent.mkdir(parents=True)
    path.write_text(
        "user:\n<user_query>\nWhat does this print?\nassistant:\nno\n</user_query>\n\n"
        "assistant:\n[Thinking] hm\n\nI look.\n[Tool call] Shell\n  command: make test\n\n"
        "[Tool result] Shell\n\nassistant:\nNothing.\n"
    )
    log = by_id(Cursor(), tmp_path)[TEXT]
    assert log.prompts == ["What does this print?\nassistant:\nno"]
    assert log.answers == ["I look.", "Nothing."]
    assert log.calls == [("make test", "")]


def test_the_editors_messages(tmp_path: Path) -> None:
    tool = {
        "name": "run_terminal_cmd",
        "status": "completed",
        "rawArgs": '{"command": "make"}',
        "result": '{"output": "x\\nno such key\\n", "exitCode": 2}',
    }
    edit = {"name": "edit_file", "params": '{"relativeWorkspacePath": "a.py"}', "status": "error"}
    log = composer(
        tmp_path,
        {
            "name": "By key",
            "createdAt": 1793869200000,
            "workspaceIdentifier": {"uri": {"fsPath": CWD}},
        },
        a={"type": 1, "text": "Test it."},
        b={"type": 2, "text": "I do.", "createdAt": "2026-11-05T09:00:05.000Z"},
        c={"type": 2, "text": "", "toolFormerData": tool},
        d={"type": 2, "toolFormerData": edit},
        e={"type": 3},
    )
    assert (log.prompts, log.answers) == (["Test it."], ["I do."])
    assert log.calls == [("make", "no such key"), ("edit_file a.py", "failed")]
    assert (log.files, log.facts.cwd, log.facts.title) == (["a.py"], CWD, "By key")
    assert (log.records, log.unknown) == (5, 1)


def test_messages_of_the_older_editor(tmp_path: Path) -> None:
    older = [{"bubbleId": "a", "type": 1, "text": "Go."}, {"type": 2, "text": "Gone."}]
    log = composer(tmp_path, {"conversation": older})
    assert (log.prompts, log.answers) == (["Go."], ["Gone."])


def test_a_message_changes_the_state_of_its_session_only(tmp_path: Path) -> None:
    home = home_of("cursor", tmp_path)
    before = set(Cursor().sources({}, home))
    with closing(sqlite3.connect(home / EDITOR)) as sql:
        value = json.dumps({"lastUpdatedAt": 1793869300000})
        sql.execute("insert into cursorDiskKV values ('composerData:comp2', ?)", (value,))
        sql.execute("insert into cursorDiskKV values ('composerData:comp3', 'not JSON')")
        sql.execute("insert into cursorDiskKV values ('composerData:comp4', NULL)")
        sql.commit()
    new = set(Cursor().sources({}, home)) - before
    assert {source.key for source in new} == {"comp2", "comp3"}
    times = {source.mtime_ns // 10**6 for source in new if source.key == "comp2"}
    assert times == {1793869300000}
