"""The spellings of the names of tools, of which `save/decision` is the canonical one."""

from __future__ import annotations

_NAMES = r"\b(?:save|load|search|evolve)/[a-z_]+"


def spelled(name: str, naming: str) -> str:
    """Returns a canonical name as it is advertised: `save_decision`, `save/decision`, …"""
    match naming:
        case "slash":
            return name
        case "dot":
            return name.replace("/", ".")
        case _:
            return folded(name)


def respelled(text: str, naming: str) -> str:
    """Returns a text whose canonical names are spelled as the tools are advertised."""
    import re

    return re.sub(_NAMES, lambda match: spelled(match[0], naming), text)


def folded(name: str) -> str:
    """Returns the common form of all spellings of a tool's name: `save_decision`."""
    return name.replace("/", "_").replace(".", "_").replace("-", "_")


def underscored(name: str) -> str:
    """Returns the name of a tool as it is listed by default: `save_decision`.

    Names of other requests, such as `resources/read`, are returned as they are.
    """
    return folded(name) if name.startswith(("save/", "load/", "search/", "evolve/")) else name
