"""Finding the states: the one fenced YAML block of a procedure's Markdown."""

import re

from mimo.domain.codec.document import Unreadable
from mimo.frozen import frozen

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w-]*)")
_STATES = re.compile(r"^[ \t{\"]*(?:states|initial_state)\"?[ \t]*:", re.MULTILINE)


@frozen
class Block:
    """A fenced block: its text, and the 1-based line on which that begins."""

    text: str
    line: int


def states_block(body: str, first_line: int) -> Block:
    """Returns the block that holds the states.

    Where several blocks are YAML it is the one that says `states`. Raises `Unreadable` where there
    is none, or more than one.
    """
    blocks = _yaml_blocks(body, first_line)
    if len(blocks) > 1:
        blocks = [block for block in blocks if _STATES.search(block.text)]
    if not blocks:
        raise Unreadable("no states: there is no block fenced by ```yaml", first_line)
    if len(blocks) > 1:
        first = blocks[0].line - 1
        raise Unreadable(f"states a second time: they stand on line {first}", blocks[1].line - 1)
    return blocks[0]


def _yaml_blocks(body: str, first_line: int) -> list[Block]:
    found: list[Block] = []
    opened: re.Match[str] | None = None
    begun = 0
    lines: list[str] = []
    for number, line in enumerate(body.splitlines(keepends=True), first_line):
        if opened is None:
            if opened := _FENCE.match(line):
                begun, lines = number + 1, []
        elif _closes(line, opened[1]):
            if opened[2].lower() in ("yaml", "yml"):
                found.append(Block(text="".join(lines), line=begun))
            opened = None
        else:
            lines.append(line)
    if opened is not None and opened[2].lower() in ("yaml", "yml"):
        raise Unreadable("the block that begins here is never closed by a fence", begun - 1)
    return found


def _closes(line: str, fence: str) -> bool:
    closing = line.strip()
    return len(closing) >= len(fence) and set(closing) == {fence[0]}
