"""The tokens of a text, which the index stores and the ranking compares.

The index keeps them joined by spaces, so that candidates, coverage and phrases use the same words.
A symbol such as € or ✅ is a word, wherever it is written.
Stemming is Porter's (M. F. Porter, "An algorithm for suffix stripping", 1980).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from mimo.frozen import NamedTuple
from mimo.text.clean import compiled
from mimo.text.families import (
    BOUND_COMPOUND,
    LISTS,
    PARTS,
    SIGNS,
    WORDS,
    hyphened,
    kinds,
    korean_names,
    may_have_nouns,
    name_in_latin,
    nouns,
    root,
    simplified,
)
from mimo.text.phrases import cut

_DROPPED = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670"
)
"""Accents and points, which comparisons ignore."""

_PLAIN = str.maketrans("\u0131\u0142\u00f8\u0111\u00f0\u0127\u0167", "iloddht")
"""Letters of Latin script whose strokes and missing dots are no accents in Unicode."""

MARKS = _DROPPED + "\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff"
"""Combining marks and vowel signs, at which `\\w` would end a word (Hindi, Thai and others)."""

UNSPACED = (
    "\u0e00-\u0e7f\u1100-\u11ff\u3005-\u3007\u3040-\u312f\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, kana, Hangul and Han: scripts whose runs are cut into pairs of characters."""

SYMBOLS = (
    "\u00a2-\u00a5\u00a7\u00a9\u00ae\u00b6\u2020\u2021\u20a0-\u20cf\u2300-\u237a\u23cd-\u23ff"
    "\u2600-\u2767\u2776-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f000-\U0001f3fa\U0001f400-\U0001f7ff\U0001f900-\U0001faff"
)
"""Currencies, signs and pictures that are words; lines, arrows, bullets and operators are not."""

_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"

HANGUL = "가-힣ㄱ-ㅎㅏ-ㅣ"
KANA_HAN = "\u3040-\u30ff\u4e00-\u9fff\u3400-\u4dbf々"
"""Two of these scripts, composed (NFC)."""

STOP_WORDS = WORDS["stop"]
"""The 33 stop words of Lucene and of SQLite's FTS3."""

QUESTION_WORDS = STOP_WORDS | WORDS["question"]
"""Words that shape a question and are not about its subject."""

REQUEST_WORDS = WORDS["request"]
"""Words that shape most questions, and are the subject of one that has no other."""

LOOKS = WORDS["looks"]
"""Words of tasks that change the looks of a program, or texts about it, and nothing else."""

_LANGUAGES = "german french spanish portuguese italian dutch polish russian".split()
_OTHER_LANGUAGES = tuple(
    (frozenset(LISTS[language][0].split()), WORDS[language]) for language in _LANGUAGES
)
"""The question words of each language, and all of its function words.

They are in lower case, without accents.
"""

_ENGLISH_TOO = QUESTION_WORDS | WORDS["english too"]
"""Words of English, and those of them that are also names or abbreviations: no proof of another."""

GERMAN_WORDS = _OTHER_LANGUAGES[0][1]
"""Function words of German, in lower case and without accents."""

_FUNCTION_WORDS = frozenset[str]().union(*dict(_OTHER_LANGUAGES).values())

AMBIGUOUS_WORDS = _FUNCTION_WORDS & _ENGLISH_TOO - QUESTION_WORDS
"""Those of them that shape no English question: `come` and `un` point to another language."""

FOREIGN_WORDS = _FUNCTION_WORDS - _ENGLISH_TOO
"""Function words, in lower case and without accents, of languages that are not English."""

ENGLISH_WORDS = QUESTION_WORDS - _FUNCTION_WORDS
"""Those of English that are not also words of these languages, as `in`, `die` and `no` are."""

KOREAN_QUESTION_WORDS = WORDS["korean questions"]
"""Korean words that shape a question, with the particles and endings that they mostly have."""

KOREAN_PARTICLES = tuple(" ".join(LISTS["korean particles"]).split())
"""Particles at the end of a noun, longest first."""

_LAST_OF_PARTICLES = frozenset(particle[-1] for particle in KOREAN_PARTICLES)

