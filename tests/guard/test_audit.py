"""The audit log and its totals."""

import hmac
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.data import disk
from mimo.errors import StorageFailed
from mimo.features.audit import exposition
from mimo.guard import audit
from mimo.guard.audit import AuditLog
from mimo.guard.chain import Link, Placed, faults, line_of, sealed
from mimo.guard.totals import MOST_NAMESPACES, OTHERS, Totals, totals_of


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
    return [
        problem.what
        for problem in faults(
            placed, log.key, count=count, digest=last, restarted=log.has_restarted
        )
        if problem.is_broken
    ]


def notices(log: AuditLog) -> list[str]:
    placed = [
        Placed(path.name, line, link) for path in log.paths() for line, link in log.links(path)
    ]
    head = log.head
    assert head is not None
    problems = faults(
        placed, log.key, count=head.number, digest=head.hash, restarted=log.has_restarted
    )
    return [problem.what for problem in problems if not problem.is_broken]


def write(log: AuditLog, number: int) -> None:
    for place in range(number):
        log.append({"event_type": "tool_call", "tool": f"t{place}", "status": "ok"})


def test_a_new_log_is_empty_and_whole(root: Path) -> None:
    log = opened(root)
    assert (log.paths(), log.head, log.key) == ([], None, None)
    assert broken(log) == []


@pytest.mark.req("002-56")
def test_the_chain_continues_after_a_restart(root: Path) -> None:
    for _ in range(3):
        write(opened(root), 2)
    log = opened(root)
    assert broken(log) == []
    assert log.head is not None
    assert log.head.number == 6
    assert (root.parent / "home/audit/key").stat().st_mode & 0o777 == 0o600
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_two_processes_that_take_turns_make_one_chain(root: Path) -> None:
    log, other = opened(root), opened(root)
    for writer in (log, other, log, log, other, log):
        write(writer, 2)
    with log.path.open("ab") as file:
        file.write(b"torn")
    write(log, 1)

    assert log.head is not None
    assert (log.head.number, log.torn, broken(log)) == (14, 0, [])
    assert len(notices(log)) == 1


def test_while_no_other_process_writes_no_record_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(root)
    write(log, 1)
    with monkeypatch.context() as patched:
        patched.delattr("mimo.guard.audit._last")
        write(log, 2)

    assert broken(log) == []


@pytest.mark.req("002-56")
def test_removed_records_are_reported(root: Path) -> None:
    log = opened(root)
    write(log, 4)
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join(lines[:2]))
    assert broken(log) == ["records 3 to 4 are missing: the end was cut off"]
    write(log, 1)
    assert broken(log) == ["records 3 to 4 are missing"]
    log.path.unlink()
    assert broken(log) == ["records 1 to 5 are missing: the end was cut off"]


def test_a_record_whose_writer_did_not_store_the_head_is_not_a_fault(root: Path) -> None:
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
def test_an_interrupted_write_is_a_notice_and_not_a_fault(
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
            "a write was interrupted before this record; its incomplete record was removed"
        ]
    record_property("tried", len(third) - 1)


def test_a_torn_record_that_the_head_counts_is_missing(root: Path) -> None:
    log = opened(root)
    write(log, 3)
    log.path.write_bytes(log.path.read_bytes()[:-20])
    assert broken(log) == ["record 3 is missing: the end was cut off"]
    write(log, 1)
    assert broken(log) == ["record 3 is missing"]


@pytest.mark.attack("second home taken for tampering")
def test_records_of_another_home_continue_the_chain_with_a_notice(root: Path) -> None:
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
def test_full_logs_are_renamed_and_the_oldest_removed(root: Path) -> None:
    log = opened(root, largest=800, kept=2)
    write(log, 30)
    assert broken(log) == []
    assert 2 <= len(log.paths()) <= 3
    assert log.totals().requests.total() == 30
    first = next(link for _, link in log.links(log.paths()[0]) if link)
    assert first.number > 1
    log.paths()[0].unlink()
    assert broken(log)


def test_a_process_that_is_killed_while_it_removes_old_logs_leaves_a_whole_chain(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(opened(root, largest=800, kept=4), 30)
    before = opened(root).paths()

    def killed(path: Path) -> None:
        path.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("mimo.guard.audit.files.remove", killed)
        with pytest.raises(KeyboardInterrupt):
            write(opened(root, largest=800, kept=1), 10)

    removed = set(before) - set(opened(root).paths())
    assert removed == {before[0]}
    assert broken(opened(root)) == []
    write(opened(root, largest=800, kept=1), 10)
    assert broken(opened(root)) == []
    assert len(opened(root).paths()) <= 2


def test_the_head_stays_small(root: Path) -> None:
    log = opened(root)
    write(log, 300)
    heads = next((root.parent / "home/audit/heads").iterdir())
    assert heads.stat().st_size < 20_000
    assert broken(log) == []


@pytest.mark.req("002-56")
def test_concurrent_writers_make_one_chain(root: Path) -> None:
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
def test_a_symbolic_link_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / ".mind/.local").symlink_to(tmp_path / "outside")
    with pytest.raises(StorageFailed):
        write(opened(root), 1)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.attack("record of calls from a clone")
