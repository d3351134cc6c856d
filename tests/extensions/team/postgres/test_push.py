"""Pushing: after any history, the shared index has the state of the local one."""

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.data.disk import Stamp
from mimo.extensions.team.postgres import schema, source, writing
from mimo.extensions.team.postgres.connection import Server
from mimo.extensions.team.postgres.writing import Pushed, WorkingCopy, push
from mimo.frozen import replace
from mimo.index.embedding import open_embedder
from mimo.index.embedding.encoder import packaged_encoder
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Filter, Kind, Link
from mimo.text.tokens import tokenize
from tests.extensions.team.postgres.test_contract import COPY, change, ids

Connected = psycopg.Connection[tuple[Any, ...]]
Copies = dict[str, Index]

_projects = count()


class Stopped(Exception):
    """A push ends here."""


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    with closing(Server(url)) as opened:
        yield opened


@pytest.fixture
def sql(url: str) -> Iterator[Connected]:
    with psycopg.connect(url, autocommit=True) as opened:
        yield opened


@contextmanager
def local(unapproved: set[str], changes: Sequence[Change] = ()) -> Iterator[Index]:
    with tempfile.TemporaryDirectory() as folder:
        index = Index.open(Path(folder), open_embedder())
        index.encoder = packaged_encoder
        # The digests of claims have other digits, so they are not approved.
        index.approvals.checker = lambda: (
            lambda digest: len({*digest}) == 1 and digest not in unapproved
        )
        index.apply(changes, now_ns=1)
        with closing(index):
            yield index


def copy_of(project: str, name: str = "here") -> WorkingCopy:
    return replace(COPY, identity=project, project=project, name=name, label=name)


def pushed(
    server: Server,
    index: Index,
    copy: WorkingCopy = COPY,
    advance: Callable[[str, int, int], object] = lambda *_: None,
) -> Pushed:
    with index.sources() as sources:
        return push(server, copy, sources, advance)


def stored(sql: Connected, identity: str) -> dict[str, list[Any]]:
    """Returns all rows of a project, without the numbers that the server gave them."""
    row = sql.execute("SELECT key FROM mind.projects WHERE identity = %s", (identity,)).fetchone()
    assert row is not None
    (project,) = row
    of_memory = "encode((SELECT hash FROM mind.memories m WHERE m.key = t.memory), 'hex')"
    of_view = "(SELECT name FROM mind.views v WHERE v.key = t.view)"
    rows: dict[str, list[Any]] = {}
    for table in schema.TABLES:
        columns = f"to_jsonb(t) - '{{key,project,memory,view,pushed}}'::text[], '{table}'"
        if table in ("entries", "tags", "supersedes", "units"):
            columns += f", {of_memory}"
        if table in ("entries", "frequencies"):
            columns += f", {of_view}"
        query = f"SELECT {columns} FROM mind.{table} t WHERE project = %s"
        selected = sql.execute(query.encode(), (project,)).fetchall()
        assert all(value is not None for each in selected for value in each)
        rows[table] = sorted(
            (str(each).replace(f"#{project}'", "#'") for each in selected),
        )
    return rows


WORDS = ("kafka brokers", "green tea", "토큰 만료", "", "It's 'quoted' \\ text", "kafka kafka")
IDS = st.sampled_from("abcde")
EDIT = st.builds(
    lambda id, words, **fields: ("edit", id, words, fields),
    IDS,
    st.sampled_from(WORDS),
    private=st.sampled_from([False, False, True]),
    digest=st.sampled_from(["0" * 64, "1" * 64, "2" * 64]),
    tags=st.sampled_from([(), ("ops",), ("ops", "dev")]),
    topic=st.sampled_from([None, "queues", "토픽"]),
    links=st.sampled_from([(), (Link(to="a", type="supersedes"),), (Link(to="b"),)]),
    type=st.sampled_from([Kind.FACT, Kind.DECISION]),
    title=st.sampled_from([None, "Title"]),
)
BOOK = st.builds(lambda parts, private: ("book", parts, private), st.integers(0, 3), st.booleans())
STEPS = st.lists(
    st.one_of(
        EDIT,
        EDIT,
        BOOK,
        st.tuples(st.just("remove"), IDS),
        st.tuples(st.just("same"), IDS),
        st.tuples(st.just("trust"), st.sampled_from(["1" * 64, "2" * 64])),
        st.tuples(st.just("encode")),
        st.tuples(st.just("push"), st.sampled_from([None, None, 1, 2, 3])),
    ),
    max_size=12,
)


