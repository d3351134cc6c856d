"""Duplicates are not stored again, near-duplicates are reported; nothing merges by itself."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mimo.data.locks import lock
from mimo.errors import Invalid
from mimo.features import decisions
from mimo.memory.model import Kind
from mimo.operations import refresh, saving

TEXT = "The staging database is reset every night at four"


def store(call, text=TEXT):
    return saving.store_once(call, saving.draft(Kind.FACT, text))


def test_an_unusable_index_does_not_prevent_writing(call, monkeypatch):
    store(call)

    def broken(*_):
        raise Invalid("broken")

    monkeypatch.setattr("mimo.index.writing.same", broken)
    monkeypatch.setattr("mimo.index.writing.alike", broken)
    assert not store(call).already


def test_a_hanging_process_does_not_prevent_writing(call, monkeypatch):
    monkeypatch.setattr("mimo.data.locks.lock", partial(lock, wait=0))
    with lock(call.mind.folder / ".local" / "adding"):
        assert not store(call).already


def test_a_superseded_decision_is_not_reported_as_a_near_duplicate(call):
    texts = [f"Use JWT for the shop, with refresh {end}" for end in ("tokens", "tokens kept")]
    drafts = [saving.draft(Kind.DECISION, text, topic="auth", confidence=0.7) for text in texts]
    assert [decisions.save(call, draft).notice for draft in drafts] == [None, None]


def test_the_most_alike_of_many_is_named(call):
    for hour in ("one", "two", "three"):
        store(call, f"The {hour} of the four backups is reset in the staging database")
    best = store(call)
    assert best.record.memory.id in store(call, f"{TEXT} sharp").notice


def test_a_long_text_is_compared_as_a_whole(call):
    long = " ".join(f"word{number}" for number in range(3_000))
    first = store(call, long)
    assert first.record.memory.id in store(call, f"{long} and one more").notice


ADD = """
import sys
from pathlib import Path
from mimo.memory.model import Kind
from mimo.call import Call
from mimo.mind import Mind
from mimo.operations import saving
mind = Mind.open(Path(sys.argv[1]))
draft = saving.draft(Kind.FACT, sys.argv[2])
sys.stdin.readline()
print(saving.store_once(Call(mind), draft).already)
mind.close()
"""


def test_of_processes_that_store_one_text_at_once_one_does(call, project):
    refresh.refresh(call)
    command = [sys.executable, "-c", ADD, str(project), TEXT]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    with ThreadPoolExecutor(4) as pool:
        message = list(pool.map(lambda record: record.communicate("go\n")[0].strip(), started))
    assert sorted(message) == ["False", "True", "True", "True"]
    assert len(list(call.mind.folder.rglob("*_*.md"))) == 1
