"""All commands by their names, each loaded when it is first needed."""

import re
from collections.abc import Callable, Iterable, Mapping

from mimo.commands.spec import Spec, Surface

Section = Mapping[str, str]
"""Paths on the command line, each with the module that declares it."""


def load_module(name: str) -> tuple[Spec, ...]:
    """Returns the commands that `mimo/commands/<name>.py` declares."""
    from importlib import import_module

    from mimo.commands.spec import specs_in

    module = import_module(f"mimo.commands.{name}")
    return specs_in(vars(module), module.__name__)


class Registry:
    """The table of commands: which there are is known without loading one."""

    def __init__(
        self,
        sections: Mapping[str, Section],
        *,
        unlisted: Iterable[str] = (),
        groups: Mapping[str, str] | None = None,
        lone: Iterable[str] = (),
        load: Callable[[str], Iterable[Spec]] = load_module,
    ) -> None:
        """Keep `sections` of the command line, and modules with commands for MCP alone.

        `groups` are the summaries of words that only lead to commands; `lone` are the sub-commands
        that are meant only where no further word follows.
        """
        self.sections = sections
        self.table = {path: name for section in sections.values() for path, name in section.items()}
        self.groups = dict(groups or {})
        self.lone = frozenset(lone)
        self._unlisted = tuple(unlisted)
        self._load = load
        self._loaded: dict[str, tuple[Spec, ...]] = {}

    def module(self, name: str) -> tuple[Spec, ...]:
        """Returns the commands of a module."""
        if name not in self._loaded:
            self._loaded[name] = tuple(self._load(name))
        return self._loaded[name]

    def at(self, path: str) -> Spec:
        """Returns the command at a path of the table; raises `KeyError` where none is there."""
        for spec in self.module(self.table[path]):
            if spec.path == path and Surface.CLI in spec.surfaces:
                return spec
        raise KeyError(path)

    def below(self, path: str) -> tuple[str, ...]:
        """Returns the words that may follow `path`, in the table's order."""
        start = f"{path} " if path else ""
        words = (known[len(start) :].split()[0] for known in self.table if known.startswith(start))
        return tuple(dict.fromkeys(words))

    def all(self) -> tuple[Spec, ...]:
        """Returns every command, in the table's order."""
        names = dict.fromkeys([*self.table.values(), *self._unlisted])
        return tuple(spec for name in names for spec in self.module(name))

    def tools(self) -> dict[str, tuple[Spec, ...]]:
        """Returns the commands of each MCP tool by its canonical name, in a fixed order."""
        found: dict[str, list[Spec]] = {}
        for spec in self.all():
            if Surface.MCP in spec.surfaces:
                found.setdefault(spec.name, []).append(spec)
        return {name: tuple(specs) for name, specs in found.items()}


def folded(name: str) -> str:
    """Returns what all spellings of a tool's name have in common: `save_decision`."""
    return re.sub(r"[/.\-]", "_", name)
