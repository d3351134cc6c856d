"""Transcripts of Claude Code: whose words they hold, and what a session is called."""

import json
from pathlib import Path
from typing import Any

import pytest

from mimo.extensions.sessions.model import Kind, Source
from mimo.extensions.sessions.readers import lines
from mimo.extensions.sessions.readers.claude_code import ClaudeCode
from mimo.extensions.sessions.readers.lines import source_of
from tests.extensions.sessions.homes import (
    ANSWERED,
    ASKED,
    COMMAND,
    CORRECTED,
    FILE,
    Read,
    by_id,
    home_of,
    read,
    source,
)

CWD = "/home/mina/shop"
MAIN, FORK, WORKTREE, OLD = (f"{n * 8}-{n * 4}-4{n * 3}-8{n * 3}-{n * 12}" for n in "1234")


def said(text: Any, **more: Any) -> dict[str, Any]:
    """Returns the record of a prompt."""
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def answered(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Returns the record of blocks of an answer."""
    return {"type": "assistant", "message": {"id": "m", "content": list(blocks)}, **more}


def block(text: str) -> dict[str, Any]:
    """Returns a block of text."""
    return {"type": "text", "text": text}


def call(id: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    """Returns the block of a call."""
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any, **more: Any) -> dict[str, Any]:
    """Returns the record of a result."""
    return said([{"type": "tool_result", "tool_use_id": id, "content": content, **more}])


def session(folder: Path, *records: Any, name: str = f"{MAIN}.jsonl") -> Read:
    """Returns what the reader makes of some records; texts are lines as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    written = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in records]
    path.write_bytes(b"".join(line + b"\n" for line in written))
    return read(ClaudeCode(), source(path))


@pytest.fixture
def story(tmp_path: Path) -> dict[str, Read]:
    """The sessions of the story, by the client's ids."""
    return by_id(ClaudeCode(), home_of("claude-code", tmp_path))


def test_the_words_calls_and_errors_of_a_session(story: dict[str, Read]) -> None:
    main = story[MAIN]
    rule = main.prompts[2]
    assert main.prompts == [ASKED, CORRECTED, rule]
    assert rule.startswith("From now on run the tests")
    assert main.answers == [ANSWERED, "Renamed.", "Noted."]
    assert main.calls == [
        (f"Edit {FILE}", ""),
        (COMMAND, "1 failed in 0.10s"),
        (f"Write {FILE}", ""),
        (COMMAND, ""),
        (f"Read {CWD}/plan.png", ""),
        ("Agent", ""),
        ("seq 1 90000", ""),
    ]
    assert main.files == [FILE, FILE]
    assert all(turn.is_typed and turn.at and turn.native_id for turn in main.turns)
    assert (main.facts.title, main.facts.branch, main.facts.cwd) == ("Orders by key", "trunk", CWD)
    assert main.facts.kind is Kind.MAIN
    assert (main.records, main.unknown) == (37, 1)


def test_a_fork_has_the_ids_of_the_records_that_it_repeats(story: dict[str, Read]) -> None:
    ids = {turn.native_id for turn in story[MAIN].turns}
    own = [turn.text for turn in story[FORK].turns if turn.native_id not in ids]
    assert own == ["And now the same for invoices.", "Invoices, too."]


def test_a_worktree_names_its_repository(story: dict[str, Read]) -> None:
    facts = story[WORKTREE].facts
    assert (facts.repository, facts.branch) == (CWD, "worktree-feat-x")
    assert facts.cwd == f"{CWD}/.claude/worktrees/feat-x"


def test_a_sub_agent_names_the_session_that_started_it(story: dict[str, Read]) -> None:
    agent = story["agent-a0000000000000001"]
    assert (agent.facts.kind, agent.facts.parent) == (Kind.SUBAGENT, MAIN)
    assert agent.facts.title == "Look for offset"
    assert agent.prompts == ["Find each use of offset."]
    assert not agent.turns[0].is_typed


def test_a_sub_agent_beside_its_session_is_one(tmp_path: Path) -> None:
    record = said("Find each use.", isSidechain=True, sessionId=MAIN)
    agent = session(tmp_path, record, name="agent-0a1b2c3d.jsonl")
    assert (agent.facts.kind, agent.facts.parent) == (Kind.SUBAGENT, MAIN)
    assert agent.prompts == ["Find each use."]


