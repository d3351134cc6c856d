"""The reader of Gemini CLI: logs of messages, their older form, and whose words these are."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from mimo.extensions.sessions.model import Kind, Progress
from mimo.extensions.sessions.readers.gemini import Gemini
from tests.extensions.sessions.claude import Clients
from tests.extensions.sessions.homes import (
    ANSWERED,
    ASKED,
    COMMAND,
    CORRECTED,
    CWD,
    ERROR,
    FILE,
    OUTPUT,
    RENAMED,
    Read,
    by_id,
    home_of,
    write_json,
    write_lines,
)

ID = "5ac46628-0000-4000-8000-000000000001"
HASH = hashlib.sha256(CWD.encode()).hexdigest()
HEAD = {"sessionId": ID, "projectHash": HASH, "kind": "main", "startTime": "2026-11-05T09:00:00Z"}
STORY = [ASKED, f"replace {FILE}", COMMAND, ANSWERED, CORRECTED, RENAMED]
FIRST = "session-2026-11-05T09-00-5ac46628.jsonl"


def message(kind: str, id: str, content: Any, second: int = 1, **more: Any) -> dict[str, Any]:
    time = f"2026-11-05T09:{second // 60:02}:{second % 60:02}.000Z"
    return {"id": f"{id}-{ID}", "timestamp": time, "type": kind, "content": content, **more}


def user(id: str, *texts: str, second: int = 1, **more: Any) -> dict[str, Any]:
    return message("user", id, [{"text": text} for text in texts], second, **more)


def call(name: str, output: str, status: str = "success", **args: str) -> dict[str, Any]:
    answer = {"functionResponse": {"id": "1", "name": name, "response": {"output": output}}}
    return {"id": "1", "name": name, "args": args, "result": [answer], "status": status}


EDIT = call("replace", "Successfully modified file", file_path=FILE, old_string="offset")


def chats(home: Path, slug: str = "shop") -> Path:
    """Returns the folder of a project's sessions, made with its path."""
    folder = home / ".gemini" / "tmp" / slug / "chats"
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / ".project_root").write_text(CWD)
    return folder


def read_one(home: Path) -> Read:
    (session,) = by_id(Gemini(), home).values()
    return session


def of_messages(home: Path, *records: Any) -> Read:
    write_lines(chats(home) / FIRST, HEAD, *records)
    return read_one(home)


