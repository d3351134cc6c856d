"""The table of all commands, for every surface.

The table names each command without loading it. A command is in exactly one section, which is also
its place in `mind help --all`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType

from mimo.call import Surface
from mimo.call.arguments import nearest
from mimo.call.extensions import Extension, attempted, broken, extensions, problem, unusable
from mimo.call.spec import Spec
from mimo.config import DEFAULT, SEVERAL, TOOLSETS
from mimo.errors import Internal, Invalid
from mimo.text.tool_names import folded, spelled

Section = Mapping[str, str]
"""Paths on the command line, each with the feature, or its module, that declares it."""

SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "upkeep",
        "install": "clients",
        "uninstall": "clients",
        "status": "upkeep.status",
        "doctor": "upkeep.checks",
        "demo": "upkeep.demo",
        "completion": "upkeep.completion",
    },
    "Remember": {
        "add": "notes",
        "save decision": "decisions",
        "save checkpoint": "decisions",
        "save insight": "decisions",
        "evolve outcome": "decisions",
        "evolve supersede": "decisions",
        "link": "graph.linking",
        "edit": "notes",
        "tags": "notes.tags",
        "tags rename": "notes.tags",
        "keep": "fading",
        "rm": "notes",
        "undo": "notes.undo",
        "redo": "notes.undo",
        "ingest": "ingest",
        "import": "importing",
        "import mama": "importing",
    },
    "Find": {
        "search": "search",
        "search by-topic": "search.browse",
        "search by-context": "search.browse",
        "search recent": "search.browse",
        "recall": "search.recall",
        "load checkpoint": "decisions.loading",
        "load context": "decisions.loading",
        "show": "notes.reading",
        "list": "notes.reading",
        "graph": "graph",
        "fading": "fading",
        "pitfalls": "pitfalls",
        "pitfalls check": "pitfalls",
        "pitfalls add": "pitfalls",
        "pitfalls list": "pitfalls",
        "pitfalls starter": "pitfalls",
    },
    "Share": {
        "sync": "history",
        "diff": "history",
        "log": "history",
        "blame": "history",
        "restore": "history",
    },
    "Trust and privacy": {
        "review": "review",
        "review settle": "review",
        "review keep": "review",
        "trust": "review",
        "untrust": "review",
        "scan": "scan",
    },
    "Automate": {
        "context get": "context",
        "context show": "context",
        "context write": "context",
        "procedure run": "procedures",
        "procedure status": "procedures",
        "procedure runs": "procedures",
        "procedure send": "procedures",
        "procedure cancel": "procedures",
        "procedure resume": "procedures",
        "procedure list": "procedures",
        "procedure show": "procedures",
        "procedure new": "procedures",
        "procedure check": "procedures",
        "procedure add": "procedures",
    },
    "Upkeep": {
        "config": "upkeep",
        "projects": "upkeep.registry",
        "projects forget": "upkeep.registry",
        "index": "upkeep.indexing",
    },
    "Admin": {
        "value put": "values",
        "value get": "values",
        "value list": "values",
        "value rm": "values",
        "policy show": "policy",
        "policy check": "policy",
        "policy explain": "policy",
        "audit show": "audit",
        "audit verify": "audit",
        "audit export": "audit",
        "module install": "modules",
        "module list": "modules",
        "metrics": "audit",
        "events": "audit",
        "daemon start": "daemon",
        "daemon stop": "daemon",
        "daemon restart": "daemon",
        "daemon status": "daemon",
        "daemon logs": "daemon",
        "daemon run": "daemon",
        "memory store": "notes.memory_tool",
        "memory search": "notes.memory_tool",
        "memory list": "notes.memory_tool",
        "memory delete": "notes.memory_tool",
        "memory stats": "fading",
        "memory decay-check": "fading",
    },
}
"""Sections of the command line: path -> feature, or the module of it that declares the command."""

RESERVED = frozenset({"help", "hook", "mcp", "merge-driver"})
"""Words that lead to what is not in the table."""

UNLISTED: tuple[str, ...] = ("notes.legacy",)
"""Modules with commands that only MCP offers."""

GROUPS: dict[str, str] = {
    "save": "Save a decision, a checkpoint or an insight",
    "evolve": "Mark how a decision turned out, or replace it",
    "load": "Show where work stopped, or a decision with its links",
    "context": "Show or write the notes for agents in CLAUDE.md",
    "audit": "Show and verify the record of tool calls",
    "daemon": "Keep index and notes up to date in the background",
    "procedure": "Run procedures that are written in Markdown",
    "memory": "Store, search, list, delete and measure memories",
    "value": "Keep JSON values under keys, with or without an expiry",
    "policy": "Show, check and explain what tools may do here",
    "module": "Write and list modules for hosts that read .mcp/modules/",
}
"""The summaries of words that only lead to other commands."""

FIRST: dict[str, tuple[str, ...]] = {
    "Start": ("init", "install", "status", "doctor", "config"),
    "Remember": ("add", "save", "evolve", "edit", "rm", "undo"),
    "Find": ("search", "list", "show", "load", "pitfalls"),
    "Share": ("sync", "diff", "review", "trust"),
}
"""The twenty commands of daily use, on the first page of the help."""

LAST = "Admin"
"""The section after all others, those of extensions included."""

HIDDEN: frozenset[str] = frozenset({"context get"})
"""Commands for agents, which help and completion leave out; the reference has them."""

ALIASES: dict[str, str] = {"cat": "show", "find": "search", "ls": "list", "edges": "pitfalls"}
"""Other words for a command and its sub-commands.

