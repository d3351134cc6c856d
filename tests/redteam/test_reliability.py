"""Faults of the disk, as commands meet them: nothing is lost without a word."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mimo import sqlite
from mimo.cli.main import main
from mimo.commands import all_commands
from mimo.commands.invoke import Caller, invoke
from mimo.commands.spec import Surface
from mimo.errors import StorageFailed
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import saving
from mimo.store.trust import Trust


def run(mind: Mind, *words: str) -> int:
    return main(list(words), open=lambda _: mind.reopened())


def approvals(mind: Mind) -> Path:
    return mind.home / "trust.db"


@pytest.mark.attack("trust lost with a damaged list")
def test_a_damaged_list_of_approvals_is_replaced_by_the_user_alone(
    mind: Mind, capsys: pytest.CaptureFixture[str]
) -> None:
    record = saving.store(mind, saving.draft(Kind.FACT, "Tea is served at four"))
    damaged = approvals(mind).read_bytes()[:5000]
    approvals(mind).write_bytes(damaged)

    assert run(mind, "add", "The kettle holds two litres") == 0
    errors = capsys.readouterr().err
    assert "could not be approved" in errors
    assert "is damaged" in errors
    assert approvals(mind).read_bytes() == damaged

    assert run(mind, "doctor") == 1
    assert "no text is trusted" in capsys.readouterr().out

    assert run(mind, "trust") == 0
    assert ".damaged" in capsys.readouterr().err
    assert approvals(mind).with_name("trust.db.damaged").read_bytes() == damaged
    assert mind.reopened().trust.trusted(record.place.digest)


@pytest.mark.attack("trust lost on a full disk")
def test_a_full_disk_fails_the_approval_and_keeps_the_others(
    mind: Mind, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = saving.store(mind, saving.draft(Kind.FACT, "Tea is served at four"))
    before = approvals(mind).read_bytes()
    for number in range(90):
        path = mind.folder / f"facts/by_hand_{number}.md"
        path.write_text(f"Cup {number} is blue\n", encoding="utf-8")
    connect = sqlite.connect

    def full(path: Path | None, **options: Any) -> sqlite.Connection:
        connection = connect(path, **options)
        if path == approvals(mind):
            connection.execute("PRAGMA max_page_count = 1")  # It can't grow.
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "connect", full)
        assert run(mind, "trust") == 1
    assert "disk is full" in capsys.readouterr().err
    assert approvals(mind).read_bytes() == before
    assert mind.reopened().trust.trusted(record.place.digest)


@pytest.mark.attack("failed approval is not reported")
def test_a_failed_approval_is_reported_though_a_later_one_works(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve, failures = Trust.approve, [StorageFailed("input/output error")]

    def failing_once(self: Trust, digests: Iterable[str], **_: object) -> None:
        if failures:
            raise failures.pop()
        approve(self, digests)

    for name in ("guide.md", "short.md"):
        (mind.project.root / name).write_text(f"# {name}\n\nCups are in the cupboard.\n")
    monkeypatch.chdir(mind.project.root)
    monkeypatch.setattr(Trust, "approve", failing_once)
    spec = next(spec for spec in all_commands().all() if spec.path == "ingest")

    invoke(spec, mind, Caller(surface=Surface.CLI), {"path": "guide.md", "paths": ["short.md"]})
    assert "could not be approved" in str(mind.notice)

    invoke(spec, mind, Caller(surface=Surface.CLI), {"path": "short.md"})
    assert mind.notice is None
