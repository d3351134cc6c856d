from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mimo.data.disk import Stamp
from mimo.index import selection, spelling
from mimo.index.catalog import Catalog
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import (
    Filter,
    Kind,
    Link,
    Memory,
    Outcome,
    Place,
    Problem,
    Record,
    Section,
    Sort,
)

Make = Callable[..., Change]

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)


def ids(records: tuple[Record, ...]) -> list[str]:
    return [record.memory.id for record in records]


def test_a_stored_memory_is_read_back_unchanged(index: Index) -> None:
    record = Record(
        memory=Memory(
            id="decision_auth_20260101_abcdef",
            type=Kind.DECISION,
            content="Use JWT\r\nwith `refresh` tokens — 결정 🚀",
            created=datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=UTC),
            title="Use JWT",
            topic="auth",
            tags=("b", "a"),
            importance=0.7,
            confidence=0.25,
            outcome=Outcome.FAILED,
            category="security",
            source="import",
            status="active",
            by="claude-code",
            protected=False,
            links=(Link(to="x", type="supersedes", given="replaces", confidence=0.5, by="me"),),
            sections={Section.REASONING: "It scales.", Section.NEXT_STEPS: "- none"},
            extra={"aliases": ["jwt"], "nested": {"n": None, "f": 1.5}},
        ),
        place=Place(path=".mind/private/a.md", line=9, digest="f" * 64, private=True, owned=False),
        parent="whole",
        position=3,
    )
    stamp = Stamp(size=1, mtime_ns=2, ctime_ns=3, inode=4)
    index.apply([Change(path=record.place.path, stamp=stamp, records=(record,))], now_ns=1)

    assert index.get(record.memory.id) == record
    assert index.records(Filter()) == (record,)


def test_stamps_have_the_time_of_reading(index: Index, change_of: Make) -> None:
    huge = Stamp(size=2**40, mtime_ns=-1, ctime_ns=2**62, inode=2**64 - 1)
    index.apply([Change(path="notes/a.md", stamp=huge)], now_ns=7)
    index.apply([change_of("b")], now_ns=8)

    assert index.stamps() == {
        "notes/a.md": (huge, 7),
        ".mind/facts/b.md": (change_of("b").stamp, 8),
    }
    assert index.changed_at() == datetime(1970, 1, 1, tzinfo=UTC)


def test_a_file_name_that_is_not_unicode_is_stored(index: Index, change_of: Make) -> None:
    change = change_of("a", path="notes/\udcff.md")
    index.apply([change], now_ns=1)

    assert list(index.stamps()) == ["notes/\udcff.md"]
    assert index.get("a") == change.records[0]
    index.apply([Change(path="notes/\udcff.md", stamp=None)], now_ns=2)
    assert index.get("a") is None


def test_a_memory_that_is_not_unicode_is_a_problem_and_others_are_stored(
    index: Index, change_of: Make
) -> None:
    index.apply([change_of("a", "broken \ud800 text"), change_of("b")], now_ns=1)

    assert ids(index.records(Filter())) == ["b"]
    assert [problem.path for problem in index.problems()] == [".mind/facts/a.md"]


@pytest.mark.req("000-48")
def test_memories_of_a_missing_file_are_removed(index: Index, change_of: Make) -> None:
    index.apply([change_of("a", "alpha"), change_of("b", "beta")], now_ns=1)
    index.apply([Change(path=".mind/facts/a.md", stamp=None)], now_ns=2)

    assert ids(index.records(Filter())) == ["b"]
    assert index.get("a") is None
    assert index.count(Filter()) == 1
    assert list(index.stamps()) == [".mind/facts/b.md"]


def test_a_file_that_was_removed_may_come_back(index: Index, change_of: Make) -> None:
    for _ in range(3):
        index.apply([change_of("a", "alpha")], now_ns=1)
        index.apply([Change(path=".mind/facts/a.md", stamp=None)], now_ns=2)
    index.apply([change_of("a", "beta"), change_of("a", "gamma")], now_ns=3)

    record = index.get("a")
    assert record is not None
    assert record.memory.content == "gamma"
    assert index.stats().memories == index.stats().units == index.stats().files == 1


FILTERED = {
    "types": (Filter(types=frozenset({Kind.DECISION, Kind.PLAN})), ["d", "c"]),
    "no type": (Filter(types=frozenset()), []),
    "one tag": (Filter(tags=frozenset({"red"})), ["d", "b"]),
    "every tag": (Filter(tags=frozenset({"RED", "round"})), ["b"]),
    "topic": (Filter(topic="auth"), ["c", "a"]),
    "since is included": (Filter(since=JANUARY + timedelta(days=2)), ["d", "c"]),
    "until is excluded": (Filter(until=JANUARY + timedelta(days=1)), ["a"]),
    "all at once": (
        Filter(types=frozenset({Kind.DECISION}), topic="Auth", since=JANUARY + timedelta(days=1)),
        ["c"],
    ),
}