Only words with a single meaning, for commands that read: a guess must not write.
"""

LONE: frozenset[str] = frozenset({"search recent", "pitfalls list", "pitfalls starter"})
"""Sub-commands only if nothing or an option follows: `mind search recent`, not `recent work`."""


ALONE: dict[str, str] = {"procedure status": "procedure runs"}
"""Commands that need an argument, each with the command that runs without any."""


def load_module(name: str) -> tuple[Spec, ...]:
    """Returns the commands of a feature, or of one module of it if `name` has a dot."""
    return _specs(f"mimo.features.{name if '.' in name else f'{name}.commands'}")


def _specs(module: str) -> tuple[Spec, ...]:
    from importlib import import_module

    from mimo.call.spec import specs_in

    return specs_in(vars(import_module(module)), module)


def _specs_of_extension(module: str) -> tuple[Spec, ...]:
    """Returns the commands of an extension's module; none if one of them can't be used."""
    specs, error = attempted(lambda: _checked(_specs(module)))
    if error:
        broken()[module] = problem(error)
    return specs or ()


def _checked(specs: tuple[Spec, ...]) -> tuple[Spec, ...]:
    """Returns the commands of an extension. Raises an error if one of them is not valid."""
    from mimo.guard.policy import named_tools

    taken = named_tools()
    for spec in specs:
        if _is_own(spec):
            continue
        is_name = spec.name.isascii() and folded(spec.name).isidentifier() and len(spec.name) <= 64
        if not is_name or spec.toolset not in TOOLSETS:
            raise ValueError(f"`{spec.name}` or its toolset `{spec.toolset}` is not a valid name")
        if folded(spec.name).lower() in taken:
            raise ValueError(f"mind itself has a tool `{spec.name}`")
        _ = spec.params, spec.result  # It raises for types that no surface can offer.
    return specs


def _is_own(spec: Spec) -> bool:
    """Returns whether a command is of mind, or of an extension of mind."""
    return spec.function.__module__.startswith("mimo.")


def _is_offered(name: str, specs: Sequence[Spec]) -> bool:
    """Returns whether clients can understand a tool; notes the reason if they can't."""
    from mimo.call.schema import input_schema, output_schema

    if all(map(_is_own, specs)):
        return True
    _, error = attempted(lambda: (input_schema(specs), output_schema(specs)))
    if error:
        broken()[name] = problem(error)
    return not error


class _Tables:
    """The words that lead to commands, see the constants above."""

    def __init__(
        self,
        sections: Mapping[str, Section],
        groups: Mapping[str, str],
        synonyms: Mapping[str, Sequence[str]],
        unlisted: Iterable[str],
    ) -> None:
        """Keeps the tables, and the first words of their paths."""
        self.sections, self.groups, self.synonyms = sections, groups, synonyms
        self.modules = {path: name for part in sections.values() for path, name in part.items()}
        self.names = dict.fromkeys([*self.modules.values(), *unlisted])
        self.words = frozenset(path.partition(" ")[0] for path in self.modules)


