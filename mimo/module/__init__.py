"""The memory for programs: the module that a host calls, and a host for modules.

`MemoryModule().invoke("recall_memory", {"query": …})` calls the module;
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

from mimo.call import Call, Caller, Console, Surface
from mimo.call.spec import spec_of, to_json
from mimo.errors import Internal, Invalid, MindError, NotFound
from mimo.features import modules
from mimo.features.modules import FoundModule, Manifest, ModuleCommand, find
from mimo.features.search.recall import recall_memory, unable
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.operations.invoke import invoke as run

log = logging.getLogger("mind")


class Token(Protocol):
    """A token that cancels a call, such as `threading.Event`."""

    def is_set(self) -> bool:
        """Returns whether the call is cancelled."""


class MemoryModule:
    """The memory of the project around a manifest, or around the working directory.

    It holds nothing open between calls and may be called from any thread.
    """

    def __init__(
        self, manifest: str | PathLike[str] | None = None, *, project: Path | None = None
    ) -> None:
        """Reads the manifest (default: the packaged one). Raises `Invalid`, `StorageFailed`."""
        path = Path(manifest).absolute() if manifest is not None else None
        self.manifest: Manifest = modules.read_manifest(path) if path else modules.packaged()
        self._start = path.parent if path else None
        self._project = project

    def invoke(
        self, name: str, arguments: Mapping[str, Any], *, cancel: Token | None = None
    ) -> dict[str, Any]:
        """Returns `summary`, `confidence` and `source_refs`; the summary reports a failure.

        Raises `NotFound` for any other command, `Invalid` for wrong arguments, and `CancelledError`
        once `cancel` is set, which is checked before and after, and at each file that is read.
        """
        spec = spec_of(recall_memory)
        if spec is None or name != spec.name or self.manifest.command(name) is None:
            raise NotFound(f"Unsupported command: {name}", hint="the command is recall_memory")
        token = cancel or threading.Event()
        _stop_if_set(token)
        try:
            with closing(Mind.open(self._start or Path.cwd(), project=self._project)) as mind:
                console = Console(progress=lambda *_: _stop_if_set(token))
                call = Call(mind, Caller(surface=Surface.MCP, name="module"), console)
                answer = run(spec, call, arguments)
        except Invalid:
            raise
        except MindError as error:
            _stop_if_set(token)
            if isinstance(error, Internal):
                log.exception("a call failed", exc_info=error.__cause__)
            answer = unable(error)
        _stop_if_set(token)
        data: dict[str, Any] = to_json(answer)
        return data

    async def invoke_async(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the result of `invoke` in a thread, which is cancelled with the task."""
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
    """Returns the result of a command; the entry point that the manifest names."""
    return MemoryModule(manifest).invoke(name, arguments, cancel=cancel)


def _stop_if_set(token: Token) -> None:
    if token.is_set():
        raise CancelledError("the call was cancelled")


# The host: the modules below a folder, their tools for a prompt, and calls by name.
@frozen
class ToolResult:
    """The result of a call: its output, or an error, with which the host can continue."""

    name: str
    output: Mapping[str, Any] | None = None
    error: str | None = None

    @property
    def text(self) -> str:
        """Returns the text for the conversation: the summary, or nothing."""
        summary = self.output.get("summary") if self.output else None
        return summary if isinstance(summary, str) else ""


class Host:
    """The modules of a scan; their code is imported when it is called."""

    def __init__(self, modules: tuple[FoundModule, ...]) -> None:
        """Takes the result of `mimo.features.modules.find`."""
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
        """Returns the tools for a system prompt; empty if there are none."""
        return "\n\n".join(
            f"{tool['name']}: {tool['description']}\n"
            f"parameters (JSON Schema): {json.dumps(tool['parameters'], ensure_ascii=False)}"
            for tool in self.tools
        )

    def dispatch(self, name: Any, arguments: Any, *, cancel: Token | None = None) -> ToolResult:
        """Returns the result of the module with the command; failures are returned, not raised.

        The name and the arguments may be any JSON, as a model sends it.

        The entry point is called as `invoke(name, arguments, cancel=…, manifest=PATH)`.
        """
        key = name if isinstance(name, str) else ""
        module, command = self._commands.get(key, (None, None))
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
        required = command.response.get("required")
        names = required if isinstance(required, list) else []
        if not isinstance(output, Mapping) or not all(name in output for name in names):
            reason = f"the result of `{name}` does not match its manifest"
            return ToolResult(name=name, error=reason)
        return ToolResult(name=name, output=output)


def discover(root: Path, *, allow: Collection[str] = ()) -> Host:
    """Returns the modules in `.mcp/modules/` below `root`.

    Ours runs if mind wrote its manifest. Any other module runs, and is listed in the prompt, only
    if `allow` names its entry point, such as `acme.memory:invoke`.
    """
    return Host(find(root, allow=allow))


def entry_point(name: str) -> Callable[..., Any]:
    """Imports and returns the function that `package.module:function` names."""
    module, _, function = name.partition(":")
    call: Callable[..., Any] = getattr(import_module(module), function)
    return call
