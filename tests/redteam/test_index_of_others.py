"""While another process indexes, commands answer from what is committed, and report the rest."""

import shutil

import pytest

from mimo.call import Call
from mimo.data.locks import holding
from mimo.errors import MindError
from mimo.features.pitfalls import sources
from mimo.features.search.commands import search
from mimo.features.upkeep.checks import doctor
from mimo.features.upkeep.indexing import index
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.index.schema import SCHEMA
from mimo.operations import refresh
from mimo.project import projects
from tests.kit import with_console

OTHERS = "another process's indexing blocks a search"


@pytest.fixture
def filled(call: Call) -> Call:
    """A store of 30 memories whose index is closed; a search encodes so many at once."""
    folder = call.mind.folder / "facts"
    folder.mkdir(exist_ok=True)
    for number in range(30):
        words = ("tea", "limit", "interface", "decision", "word")[number % 5]
        text = f"Memory {number} says the {words} of team {number * 7 % 13} is {number * 31 % 17}\n"
        (folder / f"n{number}.md").write_text(text)
    while refresh.refresh(call) != refresh.Refreshed():
        pass  # A file that was written just before it was indexed is compared once more.
    call.mind.close()
    return call


def late(call: Call, number: int) -> None:
    for each in range(number):
        (call.mind.folder / "facts" / f"late{each}.md").write_text(f"late tea {each}\n")


@pytest.mark.attack(OTHERS)
def test_held_write_lock_delays_no_search(filled: Call) -> None:
    before = search(filled, "tea").results
    (filled.mind.folder / "facts" / "new.md").write_text("A tea that is not indexed yet\n")
    writer = Index.open(filled.mind.index_folder, None, filled.mind.index._owner)
    with writer._tables.writing():
        answer = search(filled, "tea")
        verdicts = {check.verdict.value for check in doctor(filled).checks}
    writer.close()

    assert answer.results == before
    assert "1 file is not indexed yet" in str(answer.notice)
    assert "fault" not in verdicts
    assert "not indexed yet" not in str(search(filled, "tea").notice)
    assert any("not indexed yet" in row.content for row in search(filled, "tea").results)


@pytest.mark.attack(OTHERS)
def test_many_missing_files_are_left_to_the_process_that_indexes_them(
    filled: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "_FEW", 5)
    search(filled, "tea")
    late(filled, 9)
    with holding(filled.mind.index_folder / "building"):
        answer = search(filled, "late tea")
        index(filled, rebuild=True)
        assert len(search(filled, "tea").results) > 0

    assert "9 files are not indexed yet" in str(answer.notice)
    assert search(filled, "late tea").results[0].content.startswith("late tea")


@pytest.mark.attack(OTHERS)
def test_answer_while_another_process_fills_a_damaged_index_reports_what_is_missing(
    filled: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "_FEW", 5)
    SCHEMA.path(filled.mind.index_folder, filled.mind.index._owner).write_bytes(b"damaged" * 1000)
    other = Index.open(filled.mind.index_folder, filled.mind.embedder, filled.mind.index._owner)
    records = filled.mind.store.read(".mind/facts/n0.md")
    assert isinstance(records, tuple)
    stamp = filled.mind.store.stamp(".mind/facts/n0.md")
    change = Change(path=".mind/facts/n0.md", stamp=stamp, records=records)
    other.apply([change], now_ns=1)
    with holding(filled.mind.index_folder / "building"):
        answer = search(filled, "tea")
    other.close()

    assert [row.id for row in answer.results] == ["n0"]
    assert "files are not indexed yet" in str(answer.notice)
    assert len(search(filled, "tea").results) > 1


@pytest.mark.req("003-41")
@pytest.mark.attack(OTHERS)
def test_first_index_that_takes_too_long_is_an_error(
    filled: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(filled.mind.folder / ".index")
    monkeypatch.setattr(refresh, "_FEW", 5)
    monkeypatch.setattr(refresh, "WAIT_SECONDS", 0.0)
    call = Call(filled.mind.reopened())
    with holding(call.mind.index_folder / "building"), pytest.raises(MindError) as caught:
        search(call, "tea")

    assert caught.value.code == "INDEX_NOT_READY"
    assert len(search(call, "tea").results) > 0


def test_interrupted_first_index_keeps_what_is_done(
    filled: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(filled.mind.folder / ".index")
    monkeypatch.setattr("mimo.index.writing.BATCH", 10)
    call = Call(filled.mind.reopened())

    def interrupted(_: str, done: int, total: int) -> None:
        if done == 25:
            raise KeyboardInterrupt

    call = with_console(call, progress=interrupted)
    with pytest.raises(KeyboardInterrupt):
        refresh.refresh(call)
    call = with_console(call, progress=None)

    assert len(call.mind.index.stamps()) == 20
    assert refresh.refresh(call).added == 31 - 20  # The log of the project is a file, too.


@pytest.mark.attack("doctor fails")
def test_check_that_fails_is_a_finding(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Call) -> None:
        raise KeyError("x")

    monkeypatch.setattr(projects, "registered", broken)
    monkeypatch.setattr(sources, "all_edges", broken)

    report = doctor(call)

    faults = {check.name for check in report.checks if check.verdict.value == "fault"}
    assert faults == {"projects", "edges"}
    assert {"index", "trust"} <= {check.name for check in report.checks}
