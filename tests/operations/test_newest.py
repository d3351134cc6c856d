"""The newest of several memories is the newest everywhere, within one second too."""

import os

import pytest

from mimo.call import Call
from mimo.features.decisions.commands import checkpoint
from mimo.features.decisions.loading import checkpoint as load
from mimo.features.ingest.commands import ingest
from mimo.features.notes.reading import list_, show
from mimo.features.search.browse import recent
from mimo.features.search.commands import search
from mimo.features.search.recall import summarise
from mimo.memory.model import Kind, Link
from mimo.operations import finding, lookup, refresh, saving
from mimo.server.resources import NEWEST, list_resources
from tests.conftest import Clock, git
from tests.kit import repository


@pytest.fixture
def call(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A memory whose ids are random, as they are in earnest."""
    call.mind.randomness = os.urandom
    monkeypatch.chdir(call.mind.project.root)
    return call


def test_the_newest_checkpoint_of_one_second_is_resumed(call: Call, clock: Clock) -> None:
    for number in range(8):
        clock.forward(milliseconds=20)
        checkpoint(call, f"Step {number} of the migration to Postgres")
        assert load(call).summary == f"Step {number} of the migration to Postgres"


def test_lists_are_newest_first_within_one_second(call: Call, clock: Clock) -> None:
    texts = [f"Fact {number}" for number in range(8)]
    for text in texts:
        clock.forward(microseconds=700)
        saving.store(call, saving.draft(Kind.FACT, text))

    assert [row.title for row in recent(call).results] == texts[::-1]
    assert [row.title for row in list_(call).memories] == texts[::-1]
    records = finding.listing(call).records
    assert [record.memory.title or record.memory.content for record in records] == texts[::-1]


def test_competing_decisions_and_the_graph_are_newest_first(call: Call, clock: Clock) -> None:
    names: list[str] = []
    for number in range(5):
        clock.forward(milliseconds=1)
        draft = saving.draft(
            Kind.DECISION, f"Option {number}", topic="auth",
            links=(Link(to=names[-1], type="relates_to"),) if names else (),
        )  # fmt: skip
        names.append(saving.store(call, draft).memory.id)

    assert [record.memory.id for record in refresh.up_to_date(call).current("auth")] == names[::-1]
    chain = finding.linked(call, names[:1], depth=9).newest_first()
    assert [record.memory.id for record in chain] == names[::-1]


def test_a_time_is_the_same_after_a_rebuild(call: Call, clock: Clock) -> None:
    clock.forward(microseconds=123_456)
    made = saving.store(call, saving.draft(Kind.FACT, "Staging is reset"))
    refresh.rebuild(call)

    text = (call.mind.project.root / made.place.path).read_text(encoding="utf-8")
    assert "created: 2026-11-20T15:30:00.123456Z\n" in text
    assert lookup.one(call, made.memory.id).memory.created == clock.now


def test_commits_of_one_second_keep_their_order(call: Call) -> None:
    root = call.mind.project.root
    repository(root)
    for number in range(6):
        words = ["commit", "-q", "--allow-empty", "-m", "x", "-m", f"learned: Lesson {number}"]
        git(root, *words, at="2026-11-20T15:30:00Z")

    titles = [record.memory.title for record in finding.listing(call).records]
    assert titles == [f"Lesson {number}" for number in range(5, -1, -1)]


def test_equal_times_have_one_order_everywhere(call: Call) -> None:
    names = [saving.store(call, saving.draft(Kind.FACT, str(n))).memory.id for n in range(6)]
    listed = [record.memory.id for record in finding.listing(call).records]
    refresh.rebuild(call)

    assert listed == sorted(names)
    assert [row.id for row in recent(call).results] == listed


@pytest.fixture
def book(call: Call, clock: Clock) -> None:
    """A checkpoint, a memory, and a newer file of more chunks than a list of memories reads."""
    saving.store(call, saving.draft(Kind.CHECKPOINT, "The deploy is half moved"))
    clock.forward(minutes=1)
    saving.store(call, saving.draft(Kind.FACT, "We moved the deploy to Tuesdays"))
    clock.forward(minutes=1)
    chapters = (f"## Chapter {number}\n\nText {number}.\n" for number in range(330))
    (call.mind.project.root / "book.md").write_text("\n".join(chapters), encoding="utf-8")
    ingest(call, "book.md")


def test_chunks_do_not_displace_the_newest_memories(call: Call, book: None) -> None:
    newest = ["We moved the deploy to Tuesdays", "The deploy is half moved"]

    for query in ("what did we do today", "where did we stop"):
        answer = search(call, query)
        assert {row.title for row in answer.results} == set(newest), query
    assert "no memory" not in str(search(call, "what did we do today").notice)
    assert newest[0] in summarise(call, "where did we stop").summary
    assert [row.title for row in load(call).recent or ()] == newest[:1]
    assert [row.title for row in list_resources(call)] == newest


def test_chunks_are_listed_if_there_is_nothing_else(call: Call) -> None:
    (call.mind.project.root / "book.md").write_text("## One\n\nSome words.\n", encoding="utf-8")
    ingest(call, "book.md")

    assert [row.title for row in list_resources(call)] == ["One"]
    assert [row.title for row in search(call, "where did we stop").results] == ["One"]


def test_documents_do_not_displace_the_newest_memories(call: Call) -> None:
    saving.store(call, saving.draft(Kind.FACT, "We moved the deploy to Tuesdays"))
    docs = call.mind.project.root / "docs"
    docs.mkdir()
    for number in range(NEWEST + 1):
        text = f"---\ncreated: 2026-11-20T16:00:00Z\n---\n# Page {number}\n"
        (docs / f"{number}.md").write_text(text, encoding="utf-8")
    (call.mind.folder / "config.toml").write_text('format = 1\ninclude = ["docs/*.md"]\n', "utf-8")

    rows = list_resources(Call(call.mind.reopened()))

    assert [row.title for row in rows] == ["We moved the deploy to Tuesdays"]


def test_an_ingested_file_is_one_of_the_recent_memories(call: Call, book: None) -> None:
    answer = recent(call)

    assert [row.title for row in answer.results][:2] == [
        "book.md",
        "We moved the deploy to Tuesdays",
    ]
    assert answer.total == 3
    assert answer.results[0].excerpt
    assert show(call, answer.results[0].id).extra["chunks"] == 330
