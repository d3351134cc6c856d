"""The check of a history: whether each register behaves as if one operation came after the other.

A register is a memory, a value or the decisions on a topic. Registers are checked one by one,
since a history is linearizable if that of each of its registers is (Herlihy and Wing, 1990).

Starts and ends are read in the order of time. A possibility is a state of the register, with the
open operations that have happened already. When an operation ends, only possibilities remain in
which it has happened; if none does, the history is wrong there. (This is the search of Wing and
Gong, by breadth, and equal possibilities are kept once.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

ABSENT = None
"""The state of a register that has nothing."""


class Operation(NamedTuple):
    """One operation on one register."""

    start: int
    end: int | None
    """None if the process was killed: the operation may have happened at any time, or never."""
    process: int
    kind: str
    given: Any = None
    """The text that it writes, or the parts that a reader saw."""


class Change(NamedTuple):
    """A change of a register that can be undone."""

    command: str
    before: Hashable
    after: Hashable


class State(NamedTuple):
    """The present state of a register, and its changes so far."""

    now: Any = ABSENT
    changes: frozenset[Change] = frozenset()

    def to(self, command: str, after: Any) -> State:
        """Returns the state after a change."""
        return State(after, self.changes | {Change(command, self.now, after)})

    def within(self, undos: int) -> State:
        """Returns the state with the changes alone that so many undos can reach.

        Other operations must lead to states that never were.
        """
        reached, edge = set[Change](), {self.now}
        for _ in range(undos):
            found = {change for change in self.changes if change.after in edge} - reached
            reached |= found
            edge = {change.before for change in found}
        return State(self.now, frozenset(reached))


class Memory(NamedTuple):
    """The parts of a memory that operations write."""

    text: str
    tags: frozenset[str] = frozenset()
    kept: bool = False
    links: frozenset[str] = frozenset()


Seen = Mapping[str, Any] | None
"""The parts of a memory that a reader saw; None if it was missing."""


_WRITES: Mapping[str, tuple[str, Callable[[Memory, Any], Memory | None]]] = {
    "rm": ("rm", lambda _now, _given: ABSENT),
    "edit": ("edit", lambda now, text: now._replace(text=text)),
    "tag": ("edit", lambda now, tag: now._replace(tags=now.tags | {tag})),
    "untag": ("edit", lambda now, tag: now._replace(tags=now.tags - {tag})),
    "keep": ("keep", lambda now, kept: now._replace(kept=kept)),
    "link": ("link", lambda now, to: now._replace(links=now.links | {to.rpartition("_")[2]})),
}
"""The command of each operation that changes a memory, and the memory after it."""


def of_memory(state: State, operation: Operation) -> Iterator[State]:
    """Yields the states of a memory after an operation; none if it can't happen in this state."""
    now, kind, given = state.now, operation.kind, operation.given
    if kind == "read":
        if _agrees(now, given):
            yield state
    elif kind == "add":
        if now is ABSENT:
            yield state.to("add", Memory(**given))
    elif kind == "undo":
        yield from _undone(state, given)
    elif now is ABSENT:
        return
    elif kind == "lacks":
        if given not in now.tags:
            yield state
    elif kind != "untag" or given in now.tags:
        command, change = _WRITES[kind]
        yield state.to(command, change(now, given))


def _agrees(now: Memory | None, seen: Seen) -> bool:
    if now is ABSENT or seen is None:
        return now is ABSENT and seen is None
    return all(getattr(now, name) == value for name, value in seen.items())


def _undone(state: State, command: str) -> Iterator[State]:
    """Yields the states before each change of that command that led to the present state."""
    for before in {
        change.before
        for change in state.changes
        if change.command == command and change.after == state.now
    }:
        yield state.to("undo", before)


def of_value(state: State, operation: Operation) -> Iterator[State]:
    """Yields the states of a value after an operation."""
    match operation.kind:
        case "read":
            if state.now == operation.given:
                yield state
        case "put":
            yield state.to("value put", operation.given)
        case "undo":
            yield from _undone(state, operation.given)


class Decision(NamedTuple):
    """A decision on a topic."""

    id: str
    supersedes: tuple[str, ...]


