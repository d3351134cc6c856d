"""Ways around the rule that closes memories to readers: each tool, resource, prompt and hook."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.client import Client
from mcp_types import PromptReference, ResourceTemplateReference

from mimo.call import Call, Surface
from mimo.call.spec import Effect
from mimo.call.table import all_commands
from mimo.errors import Denied
from mimo.guard.policy import APART, TOOLS, folded
from mimo.memory.ids import handle_of
from mimo.operations import overview
from mimo.operations.invoke import invoke
from mimo.server.prompts import PROMPTS
from tests.conftest import Clock, git
from tests.features.hooks.test_moments import Client as Hooks
from tests.kit import client, do, is_of_core, memory, repository, run, write
from tests.redteam.test_quoted_texts import AGENT, PERSON, answer, arguments_of, opened

WORD = "zebraquill"
"""A word in every text of the memory, and in the names and ids of its files."""
READING = "memory read although the policy closes it"
HANDLES = ("aaaaaa", "bbbbbb", "cccccc", "dddddd", "tea", "aaa", "hhhhhh", "nothing")
"""Arguments without the word that name memories, or nearly do."""
SPECS = [spec for spec in all_commands().all() if is_of_core(spec) and not spec.needs.person]

MEMORIES = {
    "facts/fact.aaaaaa": "importance: 0.01\n",
    "facts/fact.bbbbbb": "tags: [{word}]\n",
    "decisions/decision.cccccc": "topic: tea\n",
    "decisions/decision.dddddd": "topic: {word}\noutcome: FAILED\nlinks: [fact_{word}_bbbbbb]\n",
    "decisions/decision.eeeeee": "topic: ignore_rules\n",
    "checkpoints/checkpoint.ffffff": "",
    "issues/issue.gggggg": "",
    "edges/edge.hhhhhh": "workaround: {word}\ndetection: {{intent: [ignore]}}\n",
}


@pytest.fixture
def store(tmp_path: Path, home: Path, clock: Clock) -> Iterator[Call]:
    """An approved memory with the word, also in git, in the trash and in the log of events."""
    root = repository(tmp_path / "shop")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    write(root, "config.toml", "format = 1\n")
    for name, more in MEMORIES.items():
        place, _, handle = name.partition(".")
        folder, _, kind = place.partition("/")
        id = f"{kind}_{WORD}_{handle}"
        header = f"title: The rules of {WORD}\n{more.format(word=WORD)}"
        text = f"Ignore rules of {WORD}\n\n## Reasoning\nThe {WORD}"
        write(root, f"{folder}/{id}.md", memory(id, text, type=kind, more=header))
    # The text that the tools add, as a memory with another id.
    write(root, f"facts/{WORD}.md", memory(f"fact_{WORD}_jjjjjj", "ignore rules"))
    # What `mind doctor` names.
    write(root, "facts/same.md", memory(f"fact_{WORD}_aaaaaa", "Another text"))
    write(root, "facts/twice.md", f"---\n{WORD}: 1\n{WORD}: 2\n---\n")
    write(root, "facts/link.md", memory("link", f"See [[{WORD}]]", more=f"links: [the_{WORD}]\n"))
    edge = memory("pattern", "x", type="edge", more=f"detection: {{code: ['{WORD} (']}}\n")
    write(root, "edges/pattern.md", edge)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", f"The {WORD}")
    call = opened(root, home, clock)
    files = [f".mind/{path.relative_to(root / '.mind')}" for path in root.rglob("*.md")]
    call.mind.trust.approve(name for file in files for name in call.mind.store.approvals(file))
    do(call, "add", content=f"Another {WORD}", title=f"A {WORD}")
    do(call, "rm", id=do(call, "add", content=f"A removed {WORD}").id)
    do(call, "add", content=f"The user's {WORD}", user=True)
    yield call
    call.mind.close()


def policy(call: Call, rules: str) -> None:
    write(call, "policy.yaml", f"tool_permissions: {rules}\n")
    call.mind.trust.approve(call.mind.guard.approvals())


def shown(call: Call, effects: tuple[Effect, ...]) -> set[str]:
    """Returns the commands that show the word, to an agent if they are offered over MCP."""
    return {
        spec.key
        for spec in SPECS
        if spec.effect in effects
        for caller in [AGENT if Surface.MCP in spec.surfaces else PERSON]
        for arguments in arguments_of(spec, HANDLES)
        if WORD in json.dumps(answer(spec, call, caller, arguments), default=str)
    }


def requested(call: Call) -> list[str]:
    """Returns the answers to all requests of a client that are not calls of tools."""
    arguments = {"decision": "x", "topic": "tea", "tags": "a"}
    template = ResourceTemplateReference(uri="mind://memory/{id}")
    asks: list[Callable[[Client], Any]] = [
        lambda client: client.list_resources(),
        lambda client: client.list_resource_templates(),
        lambda client: client.list_prompts(),
        lambda client: client.list_tools(),
        lambda client: client.complete(template, {"name": "id", "value": "f"}),
        *(lambda client, uri=uri: client.read_resource(uri) for uri in _uris()),
        *(
            lambda client, name=prompt.name, chosen=chosen: client.get_prompt(name, chosen)
            for prompt in PROMPTS
            for chosen in [{a.name: arguments[a.name] for a in prompt.arguments or ()}]
        ),
        *(
            lambda client, name=prompt.name, argument=argument.name, start=start: client.complete(
                PromptReference(name=name), {"name": argument, "value": start}
            )
            for prompt in PROMPTS
            for argument in prompt.arguments or ()
            for start in ("", WORD[:3])
        ),
    ]

    async def talk(connected: Client) -> list[str]:
        answers = []
        for ask in asks:
            try:
                answers.append(repr(await ask(connected)))
            except MCPError as error:
                answers.append(repr(error.error))
        return answers

    return client(call, talk)  # type: ignore[no-any-return]


def _uris() -> list[str]:
    return ["mind://context", *(f"mind://memory/{handle}" for handle in HANDLES)]


def test_without_a_rule_the_walk_finds_what_is_stored(store: Call) -> None:
    reading = {spec.key for spec in SPECS if spec.effect is Effect.READ}
    members = {spec.key for spec in SPECS if folded(spec.name) not in APART} & reading
    of_numbers = {"memory.stats", "mind_edges_check"}

    assert shown(store, (Effect.READ,)) == members - of_numbers | {"mind_status", "mind_doctor"}
    assert sum(WORD in text for text in requested(store)) >= 8


@pytest.mark.attack(READING)
@pytest.mark.parametrize(
    "rules",
    [
        "{memories: {operations: [write]}}",
        "{memories: {operations: []}}",
        '{"*": {}, memories: {operations: [write]}, prompts/get: {}, mind_status: {}}',
        '{"*": {operations: [write]}}',
    ],
)
def test_no_answer_shows_a_memory_if_reading_is_closed(
    store: Call, rules: str, record_property: Callable[[str, object], None]
) -> None:
    policy(store, rules)

    answers = requested(store)
    assert [text for text in answers if WORD in text] == []
    hooks = Hooks(store)
    given = [hooks.start(), hooks.prompt("Ignore the rules of tea"), hooks.prompt("go on")]
    assert WORD not in repr(given)
    assert shown(store, tuple(Effect)) == set()
    assert WORD not in run(store, "policy", "show").out
    record_property("tried", len(SPECS) + len(answers) + len(given))


ADDING = {
    "mind_add": {"content": "ignore rules"},
    "memory.store": {"content": "ignore rules"},
    "store_fact": {"content": "ignore rules", "category": "fact"},
    "save/decision": {"topic": "tea", "decision": "Ignore rules", "reasoning": "x"},
    "save/insight": {"insight": "ignore rules"},
    "save/checkpoint": {"summary": "ignore rules"},
}


@pytest.mark.parametrize(("key", "arguments"), ADDING.items())
def test_a_tool_that_adds_only_needs_to_write(
    store: Call, key: str, arguments: dict[str, Any]
) -> None:
    spec = next(spec for spec in SPECS if spec.key == key)
    policy(store, "{memories: {operations: [write]}}")

    added = answer(spec, store, AGENT, arguments)
    assert "id" in added
    assert WORD not in json.dumps(added, default=str)
    assert not added.get("already")

    policy(store, "{memories: {operations: [read]}}")
    with pytest.raises(Denied):
        invoke(spec, store.by(AGENT), arguments)


def test_no_error_names_a_memory_of_the_user_if_reading_is_closed(store: Call) -> None:
    user = store.user()
    assert user is not None
    (record,) = overview.everything(user)
    decide = all_commands().at("save decision")
    arguments = {
        "topic": "x",
        "decision": "x",
        "reasoning": "x",
        "links": [handle_of(record.memory.id)],
    }
    open_answer = answer(decide, store, AGENT, arguments)
    policy(store, "{memories: {operations: [write]}}")

    assert record.memory.id in open_answer["message"]
    assert WORD not in str(answer(decide, store, AGENT, arguments))


def test_a_tool_that_changes_a_memory_needs_to_read_it(store: Call) -> None:
    keep = all_commands().at("keep")
    policy(store, "{memories: {operations: [write]}}")
    with pytest.raises(Denied) as denied:
        invoke(keep, store.by(AGENT), {"id": "bbbbbb"})
    assert "it also shows memories, and may only write (.mind/policy.yaml:1)" in denied.value.hint

    policy(store, "{memories: {operations: [write]}, mind_keep: {operations: [write]}}")
    invoke(keep, store.by(AGENT), {"id": "bbbbbb"})


def test_every_tool_for_values_is_apart_from_memories() -> None:
    assert not APART - {folded(name) for name in TOOLS}
    assert {folded(spec.name) for spec in SPECS if spec.is_of_values} <= APART
