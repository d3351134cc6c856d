from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimo.index.embedding import Embedder
from mimo.index.index import Index
from mimo.index.rows import Change, Found, Request
from mimo.index.search import Candidates, _is_conversation, _joined
from mimo.index.tables import Tables
from mimo.memory.model import Filter, Kind, Link, Section
from mimo.ranking import Shape

Make = Callable[..., Change]

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def search(index: Index, text: str, **given: Any) -> Found:
    arguments = {"filter": Filter(), "limit": 10, "now": NOW, **given}
    return index.search(Request(text, **arguments))


def names(answer: Found) -> list[str]:
    return [hit.record.memory.id for hit in answer.hits]


class BrokenEmbedder:
    """Fails as a model without its files does."""

    model = "broken"

    def encode(self, text: str) -> bytes:
        raise FileNotFoundError("model.safetensors")

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        raise FileNotFoundError("model.safetensors")


@pytest.mark.parametrize(
    ("speakers", "is_one"),
    [
        (["ann ben", "ben", "ann", ""], True),
        (["note", "", "", "note"], False),
        (["host", "port", "user_name", "path"], False),
    ],
)
def test_a_conversation_has_few_speakers(speakers: list[str], is_one: bool) -> None:
    assert _is_conversation(speakers) is is_one


def shapes(folder: Path, change: Change) -> set[Shape]:
    index = Index.open(folder, None)
    index.apply([change], now_ns=1)
    with index.reading() as sql:
        keys = [key for (key,) in sql.execute("SELECT key FROM memories")]
        source = Tables(sql, None, None)
        candidates = Candidates(source, keys, Filter()).listed
    index.close()
    return {candidate.shape for candidate in candidates}


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("user: Where is the key?\nassistant: In the safe.", Shape.CONVERSATION),
        ("User names are folded.\n" + "assistant roles may\n" * 40, Shape.NOTE),
        ("Ann: Where is the key?\nBen: In the safe.\n" * 20, Shape.CONVERSATION),
    ],
)
def test_a_conversation_is_told_from_a_note(
    folder: Path, change_of: Make, text: str, shape: Shape
) -> None:
    assert shapes(folder, change_of("a", text)) == {shape}


def test_the_memory_with_the_answer_comes_first(index: Index, change_of: Make) -> None:
    index.apply(
        [
            change_of("jwt", "We sign sessions with JWT tokens"),
            change_of("tea", "The kitchen has green tea"),
            change_of("sign", "A sign hangs on the door"),
        ],
        now_ns=1,
    )
    answer = search(index, "how are JWT sessions signed?")

    assert names(answer)[0] == "jwt"
    assert answer.hits[0].score > 0.3
    assert answer.notice is None
    assert [hit.score for hit in search(index, "JWT").hits if hit.score < 0.3] == []


def test_scores_lie_between_0_and_1(index: Index, change_of: Make) -> None:
    index.apply([change_of(f"m{n}", "tea " * n, importance=1.0) for n in range(1, 9)], now_ns=1)

    assert all(0 <= hit.score <= 1 for hit in search(index, "tea tea tea").hits)


@pytest.mark.req("000-37", "000-38", "000-41")
def test_the_limit_cuts_the_answer_and_not_what_was_considered(
    index: Index, change_of: Make
) -> None:
    index.apply([change_of(f"tea{n}", f"green tea number {n}") for n in range(20)], now_ns=1)
    index.apply([change_of("other", "a bicycle", type=Kind.PLAN)], now_ns=1)

    assert len(search(index, "green tea", limit=3).hits) == 3
    assert search(index, "green tea", limit=3).considered == 21
    assert search(index, "tea", filter=Filter(types=frozenset({Kind.PLAN}))).considered == 1
    assert search(index, "tea", limit=0).hits == ()


