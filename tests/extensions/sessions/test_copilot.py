"""The reader of Copilot CLI: its events, and two older forms."""

from pathlib import Path
from typing import Any

import pytest

from mimo.extensions.sessions.readers.copilot import Copilot
from tests.extensions.sessions.homes import (
    ANSWERED,
    ASKED,
    COMMAND,
    CORRECTED,
    CWD,
    ERROR,
    FILE,
    OUTPUT,
    TITLE,
    Read,
    by_id,
    read,
    source,
    write_json,
    write_lines,
)

ID = "f559dc29-0000-4000-8000-000000000001"
AT = "2026-11-05T09:00:00.000Z"


def event(n: int, kind: str, **data: Any) -> dict[str, Any]:
    id = f"00000000-0000-4000-8000-{n:012}"
    return {"type": kind, "data": data, "id": id, "timestamp": f"2026-11-05T09:00:{n % 60:02}.000Z"}


def start(n: int, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    data = {"toolCallId": f"c{n}", "toolName": name, "arguments": arguments}
    return event(n, "tool.execution_start", **data, **more)


def end(n: int, of: int, *, success: bool = True, **data: Any) -> dict[str, Any]:
    return event(n, "tool.execution_complete", toolCallId=f"c{of}", success=success, **data)


def asked(n: int, words: str, **data: Any) -> dict[str, Any]:
    return event(n, "user.message", content=words, **data)


def answered(n: int, words: str, **data: Any) -> dict[str, Any]:
    return event(n, "assistant.message", messageId=f"m{n}", content=words, **data)


WORKSPACE = f"id: {ID}\ncwd: {CWD}\ngit_root: {CWD}\nbranch: trunk\nname: {TITLE}\n"


def write_story(home: Path, *events: Any, workspace: str | bytes = WORKSPACE) -> Path:
    folder = home / ".copilot" / "session-state" / ID
    path = write_lines(folder / "events.jsonl", *events)
    data = workspace if isinstance(workspace, bytes) else workspace.encode()
    (folder / "workspace.yaml").write_bytes(data)
    return path


def of_events(home: Path, *events: Any, **options: Any) -> Read:
    write_story(home, *events, **options)
    (session,) = by_id(Copilot(), home).values()
    return session


class TestWords:
    def test_what_skills_agents_and_the_autopilot_send_is_not_the_users(self, tmp_path):
        session = of_events(
            tmp_path,
            asked(1, ASKED),
            asked(2, "# Skill\nRead PDFs.", source="skill-pdf"),
            asked(3, "Look for offset.", source="agent-1"),
            asked(4, "Continue.", isAutopilotContinuation=True),
            asked(5, "Look for key.", parentToolCallId="c9"),
            asked(6, CORRECTED, source="user"),
        )

        assert session.prompts == [ASKED, CORRECTED]

    def test_of_a_sub_agent_only_the_files_that_it_edited_are_kept(self, tmp_path):
        session = of_events(
            tmp_path,
            answered(1, "Two uses.", parentToolCallId="c9"),
            {**answered(2, "Two uses."), "agentId": "a1"},
            start(3, "grep", {"pattern": "offset"}, parentToolCallId="c9"),
            end(4, 3),
            start(5, "edit", {"path": FILE}, parentToolCallId="c9"),
            end(6, 5, fileEdits=[{"path": FILE, "kind": "edit"}], parentToolCallId="c9"),
        )

        assert session.answers == []
        assert session.calls == [(f"edit {FILE}", "")]
        assert session.files == [FILE]

    @pytest.mark.parametrize(
        ("name", "arguments", "line", "files"),
        [
            ("create", {"path": FILE, "file_text": "x"}, f"create {FILE}", [FILE]),
            ("view", {"path": FILE}, f"view {FILE}", []),
            (
                "str_replace_editor",
                {"command": "view", "path": FILE},
                f"str_replace_editor {FILE}",
                [],
            ),
            (
                "str_replace_editor",
                {"command": "str_replace", "path": FILE},
                f"str_replace_editor {FILE}",
                [FILE],
            ),
            (
                "apply_patch",
                f"*** Begin Patch\n*** Update File: {FILE}\n@@\n-a\n+b\n*** End Patch",
                f"apply_patch {FILE}",
                [FILE],
            ),
            ("bash", {"command": "ls"}, "ls", []),
            ("report_intent", {"intent": "look"}, "report_intent", []),
            ("report_intent", None, "report_intent", []),
        ],
    )
    def test_a_call_is_one_line_with_its_files(self, tmp_path, name, arguments, line, files):
        session = of_events(tmp_path, start(1, name, arguments), end(2, 1))

        assert [text for text, _ in session.calls] == [line]
        assert session.files == files

    @pytest.mark.parametrize(
        ("data", "error"),
        [
            ({"success": False, "error": {"message": "No match found"}}, "No match found"),
            ({"result": {"content": f"{OUTPUT}\n<exited with exit code 1>"}}, ERROR),
            ({"result": {"content": "1 passed\n<exited with exit code 0>"}}, ""),
            ({"result": {"content": OUTPUT}, "shellExecution": {"exitCode": 0}}, ""),
            ({"result": {"content": OUTPUT}, "shellExecution": {"exitCode": None}}, ""),
        ],
    )
    def test_a_failed_call_is_known_by_its_exit_code(self, tmp_path, data, error):
        session = of_events(tmp_path, start(1, "bash", {"command": "x"}), end(2, 1, **data))

        assert session.errors == ([error] if error else [])

    def test_a_failed_edit_edits_nothing(self, tmp_path):
        session = of_events(tmp_path, start(1, "edit", {"path": FILE}), end(2, 1, success=False))

        assert session.files == []

    def test_without_a_name_the_latest_title_counts(self, tmp_path):
        titles = [event(n, "session.title_changed", title=title) for n, title in enumerate("ab")]
        session = of_events(tmp_path, *titles, workspace="name:\n")

        assert session.facts.title == "b"


class TestProgress:
    def test_calls_without_an_end_do_not_pile_up(self, tmp_path):
        calls = [start(n, "bash", {"command": "x"}) for n in range(3_000)]

        assert len(read(Copilot(), source(write_story(tmp_path, *calls))).turns) == 2_000

    def test_an_answer_ends_the_calls_before_it(self, tmp_path):
        path = write_story(tmp_path, start(1, "bash", {"command": "x"}), answered(2, ANSWERED))

        session = read(Copilot(), source(path))

        assert [turn.text for turn in session.turns] == ["x", ANSWERED]
        assert session.progress.offset == path.stat().st_size


class TestOlderForms:
    def test_a_flat_file_of_events_is_read(self, tmp_path):
        write_lines(tmp_path / ".copilot" / "session-state" / f"{ID}.jsonl", asked(1, ASKED))

        assert by_id(Copilot(), tmp_path)[ID].prompts == [ASKED]

    def test_a_file_of_the_first_form_is_read_as_the_terminal_showed_it(self, tmp_path):
        timeline = [
            {"id": "1", "timestamp": AT, "type": "user", "text": ASKED},
            {"type": "info", "text": "Connected."},
            {
                "type": "tool_call_completed",
                "callId": "c1",
                "name": "bash",
                "arguments": {"command": COMMAND},
                "result": {"type": "success", "log": f"{OUTPUT}\n<exited with exit code 1>"},
            },
            {"id": "2", "timestamp": AT, "type": "copilot", "text": ANSWERED},
            {"type": "of the last month"},
        ]
        messages = [{"role": "user", "content": f"<current_datetime>{AT}</current_datetime>"}]
        write_json(
            tmp_path / ".copilot" / "history-session-state" / f"session_{ID}_1760000000000.json",
            {"sessionId": ID, "startTime": AT, "chatMessages": messages, "timeline": timeline},
        )

        session = by_id(Copilot(), tmp_path)[ID]

        assert session.prompts == [ASKED]
        assert session.answers == [ANSWERED]
        assert session.calls == [(COMMAND, ERROR)]
        assert (session.records, session.unknown) == (5, 1)

    def test_without_a_timeline_the_messages_of_the_first_form_count(self, tmp_path):
        messages = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWERED}]
        write_json(
            tmp_path / ".copilot" / "history-session-state" / f"session_{ID}_1.json",
            {"startTime": AT, "chatMessages": messages},
        )

        session = by_id(Copilot(), tmp_path)[ID]

        assert [turn.text for turn in session.turns] == [ASKED, ANSWERED]
        assert session.turns[0].at is not None

    def test_the_newest_form_of_a_session_counts(self, tmp_path):
        path = write_story(tmp_path, asked(1, ASKED))
        write_lines(path.parent.with_suffix(".jsonl"), asked(1, "Old."))
        write_json(
            tmp_path / ".copilot" / "history-session-state" / f"session_{ID}_1.json",
            {"chatMessages": [{"role": "user", "content": "Older."}]},
        )

        assert [source.path for source in Copilot().sources({}, tmp_path)] == [path]


class TestBadInput:
    def test_unknown_kinds_are_counted(self, tmp_path):
        kinds = ("brand_new.record", "user.said", "session.of_next_month", "abort", "")
        session = of_events(tmp_path, *(event(n, kind) for n, kind in enumerate(kinds)), "x")

        assert (session.records, session.unknown) == (6, 4)

    @pytest.mark.parametrize(
        "workspace", ["- a\n", "name: [", "name: 5\ncwd: {}\nbranch: 1.5\n", b"\xff\xfe", "&a [*a]"]
    )
    def test_a_broken_workspace_file_leaves_what_the_events_contain(self, tmp_path, workspace):
        at = [{"cwd": CWD, "branch": "old"}, {"cwd": f"{CWD}/orders", "branch": "trunk"}]
        events = [event(n, "session.resume", context=context) for n, context in enumerate(at)]
        session = of_events(tmp_path, *events, workspace=workspace)

        assert (session.facts.cwd, session.facts.branch, session.facts.title) == (CWD, "trunk", "")
