"""Handles in the index: what abbreviates a memory, and which letters do."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.index import names, targets
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.ids import handle_of
from tests.index.conftest import HashEmbedder

Make = Callable[..., Change]
IDS = ("fact_a_20261120_k3v7mq", "fact_b_20261120_k3aaaa", "fact_c_20261120_p2w7xa")


@pytest.fixture
def three(index: Index, change_of: Make) -> Index:
    index.apply([change_of(id) for id in IDS], now_ns=1)
    return index


@pytest.mark.parametrize(
    ("abbreviation", "expected"),
    [
        ("p", (IDS[2],)),
        ("p2w7xa", (IDS[2],)),
        ("k3v", (IDS[0],)),
        ("k", IDS[:2]),
        ("7mq", (IDS[0],)),
        ("fact_b", (IDS[1],)),
        ("fact", IDS),
        ("k3v7mqq", ()),
        ("q", (IDS[0],)),
    ],
)
def test_the_beginning_of_a_handle_abbreviates_before_the_ends_of_ids(
    three: Index, abbreviation: str, expected: tuple[str, ...]
) -> None:
    assert three.matching(abbreviation) == expected


def test_a_handle_that_begins_so_excludes_ids_that_begin_so(index: Index, change_of: Make) -> None:
    ids = ("fact_a_20261120_pla555", "plan_b_20261120_zzzzzz")
    index.apply([change_of(id) for id in ids], now_ns=1)

    assert index.matching("pla") == ids[:1]
    assert index.matching("plan") == ids[1:]


def test_an_exact_id_comes_before_a_handle(index: Index, change_of: Make) -> None:
    index.apply([change_of("tea"), change_of("fact_a_20261120_teapot")], now_ns=1)

    assert index.matching("tea") == ("tea",)
    assert index.handle("fact_a_20261120_teapot") == ("teapot", 4)


def test_the_letters_that_are_unique_are_the_fewest_that_abbreviate(three: Index) -> None:
    assert [three.handle(id) for id in IDS] == [("k3v7mq", 3), ("k3aaaa", 3), ("p2w7xa", 1)]
    assert three.handle("fact_d_20261120_aaaaaa") is None


def test_memories_with_one_handle_are_shown_by_their_ids(index: Index, change_of: Make) -> None:
    twins = ("fact_a_20261120_k3v7mq", "plan_b_20261121_k3v7mq")
    index.apply([change_of(id) for id in twins], now_ns=1)

    assert [index.handle(id) for id in twins] == [(id, 0) for id in twins]
    assert index.matching("k3v7mq") == twins


def test_a_removed_memory_gives_its_letters_back(three: Index, change_of: Make) -> None:
    removed = change_of(IDS[1])
    three.apply([Change(path=removed.path, stamp=None)], now_ns=2)

    assert three.handle(IDS[0]) == ("k3v7mq", 1)
    assert three.matching("k") == IDS[:1]


def test_a_single_memory_is_abbreviated_by_one_letter(index: Index, change_of: Make) -> None:
    index.apply([change_of("notes.readme")], now_ns=1)

    assert index.handle("notes.readme") == (handle_of("notes.readme"), 1)
    assert index.matching(handle_of("notes.readme")[0]) == ("notes.readme",)


def test_neighbours_are_looked_up_not_scanned(three: Index) -> None:
    plan = three.ask(
        lambda sql: sql.execute(
            f"EXPLAIN QUERY PLAN {names.NEIGHBOURS}", {"handle": "k3v7mq", "id": IDS[0]}
        ).fetchall()
    )

    steps = [step for *_, step in plan if "memories" in step or "parents" in step]
    assert len(steps) == 9
    assert all(" INDEX" in step and "?" in step for step in steps)


LETTERS = st.text("ab2", min_size=6, max_size=6)


@given(st.lists(LETTERS, min_size=1, max_size=12, unique=True))
def test_unique_letters_find_their_memory_and_fewer_do_not(
    change_of: Make, letters: list[str]
) -> None:
    index = Index.in_memory(HashEmbedder())
    ids = [f"fact_{number}_20261120_{end}" for number, end in enumerate(letters)]
    index.apply([change_of(id) for id in ids], now_ns=1)

    for id in ids:
        shown = index.handle(id)
        assert shown is not None
        assert index.matching(shown.text[: shown.unique]) == (id,)
        if shown.unique > 1:
            assert len(index.matching(shown.text[: shown.unique - 1])) > 1
    index.close()


@given(st.lists(LETTERS, max_size=8, unique=True), st.lists(LETTERS, min_size=1, unique=True))
def test_letters_of_another_memory_that_are_unique_fit_none_of_this_one(
    change_of: Make, letters: list[str], others: list[str]
) -> None:
    """Fewer letters fit a memory of one of them."""
    own, other = (Index.in_memory(HashEmbedder()) for _ in range(2))
    own.apply([change_of(f"fact_{n}_20261120_{end}") for n, end in enumerate(letters)], now_ns=1)
    ids = [f"plan_{n}_20261120_{end}" for n, end in enumerate(others)]
    other.apply([change_of(id) for id in ids], now_ns=1)

    for id in ids:
        shown = other.handle(id)
        assert shown is not None
        name = own.apart(shown, id)
        if handle_of(id) in letters:
            assert name == (id, 0)
            continue
        assert name.text == handle_of(id)
        assert own.matching(name.text[: name.unique]) == ()
        assert other.matching(name.text[: name.unique]) == (id,)
        if name.unique > 1:
            fewer = name.text[: name.unique - 1]
            assert own.matching(fewer) or len(other.matching(fewer)) > 1
    own.close()
    other.close()


def test_the_handle_of_a_source_is_found_beside_those_of_memories(
    folder: Path, index: Index, change_of: Make
) -> None:
    memory, source = "fact_a_20261120_t3zzzz", "source_api_md_t3o7jx"
    chunks = [change_of(f"{source}.{n}", f"part {n}", parent=source, path="s") for n in (1, 2)]
    both = Change(path="s", stamp=chunks[0].stamp, records=(*chunks[0].records, *chunks[1].records))
    index.apply([change_of(memory), both], now_ns=1)

    assert index.handle(source) == ("t3o7jx", 3)
    assert index.handle(memory) == ("t3zzzz", 3)
    assert index.matching("t3o", sources=True) == (source,)
    assert index.matching("t3o") == ()
    assert index.matching("t3", sources=True) == (source,)
    assert index.matching("t3") == (memory,)


def test_the_target_of_a_link_is_looked_up_not_scanned(three: Index) -> None:
    """A memory may have thousands of links."""

    def plan(sql: sqlite3.Connection) -> list[str]:
        statements: list[str] = []
        sql.set_trace_callback(statements.append)
        targets.named(sql, "A name")
        sql.set_trace_callback(None)
        plans = [sql.execute(f"EXPLAIN QUERY PLAN {each}").fetchall() for each in statements]
        return [step for steps in plans for *_, step in steps if "USING" in step]

    used = [step.partition(" (")[2] for step in three.ask(plan)]
    assert used == ["id=? AND shadowed=?)", "tail=?)", "rowid=?)", "handle=?)"]
