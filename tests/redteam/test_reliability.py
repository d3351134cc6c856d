"""Faults of the disk, as commands meet them: nothing is lost without a word."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

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


def lists(mind: Mind) -> Path:
    return next((mind.home / "trust").rglob("approved"))


@pytest.mark.attack("trust lost with a damaged list")
def test_a_damaged_list_of_approvals_is_replaced_by_the_user_alone(
    mind: Mind, capsys: pytest.CaptureFixture[str]
) -> None:
    record = saving.store(mind, saving.draft(Kind.FACT, "Tea is served at four"))
    damaged = lists(mind).read_bytes() + b"nonsense\n"
    lists(mind).write_bytes(damaged)

    assert run(mind, "add", "The kettle holds two litres") == 0
    errors = capsys.readouterr().err
    assert "could not be approved" in errors
    assert "is damaged" in errors
    assert lists(mind).read_bytes() == damaged

    assert run(mind, "doctor") == 1
    assert "no text is trusted" in capsys.readouterr().out

    assert run(mind, "trust") == 0
    assert ".damaged" in capsys.readouterr().err
    assert lists(mind).with_name("approved.damaged").read_bytes() == damaged
    assert mind.reopened().trust.trusted(record.place.digest)


@pytest.mark.attack("trust lost on a full disk")
def test_a_full_disk_fails_the_approval_and_keeps_the_others(
    mind: Mind, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = saving.store(mind, saving.draft(Kind.FACT, "Tea is served at four"))
    before = lists(mind).read_bytes()
    path = mind.folder / "facts/by_hand.md"
    path.write_text("Milk goes in first\n", encoding="utf-8")
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 20:
            return write(descriptor, data[:20])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda fd, data: full(fd, data[:21]))
        assert run(mind, "trust", "by_hand") == 1
    assert "no space left on the disk" in capsys.readouterr().err
    assert lists(mind).read_bytes() == before
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
