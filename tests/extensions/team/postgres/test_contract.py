"""The shared index answers searches as the local one does: one contract for both."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import psycopg
import pytest

from mimo.data.disk import Stamp
from mimo.extensions.team.postgres import source, writing
from mimo.extensions.team.postgres.connection import Server
from mimo.extensions.team.postgres.writing import WorkingCopy, push
from mimo.index.embedding import open_embedder
from mimo.index.embedding.encoder import Encoder, packaged_encoder
from mimo.index.index import Index
from mimo.index.rows import Change, Found, Request
from mimo.index.search import Source, search
from mimo.index.tables import Tables
from mimo.memory.model import Filter, Kind, Link, Memory, Outcome, Place, Record
from mimo.text.tokens import tokenize
from tests.extensions.team.postgres.conftest import ON_BOTH

NOW = datetime(2026, 11, 20, tzinfo=UTC)
COPY = WorkingCopy(
    identity="shop",
    project="shop",
    name="here",
    label="main",
    is_default=True,
    committed=None,
    policy=None,
)
UNAPPROVED = "f" * 64


def change(
    id: str, content: str, *, parent: str | None = None, digest: str = "0" * 64, **fields: Any
) -> Change:
    path = fields.pop("path", f".mind/facts/{id}.md")
    position = fields.pop("position", 0)
    private = fields.pop("private", False)
    given = {"type": Kind.FACT, "created": NOW - timedelta(days=len(content) % 10_000), **fields}
    memory = Memory(id=id, content=content, **given)
    place = Place(path=path, line=3, digest=digest, private=private)
    record = Record(memory=memory, place=place, parent=parent, position=position)
    stamp = Stamp(size=1, mtime_ns=1, ctime_ns=1, inode=1)
    return Change(path=path, stamp=stamp, records=(record,), problem=None)


def changes() -> list[Change]:
    """Returns a store with all that a search distinguishes."""
    words = "token login cache proxy upload retry payment locale index lock job database".split()
    draw = random.Random(1)
    notes = [
        change(
            f"note{n:03}",
            " ".join(draw.choices(words, range(1, 13), k=draw.randint(3, 40))),
            tags=("ops",) if n % 3 else (),
            importance=(n % 10) / 10,
        )
        for n in range(200)
    ]
    # All equal: only their ids order them, and not the order in which they were read.
    notes += [change(f"same{n:02}", "Green tea is served at noon") for n in reversed(range(30))]
    notes += [
        change(
            "jwt",
            "Use JWT with refresh tokens",
            type=Kind.DECISION,
            topic="auth",
            title="JWT",
        ),
        change(
            "sessions",
            "Use server sessions in Redis for staying signed in",
            type=Kind.DECISION,
            topic="auth",
            title="Sessions",
            outcome=Outcome.FAILED,
            links=(Link(to="cookies", type="supersedes"),),
        ),
        change("cookies", "Keep the login in a cookie", type=Kind.DECISION, topic="auth"),
        change(
            "claim",
            "Keep the login in local storage",
            type=Kind.DECISION,
            topic="auth",
            digest=UNAPPROVED,
            links=(Link(to="jwt", type="supersedes"),),
        ),
        change("korean", "토큰은 십오 분 뒤에 만료된다 ✅", title="토큰 만료"),
        change("quote", "It's the 'proxy' that can\\'t upload \\ backslashes", title="'quoted'"),
        change("empty", "", title="Upload"),
        change("long", "\n\n".join(f"{word} paragraph about {word}" * 12 for word in words)),
        change("chat", "user: where is the token?\nassistant: in the cookie\nuser: thanks, I see"),
    ]
    book = [
        change(
            f"book.{n}",
            f"Chapter {n} explains the {words[n % 12]} and its limits",
            path="docs/book.md",
            parent="book",
            position=n,
        ).records[0]
        for n in range(9)
    ]
    stamp = Stamp(size=1, mtime_ns=1, ctime_ns=1, inode=1)
    return [*notes, Change(path="docs/book.md", stamp=stamp, records=tuple(book), problem=None)]


QUERIES = (
    *("token", "why do uploads fail behind the proxy", "how do people stay signed in?"),
    *("green tea", "login cookie", "JWT", "토큰 만료", "when does a token expire", "auth"),
    *("which database did we choose", "chapter about the cache", "it's 'quoted'", "nothing known"),
    *("the of", "✅ €", "tea served at lunch time", "payment retry locale index lock job database"),
)
FILTERS = (
    Filter(),
    Filter(types=frozenset({Kind.DECISION})),
    Filter(tags=frozenset({"ops"})),
    Filter(topic="auth"),
    Filter(approved=True),
    Filter(unapproved=True),
    Filter(current=True),
    Filter(outcomes=frozenset({Outcome.FAILED})),
    Filter(outcomes=frozenset({Outcome.SUCCESS, None})),
    Filter(outcomes=frozenset({None}), topic="auth", tags=frozenset({"Auth", "ops"})),
    Filter(types=frozenset()),
    Filter(whole=True),
    Filter(since=NOW - timedelta(days=60), until=NOW - timedelta(days=20)),
    Filter(shared=True),
)


QUERIES_OF = [(filter, QUERIES[n % 4 :: 4] if n else QUERIES) for n, filter in enumerate(FILTERS)]
"""All questions without a filter, and a fourth of them with each filter."""


@pytest.fixture(autouse=True, scope="module")
def _encoded_once() -> Iterator[None]:
    """The vector of a question does not depend on the index that is asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Encoder, "encode", cache(Encoder.encode))
        yield


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    index = Index.open(tmp_path_factory.mktemp("local"), open_embedder())
    index.encoder = packaged_encoder
    index.approvals.checker = lambda: lambda digest: len({*digest}) == 1 and digest != UNAPPROVED
    index.apply(changes(), now_ns=1)
    index.make_meanings(lambda done, of: None)
    yield index
    index.close()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """One reading is held for many searches here."""
    monkeypatch.setattr(source, "QUERY_SECONDS", 600)


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    opened = Server(url)
    yield opened
    opened.close()


