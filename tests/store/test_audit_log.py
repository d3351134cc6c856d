"""The audit log on the disk: restarts, rotation, several writers, damage."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mimo.domain.audit import Fault, Placed, faults
from mimo.errors import StorageFailed
from mimo.store.audit import AuditLog


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
    told: list[Fault] = list(faults(placed, log.key, count=count, last=last))
    return [fault.what for fault in told]


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


def test_a_torn_line_is_named_and_the_chain_goes_on(root: Path) -> None:
    log = opened(root)
    write(log, 2)
    with log.path.open("ab") as file:
        file.write(b'{"event":{"n":3')
    write(log, 1)
    assert broken(log) == ["it is no record"]


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
        "import os, sys; from pathlib import Path; from mimo.store.audit import AuditLog\n"
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
