"""The memory tool of Anthropic, `memory_20250818`, on the memories of a project.

`MemoryTool().handle({"command": "view", "path": "/memories"})` returns the text of the tool's
result, and whether it is an error. It needs no package of Anthropic; `mimo.adapters.anthropic` has
the class for the tool runner of theirs. For hosts in other languages, `python -m mimo.memory_tool`
reads one input a line, and writes one answer a line.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from mimo.api import (
    Call,
    Caller,
    Command,
    Internal,
    Mind,
    MindError,
    Surface,
    declared,
    disk,
    invoke,
    loads_or_none,
    nearest,
    rendering,
)
from mimo.extensions.adapters.file_commands import COMMANDS, FileAnswer
from mimo.extensions.adapters.memory_files import shortened

log = logging.getLogger("mind")

TOOL = {"type": "memory_20250818", "name": "memory"}
"""The entry in `tools` of a request to the Messages API."""


class Answer(NamedTuple):
    """The content of a tool result, and its `is_error`."""

    text: str
    is_error: bool


class MemoryTool:
    """The files below `/memories`: the memories of a project, those that are private included.

    It holds nothing open between calls and may be called from any thread.
    """

    def __init__(
        self, project: str | PathLike[str] | None = None, *, name: str = "memory-tool"
    ) -> None:
        """Takes the folder of a project (default: the one around the working directory).

        `name` is the agent that signs new memories.
        """
        self.name = name
        self._project = Path(project) if project is not None else None

    def handle(self, command: Mapping[str, Any]) -> Answer:
        """Returns the answer to the `input` of a tool use; it raises no errors of mind."""
        arguments = dict(command)
        word = arguments.pop("command", None)
        function = COMMANDS.get(word) if isinstance(word, str) else None
        if function is None:
            return _unknown(word)
        spec = declared(function)
        caller = Caller(surface=Surface.MCP, name=self.name)
        try:
            with closing(Mind.open(disk.working_directory(), project=self._project)) as mind:
                answer = invoke(spec, Call(mind, caller), arguments)
        except MindError as error:
            if isinstance(error, Internal):
                log.exception("a call failed", exc_info=error.__cause__)
            return Answer(_message(error), is_error=True)
        if not isinstance(answer, FileAnswer):
            raise TypeError(answer)
        return Answer(answer.text, is_error=False)


def handle(
    command: Mapping[str, Any], *, project: str | PathLike[str] | None = None
) -> tuple[str, bool]:
    """Returns the text of the answer and whether it is an error, as `MemoryTool.handle`."""
    return MemoryTool(project).handle(command)


def answers(lines: Iterable[str | bytes], project: str | None = None) -> Iterator[str]:
    """Yields the answer to each line, as JSON: the input of a tool use -> its content."""
    tool = MemoryTool(project)
    for line in lines:
        command = loads_or_none(line)
        if isinstance(command, dict):
            answer = tool.handle(command)
        else:
            answer = Answer("Error: the line is not a JSON object", is_error=True)
        yield json.dumps({"content": answer.text, "is_error": answer.is_error})


def _unknown(word: object) -> Answer:
    names = ", ".join(COMMANDS)
    if word is None:
        return Answer(f"Error: `command` is missing; commands are {names}", is_error=True)
    near = nearest(str(word), list(COMMANDS))
    hint = f"did you mean `{near[0]}`?" if near else f"commands are {names}"
    return Answer(f"Error: `{str(word)[:80]}` is not a command; {hint}", is_error=True)


_DOCUMENTED = ("Error: ", "The path ", "No replacement was performed", "File ", "Cannot ")
"""Beginnings of the errors whose texts are documented."""


def _message(error: MindError) -> str:
    """Returns the text of an error, with the next step if it is one for an agent."""
    message = error.message if error.message.startswith(_DOCUMENTED) else f"Error: {error.message}"
    parts = getattr(error.hint, "parts", (error.hint,))
    is_plain = not any(isinstance(part, Command) for part in parts)
    return shortened(f"{message}\n{error.hint}" if error.hint and is_plain else message)


def main() -> None:
    """Answers the lines of standard input, as `python -m mimo.memory_tool PROJECT`."""
    try:
        rendering.prepare()
        lines = sys.stdin.buffer if sys.stdin else ()
        for line in answers(lines, *sys.argv[1:2]):
            rendering.write(f"{line}\n")
    except MindError as error:
        sys.exit(rendering.report(error, as_wire=False))
    except BrokenPipeError:
        rendering.give_up_stdout()
