"""Which walks are remembered, for how long, and what makes them forgotten."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimo.data.disk import Stamp
from mimo.index import links, writing
from mimo.index.index import Index
from mimo.index.links import Walked, walk
from mimo.index.rows import Change
from mimo.memory.model import Link
from mimo.memory.relations import Graph

Make = Callable[..., Change]

NOW = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The starts of the walks that were really made."""
    made: list[str] = []

    def counted(sql: Any, start: Any, **narrowed: Any) -> Walked:
        made.extend(start)
        return walk(sql, start, **narrowed)

    monkeypatch.setattr(links, "walk", counted)
    return made


def ask(index: Index, start: str, now: datetime = NOW, **narrowed: Any) -> Graph:
    given = {"depth": 2, "types": (), "limit": None, **narrowed}
    return index.graph([start], now=now, **given)


def ids(graph: Graph) -> list[str]:
    return [node.record.memory.id for node in graph.nodes]


@pytest.mark.req("004-55")
def test_the_same_start_types_and_depth_are_walked_once(
    index: Index, change_of: Make, walked: list[str]
) -> None:
    index.apply([change_of("a", links=(Link(to="b"),)), change_of("b")], now_ns=1)

    first = ask(index, "a")
    assert ask(index, "a") is first
    assert walked == ["a"]

    for other in ({"depth": 1}, {"types": ("follows",)}, {"limit": 1}):
        ask(index, "a", **other)
    ask(index, "b")
    assert walked == ["a", "a", "a", "a", "b"]

    ask(index, "a", types=("x", "y"))
    ask(index, "a", types=("y", "x", "y"))
    assert walked == ["a", "a", "a", "a", "b", "a"]


@pytest.mark.req("004-56")
def test_a_walk_is_forgotten_after_five_minutes(
    index: Index, change_of: Make, walked: list[str]
) -> None:
    index.apply([change_of("a")], now_ns=1)

    ask(index, "a")
    ask(index, "a", NOW + timedelta(minutes=4, seconds=59))
    assert walked == ["a"]
    ask(index, "a", NOW + timedelta(minutes=5))
    assert walked == ["a", "a"]
    ask(index, "a", NOW)  # A clock that was set back gives no age.
    assert walked == ["a", "a", "a"]


@pytest.mark.req("004-54")
def test_the_hundred_walks_asked_last_are_kept(
    index: Index, change_of: Make, walked: list[str]
) -> None:
    names = [f"m{number}" for number in range(101)]
    index.apply([change_of(name) for name in names], now_ns=1)

    for name in names[:100]:
        ask(index, name)
    ask(index, "m0")
    ask(index, "m100")
    walked.clear()

    ask(index, "m0")
    assert walked == []
    ask(index, "m1")
    assert walked == ["m1"]


def test_what_is_kept_is_bounded_by_its_memories_too(
    index: Index, change_of: Make, walked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "MOST_NODES", 3)
    index.apply(
        [change_of("a", links=(Link(to="b"),)), change_of("b"), change_of("c"), change_of("d")],
        now_ns=1,
    )

    for name in "acdcda":
        ask(index, name)

    assert walked == ["a", "c", "d", "a"]


@pytest.mark.req("004-57")
def test_a_new_link_makes_the_walks_that_it_touches_forgotten_and_no_others(
    index: Index, change_of: Make, walked: list[str]
) -> None:
    index.apply(
        [
            change_of("a", links=(Link(to="b"),)),
            change_of("b"),
            change_of("c", links=(Link(to="lost"),)),
        ],
        now_ns=1,
    )
    for name in "abc":
        ask(index, name)

    index.apply([change_of("d", links=(Link(to="b", type="refines"),))], now_ns=2)

    assert ids(ask(index, "c")) == ["c"]
    assert walked == ["a", "b", "c"]
    assert ids(ask(index, "a")) == ["a", "b", "d"]
    assert ids(ask(index, "b")) == ["b", "a", "d"]
    assert walked == ["a", "b", "c", "a", "b"]

    index.apply([change_of("lost")], now_ns=3)
    assert ids(ask(index, "c")) == ["c", "lost"]
    assert walked == ["a", "b", "c", "a", "b", "c"]


@pytest.mark.req("004-57")
def test_a_change_by_another_process_is_seen_and_spares_other_walks(
    folder: Path, change_of: Make, walked: list[str]
) -> None:
    ours, theirs = Index.open(folder, None), Index.open(folder, None)
    ours.apply([change_of("a", links=(Link(to="b"),)), change_of("b"), change_of("c")], now_ns=1)
    ask(ours, "a")
    ask(ours, "c")

    theirs.apply([Change(path=".mind/facts/b.md", stamp=None)], now_ns=2)

    assert ask(ours, "a").missing == ("b",)
    ask(ours, "c")
    assert walked == ["a", "c", "a"]
    ours.close()
    theirs.close()


@pytest.mark.req("004-57")
def test_a_memory_that_takes_over_an_id_brings_its_links(index: Index, change_of: Make) -> None:
    index.apply(
        [
            change_of("tea", path="tea.md"),
            change_of("tea", path="z.md", links=(Link(to="a"),)),
            change_of("a"),
        ],
        now_ns=1,
    )
    assert ids(ask(index, "a")) == ["a"]

    index.apply([Change(path="tea.md", stamp=None)], now_ns=2)

    assert ids(ask(index, "a")) == ["a", "tea"]


def test_after_a_great_change_nothing_is_taken_for_granted(
    index: Index, change_of: Make, walked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_MOST_TOUCHED", 2)
    index.apply([change_of("a")], now_ns=1)
    ask(index, "a")
    index.apply([change_of(name) for name in "bcd"], now_ns=2)
    ask(index, "a")
    index.apply([change_of("e")], now_ns=3)
    ask(index, "a")

    assert walked == ["a", "a"]


def test_a_rebuilt_index_is_walked_anew(index: Index, change_of: Make) -> None:
    index.apply([change_of("a", links=(Link(to="b"),)), change_of("b")], now_ns=1)
    assert ids(ask(index, "a")) == ["a", "b"]

    index.discard()
    index.apply([change_of("a")], now_ns=2)

    assert ids(ask(index, "a")) == ["a"]


def test_an_unreadable_file_takes_its_links_out_of_the_graph(index: Index, change_of: Make) -> None:
    index.apply([change_of("a"), change_of("b", links=(Link(to="a"),))], now_ns=1)
    assert ids(ask(index, "a")) == ["a", "b"]

    index.apply([Change(path=".mind/facts/b.md", stamp=Stamp(1, 2, 3, 4))], now_ns=2)

    assert ids(ask(index, "a")) == ["a"]
