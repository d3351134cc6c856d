"""The log of accesses: counted by many at once, lost without harm."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mimo.memory.decay import Use
from mimo.project import accesses
from mimo.project.accesses import Accesses

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".mind").mkdir()
    return tmp_path


def log(root: Path) -> Path:
    return root / ".mind" / ".local" / "accesses.log"


def test_accesses_add_up_with_the_time_of_the_last_one(root):
    Accesses(root).note(["tea", "milk"], NOW)
    Accesses(root).note(["tea"], NOW + timedelta(days=1))

    assert Accesses(root).uses() == {
        "tea": Use(times=2, last=NOW + timedelta(days=1)),
        "milk": Use(times=1, last=NOW),
    }


def test_only_the_user_can_read_the_log(root):
    Accesses(root).note(["tea"], NOW)

    assert log(root).stat().st_mode & 0o077 == 0


def test_accesses_soon_after_a_write_wait_for_the_next_one(root):
    counted = Accesses(root)
    counted.note(["tea"], NOW)
    counted.note(["tea"], NOW + timedelta(seconds=1))
    assert Accesses(root).uses()["tea"].times == 1

    counted.note(["tea"], NOW + timedelta(seconds=9))
    assert Accesses(root).uses()["tea"].times == 3

    counted.note(["tea"], NOW + timedelta(seconds=10))
    counted.flush()
    assert Accesses(root).uses()["tea"].times == 4


def test_a_removed_log_is_not_an_error(root):
    Accesses(root).note(["tea"], NOW)
    log(root).unlink()
    assert Accesses(root).uses() == {}

    Accesses(root).note(["tea"], NOW)
    assert Accesses(root).uses()["tea"].times == 1


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00\xff\xfe garbage",
        b"1 17\n",
        b"1 1794323400 a/b ../c\n",
        b"-1 5 tea\n",
        b"9" * 5000 + b" 5 tea\n",
        b"1 99999999999999 tea\n",
        "\u0661 5 tea\n".encode(),
    ],
)
def test_damaged_lines_are_ignored(root, damage):
    Accesses(root).note(["tea"], NOW)
    with log(root).open("ab") as file:
        file.write(damage)

    Accesses(root).note(["tea"], NOW)

    assert Accesses(root).uses() == {"tea": Use(times=2, last=NOW)}


def test_a_folder_in_place_of_the_log_has_no_counts(root):
    log(root).mkdir(parents=True)

    assert Accesses(root).uses() == {}


@pytest.mark.attack("symbolic link")
def test_a_link_is_neither_read_nor_written(root, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("1 1794323400 tea\n", encoding="utf-8")
    log(root).parent.mkdir()
    log(root).symlink_to(elsewhere)

    Accesses(root).note(["tea"], NOW)
    assert Accesses(root).uses() == {}
    assert elsewhere.read_text(encoding="utf-8") == "1 1794323400 tea\n"


def test_a_long_log_is_summed_up_without_loss(root, monkeypatch):
    monkeypatch.setattr(accesses, "_LONGEST_LOG", 200)
    for day in range(60):
        Accesses(root).note(["tea", f"only_{day}"], NOW + timedelta(days=day))

    assert log(root).stat().st_size < 61 * len("1 1794323400 only_10\n") + 300
    uses = Accesses(root).uses()
    assert uses["tea"] == Use(times=60, last=NOW + timedelta(days=59))
    assert len(uses) == 61


def test_the_sums_keep_the_memories_used_last(root, monkeypatch):
    monkeypatch.setattr(accesses, "_LONGEST_LOG", 0)
    monkeypatch.setattr(accesses, "_MOST_KEPT", 3)
    for day in range(10):
        Accesses(root).note([f"only_{day}"], NOW + timedelta(days=day))

    assert set(Accesses(root).uses()) == {"only_7", "only_8", "only_9"}


COUNT = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from mimo.project import accesses
accesses._LONGEST_LOG, accesses._WAIT_SECONDS = 300, 20
for _ in range(40):
    accesses.Accesses(Path(sys.argv[1])).note(["tea"], datetime(2026, 11, 20, tzinfo=UTC))
"""


def test_concurrent_processes_lose_no_access(root):
    running = [subprocess.Popen([sys.executable, "-c", COUNT, str(root)]) for _ in range(4)]
    assert [process.wait(timeout=60) for process in running] == [0] * 4

    assert Accesses(root).uses()["tea"].times == 160
