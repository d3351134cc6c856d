"""The language of a text, as far as the encoders need it: English, and the script of any other."""

from __future__ import annotations

import unicodedata

from mimo.index.embedding import without_surrogates
from mimo.index.embedding.korean import packaged_glossary
from mimo.index.embedding.wordpiece import MAX_CHARACTERS, packaged_pieces
from mimo.text.clean import compiled
from mimo.text.tokens import FOREIGN_WORDS, HANGUL, KANA_HAN, QUESTION_WORDS

ENGLISH_SHARE = 0.8
"""The least share of Latin letters in an English text."""

_FEWEST = 2
"""The number of foreign words, or of words with accents, from which a text is not English."""

_ACCENTED = 0.1
"""The share of words with accents from which it is not."""

_LONG_WORD, _LONG_WORDS = 4, 3
"""The length of words that are looked up, and the least number of them that proves anything."""

_KNOWN, _SURELY_KNOWN = 0.3, 0.6
"""The shares of listed words below which a text without English function words is not English.

The latter counts if there is another sign. Names and code are not listed words either.
"""

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
    """Returns `text` with English words for Korean ones; empty if it is not English then."""
    if not text.isascii() and compiled(f"[{HANGUL}]").search(text):
        text = packaged_glossary().gloss(text)
    return text if is_english(text) else ""


def is_english(text: str) -> bool:
    """Returns whether most of `text` can be English, by its letters and its words."""
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
    words = [word.lower() for word in words]
    foreign = sum(word in FOREIGN_WORDS for word in words)
    english = sum(word in QUESTION_WORDS for word in words)
    if foreign >= _FEWEST and foreign > english:
        return False
    if accented >= _FEWEST and accented > max(_ACCENTED * len(words), english):
        return False
    if english:
        return True
    looked_up = [word for word in words if len(word) >= _LONG_WORD]
    if len(looked_up) < _LONG_WORDS:
        return True
    least = _SURELY_KNOWN if foreign or accented else _KNOWN
    return sum(map(packaged_pieces().is_whole, looked_up)) >= least * len(looked_up)