def book(parts: int, private: bool) -> Change:
    records = tuple(
        change(
            f"book.{n}",
            f"Chapter {n} about brokers",
            path="docs/book.md",
            parent="book",
            position=n,
            private=private,
            digest=str(parts) * 64,
        ).records[0]
        for n in range(parts)
    )
    stamp = Stamp(size=1, mtime_ns=1, ctime_ns=1, inode=1)
    return Change(path="docs/book.md", stamp=stamp, records=records, problem=None)


def take(index: Index, unapproved: set[str], step: Sequence[Any]) -> None:
    """Changes a local index."""
    match step:
        case ("edit", id, words, fields):
            index.apply([change(id, words, **fields)], now_ns=1)
        case ("book", parts, private):
            index.apply([book(parts, private)], now_ns=1)
        case ("same", id):  # The same id in a second file, which is shadowed.
            index.apply([change(id, "Another text", path=".mind/facts/zzz.md")], now_ns=1)
        case ("remove", id):
            index.apply([Change(path=f".mind/facts/{id}.md", stamp=None)], now_ns=1)
        case ("trust", digest):
            unapproved ^= {digest}
        case ("encode",):
            index.make_meanings(lambda done, of: None)


def stopping_at(call: int | None) -> Callable[[str, int, int], object]:
    calls = count(1)

    def advance(*_: object) -> None:
        if next(calls) == call:
            raise Stopped

    return advance


@given(st.lists(st.tuples(st.sampled_from(["here", "there"]), STEPS), max_size=4))
def test_after_any_changes_a_push_equals_that_of_a_new_project(
    server: Server, sql: Connected, turns: list[tuple[str, list[Any]]]
) -> None:
    project, fresh = f"project{next(_projects)}", f"project{next(_projects)}"
    with ExitStack() as opened:
        copies: Copies = {}
        trust: dict[str, set[str]] = {"here": set(), "there": set()}
        for name in ("here", "there"):
            copies[name] = opened.enter_context(local(trust[name]))
        for name, steps in turns:
            for step in steps:
                if step[0] == "push":
                    with suppress(Stopped):
                        copy = copy_of(project, name)
                        pushed(server, copies[name], copy, stopping_at(step[1]))
                else:
                    take(copies[name], trust[name], step)
        # Twice: a state counts the vectors that another one has brought.
        for name, index in [*copies.items()] * 2:
            pushed(server, index, copy_of(project, name))
            pushed(server, index, copy_of(fresh, name))
        assert stored(sql, project) == stored(sql, fresh)


def texts(sql: Connected) -> str:
    """Returns the content of all tables, as text."""
    names = sql.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'mind'").fetchall()
    rows = [
        sql.execute(f"SELECT t::text FROM mind.{name} t".encode()).fetchall() for (name,) in names
    ]
    return str(rows)


def counted(sql: Connected, table: str) -> int:
    row = sql.execute(f"SELECT count(*) FROM mind.{table}".encode()).fetchone()
    assert row
    return int(row[0])


def removed(id: str) -> Change:
    return Change(path=f".mind/facts/{id}.md", stamp=None)


@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "made private"])
def test_a_memory_of_an_interrupted_push_is_not_kept_when_no_state_has_it(
    server: Server, sql: Connected, is_removed: bool
) -> None:
    with local(
        set(), [change("a", "Green tea"), change("b", "Zanzibar is the code name")]
    ) as index:
        with pytest.raises(Stopped):
            pushed(server, index, COPY, stopping_at(2))
        assert "Zanzibar" in texts(sql)
        secret = change("b", "Zanzibar is the code name", private=True)
        index.apply([removed("b") if is_removed else secret], now_ns=1)
        pushed(server, index)
    assert "Green tea" in texts(sql)
    assert "zanzibar" not in texts(sql).lower()


