"""What somebody meant who misspelt an expression."""

from datetime import datetime
from unicodedata import normalize

from mimo.domain.when import ranges
from mimo.domain.when.span import Refused
from mimo.domain.when.vocabulary import FILLERS, KNOWN, KOREAN
from mimo.domain.when.words import tidy, words_of

_MOST_WORDS = 8
_ALIKE = 0.7
_ENGLISH = sorted(word for word in KNOWN - FILLERS if len(word) > 2 and word.isalpha())
_KOREAN = [
    *(word for word in KOREAN if len(word) > 1),
    *(
        which + unit
        for which in ("이번", "지난", "지지난")
        for unit in ("주", "달", "주말", "분기")
    ),
]


def suggestion(expression: str, now: datetime) -> str | None:
    """Returns an expression like this one that is understood; None where none is near."""
    words = tidy(expression[:200]).split()
    if len(words) > _MOST_WORDS:
        return None
    mended = " ".join(_mended(word) for word in words)
    try:
        meant = words_of(mended)
        understood = meant and mended != " ".join(words) and ranges.read(meant, now)
    except (OverflowError, Refused):
        return None
    return mended if understood else None


def _mended(word: str) -> str:
    """Returns the known word that is spelled most like this one, or the word itself."""
    if word in KNOWN or not word.isalpha():
        return word
    from difflib import get_close_matches

    known = _KOREAN if "가" <= word[0] <= "힣" else _ENGLISH
    # Letters of Hangul are compared, not syllables.
    letters = {normalize("NFD", one): one for one in known}
    near = get_close_matches(normalize("NFD", word), letters, n=1, cutoff=_ALIKE)
    return letters[near[0]] if near else word
