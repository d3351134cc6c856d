"""Questions about all memories agree with reading every memory."""

import random
import sqlite3
from collections import Counter
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.table import all_commands
from mimo.features import review
from mimo.features.review import Waiting
from mimo.index import documents, doubles, rows, selection, survey, tracking
from mimo.index.catalog import Catalog
from mimo.memory import duplicates
from mimo.memory.model import Kind, Link
from mimo.operations import finding, lookup, overview, removing, saving
from mimo.operations.invoke import invoke
from mimo.project.memories import MemoryStore
from mimo.project.walk import Walk

WORDS = (
    "queue worker deploy rollback schema index header cookie session order invoice refund webhook"
    " timeout cluster replica shard backup restore metric alert budget proxy tenant locale font"
).split()


@pytest.fixture
def filled(call: Call, clock) -> Call:
    """A memory with several types, doubles, superseded memories and a document."""
    draw = random.Random(7)
    for number in range(40):
        clock.forward(minutes=draw.choice((1, 50)))
        kind = draw.choice((Kind.FACT, Kind.DECISION, Kind.ISSUE))
        words = draw.sample(WORDS, 8)
        links: tuple[Link, ...] = ()
        if number % 10 == 9:
            newest = finding.listing(call).records[0].memory
            words = [*newest.content.split(), "again"]
            links = (Link(to=newest.id, type="supersedes"),) if number % 20 == 9 else ()
        draft = saving.draft(kind, " ".join(words), links=links, topic=draw.choice(WORDS))
        saving.store(call, draft)
    (call.mind.folder / "notes.md").write_text("# Notes\n\nSee `a.py:12` and b.py#name\n", "utf-8")
    return call


def test_the_counts_are_those_of_all_memories(filled: Call):
    records = finding.listing(filled).records
    counted = overview.overview(filled)

    assert counted.by_type == Counter(record.memory.type for record in records)
    assert counted.total == len(records)
    assert counted.oldest == min(record.memory.created for record in records)
    assert counted.newest == max(
        record.memory.created for record in records if record.memory.created <= filled.mind.now()
    )
    assert counted.origins.in_place == sum(not record.place.owned for record in records) > 0
    paths = {record.place.approval: record.place.path for record in records}
    assert filled.mind.index.ask(survey.approvals) == paths


def test_what_is_not_approved_is_what_the_trust_store_does_not_know(filled: Call):
    filled.mind.trust.forget()
    trusted = filled.mind.trust.checker()
    unknown = [r for r in finding.listing(filled).records if not trusted(r.place.approval)]

    texts = filled.mind.index.ask(survey.unapproved)
    facts = [(text.path, text.approval, text.type) for text in texts]
    assert facts == [(r.place.path, r.place.approval, r.memory.type) for r in unknown] != []
    every = {r.place.approval for r in finding.listing(filled).records}
    for some in ((), unknown[:3], unknown):
        filled.mind.trust.approve(r.place.approval for r in some)
        counted = filled.mind.index.cached(survey.approved, filled.mind.trust.checker())
        left = [r for r in unknown if r not in some]
        assert counted == (len(every), len(every) - len(left), len(left))


def test_an_answer_is_kept_until_the_index_or_the_approvals_change(filled: Call):
    asked: list[object] = []

    def query(sql: sqlite3.Connection, approves: object) -> int:
        asked.append(approves)
        return len(asked)

    def kept() -> int:
        return filled.mind.index.cached(query, filled.mind.trust.checker())

    finding.listing(filled)
    assert (kept(), kept()) == (1, 1)
    saving.store(filled, saving.draft(Kind.FACT, "One more"))
    assert (kept(), kept()) == (2, 2)
    filled.mind.trust.forget()
    assert (kept(), kept()) == (3, 3)


def test_unapproved_texts_are_counted_without_reading_them(filled: Call, monkeypatch):
    filled.mind.trust.forget()
    records = finding.listing(filled).records
    with monkeypatch.context() as patched:
        patched.delattr(rows, "record")
        none, numbers = review.first(filled, [Waiting.UNTRUSTED], 0)
    assert (none, numbers) == ((), {Waiting.UNTRUSTED: len(records)})

    items, _ = review.first(filled, [Waiting.UNTRUSTED], 3)
    assert [item.id for item in items] == [record.memory.id for record in records[:3]]


