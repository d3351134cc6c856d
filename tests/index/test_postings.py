"""The units of words in memory give what FTS5 gives, after any changes of the index."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.index import catalog
from mimo.index.index import Index
from mimo.index.postings import Postings, _numbers
from mimo.index.rows import Change
from mimo.index.tables import Stock
from mimo.memory.model import Filter

WORDS = "tea cup leaf pot kettl steep green black oolong water".split()


@pytest.fixture
def opened() -> Iterator[Index]:
    index = Index.in_memory(None)
    yield index
    index.close()


def text(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, cum_weights=range(1, 11), k=draw.randint(1, 150)))


def by_fts(sql: sqlite3.Connection, terms: list[str], most: int) -> list[tuple[int, float]]:
    match = " OR ".join(f'"{term}"' for term in terms)
    memory_of = dict(sql.execute("SELECT key, memory FROM units"))
    best = sql.execute(catalog._BEST, (match, most))
    return [(memory_of[unit], -weight) for unit, weight in best]


def both(
    index: Index, postings: Postings, terms: list[str], most: int
) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    with index._reading() as sql:
        ours = postings.best(sql, terms, catalog.totals(sql), most)
        return ours, by_fts(sql, terms, most)


def test_the_best_units_and_their_weights_are_those_of_fts5(
    opened: Index, change_of: Callable[..., Change]
) -> None:
    draw, postings = random.Random(1), Postings()
    for turn in range(4):
        names = [f"m{draw.randint(0, 30)}" for _ in range(20)]
        changes = [change_of(name, text(draw), title=draw.choice(WORDS)) for name in names]
        removed = [Change(path=changes[0].path, stamp=None)] if turn else []
        opened.apply([*changes, *removed], now_ns=turn)
        for most in (3, 200):
            for count in (1, 2, 4):
                terms = draw.sample(WORDS, count)
                ours, theirs = both(opened, postings, terms, most)
                assert ours == theirs


def test_fewer_units_than_before_are_read_again(
    opened: Index, change_of: Callable[..., Change], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.postings._MOST_CHANGED", 3)
    draw, postings = random.Random(5), Postings()
    changes = [change_of(f"m{n}", text(draw) * 3) for n in range(20)]
    opened.apply(changes, now_ns=1)
    ours, theirs = both(opened, postings, ["tea"], 9)
    assert ours == theirs != []

    opened.apply([Change(path=change.path, stamp=None) for change in changes[4:]], now_ns=2)

    ours, theirs = both(opened, postings, ["tea"], 9)
    assert ours == theirs != []


def test_no_unit_has_an_unknown_word(opened: Index, change_of: Callable[..., Change]) -> None:
    opened.apply([change_of("a", "tea")], now_ns=1)

    assert both(opened, Postings(), ["coffe"], 9) == ([], [])
    assert both(opened, Postings(), ["coffe", "tea"], 9)[0] != []


def test_words_that_were_not_asked_for_lately_are_dropped(
    opened: Index, change_of: Callable[..., Change], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.postings._MOST_BYTES", 40)
    opened.apply([change_of(f"m{n}", " ".join(WORDS)) for n in range(2)], now_ns=1)
    postings = Postings()

    for term in ("tea", "cup", "tea", "pot"):
        assert len(both(opened, postings, [term], 9)[0]) == 2

    assert list(postings._words) == ["pot"]


def test_a_process_that_searches_often_gets_the_same_answer(
    opened: Index, change_of: Callable[..., Change]
) -> None:
    draw = random.Random(2)
    opened.apply([change_of(f"m{n}", text(draw)) for n in range(80)], now_ns=1)
    now = change_of("x").records[0].memory.created

    answers = [
        opened.search("tea steeped in a pot", filter=Filter(), limit=9, threshold=0.0, now=now)
        for _ in range(6)
    ]

    assert all(answer == answers[0] for answer in answers)
    assert opened._caches.search is not None
    assert opened._caches.search._postings is not None


def test_a_replaced_index_is_searched_from_the_start(
    tmp_path: Path, change_of: Callable[..., Change]
) -> None:
    tea, other = "Tea is brewed in a kettle", "Nothing of note"
    now = change_of("x").records[0].memory.created

    def first() -> str:
        answer = index.search("tea", filter=Filter(), limit=1, threshold=0.0, now=now)
        return answer.hits[0].record.memory.id

    with closing(Index.open(tmp_path, None)) as index:
        index.apply([change_of("a", tea), change_of("b", other)], now_ns=1)
        assert [first() for _ in range(3)] == ["a"] * 3

        for path in tmp_path.glob("index*"):
            path.unlink()
        index.apply([change_of("c", other), change_of("d", tea)], now_ns=1)

        assert first() == "d"


def test_memories_that_are_kept_between_searches_expire_when_they_change(
    opened: Index, change_of: Callable[..., Change]
) -> None:
    draw = random.Random(3)
    now = change_of("x").records[0].memory.created

    def answer(index: Index) -> list[tuple[str, float, str]]:
        query = "tea steeped in a pot"
        answered = index.search(query, filter=Filter(), limit=9, threshold=0.0, now=now)
        return [(hit.record.memory.id, hit.score, hit.passage) for hit in answered.hits]

    files = {f"m{n}": change_of(f"m{n}", text(draw)) for n in range(40)}
    path_of = {name: change.path for name, change in files.items()}
    opened.apply(files.values(), now_ns=1)
    for turn in range(6):
        answer(opened)
        # The key of the last memory is free again after its removal.
        for name in [list(files)[-1], *draw.sample(list(files)[:-1], 4)]:
            del files[name]
            opened.apply([Change(path=path_of[name], stamp=None)], now_ns=turn)
            files[name] = change_of(name, text(draw))
            opened.apply([files[name]], now_ns=turn)
        alone = Index.in_memory(None)
        alone.apply(files.values(), now_ns=1)
        assert answer(opened) == answer(alone)
        alone.close()


def test_only_so_many_units_are_kept(
    opened: Index, change_of: Callable[..., Change], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.tables._KEPT_UNITS", 4)
    opened.apply([change_of(f"m{n}", "tea") for n in range(9)], now_ns=1)
    stock = Stock()
    with opened._reading() as sql:
        revision = catalog.totals(sql).revision
        for key in range(1, 10):
            assert stock.get(sql, revision, [key])[key].memory.key == key
            assert len(stock._kept) <= 5
    assert max(stock._kept) == 9


def test_a_reader_of_an_earlier_state_neither_gets_nor_leaves_kept_memories(
    opened: Index, change_of: Callable[..., Change]
) -> None:
    stock = Stock()
    opened.apply([change_of("a", "tea")], now_ns=1)
    with opened._reading() as sql:
        revision = catalog.totals(sql).revision
        (key,) = stock.get(sql, revision, [1])
        assert stock.get(sql, revision, [key])[key] is stock.get(sql, revision, [key])[key]
        early = stock.get(sql, revision - 1, [key])[key]
        assert early is not stock.get(sql, revision, [key])[key]


@given(st.lists(st.integers(0, 2**40)))
def test_numbers_are_read_as_sqlite_writes_them(numbers: list[int]) -> None:
    def written(number: int) -> bytes:
        parts = [number & 127]
        while number := number >> 7:
            parts.append(number & 127 | 128)
        return bytes(reversed(parts))

    assert _numbers(b"".join(map(written, numbers))) == numbers