_CONTRACTIONS = WORDS["contractions"]

_KEPT_CHARACTERS = 2_000_000
"""The characters of words whose tokens are kept, at most."""

_LONG = 200
"""The length of a text from which asking first whether it may have verbs with particles pays."""

_MOST_PARTS = 3
"""A longer name in camel case is hardly ever written in lower case."""

_NO_SPELLINGS: Mapping[str, str] = {}

_ASCII_WORD = r"[A-Za-z0-9]+"
_APOSTROPHE = r"(?<![A-Za-z])[A-Za-z]+['\u2019][A-Za-z]+"

_IDENTIFIER = (
    r"(?<![\w.])(?:(?<![/-])[\w./-]*/)?"
    r"(?:\w*[^\W_]_+[^\W_]\w*|[a-z]{2,}[A-Z][a-z]\w*|[a-z]\w+(?=\.[a-z0-9]|::\w))"
    r"(?:(?:\.(?=[a-z0-9_])|::)\w+)*"
)
"""A name in code: `acks_late`, `getUser`, `lib/send.py`, `std::move`; not PostgreSQL."""

_SPACED = rf"[^\W_{UNSPACED}]|(?![{UNSPACED}])[{MARKS}]"
_OTHER_SCRIPTS = "[\u0370-\u1dff\u3040-\ud7ff]"
_ACCENTS = f"[{_DROPPED}]"
# What joins the parts of an emoji is not a word: selectors, skin tones, signs after a joiner.
_SIGN = rf"{_FLAG}|(?!(?<=\u200d)[♀♂])[{SYMBOLS}]"
_WORD_PATTERN = rf"[{UNSPACED}]+|(?:{_SPACED})+|{_SIGN}"
_SPACED_WORD = rf"(?:[^\W_]|[{MARKS}])+|{_SIGN}"
"""The same for texts that are not `is_unspaced`."""


