"""Fixtures of the index: a tiny embedder, memories without files, an empty index."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from mimo.data.disk import Stamp
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Kind, Memory, Place, Record

Make = Callable[..., Change]


class HashEmbedder:
    """Gives each word a direction; texts with the same words point the same way."""

    model = "hash:1"
    dims = 64

    def __init__(self, synonyms: dict[str, str] | None = None) -> None:
        self.synonyms = synonyms or {}
        self.encoded: list[str] = []

    def encode(self, text: str) -> bytes:
        lanes = [0] * self.dims
        words = [self.synonyms.get(word, word) for word in text.lower().split()]
        for word in words:
            lanes[blake2b(word.encode(), digest_size=1).digest()[0] % self.dims] += 1
        length = sum(lane * lane for lane in lanes) ** 0.5
        return bytes(round(127 * lane / length) for lane in lanes) if length else b""

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        self.encoded += texts
        return [self.encode(text) for text in texts]


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder({"postgres": "database", "datastore": "database"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".index"


@pytest.fixture
def index(folder: Path, embedder: HashEmbedder) -> Iterator[Index]:
    opened = Index.open(folder, embedder)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def change_of() -> Make:
    """Returns a function that makes the change for a file with one memory."""

    def make(id: str, content: str = "a note", **fields: Any) -> Change:
        path = fields.pop("path", f".mind/facts/{id}.md")
        parts = {name: fields.pop(name) for name in ("parent", "position") if name in fields}
        place = Place(path=path, line=fields.pop("line", 1), digest="0" * 64)
        given = {"type": Kind.FACT, "created": datetime(2026, 1, 1, tzinfo=UTC), **fields}
        memory = Memory(id=id, content=content, **given)
        record = Record(memory=memory, place=place, **parts)
        return Change(path=path, stamp=stamp(len(content)), records=(record,), problem=None)

    return make


def stamp(number: int = 1) -> Stamp:
    return Stamp(size=number, mtime_ns=number, ctime_ns=number, inode=number)