class TestWords:
    def test_the_last_message_of_an_id_counts(self, tmp_path):
        session = of_messages(tmp_path, user("u1", "Use ta"), user("u1", "Use tabs, please."))

        assert session.prompts == ["Use tabs, please."]

    def test_a_rewind_takes_back_a_message_and_all_after_it(self, tmp_path):
        session = of_messages(
            tmp_path,
            user("u1", ASKED),
            user("u2", "Delete all."),
            message("gemini", "g2", "Deleted."),
            {"$rewindTo": f"u2-{ID}"},
            {"$rewindTo": "an unknown one"},
            user("u3", CORRECTED),
        )

        assert session.prompts == [ASKED, CORRECTED]
        assert session.answers == []

    def test_what_a_compression_took_out_of_the_history_stays(self, tmp_path):
        summary = user("s1", "<state_snapshot>\nThe user asked for tabs.\n</state_snapshot>")
        reply = message("gemini", "s2", "Got it. Thanks for the additional context!")
        session = of_messages(
            tmp_path,
            user("u1", ASKED),
            message("gemini", "g1", ANSWERED),
            user("u2", CORRECTED),
            {"$set": {"messages": [summary, reply, user("u2", CORRECTED)]}},
            message("gemini", "g2", RENAMED),
        )

        assert session.prompts == [ASKED, CORRECTED]
        assert session.answers == [ANSWERED, RENAMED]

    def test_a_copy_of_the_history_with_new_ids_is_no_second_history(self, tmp_path):
        session = of_messages(
            tmp_path,
            user("u1", ASKED),
            message("gemini", "g1", ANSWERED),
            {"$set": {"messages": [user("v1", ASKED), message("gemini", "h1", ANSWERED)]}},
        )

        assert session.prompts == [ASKED]
        assert session.answers == [ANSWERED]

    def test_the_prompt_as_it_was_typed_counts_without_the_files_that_it_names(self, tmp_path):
        session = of_messages(
            tmp_path,
            user("u1", "Read @a.py", "--- Content from a.py ---", displayContent="Read @a.py"),
        )

        assert session.prompts == ["Read @a.py"]

    @pytest.mark.parametrize(
        ("output", "error"),
        [
            (f"Output: {OUTPUT}\nExit Code: 1\nProcess Group PGID: 7", ERROR),
            (
                f"<untrusted_context>\nOutput: {OUTPUT}\nExit Code: 2\n</untrusted_context>",
                ERROR,
            ),
            ("Output: (empty)\nError: spawn no\nExit Code: 127", "spawn no"),
            (
                "Command: x\nStdout: fine\nStderr: bad\nError: (none)\nExit Code: 2\nSignal: 0",
                "bad",
            ),
            ("Command: x\nStdout: fine\nError: (none)\nExit Code: 0\nSignal: 0", ""),
            ("Output: 1 passed in 0.09s\nProcess Group PGID: 7", ""),
        ],
    )
    def test_a_failed_command_is_known_by_its_exit_code(self, tmp_path, output, error):
        calls = [call("run_shell_command", output, command=COMMAND)]
        session = of_messages(tmp_path, message("gemini", "g1", "", toolCalls=calls))

        assert session.errors == ([error] if error else [])

    def test_a_failed_tool_is_known_by_its_status(self, tmp_path):
        calls = [call("replace", "", "error", file_path=FILE), call("read_file", "1", path=FILE)]
        calls[0]["result"][0]["functionResponse"]["response"] = {"error": "0 occurrences found"}
        session = of_messages(tmp_path, message("gemini", "g1", "", toolCalls=calls))

        assert session.errors == ["0 occurrences found"]
        assert session.files == []


