"""Rate limits: bursts, sustained rates, and counting across processes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.errors import RateLimited, StorageFailed
from mimo.guard.limits import Bucket, Limits, full, take
from mimo.guard.policy import WINDOW_SECONDS, Limit

NOW = 1_795_000_000.0
FEW = {"tool putMemory": [Limit(1, 5)], "namespace agent.a": [Limit(1, 3)]}

TAKE = """
import sys
from pathlib import Path
from mimo.errors import RateLimited
from mimo.guard.limits import Limits
from mimo.guard.policy import Limit
limits, done = Limits(Path(sys.argv[1]), str), 0
for _ in range(40):
    try:
        limits.take({"tool x": [Limit(1, 50)]}, 1_795_000_000.0, lasting=True)
        done += 1
    except RateLimited:
        pass
print(done)
"""


@pytest.fixture
def root(project: Path) -> Path:
    return project


def takes(limits: Limits, wanted: dict[str, list[Limit]], now: float = NOW) -> int:
    """Returns how many calls are permitted at one moment, out of a hundred."""
    done = 0
    for _ in range(100):
        try:
            limits.take(wanted, now, lasting=True)
            done += 1
        except RateLimited:
            return done
    return done


@pytest.mark.req("002-47", "002-48")
def test_the_smallest_limit_applies_and_a_refusal_uses_up_no_other(root: Path) -> None:
    limits = Limits(root, str)

    assert takes(limits, FEW) == 3
    assert takes(limits, {"tool putMemory": [Limit(1, 5)]}) == 2
    assert takes(limits, {"namespace agent.b": [Limit(1, 3)]}) == 3


@pytest.mark.parametrize("several", [[Limit(1, 3), Limit(1, 9)], [Limit(1, 9), Limit(1, 3)]])
def test_each_of_several_limits_of_a_tool_is_counted(root: Path, several: list[Limit]) -> None:
    assert takes(Limits(root, str), {"tool putMemory": several}) == 3


@pytest.mark.req("002-63")
def test_processes_share_their_counts(root: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", TAKE, str(root)], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    done = [int(process.communicate()[0]) for process in started]

    assert sum(done) == 50


def test_a_refusal_names_the_limit_and_the_seconds_to_wait(root: Path) -> None:
    limits = Limits(root, str)
    takes(limits, FEW)

    with pytest.raises(RateLimited) as caught:
        limits.take(FEW, NOW, lasting=True)
    assert caught.value.code == "RATE_LIMITED"
    assert caught.value.details == {"namespace": "agent.a", "retry_after": 1.0}
    limits.take(FEW, NOW + 1, lasting=True)


def test_a_refusal_names_the_number_of_calls_in_a_minute(root: Path) -> None:
    slow = {"namespace agent.a": [Limit(sustained=0.05, burst=50)]}
    limits = Limits(root, str)
    takes(limits, slow)

    with pytest.raises(RateLimited) as caught:
        limits.take(slow, NOW, lasting=True)
    assert caught.value.hint == (
        "wait 60 seconds; 50 at once, 0.05 a second and 3 a minute are allowed"
    )


def test_a_restart_keeps_the_counts(root: Path) -> None:
    for expected in (3, 0, 0):
        limits = Limits(root, str)
        assert takes(limits, FEW) == expected
        limits.close()


def test_buckets_unused_for_two_minutes_are_removed(root: Path) -> None:
    limits = Limits(root, str)
    for number in range(50):
        limits.take({f"namespace agent.{number}": [Limit(1, 3)]}, NOW, lasting=True)
    limits.take({"tool x": [Limit(1, 3)]}, NOW + 200, lasting=True)
    (cache,) = limits._caches.values()

    with cache.reading() as connection:
        assert connection.execute("SELECT count(*) FROM buckets").fetchone() == (1,)


@pytest.mark.req("002-49")
def test_other_calls_do_not_refill_a_slow_limit(root: Path) -> None:
    limits, slow, other = (
        Limits(root, str),
        {"tool x": [Limit(0.001, 1)]},
        {"tool y": [Limit(1, 3)]},
    )
    assert takes(limits, slow) == 1
    for seconds in (119, 130, 999):
        assert takes(limits, slow, NOW + seconds) == 0
        assert takes(limits, other, NOW + seconds) == 3
    assert takes(limits, slow, NOW + 1000) == 1


@pytest.mark.attack("local state planted by a clone")
def test_planted_counts_are_ignored(root: Path) -> None:
    limits = Limits(root, lambda: "another secret")
    assert takes(limits, FEW) == 3
    limits.close()
    (planted,) = (root / ".mind" / ".index").glob("limits*.db")
    shutil.copy(planted, planted.with_name("limits.db"))

    assert takes(Limits(root, str), FEW) == 3


@pytest.mark.attack("secret kept in a file of counters")
def test_names_of_namespaces_are_not_stored(root: Path) -> None:
    limits = Limits(root, str)
    limits.take({"namespace agent.secret": [Limit(1, 3), Limit(1, 9)]}, NOW, lasting=True)
    limits.close()
    for path in (root / ".mind" / ".index").iterdir():
        assert b"secret" not in path.read_bytes()


def test_without_a_database_reads_are_counted_in_memory_and_writes_refused(
    root: Path,
) -> None:
    shutil.rmtree(root / ".mind" / ".index", ignore_errors=True)
    (root / ".mind" / ".index").write_text("a file in the way", encoding="utf-8")
    limits = Limits(root, str)

    with pytest.raises(StorageFailed):
        limits.take(FEW, NOW, lasting=True)
    for _ in range(3):
        limits.take(FEW, NOW, lasting=False)
    with pytest.raises(RateLimited):
        limits.take(FEW, NOW, lasting=False)


def test_writes_are_refused_until_the_database_is_writable(root: Path) -> None:
    block = root / ".mind" / ".index"
    shutil.rmtree(block, ignore_errors=True)
    block.write_text("a file in the way", encoding="utf-8")
    limits = Limits(root, str)
    limits.take(FEW, NOW, lasting=False)
    with pytest.raises(StorageFailed):
        limits.take(FEW, NOW, lasting=True)

    block.unlink()
    assert takes(limits, FEW) == 3


def test_outside_a_project_only_this_process_is_counted() -> None:
    assert takes(Limits(None, str), FEW) == 3


LIMIT = Limit(sustained=10, burst=50)


def taken(bucket: Bucket, limit: Limit, now: float) -> tuple[Bucket, int]:
    """Returns the bucket after as many calls as are permitted at one moment, and how many."""
    count = 0
    while True:
        bucket, wait = take(bucket, limit, now)
        if wait:
            return bucket, count
        count += 1


@pytest.mark.req("002-49")
def test_after_a_burst_calls_are_permitted_at_the_sustained_rate() -> None:
    bucket, count = taken(full(LIMIT, 1000), LIMIT, 1000)
    bucket, wait = take(bucket, LIMIT, 1000)

    assert (count, wait) == (50, 0.1)
    bucket, count = taken(bucket, LIMIT, 1001)
    assert count == 10


@pytest.mark.req("002-49")
def test_a_minute_never_exceeds_the_sustained_rate() -> None:
    bucket, total, now = full(LIMIT, 1000), 0, 1000.0
    for _ in range(590):
        bucket, count = taken(bucket, LIMIT, now)
        total += count
        now += 0.1
    _, wait = take(bucket, LIMIT, now)

    assert total == 600
    assert wait > 0


@given(st.lists(st.floats(0, 30), max_size=60), st.integers(1, 8), st.floats(0.05, 5))
@pytest.mark.req("002-49", "002-63")
def test_any_pauses_keep_a_minute_within_the_sustained_rate(
    pauses: list[float], burst: int, sustained: float
) -> None:
    limit, now, done = Limit(sustained, burst), 10_000.0, []
    bucket = full(limit, now)
    for pause in pauses:
        now += pause
        bucket, wait = take(bucket, limit, now)
        if not wait:
            done.append(now)
    most = max(1, int(sustained * WINDOW_SECONDS))
    for start in done:
        # Seconds are counted whole, so the first of a minute may count already.
        assert sum(start <= second < start + WINDOW_SECONDS - 1 for second in done) <= most


@given(st.lists(st.integers(-5_000, 2), min_size=1, max_size=40))
@pytest.mark.req("002-63")
def test_setting_the_clock_back_neither_adds_nor_removes_calls(jumps: list[int]) -> None:
    limit, now = Limit(sustained=1, burst=5), 1_000_000.0
    bucket, _ = taken(full(limit, now), limit, now)
    for jump in jumps:
        now += jump
        bucket, more = taken(bucket, limit, now)
        assert more <= max(0, jump)
    bucket, more = taken(bucket, limit, now + 5)
    assert more == 5


@pytest.mark.req("002-63")
def test_setting_the_clock_back_blocks_calls_for_a_minute_at_most() -> None:
    limit = Limit(sustained=10, burst=600)
    bucket, count = taken(full(limit, 10_000), limit, 10_000)
    bucket, wait = take(bucket, limit, 6_400)

    assert (count, wait) == (600, WINDOW_SECONDS)
    assert taken(bucket, limit, 6_400 + WINDOW_SECONDS)[1] == 600


def test_a_call_after_the_reported_wait_is_permitted() -> None:
    limit = Limit(sustained=0.5, burst=2)
    bucket, _ = taken(full(limit, 1000), limit, 1000)
    bucket, wait = take(bucket, limit, 1000.3)
    _, again = take(bucket, limit, 1000.3 + wait)

    assert wait > 0
    assert again == 0