def test_only_memories_that_may_cite_a_place_are_read_for_citations(filled: Call):
    finding.listing(filled)
    assert [r.place.path for r in filled.mind.index.ask(survey.citing)] == [".mind/notes.md"]
    for number in range(40):  # Compressed texts, in some of which the bytes look like a place.
        saving.store(filled, saving.draft(Kind.FACT, f"The queue of worker {number} is drained."))
    record = saving.store(filled, saving.draft(Kind.DECISION, "tea", reasoning="see a.py:12"))
    citing = filled.mind.index.ask(survey.citing)
    assert {r.memory.id for r in citing} == {"notes", record.memory.id}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see a.py:12", True),
        ("see a.mp3:12", True),
        ("see Makefile:3", True),
        ("see b.py#name", True),
        ("at 12:30", False),
        ('{"importance":3}', False),
        ("# Title\n\n## Part: 3", False),
        (":3", False),
    ],
)
def test_a_place_in_a_file_is_recognised(text: str, expected: bool):
    assert documents.may_cite(text) is expected


def test_the_doubles_of_all_are_the_near_duplicates_of_each(filled: Call):
    for symbols in ("☃ ☃", "☂ ☂"):
        saving.store(filled, saving.draft(Kind.FACT, symbols))
    records = finding.listing(filled).records
    newer = filled.mind.index.superseded_by([record.memory.id for record in records])
    each = {
        record.memory.id: other.memory.id
        for record in records
        if record.memory.id not in newer and (other := filled.mind.index.much_like(record.memory))
    }

    assert {
        a.memory.id: b.memory.id for a, b in doubles.near_duplicates(filled.mind.index, 1000)
    } == each
    assert each


def _doubles(call: Call) -> dict[str, str]:
    finding.listing(call)
    return {a.memory.id: b.memory.id for a, b in doubles.near_duplicates(call.mind.index, 20)}


