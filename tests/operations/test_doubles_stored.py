"""Duplicates are not stored again, near-duplicates are reported; nothing merges by itself."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from mimo.data.locks import lock
from mimo.errors import Invalid
from mimo.features import decisions
from mimo.features.ingest import Options, ingest_files
from mimo.memory.chunking import Chunking, Strategy
from mimo.memory.ids import handle_of
from mimo.memory.model import Kind, Link, Outcome
from mimo.operations import refresh, removing, saving
from tests.kit import put

TEXT = "The staging database is reset every night at four"


def store(call, text=TEXT, *, kind=Kind.FACT, private=False, again=False, **fields):
    draft = saving.draft(kind, text, **fields)
    return saving.store_once(call, draft, private=private, again=again)


def decide(call, text="Use JWT", *, topic="auth", **options):
    fields = {name: options.pop(name) for name in ("links", "outcome") if name in options}
    draft = saving.draft(Kind.DECISION, text, topic=topic, confidence=0.7, **fields)
    return decisions.save(call, draft, **options)


def files(call):
    return sorted(path.name for path in call.mind.folder.rglob("*_*.md"))


class TestSame:
    def test_nothing_is_written_and_the_answer_names_the_existing_memory(self, call, clock):
        first = store(call)
        before = files(call)
        clock.forward(days=3)

        second = store(call, f"  {TEXT.replace(' ', '  ')}\n")

        assert second.already
        assert second.record.memory.id == first.record.memory.id
        assert first.record.memory.id in second.notice
        assert files(call) == before
        assert (first.already, first.notice) == (False, None)

    def test_a_duplicate_is_stored_if_requested(self, call):
        first, second = store(call), store(call, again=True)
        assert not second.already
        assert first.record.memory.id != second.record.memory.id

    @pytest.mark.parametrize("other", [{"kind": Kind.PLAN}, {"title": "Night"}, {"topic": "db"}])
    def test_another_type_title_or_topic_is_another_statement_that_is_much_alike(self, call, other):
        first, second = store(call), store(call, **other)
        assert not second.already
        assert second.notice == (
            f"much like {first.record.memory.id}; if they state the same, remove one of them"
        )

    def test_fields_that_were_left_out_are_named_and_unchanged(self, call):
        first = store(call, tags=("db",))
        second = store(call, tags=("night",), importance=0.9)
        assert "its tags and importance stayed as they were" in second.notice
        assert second.record.memory.tags == ("db",)
        assert first.record.place.digest == second.record.place.digest

    def test_an_invalid_draft_is_refused_even_if_the_text_exists(self, call):
        store(call)
        with pytest.raises(Invalid, match="tag"):
            store(call, tags=("a,b",))

    def test_two_checkpoints_are_two(self, call):
        first, second = (store(call, kind=Kind.CHECKPOINT) for _ in range(2))
        assert first.record.memory.id != second.record.memory.id
        assert second.notice is None

    def test_a_removed_memory_is_stored_again(self, call):
        first = store(call)
        removing.remove(call, first.record.memory.id)
        assert not store(call).already

    def test_a_file_just_changed_by_hand_is_not_a_duplicate(self, call):
        """An index that has not seen the change yet must not keep a text from being stored."""
        first = store(call)
        path = call.mind.project.root / first.record.place.path
        with path.open("r+", encoding="utf-8") as file:
            text = file.read().replace("every night", "on Mondays")
            file.seek(0)
            file.write(text)
            file.truncate()
        assert not store(call).already
        assert store(call).already

    def test_a_file_just_written_by_hand_is_a_duplicate(self, call):
        store(call, "Tea is hot")
        path = call.mind.folder / "facts" / "pulled.md"
        path.write_text("---\nid: pulled\ntype: fact\n---\nTea is cold\n", encoding="utf-8")
        later = time.time_ns() + 1_000_000_000
        os.utime(path.parent, ns=(later, later))
        assert store(call, "Tea is cold").record.memory.id == "pulled"

    def test_an_unusable_index_does_not_prevent_writing(self, call, monkeypatch):
        store(call)

        def broken(*_):
            raise Invalid("broken")

        monkeypatch.setattr("mimo.index.writing.same", broken)
        monkeypatch.setattr("mimo.index.writing.alike", broken)
        assert not store(call).already

    def test_a_hanging_process_does_not_prevent_writing(self, call, monkeypatch):
        monkeypatch.setattr("mimo.data.locks.lock", partial(lock, wait=0))
        with lock(call.mind.folder / ".local" / "adding"):
            assert not store(call).already


class TestWhoseItIs:
    def test_a_duplicate_of_a_private_memory_is_stored_as_shared(self, call):
        first = store(call, private=True)
        second = store(call)
        assert not second.already
        assert not second.record.place.private
        assert first.record.memory.id in second.notice

    def test_a_private_duplicate_of_a_shared_memory_is_not_written_and_is_reported(self, call):
        store(call)
        second = store(call, private=True)
        assert second.already
        assert not second.record.place.private
        assert "it is not private" in second.notice
        assert store(call, "My desk is by the window", private=True).record.place.private
        assert store(call, "My desk is by the window", private=True).notice.count("private") == 0

    def test_a_duplicate_of_an_unapproved_memory_is_stored(self, call, project):
        """Otherwise a clone could keep something from ever counting as approved."""
        call.mind.trust.follow(False)
        put(project / ".mind" / "facts" / "theirs.md", f"---\ntype: fact\n---\n{TEXT}\n")

        own = store(call)

        assert not own.already
        assert call.mind.trust.trusted(own.record.place.digest)
        assert own.notice.startswith(f"much like {handle_of('theirs')};")

    def test_a_duplicate_of_a_chunk_is_stored(self, call, project, monkeypatch):
        monkeypatch.chdir(project)
        (project / "notes.txt").write_text(TEXT, encoding="utf-8")
        whole = Options(chunking=Chunking(strategy=Strategy.WHOLE))
        taken = ingest_files(call, ["notes.txt"], whole)
        own = store(call)
        assert not own.already
        assert own.notice.startswith(f"much like {taken.files[0].ids[0]}")

    def test_a_duplicate_of_a_document_is_stored(self, call, project):
        (project / ".mind" / "notes").mkdir()
        (project / ".mind" / "notes" / "db.md").write_text(f"{TEXT}\n", encoding="utf-8")
        own = store(call)
        assert not own.already
        assert own.notice.startswith("much like notes.db")


class TestDecisions:
    def test_a_duplicate_of_a_current_decision_is_not_stored(self, call):
        first = decide(call)
        second = decide(call, topic="Auth")
        assert (second.already, second.supersedes) == (True, ())
        assert second.record.memory.id == first.record.memory.id

    def test_going_back_to_a_superseded_decision_is_a_new_decision(self, call):
        first, second = decide(call), decide(call, "Use sessions")
        third = decide(call)
        assert not third.already
        assert third.supersedes == (second.record.memory.id,)
        assert third.record.memory.id != first.record.memory.id

    def test_a_duplicate_of_a_failed_decision_is_reported_as_failed(self, call):
        first = decide(call)
        decisions.conclude(call, first.record.memory.id, Outcome.FAILED, "tokens leaked")
        second = decide(call)
        assert second.already
        assert "tokens leaked" in second.notice
        third = decide(call, again=True)
        assert third.supersedes == (first.record.memory.id,)

    def test_a_new_link_or_outcome_makes_it_new(self, call):
        first, base = decide(call), store(call).record.memory.id
        linked = decide(call, links=(Link(to=base, type="builds_on"),))
        assert linked.supersedes == (first.record.memory.id,)
        assert decide(call, outcome=Outcome.SUCCESS).supersedes == (linked.record.memory.id,)

    def test_a_superseded_decision_is_not_reported_as_a_near_duplicate(self, call):
        decide(call, "Use JWT for the shop, with refresh tokens")
        assert decide(call, "Use JWT for the shop, with refresh tokens kept").notice is None

    def test_a_decision_may_supersede_one_with_the_same_words(self, call):
        old = decide(call).record.memory.id
        draft = saving.draft(Kind.DECISION, "Use JWT", topic="auth", confidence=0.7)
        saved = decisions.supersede(call, old, draft, reason=None)
        assert saved.supersedes == (old,)


class TestMuchAlike:
    @pytest.mark.parametrize(
        "text",
        [
            "The staging database is reset every evening at four",
            "The staging database is reset nightly, every night at four",
            "Every night at four, the staging database is reset.",
        ],
    )
    def test_a_near_duplicate_is_stored_and_reported(self, call, text):
        first = store(call)
        second = store(call, text)
        assert not second.already
        assert first.record.memory.id in second.notice

    @pytest.mark.parametrize("text", ["The staging database has a replica", "Night shift", "🦊"])
    def test_a_text_that_shares_some_words_is_not_a_near_duplicate(self, call, text):
        store(call)
        assert store(call, text).notice is None

    def test_the_most_alike_of_many_is_named(self, call):
        for hour in ("one", "two", "three"):
            store(call, f"The {hour} of the four backups is reset in the staging database")
        best = store(call)
        assert best.record.memory.id in store(call, f"{TEXT} sharp").notice

    def test_it_works_without_latin_letters(self, call):
        first = store(call, "스테이징 데이터베이스는 매일 밤 네 시에 초기화된다")
        second = store(call, "스테이징 데이터베이스는 매일 밤 다섯 시에 초기화된다")
        assert first.record.memory.id in second.notice

    def test_a_long_text_is_compared_as_a_whole(self, call):
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
    assert len(files(call)) == 1
