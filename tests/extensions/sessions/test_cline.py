"""Sessions of Cline: those of its command line, and tasks of its extension."""

from pathlib import Path
from typing import Any

import pytest

from mimo.extensions.sessions.model import Kind
from mimo.extensions.sessions.readers.cline import Cline
from tests.extensions.sessions.homes import (
    ANSWERED,
    ASKED,
    CWD,
    FILE,
    Read,
    by_id,
    home_of,
    read,
    sessions,
    write_json,
)

SESSION, TASK = "1793869200000_ab12c", "1764583200000"


def message(role: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    """Returns a message; a text is a block."""
    texts = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    return {"role": role, "content": texts, **more}


def call(name: str, id: str = "c", **given: Any) -> dict[str, Any]:
    """Returns the block of a call."""
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(content: Any, id: str = "c", **more: Any) -> dict[str, Any]:
    """Returns the block of a result."""
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def written(path: Path, value: Any) -> Read:
    """Returns what is read after a file was written into a home."""
    write_json(path, value)
    home = next(each.parent for each in path.parents if each.name.startswith("."))
    return next(each for source, each in sessions(Cline(), home) if source.path == path)


def session(home: Path, *messages: Any, name: str = SESSION, **more: Any) -> Read:
    """Returns what is read of a session of the command line."""
    path = home / ".cline/data/sessions" / SESSION / f"{name}.messages.json"
    return written(path, {"messages": list(messages), **more})


def task(home: Path, *messages: Any) -> Read:
    """Returns what is read of a task of the extension."""
    storage = home / ".config/Code/User/globalStorage/saoudrizwan.claude-dev"
    return written(storage / "tasks" / TASK / "api_conversation_history.json", list(messages))


def test_the_story(tmp_path: Path) -> None:
    story = by_id(Cline(), home_of("cline", tmp_path))
    assert set(story) == {SESSION, TASK}
    for each in story.values():
        assert (each.prompts, each.answers, each.facts.cwd) == ([ASKED], [ANSWERED], CWD)
        assert not each.unknown
        assert all(turn.at for turn in each.turns)
    facts = story[SESSION].facts
    assert (facts.title, facts.branch, facts.kind) == (ASKED, "trunk", Kind.MAIN)
    assert story[SESSION].calls == [(f"editor {FILE}", "")]
    assert story[SESSION].files == [FILE]


def test_a_command_that_failed(tmp_path: Path) -> None:
    command = {"query": "make", "result": "[Command exited with code 3]\nno such key\n"}
    log = session(
        tmp_path,
        message("user", '<user_input mode="act">Test it.</user_input>'),
        message("assistant", call("run_commands", commands=["make", "true"])),
        message("user", result([{**command, "success": False}, {"result": "", "success": True}])),
        message("assistant", call("editor", "d", path="a.py", new_text="x")),
        message("user", result('{"success": false, "error": "no such file"}', "d")),
        message("assistant", call("run_commands", "e", commands=["true"])),
        message("user", result([{"result": "no such key", "success": True}], "e")),
    )
    assert log.prompts == ["Test it."]
    assert log.calls == [
        ("make; true", "no such key"),
        ("editor a.py", "no such file"),
        ("true", ""),
    ]


def test_a_sub_agent_names_its_session(tmp_path: Path) -> None:
    agent = session(
        tmp_path,
        message("user", "Find each use."),
        name="agent_1793869201000_oq5krq",
        sessionId=f"{SESSION}__agent_1793869201000_oq5krq",
    )
    assert agent.facts.native_id == f"{SESSION}__agent_1793869201000_oq5krq"
    assert (agent.facts.kind, agent.facts.parent) == (Kind.SUBAGENT, SESSION)
    assert not agent.turns[0].is_typed


def test_calls_and_results_in_texts_of_older_versions(tmp_path: Path) -> None:
    details = (
        f"<environment_details>\n# Current Working Directory ({CWD}) Files\n</environment_details>"
    )
    log = task(
        tmp_path,
        message("user", "<task>\nPage by key.\n</task>", details),
        message(
            "assistant",
            "<thinking>hm</thinking>I write it.\n\n<write_to_file>\n<path>a.py</path>\n"
            "<content>\nx = 1\n</content>\n</write_to_file>",
        ),
        message("user", "[write_to_file for 'a.py'] Result:\nThe content was saved.", details),
        message("assistant", "<execute_command>\n<command>make test</command>\n</execute_command>"),
        message("user", "[execute_command for 'make test'] Result:\nCommand executed.", details),
        message(
            "assistant",
            "<attempt_completion>\n<result>\nIt is done.\n</result>\n</attempt_completion>",
        ),
        message(
            "user",
            "[attempt_completion] Result:\nThe user has provided feedback:\n"
            "<feedback>\nNo, rename it.\n</feedback>",
            details,
        ),
        message("user", "[TASK RESUMPTION] This task was interrupted."),
    )
    assert log.facts.cwd == CWD
    assert log.prompts == ["Page by key.", "No, rename it."]
    assert log.answers == ["I write it.", "It is done."]
    assert log.calls == [("write_to_file a.py", ""), ("make test", "")]
    assert log.files == ["a.py"]


def test_elements_without_an_end_are_words(tmp_path: Path) -> None:
    hostile = "<thinking><feedback><read_file><x>" * 200_000
    log = task(tmp_path, message("user", f"[x] Result: {hostile}"), message("assistant", hostile))
    assert (log.prompts, log.calls) == ([], [])
    assert len(log.answers) == 1


def test_files_that_a_patch_names(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n+x\n*** Add File: b.py\n+y\n*** End Patch"
    log = session(tmp_path, message("assistant", call("apply_patch", input=patch)))
    assert log.files == ["a.py", "b.py"]


@pytest.mark.parametrize("value", [None, 5, {}, {"messages": {}}, "[]"])
def test_a_file_without_messages_is_an_error(tmp_path: Path, value: Any) -> None:
    path = tmp_path / ".cline/data/sessions" / SESSION / f"{SESSION}.messages.json"
    write_json(path, value)
    (source,) = Cline().sources({}, tmp_path)
    with pytest.raises(OSError, match="messages"):
        read(Cline(), source)


def test_messages_of_no_known_shape_are_counted(tmp_path: Path) -> None:
    log = session(tmp_path, 5, {"role": "narrator"}, message("user", "Go."), message("user", 5))
    assert (log.prompts, log.records, log.unknown) == (["Go."], 4, 2)
