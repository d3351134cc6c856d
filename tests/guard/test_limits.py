"""How often tools are called, across processes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mimo.errors import RateLimited, StorageFailed
from mimo.guard.limits import Limits
from mimo.guard.policy import Limit

NOW = 1_795_000_000.0
FEW = {"tool putMemory": [Limit(1, 5)], "namespace agent.a": [Limit(1, 3)]}

TAKE = """
import sys
from pathlib import Path
from mimo.errors import RateLimited
from mimo.guard.limits import Limits
from mimo.guard.policy import Limit
limits, done = Limits(Path(sys.argv[1])), 0
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
    """Returns how many calls are permitted at one moment, of a hundred."""
    done = 0
    for _ in range(100):
        try:
            limits.take(wanted, now, lasting=True)
            done += 1
        except RateLimited:
            return done
    return done


@pytest.mark.req("002-47", "002-48")
def test_the_tightest_of_several_limits_counts_and_none_is_used_up_by_a_refusal(root: Path) -> None:
    limits = Limits(root)

    assert takes(limits, FEW) == 3
    assert takes(limits, {"tool putMemory": [Limit(1, 5)]}) == 2
    assert takes(limits, {"namespace agent.b": [Limit(1, 3)]}) == 3


@pytest.mark.req("002-63")
def test_a_second_process_starts_where_the_first_one_is(root: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", TAKE, str(root)], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    done = [int(process.communicate()[0]) for process in started]

    assert sum(done) == 50


def test_a_refusal_says_what_of_and_how_long_to_wait(root: Path) -> None:
    limits = Limits(root)
    takes(limits, FEW)

    with pytest.raises(RateLimited) as caught:
        limits.take(FEW, NOW, lasting=True)
    assert caught.value.code == "RATE_LIMITED"
    assert caught.value.details == {"namespace": "agent.a", "retry_after": 1.0}
    limits.take(FEW, NOW + 1, lasting=True)


def test_restarting_does_not_help(root: Path) -> None:
    for expected in (3, 0, 0):
        limits = Limits(root)
        assert takes(limits, FEW) == expected
        limits.close()


def test_what_was_not_used_for_minutes_is_forgotten(root: Path) -> None:
    limits = Limits(root)
    for number in range(50):
        limits.take({f"namespace agent.{number}": [Limit(1, 3)]}, NOW, lasting=True)
    limits.take({"tool x": [Limit(1, 3)]}, NOW + 200, lasting=True)
    assert limits._database is not None

    with limits._database.reading() as connection:
        assert connection is not None
        assert connection.execute("SELECT count(*) FROM buckets").fetchone() == (1,)


@pytest.mark.attack("secret kept in a file of counters")
def test_names_are_not_stored(root: Path) -> None:
    limits = Limits(root)
    limits.take({"namespace agent.secret": [Limit(1, 3), Limit(1, 9)]}, NOW, lasting=True)
    limits.close()
    for path in (root / ".mind" / ".local").iterdir():
        assert b"secret" not in path.read_bytes()


def test_where_nothing_can_be_written_reading_is_counted_here_and_writing_is_refused(
    root: Path,
) -> None:
    shutil.rmtree(root / ".mind" / ".local", ignore_errors=True)
    (root / ".mind" / ".local").write_text("a file in the way", encoding="utf-8")
    limits = Limits(root)

    with pytest.raises(StorageFailed):
        limits.take(FEW, NOW, lasting=True)
    for _ in range(3):
        limits.take(FEW, NOW, lasting=False)
    with pytest.raises(RateLimited):
        limits.take(FEW, NOW, lasting=False)


def test_a_writer_is_refused_as_long_as_nothing_can_be_counted(root: Path) -> None:
    block = root / ".mind" / ".local"
    shutil.rmtree(block, ignore_errors=True)
    block.write_text("a file in the way", encoding="utf-8")
    limits = Limits(root)
    limits.take(FEW, NOW, lasting=False)
    with pytest.raises(StorageFailed):
        limits.take(FEW, NOW, lasting=True)

    block.unlink()
    assert takes(limits, FEW) == 3


def test_outside_a_project_the_calls_of_this_process_are_counted() -> None:
    assert takes(Limits(None), FEW) == 3
