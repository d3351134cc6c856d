"""Texts that name commands -> the same for agents, which name tools and arguments.

Messages are written once, for the command line: "`mind undo --list` lists the changes". An agent
reads "`mind_undo(list: true)` lists the changes". A command that only the user has keeps its words,
as the user's command, and so does an option that no tool has as an argument.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from mimo.call import Surface
from mimo.commands import GROUPS, CommandTable, all_commands
from mimo.commands.spec import Param, Spec
from mimo.text.tool_names import spelled

_SPANS = re.compile(
    r"`mind (?P<line>[^`\n]+)`"
    r"|`--(?P<named>[a-z][a-z-]*)(?P<given> [^`\n]+)?`"
    r"|`[^`\n]*`"
    r"|(?<![\w`-])--(?P<bare>[a-z][a-z-]*)(?P<value> (?:[A-Z]+|[\d.]+)\b)?"
)
"""Texts that may name a command or an option. Others in backticks stay as they are."""


def for_agents(text: str, specs: Sequence[Spec] = ()) -> str:
    """Returns a text of ours with tools in place of commands, and arguments in place of options.

    Options are those of `specs`, the tool that was called, if it has them.
    """
    if "mind " not in text and "--" not in text:
        return text
    return _SPANS.sub(partial(_spelled, specs), text)


def described_for_agents(schema: Any, specs: Sequence[Spec]) -> Any:
    """Returns a JSON Schema with the descriptions for agents."""
    if isinstance(schema, list):
        return [described_for_agents(item, specs) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: for_agents(value, specs)
        if key == "description" and isinstance(value, str)
        else described_for_agents(value, specs)
        for key, value in schema.items()
    }


def _spelled(specs: Sequence[Spec], match: re.Match[str]) -> str:
    if line := match["line"]:
        return _called(line)
    option = match["named"] or match["bare"]
    name = _argument(f"--{option}", specs) if option else None
    if name is None:
        return match[0]
    value = match["given"] or match["value"]
    given = f"{name}:{value}" if value else name
    return f"`{given}`" if match["named"] else given


def _argument(option: str, specs: Sequence[Spec]) -> str | None:
    """Returns the argument that an option is for agents; None if no tool has it."""
    own = [name for spec in specs for name in _arguments_of(spec, option)]
    names = own or [
        name
        for spec in all_commands().all()
        if Surface.MCP in spec.surfaces
        for name in _arguments_of(spec, option)
    ]
    word = option.removeprefix("--").replace("-", "_")
    return word if word in names else next(iter(names), None)


def _arguments_of(spec: Spec, option: str) -> Iterator[str]:
    for param in spec.params:
        if Surface.MCP in param.arg.surfaces and option in param.options:
            yield param.name


def _called(line: str) -> str:
    """Returns the tool that a command line would be: `mind_undo(list: true)`."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    commands = all_commands()
    for length in range(len(words), 0, -1):
        path = " ".join(words[:length])
        if path in commands.table:
            spec = commands.at(path)
            given = _given(spec, words[length:])
            return f"the user's command `{line}`" if given is None else _tool(spec, given)
    tools = _tools_below(commands, line)
    return " or ".join(tools) if tools else f"the user's command `{line}`"


def _tools_below(commands: CommandTable, group: str) -> list[str]:
    """Returns the tools of a word that only leads to other commands: `mind save`."""
    if group not in GROUPS:
        return []
    specs = [commands.at(f"{group} {word}") for word in commands.below(group)]
    names = (spelled(spec.name, "underscore") for spec in specs if Surface.MCP in spec.surfaces)
    return [f"`{name}`" for name in dict.fromkeys(names)]


def _tool(spec: Spec, given: Sequence[tuple[str, str]]) -> str:
    operation = [("operation", spec.operation)] if spec.operation else []
    arguments = ", ".join(f"{name}: {value}" for name, value in (*operation, *given))
    name = spelled(spec.name, "underscore")
    return f"`{name}({arguments})`" if arguments else f"`{name}`"


def _given(spec: Spec, words: Sequence[str]) -> list[tuple[str, str]] | None:
    """Returns the arguments that words give; None if agents do not have the command or one."""
    params = [param for param in spec.params if Surface.MCP in param.arg.surfaces]
    places = iter([param for param in spec.params if param.positional])
    if Surface.MCP not in spec.surfaces:
        return None
    given: dict[str, str] = {}
    rest = iter(words)
    last: Param | None = None
    options = True
    for word in rest:
        if options and word == "--":
            options = False
            continue
        is_option = options and word.startswith("-")
        param = _option(params, word) if is_option else next(places, last)
        if param is None or param not in params:
            return None
        if param.positional:
            last = param
            given[param.name] = " ".join(filter(None, (given.get(param.name), word)))
        elif param.shape.kind == "boolean":
            given[param.name] = "true"
        else:
            given[param.name] = next(rest, "…")
    return list(given.items())


def _option(params: Sequence[Param], word: str) -> Param | None:
    def names(param: Param) -> Iterator[str]:
        yield from param.options
        if param.arg.short:
            yield f"-{param.arg.short}"

    return next((param for param in params if word in names(param)), None)
