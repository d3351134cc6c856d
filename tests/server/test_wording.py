"""Over MCP, texts name tools and arguments, and no commands of a terminal."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

import mimo
from mimo.call import Call, Surface
from mimo.call.table import all_commands
from mimo.errors import Command, Hint, NoProject, NotFound, Option
from mimo.features.ingest.commands import ingest
from mimo.features.notes.commands import add
from mimo.features.notes.reading import list_ as mind_list
from mimo.features.notes.reading import show
from mimo.server.prompts import PROMPTS
from mimo.server.wording import for_agents, reworded
from tests import kit

COMMAND = re.compile(r"`?\bmind [a-z-]+|(?<![\w-])--[a-z]")


@pytest.mark.parametrize(
    ("part", "agents"),
    [
        (Command("list"), "`mind_list`"),
        (Command("undo", list=True), "`mind_undo(list: true)`"),
        (Command("undo", "k3", force=True), "`mind_undo(id: k3, force: true)`"),
        (Command("memory list", sort="recent"), "`memory(operation: list, sort: recent)`"),
        (
            Command("ingest", "my notes.md", update=True),
            "`ingest(path: my notes.md, update: true)`",
        ),
        (Command("review", limit="5"), "`mind_review(limit: 5)`"),
        (Command("search", "why", "not", "tea"), "`mind_search(query: why not tea)`"),
        (Command("value list", "agent.x"), "`listMemory(namespace: agent.x)`"),
        (Command("edit", "k3", add_tag="x"), "`mind_edit(id: k3, add_tags: x)`"),
        (
            Command("procedure send", "x_1", "--help"),
            "`send_event(execution_id: x_1, event: --help)`",
        ),
        (Command("sessions"), "`mind_sessions`"),
        (Command("sessions", client="codex"), "`mind_sessions(client: codex)`"),
        (Command("sessions index"), "the user's command `sessions index`"),
        (Command("evolve"), "`evolve_outcome` or `evolve_supersede`"),
        (Command("trust", follow=True), "the user's command `trust --follow`"),
        (Command("config", "time.zone", "UTC"), "the user's command `config time.zone UTC`"),
        (Command("sync", push=True), "the user's command `sync --push`"),
        (Option(private=True), "`private`"),
        (Option(add_tag=True), "`add_tags`"),
        (Option(importance="0.9"), "`importance: 0.9`"),
        (Option(allow_secret=True), "`--allow-secret`"),
        ("see `mind undo` or `--force`", "see `mind undo` or `--force`"),
    ],
)
def test_a_hint_names_tools_and_arguments(part: str, agents: str) -> None:
    assert for_agents(Hint("a ", part, " b")) == f"a {agents} b"


@pytest.mark.parametrize(
    ("tool", "option", "agents"),
    [
        ("mind_add", Option(type=True), "type"),
        ("mind_list", Option(type=True), "types"),
        ("mind_edit", Option(tag=True), "tags"),
    ],
)
def test_an_option_is_the_argument_of_the_tool_that_was_called(
    tool: str, option: str, agents: str
) -> None:
    hint = Hint("give ", option)

    assert for_agents(hint, all_commands().tools()[tool]) == f"give `{agents}`"


def test_a_missing_project_still_names_the_ways_to_one() -> None:
    hint = Hint("run ", Command("init"), ", or --project DIR")

    assert reworded(NoProject("no project", hint=hint)).hint == "run `mind init`, or --project DIR"
    assert reworded(NotFound("none", hint=Hint("see ", Command("log")))).hint == "see `mind_log`"


def test_a_missing_memory_leads_to_a_tool_that_each_client_lists(call: Call) -> None:
    with pytest.raises(NotFound) as missing:
        show(call, "nope")

    assert reworded(missing.value).hint == "`mind_search` and `mind_list` show ids"


def test_bad_calls_are_answered_without_commands(call: Call) -> None:
    add(call, "Tea is green, says `mind list --all`", type="decision", topic="tea")
    tools = all_commands().tools()

    async def talk(client: Client) -> list[Any]:
        results = []
        for name, specs in tools.items():
            for spec in specs:
                operation = {"operation": spec.operation} if spec.operation else {}
                names = [param.name for param in spec.params if param.required]
                missing = dict.fromkeys(names, "nothing-at-all")
                for arguments in ({}, {"zzz": 1}, missing, missing | {"limit": 0}):
                    given = operation | arguments
                    results.append((name, given, await client.call_tool(name, given)))
        return results

    results = kit.client(call, talk)

    assert sum(result.is_error for _, _, result in results) > len(tools)
    for name, given, result in results:
        texts = [block.text for block in result.content] if result.is_error else []
        texts.append(str((result.structured_content or {}).get("notice")))
        for text in texts:
            rest = re.sub(r"the user's command `[^`]*`", "", text)
            assert not COMMAND.search(rest), (name, given, text)


COMMANDS = {path.split()[0] for path in all_commands().modules}
ARGUMENTS = {
    option
    for specs in all_commands().tools().values()
    for spec in specs
    for param in spec.params
    if Surface.MCP in param.arg.surfaces
    for option in param.options
}
OF_PEOPLE = (
    "__main__.py",
    "cli",
    "call/table.py",
    "mind.py",
    "privacy/rules.py",
    "rendering",
    "extensions/sessions/readers/__init__.py",
    "extensions/sessions/render.py",
    "features/context/__init__.py",
    "features/history/merge_driver.py",
    *(f"features/{name}" for name in ("clients", "daemon", "hooks", "importing", "modules")),
    *(f"extensions/{name}" for name in ("browse", "exchange", "team", "web")),
)
"""Parts of the package whose texts no tool answers with, or only for the user: `NoProject`."""


def unsuitable(text: str) -> list[str]:
    """Returns the commands and the options of tools that a text for agents names."""
    rest = re.sub(r"the user's command `[^`]*`|`(?:git|pip) [^`]*`", "", text)
    words = re.findall(r"\bmind ([a-z-]+)", rest)
    options = re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", rest)
    return [word for word in words if word in COMMANDS] + [o for o in options if o in ARGUMENTS]


def messages(tree: ast.AST) -> Iterator[str]:
    """Yields the texts of a module in sentences: no docstrings, and nothing for a terminal."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and "screen" in (a.arg for a in node.args.args):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.keyword) and node.arg in ("command", "examples", "typed"):
            continue
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Arg", "Out", "Setting"):
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "xyz" for p in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        else:
            yield from messages(node)


