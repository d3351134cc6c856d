"""The reader of OpenCode: its database, also while the client writes, and the older files."""

import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mimo.extensions.sessions.model import Kind, Progress
from mimo.extensions.sessions.readers import places
from mimo.extensions.sessions.readers.opencode import OpenCode
from tests.extensions.sessions.claude import Clients
from tests.extensions.sessions.homes import (
    ASKED,
    COMMAND,
    CORRECTED,
    CWD,
    FILE,
    TITLE,
    Read,
    by_id,
    home_of,
    write_json,
)

SCHEMA = """
CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT NOT NULL);
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT,
    directory TEXT NOT NULL, title TEXT NOT NULL, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER,
    time_updated INTEGER, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
    time_created INTEGER, time_updated INTEGER, data TEXT NOT NULL);
"""
TIME = 1_793_869_200_000
"""The time of the first message, in milliseconds; each later one is a second after."""

Message = tuple[str, dict[str, Any], Sequence[Any]]


def words(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def tool(name: str, output: str = "", status: str = "completed", **more: Any) -> dict[str, Any]:
    metadata = {"exit": more.pop("exit")} if "exit" in more else {}
    state = {"status": status, "input": more, "output": output, "metadata": metadata}
    return {"type": "tool", "tool": name, "callID": "c1", "state": state}


def user(*parts: Any, **data: Any) -> Message:
    return "user", data, parts


def agent(*parts: Any, **data: Any) -> Message:
    return "assistant", data, parts


STORY = (user(words(ASKED)), agent(words("Done.")), user(words(CORRECTED)))


def folder_of(home: Path) -> Path:
    return home / ".local" / "share" / "opencode"


def database(home: Path, name: str = "opencode.db") -> sqlite3.Connection:
    """Makes a database as the client does, and returns it open."""
    folder_of(home).mkdir(parents=True, exist_ok=True)
    sql = sqlite3.connect(folder_of(home) / name)
    sql.execute("PRAGMA journal_mode = WAL")
    sql.executescript(SCHEMA)
    sql.execute("INSERT INTO project VALUES ('p1', ?)", (CWD,))
    sql.commit()
    return sql


def add(sql: sqlite3.Connection, id: str, *messages: Message, **columns: Any) -> None:
    values = {"project_id": "p1", "directory": CWD, "title": TITLE, "time_updated": TIME, **columns}
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    sql.execute(f"INSERT INTO session (id, {names}) VALUES (?, {marks})", (id, *values.values()))
    for n, message in enumerate(messages):
        add_message(sql, id, n, message)
    sql.commit()


def add_message(sql: sqlite3.Connection, session: str, n: int, message: Message) -> None:
    role, data, parts = message
    id, time = f"msg_{session}_{n:04}", TIME + 1_000 * n
    text = json.dumps({"role": role, "time": {"created": time}, **data})
    sql.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (id, session, time, time, text))
    for k, part in enumerate(parts):
        values = (f"prt_{session}_{n:04}{k}", id, session, time, time)
        value = part if isinstance(part, str | bytes) else json.dumps(part)
        sql.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", (*values, value))


def write_database(home: Path, *messages: Message, **columns: Any) -> Path:
    sql = database(home)
    add(sql, "ses_1", *(messages or STORY), **columns)
    sql.close()
    return folder_of(home) / "opencode.db"


def of_messages(home: Path, *messages: Message, **columns: Any) -> Read:
    write_database(home, *messages, **columns)
    (session,) = by_id(OpenCode(), home).values()
    return session


