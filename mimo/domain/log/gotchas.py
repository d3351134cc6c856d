"""Lines under `## Gotchas`: `Issue → Workaround`."""

import re
from typing import Any

from mimo.domain.memory import Kind

_SEPARATORS = (r"\s*→\s*", r"\s+->\s+", r"\s+--\s+", r"\s+—\s+", r"\s+-\s+")
"""In the order in which they are looked for; a mark within a word separates nothing."""
_CODE = re.compile(r"`[^`]*`")


def fields(text: str) -> dict[str, Any] | None:
    """Returns the fields of the memory that a gotcha is; None where it says nothing."""
    issue, workaround = split(text)
    if len(issue) < 3:
        return None
    return {
        "type": Kind.EDGE,
        "content": text,
        "title": issue,
        "confidence": 1.0,
        "extra": {"workaround": workaround} if workaround else {},
    }


def split(text: str) -> tuple[str, str]:
    """Returns the issue of a gotcha and its workaround, which may be empty."""
    # Within code a mark is a part of it, as in `p->next`.
    masked = _CODE.sub(lambda code: "x" * len(code[0]), text)
    for pattern in _SEPARATORS:
        if found := re.search(pattern, masked):
            return _bare(text[: found.start()]), _bare(text[found.end() :])
    return _bare(text), ""


def _bare(text: str) -> str:
    return " ".join(text.replace("**", "").split())
