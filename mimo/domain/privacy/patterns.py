"""Patterns that are compiled when a text first needs them: most texts need hardly any."""

import re
from functools import cache


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Returns a pattern as it is matched with."""
    return re.compile(pattern)
