"""Faults of the disk, as commands meet them: nothing is lost without a word."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.data import sqlite
from mimo.errors import StorageFailed
from mimo.memory.model import Kind
from mimo.operations import saving
from mimo.project.trust import Trust
from tests.kit import do, run, write


def approvals(call: Call) -> Path:
    return call.mind.home / "trust.db"


@pytest.mark.attack("trust lost on a full disk")
def test_a_full_disk_fails_the_approval_and_keeps_the_others(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = saving.store(call, saving.draft(Kind.FACT, "Tea is served at four"))
    before = approvals(call).read_bytes()
    for number in range(90):
        write(call, f"facts/by_hand_{number}.md", f"Cup {number} is blue\n")
    connect = sqlite.connect

    def full(path: Path | None, **options: Any) -> sqlite.Connection:
        connection = connect(path, **options)
        if path == approvals(call):
            connection.execute("PRAGMA max_page_count = 1")  # It can't grow.
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "connect", full)
        assert "disk is full" in run(Call(call.mind.reopened()), "trust", status=1).err
    assert approvals(call).read_bytes() == before
    assert call.mind.reopened().trust.trusted(record.place.approval)


@pytest.mark.attack("failed approval is not reported")
def test_a_failed_approval_is_reported_though_a_later_one_works(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve, failures = Trust.approve, [StorageFailed("input/output error")]

    def failing_once(self: Trust, digests: Iterable[str], **_: object) -> None:
        if failures:
            raise failures.pop()
        approve(self, digests)

    for name in ("guide.md", "short.md"):
        (call.mind.project.root / name).write_text(f"# {name}\n\nCups are in the cupboard.\n")
    monkeypatch.chdir(call.mind.project.root)
    monkeypatch.setattr(Trust, "approve", failing_once)

    ingested = do(call, "ingest", path="guide.md", paths=["short.md"])
    assert "could not be approved" in str(ingested.notice)

    assert do(call, "ingest", path="short.md").notice is None
