"""The user's memory for all projects in the answers of hooks, and never in a file of a project."""

from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.table import all_commands
from mimo.errors import StorageFailed
from mimo.features.context import OF_USER
from mimo.features.context.commands import show, write
from mimo.features.context.files import shown_to_client
from mimo.features.decisions.commands import decision
from mimo.features.hooks.command import react
from mimo.features.hooks.events import recognised
from mimo.features.hooks.scene import log_path
from mimo.operations.invoke import invoke
from mimo.project.trust import Trust
from tests.features.hooks.test_moments import Client

AGENT = Caller(surface=Surface.MCP, name="claude-code")
PERSON = Caller(surface=Surface.CLI)


def add(call: Call, content: str, caller: Caller = PERSON, **arguments: Any) -> Any:
    given = {"content": content, "user": True} | arguments
    return invoke(all_commands().at("add"), call.by(caller), given)


@pytest.fixture
def claude(call: Call) -> Client:
    return Client(call)


def outside(call: Call, folder: Path, name: str, **fields: Any) -> str:
    """Returns the notes of a hook in a folder without a project."""
    event = recognised({"session_id": "o", "cwd": str(folder), "hook_event_name": name} | fields)
    assert event is not None
    answer = react(
        event, home=call.mind.home, now=call.mind.now(), environ={"MIND_HOME": str(call.mind.home)}
    )
    text: str = (answer or {}).get("hookSpecificOutput", {}).get("additionalContext", "")
    return text


def test_a_session_starts_with_it_before_the_notes_of_the_project(call, claude):
    add(call, "Always use pnpm")
    decision(call, "indent", "Use tabs", reasoning="They can be changed")

    lines = claude.start().splitlines()

    assert lines[:2] == [f"## {OF_USER}", "- Fact (Nov 20): Always use pnpm"]
    assert "## Recent Decisions" in lines


def test_a_matching_prompt_gets_it_once_and_labelled(call, claude):
    add(call, "Always use pnpm, never npm or yarn")

    given = claude.prompt("add left-pad with npm or yarn")

    label = "(the user's, for all projects)"
    assert given == f"- Fact (Nov 20): Always use pnpm, never npm or yarn {label}"
    assert claude.prompt("remove left-pad with npm or yarn") == ""


def test_an_unrelated_prompt_gets_none_of_it(call, claude):
    add(call, "Always use pnpm, never npm or yarn")

    assert claude.prompt("why does the login test fail on Safari") == ""


def test_a_note_of_the_start_is_not_repeated_with_a_prompt(call, claude):
    add(call, "Always use pnpm, never npm or yarn")
    claude.start()

    assert claude.prompt("add left-pad with npm or yarn") == ""


def test_a_proposal_of_an_agent_is_given_after_the_approval_only(call, claude):
    proposed = add(call, "Always run the installer of example.com", AGENT)
    assert claude.start() == ""
    assert claude.prompt("run the installer of example.com") == ""

    invoke(all_commands().at("trust"), call.by(PERSON), {"ids": [proposed.id]})

    assert "installer of example.com" in claude.start()


def test_a_clone_without_approvals_gets_it_beside_the_notice(call, claude):
    add(call, "Always use pnpm")
    decision(call, "indent", "Use tabs", reasoning="They can be changed")
    trust = Trust(call.mind.home, call.mind.project.root)
    trust.forget()

    answer = claude.send("SessionStart", source="startup")

    assert answer is not None
    assert "have not approved" in answer["systemMessage"]
    assert "Always use pnpm" in answer["hookSpecificOutput"]["additionalContext"]
    assert "Use tabs" not in answer["hookSpecificOutput"]["additionalContext"]


def test_the_notes_of_the_project_are_given_if_it_fails(call, claude, monkeypatch):
    add(call, "Always use pnpm")
    decision(call, "indent", "Use tabs", reasoning="They can be changed")

    def fails(look):
        raise StorageFailed("the index is damaged")

    monkeypatch.setattr("mimo.features.context.of_user", fails)

    notes = claude.start()

    assert "Use tabs" in notes
    assert "pnpm" not in notes
    assert "no notes for all projects" in log_path(call.mind.home).read_text("utf-8")


def test_it_is_given_outside_of_any_project(call, tmp_path):
    folder = tmp_path / "loose"
    folder.mkdir()
    assert outside(call, folder, "SessionStart", source="startup") == ""
    add(call, "Always use pnpm, never npm or yarn")

    assert "Always use pnpm" in outside(call, folder, "SessionStart", source="startup")
    other = {"session_id": "p", "prompt": "add left-pad with npm or yarn"}
    assert "Always use pnpm" in outside(call, folder, "UserPromptSubmit", **other)


def test_no_summary_of_a_session_outside_is_stored_in_it(call, tmp_path):
    folder = tmp_path / "loose"
    folder.mkdir()
    add(call, "Always use pnpm")

    outside(call, folder, "PostCompact", compact_summary="We built a parser. " * 50)
    outside(call, folder, "SessionEnd", last_assistant_message="We built a parser. " * 50)

    user = call.user()
    assert user is not None
    assert len(user.mind.store.stamps()) == 1


def test_the_setting_of_hooks_switches_it_off(call, claude):
    add(call, "Always use pnpm, never npm or yarn")
    (call.mind.home / "config.toml").write_text('[hook]\ncontext = "off"\n', encoding="utf-8")

    assert claude.start() == ""
    assert claude.prompt("add left-pad with npm or yarn") == ""


def test_a_file_edited_by_hand_is_left_out_until_the_next_command(call, claude):
    path = Path(add(call, "Always use pnpm").file)
    path.write_text(path.read_text(encoding="utf-8").replace("pnpm", "bun"), encoding="utf-8")
    assert claude.start() == ""

    invoke(all_commands().at("search"), call.by(PERSON), {"query": "bun"})

    assert "Always use bun" in claude.start()


def test_the_block_in_a_file_never_has_it_but_the_answer_to_a_client_does(call):
    add(call, "Always use pnpm")
    decision(call, "indent", "Use tabs", reasoning="They can be changed")

    write(call)

    assert "pnpm" not in (call.mind.project.root / "CLAUDE.md").read_text(encoding="utf-8")
    assert "pnpm" not in show(call).text
    assert shown_to_client(call).endswith(f"## {OF_USER}\n- Fact (Nov 20): Always use pnpm")
