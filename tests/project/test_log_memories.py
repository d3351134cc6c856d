"""Memories of MEMORY.md and of commits, as commands meet them."""

import time

import pytest

from mimo.call import Call
from mimo.features.notes.reading import list_
from mimo.features.search.commands import search
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


def test_a_commit_is_read_once(call, commit, monkeypatch):
    commit("decided: use queues")
    assert titles(call) == ["use queues"]
    # What was touched within the clock's grain of the last look is read again.
    later = time.time_ns() + 10_000_000_000
    monkeypatch.setattr("time.time_ns", lambda: later)
    assert titles(Call(call.mind.reopened())) == ["use queues"]
    monkeypatch.setattr("mimo.project.git.run", lambda *_, **__: pytest.fail("git was asked"))

    assert titles(Call(call.mind.reopened())) == ["use queues"]
