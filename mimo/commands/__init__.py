"""The one command set, declared once for every surface.

The tables below name all commands without loading any. A command stands in exactly one section,
which is also its place in `mind --help`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mimo.commands.registry import Registry

SECTIONS: dict[str, dict[str, str]] = {
    "Remember": {
        "add": "notes",
        "save decision": "save",
        "save checkpoint": "save",
        "save insight": "save",
        "evolve outcome": "evolve",
        "evolve supersede": "evolve",
        "edit": "notes",
        "keep": "fading",
        "rm": "notes",
        "ingest": "ingest",
    },
    "Find": {
        "search": "search",
        "search by-topic": "browse",
        "search by-context": "browse",
        "search recent": "browse",
        "load checkpoint": "load",
        "load context": "load",
        "recall": "recall",
        "show": "notes",
        "list": "listing",
        "graph": "graph",
        "fading": "fading",
    },
    "Edges": {
        "edges": "edges",
        "edges check": "edge_check",
        "edges add": "edge_adding",
        "edges list": "edges",
        "edges starter": "edge_adding",
    },
    "The memory tool": {
        "memory store": "memory",
        "memory search": "memory",
        "memory list": "memory",
        "memory delete": "memory",
        "memory stats": "fading",
        "memory decay-check": "fading",
    },
    "Values": {
        "value put": "values",
        "value get": "values",
        "value list": "values",
        "value rm": "values",
        "context get": "session",
    },
    "Procedures": {
        "procedure run": "procedures",
        "procedure status": "procedures",
        "procedure send": "procedures",
        "procedure cancel": "procedures",
        "procedure resume": "procedures",
        "procedure list": "procedure_files",
        "procedure show": "procedure_files",
        "procedure new": "procedure_files",
        "procedure check": "procedure_files",
        "procedure add": "procedure_files",
    },
    "The project": {
        "init": "projects",
        "sync": "sync",
        "log": "history",
        "blame": "history",
        "restore": "history",
        "diff": "diff",
        "status": "status",
        "doctor": "upkeep",
        "events": "events",
        "scan": "scan",
        "index": "upkeep",
        "config": "settings",
        "context show": "context",
        "context write": "context",
        "daemon start": "daemon",
        "daemon stop": "daemon",
        "daemon restart": "daemon",
        "daemon status": "daemon",
        "daemon logs": "daemon",
        "daemon run": "daemon",
        "audit show": "audit",
        "audit verify": "audit",
        "audit export": "audit",
        "metrics": "audit",
        "review": "review",
        "review settle": "review",
        "review keep": "review",
        "trust": "trust",
        "untrust": "trust",
        "install": "clients",
        "uninstall": "clients",
        "policy show": "policy",
        "policy check": "policy",
        "policy explain": "policy",
        "module install": "modules",
        "module list": "modules",
        "import mama": "importing",
        "demo": "demo",
    },
}
"""Sections of the command line: path -> module of this package."""

UNLISTED: tuple[str, ...] = ("legacy", "legacy_decisions")
"""Modules with names that only MCP calls know."""

GROUPS: dict[str, str] = {
    "save": "Save a decision, a checkpoint or an insight",
    "evolve": "Mark how a decision turned out, or replace it",
    "load": "Show where work stopped, or a decision with all around it",
    "context": "The notes that agents find in CLAUDE.md, and what session, agent and task this is",
    "audit": "See which tools were called, and that no record of it was touched",
    "daemon": "Keep index and context fresh while you work (optional)",
    "procedure": "Run state machines that are written in Markdown, and follow them",
    "memory": "Store, search, list, delete and measure memories",
    "value": "Keep any JSON under a key, for a while or for good",
    "policy": "Show, check and explain what tools may do here",
    "module": "Write and list the modules of hosts that read .mcp/modules/",
    "import": "Take over the memory of other tools",
}
"""What is said of words that only lead to other commands."""

LONE: frozenset[str] = frozenset({"search recent", "edges list", "edges starter"})
"""Sub-commands that are meant only where nothing or an option follows: `mind search recent`."""


def all_commands() -> "Registry":
    """Returns the table of all commands."""
    from mimo.commands.registry import Registry

    return Registry(SECTIONS, unlisted=UNLISTED, groups=GROUPS, lone=LONE)
