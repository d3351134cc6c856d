"""The newest of several memories is the newest everywhere, within one second too."""

import os

import pytest

from mimo.features import decisions
from mimo.features.decisions.commands import checkpoint
from mimo.features.decisions.loading import checkpoint as load
from mimo.features.notes.reading import list_
from mimo.features.search.browse import recent
from mimo.memory.model import Kind, Link
from mimo.mind import Mind
from mimo.operations import finding, lookup, refresh, saving
from tests.conftest import Clock, git


@pytest.fixture
def mind(mind: Mind) -> Mind:
    """A memory whose ids are random, as they are in earnest."""
    mind.randomness = os.urandom
    return mind


def test_the_newest_checkpoint_of_one_second_is_resumed(mind: Mind, clock: Clock) -> None:
    for number in range(8):
        clock.forward(milliseconds=20)
        checkpoint(mind, f"Step {number} of the migration to Postgres")
        assert load(mind).summary == f"Step {number} of the migration to Postgres"


def test_lists_are_newest_first_within_one_second(mind: Mind, clock: Clock) -> None:
    texts = [f"Fact {number}" for number in range(8)]
    for text in texts:
        clock.forward(microseconds=700)
        saving.store(mind, saving.draft(Kind.FACT, text))

    assert [row.title for row in recent(mind).results] == texts[::-1]
    assert [row.title for row in list_(mind).memories] == texts[::-1]
    records = finding.listing(mind).records
    assert [record.memory.title or record.memory.content for record in records] == texts[::-1]


def test_competing_decisions_and_the_graph_are_newest_first(mind: Mind, clock: Clock) -> None:
    names: list[str] = []
    for number in range(5):
        clock.forward(milliseconds=1)
        draft = saving.draft(
            Kind.DECISION, f"Option {number}", topic="auth",
            links=(Link(to=names[-1], type="relates_to"),) if names else (),
        )  # fmt: skip
        names.append(saving.store(mind, draft).memory.id)

    assert [record.memory.id for record in decisions.current(mind, "auth")] == names[::-1]
    chain = finding.linked(mind, names[:1], depth=9).newest_first()
    assert [record.memory.id for record in chain] == names[::-1]


def test_a_time_is_the_same_after_a_rebuild(mind: Mind, clock: Clock) -> None:
    clock.forward(microseconds=123_456)
    made = saving.store(mind, saving.draft(Kind.FACT, "Staging is reset"))
    refresh.rebuild(mind)

    text = (mind.project.root / made.place.path).read_text(encoding="utf-8")
    assert "created: 2026-11-20T15:30:00.123456Z\n" in text
    assert lookup.one(mind, made.memory.id).memory.created == clock.now


def test_commits_of_one_second_keep_their_order(mind: Mind) -> None:
    root = mind.project.root
    git(root, "init", "-q")
    for number in range(6):
        words = ["commit", "-q", "--allow-empty", "-m", "x", "-m", f"learned: Lesson {number}"]
        git(root, *words, at="2026-11-20T15:30:00Z")

    titles = [record.memory.title for record in finding.listing(mind).records]
    assert titles == [f"Lesson {number}" for number in range(5, -1, -1)]


def test_equal_times_have_one_order_everywhere(mind: Mind) -> None:
    names = [saving.store(mind, saving.draft(Kind.FACT, str(n))).memory.id for n in range(6)]
    listed = [record.memory.id for record in finding.listing(mind).records]
    refresh.rebuild(mind)

    assert listed == sorted(names)
    assert [row.id for row in recent(mind).results] == listed
