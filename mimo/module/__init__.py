"""The memory for programs: our module for a host to call, and a host's side of all modules.

`MemoryModule().invoke("recall_memory", {"query": …})` asks it;
`discover(root).dispatch("recall_memory", {"query": …})` finds it in `.mcp/modules/` first.
"""

import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import CancelledError
from contextlib import closing
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from mimo.commands.invoke import Caller
from mimo.commands.invoke import invoke as run
from mimo.commands.schema import to_json
from mimo.commands.spec import Surface, spec_of
from mimo.errors import Internal, Invalid, MindError, NotFound
from mimo.features import modules
from mimo.features.modules import FoundModule, Manifest, ModuleCommand, find
from mimo.features.search.recall import recall_memory, unable
from mimo.frozen import frozen
from mimo.mind import Mind

# Our module: one command, `recall_memory`, for a host that calls it from Python.


log = logging.getLogger("mind")


class Token(Protocol):
    """What says that a call is to stop, such as `threading.Event`."""

    def is_set(self) -> bool:
        """Returns whether it is."""


class MemoryModule:
    """The memory of the project around a manifest, or around the working directory.

    It holds nothing open between calls and may be called from any thread.
    """

    def __init__(
        self, manifest: str | PathLike[str] | None = None, *, project: Path | None = None
    ) -> None:
        """Read the manifest, the packaged one unless named. Raises `Invalid`, `StorageFailed`."""
        path = Path(manifest).absolute() if manifest is not None else None
        self.manifest: Manifest = modules.read_manifest(path) if path else modules.packaged()
        self._start = path.parent if path else None
        self._project = project

    def invoke(
        self, name: str, arguments: Mapping[str, Any], *, cancel: Token | None = None
    ) -> dict[str, Any]:
        """Returns `summary`, `confidence` and `source_refs`; what goes wrong is told there.

        Raises `NotFound` for any other command, `Invalid` for wrong arguments, and `CancelledError`
        once `cancel` is set: looked at before and after, and at each file that is read anew.
        """
        spec = spec_of(recall_memory)
        if spec is None or name != spec.name or self.manifest.command(name) is None:
            raise NotFound(f"Unsupported command: {name}", hint="the command is recall_memory")
        token = cancel or threading.Event()
        _stop_if_set(token)
        try:
            with closing(Mind.open(self._start or Path.cwd(), project=self._project)) as mind:
                mind.progress = lambda *_: _stop_if_set(token)
                answer = run(spec, mind, Caller(surface=Surface.MCP, name="module"), arguments)
        except Invalid:
            raise
        except MindError as error:
            _stop_if_set(token)
            if isinstance(error, Internal):
                log.exception("a call failed", exc_info=error.__cause__)
            answer = unable(error)
        _stop_if_set(token)
        found: dict[str, Any] = to_json(answer)
        return found

    async def invoke_async(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what `invoke` does, beside the event loop; it is cancelled with its task."""
        import asyncio

        stop = threading.Event()
        try:
            return await asyncio.to_thread(self.invoke, name, arguments, cancel=stop)
        finally:
            stop.set()


def invoke(
    name: str,
    arguments: Mapping[str, Any],
    *,
    cancel: Token | None = None,
    manifest: str | PathLike[str] | None = None,
) -> dict[str, Any]:
    """Returns what the module that a manifest describes answers: the manifest's entry point."""
    return MemoryModule(manifest).invoke(name, arguments, cancel=cancel)


def _stop_if_set(token: Token) -> None:
    if token.is_set():
        raise CancelledError("the call was cancelled")


# A host's side: the modules below a folder, their tools for a prompt, and calls by name.


@frozen
class ToolResult:
    """What came of a call; where it failed there is no output, and the host goes on without it."""

    name: str
    output: Mapping[str, Any] | None = None
    error: str | None = None

    @property
    def text(self) -> str:
        """Returns what to put into the conversation: the summary, or nothing."""
        told = self.output.get("summary") if self.output else None
        return told if isinstance(told, str) else ""


class Host:
    """The modules that a scan found; no code of theirs is imported before it is called."""

    def __init__(self, modules: tuple[FoundModule, ...]) -> None:
        """Take what `mimo.features.modules.find` found."""
        self.modules = modules
        self._commands: dict[str, tuple[FoundModule, ModuleCommand]] = {
            command.name: (module, command)
            for module in modules
            if module.manifest and module.reason is None
            for command in module.manifest.commands
        }

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Returns name, description and parameters of each command that runs."""
        return [
            {
                "name": command.name,
                "description": command.description,
                "parameters": command.parameters,
            }
            for _, command in self._commands.values()
        ]

    def prompt(self) -> str:
        """Returns the tools as a system prompt lists them; empty where there are none."""
        return "\n\n".join(
            f"{tool['name']}: {tool['description']}\n"
            f"parameters (JSON Schema): {json.dumps(tool['parameters'], ensure_ascii=False)}"
            for tool in self.tools
        )

    def dispatch(
        self, name: str, arguments: Mapping[str, Any], *, cancel: Token | None = None
    ) -> ToolResult:
        """Returns what the module that has the command answers; whatever fails is told, not raised.

        The entry point is called as `invoke(name, arguments, cancel=…, manifest=PATH)`.
        """
        module, command = self._commands.get(name, (None, None))
        if module is None or module.manifest is None or command is None:
            return ToolResult(name=name, error=f"Unsupported command: {name}")
        try:
            call = entry_point(module.manifest.entrypoint)
            output = call(name, arguments, cancel=cancel, manifest=module.path)
        except MindError as error:
            return ToolResult(name=name, error=error.message)
        except CancelledError:
            return ToolResult(name=name, error="the call was cancelled")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a module never ends its host
            return ToolResult(name=name, error=f"{type(error).__name__}: {error}")
        if not _fits(output, command):
            return ToolResult(
                name=name, error=f"`{name}` answered with something else than it says"
            )
        return ToolResult(name=name, output=output)


def discover(root: Path, *, allow: Collection[str] = ()) -> Host:
    """Returns the modules in `.mcp/modules/` below `root`.

    Ours runs where its manifest is the one that mind wrote. Another one runs, and is put into the
    prompt, only where `allow` names its entry point, such as `acme.memory:invoke`.
    """
    return Host(find(root, allow=allow))


def entry_point(name: str) -> Callable[..., Any]:
    """Returns the function that `package.module:function` names, imported as any other."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def _fits(output: object, command: ModuleCommand) -> bool:
    """Returns whether an answer is an object with all that the command's response requires."""
    required = command.response.get("required")
    names = required if isinstance(required, list) else []
    return isinstance(output, Mapping) and all(name in output for name in names)
