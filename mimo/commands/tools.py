"""Which tools a server lists, and by what names they are called."""

from collections.abc import Iterable, Mapping, Sequence

from mimo.commands.arguments import nearest
from mimo.commands.registry import folded
from mimo.commands.spec import Spec
from mimo.errors import Invalid

TOOLSETS = (
    "save",
    "load",
    "search",
    "evolve",
    "memory",
    "ingest",
    "procedures",
    "values",
    "edges",
    "recall",
    "extra",
    "legacy",
)
"""The groups that tools are listed by."""

UNDOCUMENTED = ("extra", "legacy")
"""Groups that are listed only where they are named (`all` names `extra` too)."""

CORE = ("save", "load", "search", "evolve")
CORE_TOOLS = ("mind_edges", "mind_status")

NAMINGS = ("underscore", "slash", "dot")

Tools = Mapping[str, Sequence[Spec]]
"""Tools by their canonical names, each with the commands that are its operations."""


def listed(tools: Tools, toolsets: Iterable[str]) -> list[str]:
    """Returns the canonical names of the tools to list, in the order of their groups.

    Raises `Invalid` for a toolset that there is none of.
    """
    wanted = tuple(toolsets)
    for name in wanted:
        if name not in (*TOOLSETS, "core", "all"):
            raise Invalid(
                f"`{name}` is not a toolset", hint=f"toolsets are {', '.join(TOOLSETS)}, core, all"
            )
    groups = {group for name in wanted for group in _groups(name)} if wanted else _groups("")
    extra = CORE_TOOLS if "core" in wanted else ()
    names = [name for name, specs in tools.items() if specs[0].toolset in groups or name in extra]
    return sorted(names, key=lambda name: TOOLSETS.index(tools[name][0].toolset))


def _groups(name: str) -> set[str]:
    if name == "core":
        return set(CORE)
    if name == "all":
        return set(TOOLSETS) - {"legacy"}
    return {name} if name else set(TOOLSETS) - set(UNDOCUMENTED)


def spelled(name: str, naming: str) -> str:
    """Returns a canonical name as it is advertised: `save_decision`, `save/decision`, …"""
    match naming:
        case "slash":
            return name
        case "dot":
            return name.replace("/", ".")
        case _:
            return folded(name)


def called(tools: Tools, name: str) -> Sequence[Spec] | None:
    """Returns the tool of that name in any spelling, or None."""
    wanted = folded(name)
    return next((specs for known, specs in tools.items() if folded(known) == wanted), None)


def near(tools: Tools, name: str, naming: str) -> list[str]:
    """Returns the names that are spelled most like an unknown one."""
    names = [spelled(known, naming) for known, specs in tools.items() if not specs[0].instead]
    return nearest(folded(name), names)
