"""Prompts, and the notes as a resource, asked by the SDK's own client over a real pipe."""

from typing import Any

import pytest
from mcp import MCPError
from mcp.client import Client

from mimo.call import Call
from mimo.features import decisions
from mimo.memory.model import Kind, Section
from mimo.operations import saving
from mimo.project.trust import Trust
from tests import kit, privacy_fakes

INVALID_PARAMS = -32602


def asked(call: Call, ask: Any) -> Any:

    async def talk(client: Client) -> Any:
        return await ask(client)

    return kit.client(call, talk, ["core"])


def text_of(call: Call, name: str, arguments: dict[str, str] | None = None) -> str:
    """Returns the text of a prompt, which is one message of the user."""

    async def talk(client: Client) -> Any:
        return await client.get_prompt(name, arguments)

    (message,) = asked(call, talk).messages
    assert message.role == "user"
    text: str = message.content.text
    return text


def test_the_list_of_prompts_contains_no_memory(call: Call) -> None:
    saving.store(call, saving.draft(Kind.DECISION, "Use JWT for auth"))
    listed = asked(call, lambda client: client.list_prompts()).prompts
    assert [prompt.name for prompt in listed] == ["resume_work", "record_decision"]
    assert [argument.name for argument in listed[1].arguments] == ["decision", "topic", "tags"]
    assert not any(argument.required for argument in listed[1].arguments)
    assert "JWT" not in repr(listed)


def test_resuming_shows_no_secret(call: Call) -> None:
    token = next(fake.secret for fake in privacy_fakes.secrets(1) if fake.kind == "github_token")
    record = decisions.save_checkpoint(call, saving.draft(Kind.CHECKPOINT, "Half done"))
    path = call.mind.project.root / record.place.path
    path.write_text(f"{path.read_text(encoding='utf-8')}\nThe key is {token}\n", encoding="utf-8")
    call.mind.trust.follow(True)
    text = text_of(call, "resume_work")
    assert "The key is [REDACTED:github_token]" in text
    assert token not in text


def test_resuming_shows_the_checkpoint(call: Call, clock) -> None:
    steps = {Section.NEXT_STEPS: "- [ ] Write the rotation test\n- [x] Done"}
    decisions.save_checkpoint(call, saving.draft(Kind.CHECKPOINT, "Half done", sections=steps))
    clock.forward(hours=20)
    text = text_of(call, "resume_work")
    assert text.startswith("Go on with the work on this project from where it stopped.")
    assert (
        "\nWhere work stopped, 20 hours ago, on this branch:\n- Nov 20: Half done\n"
        "- Next: Write the rotation test\n</mind-context>" in text
    )


def test_without_a_checkpoint_resuming_shows_the_notes(call: Call) -> None:
    assert "There is no record of where work" in text_of(call, "resume_work")
    saving.store(call, saving.draft(Kind.DECISION, "Use JWT for auth"))
    assert "- Use JWT for auth (Nov 20)" in text_of(call, "resume_work")


def test_an_unapproved_checkpoint_is_not_shown(call: Call) -> None:
    decisions.save_checkpoint(call, saving.draft(Kind.CHECKPOINT, "Run curl | sh next"))
    Trust(call.mind.home, call.mind.project.root).forget()
    assert "curl" not in text_of(call, "resume_work")


def test_the_prompt_for_a_decision_contains_its_arguments(call: Call) -> None:
    assert "Record the decision that we just made in" in text_of(call, "record_decision")
    text = text_of(call, "record_decision", {"decision": "Use {JWT}", "topic": "auth"})
    assert text.startswith("Record this decision: Use {JWT} (topic: auth) in this project's memory")
    assert "save_decision" in text


def test_an_unknown_prompt_is_an_error_of_the_protocol(call: Call) -> None:
    async def talk(client: Client) -> Any:
        with pytest.raises(MCPError, match="there is no prompt `nope`") as caught:
            await client.get_prompt("nope")
        return caught.value.error.code

    assert asked(call, talk) == INVALID_PARAMS


def test_the_notes_are_a_resource(call: Call) -> None:
    saving.store(call, saving.draft(Kind.DECISION, "Use JWT for auth"))
    saving.store(call, saving.draft(Kind.DECISION, "Hidden"), private=True)

    async def talk(client: Client) -> Any:
        return await client.list_resources(), await client.read_resource("mind://context")

    listed, read = asked(call, talk)
    assert listed.resources[0].uri == "mind://context"
    assert "- Use JWT for auth (Nov 20)" in read.contents[0].text
    assert "Hidden" not in read.contents[0].text
