"""The memory as it was, in real repositories."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.features.ingest.commands import ingest
from mimo.features.notes.reading import list_, show
from mimo.features.search.commands import search
from mimo.index.index import Index
from mimo.memory.model import Kind
from mimo.operations import finding, past, refresh, removing, saving, searching
from mimo.project import revisions
from mimo.surroundings import Timer
from tests.conftest import descriptors, git
from tests.kit import repository


def committed(root: Path, subject: str, *, at: str = "2026-11-01T08:00:00Z") -> str:
    git(root, "add", "-A")
    git(root, "commit", "-qm", subject, at=at)
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def story(project, call):
    """Two commits a week apart: the second changed a decision and removed a fact."""
    repository(project)
    decision = saving.store(call, saving.draft(Kind.DECISION, "Use JWT tokens for login"))
    fact = saving.store(call, saving.draft(Kind.FACT, "Staging is reset every night"))
    committed(project, "before")
    git(project, "tag", "v1")
    saving.edit(call, decision, content="Use server sessions for login")
    removing.remove(call, fact.memory.id)
    committed(project, "after", at="2026-11-08T08:00:00Z")
    return decision.memory.id, fact.memory.id


def test_a_second_search_at_a_revision_reads_nothing(story, call, monkeypatch):
    search(call, "login", at="v1")
    call.mind.close()
    again = call.mind.reopened()
    monkeypatch.setattr("mimo.project.revisions.blobs", lambda *_: pytest.fail("read again"))

    assert search(Call(again), "login", at="v1").results[0].title == "Use JWT tokens for login"


def test_only_the_last_indexes_of_revisions_are_kept(project, call):
    repository(project)
    for number in range(10):
        saving.store(call, saving.draft(Kind.FACT, f"Fact number {number}"))
        committed(project, str(number))
        assert list_(call, at="HEAD").total == number + 1
    assert len(list((call.mind.index_folder / "past").iterdir())) == 8


def test_an_unusable_index_of_a_revision_is_opened_again(story, call):
    seconds = 0.0
    call.mind.timer = Timer(monotonic=lambda: seconds)
    call.mind.watch()
    refresh.refresh(call)
    past.at(call, "v1").call.mind.use_index(
        Index.in_memory(call.mind.embedder), notice="the disk is full"
    )
    assert "the disk is full" in (list_(call, at="v1").notice or "")

    seconds = 900.0
    earlier = list_(call, at="v1")

    assert len(earlier.memories) == 2
    assert "the disk is full" not in (earlier.notice or "")
    assert past.at(call, "v1").call.mind.index.stats().bytes
    for present in (call, Call(call.mind.reopened())):
        assert [row.id for row in list_(present).memories] == [story[0]]


@pytest.fixture
def commits(project, call):
    """Commits of which each adds a fact."""
    repository(project)
    made = []
    for number in range(12):
        saving.store(call, saving.draft(Kind.FACT, f"Fact number {number}"))
        made.append(committed(project, str(number)))
    return made


def test_few_revisions_stay_open(commits, call):
    opened = []
    for commit in commits:
        search(call, "fact", at=commit)
        opened.append(descriptors())
    assert max(opened[6:]) <= opened[5]

    call.mind.close()
    assert descriptors() < opened[0]


def test_a_revision_that_is_closed_meanwhile_still_answers(commits, call):
    earlier = past.at(call, commits[2])
    searching.search(earlier.call, "fact", finding.Options())
    for commit in commits[3:7]:
        search(call, "fact", at=commit)
    opened, current = descriptors(), call.mind.index.totals()

    result = searching.search(earlier.call, "fact number 2", finding.Options())
    assert (result.considered, result.hits[0].record.memory.content) == (3, "Fact number 2")
    assert call.mind.index.totals() == current
    assert descriptors() <= opened + 1  # The file, until it is used no more.


def test_show_at_a_revision_changes_no_tracked_file_and_counts_no_access(story, project, call):
    show(call, story[0], at="v1")
    assert git(project, "status", "--short") == ""
    assert call.mind.accesses.uses() == {}


@pytest.mark.parametrize("year", [1500, 1970, 1973])
def test_an_early_time_hides_no_commit_before_a_later_time(story, project, year):
    early, day = datetime(year, 1, 1, tzinfo=UTC), datetime(2026, 11, 5, tzinfo=UTC)

    before = revisions.commits_before(project, [early, day])

    assert before == {early: None, day: revisions.resolve(project, "v1", now=day)}


class Counting:
    """An embedder that counts the texts that it is given."""

    def __init__(self, inner):
        self.inner, self.texts = inner, []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def encode_many(self, texts):
        self.texts += texts
        return self.inner.encode_many(texts)


def test_a_branch_switch_embeds_only_what_is_new_and_shows_only_that_branch(story, project, call):
    index = call.mind.index
    for name in ("v1", "main"):
        git(project, "checkout", "-q", name)
        list_(call)
        index.ask(index.make_static)
    counting = index._embedder = Counting(call.mind.embedder)
    git(project, "checkout", "-q", "-b", "other", "v1")

    assert list_(call).total == 2
    index.ask(index.make_static)
    git(project, "checkout", "-q", "main")
    assert [row.id for row in list_(call).memories] == [story[0]]
    index.ask(index.make_static)
    assert counting.texts == []

    saving.store(call, saving.draft(Kind.FACT, "Something new"))
    index.ask(index.make_static)
    assert set(counting.texts) == {"Something new"}


def test_a_log_that_is_too_large_is_a_problem_at_a_revision_too(project, call):
    repository(project)
    (project / ".mind" / "MEMORY.md").write_text("- TIL goats climb\n" * 250_000)
    committed(project, "too much")

    assert list_(call, at="HEAD").unreadable == list_(call).unreadable == 1


def test_an_ingested_file_at_a_revision_has_its_header_of_that_revision(project, call):
    repository(project)
    guide = project / "guide.md"

    def ingested(text: str) -> tuple[str, object]:
        guide.write_text(f"# Tea\n\n{text}\n")
        id = ingest(call, str(guide)).source_id or ""
        committed(project, text)
        return id, show(call, id).extra["sha256"]

    id, before = ingested("hot")
    _, after = ingested("warm")

    assert show(call, id, at="HEAD~1").extra["sha256"] == before != after
