"""Writes the cost of the list of tools to docs/tools.md, and how well its texts separate them to
docs/lab/tools.md.

bpe-openai ships the vocabulary of o200k_base, so nothing is downloaded. The models of others have
vocabularies of their own: their counts differ, and mostly in the same proportion.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimo.call.table import all_commands, listed
from mimo.server.tools import described
from scripts.marked import write_part
from scripts.tool_discovery import measured

DOCS = Path(__file__).parent.parent / "docs"
TOOLSETS = ((), ("core",), ("all",))
ASKED = ("name", "description", "inputSchema")
"""The parts of a tool that clients give to the model."""


def tools(toolsets: tuple[str, ...]) -> list[dict[str, Any]]:
    """Returns the tools as they are sent."""
    commands = all_commands().tools()
    return [
        described(commands[name], "underscore").model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        for name in listed(commands, toolsets)
    ]


def asked(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tool[name] for name in ASKED}


def text(value: Any) -> str:
    """Returns compact JSON, as it is sent."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def costs() -> str:
    """Returns the table of docs/tools.md."""
    from bpe_openai import get_encoding

    encoding = get_encoding("o200k_base")

    def tokens(value: Any) -> int:
        return len(encoding.encode(text(value)))

    lines = [
        "| toolsets | tools | names, descriptions, inputs | all of `tools/list` |",
        "|---|---:|---:|---:|",
    ]
    for toolsets in TOOLSETS:
        every = tools(toolsets)
        name = f"`{' '.join(toolsets)}`" if toolsets else "default"
        size = len(text({"tools": every}).encode())
        lines.append(
            f"| {name} | {len(every)} | {sum(tokens(asked(tool)) for tool in every):,} tokens"
            f" | {tokens({'tools': every}):,} tokens, {size:,} bytes |"
        )
    for tool in sorted(map(asked, tools(())), key=tokens, reverse=True):
        print(f"{tokens(tool):5} {tool['name']}")
    return "\n".join(lines)


def main() -> None:
    write_part(DOCS / "tools.md", "cost", costs())
    write_part(DOCS / "lab" / "tools.md", "discovery", measured(tools(())))


if __name__ == "__main__":
    main()
