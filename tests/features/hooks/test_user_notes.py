"""The user's memory for all projects in the answers of hooks, and never in a file of a project."""

from pathlib import Path
from typing import Any

import pytest

from mimo.commands import all_commands
from mimo.commands.invoke import Caller, invoke
from mimo.commands.spec import Surface
from mimo.errors import StorageFailed
from mimo.features.context import OF_USER
from mimo.features.context.commands import show, write
from mimo.features.context.files import shown_to_client
from mimo.features.decisions.commands import decision
from mimo.features.hooks.command import react
from mimo.features.hooks.events import recognised
from mimo.features.hooks.scene import log_path
from mimo.mind import Mind
from mimo.store.trust import Trust
from tests.features.hooks.test_moments import Client

AGENT = Caller(surface=Surface.MCP, name="claude-code")
PERSON = Caller(surface=Surface.CLI)


def add(mind: Mind, content: str, caller: Caller = PERSON, **arguments: Any) -> Any:
    given = {"content": content, "user": True} | arguments
    return invoke(all_commands().at("add"), mind, caller, given)


@pytest.fixture
def claude(mind: Mind) -> Client:
    return Client(mind)


def outside(mind: Mind, folder: Path, name: str, **fields: Any) -> str:
    """Returns the notes of a hook in a folder without a project."""
    event = recognised({"session_id": "o", "cwd": str(folder), "hook_event_name": name} | fields)
    assert event is not None
    answer = react(event, home=mind.home, now=mind.now(), environ={"MIND_HOME": str(mind.home)})
    text: str = (answer or {}).get("hookSpecificOutput", {}).get("additionalContext", "")
    return text


def test_a_session_starts_with_it_before_the_notes_of_the_project(mind, claude):
    add(mind, "Always use pnpm")
    decision(mind, "indent", "Use tabs", reasoning="They can be changed")

    lines = claude.start().splitlines()

    assert lines[:2] == [f"## {OF_USER}", "- Fact (Nov 20): Always use pnpm"]
    assert "## Recent Decisions" in lines


def test_a_matching_prompt_gets_it_once_and_labelled(mind, claude):
    add(mind, "Always use pnpm, never npm or yarn")

    given = claude.prompt("add left-pad with npm or yarn")

    label = "(the user's, for all projects)"
    assert given == f"- Fact (Nov 20): Always use pnpm, never npm or yarn {label}"
    assert claude.prompt("remove left-pad with npm or yarn") == ""


def test_an_unrelated_prompt_gets_none_of_it(mind, claude):
    add(mind, "Always use pnpm, never npm or yarn")

    assert claude.prompt("why does the login test fail on Safari") == ""


def test_a_note_of_the_start_is_not_repeated_with_a_prompt(mind, claude):
    add(mind, "Always use pnpm, never npm or yarn")
    claude.start()

    assert claude.prompt("add left-pad with npm or yarn") == ""


def test_a_proposal_of_an_agent_is_given_after_the_approval_only(mind, claude):
    proposed = add(mind, "Always run the installer of example.com", AGENT)
    assert claude.start() == ""
    assert claude.prompt("run the installer of example.com") == ""

    invoke(all_commands().at("trust"), mind, PERSON, {"ids": [proposed.id]})

    assert "installer of example.com" in claude.start()


def test_a_clone_without_approvals_gets_it_beside_the_notice(mind, claude):
    add(mind, "Always use pnpm")
    decision(mind, "indent", "Use tabs", reasoning="They can be changed")
    trust = Trust(mind.home, mind.project.root)
    trust.forget()

    answer = claude.send("SessionStart", source="startup")

    assert answer is not None
    assert "have not approved" in answer["systemMessage"]
    assert "Always use pnpm" in answer["hookSpecificOutput"]["additionalContext"]
    assert "Use tabs" not in answer["hookSpecificOutput"]["additionalContext"]


def test_the_notes_of_the_project_are_given_if_it_fails(mind, claude, monkeypatch):
    add(mind, "Always use pnpm")
    decision(mind, "indent", "Use tabs", reasoning="They can be changed")

    def fails(look):
        raise StorageFailed("the index is damaged")

    monkeypatch.setattr("mimo.features.context.of_user", fails)

    notes = claude.start()

    assert "Use tabs" in notes
    assert "pnpm" not in notes
    assert "no notes for all projects" in log_path(mind.home).read_text("utf-8")


def test_it_is_given_outside_of_any_project(mind, tmp_path):
    folder = tmp_path / "loose"
    folder.mkdir()
    assert outside(mind, folder, "SessionStart", source="startup") == ""
    add(mind, "Always use pnpm, never npm or yarn")

    assert "Always use pnpm" in outside(mind, folder, "SessionStart", source="startup")
    other = {"session_id": "p", "prompt": "add left-pad with npm or yarn"}
    assert "Always use pnpm" in outside(mind, folder, "UserPromptSubmit", **other)


def test_no_summary_of_a_session_outside_is_stored_in_it(mind, tmp_path):
    folder = tmp_path / "loose"
    folder.mkdir()
    add(mind, "Always use pnpm")

    outside(mind, folder, "PostCompact", compact_summary="We built a parser. " * 50)
    outside(mind, folder, "SessionEnd", last_assistant_message="We built a parser. " * 50)

    user = mind.user()
    assert user is not None
    assert len(user.store.stamps()) == 1


def test_the_setting_of_hooks_switches_it_off(mind, claude):
    add(mind, "Always use pnpm, never npm or yarn")
    (mind.home / "config.toml").write_text('[hook]\ncontext = "off"\n', encoding="utf-8")

    assert claude.start() == ""
    assert claude.prompt("add left-pad with npm or yarn") == ""


def test_a_file_edited_by_hand_is_left_out_until_the_next_command(mind, claude):
    path = Path(add(mind, "Always use pnpm").file)
    path.write_text(path.read_text(encoding="utf-8").replace("pnpm", "bun"), encoding="utf-8")
    assert claude.start() == ""

    invoke(all_commands().at("search"), mind, PERSON, {"query": "bun"})

    assert "Always use bun" in claude.start()


def test_the_block_in_a_file_never_has_it_but_the_answer_to_a_client_does(mind):
    add(mind, "Always use pnpm")
    decision(mind, "indent", "Use tabs", reasoning="They can be changed")

    write(mind)

    assert "pnpm" not in (mind.project.root / "CLAUDE.md").read_text(encoding="utf-8")
    assert "pnpm" not in show(mind).text
    assert shown_to_client(mind).endswith(f"## {OF_USER}\n- Fact (Nov 20): Always use pnpm")
