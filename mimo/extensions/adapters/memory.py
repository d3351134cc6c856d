"""The opened memory of a project, for programs that call commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import Any

from mimo.api import Call, Caller, Mind, NoProject, Surface, declared, disk, invoke

Run = Callable[..., Any]
"""Calls a command by its function, with named arguments."""


class OpenMemory:
    """The memory of a project, for calls of commands from any thread, one after the other.

    It stays open between them, since searches load an encoder.
    """

    def __init__(self, project: str | PathLike[str] | None, name: str) -> None:
        """Takes the folder of a project (default: around the working directory), and the caller."""
        self._project = Path(project) if project is not None else None
        self._caller = Caller(surface=Surface.MCP, name=name)
        self._lock = RLock()
        self._mind: Mind | None = None

    @contextmanager
    def opened(self) -> Iterator[Run]:
        """Gives a function that calls commands on the opened memory. Raises `MindError`s."""
        with self._lock:
            if self._mind is None or self._mind.is_outdated:
                self.close()
                self._mind = Mind.open(disk.working_directory(), project=self._project)
            call = Call(self._mind, self._caller)
            try:
                yield lambda function, **arguments: invoke(declared(function), call, arguments)
            except NoProject:
                self.close()  # The user may make one.
                raise

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """Returns the result of one command."""
        with self.opened() as run:
            return run(function, **arguments)

    def close(self) -> None:
        """Closes the memory; the next call opens it again."""
        with self._lock:
            if self._mind is not None:
                self._mind.close()
                self._mind = None