def test_records_of_sub_agents_in_a_session_are_not_of_the_user(tmp_path: Path) -> None:
    whole = session(
        tmp_path,
        said("Look around."),
        said("Find each use.", isSidechain=True),
        answered(block("Two uses."), isSidechain=True),
        answered(block("There are two.")),
    )
    assert whole.prompts == ["Look around."]
    assert whole.answers == ["There are two."]
    assert not whole.unknown


def test_a_summary_is_the_title_of_the_session_that_it_names(
    tmp_path: Path, story: dict[str, Read]
) -> None:
    assert story[OLD].facts.title == "Config file for the shop"
    other = {"type": "summary", "summary": "Other", "leafUuid": "elsewhere"}
    own = {"type": "summary", "summary": "Own", "leafUuid": "u1"}
    records = (other, own, said("x", uuid="u1"), other)
    assert session(tmp_path, *records).facts.title == "Own"
    titles = ({"type": "ai-title", "aiTitle": "Better"}, own)
    assert session(tmp_path, *records, *titles).facts.title == "Better"


def test_a_prompt_that_waited_is_said_once(tmp_path: Path) -> None:
    def queued(prompt: Any, mode: str = "prompt") -> dict[str, Any]:
        command = {"type": "queued_command", "prompt": prompt, "commandMode": mode}
        return {
            "parentUuid": "u",
            "isSidechain": False,
            "attachment": command,
            "type": "attachment",
        }

    whole = session(
        tmp_path,
        said("Begin."),
        queued("Also the docs."),
        answered(block("Yes.")),
        said("Also the docs."),
        said("Then stop.", promptSource="queued"),
        answered(block("Done.")),
        queued([block("Then stop.")]),
        queued("<task-notification>\n<status>completed</status>\n</task-notification>"),
        queued("A report.", mode="task-notification"),
    )
    assert whole.prompts == ["Begin.", "Also the docs.", "Then stop."]


@pytest.mark.parametrize(
    "more",
    [
        {"isMeta": True},
        {"isCompactSummary": True},
        {"promptSource": "system"},
        {"turnOrigin": "task_notification"},
    ],
)
def test_what_the_client_wrote_is_not_said(tmp_path: Path, more: dict[str, Any]) -> None:
    assert session(tmp_path, said("A long summary.", **more)).turns == ()


@pytest.mark.parametrize("entrypoint", ["sdk-cli", "sdk-py", "sdk-ts"])
def test_a_run_without_a_user_is_headless(tmp_path: Path, entrypoint: str) -> None:
    whole = session(tmp_path, said("Review it.", entrypoint=entrypoint, promptSource="sdk"))
    assert whole.facts.kind is Kind.HEADLESS
    assert not whole.turns[0].is_typed


def test_blocks_of_a_prompt_are_one_turn(tmp_path: Path) -> None:
    blocks = [block("<ide_selection>x</ide_selection>"), block("One."), block("Two.")]
    assert session(tmp_path, said(blocks)).prompts == ["One.\n\nTwo."]


def test_a_call_without_a_result_waits(tmp_path: Path) -> None:
    running = (said("Test it."), answered(block("I do."), call("a", command="make test")))
    before = session(tmp_path, *running)
    assert before.answers == []
    path = tmp_path / f"{MAIN}.jsonl"
    failed = result("a", [block("Exit code 2\nmake: *** [test] Error 2")], is_error=True)
    with path.open("ab") as file:
        file.write(json.dumps(failed).encode() + b"\n")
    after = read(ClaudeCode(), source(path), before)
    assert after.answers == ["I do."]
    assert after.calls == [("make test", "make: *** [test] Error 2")]


def test_messages_of_the_client_itself_are_left_out(tmp_path: Path) -> None:
    record = answered(block("API Error"))
    record["message"]["model"] = "<synthetic>"
    assert session(tmp_path, record).turns == ()


def test_queries_to_mind_are_left_out(tmp_path: Path) -> None:
    log = session(
        tmp_path,
        answered(call("a", "mcp__mind__mind_sessions", query="secret plan")),
        result("a", "x"),
        answered(call("b", command="mind sessions search 'secret plan'")),
        result("b", "x"),
    )
    assert [line for line, _ in log.calls] == ["mcp__mind__mind_sessions", "mind"]


