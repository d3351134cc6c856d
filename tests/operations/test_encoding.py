"""The encoder's vectors are made by `mind index`, by searches, and by servers between calls."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import pytest

from mimo.call import Call
from mimo.data.locks import holding
from mimo.errors import Invalid
from mimo.features.upkeep.indexing import index
from mimo.index.meanings import Meanings
from mimo.operations import encoding, finding, refresh, searching
from mimo.operations.encoding import Encoding
from tests.kit import fact

TEXTS = [f"Service number {number} keeps its settings in folder {number}" for number in range(20)]


@pytest.fixture
def filled(call: Call) -> Call:
    for number, text in enumerate(TEXTS):
        fact(call, f"service{number}", text)
    refresh.refresh(call)
    return call


@pytest.fixture
def thread(filled: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[Encoding]:
    """The thread of a server on the memory, before its first call."""
    monkeypatch.delenv("MIND_BACKGROUND")
    monkeypatch.setattr(encoding, "QUIET_SECONDS", 0.01)
    server = filled.mind.reopened()
    with closing(server), closing(Encoding(lambda: [server])) as thread:
        yield thread


def made(call: Call) -> int:
    """Returns the number of vectors of a memory."""
    meanings = call.mind.index.meanings
    assert meanings
    return meanings.vectors.count()


def until(holds: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_index_command_prepares_every_memory(filled: Call) -> None:
    assert index(filled).encoded == len(TEXTS)
    assert index(filled).encoded == 0


def test_threads_prepare_the_same_and_are_at_most_the_processors(
    filled: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert index(filled, threads=2).encoded == len(TEXTS)
    with pytest.raises(Invalid, match="`--threads` must be at most 2, not `3`") as refusal:
        index(filled, threads=3)
    assert refusal.value.hint == "use `--threads 2`, one for each processor"


def test_a_second_index_command_leaves_the_work_to_the_first(
    filled: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "_WAIT_SECONDS", 0.01)
    with holding(filled.mind.index_folder / "encoding"):
        result = index(filled)

    assert result.encoded == 0
    assert "another process is reading the memories" in (result.notice or "")


def test_the_index_command_succeeds_if_another_process_makes_its_vectors_meanwhile(
    filled: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = Meanings.missing

    def make_after(meanings: Meanings, sql: Connection) -> list[int]:
        keys = missing(meanings, sql)
        meanings.of(meanings.texts(sql, keys))
        return keys

    monkeypatch.setattr(Meanings, "missing", make_after)
    index(filled)
    assert made(filled) == len(TEXTS)


def test_a_search_reads_a_limited_amount_of_text_and_states_the_rest(
    filled: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.index.meanings.MOST_CHARACTERS", sum(map(len, TEXTS[:5])))
    answer = searching.search(filled, "where are preferences kept?", finding.Options(limit=3))
    assert made(filled) == 5
    assert "15 of 20 texts are not yet read for their meaning" in (answer.notice or "")

    for _ in range(3):
        answer = searching.search(filled, "where are preferences kept?", finding.Options(limit=3))
    assert made(filled) == len(TEXTS)
    assert answer.notice is None or "not yet read" not in answer.notice


def test_a_thread_makes_the_vectors_after_a_call(filled: Call, thread: Encoding) -> None:
    finding.total(filled)
    assert made(filled) == 0

    with thread.pausing():
        pass

    until(lambda: made(filled) == len(TEXTS))


def test_a_thread_waits_while_a_call_runs(
    filled: Call, thread: Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding.total(filled)
    with thread.pausing():
        pass
    with thread.pausing():
        during = made(filled)
        time.sleep(0.3)
        assert made(filled) - during <= 4  # The texts that it was reading.
        assert made(filled) < len(TEXTS)

    until(lambda: made(filled) == len(TEXTS))


def test_a_thread_leaves_the_work_to_the_index_command(filled: Call, thread: Encoding) -> None:
    finding.total(filled)
    with holding(filled.mind.index_folder / "encoding") as is_held:
        assert is_held
        with thread.pausing():
            pass
        time.sleep(0.3)
        assert made(filled) == 0

    until(lambda: made(filled) == len(TEXTS))


def test_a_thread_ends_with_its_server(filled: Call, thread: Encoding) -> None:
    with thread.pausing():
        pass
    running = thread._thread
    assert running
    thread.close()

    assert not running.is_alive()
    with thread.pausing():
        pass
    assert thread._thread is None


def test_the_threads_can_be_switched_off(thread: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_BACKGROUND", "off")
    with thread.pausing():
        pass
    assert thread._thread is None


def test_an_error_does_not_end_the_thread(
    filled: Call, thread: Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding.total(filled)
    asked = []

    def fail(*_: object) -> None:
        asked.append(True)
        raise ValueError

    with monkeypatch.context() as patched:
        patched.setattr("mimo.index.index.Index.make_meanings", fail)
        with thread.pausing():
            pass
        until(lambda: bool(asked))
    with thread.pausing():
        pass
    until(lambda: made(filled) == len(TEXTS))


def test_a_user_who_stops_the_reading_learns_that_its_result_is_kept(
    filled: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Call, "advance", stop)
    with pytest.raises(KeyboardInterrupt) as raised:
        encoding.encode(filled)

    assert raised.value.__notes__ == ["what was read is kept"]


@pytest.mark.parametrize(("added", "is_noted"), [(39, False), (40, True)])
def test_many_new_memories_are_noted(filled: Call, added: int, is_noted: bool) -> None:
    encoding.note_missing(filled, added)

    text = "20 of 20 texts are not yet read for their meaning; "
    text += "servers do it between calls, `mind index` at once"
    assert filled.notice == (text if is_noted else None)


@pytest.mark.parametrize(
    ("state", "scope", "load", "is_strained"),
    [
        ("Charging", "System", 0.1, False),
        ("Discharging", "System", 0.1, True),
        ("Discharging", "Device", 0.1, False),
        ("Full", "System", 99.0, True),
        ("", "", 0.1, False),
        ("", "", 99.0, True),
    ],
)
def test_a_machine_on_battery_or_with_much_work_is_strained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    scope: str,
    load: float,
    is_strained: bool,
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    if state:
        (tmp_path / "BAT0").mkdir()
        (tmp_path / "BAT0" / "status").write_text(f"{state}\n")
        (tmp_path / "BAT0" / "scope").write_text(f"{scope}\n")

    assert encoding.is_strained(tmp_path) is is_strained


def test_a_battery_that_can_not_be_read_hides_no_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 99.0, 99.0))
    (tmp_path / "BAT0" / "status").mkdir(parents=True)

    assert encoding.is_strained(tmp_path)
    assert encoding.is_strained(tmp_path / "missing")


def test_a_thread_rests_nine_times_as_long_on_a_strained_machine(
    thread: Encoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "is_strained", lambda: True)
    began = time.monotonic()
    with thread._turn(tmp_path / "lock"):
        time.sleep(0.02)
    assert thread._quiet_at - began >= 10 * 0.02
