"""File systems whose locks fail, or lock nothing."""

import errno
import fcntl
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.data import append_log, locks
from mimo.errors import StorageFailed
from tests.kit import put

ERRORS = [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL]


@pytest.fixture(params=ERRORS, ids=errno.errorcode.get)
def unlockable(
    project: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    del project  # It is made with locks.

    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(request.param, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("unlockable")
def test_a_lock_that_fails_is_an_error_that_names_the_file_system(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(StorageFailed, match=r"can't lock `.*lock`") as raised, locks.lock(path):
        pass
    assert "has no locks" in raised.value.hint
    with pytest.raises(StorageFailed, match="can't lock"):
        append_log.append(tmp_path / "log", b"line\n")
    assert locks.hold(path, wait=0) is None
    assert locks.holder(path) is None
    assert not locks.is_held(path)
    assert not locks.excludes(path)


@pytest.mark.usefixtures("unlockable")
def test_nothing_is_written_without_locks_and_reading_works(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    note = put(
        project / ".mind" / "facts" / "tea.md", "---\nid: fact_tea\ntype: fact\n---\nTea at four\n"
    )
    for line in (
        ["add", "Milk goes in first"],
        ["rm", "fact_tea"],
        ["value", "put", "agent.a", "k", "1"],
    ):
        assert main(line) == 1
        message = capsys.readouterr().err
        assert "can't lock" in message
        assert "has no locks" in message
    assert [path.name for path in note.parent.iterdir()] == ["tea.md"]
    for line in (["list"], ["search", "tea"], ["show", "fact_tea"]):
        assert main(line) == 0
        assert "Tea at four" in capsys.readouterr().out


def test_doctor_reports_locks_that_lock_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert main(["add", "Milk goes in first"]) == 0
    assert main(["doctor"]) == 0
    assert "exclude" not in capsys.readouterr().out
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert main(["doctor"]) == 1
    assert "does not exclude other processes" in capsys.readouterr().out
