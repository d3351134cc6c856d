"""A record as the index stores it: cut up, tokenised, with the names of its vectors."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from mimo.domain.doubles import statement
from mimo.domain.memory import Memory, Record
from mimo.domain.passages import Analysis, Unit, analyse
from mimo.domain.tokens import tokenize
from mimo.frozen import frozen
from mimo.index import rows


@frozen
class IndexedUnit:
    """A stretch of a record's text that is searched and pointed at."""

    line: int
    """1-based, in the file."""
    start: int
    """The offset of its text in `Memory.text`, in characters."""
    length: int
    tokens: str
    speakers: str
    vector: bytes
    """The name of its vector: the hash of the text that is embedded."""


@frozen
class Document:
    """One record, ready for the index."""

    record: Record
    row: tuple[object, ...]
    """The values of `rows.COLUMNS`."""
    title: str
    """Tokens of the title, joined by spaces, as all tokens here."""
    topic: str
    """Tokens of the topic and the tags."""
    units: tuple[IndexedUnit, ...]
    """At least one: a record without words has an empty unit, which carries its title."""
    passages: tuple[str, ...]
    """Empty where they are the units."""
    vector: bytes
    """The name of the whole text's vector."""
    unit_texts: tuple[str, ...]
    """What is embedded for each unit."""
    passage_texts: tuple[str, ...]
    """What is embedded for the whole: the mean of these."""

    @property
    def heading(self) -> str:
        """Returns what the first unit's row holds beside its own words."""
        return f"{self.title} {self.topic}".strip()


def document(record: Record) -> Document:
    """Returns what the index keeps of `record`; `UnicodeEncodeError` where SQLite can't hold it."""
    memory = record.memory
    row = rows.row(record)
    "".join(value for value in row if isinstance(value, str)).encode()
    text = memory.text
    analysis = analyse(text)
    unit_texts = _with_title(memory.title, [unit.text for unit in analysis.units])
    passage_texts = _with_title(memory.title, analysis.passage_texts)
    names = [name_of(unit) for unit in unit_texts]
    units = tuple(_units(text, record.place.line, analysis.units, names))
    return Document(
        record=record,
        row=row,
        title=" ".join(tokenize(memory.title)) if memory.title else "",
        topic=" ".join(tokenize(" ".join(filter(None, [memory.topic, *memory.tags])))),
        units=units,
        passages=_passages(analysis),
        vector=names[0] if passage_texts == unit_texts[:1] else _name_of_all(passage_texts),
        unit_texts=unit_texts,
        passage_texts=passage_texts,
    )


def name_of(text: str) -> bytes:
    """Returns the name of a text's vector: 16 bytes of BLAKE2b."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def statement_of(memory: Memory) -> bytes:
    """Returns what tells one statement from another: 16 bytes of BLAKE2b."""
    return name_of(statement(memory))


def _name_of_all(texts: Sequence[str]) -> bytes:
    return blake2b(b"".join(map(name_of, texts)), digest_size=16).digest()


def _with_title(title: str | None, texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the texts with the title before the first, unless that says it anyway."""
    first, *others = texts or ("",)
    return (first if not title or title in first else f"{title}\n{first}", *others)


def _units(
    text: str, line: int, units: Sequence[Unit], names: Sequence[bytes]
) -> Iterator[IndexedUnit]:
    start = 0
    for unit, name in zip(units, names, strict=False):
        start = text.index(unit.text, start)
        yield IndexedUnit(
            line=line + unit.line0,
            start=start,
            length=len(unit.text),
            tokens=" ".join(unit.tokens),
            speakers=unit.speakers,
            vector=name,
        )
        start += len(unit.text)
    if not units:
        yield IndexedUnit(line=line, start=0, length=0, tokens="", speakers="", vector=names[0])


def _passages(analysis: Analysis) -> tuple[str, ...]:
    if analysis.passages == tuple(unit.tokens for unit in analysis.units):
        return ()
    return tuple(" ".join(tokens) for tokens in analysis.passages)