def current(decisions: Iterable[Decision]) -> set[str]:
    """Returns the ids of the decisions that no other one supersedes."""
    decisions = list(decisions)
    old = {id for decision in decisions for id in decision.supersedes}
    return {decision.id for decision in decisions} - old


def of_topic(state: State, operation: Operation) -> Iterator[State]:
    """Yields the states of a topic after an operation: the decisions on it, current or not.

    A new decision supersedes those that are current, so there is one, unless the decision between
    two others was undone. A reader saw the newest.
    """
    now: frozenset[Decision] = state.now or frozenset()
    given = operation.given
    match operation.kind:
        case "read" if given in current(now) or (given is None and not now):
            yield state
        case "competes" if len(current(now)) > 1:
            yield state
        case "save" if set(given.supersedes) == current(now):
            yield State(now | {given})
        case "gone":
            kept = frozenset(decision for decision in now if decision.id != given)
            if kept != now:
                yield State(kept)
        case "back" if given not in now:
            yield State(now | {given})


_Model = Callable[[State, Operation], Iterator[State]]

MODELS: Mapping[str, _Model] = {"memory": of_memory, "value": of_value, "topic": of_topic}


class Wrong(NamedTuple):
    """The first operation of a register whose answer no order explains."""

    register: str
    operation: Operation
    before: Sequence[Operation]
    """The operations of the register that started before its end, the latest last."""

    def __str__(self) -> str:
        lines = [f"{self.register}: no order explains {_shown(self.operation)}"]
        lines += [f"  {_shown(operation)}" for operation in self.before[-14:]]
        return "\n".join(lines)


def _shown(operation: Operation) -> str:
    end = "killed" if operation.end is None else f"{operation.end / 1e6:.3f}"
    times = f"{operation.start / 1e6:.3f}-{end} ms"
    return f"[{times}] process {operation.process}: {operation.kind} {operation.given}"


MOST_POSSIBILITIES = 500_000

_Possibility = tuple[State, frozenset[int]]
"""A state, and the numbers of the open operations that have happened."""


class Undecided(Exception):
    """A register has too many possibilities."""


def first_wrong(
    register: str, operations: Iterable[Operation], most: int = MOST_POSSIBILITIES
) -> Wrong | None:
    """Returns the first operation that no order explains, None if the history is linearizable.

    The name of a register starts with the name of its model. Raises `Undecided` at more than
    `most` possibilities at a time.
    """
    model = MODELS[register.partition(" ")[0]]
    ordered = sorted(operations, key=lambda operation: operation.start)
    events = [(operation.start, 0, number) for number, operation in enumerate(ordered)]
    events += [
        (operation.end, 1, number)
        for number, operation in enumerate(ordered)
        if operation.end is not None
    ]
    undos = sum(operation.kind == "undo" for operation in ordered)
    """The undos that have not ended."""
    waiting: dict[int, Operation] = {}
    possible: set[_Possibility] = {(State(), frozenset())}
    for _, is_end, number in sorted(events):
        if not is_end:
            waiting[number] = ordered[number]
            continue
        reached = _reached(possible, number, waiting, model, most)
        operation = waiting.pop(number)
        if not reached:
            before = [earlier for earlier in ordered if earlier.start < (operation.end or 0)]
            return Wrong(register, operation, before)
        undos -= operation.kind == "undo"
        if model is of_value:  # Each value is written once.
            reached = {(state.within(undos), happened) for state, happened in reached}
        possible = reached
    return None


def _reached(
    possible: Set[_Possibility],
    number: int,
    waiting: Mapping[int, Operation],
    model: _Model,
    most: int,
) -> set[_Possibility]:
    """Returns the possibilities in which an open operation has happened, so that it may end."""
    reached: set[_Possibility] = set()
    pending, seen = list(possible), set(possible)
    while pending:
        if len(seen) > most:
            raise Undecided
        state, happened = pending.pop()
        if number in happened:
            reached.add((state, happened - {number}))
            continue
        for other in waiting.keys() - happened:
            for after in model(state, waiting[other]):
                following = (after, happened | {other})
                if following not in seen:
                    seen.add(following)
                    pending.append(following)
    return reached