@pytest.mark.req("000-45")
@pytest.mark.parametrize(("narrowed", "expected"), FILTERED.values(), ids=FILTERED)
def test_lists_and_counts_obey_every_filter(
    index: Index, change_of: Make, narrowed: Filter, expected: list[str]
) -> None:
    fields: list[dict[str, Any]] = [
        {"topic": "Auth"},
        {"tags": ("Red", "round")},
        {"topic": "auth", "type": Kind.DECISION},
        {"tags": ("red",), "type": Kind.PLAN},
    ]
    index.apply(
        [
            change_of(name, created=JANUARY + timedelta(days=day), **given)
            for day, (name, given) in enumerate(zip("abcd", fields, strict=True))
        ],
        now_ns=1,
    )

    assert ids(index.records(narrowed)) == expected
    assert index.count(narrowed) == len(expected)


@pytest.mark.req("000-43", "000-44", "000-46")
@pytest.mark.req("004-25")
@pytest.mark.parametrize(
    ("filter", "column"),
    [
        (Filter(types=frozenset({Kind.DECISION})), "type=?"),
        (Filter(topic="auth"), "topic_key=?"),
        (Filter(outcomes=frozenset({Outcome.FAILED})), "outcome=?"),
        (Filter(since=JANUARY), "created>?"),
        (Filter(until=JANUARY), "created<?"),
        (Filter(topic="auth", since=JANUARY), "topic_key=? AND shadowed=? AND created>?"),
    ],
)
def test_a_filter_is_looked_up_in_a_database_index(
    index: Index, filter: Filter, column: str
) -> None:
    where, values = selection.condition(filter)
    with index._tables.reading() as sql:
        plan = sql.execute(f"EXPLAIN QUERY PLAN SELECT * FROM memories m WHERE {where}", values)
        ((*_, detail),) = plan.fetchall()

    assert detail.startswith("SEARCH m USING INDEX")
    assert column in detail


def test_hooks_look_a_memory_up_by_its_id(index: Index) -> None:
    asked: list[str] = []
    with index._tables.reading() as sql:
        sql.set_trace_callback(asked.append)
        Catalog(sql).by_id("a")
        sql.set_trace_callback(None)
        plan = sql.execute(f"EXPLAIN QUERY PLAN {asked[-1]}").fetchall()

    assert "memories_id (id=?" in plan[0][-1]


def test_lists_are_sorted_and_paged(index: Index, change_of: Make) -> None:
    index.apply(
        [
            change_of(name, importance=importance, created=JANUARY + timedelta(days=day))
            for name, importance, day in [
                ("a", 0.5, 0),
                ("b", 0.9, 1),
                ("c", 0.5, 2),
                ("d", 0.1, 2),
            ]
        ],
        now_ns=1,
    )

    assert ids(index.records(Filter(), sort=Sort.RECENT)) == ["c", "d", "b", "a"]
    assert ids(index.records(Filter(), sort=Sort.IMPORTANCE)) == ["b", "c", "a", "d"]
    assert ids(index.records(Filter(), limit=2, offset=1)) == ["d", "b"]
    assert ids(index.records(Filter(), limit=2, offset=9)) == []
    assert index.records(Filter(), limit=0) == ()


MATCHING = {
    "plan_a_k3v7mq": ("plan_a_k3v7mq",),
    "plan_": ("plan_a_k3v7mq", "plan_b_p2w9xa"),
    "k3v7mq": ("plan_a_k3v7mq",),
    "a": ("a",),
    "%": (),
    "plan%": (),
    "PLAN": (),
    "": (),
}


def test_a_word_whose_last_memory_was_just_removed_is_no_longer_near(
    index: Index, change_of: Make
) -> None:
    index.apply([change_of("gone", content="zebras"), change_of("left", content="zebus")], now_ns=1)
    tokens = index.cached(spelling.terms)
    index.apply([Change(path=change_of("gone").path, stamp=None)], now_ns=2)

    near = index.ask(spelling.nearest, tokens, "zebrs", Filter())
    assert [word for *_, word in near] == ["zebus"]


@pytest.mark.parametrize(("abbreviation", "expected"), MATCHING.items())
def test_an_id_can_be_abbreviated_at_either_end(
    index: Index, change_of: Make, abbreviation: str, expected: tuple[str, ...]
) -> None:
    index.apply([change_of("plan_b_p2w9xa"), change_of("plan_a_k3v7mq"), change_of("a")], now_ns=1)

    assert index.matching(abbreviation) == expected


def test_ids_near_a_misspelled_one_are_suggested(index: Index, change_of: Make) -> None:
    index.apply(
        [change_of("decision_auth"), change_of("decision_cache"), change_of("fact_tea")], now_ns=1
    )

    assert index.nearest_ids("decision_auht")[0] == "decision_auth"
    assert index.nearest_ids("zzzzzzzz") == ()
    assert index.nearest_ids("a") == ()

    index.apply([change_of(f"plan_tea_{number}") for number in range(5)], now_ns=2)
    assert len(index.nearest_ids("plan_tee_0")) == 3