class TestWords:
    @pytest.mark.parametrize(
        ("stored", "typed"),
        [
            ('"use tabs"', "use tabs"),
            (r'"say \"hi\" twice"', 'say "hi" twice'),
            ('"a" and "b"', '"a" and "b"'),
            ('"', '"'),
            ('"unfinished', '"unfinished'),
        ],
    )
    def test_quotation_marks_around_a_prompt_are_the_clients(self, tmp_path, stored, typed):
        assert of_messages(tmp_path, user(words(stored))).prompts == [typed]

    def test_a_failed_tool_edits_nothing(self, tmp_path):
        failed = tool("edit", status="error", filePath=FILE)
        failed["state"]["error"] = "Error: oldString not found"
        session = of_messages(tmp_path, agent(failed))

        assert session.files == []
        assert session.errors == ["Error: oldString not found"]

    def test_files_without_a_call_are_kept(self, tmp_path):
        patch = {"type": "patch", "files": [FILE, 5]}
        session = of_messages(tmp_path, agent(words("x"), patch))

        assert session.calls == [(f"patch {FILE}", "")]
        assert session.files == [FILE]

    def test_files_that_no_call_names_are_those_of_the_last_call(self, tmp_path):
        patch = {"type": "patch", "files": [FILE, "b.py"]}
        calls = (tool("edit", filePath=FILE), patch, tool("bash", command=COMMAND))
        session = of_messages(tmp_path, agent(*calls))

        assert [turn.files for turn in session.turns] == [(FILE,), ("b.py",)]

    def test_a_title_that_nothing_was_chosen_for_is_none(self, tmp_path):
        session = of_messages(tmp_path, title="New session - 2026-11-05T09:00:00.000Z")

        assert session.facts.title == ""

    def test_a_sub_agent_is_a_session_of_its_own(self, tmp_path):
        session = of_messages(tmp_path, user(words("List the files.")), parent_id="ses_0")

        assert session.facts.kind is Kind.SUBAGENT
        assert session.facts.parent == "ses_0"
        assert not session.turns[0].is_typed

    def test_of_a_fork_only_its_own_turns_are_kept(self, tmp_path):
        clients = Clients(tmp_path, "opencode")
        home_of("opencode", clients.home)
        clients.read()
        kept = {id: clients.texts(id) for id, each in clients.sessions().items() if each.copies}

        assert kept == {"ses_0003": ["And now the same for invoices."]}

    def test_a_worktree_beside_its_project_belongs_to_it(self, tmp_path):
        session = of_messages(tmp_path, directory="/home/mina/.local/share/opencode/worktree/x")

        assert session.facts.repository == CWD
        assert of_messages(tmp_path / "b", directory=f"{CWD}/web").facts.repository == ""


class TestSources:
    def test_a_session_is_a_source_that_changes_with_it(self, tmp_path):
        sql = database(tmp_path)
        add(sql, "ses_1", *STORY)
        add(sql, "ses_2", *STORY[:2], time_updated=TIME - 1)
        first, second = OpenCode().sources({}, tmp_path)
        add_message(sql, "ses_2", 2, user(words("More.")))
        sql.commit()

        after = {source.key: source for source in OpenCode().sources({}, tmp_path)}

        assert first.mtime_ns == (TIME + 1_000 * (len(STORY) - 1)) * 1_000_000
        assert after["ses_1"] == first
        assert after["ses_2"].size == second.size + 2
        assert after["ses_2"].mtime_ns == (TIME + 2_000) * 1_000_000

    def test_the_last_tool_that_ends_changes_its_session(self, tmp_path):
        sql = database(tmp_path)
        add(sql, "ses_1", agent(tool("bash", status="running", command=COMMAND)))
        (before,) = OpenCode().sources({}, tmp_path)
        sql.execute("UPDATE part SET time_updated = time_updated + 7000")
        sql.commit()

        (after,) = OpenCode().sources({}, tmp_path)

        assert after.mtime_ns == before.mtime_ns + 7_000_000_000

    def test_what_the_client_has_not_written_back_is_read_too(self, tmp_path):
        sql = database(tmp_path)
        sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        add(sql, "ses_1", *STORY)

        (session,) = by_id(OpenCode(), tmp_path).values()

        assert session.prompts == [ASKED, CORRECTED]

    def test_a_database_that_changes_while_it_is_read_is_reported(self, tmp_path):
        path = write_database(tmp_path)
        (source,) = OpenCode().sources({}, tmp_path)
        parts = OpenCode().read(source, Progress())
        next(parts)
        path.write_bytes(path.read_bytes() + bytes(4_096))

        with pytest.raises(sqlite3.OperationalError, match="changed while it was read"):
            next(parts)

    def test_a_session_that_was_deleted_meanwhile_has_no_parts(self, tmp_path):
        write_database(tmp_path)
        (source,) = OpenCode().sources({}, tmp_path)

        assert list(OpenCode().read(source._replace(key="ses_9"), Progress())) == []

    @pytest.mark.parametrize(
        ("name", "number"), [("", 1), ("opencode-dev.db", 1), ("{folder}", 1), (":memory:", 0)]
    )
    def test_another_database_can_be_named(self, tmp_path, name, number):
        folder = folder_of(tmp_path)
        path = write_database(tmp_path).rename(folder / "opencode-dev.db")
        environment = {
            "XDG_DATA_HOME": f"{folder.parent}",
            "OPENCODE_DB": name.format(folder=path),
        }

        assert len(list(OpenCode().sources(environment, tmp_path / "other"))) == number


