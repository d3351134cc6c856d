"""Attacks on the trash: nothing is restored that this user's own commands did not keep."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Denied, MindError
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


@pytest.mark.attack("local state planted by a clone")
@pytest.mark.parametrize("is_link", [False, True])
def test_a_planted_folder_or_link_keeps_no_text_from_a_purge(call: Call, *, is_link: bool) -> None:
    do(call, "rm", id=added(call))
    folder = call.mind.folder / ".local" / "trash"
    planted = folder / "0planted.jsonl"
    if is_link:
        planted.symlink_to("x")
    else:
        planted.mkdir()
    with pytest.raises(MindError, match="0planted") as caught:
        do(call, "undo", id="all", purge=True)
    assert "the other changes were removed" in str(caught.value.hint)
    assert [path.name for path in folder.iterdir()] == [planted.name]


@pytest.mark.attack("local state planted by a clone")
@pytest.mark.parametrize("is_link", [False, True])
def test_a_purge_with_a_planted_event_log_removes_the_memory(call: Call, *, is_link: bool) -> None:
    id_ = added(call)
    log = call.mind.folder / ".local" / "events.jsonl"
    log.unlink()
    if is_link:
        log.symlink_to("x")
    else:
        log.mkdir()
    removed = do(call, "rm", id=id_, purge=True)
    assert "may still have its id" in removed.notice
    with pytest.raises(MindError):
        lookup.one(call, id_)


@pytest.mark.attack("planted trash is restored")
def test_lines_from_another_entry_or_changed_lines_are_not_restored(call: Call) -> None:
    id_ = added(call)
    do(call, "rm", id=id_)
    folder = call.mind.folder / ".local" / "trash"
    own = max(folder.iterdir())
    data = own.read_bytes()
    own.write_bytes(data.replace(b"Staging is reset", b"Staging is gone!"))
    with pytest.raises(MindError):
        do(call, "undo")
    own.unlink()
    (folder / "20991120T153000000000_renamed.jsonl").write_bytes(data)
    with pytest.raises(MindError):
        do(call, "undo", id="20991120T153000000000_renamed")
    with pytest.raises(MindError):
        lookup.one(call, id_)


@pytest.mark.attack("trash leads through a link")
def test_a_trash_that_is_a_link_is_not_written_through(call: Call, tmp_path: Path) -> None:
    id_ = added(call)
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = call.mind.folder / ".local" / "trash"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.symlink_to(outside)
    with pytest.raises(MindError):
        do(call, "rm", id=id_)
    assert not list(outside.iterdir())
    assert lookup.one(call, id_).memory.id == id_


@pytest.mark.attack("agent undoes a person's decision")
def test_an_agent_can_not_undo_what_only_people_can_do(call: Call) -> None:
    do(call, "config", key="commits", value="7")
    do(call, "review keep", id=_unapproved(call), kind="untrusted")
    with pytest.raises(Denied, match="an agent can't undo"):
        do(call, "undo", "claude-code")


def _unapproved(call: Call) -> str:
    id_ = added(call)
    call.mind.trust.follow(follow=False)
    call.mind.trust.revoke([lookup.one(call, id_).place.digest])
    return id_


@pytest.mark.attack("undo passes a policy")
def test_an_undo_needs_the_permission_of_what_it_undoes(call: Call) -> None:
    (call.mind.folder / "values").mkdir()
    do(call, "value put", namespace="agent.build", key="last", value=1)
    policy = call.mind.folder / "policy.yaml"
    policy.write_text("tools:\n  putMemory:\n    operations: []\n", "utf-8")
    with pytest.raises(Denied):
        do(call, "undo", "claude-code")
    policy.write_text("tools:\n  mind_undo:\n    operations: []\n", "utf-8")
    os.utime(policy, ns=(1, 1))
    with pytest.raises(Denied):
        do(call, "undo", "claude-code")
