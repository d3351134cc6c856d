"""Glosses of Korean: English words in the place of Korean ones, so that the encoder can read them.

The encoder knows English only. A text of English words in the order of the Korean ones is not a
translation, but its vector is near that of one. A word is cut into stems, particles and endings by
the cheapest path (as in T. Kudo et al., "Applying Conditional Random Fields to Japanese
Morphological Analysis", 2004, with fixed costs), letter by letter (jamo), because an ending may
begin inside of a syllable: 지웠 is 지우 and 었.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

from mimo.frozen import NamedTuple
from mimo.index.embedding.wordpiece import FOLDER

_LEADS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_VOWELS = "ㅏ ㅐ ㅑ ㅒ ㅓ ㅔ ㅣㅓ ㅖ ㅗ ㅗㅏ ㅗㅐ ㅗㅣ ㅛ ㅜ ㅜㅓ ㅜㅔ ㅜㅣ ㅠ ㅡ ㅡㅣ ㅣ".split()
"""Vowels; a contracted one is written as its parts, so that 가져 begins with 가지."""
_TAILS = (
    ",ㄱ,ㄲ,ㄱㅅ,ㄴ,ㄴㅈ,ㄴㅎ,ㄷ,ㄹ,ㄹㄱ,ㄹㅁ,ㄹㅂ,ㄹㅅ,ㄹㅌ,ㄹㅍ,ㄹㅎ,ㅁ,ㅂ,ㅂㅅ,ㅅ,ㅆ,ㅇ,ㅈ,ㅊ,ㅋ,ㅌ,ㅍ,ㅎ"
).split(",")
_FIRST_CODE, _SYLLABLES = 0xAC00, 11_172

_LATIN = str.maketrans(
    dict(
        zip(
            "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎㅏㅐㅑㅒㅓㅔㅖㅗㅛㅜㅠㅡㅣ",
            "g k n d t l m b p s s ng j j ch k t p h a e ya ye o e ye o yo u yu u i".split(),
            strict=True,
        )
    )
)
"""Letters for the jamo of unknown names, which are then the same in question and answer."""

_IRREGULAR = {
    "ㄹㅡ": ("ㄹㄹㅏ", "ㄹㄹㅓ"),
    "ㅡ": ("ㅏ", "ㅓ"),
    "ㅂ": ("ㅇㅜ", "ㅇㅗ"),
    "ㄷ": ("ㄹ",),
    "ㅅ": ("",),
    "ㅎㅏ": ("ㅎㅐ",),
    "ㄹ": ("",),
    "ㅎ": ("",),
}
"""Changes at the end of a stem: 빠르 and 빨라, 쓰 and 써, 쉽 and 쉬우, 듣 and 들, 만들 and 만드."""

_WHOLE_WORD, _KNOWN, _LEARNED, _SYLLABLE = 0.9, 1.0, 1.1, 1.5
"""The costs of a listed word that is all of a word, of a part, a learned one, and one syllable."""

_ENDING, _UNKNOWN = 0.4, 1.0
"""The costs of an ending or particle, and of a letter that is in none."""

_MOST_UNKNOWN = 0.5
"""The share of unknown letters from which a word is a name."""

_MOST_WORDS = 20_000
_GLOSSED = 2
"""The English words for a Korean one."""

_HANGUL = re.compile("[가-힣]+")


class _Entry(NamedTuple):
    english: str
    cost: float
    is_stem: bool
    """True for a verb's stem, after which an ending may begin inside of the syllable."""


