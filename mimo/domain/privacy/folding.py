"""Texts as a detector should see them: look-alike characters as ASCII, invisible ones left out."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_LOOKALIKES = dict(
    zip(
        "аеорсухіѕјԁһԛԝАВЕКМНОРСТУХІЅЈαορνιΑΒΕΖΗΙΚΜΝΟΡΤΥΧ。․·∶ː",  # noqa: RUF001
        "aeopcyxisjdhqwABEKMHOPCTYXISJaopviABEZHIKMNOPTYX...::",
        strict=True,
    )
)
"""Cyrillic and Greek letters, and signs, that look like one of ASCII."""


class Folded(NamedTuple):
    """A text as it is looked at, and where each of its characters stood."""

    text: str
    places: Sequence[int] | None
    """None where every character stands where it stood."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Returns where a stretch of the folded text stands in the text itself."""
        if self.places is None or start == end:
            return start, end
        return self.places[start], self.places[end - 1] + 1


def folded(text: str) -> Folded:
    """Returns a text with one ASCII character for each that stands for one."""
    if text.isascii():
        return Folded(text, None)
    table = {ord(one): _plain(one) for one in set(text) if not one.isascii()}
    if None not in table.values():
        return Folded(text.translate(table), None)
    places = [n for n, one in enumerate(text) if table.get(ord(one), one) is not None]
    return Folded(text.translate(table), places)


@lru_cache(maxsize=4096)
def _plain(one: str) -> str | None:
    """Returns what a character stands for; None for one that nobody sees."""
    if one in _LOOKALIKES:
        return _LOOKALIKES[one]
    import unicodedata

    category = unicodedata.category(one)
    if category in ("Cf", "Mn", "Me"):
        return None
    if category == "Zs":
        return " "
    if category == "Pd":
        return "-"
    digit = unicodedata.digit(one, None)
    if digit is not None:
        return str(digit)
    compatible = unicodedata.normalize("NFKC", one)
    return compatible if len(compatible) == 1 else one
