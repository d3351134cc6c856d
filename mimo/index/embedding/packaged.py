"""The packaged model, read without numpy or a tokenizer library.

The vector of a text is the mean of the rows of its tokens but `[UNK]`, as `StaticModel.encode` of
model2vec computes it, scaled to length 127 and rounded to int8.

Other languages than English have rows of their own, in the space of the English ones and in the
same units. Runs of Hangul, and of kana and Han, are cut into the longest pieces that have a row.
German, French and Spanish have rows for whole words, used if a text has several of them. The
remaining text, and so all of an English text, goes through the English tokenizer.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain, islice
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimo.frozen import NamedTuple
from mimo.index.embedding import Text
from mimo.text.clean import compiled
from mimo.text.tokens import HANGUL, KANA_HAN, QUESTION_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mimo.index.embedding.alignment import Aligner
    from mimo.index.embedding.korean import Glossary


SCANS = 20
"""The number of pieces searched in the file's bytes; building a table takes as long as about 20."""

BISECTIONS = 1_000
"""The number of pieces searched by bisection; building a table takes as long as about 2,000."""


class Vocabulary:
    """A list of word pieces, one a line; the id of a piece is its line number, from 0."""

    def __init__(self, lines: bytes) -> None:
        """Takes the list in UTF-8, without a final newline."""
        self._lines = b"\n%b\n" % lines
        self._scans = 0

    def find(self, piece: str) -> int | None:
        """Returns the id of a piece, or None.

        The first few calls search the lines, so that a short query needs no table.
        """
        if self._scans >= SCANS:
            return self._table.get(piece)
        self._scans += 1
        place = self._lines.find(b"\n%b\n" % piece.encode())
        return None if place < 0 else self._lines.count(b"\n", 0, place)

    @cached_property
    def _table(self) -> dict[str, int]:
        pieces = self._lines[1:-1].decode().split("\n")
        return dict(zip(pieces, range(len(pieces)), strict=True))


