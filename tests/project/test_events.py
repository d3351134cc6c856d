"""The log of events: one shape, a bounded size, and no event shown twice or missed."""

import json
import multiprocessing
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.errors import StorageFailed
from mimo.mind import Mind
from mimo.project.events import LARGEST, Event, EventLog, Place

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
LINE = b'{"name": "x", "time": "2026-11-20T15:30Z", "measurements": {"n": %s}, "metadata": {}}'


def event(kind: str = "mimo.test", /, count: float = 1, **metadata: Any) -> Event:
    return Event(name=kind, time=NOW, measurements={"count": count}, metadata=metadata)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".mind").mkdir()
    return tmp_path


def file(root: Path, name: str = "events.jsonl") -> Path:
    return root / ".mind" / ".local" / name


def counts(events: list[Event]) -> list[float]:
    return [event.measurements["count"] for event in events]


@pytest.mark.req("000-27")
def test_an_event_is_one_line_of_json(root):
    EventLog(root).write(event("mimo.procedure.start", name="ship", version="1.0", dry=False))

    assert json.loads(file(root).read_text(encoding="utf-8")) == {
        "name": "mimo.procedure.start",
        "time": "2026-11-20T15:30:00Z",
        "measurements": {"count": 1},
        "metadata": {"name": "ship", "version": "1.0", "dry": False},
    }


def test_written_events_are_read(root):
    written = event(count=2.5, path="논문.md", nothing=None, parts=["a", {"b": 1}])
    EventLog(root).write(written)

    assert EventLog(root).read()[0] == [written]


def test_a_missing_log_has_no_events(root):
    assert EventLog(root).read() == ([], Place())
    assert EventLog(root).since(Place()) == ([], Place())


def test_only_the_user_can_read_the_log(root):
    EventLog(root).write(event())

    assert file(root).stat().st_mode & 0o077 == 0


def test_line_breaks_in_an_event_are_escaped(root):
    log = EventLog(root)
    log.write(event(said="one\ntwo\u2028three\x85four\ud800"))
    log.write(event(said="next"))

    assert [logged.metadata["said"] for logged in log.read()[0]] == [
        "one\ntwo\u2028three\x85four?",
        "next",
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"name": "x"}',
        b"[" * 100_000,
        b'{"name": "x", "time": "2026-11-20T15:30:00", "measurements": {}, "metadata": {}}',
        LINE % b'"1"',
        LINE % b"NaN",
    ],
)
def test_other_lines_are_ignored(root, line):
    log = EventLog(root)
    log.write(event(count=1))
    with file(root).open("ab") as torn:
        torn.write(line)
    log.write(event(count=2))

    assert counts(log.read()[0]) == [1, 2]


def test_an_incomplete_line_is_read_once_it_is_complete(root):
    log = EventLog(root)
    log.write(event(count=1))
    whole = file(root).read_bytes()
    with file(root).open("ab") as torn:
        torn.write(whole[:20])
    events, place = log.read()
    assert counts(events) == [1]

    with file(root).open("ab") as torn:
        torn.write(whole[20:])
    assert counts(log.since(place)[0]) == [1]


def test_full_logs_are_renamed_and_the_oldest_removed(root):
    log = EventLog(root, largest=300)
    for number in range(20):
        log.write(event(count=number))

    events, _ = log.read()
    assert counts(events) == list(range(int(events[0].measurements["count"]), 20))
    assert 3 < len(events) < 20
    assert all(path.stat().st_size <= 500 for path in file(root).parent.glob("*.jsonl"))


@pytest.mark.parametrize("before", [0, 3])
def test_many_events_written_at_once_fill_several_logs(root, before):
    log = EventLog(root, largest=500)
    log.write(*(event(count=-number) for number in range(before)))

    log.write(*(event(count=number) for number in range(20)))

    written = counts(log.read()[0])
    assert written == list(range(20 - len(written), 20))
    assert len(written) > 5
    assert all(path.stat().st_size <= 500 for path in file(root).parent.glob("events*.jsonl"))