class QueryTerms(NamedTuple):
    """A query's distinct tokens, in the order of the query."""

    full: tuple[str, ...]
    """All except stop words and function words of another language; all if there are no others."""
    content: tuple[str, ...]
    """`full` without question and request words, and function words of another language.

    If there is nothing else, the request words, and if there are none, `full`.
    """
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The tokens of other spellings, each with the tokens in `full` that it stands for.

    A text with `sqlite` holds those of `SQLite`.
    """
    is_foreign: bool = False
    """True if the query is in another language than English, as far as its words prove one."""


def tokenize(text: str, *, as_written: bool = False) -> list[str]:
    """Returns the tokens of `text` in order, repeated ones included.

    A token holds no space, and of ASCII only lower-case letters and digits. Those of other
    spellings follow the words that are between the same spaces; `as_written` leaves them out.
    """
    if as_written:
        stems, words = _stems(), _split(nouns(text, beside=True))
        return [stems.of_part(part) for word in words for part in _parts(word)]
    chunks = text.split()
    if len(text) < _LONG or may_have_nouns(kinds(chunks)):
        chunks = nouns(text, beside=True).split()
    return " ".join(map(_stems().__getitem__, chunks)).split()


def tokens_of_chunks(chunks: Iterable[str]) -> list[str]:
    """Returns the tokens of each part of a text between spaces, joined by spaces.

    Together, they are the tokens of the text unless it has verbs with particles.
    """
    return list(map(_stems().__getitem__, chunks))


def query_terms(text: str) -> QueryTerms:
    """Returns the terms of a query."""
    stems = _stems()
    text, is_plain = nouns(text, beside=False), text.isascii() and "-" not in text
    if not is_plain:
        text = compiled(BOUND_COMPOUND).sub(lambda pair: f"{pair[1]}{pair[2]}".lower(), text)
    words = _split(compiled(_APOSTROPHE).sub(_without, text)) or _split(text)
    if foreign := _function_words(words):
        words = [word for word in words if word not in foreign] or words
    parts = [part for word in words for part in _parts(word)]
    full = [part for part in parts if part not in STOP_WORDS] or parts
    stripped = [part for word in words for part in _parts(_without_particle(word))]
    asked = [part for part in stripped if part not in QUESTION_WORDS]
    content = [part for part in asked if part not in REQUEST_WORDS] or asked or full
    terms = _distinct(stems, full)
    spellings = {}
    # Compiling the pattern takes half a millisecond.
    has_signs = not (is_plain and text.islower()) and compiled(SIGNS).search(text)
    spelled = _other_spellings(text, words) if has_signs else _NO_SPELLINGS
    for word, spelling in spelled.items():
        letters = _split(word.rstrip("0123456789"))
        tokens = [stems.of_part(part) for each in letters for part in _parts(each)]
        held = tuple([token for token in tokens if token in terms])
        if held and (token := stems.of_part(spelling)) not in terms:
            spellings[token] = held
    return QueryTerms(
        full=terms,
        content=_distinct(stems, content),
        spellings=tuple(spellings.items()),
        is_foreign=bool(foreign)
        or (not text.isascii() and compiled(_OTHER_SCRIPTS).search(text) is not None),
    )


def identifiers(text: str) -> tuple[str, ...]:
    """Returns the tokens of each identifier of several words in a query, joined by spaces.

    A path is one, and the name at its end another: a text may have the name alone.
    """
    paths = [(path, path.rpartition("/")[2]) for path in compiled(_IDENTIFIER).findall(text)]
    named = (" ".join(tokenize(word, as_written=True)) for pair in paths for word in pair)
    return tuple(dict.fromkeys(tokens for tokens in named if " " in tokens))


def matching_words(text: str, query: str) -> list[str]:
    """Returns the words of a text that share a token with a query, each once."""
    asked, stems = query_terms(query), _stems()
    terms = {*asked.content, *dict(asked.spellings)}
    words = {word for word, solid in hyphened(text).items() if stems.of_part(solid) in terms}
    for word in _split(text):
        shared = terms.intersection(stems[word].split())
        if shared and is_unspaced(word[0]):
            # In a script without spaces, a word is a whole clause, and its tokens are parts of it.
            pairs = zip(_pairs(simplified(word)), _pairs(word), strict=True)
            words.update([written for pair, written in pairs if pair in shared] or [word])
        elif shared:
            words.add(word)
    return sorted(words, key=text.find)


def excerpt(text: str, query: str, limit: int, most: int | None = None) -> str:
    """Returns at most `limit` characters of a text, from where it matches a query best.

    A text of at most that length and of `most` lines is returned as it is.
    """
    text = text.strip()
    lines = text.splitlines(keepends=True)
    if len(text) <= limit and (most is None or len(lines) <= most):
        return text
    shared = [len(matching_words(line, query)) for line in lines]
    best = shared.index(max(shared))
    start = sum(map(len, lines[:best]))
    words = matching_words(lines[best], query)
    place = min((lines[best].find(word) for word in words), default=0)
    if place > limit // 2:  # A long line: its beginning would leave out the match.
        start = text.find(" ", start + place - limit // 4) + 1
    return f"{'… ' if start else ''}{cut(text[start:].lstrip(), limit)}"


def _split(text: str) -> list[str]:
    if text.isascii():
        return compiled(_ASCII_WORD).findall(text)
    text = unicodedata.normalize("NFKC", text)
    return compiled(_WORD_PATTERN if is_unspaced(text) else _SPACED_WORD).findall(text)


def is_unspaced(text: str) -> bool:
    """Returns whether a text has characters of a script without spaces.

    Compiling their pattern takes longer than reading a hundred texts, and few texts need it.
    """
    may_be = not text.isascii() and any(
        char >= "\u3005" or "\u0e00" <= char <= "\u11ff" for char in {*text}
    )
    return may_be and compiled(f"[{UNSPACED}]").search(text) is not None


def _function_words(words: Sequence[str]) -> list[str]:
    """Returns the function words of a question in another European language; none for English.

    A language needs two proofs, more than there are other function words of English: words of it
    that are no English words, an accent, a question word in front, or three words in all. Names in
    capitals are no function words.
    """
    folded = {}
    for word in words:
        if word.islower() or word.istitle():
            folded[word] = _parts(word)[0]
    terms = frozenset(folded.values())
    best: frozenset[str] = frozenset()
    for asking, listed in _OTHER_LANGUAGES:
        held = listed & terms
        if len(held) <= len(best):
            continue
        accented = {term for word, term in folded.items() if term in held and not word.isascii()}
        native = (held - _ENGLISH_TOO) | accented
        head = next(iter(folded.values()))
        proofs = len(native) + len(accented) + (head in native & asking) + (len(held) > 2)
        if native and proofs > max(1, len((terms & QUESTION_WORDS) - listed)):
            best = held
    return [word for word, term in folded.items() if term in best] if best else []


def _without_particle(word: str) -> str:
    """Returns a Korean word without its particle; empty for a question word or a particle."""
    if word in KOREAN_QUESTION_WORDS or word in KOREAN_PARTICLES:
        return ""
    if word[-1] in _LAST_OF_PARTICLES:
        for particle in KOREAN_PARTICLES:
            if word.endswith(particle) and len(word) >= len(particle) + 2:
                return word.removesuffix(particle)
    return word


def _without(match: re.Match[str]) -> str:
    """Returns a word with an apostrophe, or a space for a contraction."""
    is_contraction = match[0].lower().replace("\u2019", "'") in _CONTRACTIONS
    return " " if is_contraction else match[0]


def _parts(word: str) -> list[str]:
    """Returns the pieces of one word, lower case and without accents, before stemming."""
    if word.isascii():
        plain = word.islower() and word.isalpha()
        return [word] if plain else [part.lower() for part in compiled(PARTS).findall(word)]
    if is_unspaced(word[0]):
        return _pairs(simplified(word))
    bare = compiled(_ACCENTS).sub("", unicodedata.normalize("NFKD", word))
    return [bare.casefold().translate(_PLAIN)]


def _other_spellings(text: str, words: Iterable[str]) -> dict[str, str]:
    """Returns other spellings of a text's words, such as `sqlite` for `SQLite`, by these words."""
    spellings = {}
    if "-" in text or "\u2010" in text or "\u2011" in text:
        # A verb with a particle has its noun already.
        compounds = hyphened(text).items()
        spellings = {word: solid for word, solid in compounds if nouns(word, beside=False) == word}
    for word in words:
        if not word.isascii():
            name = word[:2] in korean_names() and name_in_latin(word, _without_particle(word))
            if name:
                spellings[word] = name
        elif not (word.islower() or word.istitle()):
            letters = word.rstrip("0123456789")
            parts = compiled(PARTS).findall(letters)
            if 1 < len(parts) <= (_MOST_PARTS if word[0].isupper() else 2) and letters.isalpha():
                spellings[word] = letters.lower()
    return spellings


