"""Where sentences end, and texts cut there."""

import re
from functools import cache

_SHORTEST = 0.4
"""Share of the limit below which whole sentences say too little; words are cut there instead."""


@cache
def sentence_end() -> re.Pattern[str]:
    """Returns what stands between two sentences, in scripts with spaces and without."""
    closing = r"[\"')\]\u201d]"
    return re.compile(rf"(?<=[.!?\u2026]){closing}*\s+|(?<=[\u3002\uff01\uff1f\u0964])")


def cut(text: str, limit: int) -> str:
    """Returns as many whole sentences as `limit` characters hold, and `…` where there are more.

    Where they hold too little it is cut between words.
    """
    if len(text) <= limit:
        return text
    ends = [found.end() for found in sentence_end().finditer(text, 0, limit + 1)]
    if ends and ends[-1] >= limit * _SHORTEST:
        return f"{text[: ends[-1]].rstrip()} …"
    start = text[:limit]
    words = start.rpartition(" ")[0]
    return f"{(words if len(words) >= limit * _SHORTEST else start).rstrip()}…"
