"""The language of a text, as far as the encoders need it: English, and the script of any other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from mimo.index.embedding import without_surrogates
from mimo.index.embedding.wordpiece import MAX_CHARACTERS, packaged_pieces
from mimo.text.background import UNKNOWN, rarity
from mimo.text.clean import compiled
from mimo.text.tokens import (
    AMBIGUOUS_WORDS,
    ENGLISH_WORDS,
    FOREIGN_WORDS,
    HANGUL,
    KANA_HAN,
    QUESTION_WORDS,
    tokenize,
)

ENGLISH_SHARE = 0.8
"""The least share of Latin letters in an English text."""

_FEWEST = 2
"""The number of foreign words, or of words with accents, from which a text is not English."""

_ACCENTED = 0.1
"""The share of words with accents from which it is not."""

_SHORTEST = 3
"""The length of words that are looked up in the lists of English words."""

_UNLISTED, _LISTED, _MOSTLY_LISTED = 0.3, 0.5, 0.8
"""The shares of listed words below which a text is not English, and above which it is.

They decide for a text without function words, the last one if a word or an accent points to another
language. Names and code are not listed words either.
"""

_FEWEST_UNLISTED = 6
"""The number of looked-up words from which a low share of listed ones proves something."""

_SCRIPT_SHARE = 0.15
"""The share of its letters from which a text is of a script."""

_WORD = r"[^\W\d_]+"

SCRIPTS = {
    "hangul": HANGUL,
    "kana": "\u3040-\u30ff",
    "han": KANA_HAN,
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff",
    "hebrew": "\u0590-\u05ff",
    "arabic": "\u0600-\u06ff",
    "devanagari": "\u0900-\u097f",
    "thai": "\u0e00-\u0e7f",
}
"""The characters of each script but Latin, in the order in which they decide: kana before Han."""


def script(text: str) -> str:
    """Returns the name of the script of a text: one of `SCRIPTS`, or `latin` for all others."""
    if text.isascii():
        return "latin"
    letters = sum(map(str.isalpha, text))
    for name, characters in SCRIPTS.items():
        if len(compiled(f"[{characters}]").findall(text)) > _SCRIPT_SHARE * letters:
            return name
    return "latin"


def prepared(text: str) -> str:
    """Returns the part of `text` that is encoded, composed and without lone surrogates."""
    text = without_surrogates(text[:MAX_CHARACTERS])
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def readable(text: str) -> str:
    """Returns `text` with English words for Korean ones.

    Returns an empty text if it is not English then, or has symbols alone, which all look alike.
    """
    if not any(map(str.isalnum, text)):
        return ""
    if not text.isascii() and compiled(f"[{HANGUL}]").search(text):
        from mimo.index.embedding.korean import packaged_glossary

        text = packaged_glossary().gloss(text)
    return "" if is_english(text) is False else text


def is_english(text: str) -> bool | None:
    """Returns whether `text` is English, by its letters and words; None if they prove nothing.

    "redis eviction" and "Passwort vergessen" look alike: no function words, no common words.
    """
    words = compiled(_WORD).findall(text)
    accented = 0
    if not text.isascii():
        letters = "".join(words)
        latin = sum(letter < "\u0250" or "\u1e00" <= letter < "\u1f00" for letter in letters)
        if latin < ENGLISH_SHARE * len(letters):
            return False
        text = unicodedata.normalize("NFD", text)
        text = "".join(part for part in text if unicodedata.category(part) != "Mn")
        accented = len(words) - sum(map(str.isascii, words))
        words = compiled(_WORD).findall(text)
    folded = [word.lower() for word in words]
    foreign = sum(word in FOREIGN_WORDS for word in folded)
    english = sum(word in ENGLISH_WORDS for word in folded)
    if foreign >= _FEWEST and foreign > english:
        return False
    shaping = sum(word in QUESTION_WORDS for word in folded)
    if accented >= _FEWEST and accented > max(_ACCENTED * len(words), shaping):
        return False
    if english:
        return True
    is_foreign = foreign > 0 or accented > 0
    is_clear = not (accented or AMBIGUOUS_WORDS.intersection(folded))
    return _by_lists(words, is_foreign=is_foreign, is_clear=is_clear)


def _by_lists(words: Sequence[str], *, is_foreign: bool, is_clear: bool) -> bool | None:
    """Returns whether words without a function word of English alone are English.

    `is_foreign` is whether one has an accent or is of another language: it proves something only if
    few of the others are listed, as `man` is German, too. `is_clear` is whether nothing points to
    another language.
    """
    content = [
        word
        for word in words
        if len(word) >= _SHORTEST and word.lower() not in FOREIGN_WORDS | QUESTION_WORDS
    ]
    if not content:
        return None if is_foreign else True
    listed = sum(map(_is_common, content))
    if listed > (_LISTED if is_clear else _MOSTLY_LISTED) * len(content):
        return True
    is_proof = is_foreign or len(content) >= _FEWEST_UNLISTED
    return False if is_proof and listed < _UNLISTED * len(content) else None


def _is_common(word: str) -> bool:
    """Returns whether a word without accents is common in English texts or developers' notes."""
    return packaged_pieces().is_whole(word.lower()) or all(
        rarity(stem) < UNKNOWN for stem in tokenize(word, as_written=True)
    )