class SortedVocabulary:
    """Pieces with their row numbers, one a line (`piece<tab>row`), sorted by their bytes."""

    def __init__(self, lines: bytes) -> None:
        """Takes the list in UTF-8, without a final newline."""
        self._lines = lines
        self._searches = 0

    def find(self, piece: str) -> int | None:
        """Returns the row of a piece, or None; the first calls bisect the lines."""
        if self._searches >= BISECTIONS:
            return self._table.get(piece)
        self._searches += 1
        wanted, lines = piece.encode(), self._lines
        low, high = 0, len(lines)
        while low < high:
            start = lines.rfind(b"\n", low, (low + high) // 2) + 1 or low
            tab = lines.find(b"\t", start)
            middle = lines[start:tab]
            if middle < wanted:
                low = lines.find(b"\n", tab) + 1 or len(lines)
            elif middle > wanted:
                high = start
            else:
                end = lines.find(b"\n", tab)
                return int(lines[tab + 1 : end if end >= 0 else None])
        return None

    @cached_property
    def _table(self) -> dict[str, int]:
        pairs = (line.split("\t") for line in self._lines.decode().split("\n"))
        return {piece: int(row) for piece, row in pairs}


UNKNOWN = 1
"""The id of `[UNK]`."""

_MAX_WORD = 100
"""Longer words are unknown as a whole."""

_SPECIAL = {"[PAD]": 0, "[UNK]": UNKNOWN}
_SPECIAL_PATTERN = r"(\[PAD\]|\[UNK\])"
_ASCII_SYMBOLS = "$+<=>^`|~"

_CHINESE = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip

# BERT's tokenizer has the tables of Unicode 8: later marks and punctuation are letters to it. These
# are the first and last character of each range in turn; unassigned ones are letters too.
_LATER = (
    0x61D, 0x61D, 0x7FD, 0x7FD, 0x890, 0x8E2, 0x9FD, 0x9FE, 0xA76, 0xA76, 0xAFA, 0xAFF,
    0xB55, 0xB55, 0xC04, 0xC3C, 0xC77, 0xC77, 0xC84, 0xC84, 0xD00, 0xD00, 0xD3B, 0xD3C,
    0xD81, 0xD81, 0xEBA, 0xEBA, 0xECE, 0xECE, 0x180F, 0x1886, 0x1ABF, 0x1ACE, 0x1B7D, 0x1B7E,
    0x1DF6, 0x1DFB, 0x2E43, 0x2E5D, 0xA82C, 0xA82C, 0xA8C5, 0xA8C5, 0xA8FF, 0xA8FF,
    0xA9BD, 0xA9BD, 0x10D24, 0x10F89, 0x11070, 0x11074, 0x110C2, 0x110CD, 0x111CF, 0x111CF,
    0x1123E, 0x11241, 0x1133B, 0x1133B, 0x11438, 0x1145E, 0x11660, 0x1166C, 0x116B9, 0x116B9,
    0x1182F, 0x1183B, 0x11938, 0x11FFF, 0x12FF1, 0x13455, 0x16E97, 0x16F4F, 0x16FE2, 0x16FE4,
    0x1CF00, 0x1CF46, 0x1E000, 0x1E4EF, 0x1E944, 0x1E95F,
)  # fmt: skip

_RECLASSIFIED = {0x166D: " \u166d ", 0x1734: "", 0x111C9: " \U000111c9 "}
"""Characters whose class in Unicode changed after version 8."""


class _Characters(dict[int, str]):
    """The replacements of characters for `str.translate`, computed on first use."""

    def __missing__(self, code: int) -> str:
        made = self[code] = _normalised(code)
        return made


class WordPiece:
    """BERT's tokenizer: cuts text into word pieces, with a cache of words."""

    def __init__(self, find: Callable[[str], int | None]) -> None:
        """Takes the vocabulary as a function from a piece to its id; inner pieces begin with ##."""
        self._find = find
        self._characters = _Characters()
        self._pieces = lru_cache(maxsize=1 << 15)(self._cut)

    def ids(self, text: str, limit: int) -> list[int]:
        """Returns the ids of the first `limit` pieces of `text`, `UNKNOWN` among them."""
        return list(islice(chain.from_iterable(map(self._pieces, self._words(text))), limit))

    def _words(self, text: str) -> Iterable[str]:
        """Returns normalised words and punctuation marks, and special tokens unchanged."""
        if "[" not in text:
            return text.translate(self._characters).split()
        sections = compiled(_SPECIAL_PATTERN).split(text)
        return chain.from_iterable(
            [section] if section in _SPECIAL else section.translate(self._characters).split()
            for section in sections
        )

    def _cut(self, word: str) -> tuple[int, ...]:
        """Returns the longest pieces of `word`; only `UNKNOWN` if a part of it has no piece."""
        if word in _SPECIAL:
            return (_SPECIAL[word],)
        if len(word) > _MAX_WORD:
            return (UNKNOWN,)
        pieces: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._find(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return (UNKNOWN,)
            pieces.append(piece)
            start, prefix = end, "##"
        return tuple(pieces)


def _normalised(code: int) -> str:
    """Returns the replacement of a character: empty, lower case, or a word between spaces."""
    character = chr(code)
    if character in "\t\n\r":
        return " "
    if code in (0, 0xFFFD):
        return ""
    if code in _RECLASSIFIED:
        return _RECLASSIFIED[code]
    if any(first <= code <= last for first, last in _CHINESE):
        return f" {unicodedata.normalize('NFD', character)} "
    category = unicodedata.category(character)
    if category == "Cn" or _is_later(code):
        return character
    if category.startswith("C"):
        return ""
    if character.isspace():
        return " "
    parts = unicodedata.normalize("NFD", character)
    return "".join(map(_folded, parts))


def _folded(part: str) -> str:
    """Returns a decomposed character: lower case; marks removed; punctuation between spaces."""
    category = unicodedata.category(part)
    if category == "Mn":
        return ""
    if category.startswith("P") or part in _ASCII_SYMBOLS:
        return f" {part} "
    return part.lower()


def _is_later(code: int) -> bool:
    """Returns whether `code` is in one of the ranges of `_LATER`."""
    place = bisect_left(_LATER, code)
    return place < len(_LATER) and (place % 2 == 1 or _LATER[place] == code)


_FOREIGN = f"[{HANGUL}{KANA_HAN}]+"
_RUNS = f"[{HANGUL}]+|[{KANA_HAN}]+"
"""A run of one of the scripts; Korean and Chinese pieces are not mixed in one."""

_WORD = r"[^\W_]+"

LONGEST_PIECE = 18
"""The most characters of a Hangul, kana or Han piece."""

FEWEST_WORDS = 2
LEAST_SHARE = 0.15
"""The number and share of German, French or Spanish words from which their rows count.

English texts contain such words as names; below these limits their vectors stay as they are.
"""


_FUNCTION_WORDS = frozenset(
    # German, Dutch, French, Spanish, Portuguese and Italian
    "der die das den dem des ein eine einer einem einen und oder nicht ist sind war wird werden mit"
    " von vom zu zum zur im am auf aus bei fur wie wer wo wann warum welche welcher welches wieviel"
    " de het een en niet zijn wordt met voor wat hoe welke waar wie"
    " le la les du un une et est sont pas dans pour avec sur que qui quoi quel quelle quels quelles"
    " comment pourquoi quand ou combien au aux ce cette"
    " el los las del una es son fue por para con sin como cual cuales cuando donde quien cuanto"
    " cuantos cuantas"
    " uma nao dos das na qual quais quando onde quem quanto"
    " il gli di che sono dove quale quali chi perche nel nella della".split()
)
"""Words that are frequent in other languages, without accents."""

ENGLISH_SHARE = 0.8
"""The least share of Latin letters in an English text."""


class Languages:
    """Separates the pieces of other languages, which have rows of their own, from a text."""

    def __init__(self, find: Callable[[str], int | None]) -> None:
        """Takes a function from a piece to its row in the table; inner pieces begin with ##."""
        self._find = find
        self._pieces = lru_cache(maxsize=1 << 15)(self._cut)
        self._words = lru_cache(maxsize=1 << 15)(self._row_of_word)

    def separate(self, text: str) -> tuple[str, list[int]]:
        """Returns the text that is left for the English tokenizer, and the rows of the rest.

        A text without such pieces is returned unchanged.
        """
        composed = text if text.isascii() else unicodedata.normalize("NFC", text)
        if not text.isascii() and compiled(_FOREIGN).search(composed):
            runs = compiled(_RUNS).findall(composed)
            rows = [row for run in runs for row in self._pieces(run)]
            return compiled(_FOREIGN).sub(" ", composed), rows
        words = compiled(_WORD).findall(composed)
        rows = [row for word in words if (row := self._words(word)) is not None]
        if len(rows) < max(FEWEST_WORDS, LEAST_SHARE * len(words)):
            return text, []
        return compiled(_WORD).sub(self._unless_known, composed), rows

    def known(self, text: str) -> int:
        """Returns the number of words of German, French or Spanish in a text."""
        composed = text if text.isascii() else unicodedata.normalize("NFC", text)
        words = compiled(_WORD).findall(composed)
        return len(words) - list(map(self._words, words)).count(None)

    def _unless_known(self, match: re.Match[str]) -> str:
        return match[0] if self._words(match[0]) is None else " "

    def _row_of_word(self, word: str) -> int | None:
        if word.isascii():
            return self._find(word.lower())
        parts = unicodedata.normalize("NFD", word.lower())
        return self._find("".join([part for part in parts if unicodedata.category(part) != "Mn"]))

    def _cut(self, run: str) -> tuple[int, ...]:
        """Returns the rows of the longest pieces of `run`; characters without one are skipped."""
        rows: list[int] = []
        start, prefix = 0, ""
        while start < len(run):
            for end in range(min(len(run), start + LONGEST_PIECE), start, -1):
                row = self._find(prefix + run[start:end])
                if row is not None:
                    rows.append(row)
                    start = end
                    break
            else:
                start += 1
            prefix = "##"
        return tuple(rows)


class _Chunks(dict[str, bytes]):
    """The ids of each chunk of text between two spaces, as numbers for numpy; filled on demand.

    A chunk is a word with its punctuation marks. Many texts repeat most of them.
    """

    def __init__(self, word_piece: WordPiece, languages: Languages) -> None:
        """Takes the readers of English, and of other languages."""
        super().__init__()
        self._word_piece = word_piece
        self._languages = languages
        self._odd: dict[str, int] = {}
        """The number of words in other languages, by chunk; chunks with `UNKNOWN` are here, too."""
        self.characters = 0

    def __missing__(self, chunk: str) -> bytes:
        import numpy as np

        self.characters += len(chunk)
        foreign, ids = self._languages.known(chunk), self._word_piece.ids(chunk, MAX_TOKENS)
        if foreign or UNKNOWN in ids:
            self._odd[chunk] = foreign
        data = self[chunk] = np.array(ids, np.intp).tobytes()
        return data

    def read(self, text: str) -> _Tokens | None:
        """Returns the tokens of a text; None if its words are not its parts between spaces."""
        import numpy as np

        if compiled(_DELETED_SPACE).search(text):
            return None
        if not text.isascii():
            text = text.encode("utf-8", "ignore").decode()
            if compiled(_FOREIGN).search(unicodedata.normalize("NFC", text)):
                return None
        chunks = text.split()
        ids = np.frombuffer(b"".join(map(self.__getitem__, chunks)), np.intp)
        if self._odd.keys().isdisjoint(chunks):
            return _Tokens(ids, len(ids), 0)
        foreign = sum([self._odd[chunk] for chunk in chunks if chunk in self._odd])
        return _Tokens(ids[ids != UNKNOWN], len(ids), foreign)


class _Tokens(NamedTuple):
    """The English tokens of a part of a text."""

    ids: NDArray[np.intp]
    """Without `UNKNOWN`."""
    size: int
    """Their number with `UNKNOWN`."""
    foreign: int
    """The number of words in other languages."""


def _can_join(text: str, tokens: int, foreign: int) -> bool:
    """Returns whether the tokens of a text are those of its parts, which have so many of them."""
    if len(text) > MAX_CHARACTERS or tokens > MAX_TOKENS:
        return False
    if foreign < FEWEST_WORDS:
        return True
    words = compiled(_WORD).findall(unicodedata.normalize("NFC", text))
    return foreign < LEAST_SHARE * len(words)


FOLDER = Path(__file__).parents[2] / "model"

SHA256 = "8377b02827b2003807c7705c5b191ff20f0b7f51fd752333c5026c23c13b5458"
"""The hash of `model.safetensors`; hashing 7.5 MB would take longer than a search."""

LANGUAGES_SHA256 = "cc9785f41baf276a91ff33e6ba4e36e8cfb1caab3d439fc53747bbf4f2c2154b"
"""The hash of `multilingual.int8`."""

GLOSSARY_SHA256 = "67ee0c34d3bba18f0dbb375b303db79a012643c6530a1728476eb6af95cddd11"
"""The hash of `korean.txt` and `korean.learned.txt`, one after the other."""

ENGLISH_ROWS = 29_525
"""The number of rows in `model.safetensors`; ids from here on are rows of `multilingual.int8`."""

DIMS = 256

MAX_TOKENS = 512
"""As in config.json; `[UNK]` counts."""

MAX_CHARACTERS = MAX_TOKENS * 6
"""The length to which model2vec cuts a text; 6 is the median length of its pieces."""

BULK_CHARACTERS = 100_000
"""From this length, numpy saves more time than loading it takes."""

_BATCH = 1024
"""The number of texts encoded at a time; the means of a batch take 1 MB."""

_CHUNKS_CHARACTERS = 500_000
"""The characters of chunks whose tokens are kept, at most."""

_DELETED_SPACE = "[\x0b\x0c\x1c-\x1f\x85]"
"""Controls that count as spaces in Python, but that BERT's tokenizer deletes."""

_BIAS = 128
_TO_UNSIGNED = bytes((value + _BIAS) % 256 for value in range(256))


class PackagedModel:
    """An `Embedder` of the packaged model; the first text opens its files."""

    model = f"all-MiniLM-L6-v2-d256-int8:{SHA256[:12]}+{LANGUAGES_SHA256[:12]}"
    dims = DIMS

    def encode(self, text: str) -> bytes:
        """Returns the vector of `text`; empty if it has no token of the model."""
        return _quantised(self._mean(self.tokens(text)))

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the same vectors as `encode`."""
        return self.encode_joined([Text(text, (text,)) for text in texts])

    def encode_joined(self, texts: Sequence[Text]) -> list[bytes]:
        """Returns the same vectors as `encode`.

        If there is much text, numpy adds up the rows.
        """
        if "numpy" not in sys.modules and sum(len(text.whole) for text in texts) < BULK_CHARACTERS:
            return [self.encode(text.whole) for text in texts]
        from mimo.index.embedding.static import quantised

        vectors: list[bytes] = []
        for start in range(0, len(texts), _BATCH):
            vectors += quantised(self._means(texts[start : start + _BATCH]))
        return vectors

    def _means(self, texts: Sequence[Text]) -> NDArray[np.float32]:
        """Returns the means of the rows of each text's tokens; zeros for a text without any."""
        import numpy as np

        if self._chunks.characters > _CHUNKS_CHARACTERS:
            vars(self).pop("_chunks", None)  # Another thread may have done so.
        chunks = self._chunks
        parts = list(dict.fromkeys(["", *[part for text in texts for part in text.parts]]))
        totals, counts = np.zeros((len(parts), DIMS), np.int32), np.zeros((len(parts), 3), np.intp)
        for place, part in enumerate(parts):
            if tokens := chunks.read(part):
                totals[place] = self._total(tokens.ids)
                counts[place] = len(tokens.ids), tokens.size, tokens.foreign
            else:
                counts[place] = 0, MAX_TOKENS + 1, 0
        # Each text as the places of its parts, filled up with that of the empty part.
        places = dict(zip(parts, range(len(parts)), strict=True))
        rows = [[places[part] for part in text.parts] for text in texts]
        longest = max(map(len, rows))
        of_text = np.array([row + [0] * (longest - len(row)) for row in rows], np.intp)
        sums, counted = totals[of_text[:, 0]], counts[of_text].sum(axis=1)
        for column in of_text.T[1:]:
            sums += totals[column]
        odd = (counted[:, 1] > MAX_TOKENS) | (counted[:, 2] >= FEWEST_WORDS)
        odd |= np.array([len(text.whole) for text in texts]) > MAX_CHARACTERS
        for place in np.flatnonzero(odd).tolist():
            if not _can_join(texts[place].whole, *counted[place, 1:].tolist()):
                ids = self.tokens(texts[place].whole)
                sums[place], counted[place, 0] = (
                    self._rows(np.array(ids, np.intp)).sum(axis=0),
                    len(ids),
                )
        means: NDArray[np.float64] = sums / np.maximum(counted[:, :1], 1)
        return means.astype(np.float32)

    def _total(self, ids: NDArray[np.intp]) -> NDArray[np.integer[Any]]:
        """Returns the sum of the rows of English tokens."""
        import numpy as np

        # 16 bits hold the sum of so few rows.
        kind = np.int16 if len(ids) < 1 << 8 else np.int32
        rows = self._matrices[0].take(ids, axis=0)
        total: NDArray[np.integer[Any]] = np.add.reduce(rows, axis=0, dtype=kind)
        return total

    def is_english(self, text: str) -> bool:
        """Returns whether most of `text` can be English, by its letters and its words."""
        if not text.isascii():
            letters = [character for character in text if character.isalpha()]
            latin = sum(letter < "\u0250" or "\u1e00" <= letter < "\u1f00" for letter in letters)
            if latin < ENGLISH_SHARE * len(letters):
                return False
            if compiled(_FOREIGN).search(text):
                return True
        parts = unicodedata.normalize("NFD", text.lower())
        words = compiled(_WORD).findall(
            "".join(p for p in parts if unicodedata.category(p) != "Mn")
        )
        foreign = sum(word in _FUNCTION_WORDS for word in words)
        english = sum(word in QUESTION_WORDS for word in words)
        if foreign >= FEWEST_WORDS and foreign > english:
            return False
        return not self._languages.separate(text)[1]

    def readable(self, text: str) -> str:
        """Returns `text` with English words for Korean ones; empty if it is not English then."""
        if compiled(f"[{HANGUL}]").search(text):
            text = self._glossary.gloss(text)
        return text if self.is_english(text) else ""

    def correspondence(self, query: str, texts: Sequence[str]) -> list[float]:
        """Returns the share of the query's words that correspond to a word of each text, 0..1."""
        return self._aligner.correspondence(query, texts)

    def tokens(self, text: str) -> list[int]:
        """Returns the ids of the tokens in the vector of `text`."""
        return self._ids(*self._languages.separate(_readable(text)))

    def _ids(self, text: str, rows: list[int]) -> list[int]:
        ids = self._word_piece.ids(text, MAX_TOKENS)
        return [id for id in ids if id != UNKNOWN] + [ENGLISH_ROWS + row for row in rows]

    def _mean(self, tokens: list[int]) -> array[float]:
        """Returns the mean of the tokens' rows, in float32 as in model2vec; empty for no tokens."""
        if not tokens:
            return array("f")
        total = sum(map(self._row, tokens))
        lanes = memoryview(total.to_bytes(4 * DIMS, "little")).cast("I")
        count = len(tokens)
        bias = _BIAS * count
        return array("f", [(lane - bias) / count for lane in lanes])

    @cached_property
    def _row(self) -> Callable[[int], int]:
        """Returns a token's row as an integer of 32-bit lanes: adding two adds all numbers."""
        english = _mapped(FOLDER / "model.safetensors")
        start = 8 + int.from_bytes(english[:8], "little")
        languages = _mapped(FOLDER / "multilingual.int8")

        def row(token: int) -> int:
            lanes = bytearray(4 * DIMS)
            if token < ENGLISH_ROWS:
                matrix, first = english, start + token * DIMS
            else:
                matrix, first = languages, (token - ENGLISH_ROWS) * DIMS
            lanes[::4] = matrix[first : first + DIMS].translate(_TO_UNSIGNED)
            return int.from_bytes(lanes, "little")

        return lru_cache(maxsize=4096)(row)

    @cached_property
    def _word_piece(self) -> WordPiece:
        return WordPiece(Vocabulary((FOLDER / "vocab.txt").read_bytes()).find)

    @cached_property
    def _languages(self) -> Languages:
        pieces = SortedVocabulary((FOLDER / "multilingual.vocab.txt").read_bytes())
        return Languages(pieces.find)

    @cached_property
    def _chunks(self) -> _Chunks:
        return _Chunks(self._word_piece, self._languages)

    @cached_property
    def _aligner(self) -> Aligner:
        from mimo.index.embedding.alignment import Aligner

        return Aligner(self._tokens_of_word, self._rows)

    def _tokens_of_word(self, word: str) -> list[int]:
        """Returns the tokens of a word, and of English words for a Korean one."""
        tokens = self.tokens(word)
        if compiled(f"[{HANGUL}]").match(word):
            tokens += self.tokens(self._glossary.meaning(word))
        return tokens

    @cached_property
    def _glossary(self) -> Glossary:
        from mimo.index.embedding.korean import Glossary

        written, learned = (
            (FOLDER / name).read_text(encoding="utf-8")
            for name in ("korean.txt", "korean.learned.txt")
        )
        return Glossary(written, learned)

    def _rows(self, ids: NDArray[np.intp]) -> NDArray[np.float32]:
        """Returns the rows of tokens."""
        import numpy as np

        matrix, others = self._matrices
        rows = np.empty((len(ids), DIMS), np.float32)
        english = ids < ENGLISH_ROWS
        rows[english] = matrix[ids[english]]
        rows[~english] = others[ids[~english] - ENGLISH_ROWS]
        return rows

    @cached_property
    def _matrices(self) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """The rows of the English tokens, and of other languages', mapped into memory."""
        import numpy as np

        file = np.frombuffer(_mapped(FOLDER / "model.safetensors"), np.int8)
        start = 8 + int.from_bytes(file[:8].tobytes(), "little")
        others = np.frombuffer(_mapped(FOLDER / "multilingual.int8"), np.int8)
        return file[start:].reshape(-1, DIMS), others.reshape(-1, DIMS)


@cache
def packaged_model() -> PackagedModel:
    """Returns the packaged model, one for the whole process: it keeps what it has read.

    It is the same for all projects, however often one is opened again, and for the encoder.
    """
    return PackagedModel()


def _mapped(path: Path) -> mmap:
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)


def _readable(text: str) -> str:
    """Returns the encoded part of `text`, without lone surrogates, which UTF-8 can't hold."""
    return text[:MAX_CHARACTERS].encode("utf-8", "ignore").decode()


def _quantised(mean: array[float]) -> bytes:
    """Returns `mean` at length 127 in int8; empty if its length is 0."""
    length = math.hypot(*mean)
    if not length:
        return b""
    scale = 127 / length
    return array("b", [round(value * scale) for value in mean]).tobytes()
