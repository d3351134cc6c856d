"""The one command set, declared once for every surface.

The tables below name all commands without loading any. A command stands in exactly one section,
which is also its place in `mind --help`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mimo.commands.registry import Registry

SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "projects",
        "install": "clients",
        "uninstall": "clients",
        "status": "status",
        "doctor": "upkeep",
        "demo": "demo",
    },
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
        "undo": "undo",
        "ingest": "ingest",
        "import mama": "importing",
    },
    "Find": {
        "search": "search",
        "search by-topic": "browse",
        "search by-context": "browse",
        "search recent": "browse",
        "recall": "recall",
        "load checkpoint": "load",
        "load context": "load",
        "show": "notes",
        "list": "listing",
        "graph": "graph",
        "fading": "fading",
        "edges": "edges",
        "edges check": "edge_check",
        "edges add": "edge_adding",
        "edges list": "edges",
        "edges starter": "edge_adding",
    },
    "Share": {
        "sync": "sync",
        "diff": "diff",
        "log": "history",
        "blame": "history",
        "restore": "history",
    },
    "Trust and privacy": {
        "review": "review",
        "review settle": "review",
        "review keep": "review",
        "trust": "trust",
        "untrust": "trust",
        "scan": "scan",
        "policy show": "policy",
        "policy check": "policy",
        "policy explain": "policy",
        "audit show": "audit",
        "audit verify": "audit",
        "audit export": "audit",
    },
    "Values and procedures": {
        "value put": "values",
        "value get": "values",
        "value list": "values",
        "value rm": "values",
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
    "Upkeep": {
        "config": "settings",
        "index": "upkeep",
        "daemon start": "daemon",
        "daemon stop": "daemon",
        "daemon restart": "daemon",
        "daemon status": "daemon",
        "daemon logs": "daemon",
        "daemon run": "daemon",
        "events": "events",
        "metrics": "audit",
    },
    "Agents": {
        "context get": "session",
        "context show": "context",
        "context write": "context",
        "memory store": "memory",
        "memory search": "memory",
        "memory list": "memory",
        "memory delete": "memory",
        "memory stats": "fading",
        "memory decay-check": "fading",
        "module install": "modules",
        "module list": "modules",
    },
}
"""Sections of the command line: path -> module of this package."""

UNLISTED: tuple[str, ...] = ("legacy", "legacy_decisions")
"""Modules with names that only MCP calls know."""

GROUPS: dict[str, str] = {
    "save": "Save a decision, a checkpoint or an insight",
    "evolve": "Mark how a decision turned out, or replace it",
    "load": "Show where work stopped, or a decision with all around it",
    "context": "Show the notes for agents in CLAUDE.md, and what session this is",
    "audit": "Show which tools were called, and verify the record of it",
    "daemon": "Keep index and notes fresh while you work (optional)",
    "procedure": "Run procedures that are written in Markdown, step by step",
    "memory": "Store, search, list, delete and measure memories",
    "value": "Keep any JSON under a key, for a while or for good",
    "policy": "Show, check and explain what tools may do here",
    "module": "Write and list modules for hosts that read .mcp/modules/",
    "import": "Take over the memory of other tools",
}
"""What is said of words that only lead to other commands."""

LONE: frozenset[str] = frozenset({"search recent", "edges list", "edges starter"})
"""Sub-commands that are meant only where nothing or an option follows: `mind search recent`."""


def all_commands() -> "Registry":
    """Returns the table of all commands."""
    from mimo.commands.registry import Registry

    return Registry(SECTIONS, unlisted=UNLISTED, groups=GROUPS, lone=LONE)
