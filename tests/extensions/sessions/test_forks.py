"""Sessions that repeat another one, and files that lost what was read of them."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimo.extensions.sessions import store
from mimo.extensions.sessions.model import Role
from mimo.extensions.sessions.readers import reader_of
from mimo.extensions.sessions.reading import Reading, Wanted
from mimo.extensions.sessions.store import Store

NOW = datetime(2026, 11, 30, tzinfo=UTC)
MAIN, FORK = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    """A store without a session."""
    return Store(tmp_path / "mind")


def write(home: Path, id: str, *prompts: str, time: float) -> None:
    """Writes a session of Claude Code, in which each prompt has an id of its own."""
    path = home / ".claude/projects/-shop" / f"{id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    records = (
        {"type": "user", "uuid": prompt, "cwd": "/shop", "message": {"content": prompt}}
        for prompt in prompts
    )
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    os.utime(path, (time, time))


def prompts(kept: Store, home: Path) -> dict[str, list[str]]:
    """Reads what is new in a home, and returns the prompts of each session."""
    wanted = Wanted(clients=frozenset({"claude-code"}))
    Reading(kept, [reader_of("claude-code")], wanted, {}, home, NOW).run()
    with kept.reading() as sql:
        assert sql is not None
        return {
            session.native_id: [
                item.turn.text
                for item in store.turns(sql, session.key)
                if item.turn.role is Role.USER
            ]
            for session in store.sessions(sql)
        }


def test_the_older_of_two_sessions_has_the_turns_of_both(kept: Store, tmp_path: Path) -> None:
    write(tmp_path, MAIN, "One.", "Two.", time=1_000_000_000)
    write(tmp_path, FORK, "One.", "Two.", "Three.", time=1_000_000_100)
    assert prompts(kept, tmp_path) == {MAIN: ["One.", "Two."], FORK: ["Three."]}


def test_a_session_that_grew_before_it_was_forked_has_its_turns(
    kept: Store, tmp_path: Path
) -> None:
    write(tmp_path, MAIN, "One.", time=1_000_000_000)
    assert prompts(kept, tmp_path) == {MAIN: ["One."]}
    write(tmp_path, FORK, "One.", "Two.", "Three.", time=1_000_000_200)
    write(tmp_path, MAIN, "One.", "Two.", time=1_000_000_300)
    assert prompts(kept, tmp_path) == {MAIN: ["One.", "Two."], FORK: ["Three."]}


@pytest.mark.parametrize("content", [b"", b"\0" * 500, b'{"type": "mode"}\n', b"5\n" * 50])
def test_a_file_that_lost_its_turns_takes_none_away(
    kept: Store, tmp_path: Path, content: bytes
) -> None:
    write(tmp_path, MAIN, "One.", time=1_000_000_000)
    prompts(kept, tmp_path)
    path = tmp_path / ".claude/projects/-shop" / f"{MAIN}.jsonl"
    path.write_bytes(content)
    os.utime(path, (1_000_000_300, 1_000_000_300))
    assert prompts(kept, tmp_path) == {MAIN: ["One."]}
