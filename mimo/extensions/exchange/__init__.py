"""Exchange: memories for other programs, and those of other programs as memories."""

from __future__ import annotations

from mimo.api import Extension

_HERE = "mimo.extensions.exchange"

EXTENSION = Extension(
    commands={"Share": {"export": f"{_HERE}.commands"}},
    synonyms={"backup": ("export --private",), "dump": ("export",)},
    importers={
        "mind": f"{_HERE}.exports:mind",
        "claude-memory": f"{_HERE}.notes:claude_memory",
        "claude-md": f"{_HERE}.notes:rules",
        "basic-memory": f"{_HERE}.notes:basic_memory",
        "obsidian": f"{_HERE}.notes:obsidian",
        "okf": f"{_HERE}.notes:okf",
        "adr": f"{_HERE}.adr:records",
        "nb": f"{_HERE}.notes:nb",
        "jrnl": f"{_HERE}.exports:jrnl",
        "mcp-memory": f"{_HERE}.exports:mcp_memory",
        "beads": f"{_HERE}.exports:beads",
        "mem0": f"{_HERE}.exports:mem0",
        "claude-mem": f"{_HERE}.tables:claude_mem",
        "mcp-memory-service": f"{_HERE}.tables:mcp_memory_service",
        "chatgpt": f"{_HERE}.exports:chatgpt",
        "claude-chats": f"{_HERE}.exports:claude_chats",
    },
    recogniser=f"{_HERE}.recognition:candidates",
)
