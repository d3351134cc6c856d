"""The memory for other frameworks, each in a module of its own.

`anthropic` has the memory tool for their tool runner, `langgraph` a store, and `openai_agents` a
session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from mimo.commands.invoke import Caller, invoke
from mimo.commands.spec import Surface, declared
from mimo.disk import working_directory
from mimo.mind import Mind

Call = Callable[..., Any]
"""Calls a command by its function, with named arguments."""


class Memory:
    """The memory of a project, for calls of commands; it holds nothing open between them."""

    def __init__(self, project: str | PathLike[str] | None, name: str) -> None:
        """Take the folder of a project (default: around the working directory), and the caller."""
        self._project = Path(project) if project is not None else None
        self._caller = Caller(surface=Surface.MCP, name=name)

    @contextmanager
    def opened(self) -> Iterator[Call]:
        """Gives a function that calls commands on the opened memory. Raises `MindError`s."""
        mind = Mind.open(working_directory(), project=self._project)
        try:
            yield lambda function, **given: invoke(declared(function), mind, self._caller, given)
        finally:
            mind.close()

    def call(self, function: Callable[..., Any], **given: Any) -> Any:
        """Returns the result of one command."""
        with self.opened() as call:
            return call(function, **given)
