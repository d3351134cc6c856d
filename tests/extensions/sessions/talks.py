"""Sessions of a user for tests, and the sentences that they propose."""

from datetime import timedelta
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.extensions.sessions.store import digest_of
from tests.claude_sessions import Talk, claude_code
from tests.conftest import NOW
from tests.kit import do, put

KEYSET = "1ccba294-0000-4000-8000-0000aaaaaaaa"
OTHER = "2ccba294-0000-4000-8000-0000bbbbbbbb"
LONG = "3ccba294-0000-4000-8000-0000cccccccc"

TALK: Talk = (
    ("user", "Let's use keyset pagination for orders, because OFFSET took 4 s."),
    ("edit", "orders/pages.py"),
    ("run", "pytest -q tests/test_pages.py"),
    ("fail", "1 failed in 0.10s"),
    ("agent", "The root cause was a missing index; orders are paged by key now."),
    ("user", "Thanks. And rename the helper."),
    ("agent", "Renamed."),
)


@pytest.fixture
def user(tmp_path: Path, home: Path, project: Path) -> Path:
    """The home folder of a user who turned sessions on, with two sessions."""
    put(home / "config.toml", '[sessions]\nenabled = "on"\n')
    place = tmp_path / "user"
    talk = [(role, str(project / text) if role == "edit" else text) for role, text in TALK]
    claude_code(place, KEYSET, project, talk, NOW - timedelta(days=20))
    redis = [("user", "Why does redis time out?"), ("agent", "The pool is too small.")]
    claude_code(place, OTHER, tmp_path / "bank", redis, NOW - timedelta(days=400))
    return place


@pytest.fixture
def kept(user: Path, call: Call) -> Call:
    """A call after these sessions were read."""
    assert do(call, "sessions index").sessions == 2
    return call


RULE, OTHER_RULE = "Prices are never floats, always cents.", "From now on, tags are lowercase."
"""Sentences that are proposed as memories."""


def id_of(sentence: str) -> str:
    """Returns the id of the proposal of a sentence."""
    return f"p{digest_of(sentence).hex()[:7]}"