class Glossary:
    """Puts English words in the place of Korean ones."""

    def __init__(self, written: str, learned: str = "") -> None:
        """Takes two word lists: one written by hand, and one of whole words learned from texts.

        A line has English words, a colon, and Korean words; without English words, it has endings.
        """
        self._entries: dict[str, _Entry] = {}
        self._endings: set[str] = set()
        for english, words in _lines(written):
            if not english:
                self._endings.update(map(_letters, words))
            for word in words if english else ():
                self._add(word, " ".join(english.split()[:_GLOSSED]))
        self._learned = {word: english for english, words in _lines(learned) for word in words}
        longest = len(_letters(max(self._learned, key=len, default="")))
        self._longest = max(longest, *map(len, self._entries))
        self._of_word = lru_cache(maxsize=_MOST_WORDS)(self._word)

    def gloss(self, text: str) -> str:
        """Returns `text` with English words for its Korean ones."""
        composed = unicodedata.normalize("NFC", text)
        return _HANGUL.sub(lambda match: f" {self._of_word(match[0])} ", composed)

    def _add(self, word: str, english: str) -> None:
        is_stem = len(word) > 1 and word.endswith("다")
        syllables = len(word) - is_stem
        entry = _Entry(english, _KNOWN if syllables > 1 else _SYLLABLE, is_stem)
        for form in _stems(word[:-1]) if is_stem else [_letters(word)]:
            self._entries.setdefault(form, entry)

    def _word(self, word: str) -> str:
        path, letters = self.path(word), _letters(word)
        if path.unknown > _MOST_UNKNOWN * len(letters):
            return letters.translate(_LATIN)
        return " ".join(path.english)

    def path(self, word: str) -> Path:
        """Returns the cheapest way through the letters of a word."""
        letters, borders = _letters(word), {0: 0}
        for number, syllable in enumerate(word, 1):
            borders[max(borders) + len(_letters(syllable))] = number
        paths = [Path(0.0, 0, ())]
        for end in range(1, len(letters) + 1):
            previous = paths[-1]
            best = Path(previous.cost + _UNKNOWN, previous.unknown + 1, previous.english)
            for start in range(max(0, end - self._longest), end):
                for english, price in self._readings(word, letters, borders, start, end):
                    path = paths[start]
                    if path.cost + price < best.cost:
                        words = (*path.english, english) if english else path.english
                        best = Path(path.cost + price, path.unknown, words)
            paths.append(best)
        return paths[-1]

    def _readings(
        self, word: str, letters: str, borders: dict[int, int], start: int, end: int
    ) -> Iterator[tuple[str, float]]:
        """Yields the meanings of a part of a word, empty for an ending, with their costs."""
        form = letters[start:end]
        if form in self._endings and (start or end == len(letters)):
            yield "", _ENDING
        if start not in borders:
            return
        entry = self._entries.get(form)
        if entry and (entry.is_stem or end in borders):
            yield entry.english, _WHOLE_WORD if end - start == len(letters) else entry.cost
        if end in borders:
            english = self._learned.get(word[borders[start] : borders[end]])
            if english:
                yield english, _LEARNED


class Path(NamedTuple):
    """The cheapest way to the end of some letters."""

    cost: float
    unknown: int
    """The number of letters that are in no word or ending."""
    english: tuple[str, ...]


@cache
def packaged_glossary() -> Glossary:
    """Returns the packaged glossary, one for the whole process."""
    files = ("korean.txt", "korean.names.txt", "korean.learned.txt")
    words, names, learned = [(FOLDER / name).read_text(encoding="utf-8") for name in files]
    return Glossary(words + names, learned)


def _lines(text: str) -> Iterator[tuple[str, list[str]]]:
    for line in text.splitlines():
        english, _, words = line.partition(":")
        if not english.startswith("#"):
            yield english, words.split()


def _letters(word: str) -> str:
    """Returns the jamo of a word's syllables; other characters unchanged."""
    parts = []
    for character in word:
        code = ord(character) - _FIRST_CODE
        if 0 <= code < _SYLLABLES:
            lead, remainder = divmod(code, len(_VOWELS) * len(_TAILS))
            vowel, tail = divmod(remainder, len(_TAILS))
            parts += [_LEADS[lead], _VOWELS[vowel], _TAILS[tail]]
        else:
            parts.append(character)
    return "".join(parts)


def _stems(stem: str) -> list[str]:
    """Returns the letters of a verb's stem in all forms that it may take before an ending."""
    letters = _letters(stem)
    for end, variants in _IRREGULAR.items():
        if letters.endswith(end):
            return [letters, *(letters.removesuffix(end) + variant for variant in variants)]
    return [letters]
