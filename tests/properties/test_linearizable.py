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


def operation(start: int, end: int | None, kind: str, given: Any = None) -> Operation:
    return Operation(start, end, 0, kind, given)


def added(start: int = 0, end: int = 1) -> Operation:
    return operation(start, end, "add", TEXT)


RIGHT = {
    "one after the other": [
        added(),
        operation(2, 3, "edit", "b"),
        operation(4, 5, "read", {"text": "b"}),
        operation(6, 7, "rm"),
        operation(8, 9, "read", None),
    ],
    "a reader beside a writer sees the old text": [
        added(),
        operation(2, 9, "edit", "b"),
        operation(3, 4, "read", {"text": "a"}),
        operation(5, 6, "read", {"text": "b"}),
    ],
    "a killed writer did its work": [
        added(),
        operation(2, None, "edit", "b"),
        operation(8, 9, "read", {"text": "b"}),
    ],
    "a killed writer did nothing": [
        added(),
        operation(2, None, "edit", "b"),
        operation(8, 9, "read", {"text": "a"}),
        operation(10, 11, "edit", "c"),
        operation(12, 13, "read", {"text": "c"}),
    ],
    "an undo restores the text before": [
        added(),
        operation(2, 3, "edit", "b"),
        operation(4, 5, "undo", "edit"),
        operation(6, 7, "read", {"text": "a"}),
    ],
    "an undo restores a removed memory": [
        added(),
        operation(2, 3, "rm"),
        operation(4, 5, "undo", "rm"),
        operation(6, 7, "read", {"text": "a"}),
    ],
    "tags of two processes are both kept": [
        added(),
        operation(2, 5, "tag", "blue"),
        operation(3, 6, "untag", "red"),
        operation(7, 8, "read", {"tags": frozenset({"blue"})}),
    ],
}

WRONG = {
    "a stale read": [
        added(),
        operation(2, 3, "edit", "b"),
        operation(4, 5, "read", {"text": "a"}),
    ],
    "a lost update": [
        added(),
        operation(2, 5, "edit", "b"),
        operation(3, 6, "tag", "blue"),
        operation(7, 8, "read", {"text": "a", "tags": frozenset({"red", "blue"})}),
    ],
    "a removal that came back": [
        added(),
        operation(2, 3, "rm"),
        operation(4, 5, "read", None),
        operation(6, 7, "read", {"text": "a"}),
    ],
    "an acknowledged memory that is not found": [added(), operation(2, 3, "read", None)],
    "a failed edit that took effect": [added(), operation(6, 7, "read", {"text": "b"})],
    "an edit of a missing memory": [added(), operation(2, 3, "rm"), operation(4, 5, "edit", "b")],
    "new, then old": [
        added(),
        operation(2, 9, "edit", "b"),
        operation(3, 4, "read", {"text": "b"}),
        operation(5, 6, "read", {"text": "a"}),
    ],
    "a killed writer that is seen, and then not": [
        added(),
        operation(2, None, "edit", "b"),
        operation(3, 4, "read", {"text": "b"}),
        operation(5, 6, "read", {"text": "a"}),
    ],
    "an undo of a change that another one followed": [
        added(),
        operation(2, 3, "edit", "b"),
        operation(4, 5, "tag", "blue"),
        operation(6, 7, "undo", "add"),
    ],
    "two removals": [added(), operation(2, 3, "rm"), operation(4, 5, "rm")],
    "a tag that was dropped": [
        added(),
        operation(2, 3, "tag", "blue"),
        operation(4, 5, "lacks", "blue"),
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_history_is_accepted(name: str) -> None:
    assert first_wrong("memory x", RIGHT[name]) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_history_is_rejected_at_the_operation_that_no_order_explains(name: str) -> None:
    wrong = first_wrong("memory x", WRONG[name])
    assert wrong is not None
    assert wrong.operation is WRONG[name][-1]
    assert "no order explains" in str(wrong)


def test_two_decisions_that_supersede_the_same_one_are_rejected() -> None:
    history = [
        operation(0, 1, "save", Decision("a", ())),
        operation(2, 5, "save", Decision("b", ("a",))),
        operation(3, 6, "save", Decision("c", ("a",))),
    ]
    assert first_wrong("topic x", history[:2]) is None
    assert first_wrong("topic x", history) is not None


def test_a_reader_of_a_superseded_decision_is_rejected() -> None:
    history = [
        operation(0, 1, "save", Decision("a", ())),
        operation(2, 3, "save", Decision("b", ("a",))),
        operation(4, 5, "read", "a"),
    ]
    assert first_wrong("topic x", history) is not None


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
    history = [
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

    expected = any(explains(order) for order in permutations(history))
    assert (first_wrong("value x", history) is None) == expected


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
    history = two_at_a_time(pairs)
    history.append(operation(10 * pairs, 10 * pairs + 1, "undo", "value put"))
    seen = 10 * pairs + 2
    for word in (f"{pairs - 1} 0", f"{pairs - 1} 1"):
        assert first_wrong("value x", [*history, operation(seen, seen + 1, "read", word)]) is None
    wrong = operation(seen, seen + 1, "read", f"{pairs - 2} 0")
    assert first_wrong("value x", [*history, wrong]) is not None


def test_a_register_with_too_many_orders_is_undecided() -> None:
    undos = [operation(300 + n, 301 + n, "undo", "value put") for n in range(0, 60, 2)]
    with pytest.raises(Undecided):
        first_wrong("value x", [*two_at_a_time(30), *undos], most=1000)