def pushed(server: Server, index: Index, copy: WorkingCopy = COPY) -> Any:
    with index.sources() as sources:
        return push(server, copy, sources)


def request(text: str, filter: Filter) -> Request:
    return Request(text, filter, limit=10, now=NOW)


def remote(server: Server, asked: Sequence[Request], name: str = "here") -> list[Found]:
    def choose(sql: Any) -> list[source.View]:
        return source.working_copy(sql, name)

    with source.opened(server, choose, open_embedder(), packaged_encoder) as opened:
        return [search(opened, each) for each in asked]


def rows_of(answer: Found) -> list[Any]:
    return [(h.record, h.score, h.passage, h.line, h.newer, h.competing) for h in answer.hits]


def test_both_indexes_give_the_same_answers_in_the_same_order(server: Server, local: Index) -> None:
    pushed(server, local)
    asked = [request(text, filter) for filter, texts in QUERIES_OF for text in texts]
    for each, answer in zip(asked, remote(server, asked), strict=True):
        expected = local.search(each)
        assert rows_of(answer) == rows_of(expected), (each.text, each.filter)
        assert (answer.considered, answer.notice) == (expected.considered, expected.notice)


@pytest.mark.parametrize(("units", "read"), [(100, 125), (5, 6)])
def test_both_indexes_name_the_same_candidates_in_the_same_order(
    server: Server, local: Index, monkeypatch: pytest.MonkeyPatch, units: int, read: int
) -> None:
    monkeypatch.setattr("mimo.index.selection.UNITS", units)
    monkeypatch.setattr("mimo.index.selection.READ", read)
    pushed(server, local)
    phrases = ("token", "job database", "green tea", "upload 'quoted'", "토큰", "✅", QUERIES[-1])
    sets = [tokenize(phrase) for phrase in phrases]
    embedder, encoder = open_embedder(), packaged_encoder()
    with (
        source.opened(
            server, lambda sql: source.working_copy(sql, "here"), embedder, packaged_encoder
        ) as other,
        local.reading() as sql,
    ):
        tables = Tables(sql, local._vectors, embedder, lambda: local.meanings)
        assert other.totals._replace(revision=0) == tables.totals._replace(revision=0)
        for filter, texts in QUERIES_OF:
            admitted = tables.count(filter)
            assert other.count(filter) == admitted
            for terms in sets:
                counted = tables.frequencies(terms)
                assert other.frequencies(terms) == counted
                given = {"admitted": admitted, "matches": sum(counted.values())}
                expected = ids(tables, tables.by_words(terms, filter, **given))
                assert ids(other, other.by_words(terms, filter, **given)) == expected, terms
            for text in texts:
                query = embedder.encode(text)
                expected = ids(tables, tables.by_vector(query, filter))
                assert ids(other, other.by_vector(query, filter)) == expected, text
                if encoder.encode(text):
                    assert near(other, text, filter) == near(tables, text, filter)


@ON_BOTH
def test_with_an_index_by_nearness_the_answers_stay_the_same(
    server: Server, url: str, local: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MANY", 100)
    with psycopg.connect(url, autocommit=True) as sql:
        # The planner prefers to compare so few vectors.
        for setting in ("enable_seqscan", "enable_sort", "enable_bitmapscan"):
            sql.execute(
                f"ALTER ROLE postgres IN DATABASE {sql.info.dbname} SET {setting} = off".encode()
            )
    pushed(server, local)
    server.close()
    asked = [request(text, filter) for filter in (Filter(), *FILTERS[1:4]) for text in QUERIES]
    for each, answer in zip(asked, remote(server, asked), strict=True):
        expected = local.search(each)
        assert rows_of(answer) == rows_of(expected), (each.text, each.filter)
    server.close()  # Its connections report what they used.
    with psycopg.connect(url) as sql:
        used = sql.execute(
            "SELECT idx_scan > 0 FROM pg_stat_user_indexes WHERE indexrelname LIKE 'vectors_near_%'"
        ).fetchall()
    assert sorted(used) == [(False,), (True,)]  # The encoder leaves no work to static vectors.


def ids(opened: Source, keys: Sequence[int]) -> list[str]:
    stored = opened.stored(keys)
    return [stored[key].memory.id for key in keys]


def near(opened: Source, text: str, filter: Filter) -> Any:
    compared = opened.compared(text, filter, list)
    if compared is None:
        return None
    keys = [key for key, _ in compared.nearest]
    names = {name for memory in opened.stored(keys).values() for name in memory.candidate.vectors}
    cosines = [cosine for _, cosine in compared.nearest]
    return ids(opened, keys), cosines, compared.cosines(names)
