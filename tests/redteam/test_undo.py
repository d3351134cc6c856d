"""Attacks on the trash: nothing is restored that this user's own commands did not keep."""

import json
from collections.abc import Callable

import pytest

from mimo.call import Call
from mimo.errors import MindError
from mimo.operations import lookup
from tests.conftest import Clock
from tests.kit import do
from tests.operations.test_undo import added, contents

HEADER = {
    "time": "2026-11-20T15:30:00+00:00", "command": "rm", "tool": "mind_rm", "is_tool": True,
    "by": None, "namespace": None, "key": None, "undoes": None,
}  # fmt: skip
TARGETS = (
    "../escaped.txt", "/srv/escaped.txt", ".git/hooks/pre-commit", ".mind/facts/planted.md",
    ".mind/policy.yaml", "Makefile", ".mind/../Makefile",
)  # fmt: skip


@pytest.mark.attack("planted trash is restored")
def test_a_planted_trash_is_not_restored(
    call: Call, record_property: Callable[[str, object], None]
) -> None:
    folder = call.mind.folder / ".local" / "trash"
    folder.mkdir(parents=True)
    before, tried = contents(call), 0
    for target in TARGETS:
        line = {"path": target, "after": None, "mode": 0o755, "text": "#!/bin/sh\necho planted\n"}
        for code in ("", "0" * 64, "f" * 64):
            tried += 1
            id_ = f"20991120T153000{tried:06d}_planted"
            data = "".join(f"{code} {json.dumps(entry)}\n" for entry in (HEADER, line))
            (folder / f"{id_}.jsonl").write_text(data, "utf-8")
            for wanted in (None, id_):
                with pytest.raises(MindError):
                    do(call, "undo", id=wanted, force=True)
    record_property("tried", 2 * tried)
    assert do(call, "undo", list=True).changes == ()
    assert contents(call) == before
    assert not (call.mind.project.root.parent / "escaped.txt").exists()


@pytest.mark.attack("local state planted by a clone")
def test_a_planted_trash_neither_stops_a_command_nor_removes_its_copies(call: Call) -> None:
    id_ = added(call)
    do(call, "rm", id=id_)
    folder = call.mind.folder / ".local" / "trash"
    for number in range(1_000):
        (folder / f"99991231T235959999999_{number:06}.jsonl").touch()
    for name in ("99991231T235959999999", "~", "\udcff"):
        (folder / f"{name}.jsonl").write_text("not a record", "utf-8")
    added(call, "Another fact")
    newest, removed, _ = do(call, "undo", list=True).changes
    assert newest.id < "9"
    do(call, "undo", id=removed.id)
    assert lookup.one(call, id_).memory.content == "Staging is reset"


@pytest.mark.attack("local state planted by a clone")
@pytest.mark.parametrize(("number", "size"), [(1_000, 1), (2, 60_000_000)])
def test_planted_entries_that_are_older_than_a_command_remove_no_copies(
    call: Call, clock: Clock, number: int, size: int
) -> None:
    do(call, "rm", id=(id_ := added(call)))
    folder = call.mind.folder / ".local" / "trash"
    planted = max(folder.iterdir()).name.partition("_")[0]
    for count in range(number):
        with (folder / f"{planted}_{count:06}z.jsonl").open("wb") as file:
            file.truncate(size)
    clock.forward(minutes=1)
    added(call, "Another fact")
    _, removed, _ = do(call, "undo", list=True).changes
    do(call, "undo", id=removed.id)
    assert lookup.one(call, id_).memory.content == "Staging is reset"
