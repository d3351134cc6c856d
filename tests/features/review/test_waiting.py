"""Items that need a decision, in real repositories, and resolving them."""

import os
import threading

import pytest

from mimo.call import Call
from mimo.errors import Invalid, NotFound
from mimo.features import review
from mimo.features.review import Waiting
from mimo.memory.model import Kind
from mimo.operations import finding, saving
from tests.conftest import git
from tests.kit import write

CODE = "def login(user):\n    return user.token\n\ndef logout(user):\n    user.token = None\n"
DAY = 86_400


def stored(call, text, kind=Kind.FACT, **fields):
    return saving.store(call, saving.draft(kind, text, **fields))


def commit(root, message="more"):
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)


def listed(call, *kinds, kept=False):
    return [
        (item.kind.value, item.why)
        for item in review.waiting(call, kinds or Waiting, with_hidden=kept)
    ]


class TestStale:
    def test_an_uncommitted_memory_is_compared_by_the_time_of_its_file(self, project, call):
        git(project, "init", "-q", "-b", "main")
        code = project / "auth.py"
        code.write_text(CODE, "utf-8")
        git(project, "add", "auth.py")
        git(project, "commit", "-qm", "code", at=f"{DAY * 10_000} +0000")
        record = stored(call, "see auth.py:1-2")
        path = project / record.place.path
        os.utime(path, (DAY * 10_001, DAY * 10_001))
        code.write_text("def login(): ...\n", "utf-8")
        # The code was changed before the memory was written: it is what the memory means.
        os.utime(code, (DAY * 10_000.5, DAY * 10_000.5))
        assert listed(call, Waiting.STALE) == []

        os.utime(code, (DAY * 10_002, DAY * 10_002))
        assert len(listed(call, Waiting.STALE)) == 1


TWO = (
    "---\nid: d1\ntype: decision\noutcome: FAILED\ncreated: 2026-11-01T08:00:00Z\n---\n"
    "Use JWT\n\n## Competing: outcome\nSUCCESS\n\n## Competing: the text\nUse sessions\n"
)


class TestVersions:
    @pytest.mark.parametrize("take", ["0", "3", "x", "", "-1", "\u00b2", "1" * 5_000])
    def test_an_unknown_version_is_refused(self, call, take):
        write(call.mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid):
            review.settle(call, "d1", take)


class TestMemories:
    @pytest.fixture
    def rivals(self, call, clock):
        first = stored(call, "Use JWT", Kind.DECISION, topic="auth")
        clock.forward(hours=1)
        second = stored(call, "Use sessions", Kind.DECISION, topic="Auth")
        return second.memory.id, first.memory.id

    def test_of_two_processes_that_choose_differently_one_is_refused(
        self, call, rivals, monkeypatch
    ):
        newer, older = rivals
        refused, edit = [], saving.edit

        def choose_the_other() -> None:
            with pytest.raises(NotFound, match="nothing to resolve") as error:
                review.settle(Call(call.mind.reopened()), older, "1")
            refused.append(error.value)

        other = threading.Thread(target=choose_the_other)

        def slowly(*given, **fields):
            monkeypatch.setattr(saving, "edit", edit)
            other.start()
            other.join(0.5)  # Unless it waits for us.
            return edit(*given, **fields)

        monkeypatch.setattr(saving, "edit", slowly)
        review.settle(call, older, "2")
        other.join()

        assert len(refused) == 1
        assert finding.successor(call, newer) == older
        assert finding.successor(call, older) is None


class TestTheRest:
    def test_a_damaged_list_of_hidden_items_is_read_as_far_as_possible(self, call):
        write(call.mind.project.root, "facts/a.md", "one\n")
        call.mind.trust.forget()
        (item,) = review.waiting(call)
        review.keep(call, item.id or "")
        path = next((call.mind.folder / ".local").glob("reviewed-*"))
        path.write_bytes(b"\xff garbage\n" + b"b" * 64)
        assert listed(call) != []
        review.keep(call, item.id or "")
        assert review.hidden(call) == {"b" * 64, item.key}
