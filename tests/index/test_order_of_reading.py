"""The answers of an index do not depend on the order in which it read the files."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, permutations
from pathlib import Path

import pytest

from mimo.index import rows, selection
from mimo.index.index import Index
from mimo.index.rows import Change, Request
from mimo.memory.model import Filter, Kind
from tests.index.conftest import HashEmbedder, Make

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def built(folder: Path, changes: Sequence[Change]) -> Index:
    index = Index.open(folder, HashEmbedder())
    for start in range(0, len(changes), 100):
        index.apply(changes[start : start + 100], now_ns=1)
    return index


@pytest.fixture
def pair(tmp_path: Path, change_of: Make) -> Iterator[tuple[Index, Index]]:
    """An index that read files from first to last, and one that read them from last to first."""
    changes = [
        change_of(
            f"note_{number * 7919 % 1009:04}",
            f"w{number} lantern is lit",
            created=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number % 50),
            type=Kind.FACT if number % 3 else Kind.OBSERVATION,
        )
        for number in range(400)
    ]
    opened = built(tmp_path / "a", changes), built(tmp_path / "b", changes[::-1])
    yield opened
    for index in opened:
        index.close()


FILTERS = {
    "all": Filter(),
    "most": Filter(types=frozenset({Kind.FACT})),
    "a third": Filter(types=frozenset({Kind.OBSERVATION})),
}


@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
def test_search(pair: tuple[Index, Index], filter: Filter) -> None:
    def found(index: Index) -> list[tuple[str, float]]:
        hits = index.search(Request("lantern", filter=filter, limit=50, now=NOW)).hits
        return [(hit.record.memory.id, hit.score) for hit in hits]

    first, second = pair
    for _ in range(5):  # A process that searches often keeps memories.
        assert found(first) == found(second)


def test_vectors_of_earlier_texts_displace_no_memory(index: Index, change_of: Make) -> None:
    texts = [" ".join(words) for words in islice(permutations("abcde"), 40)]  # One direction.
    made = [change_of(f"note_{n:02}", text) for n, text in enumerate(texts)]
    index.apply(made, now_ns=1)
    index.ask(index.make_static)
    index.apply([Change(path=change.path, stamp=None) for change in made[20:]], now_ns=2)
    vectors, embedder = index._vectors, index._embedder
    assert vectors
    assert embedder

    assert vectors.count() >= 40
    with index.reading() as sql:
        keys = list(selection.memories_near(sql, vectors, embedder.encode(texts[0]), Filter(), 3))
        near = rows.by_key(sql, keys)
    assert [near[key].memory.id for key in keys] == ["note_00", "note_01", "note_02"]