class CommandTable:
    """The table of commands, each loaded when it is first needed.

    Extensions are looked for if a word is not of the core, and if all commands are asked for.
    """

    def __init__(
        self,
        sections: Mapping[str, Section],
        *,
        unlisted: Iterable[str] = (),
        groups: Mapping[str, str] | None = None,
        lone: Iterable[str] = (),
        alone: Mapping[str, str] | None = None,
        first: Mapping[str, Sequence[str]] | None = None,
        hidden: Iterable[str] = (),
        aliases: Mapping[str, str] | None = None,
        synonyms: Callable[[], Mapping[str, Sequence[str]]] = dict,
        load: Callable[[str], Iterable[Spec]] = load_module,
        summaries: Callable[[], Mapping[str, str]] = dict,
        extensions: Callable[[], Mapping[str, Extension]] = dict,
    ) -> None:
        """Keeps the tables; see the constants above for their meaning."""
        self._core = _Tables(sections, groups or {}, {}, unlisted)
        self.lone = frozenset(lone)
        self.alone = dict(alone or {})
        self.first = dict(first or {})
        self.hidden = frozenset(hidden)
        self.aliases = dict(aliases or {})
        self._load = load
        self._summaries, self._synonyms = summaries, synonyms
        self._extensions = extensions
        self._loaded: dict[str, tuple[Spec, ...]] = {}

    @cached_property
    def _all(self) -> _Tables:
        """The tables of the core and all extensions. No extension replaces a word of the core."""
        sections = {title: dict(section) for title, section in self._core.sections.items()}
        groups, synonyms = dict(self._core.groups), dict(self._synonyms())
        unlisted = list(self._core.names)
        for extension in self._extensions().values():
            for title, section in extension.commands.items():
                named = sections.setdefault(title, {})
                for path, module in section.items():
                    if path.partition(" ")[0] not in self._core.words | RESERVED:
                        named.setdefault(path, module)
            groups = {**extension.groups, **groups}
            unlisted += extension.tools
            for word, lines in extension.synonyms.items():
                synonyms[word] = (*synonyms.get(word, ()), *lines)
        if LAST in sections:
            sections[LAST] = sections.pop(LAST)
        return _Tables(sections, groups, synonyms, unlisted)

    def _of(self, path: str) -> _Tables:
        """Returns the tables that know a path: those of the core if its first word is of it."""
        word = path.partition(" ")[0]
        return self._core if word in self._core.words or word in RESERVED else self._all

    @property
    def sections(self) -> Mapping[str, Section]:
        """The commands by section, with those of extensions."""
        return self._all.sections

    @property
    def modules(self) -> Mapping[str, str]:
        """The paths of all commands, each with the module that declares it."""
        return self._all.modules

    @property
    def groups(self) -> Mapping[str, str]:
        """The summaries of words that only lead to other commands."""
        return self._all.groups

    def __contains__(self, path: str) -> bool:
        """Returns whether there is a command at a path."""
        return bool(path) and path in self._of(path).modules

    def group(self, path: str) -> str:
        """Returns the summary of a word that only leads to other commands, or an empty text."""
        return self._of(path).groups.get(path, "")

    def module(self, name: str) -> tuple[Spec, ...]:
        """Returns the commands of a module."""
        if name not in self._loaded:
            load = self._load if name in self._core.names else _specs_of_extension
            self._loaded[name] = tuple(load(name))
        return self._loaded[name]

    def at(self, path: str) -> Spec:
        """Returns the command at a path of the table; raises `KeyError` if the path has none.

        Raises `Internal` if the module of an extension does not declare it.
        """
        module = self._of(path).modules[path]
        for spec in self.module(module):
            if spec.path == path and Surface.CLI in spec.surfaces:
                return spec
        raise unusable(f"mind {path}", f"`{module}` does not declare it")

    def summary(self, path: str) -> str:
        """Returns the first line of a command's help, without loading the command if possible."""
        try:
            return self._summaries().get(path) or self.at(path).summary
        except Internal:
            return "(its extension can't be used)"

    def below(self, path: str) -> tuple[str, ...]:
        """Returns the words that may follow `path`, in the table's order."""
        start = f"{path} " if path else ""
        rests = (p[len(start) :] for p in self._of(path).modules if p.startswith(start))
        return tuple(dict.fromkeys(tail.split()[0] for tail in rests))

    def listed(self, path: str) -> tuple[str, ...]:
        """Returns the words that may follow `path`, without those that are hidden from users."""
        return tuple(
            word for word in self.below(path) if f"{path} {word}".strip() not in self.hidden
        )

    def meant(self, path: str, word: str) -> list[str]:
        """Returns the command lines that a user who typed an unknown word may mean, best first."""
        lines = self._all.synonyms.get(word) or filter(None, [self.aliases.get(word)])
        if not path:
            return list(lines)
        ends = [end for line in lines for end in (line.split()[0], line.split()[-1])]
        return [f"{path} {end}" for end in dict.fromkeys(ends) if end in self.listed(path)]

    def all(self) -> tuple[Spec, ...]:
        """Returns every command, in the table's order."""
        return tuple(spec for name in self._all.names for spec in self.module(name))

    def tools(
        self, settings: Mapping[str, object] = MappingProxyType({})
    ) -> dict[str, tuple[Spec, ...]]:
        """Returns the commands of each MCP tool by its canonical name, in a fixed order.

        Those of a setting are among them if `settings` has it on.
        """
        tools: dict[str, list[Spec]] = {}
        for spec in self.all():
            if Surface.MCP not in spec.surfaces or not is_on(spec.setting, settings):
                continue
            specs = tools.setdefault(spec.name, [])
            if not specs or (spec.tool and spec.tool == specs[0].tool):
                specs.append(spec)
            else:
                reason = f"another extension has a tool `{spec.name}`"
                broken()[spec.function.__module__] = reason
        return {name: tuple(specs) for name, specs in tools.items() if _is_offered(name, specs)}

    def added_tools(self) -> dict[str, str]:
        """Returns the names of the commands of extensions, by the forms that policies compare."""
        added = [name for name in self._all.names if name not in self._core.names]
        specs = [spec for name in added for spec in self.module(name)]
        return {folded(spec.name).lower(): spec.name for spec in specs}


