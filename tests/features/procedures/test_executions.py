"""The files of runs: whole records only, one holder, found by a part of their id."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimo.data import append_log, files
from mimo.errors import AmbiguousId, Conflict, Invalid, NotFound, StorageFailed
from mimo.features.procedures import storage
from mimo.features.procedures.machine import Sent
from mimo.features.procedures.storage import Execution, Executions


@pytest.fixture
def runs(tmp_path: Path) -> Executions:
    (tmp_path / ".mind").mkdir()
    return Executions(tmp_path, "secret")


def folder(tmp_path: Path, id_: str) -> Path:
    return tmp_path / ".mind" / ".local" / "executions" / id_


def test_records_are_read_as_they_were_written(runs: Executions) -> None:
    run = runs.create("ship_1", {"kind": "start", "said": "논문\n\u2028"})
    run.append({"kind": "end", "at": 1})

    start, end = runs.find("ship_1").records()
    assert (start["said"], end) == ("논문\n\u2028", {"n": 1, "kind": "end", "at": 1})


def test_only_the_user_can_read_a_journal(runs: Executions, tmp_path: Path) -> None:
    runs.create("ship_1", {})

    assert (folder(tmp_path, "ship_1") / "journal.jsonl").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("torn", [b"{", b'{"n": 1, "kind": "en', b"null", b'{"n": 7}', b"\xff"])
def test_a_torn_record_does_not_count(runs: Executions, tmp_path: Path, torn: bytes) -> None:
    runs.create("ship_1", {"kind": "start"})
    with (folder(tmp_path, "ship_1") / "journal.jsonl").open("ab") as journal:
        journal.write(torn)
    run = runs.find("ship_1")
    assert len(run.records()) == 1

    run.append({"kind": "end"})
    assert [record.get("kind") for record in runs.find("ship_1").records()] == ["start", "end"]


@pytest.mark.req("000-28")
@pytest.mark.parametrize("written", [True, False])
def test_a_record_after_an_interruption_has_the_right_number(
    runs: Executions, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    """A signal may come after the line was written, but before it was counted."""
    run = runs.create("ship_1", {"kind": "start"})
    append = append_log.append

    def interrupted(path: Path, data: bytes) -> None:
        if written:
            append(path, data)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(append_log, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.append({"kind": "enter"})
    run.append({"kind": "end"})

    kinds = [record["kind"] for record in runs.find("ship_1").records()]
    assert kinds == ["start", *(["enter"] if written else []), "end"]


def test_a_run_without_a_journal_does_not_exist(
    runs: Executions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed while it creates a run must not leave an incomplete one."""
    write = files.write_new

    def killed(path: Path, data: bytes, **options: int) -> None:
        write(path, data, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr("mimo.features.procedures.storage.files.write_new", killed)
    with pytest.raises(KeyboardInterrupt):
        runs.create("ship_1", {})

    assert runs.ids() == []

    monkeypatch.undo()
    runs.create("ship_2", {})
    assert folder(tmp_path, "ship_1").exists(), "another process may be creating it"
    os.utime(folder(tmp_path, "ship_1") / "begun", (0, 0))
    runs.create("ship_3", {})
    assert not folder(tmp_path, "ship_1").exists()
    assert runs.ids() == ["ship_2", "ship_3"]


def test_an_empty_journal_is_damaged(runs: Executions, tmp_path: Path) -> None:
    runs.create("ship_1", {})
    (folder(tmp_path, "ship_1") / "journal.jsonl").write_bytes(b"")

    with pytest.raises(StorageFailed, match="is damaged"):
        runs.find("ship_1").records()


@pytest.mark.attack("journal of a run damaged")
def test_a_missing_record_is_damage_and_a_torn_one_is_not(runs: Executions, tmp_path: Path) -> None:
    run = runs.create("ship_1", {"kind": "start"})
    run.append({"kind": "enter"})
    run.append({"kind": "end"})
    journal = folder(tmp_path, "ship_1") / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    for damaged in (
        lines[0] + lines[2],
        lines[0] + b"\0\0\n" + lines[2],
        lines[0] + lines[1] + b"{}\n",
        lines[0] + lines[1] + lines[1],
    ):
        journal.write_bytes(damaged)
        with pytest.raises(StorageFailed, match="is damaged at line"):
            runs.find("ship_1").records()
    journal.write_bytes(b"".join(lines[:2]) + lines[2][:-1])
    assert len(runs.find("ship_1").records()) == 2


def test_only_one_holder_can_run_an_execution(runs: Executions) -> None:
    run = runs.create("ship_1", {})
    assert not run.is_running

    with run.held():
        assert runs.find("ship_1").is_running
        with pytest.raises(Conflict, match="is running already"), runs.find("ship_1").held():
            pass
    assert not run.is_running


def test_a_status_check_does_not_make_a_run_look_held(runs: Executions, tmp_path: Path) -> None:
    import fcntl

    run = runs.create("ship_1", {})
    with run.held():
        pass
    looking = os.open(folder(tmp_path, "ship_1") / "lock", os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)

    seen = run.is_running
    os.close(looking)
    assert not seen


def test_a_process_inherits_the_lock_by_its_descriptor(runs: Executions, tmp_path: Path) -> None:
    run = runs.create("ship_1", {})
    seen = []
    other = os.open(tmp_path / "other", os.O_CREAT)
    for number in (run.hold(), other):  # a descriptor of another file is not the lock
        with run.held(str(number)):
            seen.append(run.is_running)
        seen.append(run.is_running)
    os.close(other)

    assert seen == [True, False, True, False]


def test_sent_events_keep_their_order(runs: Executions) -> None:
    run = runs.create("ship_1", {})
    for event, turn in (("yes", 0), ("no\n", None), ("논문", 7)):
        runs.find("ship_1").send(event, turn=turn)

    assert run.sent() == [
        Sent(event="yes", turn=0),
        Sent(event="no\n", early=True),
        Sent(event="논문", turn=7),
    ]


def test_events_of_earlier_versions_have_no_turn(runs: Executions, tmp_path: Path) -> None:
    run = runs.create("ship_1", {})
    lines = b'{"event": "yes"}\n{"event": 5, "turn": "x"}\nnull\n{"turn": 1}\n'
    (folder(tmp_path, "ship_1") / "inbox.jsonl").write_bytes(lines)

    assert run.sent() == [Sent(event="yes"), Sent(event="5")]


def test_a_cancellation_can_be_withdrawn(runs: Executions) -> None:
    run = runs.create("ship_1", {})
    runs.find("ship_1").cancel("enough")
    reasons = [run.cancelled()]
    run.go_on()

    assert [*reasons, run.cancelled()] == ["enough", None]


@pytest.mark.req("000-18")
def test_a_run_is_found_by_an_unambiguous_start_or_end_of_its_id(runs: Executions) -> None:
    for id_ in ("ship_1", "ship_2"):
        runs.create(id_, {})

    assert [runs.find(word).id for word in ("ship_1", "2", "latest")] == [
        "ship_1",
        "ship_2",
        "ship_2",
    ]
    with pytest.raises(AmbiguousId):
        runs.find("ship")
    with pytest.raises(NotFound, match="no run `gone`"):
        runs.find("gone")
    for wrong in ("", "../ship_1", ".hidden"):
        with pytest.raises(Invalid):
            runs.find(wrong)


def test_an_existing_run_is_not_overwritten(runs: Executions) -> None:
    runs.create("ship_1", {})

    with pytest.raises(Conflict):
        runs.create("ship_1", {})


def test_old_runs_are_removed_unless_they_are_running(
    runs: Executions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_KEPT", 2)
    first = runs.create("ship_0", {})
    with first.held():
        for number in range(1, 6):
            runs.create(f"ship_{number}", {})

    assert runs.ids() == ["ship_0", "ship_4", "ship_5"]


@pytest.mark.attack("local state planted by a clone")
def test_planted_runs_do_not_push_out_own_ones(
    runs: Executions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.create("ship_0", {})
    for number in range(2):
        Executions(tmp_path, "other").create(f"planted_{number}", {})
    (tmp_path / storage.FOLDER / "planted_1" / "journal.jsonl").write_text("{\n")
    monkeypatch.setattr(storage, "_KEPT", 2)
    runs.create("ship_1", {})

    assert runs.ids() == ["ship_0", "ship_1"]


def test_a_run_is_marked_with_its_user(runs: Executions, tmp_path: Path) -> None:
    (start,) = runs.create("ship_1", {}).records()

    assert runs.is_ours("ship_1", start)
    assert not runs.is_ours("ship_2", start)
    assert not Executions(tmp_path, "other").is_ours("ship_1", start)


@pytest.mark.attack("symbolic link")
def test_a_symbolic_link_is_not_a_run(runs: Executions, tmp_path: Path) -> None:
    runs.create("ship_1", {})
    folder(tmp_path, "ship_2").symlink_to(folder(tmp_path, "ship_1"))

    assert runs.ids() == ["ship_1"]
    assert isinstance(runs.find("ship"), Execution)


def test_a_run_whose_process_was_killed_was_last_seen_when_it_was_noted(runs: Executions) -> None:
    run = runs.create("ship_1", {"kind": "start"})
    with run.held():
        assert run.seen is None
        run.note_seen(datetime(2026, 11, 20, 15, 30, 5, tzinfo=UTC))

    assert runs.find("ship_1").seen == datetime(2026, 11, 20, 15, 30, 5, tzinfo=UTC)
