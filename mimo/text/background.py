"""The rarity of stems in general, by a packaged list that was counted in developers' notes.

`scripts/build_background.py` makes the list. Its sorted lines are bisected as they are: parsing
them would take longer than all look-ups of a query.
"""

from __future__ import annotations

from functools import cache

from mimo.text.tokens import is_unspaced

_LIST = __file__.rpartition("text")[0] + "model/background.txt"

UNKNOWN = 10.5
"""The rarity of a stem that the list lacks."""

SHORT = 8.0
"""The rarity of a number and of a single character."""

PAIR = 3.5
"""The rarity of a pair of characters in a script without spaces; a word has one or more."""


@cache
def rarity(stem: str) -> float:
    """Returns -ln(share of stretches of 50 words that contain `stem`): 0.4 for "the", in nats."""
    if not stem.isascii() and is_unspaced(stem[0]):
        return PAIR
    if len(stem) < 2 or stem.isdigit():
        return SHORT
    lines, target = _lines(), stem.encode("utf-8", "surrogatepass")
    low, high = 0, len(lines)
    while low < high:
        start = lines.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = lines.index(b"\n", start)
        listed, _, tenths = lines[start:end].partition(b"\t")
        if listed == target:
            return int(tenths) / 10
        if listed < target:
            low = end + 1
        else:
            high = start
    return UNKNOWN


@cache
def _lines() -> bytes:
    # Data of the package are as constant as its code, so this floor may read them.
    with open(_LIST, "rb") as file:  # noqa: PTH123 - pathlib is for files that change
        return file.read()