def test_near_ids_are_suggested_among_many(
    index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.names._COMPARED_IDS", 2)
    index.apply([change_of(name) for name in ("aa_x", "bb_x", "cc_x", "zebra_stripes")], now_ns=1)

    assert index.nearest_ids("zebra_strips") == ("zebra_stripes",)


class TestSameId:
    """Of two files with one id, the same one keeps it in any order of changes."""

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
    def test_the_file_of_that_name_keeps_the_id(
        self, index: Index, change_of: Make, order: tuple[int, ...]
    ) -> None:
        changes = [
            change_of("tea", "one", path="notes/a.md"),
            change_of("tea", "two", path="notes/tea.md"),
            change_of("tea", "three", path="other/tea.md"),
        ]
        for number in order:
            index.apply([changes[number]], now_ns=1)

        record = index.get("tea")
        assert record is not None
        assert record.place.path == "notes/tea.md"
        assert index.count(Filter()) == index.stats().memories == 1
        assert index.problems() == (
            Problem(path="notes/a.md", line=1, reason="its id `tea` belongs to `notes/tea.md`"),
            Problem(path="other/tea.md", line=1, reason="its id `tea` belongs to `notes/tea.md`"),
        )

    def test_the_next_file_gets_the_id_when_the_owner_is_removed(
        self, index: Index, change_of: Make
    ) -> None:
        index.apply(
            [change_of("tea", path="notes/tea.md"), change_of("tea", path="b.md")], now_ns=1
        )
        index.apply([Change(path="notes/tea.md", stamp=None)], now_ns=2)

        record = index.get("tea")
        assert record is not None
        assert record.place.path == "b.md"
        assert index.problems() == ()
        assert index.count(Filter()) == 1

    def test_a_memory_with_a_new_id_is_no_longer_a_problem(
        self, index: Index, change_of: Make
    ) -> None:
        index.apply([change_of("tea", path="a.md"), change_of("tea", path="b.md")], now_ns=1)
        index.apply([change_of("coffee", path="b.md")], now_ns=2)

        assert index.problems() == ()
        assert index.count(Filter()) == 2


def test_problems_have_line_and_reason_until_they_are_fixed(index: Index, change_of: Make) -> None:
    problem = Problem(path=".mind/facts/a.md", line=3, reason="bad YAML")
    stamp = change_of("a").stamp
    index.apply([Change(path=problem.path, stamp=stamp, problem=problem)], now_ns=1)
    assert index.problems() == (problem,)

    index.apply([change_of("a")], now_ns=2)
    assert index.problems() == ()


class TestFolding:
    """An ingested file counts as one row of a list."""

    @pytest.fixture
    def sources(self, index: Index, change_of: Make) -> Index:
        changes = [change_of(f"m{n}", created=JANUARY + timedelta(days=n)) for n in range(4)]
        for day, name in ((1, "source_a"), (2, "source_b")):
            parts = [
                change_of(
                    f"{name}.{n}",
                    path=name,
                    parent=name,
                    position=n,
                    created=JANUARY + timedelta(days=day, hours=1),
                    tags=("even",) if n % 2 == 0 else ("odd",),
                    importance=0.9 if name == "source_a" else 0.5,
                )
                for n in range(3)
            ]
            records = tuple(record for part in parts for record in part.records)
            changes.append(Change(path=name, stamp=parts[0].stamp, records=records))
        index.apply(changes, now_ns=1)
        return index

    def folded(self, index: Index, filter: Filter, **options: Any) -> list[str]:
        wanted = {"sort": Sort.RECENT, "limit": -1, "offset": 0, **options}
        return ids(index.folded_records(filter, **wanted))

    def test_its_first_chunk_represents_it(self, sources: Index) -> None:
        assert self.folded(sources, Filter()) == [
            "m3",
            "source_b.0",
            "m2",
            "source_a.0",
            "m1",
            "m0",
        ]
        assert sources.folded(Filter()) == (6, 6)
        assert sources.chunk_counts(["source_a", "source_b"], Filter()) == {
            "source_a": 3,
            "source_b": 3,
        }

    def test_only_chunks_that_pass_the_filter_count(self, sources: Index) -> None:
        odd = Filter(tags=frozenset({"odd"}))

        assert self.folded(sources, odd) == ["source_b.1", "source_a.1"]
        assert sources.folded(odd) == (2, 2)
        assert sources.chunk_counts(["source_a"], odd) == {"source_a": 1}
        assert sources.folded(Filter(since=JANUARY + timedelta(days=3))) == (1, 0)

    @pytest.mark.parametrize("sort", Sort)
    def test_pages_neither_repeat_nor_skip_a_row(self, sources: Index, sort: Sort) -> None:
        pages = [
            self.folded(sources, Filter(), sort=sort, limit=2, offset=offset)
            for offset in (0, 2, 4, 6)
        ]

        assert [len(page) for page in pages] == [2, 2, 2, 0]
        assert [id for page in pages for id in page] == self.folded(sources, Filter(), sort=sort)
        if sort is Sort.IMPORTANCE:
            assert pages[0][0] == "source_a.0"

    def test_there_are_no_chunks_without_ingested_files(
        self, index: Index, change_of: Make
    ) -> None:
        index.apply([change_of("a")], now_ns=1)

        assert index.folded(Filter()) == (1, 0)
