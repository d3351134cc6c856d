"""The checker of `make concurrent`: it accepts right histories, and rejects wrong ones."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.concurrent.linearizable import (
    Decision,
    Operation,
    State,
    Undecided,
    first_wrong,
    of_value,
)

TEXT = {"text": "a", "tags": frozenset({"red"})}
READ = {
    "none": None,
    "blue": {"tags": frozenset({"blue"})},
    "a+red+blue": {"text": "a", "tags": frozenset({"red", "blue"})},
}
"""The memories that readers saw, by name; any other word is the text of one."""


def operation(start: int, end: int | None, kind: str, given: Any = None) -> Operation:
    return Operation(start, end, 0, kind, given)


def history(line: str) -> list[Operation]:
    """Returns the operations of a line: `edit b 2-9` lasts from 2 to 9, one of `2-` was killed."""
    operations = []
    for step in f"add 0-1, {line}".split(", "):
        kind, *words, span = step.split()
        start, _, end = span.partition("-")
        given: Any = words[0] if words else {"add": TEXT}.get(kind)
        if kind == "read":
            given = READ.get(given, {"text": given})
        operations.append(operation(int(start), int(end) if end else None, kind, given))
    return operations


RIGHT = {
    "one after the other": "edit b 2-3, read b 4-5, rm 6-7, read none 8-9",
    "a reader beside a writer sees the old text": "edit b 2-9, read a 3-4, read b 5-6",
    "a killed writer did its work": "edit b 2-, read b 8-9",
    "a killed writer did nothing": "edit b 2-, read a 8-9, edit c 10-11, read c 12-13",
    "an undo restores the text before": "edit b 2-3, undo edit 4-5, read a 6-7",
    "an undo restores a removed memory": "rm 2-3, undo rm 4-5, read a 6-7",
    "tags of two processes are both kept": "tag blue 2-5, untag red 3-6, read blue 7-8",
}

WRONG = {
    "a stale read": "edit b 2-3, read a 4-5",
    "a lost update": "edit b 2-5, tag blue 3-6, read a+red+blue 7-8",
    "a removal that came back": "rm 2-3, read none 4-5, read a 6-7",
    "an acknowledged memory that is not found": "read none 2-3",
    "a failed edit that took effect": "read b 6-7",
    "an edit of a missing memory": "rm 2-3, edit b 4-5",
    "new, then old": "edit b 2-9, read b 3-4, read a 5-6",
    "a killed writer that is seen, and then not": "edit b 2-, read b 3-4, read a 5-6",
    "an undo of a change that another one followed": "edit b 2-3, tag blue 4-5, undo add 6-7",
    "two removals": "rm 2-3, rm 4-5",
    "a tag that was dropped": "tag blue 2-3, lacks blue 4-5",
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_history_is_accepted(name: str) -> None:
    assert first_wrong("memory x", history(RIGHT[name])) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_history_is_rejected_at_the_operation_that_no_order_explains(name: str) -> None:
    operations = history(WRONG[name])
    wrong = first_wrong("memory x", operations)
    assert wrong is not None
    assert wrong.operation is operations[-1]
    assert "no order explains" in str(wrong)


FIRST = operation(0, 1, "save", Decision("a", ()))
SECOND = operation(2, 5, "save", Decision("b", ("a",)))


@pytest.mark.parametrize(
    "last",
    [operation(3, 6, "save", Decision("c", ("a",))), operation(6, 7, "read", "a")],
    ids=["another one superseded it", "a reader sees it"],
)
def test_a_superseded_decision_is_not_the_current_one_again(last: Operation) -> None:
    assert first_wrong("topic x", [FIRST, SECOND]) is None
    assert first_wrong("topic x", [FIRST, SECOND, last]) is not None


_STEP = st.tuples(
    st.integers(0, 12),
    st.integers(1, 5),
    st.sampled_from(("put", "put", "read", "undo")),
    st.integers(0, 5),
)


@given(st.lists(_STEP, max_size=6))
def test_the_search_agrees_with_trying_all_orders(
    drawn: list[tuple[int, int, str, int]],
) -> None:
    operations = [
        operation(
            start,
            start + length,
            kind,
            {"put": place, "read": number, "undo": ("value put", "undo")[number % 2]}[kind],
        )
        for place, (start, length, kind, number) in enumerate(drawn)
    ]

    def explains(order: tuple[Operation, ...]) -> bool:
        states = [State()]
        for place, step in enumerate(order):
            if any(later.end is not None and later.end < step.start for later in order[place:]):
                return False
            states = [after for state in states for after in of_value(state, step)]
        return bool(states)

    expected = any(explains(order) for order in permutations(operations))
    assert (first_wrong("value x", operations) is None) == expected


def two_at_a_time(pairs: int) -> list[Operation]:
    """Returns a history in which two writers overlap again and again, and no reader sees which
    of them was the last.
    """
    return [
        operation(10 * pair + place, 10 * pair + 5 + place, "put", f"{pair} {place}")
        for pair in range(pairs)
        for place in range(2)
    ]


def test_many_overlapping_writers_of_a_value_are_checked() -> None:
    pairs = 200
    writers = two_at_a_time(pairs)
    writers.append(operation(10 * pairs, 10 * pairs + 1, "undo", "value put"))
    seen = 10 * pairs + 2
    for word in (f"{pairs - 1} 0", f"{pairs - 1} 1"):
        assert first_wrong("value x", [*writers, operation(seen, seen + 1, "read", word)]) is None
    wrong = operation(seen, seen + 1, "read", f"{pairs - 2} 0")
    assert first_wrong("value x", [*writers, wrong]) is not None


def test_a_register_with_too_many_orders_is_undecided() -> None:
    undos = [operation(300 + n, 301 + n, "undo", "value put") for n in range(0, 60, 2)]
    with pytest.raises(Undecided):
        first_wrong("value x", [*two_at_a_time(30), *undos], most=1000)
