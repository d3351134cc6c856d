"""A memory as the index stores it: cut into units and passages, tokenised, its vectors named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from mimo.data import disk
from mimo.frozen import NamedTuple, frozen
from mimo.index import rows
from mimo.index.schema import marks
from mimo.memory import naming
from mimo.memory.duplicates import statement
from mimo.memory.model import Memory, Record
from mimo.text.clean import compiled
from mimo.text.families import kinds, may_have_nouns
from mimo.text.phrases import SENTENCE_TAIL
from mimo.text.tokens import UNSPACED, tokenize, tokens_of_chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

UNIT_WORDS = 60
PASSAGE_WORDS = 200

_LONGEST_WORD = 80
"""Characters; longer text without a space (an address, encoded data) counts as several words."""
_WORD = rf"\S{{1,{_LONGEST_WORD}}}\s*"
_UNSPACED = f"[{UNSPACED}]"
_PREFIX = r"\s*([^\W\d_][\w .'-]{0,30}?)\s*:(?=\s)"

_USERS = frozenset({"user", "human"})
_ASSISTANTS = frozenset({"assistant", "ai"})

_LINE, _AFTER_DIGIT, _LINE_AFTER_DIGIT = r':(?<=[^\s"\d]:)\d', r":(?<=\d:)\d", r"\.[A-Za-z]\w*:\d"
_NAME = r"#[^ #]"
"""A place in a file, such as `a.py:3` or `a.py#name`; no colon of JSON, and no time.

All but the third begin with a certain character, which is found quickly.
"""

_TALK = (("me my", 0.001), ("you your", 0.005))
"""Words with which people speak of themselves and to each other, and their least share of a chat.

98 % of long chats with an assistant have both, and 2 % of the texts in `/usr/share/doc`.
"""


class Unit(NamedTuple):
    """At most 60 words of a text: the passage that a match points at."""

    text: str
    """The exact text, line breaks included."""
    start: int
    """The offset in the whole text, in characters."""
    line0: int
    """The 0-based line of the text on which it begins."""
    tokens: str
    """Joined by spaces, as all tokens here."""
    speakers: str = ""
    """The names at the beginning of its lines (`Caroline: …`), but not users and assistants. Names
    are joined by spaces, the words of a name by `_`."""


class Analysis(NamedTuple):
    """A text, cut and tokenised."""

    units: tuple[Unit, ...]
    passages: tuple[str, ...]
    """The tokens of up to 200 words each; of a chat with an assistant, of the user's lines only."""


class _Piece(NamedTuple):
    """A line, or a part of a long line."""

    start: int
    end: int
    line: int
    words: int


def analyse(text: str) -> Analysis:
    """Returns the units and passages of `text`; none if it has no words."""
    lines: list[_Piece] = []
    start = 0
    for number, line in enumerate(text.split("\n")):
        end = start + len(line)
        if line and not line.isspace():
            lines.append(_Piece(start, end, number, _words(line)))
        start = end + 1
    groups = list(_packed(text, lines, UNIT_WORDS))
    spans = _spans(groups)
    chunks = _chunks(text, groups)
    units: list[Unit] = []
    for group, span in zip(groups, spans, strict=True):
        start, part = group[0].start, text[group[0].start : group[-1].end]
        held = chunks.between(*span) if chunks else None
        if held := " ".join(tokenize(part)) if held is None else held:
            speakers = _speakers(part) if ":" in part else ""
            units.append(Unit(part, start, group[0].line, held, speakers))
    user_lines = _user_lines(text, lines)
    if user_lines is None and len(units) <= 1:
        return Analysis(tuple(units), tuple([unit.tokens for unit in units]))
    if user_lines is not None:
        lines, chunks = user_lines, None
    passages: list[str] = []
    groups = list(_packed(text, lines, PASSAGE_WORDS))
    for group, span in zip(groups, _spans(groups), strict=True):
        held = chunks.between(*span) if chunks else None
        if held := " ".join(tokenize(_joined(text, group))) if held is None else held:
            passages.append(held)
    return Analysis(tuple(units), tuple(passages))


def _spans(groups: Sequence[Sequence[_Piece]]) -> list[tuple[int, int]]:
    """Returns the first word of each group, and the one after its last, counted from 0."""
    sizes = [sum([piece.words for piece in group]) for group in groups]
    return list(pairwise(accumulate(sizes, initial=0)))