def _pairs(word: str) -> list[str]:
    """Returns the pairs of neighbouring characters, or a character alone."""
    return [word[i : i + 2] for i in range(len(word) - 1)] or [word]


def _distinct(stems: _Stems, parts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join([stems.of_part(part) for part in parts]).split()))


class _Stems(dict[str, str]):
    """The tokens of each chunk of text between two spaces, joined by spaces; filled on demand.

    A chunk is a word with its punctuation marks. Texts repeat most of them.
    """

    def __init__(self, stem: Callable[[str], str]) -> None:
        super().__init__()
        self._stem = stem
        self._characters = 0

    def __missing__(self, chunk: str) -> str:
        self._characters += len(chunk)
        if self._characters > _KEPT_CHARACTERS:
            self.clear()
            self._characters = len(chunk)
        if chunk.isascii() and chunk.isalpha() and chunk.islower():
            self[chunk] = stem = self.of_part(chunk)
            return stem
        words = _split(chunk)
        spellings: Mapping[str, str] = _NO_SPELLINGS
        is_plain = "-" not in chunk and chunk.islower() and chunk.isascii()
        if not is_plain and compiled(SIGNS).search(chunk):
            spellings = _other_spellings(chunk, words)
        if words == [chunk] and not spellings:
            joined = " ".join([self.of_part(part) for part in _parts(chunk)])
        elif not spellings:
            joined = " ".join(filter(None, map(self.__getitem__, words)))
        else:
            # The tokens of the parts stay neighbours.
            parts = [
                self[word]
                if word.islower() or word.istitle()
                else " ".join(map(self.of_part, _parts(word)))
                for word in words
            ]
            tokens = " ".join(parts).split()
            new = dict.fromkeys(map(self.of_part, spellings.values()))
            joined = " ".join([*tokens, *(token for token in new if token not in tokens)])
        self[chunk] = joined
        return joined

    def of_part(self, part: str) -> str:
        if not (part.isascii() and part.isalpha()):
            return part
        # Porter's stem of a lone "s" is empty, but "S3" needs it.
        stem = self._stem(root(part)) or part
        # It makes "deploi" of "deploy", but "deploy" of "deployable".
        return f"{stem[:-1]}i" if stem[-1] == "y" and compiled("[aeiou]").search(stem) else stem