class TestOlderFiles:
    def write(self, home: Path, id: str = "ses_old", **facts: Any) -> Path:
        storage = folder_of(home) / "storage"
        messages = (
            ("msg_1", {"role": "user", "time": {"created": TIME}}, words(ASKED)),
            ("msg_2", {"role": "assistant"}, tool("write", filePath=FILE)),
            ("msg_3", {"role": "assistant", "summary": True}, words(f"Summary: {ASKED}")),
        )
        for message, data, part in messages:
            write_json(storage / "message" / id / f"{message}.json", {"id": message, **data})
            write_json(storage / "part" / message / "prt_1.json", {"id": "prt_1", **part})
        session = {"id": id, "directory": CWD, "title": "Config file", **facts}
        return write_json(storage / "session" / "p1" / f"{id}.json", session)

    def test_a_session_in_files_is_read(self, tmp_path):
        self.write(tmp_path)

        (session,) = by_id(OpenCode(), tmp_path).values()

        facts = session.facts
        assert (facts.native_id, facts.cwd, facts.title) == ("ses_old", CWD, "Config file")
        assert session.prompts == [ASKED]
        assert session.answers == []
        assert session.files == [FILE]
        assert (session.records, session.unknown) == (6, 0)

    def test_a_session_in_files_changes_with_its_messages(self, tmp_path):
        path = self.write(tmp_path)
        messages = folder_of(tmp_path) / "storage" / "message" / "ses_old"
        (before,) = OpenCode().sources({}, tmp_path)
        state = messages.stat()
        os.utime(messages, ns=(state.st_atime_ns, path.stat().st_mtime_ns + 10**9))

        (after,) = OpenCode().sources({}, tmp_path)

        assert after.mtime_ns == path.stat().st_mtime_ns + 10**9 > before.mtime_ns

    def test_the_database_wins(self, tmp_path):
        self.write(tmp_path, "ses_1")

        assert of_messages(tmp_path).prompts == [ASKED, CORRECTED]

    def test_while_the_database_is_not_readable_its_older_files_do_not_count(self, tmp_path):
        self.write(tmp_path)
        (folder_of(tmp_path) / "opencode.db").write_bytes(b"no database" * 100)

        (source,) = OpenCode().sources({}, tmp_path)

        assert source.path.name == "opencode.db"

    @pytest.mark.parametrize("value", [5, [], None, {"role": 5, "time": 7}, {"type": {}}])
    def test_values_of_other_types_are_skipped(self, tmp_path, value):
        path = self.write(tmp_path, parentID=[], directory=5)
        storage = path.parent.parent.parent
        write_json(storage / "message" / "ses_old" / "msg_4.json", value)
        write_json(storage / "part" / "msg_2" / "prt_2.json", value)

        (session,) = by_id(OpenCode(), tmp_path).values()

        assert session.prompts == [ASKED]
        assert session.unknown == 2
        write_json(path, value)
        assert by_id(OpenCode(), tmp_path)["ses_old"].prompts == [ASKED]