class _Chunks:
    """The tokens of each part of a text between spaces."""

    def __init__(self, chunks: Sequence[str]) -> None:
        self._kinds = kinds(chunks)
        self._tokens = tokens_of_chunks(chunks)

    def between(self, start: int, end: int) -> str | None:
        """Returns the tokens of some neighbouring chunks; None if they may have others, too."""
        if may_have_nouns(self._kinds, start, end):
            return None
        return " ".join(filter(None, self._tokens[start:end]))


def _chunks(text: str, groups: Sequence[Sequence[_Piece]]) -> _Chunks | None:
    """Returns the tokens of each word of a text; None if a word is cut, or counts as several."""
    chunks = text.split()
    words = sum([piece.words for group in groups for piece in group])
    return _Chunks(chunks) if words == len(chunks) else None


def _speaker(line: str) -> str:
    """Returns the name before the colon at the beginning of a line, or an empty string."""
    match = compiled(_PREFIX).match(line)
    return match[1].lower() if match else ""


def _speakers(part: str) -> str:
    """Returns the names before colons at the beginnings of lines."""
    names = dict.fromkeys(_speaker(line) for line in part.split("\n") if ":" in line)
    people = [name for name in names if name not in _USERS | _ASSISTANTS]
    return " ".join(filter(None, ("_".join(tokenize(name)) for name in people)))