def test_totals_that_came_with_a_clone_are_not_counted(root: Path, tmp_path: Path) -> None:
    other = AuditLog(tmp_path / "other", root, os.urandom)
    write(other, 1)
    planted = json.dumps(other.totals().as_json() | {"through": 1000}).encode()
    for path in (other.path.with_name(other._totals_file()), root / ".mind/.local/metrics.json"):
        path.write_bytes(planted)
    other.path.unlink()
    log = opened(root)
    write(log, 2)

    assert log.totals().requests.total() == 2


def call(number: int, **event: object) -> Link:
    fields = {"event_type": "tool_call", "tool": "t", "status": "ok", "n": number, **event}
    return Link(fields, None, "", "")


def added(*links: Link) -> Totals:
    totals = Totals()
    for link in links:
        totals.add(link)
    return totals


@pytest.mark.req("002-50")
@pytest.mark.req("002-52")
@pytest.mark.req("002-53")
def test_calls_are_counted_by_tool_namespace_and_status() -> None:
    totals = added(
        call(1, tool="putMemory", namespace="session.a"),
        call(2, tool="putMemory", namespace="session.a"),
        call(3, tool="putMemory", namespace="public.a", status="denied", reason="namespace"),
        call(4, tool="getMemory", namespace="session.a", redactions=3),
        call(5, event_type="dropped", tool="nothing"),
    )
    assert totals.requests == {
        ("putMemory", "session.a", "ok"): 2,
        ("putMemory", "public.a", "denied"): 1,
        ("getMemory", "session.a", "ok"): 1,
    }
    assert totals.denies == {("putMemory", "namespace"): 1}
    assert totals.redactions == {("getMemory",): 3}
    assert totals.calls("putMemory") == 3
    assert totals.calls("putMemory", "denied") == 1


def test_sessions_with_their_own_namespaces_do_not_enlarge_the_totals() -> None:
    calls = [call(n, namespace=f"session.s{n}") for n in range(1, 2 * MOST_NAMESPACES + 1)]
    totals = added(*calls)

    assert totals.calls("t") == 2 * MOST_NAMESPACES
    assert len(totals.requests) == MOST_NAMESPACES + 1
    assert totals.requests["t", OTHERS, "ok"] == MOST_NAMESPACES
    assert totals_of(totals.as_json()).requests == totals.requests


def test_totals_with_more_namespaces_are_read() -> None:
    """An earlier version counted each by itself."""
    requests = [["t", f"session.s{n}", "ok", 2] for n in range(MOST_NAMESPACES + 9)]
    totals = totals_of({**Totals().as_json(), "requests": requests})

    assert totals.requests["t", OTHERS, "ok"] == 18
    assert totals.calls("t") == 2 * (MOST_NAMESPACES + 9)


@pytest.mark.attack("record of calls from a clone")
@pytest.mark.parametrize("value", ["x", None, [1], 10**400])
def test_values_that_are_not_numbers_count_as_zero(root: Path, value: object) -> None:
    """A full log is summed before the next record is added: it must not stop every call."""
    log = opened(root, largest=1)
    log.path.parent.mkdir(parents=True)
    log.path.write_bytes(
        line_of(sealed({"n": 1, "event_type": "tool_call", "seconds": value}, None, b"other"))
        + line_of(sealed({"n": 2, "event_type": "tool_call", "redactions": value}, None, b"other"))
    )
    write(log, 1)

    totals = log.totals()
    assert (totals.calls("None"), totals.seconds[("None",)], totals.redactions) == (2, 0, {})


@pytest.mark.attack("record of calls from a clone")
@pytest.mark.parametrize("n", [10**4300 - 1, 7], ids=["huge", "7"])
@pytest.mark.parametrize("prev", ["\ud800", None])
def test_a_planted_record_does_not_stop_calls(root: Path, n: int, prev: str | None) -> None:
    log = opened(root)
    log.path.parent.mkdir(parents=True)
    planted = {"n": n, "event_type": "tool_call", "home": "theirs"}
    log.path.write_bytes(line_of(sealed(planted, prev, b"other")))
    write(log, 2)
    assert log.last_number == (9 if n == 7 else 2)


@pytest.mark.attack("local state planted by a clone")
@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("buckets", ["t", "abc", 1]),
        ("buckets", ["t", "1000000", 1]),
        ("buckets", ["t", 1]),
        ("requests", ["t", "ok", 1]),
        ("requests", ["t", "", "ok", 10**400]),
        ("denies", ["t", 1]),
        ("seconds", ["t", "x", 1]),
    ],
)
def test_planted_totals_are_read_or_counted_again(root: Path, name: str, row: list[object]) -> None:
    log = opened(root)
    write(log, 2)
    totals = log.totals().as_json() | {"through": 0, name: [row]}
    log.path.with_name(log._totals_file()).write_text(json.dumps(totals), encoding="utf-8")
    text = exposition(log.totals(), {})
    assert 'tool_name="t1",namespace="",status="ok"} 1.0' in text