def test_an_event_larger_than_a_log_is_kept(root):
    log = EventLog(root, largest=10)
    log.write(event(count=1))
    log.write(event(count=2))

    assert counts(log.read()[0]) == [1, 2]


@pytest.mark.parametrize("burst", [1, 2, 3, 5])
def test_a_follower_gets_each_event_once_when_a_log_fills_up(root, burst):
    log = EventLog(root, largest=400)
    place, seen = Place(), []
    for number in range(40):
        log.write(event(count=number))
        if number % burst == burst - 1:
            events, place = log.since(place)
            seen += counts(events)
            assert log.since(place) == ([], place)

    assert seen == list(range(len(seen)))
    assert len(seen) > 40 - burst


def test_the_line_of_the_test_before_is_an_event_but_for_its_number(root):
    EventLog(root).write(event(count=1))
    file(root).write_bytes(LINE % b"3" + b"\n")

    assert EventLog(root).read()[0][0].measurements == {"n": 3}


def test_a_follower_reads_a_log_that_was_just_renamed(root):
    log = EventLog(root)
    log.write(event(count=1))
    _, place = log.read()
    log.write(event(count=2))
    file(root).rename(file(root, "events.1.jsonl"))

    events, place = log.since(place)
    assert counts(events) == [2]
    log.write(event(count=3))
    assert counts(log.since(place)[0]) == [3]


def _write_many(root: Path, writer: int, largest: int) -> None:
    log = EventLog(root, largest=largest)
    for number in range(50):
        written = False
        while not written:  # a busy machine may keep the lock from one of them for long
            with suppress(StorageFailed):
                log.write(event(count=number, writer=writer))
                written = True


@pytest.mark.parametrize("largest", [LARGEST, 8_000])
def test_concurrent_processes_write_one_log(root, largest):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(root, name, largest)) for name in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    events, _ = EventLog(root).read()
    for name in range(3):
        assert counts([e for e in events if e.metadata["writer"] == name]) == list(range(50))


def test_replacing_a_text_keeps_the_length_of_each_line(root):
    log = EventLog(root, largest=400)
    for number in range(5):
        log.write(event(count=number, id="a_long_name", other="a_long_name_of_another"))
    _, place = log.read()
    sizes = {path: path.stat().st_size for path in file(root).parent.glob("events*.jsonl")}
    assert len(sizes) > 1

    log.replace("a_long_name", "short")

    events, _ = log.read()
    ids = {(each.metadata["id"], each.metadata["other"]) for each in events}
    assert ids == {("short", "a_long_name_of_another")}
    assert {path: path.stat().st_size for path in sizes} == sizes
    assert log.since(place)[0] == []


def test_replacing_a_missing_text_changes_nothing(root):
    log = EventLog(root)
    log.replace("a", "b")
    assert not file(root).parent.exists()


@pytest.mark.attack("symbolic link")
def test_a_link_in_place_of_the_log_is_not_followed(root, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    file(root).parent.mkdir()
    file(root).symlink_to(victim)

    EventLog(root).write(event())
    assert file(root).is_symlink()
    assert victim.read_text(encoding="utf-8") == "precious"


def test_events_have_the_time_of_the_memorys_clock(call: Call) -> None:
    call.mind.tell("mimo.ingest.file", {"chunks": 3}, path="README.md")

    (logged,) = call.mind.events.read()[0]
    assert (logged.name, logged.time) == ("mimo.ingest.file", call.mind.now())
    assert (logged.measurements, logged.metadata) == ({"chunks": 3}, {"path": "README.md"})


def test_a_failing_event_log_does_not_stop_the_command(call: Call, home: Path) -> None:
    local = call.mind.folder / ".local"
    local.mkdir(exist_ok=True)
    (local / "events.jsonl").mkdir()
    call.mind.tell("mimo.test", {"count": 1})

    Call(Mind(home=home, project=None)).mind.tell("mimo.test", {"count": 1})

    assert (local / "events.jsonl").is_dir()
