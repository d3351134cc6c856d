"""A host's side: the modules below a folder, their tools for a prompt, and calls by name."""

import json
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import CancelledError
from importlib import import_module
from pathlib import Path
from typing import Any

from mimo.domain.manifest import ModuleCommand
from mimo.errors import MindError
from mimo.frozen import frozen
from mimo.module.memory import Token
from mimo.services.modules import FoundModule, find


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
        """Take what `mimo.services.modules.find` found."""
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
