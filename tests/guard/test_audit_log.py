"""The audit log on the disk: restarts, rotation, several writers, damage."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.errors import StorageFailed
from mimo.guard.audit import AuditLog
from mimo.guard.chain import Placed, faults


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".mind").mkdir(parents=True)
    return root


def opened(root: Path, **limits: int) -> AuditLog:
    return AuditLog(root.parent / "home", root, os.urandom, **limits)


def broken(log: AuditLog) -> list[str]:
    head = log.head
    placed = [
        Placed(path.name, line, link) for path in log.paths() for line, link in log.links(path)
    ]
    count, last = (head.number, head.hash) if head else (0, None)
    return [one.what for one in faults(placed, log.key, count=count, last=last) if one.is_broken]


def notices(log: AuditLog) -> list[str]:
    placed = [
        Placed(path.name, line, link) for path in log.paths() for line, link in log.links(path)
    ]
    head = log.head
    assert head is not None
    found = faults(placed, log.key, count=head.number, last=head.hash)
    return [one.what for one in found if not one.is_broken]


def write(log: AuditLog, number: int) -> None:
    for place in range(number):
        log.append({"event_type": "tool_call", "tool": f"t{place}", "status": "ok"})


def test_nothing_yet(root: Path) -> None:
    log = opened(root)
    assert (log.paths(), log.head, log.key) == ([], None, None)
    assert broken(log) == []


@pytest.mark.req("002-56")
def test_the_chain_goes_on_after_a_restart(root: Path) -> None:
    for _ in range(3):
        write(opened(root), 2)
    log = opened(root)
    assert broken(log) == []
    assert log.head is not None
    assert log.head.number == 6
    assert (root.parent / "home/audit/key").stat().st_mode & 0o777 == 0o600
    assert log.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.req("002-56")
def test_what_is_cut_off_or_wiped_shows(root: Path) -> None:
    log = opened(root)
    write(log, 4)
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join(lines[:2]))
    assert broken(log) == ["records 3 to 4 are gone: the end was cut off"]
    write(log, 1)
    assert broken(log) == ["records 3 to 4 are gone"]
    log.path.unlink()
    assert broken(log) == ["records 1 to 5 are gone: the end was cut off"]


def test_a_writer_that_died_before_it_counted_is_no_fault(root: Path) -> None:
    log = opened(root)
    write(log, 2)
    heads = next((root.parent / "home/audit/heads").iterdir())
    before = heads.read_bytes()
    write(log, 1)
    heads.write_bytes(before)
    assert broken(log) == []
    write(opened(root), 1)
    assert broken(log) == []
    assert log.head is not None
    assert log.head.number == 4


@pytest.mark.attack("record of calls torn by a crash")
def test_an_interrupted_write_is_closed_and_is_not_tampering(
    root: Path, record_property: Callable[[str, object], None]
) -> None:
    log = opened(root)
    write(log, 2)
    whole = log.path.read_bytes()
    write(log, 1)
    third = log.path.read_bytes()[len(whole) :]
    heads = next((root.parent / "home/audit/heads").iterdir())
    head = heads.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(third)):
        log.path.write_bytes(whole + third[:cut])
        heads.write_bytes(b"".join(head[:2]))
        assert (log.torn, broken(log)) == (cut, [])
        write(log, 1)
        assert (log.torn, broken(log)) == (0, [])
        assert notices(log) == [
            "a write was interrupted before this record; what it left was removed"
        ]
    record_property("tried", len(third) - 1)


def test_a_record_that_was_counted_and_torn_is_missing(root: Path) -> None:
    log = opened(root)
    write(log, 3)
    log.path.write_bytes(log.path.read_bytes()[:-20])
    assert broken(log) == ["record 3 is gone: the end was cut off"]
    write(log, 1)
    assert broken(log) == ["record 3 is gone"]


@pytest.mark.attack("second home taken for tampering")
def test_records_of_another_home_continue_the_chain_and_are_named(root: Path) -> None:
    first, second = opened(root), AuditLog(root.parent / "other", root, os.urandom)
    write(first, 2)
    write(second, 2)
    write(first, 1)
    write(second, 1)
    for log in (first, second):
        assert broken(log) == []
        (notice,) = notices(log)
        assert notice.startswith("3 records from here on, sealed by another `$MIND_HOME`")
    assert first.totals().requests.total() == 6


@pytest.mark.attack("record of calls forged as another home's")
def test_another_home_cannot_replace_records(root: Path) -> None:
    first, second = opened(root), AuditLog(root.parent / "other", root, os.urandom)
    write(first, 3)
    first.path.unlink()
    write(second, 5)
    assert broken(first) == ["it is not the record that was written last"]
    write(first, 1)
    assert broken(first)


@pytest.mark.req("002-56")
def test_full_logs_are_put_aside_and_very_old_ones_dropped(root: Path) -> None:
    log = opened(root, largest=800, kept=2)
    write(log, 30)
    assert broken(log) == []
    assert 2 <= len(log.paths()) <= 3
    assert log.totals().requests.total() == 30
    first = next(link for _, link in log.links(log.paths()[0]) if link)
    assert first.number > 1
    log.paths()[0].unlink()
    assert broken(log)


def test_the_head_stays_small(root: Path) -> None:
    log = opened(root)
    write(log, 300)
    heads = next((root.parent / "home/audit/heads").iterdir())
    assert heads.stat().st_size < 20_000
    assert broken(log) == []


@pytest.mark.req("002-56")
def test_several_writers_make_one_chain(root: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from mimo.guard.audit import AuditLog\n"
        "log = AuditLog(Path(sys.argv[1]), Path(sys.argv[2]), os.urandom, largest=4000)\n"
        "[log.append({'event_type': 'tool_call', 'tool': 't', 'status': 'ok'})"
        " for _ in range(40)]"
    )
    arguments = [sys.executable, "-c", script, str(root.parent / "home"), str(root)]
    running = [subprocess.Popen(arguments) for _ in range(4)]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    log = opened(root)
    assert broken(log) == []
    assert log.totals().requests.total() == 160


@pytest.mark.attack("symbolic link")
def test_a_link_in_its_place_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / ".mind/.local").symlink_to(tmp_path / "outside")
    with pytest.raises(StorageFailed):
        write(opened(root), 1)
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_project_of_its_own_has_a_chain_of_its_own(root: Path, tmp_path: Path) -> None:
    write(opened(root), 2)
    outside = AuditLog(tmp_path / "home", None, os.urandom)
    write(outside, 1)
    assert outside.head is not None
    assert outside.head.number == 1
    assert broken(outside) == []


def test_totals_that_cannot_be_read_are_counted_anew(root: Path) -> None:
    log = opened(root, largest=800)
    write(log, 12)
    kept = root / ".mind/.local/metrics.json"
    assert json.loads(kept.read_text())["through"] > 0
    kept.write_text("{broken")
    assert log.totals().requests.total() == 12