# Hostile and odd files.


def test_lines_that_are_damaged_are_counted(tmp_path: Path) -> None:
    whole = session(
        tmp_path,
        b"\xef\xbb\xbf" + json.dumps(said("With a mark.")).encode(),
        b"",
        json.dumps(said("With CR.")).encode() + b"\r",
        b"\0" * 64 + json.dumps(said("After zeros.")).encode(),
        json.dumps(said("Caf\xe9 latin.", x=1), ensure_ascii=False).encode("latin-1"),
        json.dumps(said("wide")).encode("utf-16"),
        b'{"type": "user", "message"',
        b"[" * 10_000,
        json.dumps(said("half \ud800 pair")).encode(),
        b'{"type":"user","message":' + b'{"a":' * 200 + b"1" + b"}" * 201,
    )
    assert whole.prompts == [
        "With a mark.",
        "With CR.",
        "After zeros.",
        "Caf\ufffd latin.",
        "half ? pair",
    ]
    assert whole.unknown == 4


def test_long_lines_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1_000)
    monkeypatch.setattr(lines, "_CHUNK", 64)
    exact = json.dumps(said("")).encode()
    whole = session(
        tmp_path,
        said("One."),
        json.dumps(said("x" * 5_000), separators=(",", ":")).encode(),
        b"[" + b"1," * 5_000 + b"1]",
        exact[:-1] + b" " * (999 - len(exact)) + b"}",
        exact[:-1] + b" " * (1_000 - len(exact)) + b"}",
        said("Two."),
    )
    assert whole.prompts == ["One.", "Two."]
    assert (whole.records, whole.unknown) == (6, 1)
    path = tmp_path / f"{MAIN}.jsonl"
    assert whole.progress.offset == path.stat().st_size
    path.write_bytes(b"x" * 5_000)
    assert read(ClaudeCode(), source(path)).progress.offset == 0


def test_a_kind_within_a_text_is_no_kind(tmp_path: Path) -> None:
    quoted = '{"type":"progress"} and "attachment":{"type":"hook"} and {"type":"api-request"'
    whole = session(
        tmp_path,
        json.dumps({"note": quoted, **said(quoted)}, separators=(",", ":")).encode(),
        b'{"uuid":"\\"type\\":\\"progress\\",","type":"user","message":{"content":"Hi."}}',
        b'{"type":"progress","data":{"type":"user","message":{"content":"no"}}}',
        b'{"uuid":"a","attachment":{"type":"file","content":{"type":"user"}},"type":"attachment"}',
    )
    assert whole.prompts == [quoted, "Hi."]
    assert not whole.unknown


def test_times_that_cannot_be_are_left_out(tmp_path: Path) -> None:
    times = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "yesterday", -1e300, True, 0, None]
    records = [said(str(number), timestamp=time) for number, time in enumerate(times)]
    last = said("last", timestamp="2026-11-05T10:00:00+01:00")
    whole = session(tmp_path, *records, last)
    assert [turn.at for turn in whole.turns[:-1]] == [None] * len(times)
    assert str(whole.turns[-1].at) == "2026-11-05 09:00:00+00:00"


def test_a_file_that_was_replaced_meanwhile_is_an_error(tmp_path: Path) -> None:
    session(tmp_path, said("One."))
    path = tmp_path / f"{MAIN}.jsonl"
    former = source(path)
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes())
    other.replace(path)
    with pytest.raises(OSError, match="replaced"):
        read(ClaudeCode(), former)


def test_a_link_to_another_file_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / f"{MAIN}.jsonl"
    path.symlink_to("/etc/passwd")
    assert source_of(path) is None
    with pytest.raises(OSError, match="symbolic links"):
        read(ClaudeCode(), Source(path))


def test_the_folder_may_be_a_link(tmp_path: Path) -> None:
    moved = home_of("claude-code", tmp_path) / ".claude"
    (tmp_path / "link").symlink_to(moved)
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path / "link")}
    assert len(list(ClaudeCode().sources(environment, tmp_path / "nowhere"))) == 5
    assert not list(ClaudeCode().sources({"CLAUDE_CONFIG_DIR": "a\0b"}, tmp_path))
