"""Walking along links over the index."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mimo.index import links, schema
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Link
from mimo.memory.relations import Edge, Graph

Make = Callable[..., Change]

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)


def walk(index: Index, *start: str, depth: int = 5, **narrowed: Any) -> Graph:
    given = {"types": (), "limit": None, "now": JANUARY, **narrowed}
    return index.graph(start, depth=depth, **given)


def placed(graph: Graph) -> list[tuple[str, int]]:
    return [(node.record.memory.id, node.depth) for node in graph.nodes]


def drawn(graph: Graph) -> list[tuple[str, str, str]]:
    return [(edge.source, edge.type, edge.target) for edge in graph.edges]


@pytest.mark.req("004-53")
def test_links_are_followed_both_ways_and_the_nearest_come_first(
    index: Index, change_of: Make
) -> None:
    index.apply(
        [
            change_of("a", links=(Link(to="b", type="refines"),)),
            change_of("b", links=(Link(to="c", type="follows", given="after", confidence=0.5),)),
            change_of("c"),
            change_of("new", links=(Link(to="b"),), created=JANUARY + timedelta(days=1)),
            change_of("apart", links=(Link(to="nowhere"),)),
        ],
        now_ns=1,
    )

    graph = walk(index, "b")

    assert graph.start == ("b",)
    assert placed(graph) == [("b", 0), ("new", 1), ("a", 1), ("c", 1)]
    assert graph.edges == (
        Edge(source="b", target="c", type="follows", given="after", confidence=0.5),
        Edge(source="new", target="b", type="relates_to", given=None, confidence=None),
        Edge(source="a", target="b", type="refines", given=None, confidence=None),
    )
    assert graph.missing == ()
    assert not graph.cut


def test_depth_types_and_number_narrow_what_is_walked(index: Index, change_of: Make) -> None:
    chain = [change_of(f"m{n}", links=(Link(to=f"m{n + 1}", type="follows"),)) for n in range(4)]
    index.apply([*chain, change_of("m4", links=(Link(to="m0", type="refines"),))], now_ns=1)

    assert placed(walk(index, "m0", depth=0)) == [("m0", 0)]
    assert placed(walk(index, "m0", depth=1)) == [("m0", 0), ("m1", 1), ("m4", 1)]
    assert placed(walk(index, "m0", depth=2, types=["follows"])) == [
        ("m0", 0),
        ("m1", 1),
        ("m2", 2),
    ]
    assert drawn(walk(index, "m0", depth=2, types=["refines"])) == [("m4", "refines", "m0")]
    few = walk(index, "m0", limit=2)
    assert (placed(few), few.cut) == ([("m0", 0), ("m1", 1)], True)
    assert drawn(few) == [("m0", "follows", "m1")]
    assert not walk(index, "m0", limit=5).cut


def test_missing_targets_are_reported_and_stop_nothing(index: Index, change_of: Make) -> None:
    index.apply([change_of("a", links=(Link(to="gone"), Link(to="b"))), change_of("b")], now_ns=1)

    graph = walk(index, "a", "unheard of", depth=1)

    assert graph.start == ("a",)
    assert placed(graph) == [("a", 0), ("b", 1)]
    assert graph.missing == ("gone", "unheard of")
    assert walk(index, "unheard of").nodes == ()


def test_a_link_by_short_id_leads_where_the_id_does(index: Index, change_of: Make) -> None:
    tea, cup = "fact_tea_20260101_abc234", "insight_cup_20260101_abc234"
    index.apply(
        [change_of("a", path="facts/a.md", links=(Link(to="abc234"),)), change_of(tea)], now_ns=1
    )
    assert placed(walk(index, "a")) == [("a", 0), (tea, 1)]
    assert placed(walk(index, tea)) == [(tea, 0), ("a", 1)]
    assert placed(walk(index, "abc234")) == [(tea, 0), ("a", 1)]
    assert [edge.target for edge in index.ask(links.newest, (), 9).edges] == [tea]
    assert index.loose_links() == ()

    # The nearer one does not take precedence, as it does for names of files.
    index.apply([change_of(cup, path="facts/other.md")], now_ns=2)
    (loose,) = index.loose_links()
    assert (loose.target, loose.rivals) == ("abc234", (tea, cup))

    index.apply([change_of("note", path="notes/ABC234.md")], now_ns=3)
    assert [loose.rivals for loose in index.loose_links()] == [(tea, cup)]


def test_a_memory_that_lost_its_id_to_another_has_no_links(index: Index, change_of: Make) -> None:
    index.apply(
        [
            change_of("tea", path="notes/tea.md", links=(Link(to="a"),)),
            change_of("tea", path="z/other.md", links=(Link(to="b"),)),
            change_of("a"),
            change_of("b"),
        ],
        now_ns=1,
    )

    assert placed(walk(index, "b")) == [("b", 0)]
    assert placed(walk(index, "tea")) == [("tea", 0), ("a", 1)]


def test_more_links_than_a_query_takes_values(
    index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_AT_ONCE", 3)
    spokes = [change_of(f"s{n}", links=(Link(to="hub"),)) for n in range(10)]
    index.apply([change_of("hub"), *spokes], now_ns=1)

    graph = walk(index, "s3")

    assert len(graph.nodes) == 11
    assert len(graph.edges) == 10


@pytest.mark.req("004-58")
def test_a_walk_asks_a_few_questions_for_each_step_and_none_for_each_memory(
    index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    select = links._Walker._select

    def counted(self: Any, query: str, names: Any, more: Any = ()) -> list[Any]:
        asked.extend([query] if names else [])
        return select(self, query, names, more)

    monkeypatch.setattr(links._Walker, "_select", counted)
    tree = [change_of(f"m{n}", links=(Link(to=f"m{n // 4}"),)) for n in range(400)]
    index.apply(tree, now_ns=1)

    assert len(walk(index, "m0", depth=5).nodes) == 400
    assert len(asked) < 40
