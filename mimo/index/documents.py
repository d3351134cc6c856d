"""A memory as the index stores it: cut into units and passages, tokenised, its vectors named."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from itertools import pairwise

from mimo.frozen import NamedTuple, frozen
from mimo.index import rows
from mimo.memory.duplicates import statement
from mimo.memory.model import Memory, Record
from mimo.text.clean import compiled
from mimo.text.phrases import SENTENCE_END
from mimo.text.tokens import UNSPACED, tokenize

UNIT_WORDS = 60
PASSAGE_WORDS = 200

_LONGEST_WORD = 80
"""Characters; longer text without a space (an address, encoded data) counts as several words."""

_USERS = frozenset({"user", "human"})
_ASSISTANTS = frozenset({"assistant", "ai"})


@frozen
class Unit:
    """At most 60 words of a text: the passage that a match points at."""

    text: str
    """The exact text, line breaks included."""
    start: int
    """The offset in the whole text, in characters."""
    line0: int
    """The 0-based line of the text on which it begins."""
    tokens: tuple[str, ...]
    speakers: str = ""
    """The names at the beginning of its lines (`Caroline: …`), but not users and assistants. Names
    are joined by spaces, the words of a name by `_`."""


@frozen
class Analysis:
    """A text, cut and tokenised."""

    units: tuple[Unit, ...]
    passages: tuple[tuple[str, ...], ...]
    """The tokens of each passage; of a chat with an assistant, of the user's lines only."""
    passage_texts: tuple[str, ...]
    """The passages as text: the mean of their vectors is the document's."""


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
    units = tuple(_units(text, lines))
    user_lines = _user_lines(text, lines)
    if user_lines is None and len(units) <= 1:
        return Analysis(
            units=units,
            passages=tuple(unit.tokens for unit in units),
            passage_texts=tuple(unit.text for unit in units),
        )
    packed = [_joined(text, group) for group in _packed(text, user_lines or lines, PASSAGE_WORDS)]
    worded = [(tokens, part) for part in packed if (tokens := tuple(tokenize(part)))]
    return Analysis(
        units=units,
        passages=tuple(tokens for tokens, _ in worded),
        passage_texts=tuple(part for _, part in worded),
    )


def _speaker(line: str) -> str:
    """Returns the name before the colon at the beginning of a line, or an empty string."""
    match = _prefix().match(line)
    return match[1].lower() if match else ""