@cache
def all_commands() -> CommandTable:
    """Returns the table of all commands."""
    return CommandTable(
        SECTIONS,
        unlisted=UNLISTED,
        groups=GROUPS,
        lone=LONE,
        alone=ALONE,
        first=FIRST,
        hidden=HIDDEN,
        aliases=ALIASES,
        synonyms=synonyms,
        summaries=summaries,
        extensions=extensions,
    )


def _listed(name: str) -> dict[str, str]:
    """Returns the texts of a file of this package, each by what precedes its colon."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return {key: text for key, _, text in (line.partition(": ") for line in lines)}


@cache
def summaries() -> Mapping[str, str]:
    """Returns the first line of the help of each command by its path, from a generated file."""
    return _listed("summaries.txt")


def synonyms() -> dict[str, tuple[str, ...]]:
    """Returns words that users of other programs may try, each with the commands to name."""
    return {word: tuple(lines.split(", ")) for word, lines in _listed("synonyms.txt").items()}


# The tools that a server lists, and the spellings of their names.


UNDOCUMENTED = ("extra", "legacy")
"""Groups that are listed only if they are named (`all` includes `extra`)."""

CORE = ("save", "load", "search", "evolve")
CORE_TOOLS = ("mind_edges", "mind_status")

ALWAYS = ("save/decision", "load/checkpoint")
"""Tools that are in every toolset, and listed for every prompt."""

Tools = Mapping[str, Sequence[Spec]]
"""Tools by their canonical names, each with the commands that are its operations."""


def is_on(setting: str, settings: Mapping[str, object]) -> bool:
    """Returns whether the setting of a tool is on; a tool without one is always offered."""
    return not setting or settings.get(setting) == "on"


def listed(tools: Tools, toolsets: Iterable[str]) -> list[str]:
    """Returns the canonical names of the tools to list, see `listed_names`."""
    return listed_names({name: specs[0].toolset for name, specs in tools.items()}, toolsets)


def listed_names(toolset_of: Mapping[str, str], toolsets: Iterable[str]) -> list[str]:
    """Returns the canonical names of the tools to list, in the order of their groups.

    `toolset_of` has the toolset of each tool. Raises `Invalid` for an unknown toolset.
    """
    requested_names = tuple(toolsets)
    for name in requested_names:
        if name not in (*TOOLSETS, *SEVERAL):
            raise Invalid(
                f"`{name}` is not a toolset",
                hint=f"toolsets are {', '.join((*TOOLSETS, *SEVERAL))}",
            )
    groups = {group for name in requested_names or (DEFAULT,) for group in _groups(name)}
    extra = (*ALWAYS, *(CORE_TOOLS if "core" in requested_names else ()))
    names = [name for name, group in toolset_of.items() if group in groups or name in extra]
    return sorted(names, key=lambda name: TOOLSETS.index(toolset_of[name]))


def _groups(name: str) -> set[str]:
    if name == "core":
        return set(CORE)
    if name == "all":
        return set(TOOLSETS) - {"legacy"}
    return set(TOOLSETS) - set(UNDOCUMENTED) if name == DEFAULT else {name}


def called(tools: Tools, name: str) -> Sequence[Spec] | None:
    """Returns the tool of that name in any spelling, or None."""
    if specs := tools.get(name):
        return specs
    key = folded(name)
    return next((specs for tool, specs in tools.items() if folded(tool) == key), None)


def near(tools: Tools, name: str, naming: str) -> str:
    """Returns what an unknown name may mean: the user's command of that name, or similar tools."""
    commands = [spec for spec in all_commands().all() if Surface.CLI in spec.surfaces]
    paths = [spec.path for spec in commands if folded(spec.name) == folded(name)]
    names = [spelled(tool, naming) for tool, specs in tools.items() if not specs[0].instead]
    meant = [f"the user's command `{path}`" for path in paths] or nearest(folded(name), names)
    return f"; did you mean {' or '.join(meant)}?" if meant else ""