def test_after_each_interruption_readers_see_a_whole_state(server: Server, sql: Connected) -> None:
    before, after = change("a", "Green tea"), change("a", "Black coffee")
    with local(set(), [before, change("b", "Kafka brokers")]) as index:
        index.make_meanings(lambda done, of: None)
        pushed(server, index)
        old = stored(sql, "shop")
        index.apply([after, removed("b"), change("c", "Zebra")], now_ns=1)
        index.make_meanings(lambda done, of: None)
        stops = 0
        while True:
            try:
                pushed(server, index, COPY, stopping_at(stops + 1))
            except Stopped:
                stops += 1
                now = stored(sql, "shop")
                assert {t: now[t] for t in OF_STATES} == {t: old[t] for t in OF_STATES}
            else:
                break
        assert stops >= 3
        pushed(server, index, copy_of("fresh"))
        now, fresh = stored(sql, "shop"), stored(sql, "fresh")
        assert {**now, "views": []} == {**fresh, "views": []}


OF_STATES = ("views", "entries", "frequencies")


def test_what_postgresql_cannot_store_does_not_stop_the_rest(
    server: Server, sql: Connected
) -> None:
    draw = random.Random(1)
    endless = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=5_000))
    syllables = [chr(draw.randrange(0x4E00, 0x9FFF)) for _ in range(20_000)]
    changes = [
        change("plain", "Green tea"),
        change("word", f"before {endless} after"),
        change("unspaced", "".join(draw.choices(syllables, k=20_000))),
        change("distinct", " ".join(map(str, range(20_000)))),
        change("nul", "a\0b"),
        change("topic", "topic", topic=endless[::-1]),
        change("tag", "tag", tags=(endless[::-1],), links=(Link(to=endless, type="supersedes"),)),
        change(endless, "id"),
        change("title", "title", title=f"before {endless}"),
    ]
    with local(set(), changes) as index:
        done = pushed(server, index)
        assert (done.memories, done.left_out) == (len(changes) - 3, 3)
        views = [*source.working_copy(sql, "here")]
        with source.opened(server, lambda _: views, open_embedder()) as other:
            words = tokenize(f"before {endless}")
            assert len(words[1]) > 4_000
            for terms in (words, words[1:]):
                assert other.frequencies(terms)[terms[-1]] == 1
                best = other.by_words(terms, Filter(), admitted=7, matches=len(terms))
                assert ids(other, best)[0] == "title"


def test_an_empty_store_is_pushed_and_a_state_is_emptied(server: Server, sql: Connected) -> None:
    with local(set()) as index:
        assert pushed(server, index).memories == 0
        index.apply([change("a", "Green tea", tags=("ops",))], now_ns=1)
        assert pushed(server, index).added == 1
        index.apply([removed("a")], now_ns=1)
        assert pushed(server, index).removed == 1
    assert {table: counted(sql, table) for table in schema.TABLES if table != "views"} == {
        table: 0 for table in schema.TABLES if table != "views"
    }


def test_states_of_one_repository_share_their_rows(server: Server, sql: Connected) -> None:
    with local(set(), [change(id, f"Note {id}") for id in "abcd"]) as index:
        index.make_meanings(lambda done, of: None)
        pushed(server, index)
        shared = ("memories", "units", "vectors")
        before = [counted(sql, table) for table in shared]
        done = pushed(server, index, copy_of("shop", "branch"))
        assert (done.added, done.vectors) == (0, 0)
        assert [counted(sql, table) for table in shared] == before
        assert counted(sql, "entries") == 8
        index.apply([removed("a")], now_ns=1)
        pushed(server, index, copy_of("shop", "branch"))
        assert [counted(sql, table) for table in shared] == before
        sql.execute("UPDATE mind.views SET pushed = now() - interval '91 days' WHERE name = 'here'")
        pushed(server, index, copy_of("shop", "branch"))
        assert counted(sql, "views") == 1
        assert counted(sql, "entries") == counted(sql, "memories") == before[0] - 1


