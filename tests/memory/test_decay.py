"""The fading of a memory."""

import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mimo.memory import decay
from mimo.memory.model import Kind, Memory, Place, Record

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def record(
    kind: Kind = Kind.FACT, *, days: float = 0, importance: float = 0.5, path: str = "", **more
) -> Record:
    created = NOW - timedelta(days=days)
    memory = Memory(id="m", type=kind, content="x", created=created, importance=importance, **more)
    return Record(memory=memory, place=Place(path=path or ".mind/facts/m.md", line=1, digest=""))


def strength(faded: Record, **options) -> float:
    return decay.strength(faded.memory.importance, faded.memory.created, **options)


def test_a_new_memory_is_as_strong_as_it_is_important():
    assert strength(record(importance=0.7), now=NOW) == pytest.approx(0.7)


def test_strength_falls_by_the_documented_exponential():
    assert strength(record(days=100), now=NOW) == pytest.approx(0.5 * math.exp(-1))


def test_the_age_counts_from_the_last_access():
    used = decay.Use(times=1, last=NOW - timedelta(days=20))

    assert strength(record(days=300), now=NOW, use=used) == pytest.approx(
        0.5 * math.exp(-0.2) * (1 + 0.1 * math.log(2))
    )


def test_an_access_before_the_date_in_the_file_does_not_make_a_memory_older():
    used = decay.Use(times=0, last=NOW - timedelta(days=90))

    assert strength(record(days=1), now=NOW, use=used) == pytest.approx(
        strength(record(days=1), now=NOW)
    )


def test_accesses_strengthen_and_the_score_never_leaves_the_unit_interval():
    assert decay.score(0.5, 0, accesses=10) > decay.score(0.5, 0)
    assert decay.score(1.0, 0, accesses=10**9) == 1.0


def test_a_date_in_the_future_counts_as_now():
    assert strength(record(days=-5), now=NOW) == pytest.approx(0.5)


@pytest.mark.req("000-54")
def test_days_until_forgotten_count_from_now():
    left = decay.days_until_forgotten(0.08)

    assert decay.score(0.08, left) == pytest.approx(decay.FLOOR)


def test_the_page_states_the_days_that_follow_from_the_default_rate():
    page = (Path(__file__).parents[2] / "docs" / "fading.md").read_text("utf-8")
    rows = re.findall(r"^\| (0\.\d).* \| (\d+) days \| (\d+) days \|$", page, re.MULTILINE)

    assert len(rows) == 4
    for importance, risk, lost in rows:
        for limit, days in ((decay.AT_RISK, int(risk)), (decay.FLOOR, int(lost))):
            left = decay.days_until_forgotten(float(importance), floor=limit)
            assert math.floor(left) <= days <= math.ceil(left)
    assert f"half-life of {math.log(2) / decay.RATE:.0f} days" in page


def test_below_the_floor_no_days_are_left_and_without_a_rate_nothing_fades():
    assert decay.days_until_forgotten(0.01) == 0.0
    assert decay.days_until_forgotten(0.5, rate=0.0) == math.inf


@pytest.mark.parametrize("kind", [Kind.DECISION, Kind.CHECKPOINT, Kind.EDGE])
def test_decisions_checkpoints_and_edges_are_protected_unless_their_file_says_no(kind):
    assert decay.is_protected(record(kind))
    assert not decay.is_protected(record(kind, protected=False))
    assert not decay.is_protected(record(Kind.FACT))


def test_a_document_outside_the_store_fades_only_if_its_header_allows_it():
    assert decay.is_protected(record(path="docs/tea.md"))
    assert not decay.is_protected(record(path="docs/tea.md", protected=False))
