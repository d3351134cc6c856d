"""What the newest prompt asked for: one file, written whole, and never believed where it lies."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.features.hooks import storage
from mimo.features.hooks.exposure import classify
from mimo.features.hooks.storage import PLACE, Exposure

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".mind").mkdir()
    return tmp_path


def of(message: str) -> Exposure:
    said = classify(message)
    return Exposure(
        session="s1", intent=said.intent, confidence=said.confidence, tools=said.tools, at=NOW
    )


@pytest.mark.req("004-28")
@pytest.mark.parametrize("message", ["어제 작업 이어서 하자", "let's decide", "search", "hello"])
def test_what_was_written_is_read(root: Path, message: str) -> None:
    storage.write(root, of("continue"))
    storage.write(root, of(message))

    assert storage.read(root) == of(message)


def test_the_file_is_one_json_object_that_other_programs_understand(root: Path) -> None:
    storage.write(root, of("continue"))

    assert json.loads((root / PLACE).read_text(encoding="utf-8")) == {
        "session": "s1",
        "intent": "resuming",
        "confidence": 0.95,
        "tools": ["load/checkpoint", "load/context", "save/decision"],
        "at": "2026-11-20T15:30:00Z",
    }


def test_where_nothing_was_written_there_is_none(root: Path) -> None:
    assert storage.read(root) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"session": 7},
        {"session": "x" * 201},
        {"intent": "sleeping"},
        {"confidence": 2},
        {"confidence": True},
        {"tools": "all"},
        {"tools": [1]},
        {"tools": ["x"] * 101},
        {"at": "yesterday"},
        {"at": "2026-11-20T15:30:00"},
        {"at": None},
    ],
)
def test_a_file_that_tells_something_else_is_none(root: Path, changed: dict[str, object]) -> None:
    storage.write(root, of("continue"))
    told = json.loads((root / PLACE).read_text(encoding="utf-8"))
    (root / PLACE).write_text(json.dumps(told | changed), encoding="utf-8")

    assert storage.read(root) is None


@given(st.one_of(st.binary(max_size=200), st.just(b"[" * 10_000), st.just(b" " * 20_000)))
def test_no_file_makes_reading_fail(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".mind" / ".local").mkdir(parents=True, exist_ok=True)
    (tmp_path / PLACE).write_bytes(data)

    assert storage.read(tmp_path) is None


@pytest.mark.attack("symbolic link")
def test_a_link_in_its_place_is_neither_read_nor_followed(root: Path) -> None:
    (root / ".mind" / ".local").mkdir()
    (root / "other.json").write_text("{}", encoding="utf-8")
    (root / PLACE).symlink_to(root / "other.json")

    assert storage.read(root) is None
    with pytest.raises(Exception, match="symbolic link"):
        storage.write(root, of("continue"))
    assert (root / "other.json").read_text(encoding="utf-8") == "{}"
