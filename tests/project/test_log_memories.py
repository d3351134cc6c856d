"""Memories of MEMORY.md and of commits, as commands meet them."""

import time

import pytest

from mimo.call import Call
from mimo.errors import Invalid
from mimo.features.notes.commands import edit, rm
from mimo.features.notes.reading import list_, show
from mimo.features.review.commands import trust
from mimo.features.search.commands import search
from mimo.features.upkeep.commands import config
from mimo.features.upkeep.status import status
from mimo.operations.rows import TrustLabel
from tests.conftest import git
from tests.kit import repository

LOG = """\
## 2026-11-19
**Decided:** Use JWT because it is stateless
- Problem: Safari drops the cookie
- [x] Bug: mails are sent twice
"""


@pytest.fixture
def log(call):
    path = call.mind.project.root / ".mind" / "MEMORY.md"
    path.write_text(LOG, encoding="utf-8")
    return path


def titles(call):
    return sorted(row.title for row in list_(call).memories)


def test_every_line_is_listed_shown_and_found_with_its_place(call, log):
    assert titles(call) == ["Safari drops the cookie", "Use JWT", "mails are sent twice"]
    (row,) = search(call, "JWT").results
    assert (row.source_file, row.source_line, row.confidence) == (".mind/MEMORY.md", 2, 1.0)
    assert show(call, row.id).file == ".mind/MEMORY.md"


@pytest.mark.req("003-30")
def test_issues_of_the_log_are_counted_by_their_status(call, log):
    current = status(call).current_project

    assert current is not None
    assert (current.stats.issues_open, current.stats.issues_resolved) == (1, 1)


def test_an_edit_of_the_file_shows_at_the_next_command(call, log):
    before = search(call, "Safari cookie").results[0].id
    log.write_text(LOG.replace("JWT", "cookies"), encoding="utf-8")

    assert "Use cookies" in titles(call)
    assert search(call, "Safari cookie").results[0].id == before


def test_only_people_change_memories_of_the_log(call, log):
    (row,) = search(call, "JWT").results

    for change in (lambda: rm(call, row.id), lambda: edit(call, row.id, content="No")):
        with pytest.raises(Invalid) as caught:
            change()
        assert ".mind/MEMORY.md:2" in caught.value.hint
    assert log.read_text(encoding="utf-8") == LOG


def test_a_log_of_many_lines_is_read_whole(call, log):
    lines = (f"- Problem: number {number} fails" for number in range(1_200))
    log.write_text("## 2026-11-19\n" + "\n".join(lines), encoding="utf-8")

    assert list_(call, limit=1).total == 1_200
    assert search(call, "number 1077").results[0].source_line == 1_079


@pytest.fixture
def commit(call):
    def make(body: str) -> None:
        git(call.mind.project.root, "commit", "--allow-empty", "-qm", f"x\n\n{body}")

    repository(call.mind.project.root)
    return make


def test_memories_of_commits_appear_at_once_and_need_their_own_approval(call, commit):
    call.mind.trust.follow(True)
    commit("decided: use queues")
    assert [(row.title, row.trust) for row in list_(call).memories] == [
        ("use queues", TrustLabel.UNTRUSTED)
    ]
    current = status(call).current_project
    assert current is not None
    assert "0 of 1 files are trusted" in current.trust
    assert (current.origins.in_place, current.origins.included) == (1, 0)
    with pytest.raises(Invalid, match="from the message of commit"):
        edit(call, list_(call).memories[0].id)
    trust(call)
    commit("learned: queues fill up")

    labels = {row.title: row.trust for row in list_(call).memories}
    assert labels == {"use queues": TrustLabel.TRUSTED, "queues fill up": TrustLabel.UNTRUSTED}


def test_a_commit_is_read_once(call, commit, monkeypatch):
    commit("decided: use queues")
    assert titles(call) == ["use queues"]
    # What was touched within the clock's grain of the last look is read again.
    later = time.time_ns() + 10_000_000_000
    monkeypatch.setattr("time.time_ns", lambda: later)
    assert titles(Call(call.mind.reopened())) == ["use queues"]
    monkeypatch.setattr("mimo.project.git.run", lambda *_, **__: pytest.fail("git was asked"))

    assert titles(Call(call.mind.reopened())) == ["use queues"]


def test_comments_are_read_from_configured_files(call):
    root = call.mind.project.root
    (root / "a.py").write_text("x = 1  # MEMORY: decided to use JWT\n", encoding="utf-8")
    (root / "b.js").write_text("// MEMORY: decided to use mails\n", encoding="utf-8")
    assert titles(call) == []
    config(call, "comments", "*.py")

    (row,) = search(Call(call.mind.reopened()), "JWT").results
    assert (row.source_file, row.source_line, row.title) == ("a.py", 1, "use JWT")
