"""Reading commands answer even if neither the project nor the home is writable."""

import errno
import os
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.data import disk, locks
from mimo.errors import StorageFailed
from mimo.features import values
from mimo.features.notes.reading import list_
from mimo.features.upkeep.checks import doctor
from mimo.features.upkeep.status import status
from tests.kit import put


@pytest.fixture
def stuck(call: Call, home: Path) -> Call:
    """A memory with a value, whose user's folder can't take the secret that marks an index."""
    put(call.mind.project.root / ".mind/facts/fact_a.md", "The limit is 60\n")
    (home / "index-owner").unlink()
    (home / "index-owner").mkdir()
    return call


def test_status_doctor_and_lists_answer(stuck: Call) -> None:
    project = status(stuck).current_project

    assert project is not None
    assert project.memories == len(list_(stuck).memories) == 1
    checks = {check.name: check.verdict for check in doctor(stuck).checks}
    assert (checks["index"], checks["files"], checks["links"]) == ("warning", "ok", "ok")


def test_doctor_names_the_folders_that_are_read_only(
    call: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_(call)

    def opened(path: Path, *_: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    for folder in (home, call.mind.folder):
        with monkeypatch.context() as patch:
            patch.setattr(os, "access", lambda path, _, closed=folder: Path(path) != closed)
            if folder == call.mind.folder:
                patch.setattr(disk, "opened", opened)
                with pytest.raises(StorageFailed, match="read-only"):
                    locks.excludes(call.mind.folder / ".local/lock")
            checks = doctor(call).checks
        warnings = [check.message for check in checks if check.verdict == "warning"]
        assert f"`{folder}` is read-only: nothing can be stored in it" in warnings
        assert not [check for check in checks if check.name == "locks"]


def test_a_value_that_could_not_be_read_back_is_refused(stuck: Call) -> None:
    with pytest.raises(StorageFailed):
        values.put(stuck, "session.a", "k", 1, None)