@cache
def _stems() -> _Stems:
    from Stemmer import Stemmer

    return _Stems(Stemmer("porter").stemWord)


_CHORES = frozenset(
    "rename reformat kdoc javadoc doxygen jsdoc comment comments formatter prettier ruff eslint"
    " unused commit rebase conflict conflicts undo regex regexp thanks margin diff diagram paginate"
    " pagination spelling translate whitespace".split()
)
_SHOWING = frozenset(
    "align describe display document extract hide highlight list log print show sort".split()
)
"""Words that begin a task to show or to move something."""
_CHORES_BEGIN = ("lint", "alphabetical", "indent")
_KOREAN_CHORES = "린트 커밋 오타 주석 정규식 고마워 목차 배경색 말줄임 임포트 리베이스".split()
_CHORE_PHRASES = (
    r"\b(?:format (?:the|this|all)|unit tests?|type hints?|\w+-format|thank you|pull request"
    r"|split (?:this|the|up|\S+\.\w+|\S+ into)|bump \S+ (?:from|to)"
    r"|(?:write|add) (?:an? |the |some |more )?(?:\w+ )?\w*tests?"
    r"|explain (?:what|this|line|how th)|what (?:does|do) (?:this|that|the)"
    r"|show me (?:the|an?|all)"
    r"|(?:in)?to (?:its|their|an?) own (?:function|method|class|module|file|component))\b"
    r"|\badd an? (?:\w+ ){0,4}(?:attribute|badge|button|dialog|icon|logo|menu|tooltip)\b"
    r"|\b(?:title|alt|aria) attribute\b|\bfields? .{1,60}\b(?:form|page|settings|screen)\b"
    r"|\b(?:to|into) (?:an?|the|its|another) (?:\w+ ){0,2}(?:folder|directory|settings file)\b"
    r"|\badd an? (?:\w+ ){0,3}(?:description|log (?:line|message))\b|\bthe (?:\w+ ){0,3}labels?\b"
    r"|\bto the (?:current|latest|newest) (?:\w+ ){0,2}(?:release|version)\b"
    r"|\bimport 정리|test\S*+(?: \S++)? fail"
)
_OF_PHRASES = (
    "format own test hint thank pull split bump explain what show add attribute field folder"
    " directory settings label release version".split()
)
"""Tasks that change no behaviour, or only looks: a shared word rarely means that a memory matters.

Each phrase contains one of `_OF_PHRASES`, or `정리`. Compiling a pattern of all words and phrases
would take longer than all else that is done with a prompt.
"""


def is_chore(text: str, *, shows: bool = True) -> bool:
    """Returns whether a prompt in lower case names a task that rarely changes behaviour.

    With `shows`, so is one to show something.
    """
    words = compiled(r"\w+").findall(text)
    named = LOOKS.union(_CHORES).intersection(words)
    if named or (shows and _SHOWING.intersection(words[:1])):
        return True
    if any(map(text.__contains__, _KOREAN_CHORES)):
        return True
    for word in words:
        if word.startswith(_CHORES_BEGIN) or word.endswith("fmt"):
            return True
    has_phrase = "정리" in text or any(map(text.__contains__, _OF_PHRASES))
    return has_phrase and compiled(_CHORE_PHRASES).search(text) is not None