def _words(text: str) -> int:
    """Returns the number of words that a part of a text counts as."""
    spaced = len(text.split())
    if len(text) > _LONGEST_WORD * spaced:
        spaced = len(_word().findall(text))
    if text.isascii():
        return spaced
    # In a script without spaces, a pair of characters is a word, as in the tokens.
    return max(spaced, len(_unspaced().findall(text)) // 2)


def _units(text: str, lines: list[_Piece]) -> Iterator[Unit]:
    for group in _packed(text, lines, UNIT_WORDS):
        start, line0 = group[0].start, group[0].line
        part = text[start : group[-1].end]
        if tokens := tuple(tokenize(part)):
            speakers = ""
            if ":" in part:
                names = dict.fromkeys(_speaker(line) for line in part.split("\n"))
                people = [name for name in names if name not in _USERS | _ASSISTANTS]
                speakers = " ".join(filter(None, ("_".join(tokenize(name)) for name in people)))
            yield Unit(text=part, start=start, line0=line0, tokens=tokens, speakers=speakers)


def _packed(text: str, lines: Iterable[_Piece], limit: int) -> Iterator[list[_Piece]]:
    """Yields groups of neighbouring pieces with at most `limit` words in each group."""
    group: list[_Piece] = []
    size = 0
    for line in lines:
        for piece in _cut(text, line, limit):
            if group and size + piece.words > limit:
                yield group
                group, size = [], 0
            group.append(piece)
            size += piece.words
    if group:
        yield group


def _cut(text: str, line: _Piece, limit: int) -> Iterator[_Piece]:
    if line.words <= limit:
        yield line
        return
    start = line.start
    ends = [match.end() for match in compiled(SENTENCE_END).finditer(text, line.start, line.end)]
    for end in [*ends, line.end]:
        if end > start:
            yield from _sentence(text, start, end, line.line, limit)
        start = end


def _sentence(text: str, start: int, end: int, line: int, limit: int) -> Iterator[_Piece]:
    words = _words(text[start:end])
    if words <= limit:
        yield _Piece(start, end, line, words)
        return
    size = 0
    for match in _word().finditer(text, start, end):
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
        name = _speaker(text[piece.start : piece.start + 40])
        if name in _USERS or name in _ASSISTANTS:
            turn = name
            speakers.add(name)
        if turn in _USERS:
            user_lines.append(piece)
    return user_lines if speakers & _USERS and speakers & _ASSISTANTS else None


def _joined(text: str, group: list[_Piece]) -> str:
    """Returns the text of pieces, which may have other text between them."""
    parts = [text[group[0].start : group[0].end]]
    for before, piece in pairwise(group):
        between = "\n" if piece.line != before.line else ""
        parts.append(between + text[piece.start : piece.end])
    return "".join(parts)


@cache
def _word() -> re.Pattern[str]:
    return re.compile(rf"\S{{1,{_LONGEST_WORD}}}\s*")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


@cache
def _prefix() -> re.Pattern[str]:
    return re.compile(r"\s*([^\W\d_][\w .'-]{0,30}?)\s*:(?=\s)")


@frozen
class Document:
    """One record, ready for the index."""

    record: Record
    row: tuple[object, ...]
    """The values of `rows.COLUMNS`."""
    title: str
    """The tokens of the title, joined by spaces, as all tokens here."""
    topic: str
    """The tokens of the topic and the tags."""
    units: tuple[Unit, ...]
    """At least one: a record without words has an empty unit for its title."""
    unit_texts: tuple[str, ...]
    """The embedded text of each unit."""
    unit_vectors: tuple[bytes, ...]
    """The name of each unit's vector: the hash of the embedded text."""
    passages: tuple[str, ...]
    """Empty if they equal the units."""
    vector: bytes
    """The name of the whole text's vector."""
    passage_texts: tuple[str, ...]
    """The embedded texts whose mean is the vector of the whole text."""

    @property
    def heading(self) -> str:
        """Returns the tokens that the first unit has beside its own."""
        return f"{self.title} {self.topic}".strip()


def document(record: Record) -> Document:
    """Returns a record for the index. Raises `UnicodeEncodeError` if SQLite can't hold its text."""
    memory = record.memory
    row = rows.row(record)
    "".join(value for value in row if isinstance(value, str)).encode()
    analysis = analyse(memory.text)
    units = analysis.units or (Unit(text="", start=0, line0=0, tokens=()),)
    unit_texts = tuple(_headed(memory, unit.text) for unit in units)
    first, *others = analysis.passage_texts or ("",)
    passage_texts = (_headed(memory, first), *others)
    names = tuple(map(name_of, unit_texts))
    vector = names[0]
    if passage_texts != unit_texts[:1]:
        hashes = b"".join(map(name_of, passage_texts))
        vector = blake2b(hashes, digest_size=16).digest()
    passages = tuple(" ".join(tokens) for tokens in analysis.passages)
    if analysis.passages == tuple(unit.tokens for unit in analysis.units):
        passages = ()
    return Document(
        record=record,
        row=row,
        title=" ".join(tokenize(memory.title)) if memory.title else "",
        topic=" ".join(tokenize(" ".join(filter(None, [memory.topic, *memory.tags])))),
        units=units,
        unit_texts=unit_texts,
        unit_vectors=names,
        passages=passages,
        vector=vector,
        passage_texts=passage_texts,
    )


def name_of(text: str) -> bytes:
    """Returns the name of a text's vector: 16 bytes of BLAKE2b."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def statement_of(memory: Memory) -> bytes:
    """Returns the hash of a memory's statement, equal for duplicates: 16 bytes of BLAKE2b."""
    return name_of(statement(memory))


def _headed(memory: Memory, text: str) -> str:
    """Returns a text below the topic and the title of its memory, as far as it lacks them."""
    title = memory.title or ""
    if title and text.lstrip("# \n").startswith(title):
        title = ""
    topic = re.sub(r"[\W_]+", " ", memory.topic or "").strip()
    heading = f"{topic}: {title}" if topic else title
    return f"{heading}\n{text}" if heading else text
