"""Faults of the disk, as commands meet them: nothing is lost without a word."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.data import sqlite
from mimo.errors import StorageFailed
from mimo.memory.model import Kind
from mimo.operations import saving
from mimo.operations.invoke import invoke
from mimo.project.trust import Trust


def run(call: Call, *words: str) -> int:
    return main(list(words), open=lambda _: call.mind.reopened())


def approvals(call: Call) -> Path:
    return call.mind.home / "trust.db"


@pytest.mark.attack("trust lost with a damaged list")
def test_a_damaged_list_of_approvals_is_replaced_by_the_user_alone(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    record = saving.store(call, saving.draft(Kind.FACT, "Tea is served at four"))
    damaged = approvals(call).read_bytes()[:5000]
    approvals(call).write_bytes(damaged)

    assert run(call, "add", "The kettle holds two litres") == 0
    errors = capsys.readouterr().err
    assert "could not be approved" in errors
    assert "is damaged" in errors
    assert approvals(call).read_bytes() == damaged

    assert run(call, "doctor") == 1
    assert "no text is trusted" in capsys.readouterr().out

    assert run(call, "trust") == 0
    assert ".damaged" in capsys.readouterr().err
    assert approvals(call).with_name("trust.db.damaged").read_bytes() == damaged
    assert call.mind.reopened().trust.trusted(record.place.digest)


@pytest.mark.attack("trust lost on a full disk")
def test_a_full_disk_fails_the_approval_and_keeps_the_others(
    call: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = saving.store(call, saving.draft(Kind.FACT, "Tea is served at four"))
    before = approvals(call).read_bytes()
    for number in range(90):
        path = call.mind.folder / f"facts/by_hand_{number}.md"
        path.write_text(f"Cup {number} is blue\n", encoding="utf-8")
    connect = sqlite.connect

    def full(path: Path | None, **options: Any) -> sqlite.Connection:
        connection = connect(path, **options)
        if path == approvals(call):
            connection.execute("PRAGMA max_page_count = 1")  # It can't grow.
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "connect", full)
        assert run(call, "trust") == 1
    assert "disk is full" in capsys.readouterr().err
    assert approvals(call).read_bytes() == before
    assert call.mind.reopened().trust.trusted(record.place.digest)


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
    spec = next(spec for spec in all_commands().all() if spec.path == "ingest")

    invoke(spec, call, {"path": "guide.md", "paths": ["short.md"]})
    assert "could not be approved" in str(call.notice)

    invoke(spec, call, {"path": "short.md"})
    assert call.notice is None