@pytest.mark.req("000-39", "000-42")
def test_filters_apply_before_the_limit(
    index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.selection.UNITS", 5)
    strong = [change_of(f"fact{n}", "green tea " * 5, importance=1.0) for n in range(30)]
    weak = change_of("plan", "some day there will be tea", type=Kind.PLAN, tags=("later",))
    index.apply([*strong, weak], now_ns=1)

    for narrowed in (Filter(types=frozenset({Kind.PLAN})), Filter(tags=frozenset({"later"}))):
        assert names(search(index, "green tea", filter=narrowed, limit=1)) == ["plan"]


def test_title_topic_and_tags_are_searched_too(index: Index, change_of: Make) -> None:
    index.apply(
        [
            change_of("a", "see the wiki", title="Retry policy"),
            change_of("b", "see the wiki", topic="queue_backoff"),
            change_of("c", "see the wiki", tags=("jitter",)),
            change_of("d", "!!!", title="Only a title"),
        ],
        now_ns=1,
    )

    assert names(search(index, "retry"))[:1] == ["a"]
    assert names(search(index, "backoff"))[:1] == ["b"]
    assert names(search(index, "jitter"))[:1] == ["c"]
    assert (
        search(index, "title").hits[0].passage == "!!!" or names(search(index, "title"))[0] == "d"
    )


@pytest.mark.req("004-26")
@pytest.mark.parametrize(
    ("query", "other", "answer"),
    [
        ("datastore kafka policy", "kafka policy of team", "데이터베이스"),
        ("데이터베이스 정책 회의", "정책 회의 팀", "postgres"),
    ],
)
def test_a_memory_in_another_language_is_a_candidate_beside_matches_by_words(
    index: Index, embedder: Any, change_of: Make, query: str, other: str, answer: str
) -> None:
    embedder.synonyms["데이터베이스"] = "database"
    others = [change_of(f"m{n}", f"{other} {n}") for n in range(9)]
    index.apply([*others, change_of("other language", answer)], now_ns=1)

    assert "other language" in names(search(index, query, limit=20))


SCRIPTS = [
    ("데이터베이스는 PostgreSQL을 쓴다", "데이터베이스"),
    ("데이터베이스는 PostgreSQL을 쓴다", "베이스"),
    ("캐시를 지우기로 결정했다", "결정"),
    ("我们使用关系型数据库", "数据库"),
    ("東京のサーバー", "東京"),
    ("हिन्दी में डेटाबेस", "हिन्दी"),
    ("ฐานข้อมูลหลัก", "ข้อมูล"),
    ("Größenänderung der Bilder", "größenänderung"),
    ("Release notes 🚀 by the bot", "🚀"),
    ("One writer, sqlite is enough", "SQLite"),
    ("검색은 엘라스틱서치를 쓴다", "Elasticsearch"),
    ("Elasticsearch is for search alone", "엘라스틱서치"),
]


@pytest.mark.parametrize(("content", "query"), SCRIPTS)
def test_words_are_found_in_every_script(
    index: Index, change_of: Make, content: str, query: str
) -> None:
    others = ["green tea", "캐비닛", "我喜欢喝茶", "大阪", "नमस्ते", "สวัสดี"]
    index.apply([change_of(f"o{n}", text) for n, text in enumerate(others)], now_ns=1)
    index.apply([change_of("wanted", content)], now_ns=1)

    assert names(search(index, query))[0] == "wanted"
    assert search(index, query).hits[0].score > 0.3


ODD = [
    *("", " ", "?!", '"', "'", "a AND b", "NOT", "x*", "(", "tea:", "^tea", "NEAR(tea, 2)", "-"),
    *("the", "what is it", "\x00", "tea\x00", "{a}", "🚀", "\ud800", "a" * 10_000),
]


@pytest.mark.parametrize("query", ODD)
def test_no_query_is_read_as_syntax(index: Index, change_of: Make, query: str) -> None:
    index.apply([change_of("tea", "green tea"), change_of("a", "the letter a")], now_ns=1)
    answer = search(index, query)

    assert answer.considered == 2
    assert answer.notice is None


def test_an_empty_index_has_no_answer(index: Index) -> None:
    assert search(index, "tea") == Found(hits=(), considered=0)


class TestMeaning:
    """Vectors find what words miss, and words what vectors can't."""

    def test_a_memory_without_a_common_word_is_found(self, index: Index, change_of: Make) -> None:
        index.apply([change_of("pg", "postgres"), change_of("tea", "green tea")], now_ns=1)

        assert names(search(index, "datastore"))[0] == "pg"

    def test_the_filter_holds_for_meaning_too(
        self, index: Index, change_of: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        index.apply([change_of(f"f{n}", f"postgres {n}") for n in range(8)], now_ns=1)
        index.apply([change_of("plan", "postgres plan", type=Kind.PLAN)], now_ns=1)
        plans = Filter(types=frozenset({Kind.PLAN}))
        assert names(search(index, "datastore", filter=plans)) == ["plan"]

        monkeypatch.setattr("mimo.index.selection._COMPARED_EACH", 0)
        assert names(search(index, "datastore", filter=plans)) == ["plan"]
        assert len(search(index, "datastore").hits) == 9

    def test_only_texts_that_are_new_are_embedded(
        self, index: Index, change_of: Make, embedder: Any
    ) -> None:
        index.apply([change_of("a", "alpha"), change_of("b", "beta")], now_ns=1)
        index.ask(index.make_static)
        index.apply([change_of("a", "alpha"), change_of("c", "beta", path="c.md")], now_ns=2)
        index.apply([change_of("a", "gamma")], now_ns=3)
        index.ask(index.make_static)

        assert sorted(embedder.encoded) == ["alpha", "beta", "gamma"]

    def test_without_an_embedder_words_are_searched(self, folder: Path, change_of: Make) -> None:
        index = Index.open(folder, None)
        index.apply([change_of("tea", "green tea"), change_of("mate", "green mate")], now_ns=1)
        answer = search(index, "green")

        assert names(answer) == ["mate", "tea"]
        assert answer.notice is None  # The caller that opened it without a model reports that.
        index.close()

    def test_a_failing_model_leaves_a_search_by_words_with_a_notice(
        self, folder: Path, change_of: Make, embedder: Embedder
    ) -> None:
        broken = Index.open(folder, BrokenEmbedder())
        broken.apply([change_of("pg", "postgres"), change_of("tea", "green tea")], now_ns=1)
        answer = search(broken, "tea or coffee")
        broken.close()

        assert names(answer) == ["tea"]
        assert answer.notice is not None
        assert "model.safetensors" in answer.notice

        mended = Index.open(folder, embedder)
        assert names(search(mended, "datastore"))[0] == "pg"
        mended.close()

    def test_lost_vectors_are_made_again(
        self, folder: Path, change_of: Make, embedder: Embedder
    ) -> None:
        index = Index.open(folder, embedder)
        index.apply([change_of("pg", "postgres"), change_of("tea", "green tea")], now_ns=1)
        search(index, "datastore")
        assert index.stats().vectors == 2
        index.close()
        for file in folder.glob("vectors*"):
            file.unlink()

        again = Index.open(folder, embedder)
        assert names(search(again, "datastore"))[0] == "pg"
        again.close()


class TestPassages:
    """The answer points at the place in the file that matched."""

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_the_best_passage_and_its_line(
        self, index: Index, change_of: Make, newline: str
    ) -> None:
        lines = [f"line {number} is about {'filler ' * 20}" for number in range(40)]
        lines[25] = "here the wombat sleeps " + "soundly " * 30
        index.apply([change_of("long", newline.join(lines), line=9)], now_ns=1)
        (hit,) = search(index, "wombat").hits

        assert "wombat" in hit.passage
        assert hit.passage in hit.record.memory.text
        first = hit.passage.splitlines()[0]
        assert hit.line == 9 + [line.strip() for line in lines].index(first.strip())

    def test_a_passage_does_not_end_in_a_heading(self, index: Index, change_of: Make) -> None:
        answer = "The wrapper repairs the folder first."
        text = f"{'filler ' * 57}\n\n### Feeding wombats\n\n{answer}"
        index.apply([change_of("a", text)], now_ns=1)

        assert search(index, "feeding wombats").hits[0].passage.endswith(answer)

    def test_a_passage_of_a_section_is_found(self, index: Index, change_of: Make) -> None:
        sections = {Section.REASONING: "The wombat said so."}
        index.apply([change_of("a", "word " * 100, sections=sections)], now_ns=1)

        assert "wombat" in search(index, "wombat").hits[0].passage

    def test_repeated_text_is_told_apart(self, index: Index, change_of: Make) -> None:
        block = "same words again " * 25
        index.apply([change_of("a", f"{block}\n{block}\n{block} wombat")], now_ns=1)
        (hit,) = search(index, "wombat").hits

        assert hit.line == 3
        assert "wombat" in hit.passage


class TestParts:
    """Parts of one text bring their neighbours along."""

    def parts(self, change_of: Make, texts: Sequence[str]) -> Change:
        records = [
            change_of(f"doc.{n}", text, path="doc.md", parent="doc", position=n).records[0]
            for n, text in enumerate(texts)
        ]
        return Change(path="doc.md", stamp=change_of("doc").stamp, records=tuple(records))

    def test_the_parts_beside_a_hit_are_ranked_too(self, folder: Path, change_of: Make) -> None:
        index = Index.open(folder, None)
        texts = ["before it all", "the wombat sleeps", "after it all", "far away"]
        index.apply([self.parts(change_of, texts), change_of("x", "something else")], now_ns=1)

        assert set(names(search(index, "wombat"))) == {"doc.0", "doc.1", "doc.2"}
        assert names(search(index, "wombat"))[0] == "doc.1"
        index.close()

    @pytest.mark.parametrize(
        ("text", "shape"),
        [
            ("Can you help me with my login page?", Shape.TURN),
            ("The login page asks for a name.", Shape.DOCUMENT),
        ],
    )
    def test_a_part_without_names_has_the_shape_of_its_whole(
        self, folder: Path, change_of: Make, text: str, shape: Shape
    ) -> None:
        change = self.parts(change_of, [text, "Begin with a form."])

        assert shapes(folder, change) == {shape}

    def test_neighbours_obey_the_filter(self, folder: Path, change_of: Make) -> None:
        index = Index.open(folder, None)
        change = self.parts(change_of, ["before", "the wombat"])
        tagged = change_of(
            "doc.1", "the wombat", path="doc.md", parent="doc", position=1, tags=("a",)
        ).records
        index.apply(
            [Change(path="doc.md", stamp=change.stamp, records=(change.records[0], *tagged))],
            now_ns=1,
        )

        assert names(search(index, "wombat", filter=Filter(tags=frozenset({"a"})))) == ["doc.1"]
        index.close()

    def test_a_part_that_is_gone_leaves_no_trace(self, index: Index, change_of: Make) -> None:
        index.apply([self.parts(change_of, ["one", "the wombat", "three"])], now_ns=1)
        index.apply([self.parts(change_of, ["one", "two"])], now_ns=2)

        assert all(hit.score < 0.3 for hit in search(index, "wombat").hits)
        assert index.stats().memories == 2


def test_memories_that_supersede_each_other_are_both_found(index: Index, change_of: Make) -> None:
    index.apply(
        [
            change_of("a", "tea", links=(Link(to="b", type="supersedes"),)),
            change_of("b", "tea", links=(Link(to="a", type="supersedes"),)),
        ],
        now_ns=1,
    )

    assert sorted(names(search(index, "tea"))) == ["a", "b"]


def test_a_shadowed_memory_is_not_found(index: Index, change_of: Make) -> None:
    index.apply(
        [change_of("tea", "green", path="tea.md"), change_of("tea", "black", path="x.md")], now_ns=1
    )

    assert names(search(index, "green")) == ["tea"]
    assert all(hit.record.memory.content == "green" for hit in search(index, "black").hits)
    assert search(index, "black").considered == 1


def test_a_server_sees_what_another_process_wrote(
    folder: Path, index: Index, change_of: Make, embedder: Embedder
) -> None:
    index.apply([change_of("tea", "green tea")], now_ns=1)
    assert names(search(index, "wombat")) == []
    other = Index.open(folder, embedder)
    other.apply([change_of("w", "the wombat sleeps")], now_ns=2)
    other.close()

    assert names(search(index, "wombat")) == ["w"]


def test_in_a_large_store_the_rarest_words_lead(
    folder: Path, change_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.selection._PRUNED_FROM", 10)
    monkeypatch.setattr("mimo.index.selection._PRUNED_LEAST", 1)
    index = Index.open(folder, None)
    common = [change_of(f"c{n}", "green tea with milk") for n in range(30)]
    index.apply([*common, change_of("rare", "the wombat drinks oolong tea")], now_ns=1)

    assert names(search(index, "green tea with milk oolong wombat"))[0] == "rare"
    assert len(search(index, "green tea milk").hits) == 10
    assert search(index, "unheard").hits == ()
    index.close()


def test_equals_are_sorted_youngest_first(index: Index, change_of: Make) -> None:
    day = timedelta(days=1)
    index.apply(
        [change_of(f"m{n}", "green tea", created=NOW - n * day) for n in (3, 1, 2)], now_ns=1
    )

    assert names(search(index, "green tea")) == ["m1", "m2", "m3"]


def test_a_missing_cosine_is_estimated_from_the_static_one():
    static = {b"a": 0.3, b"b": 0.6, b"c": -0.5}

    every = _joined(static, {b"a": 0.315})

    assert every == pytest.approx({b"a": 0.315, b"b": 0.02 + 0.65 * 0.6 + 0.1, b"c": 0.02 + 0.1})
    assert _joined({}, {b"a": 0.3}) == {b"a": 0.3}
    assert _joined(static, {})[b"b"] == pytest.approx(0.41)
