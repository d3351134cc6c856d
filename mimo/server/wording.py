"""Hints for agents, which call tools with arguments where a terminal has commands with options.

"`mind undo --list` lists the changes" is "`mind_undo(list: true)` lists the changes". A command
that only the user has, or that has an option which no tool takes, is named as the user's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mimo.call import Surface
from mimo.call.spec import Param, Spec
from mimo.call.table import GROUPS, all_commands
from mimo.errors import Command, Hint, MindError, NoProject
from mimo.text.clean import one_line
from mimo.text.tool_names import spelled


def for_agents(text: str, specs: Sequence[Spec] = ()) -> str:
    """Returns a hint with tools in place of commands, and arguments in place of options.

    Options are those of `specs`, the tool that was called, if it has them. A plain text is
    returned as it is.
    """
    match text:
        case Hint():
            return "".join(for_agents(part, specs) for part in text.parts)
        case Command():
            return _called(text) if text.path else f"`{_argument(text, specs)}`"
        case _:
            return text


def reworded(error: MindError, specs: Sequence[Spec] = ()) -> MindError:
    """Changes the message and the hint of an error into those for agents, and returns it.

    Each is one line without control characters, also if it repeats a name. A missing project keeps
    its hint: only the user can make one, or start the server in another.
    """
    if not isinstance(error, NoProject):
        error.message = for_agents(error.message, specs)
        error.hint = for_agents(error.hint, specs)
    error.message, error.hint = one_line(error.message), one_line(error.hint)
    return error


def _argument(option: Command, specs: Sequence[Spec]) -> str:
    """Returns the argument that an option is for agents, or the option if no tool has it."""
    ((named, value),) = option.options.items()
    listed = [spec for spec in all_commands().all() if Surface.MCP in spec.surfaces]
    names = list(_names(named, specs)) or list(_names(named, listed))
    word = named.replace("-", "_")
    name = word if word in names else next(iter(names), None)
    if name is None:
        return option
    return name if value is None else f"{name}: {value}"


def _names(option: str, specs: Sequence[Spec]) -> Iterator[str]:
    for spec in specs:
        for param in spec.params:
            if Surface.MCP in param.arg.surfaces and f"--{option}" in param.options:
                yield param.name


def _called(command: Command) -> str:
    """Returns the tool that a command is, as in `mind_undo(list: true)`, or the user's command."""
    commands = all_commands()
    if command.path in commands:
        # `mind sessions` is the user's, and `mind_sessions` a tool of its own.
        own = (spec for spec in commands.all() if spec.name == f"mind_{command.path}")
        for spec in (commands.at(command.path), *own):
            if (values := _read_arguments(spec, command)) is not None:
                return _tool(spec, values)
    elif command.path in GROUPS:  # A word that only leads to other commands: `mind save`.
        specs = [commands.at(f"{command.path} {word}") for word in commands.below(command.path)]
        names = (_named(spec) for spec in specs if Surface.MCP in spec.surfaces)
        if tools := " or ".join(f"`{name}`" for name in dict.fromkeys(names)):
            return tools
    return f"the user's command `{command.removeprefix('mind ')}`"


def _tool(spec: Spec, values: dict[str, str]) -> str:
    operation = {"operation": spec.operation} if spec.operation else {}
    arguments = ", ".join(f"{name}: {value}" for name, value in (operation | values).items())
    return f"`{_named(spec)}({arguments})`" if arguments else f"`{_named(spec)}`"


def _named(spec: Spec) -> str:
    return spelled(spec.name, "underscore")


def _read_arguments(spec: Spec, command: Command) -> dict[str, str] | None:
    """Returns the arguments of a command; None if agents do not have the command or one."""
    if Surface.MCP not in spec.surfaces:
        return None
    places = [param for param in spec.params if param.positional]
    pairs: list[tuple[Param | None, str]] = [
        (places[min(index, len(places) - 1)] if places else None, word)
        for index, word in enumerate(command.words)
    ]
    for name, value in command.options.items():
        param = next((param for param in spec.params if f"--{name}" in param.options), None)
        pairs.append((param, "true" if value is None else value))
    values: dict[str, str] = {}
    for param, value in pairs:
        if param is None or Surface.MCP not in param.arg.surfaces:
            return None
        values[param.name] = f"{values[param.name]} {value}" if param.name in values else value
    return values
