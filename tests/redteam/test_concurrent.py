"""The faults that the check of `make concurrent` must notice."""

import pytest

from bench.concurrent.linearizable import first_wrong
from bench.concurrent.operations import Outcome, Row, registers

NAME, OLD, NEW = "qdakaa", "qdakaa qgakaa tea at four", "qdakaa qlakaa tea at five"


def row(start: int, name: str, outcome: Outcome, **about: object) -> Row:
    return Row(0, start, start + 1, name, {"memory": NAME, **about}, outcome)


def shown(text: str, *, protected: bool = False) -> Outcome:
    return Outcome({"content": text, "tags": ["slot1"], "protected": protected})


def wrong_in(*rows: Row) -> list[str]:
    added = row(0, "add", Outcome({"id": "x"}), slot=1, text=OLD)
    every = registers([added, *rows]).items()
    return [str(wrong) for name, operations in every if (wrong := first_wrong(name, operations))]


def test_a_protection_that_was_lost_is_noticed() -> None:
    kept = row(2, "keep", Outcome({}), kept=True)
    assert wrong_in(kept, row(4, "show", shown(OLD, protected=True))) == []
    assert "no order explains" in wrong_in(kept, row(4, "show", shown(OLD)))[0]


def test_a_mixture_of_two_texts_is_noticed() -> None:
    edited = row(2, "edit", Outcome({}), text=NEW)
    assert wrong_in(edited, row(4, "show", shown(NEW))) == []
    torn = row(4, "show", shown("qdakaa qlakaa tea at four"))
    assert "no order explains" in wrong_in(edited, torn)[0]


@pytest.mark.parametrize(
    ("code", "message", "is_permitted"),
    [
        ("STORAGE_ERROR", "`.mind/facts/a.md` has changed since it was read", True),
        ("STORAGE_ERROR", "`.mind/facts/a.md` was removed since it was read", True),
        ("STORAGE_ERROR", "`a.md` has changed since `mind edit`; nothing was undone", True),
        ("STORAGE_ERROR", "`/home/a/.mind/.local/lock` is held by process 12", True),
        ("STORAGE_ERROR", "`a.md` could not be written: No space left on device", False),
        ("VALIDATION_ERROR", "`red` is not a tag of the memory", True),
        ("VALIDATION_ERROR", "`a.md` could not be read after the change", False),
        ("INTERNAL_ERROR", "has changed since it was read", False),
    ],
)
def test_an_error_must_have_a_message_that_is_permitted(
    code: str, message: str, *, is_permitted: bool
) -> None:
    outcome = Outcome(error=code, message=message)
    assert outcome.is_permitted is is_permitted
    assert outcome.is_conflict is ("since" in message and code == "STORAGE_ERROR")