def test_a_record_is_counted_once() -> None:
    assert added(call(1), call(2), call(2), call(1)).calls("t") == 2


@given(st.lists(st.floats(1e-5, 100), min_size=20, max_size=200))
@pytest.mark.req("002-51")
def test_a_quantile_is_within_six_percent_of_the_true_one(seconds: list[float]) -> None:
    totals = added(*(call(n, seconds=each) for n, each in enumerate(seconds, 1)))
    ordered = sorted(seconds)
    for quantile in (0.5, 0.9, 0.99):
        rank = max(0, -(-int(quantile * len(ordered) * 100) // 100) - 1)
        near = ordered[rank : rank + 2]
        assert min(near) * 0.94 <= totals.latency("t", quantile) <= max(near) * 1.06


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 9)), max_size=20))
def test_totals_survive_json(calls: list[tuple[str, float]]) -> None:
    totals = added(*(call(n, tool=tool, seconds=took) for n, (tool, took) in enumerate(calls, 1)))
    again = totals_of(totals.as_json())
    assert again.as_json() == totals.as_json()
    assert again.tools() == totals.tools()


@pytest.mark.parametrize("data", [{}, {"through": "x"}, {"through": 1, "requests": 3}])
def test_invalid_totals_are_refused(data: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        totals_of(data)


@pytest.mark.parametrize("length", [0, 16, 64, 65, 200])
def test_a_seal_is_an_hmac(length: int) -> None:
    key = bytes(range(length))

    assert disk.hmac_sha256(key, b"a record") == hmac.digest(key, b"a record", "sha256")


LOST = ": the machine stopped before it was on the disk"


def damage(log: AuditLog, number: int, replacement: bytes = b"") -> None:
    lines = log.path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = replacement
    log.path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("replacement", [b"", b"\0" * 99 + b"\n"])
def test_a_loss_of_power_takes_records_and_is_not_a_removal(
    root: Path, monkeypatch: pytest.MonkeyPatch, replacement: bytes
) -> None:
    write(opened(root), 2)
    write(opened(root), 3)
    damage(opened(root), 4, replacement)
    assert broken(opened(root)) != []

    monkeypatch.setattr(audit, "boot", lambda: "the-next")
    assert broken(opened(root)) == []
    assert all(what.endswith(LOST) for what in notices(opened(root)))
    # From now on, a record has the loss.
    write(opened(root), 1)
    assert broken(opened(root)) == []
    assert any("record 4 is missing" in what for what in notices(opened(root)))
    damage(opened(root), 7 if replacement else 6)
    assert broken(opened(root)) != []


def test_a_loss_of_power_takes_no_whole_log(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(opened(root), 3)
    monkeypatch.setattr(audit, "boot", lambda: "the-next")
    damage(opened(root), 3)
    assert (broken(opened(root)), len(notices(opened(root)))) == ([], 1)

    opened(root).path.unlink()

    assert broken(opened(root)) == ["records 1 to 3 are missing: the end was cut off"]


def test_a_recorded_loss_excuses_no_earlier_record(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(opened(root), 5)
    damage(opened(root), 5)
    monkeypatch.setattr(audit, "boot", lambda: "the-next")
    write(opened(root), 1)
    assert broken(opened(root)) == []

    damage(opened(root), 3)

    assert broken(opened(root)) == ["record 3 is missing"]


def test_the_head_of_an_earlier_version_has_the_same_boot(root: Path) -> None:
    write(opened(root), 3)
    (head,) = (root.parent / "home/audit/heads").iterdir()
    *parts, boot = head.read_text().splitlines()[-1].split()
    head.write_text(" ".join([*parts, "2", boot]) + "\n")
    damage(opened(root), 3)

    assert broken(opened(root)) == ["record 3 is missing: the end was cut off"]


@pytest.mark.attack("record of a loss of power forged")
@pytest.mark.parametrize("kept", [{1, 2, 6}, {1, 2}], ids=["middle", "end"])
def test_a_forged_record_of_a_loss_excuses_no_missing_record(root: Path, kept: set[int]) -> None:
    write(opened(root), 6)
    links = [link for _, link in opened(root).links(opened(root).path) if link]
    links = [link for link in links if link.number in kept]
    event = {"event_type": "lost", "after": 0, "n": 7, "home": "0123456789ab"}
    links.append(sealed(event, links[-1].hash, b"guess"))
    opened(root).path.write_bytes(b"".join(map(line_of, links)))

    assert any("missing" in what for what in broken(opened(root)))


def test_a_loss_of_power_takes_records_of_each_home(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = opened(root), AuditLog(root.parent / "other", root, os.urandom)
    write(own, 2)
    write(other, 3)
    monkeypatch.setattr(audit, "boot", lambda: "the-next")
    damage(own, 4)
    assert broken(own) == []

    write(AuditLog(root.parent / "other", root, os.urandom), 1)
    assert broken(opened(root)) == []
    write(opened(root), 1)
    assert broken(opened(root)) == []