def _words(text: str) -> int:
    """Returns the number of words that a part of a text counts as."""
    spaced = len(text.split())
    if len(text) > _LONGEST_WORD * spaced:
        spaced = len(compiled(_WORD).findall(text))
    if text.isascii():
        return spaced
    # In a script without spaces, a pair of characters is a word, as in the tokens.
    return max(spaced, len(compiled(_UNSPACED).findall(text)) // 2)


def _packed(text: str, lines: Iterable[_Piece], limit: int) -> Iterator[list[_Piece]]:
    """Yields groups of neighbouring pieces with at most `limit` words in each group."""
    group: list[_Piece] = []
    size = 0
    for line in lines:
        for piece in _cut(text, line, limit) if line.words > limit else (line,):
            if group and size + piece.words > limit:
                yield group
                group, size = [], 0
            group.append(piece)
            size += piece.words
    if group:
        yield group


def _cut(text: str, line: _Piece, limit: int) -> Iterator[_Piece]:
    """Yields the sentences of a line, and parts of those with more words than `limit`."""
    start = line.start
    ends = [match.end() for match in compiled(SENTENCE_TAIL).finditer(text, start, line.end)]
    for end in [*ends, line.end]:
        if end > start:
            words = _words(text[start:end])
            if words <= limit:
                yield _Piece(start, end, line.line, words)
            else:
                yield from _sentence(text, start, end, line.line, limit)
        start = end


def _sentence(text: str, start: int, end: int, line: int, limit: int) -> Iterator[_Piece]:
    words = compiled(_WORD).finditer(text, start, end)
    if text[start:end].isascii():  # Each counts as one.
        starts = [match.start() for match in words]
        for position in range(limit, len(starts), limit):
            yield _Piece(start, starts[position], line, limit)
            start = starts[position]
        yield _Piece(start, end, line, (len(starts) - 1) % limit + 1)
        return
    size = 0
    for match in words:
        word = _words(match[0])
        if size and size + word > limit:
            yield _Piece(start, match.start(), line, size)
            start, size = match.start(), 0
        size += word
    yield _Piece(start, end, line, size)


def _user_lines(text: str, lines: list[_Piece]) -> list[_Piece] | None:
    """Returns the user's lines of a chat with an assistant; None for any other text."""
    if ":" not in text:
        return None
    turn = ""
    speakers = set()
    user_lines = []
    for piece in lines:
        head = text[piece.start : piece.start + 40]
        name = _speaker(head) if ":" in head else ""
        if name in _USERS or name in _ASSISTANTS:
            turn = name
            speakers.add(name)
        if turn in _USERS:
            user_lines.append(piece)
    return user_lines if speakers & _USERS and speakers & _ASSISTANTS else None


def _joined(text: str, group: list[_Piece]) -> str:
    """Returns the text of pieces, which may have other text between them."""
    parts = [text[group[0].start : group[0].end]]
    for previous, piece in pairwise(group):
        between = "\n" if piece.line != previous.line else ""
        parts.append(between + text[piece.start : piece.end])
    return "".join(parts)


@frozen
class Document:
    """One record, ready for the index."""

    record: Record
    row: tuple[object, ...]
    """The values of `schema.COLUMNS`."""
    title: str
    """The tokens of the title and of other names, joined by spaces, as all tokens here."""
    topic: str
    """The tokens of the topic and the tags."""
    names: Mapping[str, int]
    """The keys of its names, with their ranks."""
    units: tuple[Unit, ...]
    """At least one: a record without words has an empty unit for its title."""
    unit_vectors: tuple[bytes, ...]
    """The name of each unit's vector: the hash of the embedded text."""
    passages: tuple[str, ...]
    """Empty if they equal the units."""

    @property
    def heading(self) -> str:
        """Returns the tokens that the first unit has beside its own."""
        return f"{self.title} {self.topic}".strip()


def document(record: Record) -> Document:
    """Returns a record for the index. Raises `UnicodeEncodeError` if SQLite can't hold its text."""
    memory = record.memory
    row = rows.row(record)
    "".join(value for value in row if isinstance(value, str)).encode()
    units, passages = analyse(memory.text)
    units = units or (Unit("", 0, 0, ""),)
    title = tokenize(memory.title) if memory.title else []
    names, words = naming.of_record(record)
    title += [token for token in dict.fromkeys(tokenize(words)) if token not in title]
    return Document(
        record=record,
        row=row,
        title=" ".join(title),
        names=names,
        topic=" ".join(tokenize(" ".join(filter(None, [memory.topic, *memory.tags])))),
        units=units,
        unit_vectors=tuple(map(name_of, _embedded(memory, [unit.text for unit in units]))),
        passages=() if passages == tuple([unit.tokens for unit in units]) else passages,
    )


def is_chat(times: Counter[str]) -> bool:
    """Returns whether a text is a chat by its words, even if its parts name no speakers.

    `times` counts the tokens of the whole text.
    """
    total = times.total()
    return all(sum(times[word] for word in words.split()) > share * total for words, share in _TALK)


def may_cite(*texts: object) -> bool:
    """Returns whether one of the texts may name a place in a file."""
    text = "\n".join(map(str, filter(None, texts)))
    if compiled(_NAME).search(text) or compiled(_LINE).search(text):
        return True
    if not compiled(_AFTER_DIGIT).search(text):
        return False
    return compiled(_LINE_AFTER_DIGIT).search(text) is not None


def name_of(text: str) -> bytes:
    """Returns the name of a text's vector: 12 bytes of BLAKE2b."""
    return disk.blake2b(text.encode("utf-8", "surrogatepass"), size=12)


def statement_of(memory: Memory) -> bytes:
    """Returns the hash of a memory's statement, equal for duplicates: 12 bytes of BLAKE2b."""
    return name_of(statement(memory))


def embedded_texts(
    sql: sqlite3.Connection, keys: Sequence[int]
) -> dict[int, list[tuple[bytes, str]]]:
    """Returns, by key of a memory, the embedded text of each unit, after the name of its vector."""
    spans: dict[int, list[tuple[int, int]]] = {key: [] for key in keys}
    query = "SELECT memory, start, length FROM units WHERE memory"
    for key, start, length in sql.execute(f"{query} IN ({marks(keys)}) ORDER BY key", keys):
        spans[key].append((start, start + length))
    texts = {}
    for key, record in rows.by_key(sql, keys).items():
        parts = [record.memory.text[start:end] for start, end in spans[key]]
        # A vector outlasts the index, so it is named for its text, and not as the index states.
        texts[key] = [(name_of(text), text) for text in _embedded(record.memory, parts)]
    return texts


def _embedded(memory: Memory, units: Iterable[str]) -> Iterator[str]:
    """Yields the embedded text of each unit of a memory, below its heading.

    That consists of the topic, and of the title unless the text begins with it.
    """
    title = memory.title or ""
    topic = re.sub(r"[\W_]+", " ", memory.topic or "").strip()
    alone = f"{topic}: \n" if topic else ""
    above = f"{topic}: {title}\n" if topic else f"{title}\n" if title else ""
    for unit in units:
        is_titled = title and unit.lstrip("# \n").startswith(title)
        yield f"{alone if is_titled else above}{unit}"