def test_no_plain_message_names_a_command() -> None:
    root = Path(mimo.__file__).parent
    unsuited = []
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).as_posix().startswith(OF_PEOPLE):
            continue
        for text in messages(ast.parse(path.read_text("utf-8"))):
            if " " not in text or text.startswith(("mind ", "--", "Usage: ")):
                continue  # A command line or words of one, which the next test finds in answers.
            if unsuitable(text):
                unsuited.append((path.name, text))

    assert unsuited == []


def texts_in(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from texts_in(item)
        case list():
            for item in value:
                yield from texts_in(item)


def test_no_answer_and_no_description_names_a_command(
    call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    add(call, "Tea is green", type="decision", topic="tea")
    for name in ("changed.md", "missing.md"):
        (project / name).write_text("# Coffee\n\nBeans are roasted.\n", "utf-8")
        ingest(call, name)
    call.mind.trust.follow(False)
    (project / "changed.md").write_text("# Coffee\n\nBeans are ground.\n", "utf-8")
    (project / "missing.md").unlink()
    kit.put(project / ".mind/facts/fact_new_20261101_k3v7mq.md", "Not approved\n")
    (project / ".mind" / "facts" / "broken.md").write_text("---\nid: [\n---\n", "utf-8")
    (project / ".mind" / "private").mkdir(exist_ok=True)
    chunk = next(row.id for row in mind_list(call, chunks=True).memories if row.id.endswith(".1"))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("mind_show", {"id": chunk}),
        ("mind_search", {"query": "coffee beans"}),
        ("recall_memory", {"query": "coffee beans"}),
        ("memory", {"operation": "search", "query": "coffee"}),
        ("search_by_topic", {"topic": "coffee"}),
        ("ingest", {"path": "missing.md", "update": True}),
        ("ingest", {"path": "changed.md", "dry_run": True}),
        ("mind_add", {"content": "Tea is green", "type": "fact"}),
        ("mind_add", {"content": "Tea is green", "type": "decision", "tags": ["x"]}),
        ("mind_edit", {"id": "k3v7mq", "tags": ["a"], "add_tags": ["b"]}),
        ("run_procedure", {"name": "nothing"}),
        ("mind_undo", {"id": "nothing"}),
        ("mind_undo", {"list": True, "purge": True}),
    ]
    for name, specs in all_commands().tools().items():
        for spec in specs:
            operation = {"operation": spec.operation} if spec.operation else {}
            if not any(param.required for param in spec.params):
                calls.append((name, operation))

    async def talk(client: Client) -> list[tuple[str, Any]]:
        tools = (await client.list_tools()).tools
        answers = [(tool.name, tool.model_dump(mode="json")) for tool in tools]
        for name, given in calls:
            result = await client.call_tool(name, given)
            answers.append((name, result.model_dump(mode="json")))
        for uri in (f"mind://memory/{chunk}", "mind://context"):
            read = await client.read_resource(uri)
            answers.append((uri, read.model_dump(mode="json")))
        for prompt in PROMPTS:
            shown = await client.get_prompt(prompt.name, {})
            answers.append((prompt.name, shown.model_dump(mode="json")))
        return answers

    answers = kit.client(call, talk)

    start = "mind daemon start"  # which `mind_status` names for the user
    unsuited = [
        (name, text)
        for name, answer in answers
        for text in texts_in(answer)
        if unsuitable(text.replace(start, ""))
    ]
    assert unsuited == []
    everything = str(answers)
    assert "ingest(path: changed.md, update: true)" in everything
    assert "the user's command `trust" in everything


def test_the_text_of_a_memory_is_never_changed(call: Call) -> None:
    text = "Run `mind list --all` before --force"
    made = add(call, text)

    async def talk(client: Client) -> Any:
        return await client.call_tool("mind_show", {"id": made.id})

    assert (
        kit.client(call, talk, ["all"]).structured_content["content"]
        == show(call, made.id).content
        == text
    )


def test_a_name_of_the_caller_in_an_error_is_never_changed(call: Call) -> None:

    async def talk(client: Client) -> Any:
        return await client.call_tool("mind_show", {"id": "mind undo --list"})

    result = kit.client(call, talk, ["all"])

    assert result.is_error
    assert "`mind undo --list`" in result.content[0].text
    assert "`mind_list`" in result.content[0].text
