"""All answers of a call come from one state of the index, also while others write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Invalid
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Filter, Kind
from mimo.operations import refresh, saving
from mimo.operations.saving import draft, store

Make = Callable[..., Change]


@pytest.fixture
def index(folder: Path, change_of: Make) -> Iterator[Index]:
    with closing(Index.open(folder, None)) as index:
        index.apply([change_of("tea")], now_ns=1)
        yield index


def test_a_snapshot_sees_one_state_until_it_ends(
    index: Index, folder: Path, change_of: Make
) -> None:
    snapshot = index.snapshot()
    assert snapshot.count(Filter()) == 1
    with closing(Index.open(folder, None)) as writer:
        writer.apply([change_of("milk")], now_ns=2)

    assert (snapshot.count(Filter()), index.count(Filter())) == (1, 2)
    assert snapshot.get("milk") is None
    snapshot.end()
    assert snapshot.count(Filter()) == 2
    snapshot.end()


def test_an_error_of_a_query_ends_the_snapshot(index: Index, change_of: Make) -> None:
    def failing(_: object) -> None:
        raise Invalid("no")

    snapshot = index.snapshot()
    assert snapshot.count(Filter()) == 1
    index.apply([change_of("milk")], now_ns=2)
    with pytest.raises(Invalid):
        snapshot.ask(failing)

    assert snapshot.count(Filter()) == 2
    snapshot.end()


def test_a_snapshot_of_a_removed_index_is_filled_again(index: Index, change_of: Make) -> None:
    index.repair = lambda: (index.begin(), index.apply([change_of("tea")], now_ns=1))
    index.begin()
    snapshot = index.snapshot()
    assert snapshot.count(Filter()) == 1
    index.discard()

    assert snapshot.count(Filter()) == 1
    snapshot.end()
    assert snapshot.count(Filter()) == 1
    snapshot.end()


def test_a_snapshot_in_memory_sees_each_change(change_of: Make) -> None:
    index = Index.in_memory(None)
    snapshot = index.snapshot()
    assert snapshot.count(Filter()) == 0
    index.apply([change_of("tea")], now_ns=1)
    assert snapshot.count(Filter()) == 1


def test_a_call_that_reads_compares_the_files_once(call: Call) -> None:
    store(call, draft(Kind.FACT, "Tea is green"))
    started = call.started(reads_only=True)
    assert refresh.up_to_date(started).count(Filter()) == 1
    store(call, draft(Kind.FACT, "Milk is white"))

    assert refresh.up_to_date(started).count(Filter()) == 1
    started.release()
    assert started.index.count(Filter()) == 2
    started.release()


def test_a_call_that_writes_reads_what_it_has_written(call: Call) -> None:
    started = call.started(reads_only=False)
    assert refresh.up_to_date(started).count(Filter()) == 0
    store(started, draft(Kind.FACT, "Tea is green"))

    assert started.index.count(Filter()) == 1
    started.release()


def test_a_call_that_takes_its_turn_reads_what_others_have_added(call: Call) -> None:
    started = call.started(reads_only=False)
    assert started.index.count(Filter()) == 0
    store(call, draft(Kind.FACT, "Tea is green"))
    with saving.in_turn(started):
        assert started.index.count(Filter()) == 1
    started.release()


def test_a_question_to_the_user_holds_no_snapshot(call: Call) -> None:
    started = call.started(reads_only=True)
    assert started.index.count(Filter()) == 0
    assert started.ask is None
    store(call, draft(Kind.FACT, "Tea is green"))

    assert started.index.count(Filter()) == 1
    started.release()