class TestFiles:
    def test_two_files_of_a_session_are_one_session(self, tmp_path):
        clients = Clients(tmp_path, "gemini")
        home_of("gemini", clients.home)
        for _ in range(2):
            clients.read()
            assert clients.texts(ID) == STORY

    def test_a_file_without_turns_replaces_nothing_that_was_kept(self, tmp_path):
        clients = Clients(tmp_path, "gemini")
        home_of("gemini", clients.home)
        clients.read()
        folder = chats(clients.home)
        (folder / FIRST).unlink()
        second = folder / FIRST.replace("09-00", "10-30")
        second.write_text(f"{second.read_text()}\n")
        clients.read()

        assert clients.texts(ID) == STORY

    def test_sessions_with_ids_that_begin_alike_stay_two(self, tmp_path):
        other = f"5ac46628{ID[8:].replace('1', '2')}"
        write_lines(chats(tmp_path) / FIRST, HEAD, user("u1", ASKED))
        write_lines(
            chats(tmp_path) / "session-2026-11-05T11-00-5ac46628.jsonl",
            HEAD | {"sessionId": other},
            user("u2", CORRECTED),
        )

        words = {id: session.prompts for id, session in by_id(Gemini(), tmp_path).items()}

        assert words == {ID: [ASKED], other: [CORRECTED]}

    @pytest.mark.parametrize("name", ["session-x.jsonl", "session-1-[a].jsonl", "session-.jsonl"])
    def test_a_file_with_another_name_is_read(self, tmp_path, name):
        write_lines(chats(tmp_path) / name, HEAD, user("u1", ASKED))

        assert read_one(tmp_path).prompts == [ASKED]

    def test_a_session_of_the_older_form_has_the_project_of_its_hash(self, tmp_path):
        folder = tmp_path / ".gemini"
        write_json(folder / "projects.json", {"projects": {"/home/mina": "mina", CWD: "shop"}})
        older = {
            **HEAD,
            "messages": [message("user", "a", ASKED), message("gemini", "b", ANSWERED)],
        }
        write_json(folder / "tmp" / HASH / "chats" / FIRST.replace("jsonl", "json"), older)

        session = read_one(tmp_path)

        assert session.prompts == [ASKED]
        assert session.answers == [ANSWERED]
        assert session.facts.cwd == CWD

    def test_a_project_is_found_by_the_paths_that_its_session_names(self, tmp_path):
        folder = tmp_path / ".gemini" / "tmp" / HASH / "chats"
        write_lines(folder / FIRST, HEAD, message("gemini", "g1", "", toolCalls=[EDIT]))

        assert read_one(tmp_path).facts.cwd == CWD

    def test_a_slug_is_explained_by_the_list_of_projects(self, tmp_path):
        of_messages(tmp_path, user("u1", ASKED))
        (chats(tmp_path).parent / ".project_root").unlink()
        write_json(tmp_path / ".gemini" / "projects.json", {"projects": {"/srv/shop": "shop"}})

        assert read_one(tmp_path).facts.cwd == "/srv/shop"

    def test_a_migrated_session_and_its_older_file_are_one(self, tmp_path):
        old = {**HEAD, "messages": [user("u1", ASKED)]}
        write_json(chats(tmp_path) / FIRST.replace("jsonl", "json"), old)

        session = of_messages(tmp_path, user("u1", ASKED), user("u2", CORRECTED))

        assert session.prompts == [ASKED, CORRECTED]

    def test_a_sub_agent_is_a_session_of_its_own(self, tmp_path):
        head = {**HEAD, "sessionId": "general-1a", "kind": "subagent"}
        write_lines(chats(tmp_path) / ID / "general-1a.jsonl", head, user("u9", "List the files."))

        session = read_one(tmp_path)

        assert session.facts.kind is Kind.SUBAGENT
        assert session.facts.parent == ID
        assert session.facts.native_id == "general-1a"
        assert session.facts.cwd == CWD
        assert not session.turns[0].is_typed


class TestBadInput:
    def test_unknown_records_are_counted(self, tmp_path):
        session = of_messages(
            tmp_path, user("u1", ASKED), {"id": "x", "type": "new"}, {"$change": 1}, "x"
        )

        assert (session.records, session.unknown) == (5, 3)

    def test_a_large_file_of_the_older_form_is_reported(self, tmp_path, monkeypatch):
        path = chats(tmp_path) / FIRST.replace("jsonl", "json")
        write_json(path, {**HEAD, "messages": [user("u1", ASKED)]})
        monkeypatch.setattr("mimo.extensions.sessions.readers.lines.LARGEST_FILE", 10)
        (source,) = Gemini().sources({}, tmp_path)

        with pytest.raises(OSError, match="larger than 10 bytes"):
            list(Gemini().read(source, Progress()))

    def test_the_words_of_a_file_are_limited(self, tmp_path, monkeypatch):
        monkeypatch.setattr("mimo.extensions.sessions.readers.gemini.LARGEST_FILE", 5_000)
        session = of_messages(tmp_path, *(user(f"u{n}", f"{n}. {ASKED}") for n in range(100)))

        assert 5 < len(session.turns) < 50
        assert session.unknown == 100 - len(session.turns)

    def test_a_deep_path_takes_linear_time(self, tmp_path):
        paths = {"file_path": "/a" * 2_000, "path": "/a" * 500_000}
        calls = [{"name": "replace", "args": paths}]
        folder = tmp_path / ".gemini" / "tmp" / HASH / "chats"
        write_lines(folder / FIRST, HEAD, message("gemini", "g1", "", toolCalls=calls))

        assert read_one(tmp_path).facts.cwd == ""

    def test_a_text_that_quotes_a_wrapping_is_the_users(self, tmp_path):
        quoted = f"Why is <session_context> in {json.dumps('<mind-context>')} here?"
        session = of_messages(tmp_path, user("u1", quoted))

        assert session.prompts == [quoted]