def _compared_anew(call: Call, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Returns the near-duplicates without anything that an earlier review stored."""
    with monkeypatch.context() as patched:
        patched.setattr(doubles, "_stored_doubles", lambda _: (doubles.Doubles(0, [], []), set()))
        patched.setattr(tracking, "note", lambda *_: None)
        return _doubles(call)


def test_the_doubles_after_changes_are_those_of_a_first_review(filled: Call, monkeypatch):
    pairs = _doubles(filled)
    assert pairs
    first, second = next(iter(pairs.items()))
    edited = lookup.one(filled, second)
    steps = (
        lambda: saving.edit(filled, edited, content="Something else entirely"),
        lambda: saving.store(filled, saving.draft(Kind.FACT, edited.memory.content + " once more")),
        lambda: removing.remove(filled, first),
        filled.mind.trust.forget,
        filled.mind.index.discard,
    )
    for step in steps:
        step()
        assert _doubles(filled) == _compared_anew(filled, monkeypatch)
    assert _doubles(filled) != pairs


def test_a_second_review_compares_only_changed_texts(filled: Call, monkeypatch):
    finding.listing(filled)
    first = doubles.near_duplicates(filled.mind.index, 20)
    read: list[int] = []
    words_of = duplicates.words_of

    def counted(tokens: str) -> frozenset[str]:
        read.append(1)
        return words_of(tokens)

    monkeypatch.setattr(duplicates, "words_of", counted)
    assert doubles.near_duplicates(filled.mind.index, 20) == first
    assert not read

    record = saving.store(filled, saving.draft(Kind.FACT, "See c.py:7"))
    citing = filled.mind.index.ask(survey.citing)
    assert {r.memory.id for r in citing} == {"notes", record.memory.id}
    assert doubles.near_duplicates(filled.mind.index, 20)
    assert len(read) < 10


def test_of_many_alike_texts_the_nearest_is_named_and_kept(call: Call, clock, monkeypatch):
    text = "The mail service keeps its queue in redis and is restarted by hand after a deploy of"
    for number in range(60):
        saving.store(call, saving.draft(Kind.FACT, f"{text} host{number} group{number % 3}"))
    clock.forward(minutes=1)
    twin = saving.store(call, saving.draft(Kind.FACT, f"{text} host7 group1 again"))
    finding.listing(call)
    compared: list[int] = []
    likeness = duplicates.likeness

    def counted(*texts: Any) -> float:
        compared.append(1)
        return likeness(*texts)

    monkeypatch.setattr(duplicates, "likeness", counted)
    pairs = {
        record.memory.id: other for record, other in doubles.near_duplicates(call.mind.index, 20)
    }

    assert "host7 group1" in pairs[twin.memory.id].memory.content
    assert compared
    compared.clear()
    assert doubles.near_duplicates(call.mind.index, 20)
    assert not compared, "the answer was not kept"


@pytest.mark.parametrize("command", ["status", "review", "memory stats"])
def test_a_reading_command_compares_the_files_with_the_index_once(
    filled: Call, command: str, monkeypatch
):
    finding.listing(filled)
    walks: list[int] = []
    walk = MemoryStore.walk

    def counted(store: MemoryStore) -> Walk:
        walks.append(1)
        return walk(store)

    monkeypatch.setattr(MemoryStore, "walk", counted)

    invoke(all_commands().at(command), filled.by(Caller(surface=Surface.CLI)), {})
    (filled.mind.folder / "facts" / "late.md").write_text("A fact that is late\n", "utf-8")
    invoke(all_commands().at(command), filled.by(Caller(surface=Surface.CLI)), {})

    assert len(walks) == 2
    assert lookup.one(filled, "late").memory.content


def test_the_most_important_facts_are_read_without_checking_the_approval_of_others(call: Call):
    for number in range(40):
        saving.store(
            call, saving.draft(Kind.FACT, f"Fact {number}", importance=0.3 + number % 3 / 5)
        )
    checked: list[str] = []

    def approves(name: str) -> bool:
        checked.append(name)
        return True

    call.mind.index.approvals.checker = lambda: approves

    facts = call.mind.index.ask(lambda sql: Catalog(sql).facts(5))

    assert [note.importance for note in facts] == [0.7] * 5
    assert len(checked) <= 14  # Those of equal importance, which are of the same time.


def test_decisions_that_compete_with_each_other_are_listed_by_topic(call: Call):
    folder, draw = call.mind.folder / "decisions", random.Random(7)
    folder.mkdir()
    for number in range(60):
        older = f"supersedes: [d{draw.randrange(60)}]\n" if number % 4 == 0 else ""
        text = f"---\nid: d{number}\ntype: decision\ntopic: {draw.choice(WORDS)}\n{older}---\nX\n"
        (folder / f"d{number}.md").write_text(text)
    ids = [record.memory.id for record in finding.listing(call).records]
    call.mind.index.approvals.checker = lambda: lambda name: int(name[:8], 16) % 3 > 0
    competing = call.mind.index.competing(ids)
    mutual = {
        id for id, others in competing.items() if any(id in competing.get(o, ()) for o in others)
    }

    topics = [
        call.mind.index.ask(survey.records, keys) for keys in call.mind.index.ask(survey.rivals)
    ]

    named = [[record.memory.id for record in topic.values()] for topic in topics]
    assert sorted(id for ids in named for id in ids) == sorted(mutual)
    assert len(competing) > len(mutual) > 10
    assert all(len({r.memory.topic for r in topic.values()}) == 1 for topic in topics)


def test_competing_decisions_of_a_few_ids_are_looked_up_without_reading_all_decisions(call: Call):
    steps = []
    for number in range(120):
        draft = saving.draft(Kind.DECISION, f"Choice {number}", topic=f"topic {number}")
        saving.store(call, draft)
        if number in (19, 119):
            ids = [record.memory.id for record in finding.listing(call).records[:3]]
            steps.append(_steps(call, ids))

    assert steps[1] < 2 * steps[0]


def _steps(call: Call, ids: list[str]) -> int:
    """Returns the instructions of SQLite that it takes to look up competing decisions."""
    counted = [0]

    def count() -> None:
        counted[0] += 1

    def query(sql: sqlite3.Connection) -> None:
        sql.set_progress_handler(count, 1)
        selection.competing(sql, ids)
        sql.set_progress_handler(None, 0)

    call.mind.index.ask(query)
    return counted[0]