def test_searches_of_others_read_the_newest_state_of_the_default_branch(
    server: Server, sql: Connected
) -> None:
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    with local(set()) as index:
        for name, is_default, days in (
            ("old", True, 1), ("new", True, 3), ("feature", False, 9), ("never", True, None),
        ):  # fmt: skip
            committed = None if days is None else noon + timedelta(days=days)
            copy = replace(copy_of("shop", name), is_default=is_default, committed=committed)
            pushed(server, index, copy)
    assert [view.label for view in source.others(sql)] == ["new"]
    assert source.others(sql, "shop") == []


def test_a_commit_of_a_clock_that_is_ahead_is_the_latest_only_until_the_next(
    server: Server, sql: Connected
) -> None:
    with local(set()) as index:
        for name, ahead in (("ahead", timedelta(days=900)), ("right", timedelta())):
            row = sql.execute("SELECT clock_timestamp()").fetchone()
            assert row
            committed = row[0] + ahead
            pushed(server, index, replace(copy_of("shop", name), committed=committed))
            assert [view.label for view in source.others(sql)] == [name]


def both(*pushes: Callable[[], object]) -> None:
    """Runs pushes at once."""
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(each) for each in pushes]:
            done.result()


def test_pushes_at_once_agree(url: str, sql: Connected) -> None:
    changes = [change(f"n{n}", f"Note {n} about {WORDS[n % 6]}", tags=("ops",)) for n in range(60)]
    names = [("shop", "here"), ("shop", "here"), ("shop", "clone"), ("billing", "here")]
    with ExitStack() as opened:
        indexes = [opened.enter_context(local(set(), changes)) for _ in names]
        servers = [opened.enter_context(closing(Server(url))) for _ in names]

        def of(number: int) -> Callable[[], object]:
            copy = copy_of(*names[number])
            return lambda: [pushed(servers[number], indexes[number], copy) for _ in range(2)]

        both(*map(of, range(len(names))))
        for number, index in enumerate(indexes):
            index.apply([removed(f"n{number}"), change("new", f"By {number}")], now_ns=1)
        both(*map(of, range(len(names))))
        indexes[1].apply([removed("n0"), change("new", "By 0")], now_ns=1)
        indexes[1].apply([change("n1", f"Note 1 about {WORDS[1]}", tags=("ops",))], now_ns=1)
        both(of(0), of(1), of(2))
        for number in (0, 2):
            pushed(servers[0], indexes[number], copy_of("fresh", names[number][1]))
        pushed(servers[0], indexes[3], copy_of("other"))
    assert counted(sql, "projects") == 4
    for project, fresh in (("shop", "fresh"), ("billing", "other")):
        first, second = stored(sql, project), stored(sql, fresh)
        assert {**first, "views": []} == {**second, "views": []}


def test_indexes_by_nearness_are_made_once_by_pushes_at_once(
    url: str, sql: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MANY", 3)
    with ExitStack() as opened:
        changes = [change(f"n{n}", f"Note {n}") for n in range(20)]
        index = opened.enter_context(local(set(), changes))
        servers = [opened.enter_context(closing(Server(url))) for _ in range(3)]
        both(
            *(
                lambda server=server, n=n: pushed(server, index, copy_of(f"p{n}"))
                for n, server in enumerate(servers)
            )
        )
        # An interrupted one is made by the next push, even if that sends nothing.
        made = "SELECT relname FROM pg_class WHERE relname LIKE 'vectors_near_%'"
        ((name,),) = sql.execute(made.encode()).fetchall()
        sql.execute(f"DROP INDEX mind.{name}".encode())
        pushed(servers[0], index, copy_of("p0"))
        assert sql.execute(made.encode()).fetchall() == [(name,)]