class TestBadInput:
    @pytest.mark.parametrize("data", [b"", b"SQLite format 3\0" + bytes(5_000), b"x" * 5_000])
    def test_a_damaged_database_is_reported_once(self, tmp_path, data):
        folder_of(tmp_path).mkdir(parents=True)
        (folder_of(tmp_path) / "opencode.db").write_bytes(data)

        (source,) = OpenCode().sources({}, tmp_path)

        assert source.key == ""
        with pytest.raises(sqlite3.Error):
            list(OpenCode().read(source, Progress()))

    def test_a_view_without_an_end_is_reported(self, tmp_path, monkeypatch):
        monkeypatch.setattr(places, "_LONGEST_SECONDS", 0.2)
        path = write_database(tmp_path)
        with sqlite3.connect(path) as sql:
            sql.execute("DROP TABLE message")
            sql.execute(
                "CREATE VIEW message AS WITH RECURSIVE numbers(id) AS (SELECT 1 UNION ALL SELECT 1"
                " FROM numbers) SELECT n.id, s.id session_id, 1 time_created, 1 time_updated,"
                " '' data FROM numbers n, session s"
            )
        sql.close()

        (source,) = OpenCode().sources({}, tmp_path)

        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            list(OpenCode().read(source, Progress()))

    def test_a_damaged_schema_is_reported(self, tmp_path):
        path = write_database(tmp_path)
        data = path.read_bytes().replace(b"tablemessagemessage", b"tablem\xff\xfesagemessage")
        path.write_bytes(data.replace(b"CREATE TABLE message", b"CREATE TABLE 5essage"))

        (source,) = OpenCode().sources({}, tmp_path)

        with pytest.raises(sqlite3.DatabaseError, match="schema of the database is damaged"):
            list(OpenCode().read(source, Progress()))

    @pytest.mark.parametrize("column", ["session.time_updated", "message.data", "part.data"])
    def test_a_missing_column_is_reported(self, tmp_path, column):
        table, name = column.split(".")
        with sqlite3.connect(write_database(tmp_path)) as sql:
            sql.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        sql.close()
        (source,) = OpenCode().sources({}, tmp_path)

        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            list(OpenCode().read(source, Progress()))

    def test_a_column_that_is_not_needed_may_be_missing(self, tmp_path):
        with sqlite3.connect(write_database(tmp_path)) as sql:
            for column in ("parent_id", "title", "directory"):
                sql.execute(f"ALTER TABLE session DROP COLUMN {column}")
        sql.close()

        assert by_id(OpenCode(), tmp_path)["ses_1"].prompts == [ASKED, CORRECTED]

    def test_a_locked_database_is_reported_soon(self, tmp_path):
        path = write_database(tmp_path)
        sql = sqlite3.connect(path, isolation_level=None)
        sql.execute("PRAGMA journal_mode = DELETE")
        sql.execute("BEGIN EXCLUSIVE")
        sql.execute("UPDATE session SET title = 'x'")

        (source,) = OpenCode().sources({}, tmp_path)

        with pytest.raises(sqlite3.OperationalError, match="locked"):
            list(OpenCode().read(source, Progress()))

    def test_messages_of_a_newer_schema_are_counted(self, tmp_path):
        sql = database(tmp_path)
        add(sql, "ses_1")
        sql.execute("CREATE TABLE session_message (id TEXT, session_id TEXT, data TEXT)")
        sql.executemany("INSERT INTO session_message VALUES (?, 'ses_1', '{}')", [("a",), ("b",)])
        sql.commit()

        (session,) = by_id(OpenCode(), tmp_path).values()

        assert (session.records, session.unknown) == (2, 2)

    @pytest.mark.parametrize("time", ["soon", b"\xff", None, -1, 2**62, 1e300])
    def test_a_time_of_another_type_counts_as_none(self, tmp_path, time):
        clients = Clients(tmp_path, "opencode")
        path = write_database(clients.home, user(words(ASKED)))
        with sqlite3.connect(path) as sql:
            for table in ("session", "message", "part"):
                sql.execute(f"UPDATE {table} SET time_updated = ?", (time,))
            sql.execute("UPDATE message SET time_created = ?", (time,))
        sql.close()

        (source,) = OpenCode().sources({}, clients.home)

        assert source.mtime_ns == path.stat().st_mtime_ns
        clients.read()
        assert clients.texts("ses_1") == [ASKED]

    @pytest.mark.parametrize(
        "part",
        [
            "{",
            b"\xff\xfe",
            [],
            5,
            {"type": 5},
            {"type": "text", "text": {"a": 1}},
            {"type": "tool", "tool": [], "state": 5},
            {"type": "tool", "tool": "edit", "state": {"input": [], "metadata": {"exit": "1"}}},
            {"type": "patch", "files": {"a": 1}},
            {"type": "of next month"},
        ],
    )
    @pytest.mark.parametrize("role", ["user", "assistant", 5])
    def test_values_of_other_types_are_skipped(self, tmp_path, part, role):
        session = of_messages(tmp_path, user(words(ASKED)), (role, {}, [part]))

        assert session.prompts == [ASKED]
        assert session.records == 4

    def test_a_long_part_is_skipped_unread(self, tmp_path):
        session = of_messages(tmp_path, user(words("x" * 8_000_001), words(ASKED)))

        assert session.prompts == [ASKED]
        assert session.unknown == 1

    def test_a_link_to_a_database_is_not_followed(self, tmp_path):
        path = write_database(tmp_path / "other")
        folder_of(tmp_path).mkdir(parents=True)
        (folder_of(tmp_path) / "opencode.db").symlink_to(path)

        assert by_id(OpenCode(), tmp_path) == {}
