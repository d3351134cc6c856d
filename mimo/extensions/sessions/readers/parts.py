"""The parts of a session as a reader comes to know them, record by record.

A file that grows is read in steps, and the parts are the same wherever a step ends: what a later
record can still change (a call without its result) waits with all that follows, and what has to be
known of earlier records is in the progress. No text is: it is stored, and was not masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, TypeVar

from mimo.api import NamedTuple, loads, replace
from mimo.extensions.sessions.model import (
    LONGEST_TEXT,
    Facts,
    Kind,
    Part,
    Progress,
    Role,
    Source,
    Turn,
)
from mimo.extensions.sessions.readers.lines import UNREAD, beginning, opened, records
from mimo.extensions.sessions.readers.wrappings import last_line, without_notes, words_of

_TURNS = 500
"""The number of turns of a part, at most about: what bounds memory."""

_LONGEST_FACT = 4_096

_READ = LONGEST_TEXT + 16_000
"""The most characters of a turn that are read: a secret at a cut is masked before the last one."""

_REPEATED = 8
"""The number of earlier texts among which one is looked for that the client wrote twice."""

_CALLS = 64
"""The number of earlier calls whose ids are known, for clients that write each twice."""


T = TypeVar("T")


class _State(NamedTuple):
    """The knowledge of the records so far."""

    facts: Facts
    last_prompt: str = ""
    """The digest of the last turn if it is the user's."""
    prompts: tuple[str, ...] = ()
    queued: tuple[str, ...] = ()
    """Digests of prompts that wait for the agent, and come again when it takes them."""
    answered: tuple[str, ...] = ()
    """Digests of the agent's texts since the user spoke."""
    calls: tuple[str, ...] = ()
    """Digests of the ids of the last calls."""
    noted: Mapping[str, Any] = {}
    """The values that the reader noted: JSON, and no text of the session."""


class _Mark(NamedTuple):
    """The place up to which no record can change what was read."""

    turns: int
    place: int
    state: _State
    records: int
    unknown: int


class Parts:
    """Collects the turns of one session, and yields them in parts."""

    def __init__(self, facts: Facts, *, is_whole: bool = True, state: str = "") -> None:
        """Takes the known facts, and the state of the progress of the last part.

        `is_whole` if the source is read from its start.
        """
        self._state = _State(facts) if is_whole else _loaded(state, facts)
        self.records = self.unknown = 0
        self._turns: list[Turn] = []
        self._calls: dict[str, int] = {}
        self._suggested: list[tuple[str, datetime | None]] = []
        self._replaces = is_whole
        self._message = ""
        self._mark: _Mark | None = None
        self.memory: dict[str, Any] = {}
        """Values that the reader needs in this step alone."""

    @property
    def facts(self) -> Facts:
        """The known facts of the session."""
        return self._state.facts

    def learn(self, **facts: Any) -> None:
        """Notes facts of the session that are not known yet; empty ones say nothing."""
        self.correct(**{name: new for name, new in facts.items() if not getattr(self.facts, name)})

    def correct(self, **facts: Any) -> None:
        """Notes facts that replace what was known; empty ones say nothing."""
        for name, value in facts.items():
            if value and value != getattr(self.facts, name):
                short: Any = value[:_LONGEST_FACT] if type(value) is str else value
                changed = replace(self.facts, **{name: short})
                self._state = self._state._replace(facts=changed)

    def noted(self, name: str) -> Any:
        """Returns a value that the reader noted; None if that is nothing."""
        return self._state.noted.get(name)

    def note(self, name: str, value: Any) -> None:
        """Notes a value for the records that follow, also those of a later step.

        It is stored: no text of the session may be in it.
        """
        self._state = self._state._replace(noted={**self._state.noted, name: value})

    # Turns.

    def say(
        self,
        text: str | Sequence[str],
        at: datetime | None,
        native_id: str = "",
        *,
        is_typed: bool = True,
        is_queued: bool = False,
    ) -> bool:
        """Adds the words of the user, in one or several blocks; returns whether it is new.

        It is not if a program wrote it, if it is the turn before again, or if it waited in the
        queue and is there in both forms.
        """
        blocks = [text] if isinstance(text, str) else text
        words = "\n\n".join(filter(None, map(words_of, blocks)))
        digest = _digest(words)
        state = self._state
        if not words or digest == state.last_prompt or (is_queued and digest in state.prompts):
            return False
        if not is_queued and digest in state.queued:
            queued = tuple(each for each in state.queued if each != digest)
            self._state = state._replace(queued=queued)
            return False
        self._settle()
        self._add(Role.USER, words, at, native_id, is_typed=is_typed)
        queued = (*state.queued, digest)[-_REPEATED:] if is_queued else state.queued
        prompts = (*state.prompts, digest)[-_REPEATED:]
        self._state = self._state._replace(
            last_prompt=digest, prompts=prompts, queued=queued, answered=()
        )
        return True

    def suggest(self, text: str, at: datetime | None) -> None:
        """Takes the words of the user unless a better record of it follows."""
        if words_of(text) and len(self._suggested) < _TURNS:
            self._suggested.append((text, at))

    def suggested(self) -> Sequence[tuple[str, datetime | None]]:
        """Returns the texts that were suggested, which are then no longer."""
        texts, self._suggested = self._suggested, []
        return texts

    def answer(
        self,
        text: str,
        at: datetime | None,
        native_id: str = "",
        message: str = "",
        *,
        is_repeated: bool = False,
    ) -> bool:
        """Adds the words of the agent; returns whether it is new.

        Blocks of one `message` in a row are one turn. `is_repeated` if the client writes the same
        text in several records.
        """
        words = without_notes(text)
        digest = _digest(words) if is_repeated else ""
        if not words or digest in self._state.answered:
            return False
        self._settle()
        previous = self._turns[-1] if self._turns else None
        if message and message == self._message and previous and previous.role is Role.AGENT:
            self._turns[-1] = replace(previous, text=ends_of(f"{previous.text}\n\n{words}", _READ))
        else:
            self._add(Role.AGENT, words, at, native_id)
        self._message = message
        if digest:
            answered = (*self._state.answered, digest)[-_REPEATED:]
            self._state = self._state._replace(answered=answered)
        return True

    def call(
        self,
        line: str,
        at: datetime | None,
        native_id: str = "",
        *,
        id: str = "",
        files: Sequence[str] = (),
        is_repeated: bool = False,
    ) -> bool:
        """Adds the call of a tool; `id` is what its result names. Returns whether it is new.

        `is_repeated` if the client writes the same call in several records.
        """
        if id and is_repeated:
            if id in self._calls:
                turn = self._turns[self._calls[id]]
                both = tuple(dict.fromkeys([*turn.files, *filter(None, files)]))
                self._turns[self._calls[id]] = replace(turn, files=both)
            digest = _digest(id)
            if digest in self._state.calls:
                return False
            self._state = self._state._replace(calls=(*self._state.calls, digest)[-_CALLS:])
        if id:
            self._calls[id] = len(self._turns)
        line = "mind" if line.startswith("mind ") else " ".join(line.split())
        self._add(Role.TOOL, line, at, native_id, tuple(filter(None, files)))
        return True

    def succeed(self, id: str) -> None:
        """Notes that a call ended."""
        if self._mark:
            self._calls.pop(id, None)

    def fail(self, id: str, output: str) -> None:
        """Notes that a call failed: the last line of its output is kept."""
        place = self._calls.get(id)
        if place is not None:
            error = last_line(output) or "failed"
            self._turns[place] = replace(self._turns[place], error=error)
        self.succeed(id)

    def _settle(self) -> None:
        """Ends all calls: the agent or the user went on without their results."""
        if self._mark:
            self._calls = {}

    def _add(
        self,
        role: Role,
        text: str,
        at: datetime | None,
        native_id: str,
        files: tuple[str, ...] = (),
        *,
        is_typed: bool = True,
    ) -> None:
        self._turns.append(
            Turn(
                role=role,
                text=ends_of(text, _READ),
                at=at,
                native_id=native_id,
                files=files,
                is_typed=is_typed,
            )
        )
        if self._state.last_prompt:
            self._state = self._state._replace(last_prompt="")

    # Parts of a source that is read as a whole.

    def of(self, records: Iterable[T], take: Callable[[T], bool]) -> Iterator[Part]:
        """Yields the parts of all records.

        `take` adds a record, and returns whether it has a known shape.
        """
        for record in records:
            self.records += 1
            if not take(record):
                self.unknown += 1
            yield from self.full()
        yield self.rest()

    def full(self) -> Iterator[Part]:
        """Yields the turns so far as a part if they are many."""
        if len(self._turns) >= _TURNS:
            yield self.rest()

    def rest(self, offset: int = 0, state: str = "") -> Part:
        """Returns the turns that no part has yet."""
        counts, progress = (self.records, self.unknown), Progress(offset, state)
        part = Part(self.facts, self._turns, progress, *counts, self._replaces)
        self._turns, self._calls, self._message = [], {}, ""
        self.records = self.unknown = 0
        self._replaces = False
        return part

    # Parts of a file that grows.

    def follow(
        self,
        source: Source,
        offset: int,
        take: Callable[[Mapping[str, Any], Parts], bool],
        learn: Callable[[Mapping[str, Any], Parts], None] | None = None,
        unread: re.Pattern[bytes] | None = None,
    ) -> Iterator[Part]:
        """Yields the parts of a file of JSON lines from an offset on.

        `take` adds a record, and returns whether it has a known shape. `learn` notes the facts that
        earlier records state. Lines that begin as `unread` are not parsed.
        """
        with opened(source.path, source.inode) as file:
            if learn:
                for record in beginning(file, offset):
                    learn(record, self)
            for value, end in records(file, offset, unread):
                self._begin(offset)
                offset = end
                if value is not UNREAD and (value is None or not take(value, self)):
                    self.unknown += 1
                yield from self._many(offset)
            yield self._grown(offset)

    def _begin(self, place: int) -> None:
        """Begins the record at an offset, and counts it."""
        if self._mark is None or not (self._calls or self._suggested):
            turns = len(self._turns)
            self._mark = _Mark(turns, place, self._state, self.records, self.unknown)
        self.records += 1

    def _many(self, end: int) -> Iterator[Part]:
        """Yields the turns up to an offset as a part if they are many."""
        if len(self._turns) >= _TURNS and (not self._calls or len(self._turns) >= 4 * _TURNS):
            self._calls = {}
            if not self._suggested:
                yield self._grown(end)

    def _grown(self, end: int) -> Part:
        """Returns the turns up to an offset without those that a later record can change.

        Facts of later records are in it, and are learned again with them.
        """
        facts, state, mark = self.facts, self._state, self._mark
        if mark and (self._calls or self._suggested):
            state, end = mark.state, mark.place
            self._turns = self._turns[: mark.turns]
            self.records, self.unknown = mark.records, mark.unknown
        self._state, self._mark = state._replace(facts=facts), None
        return self.rest(end, _dumped(state))


_DIGESTS = ("prompts", "queued", "answered", "calls")


def _dumped(state: _State) -> str:
    values = {name: getattr(state, name) for name in ("last_prompt", "noted", *_DIGESTS)}
    return json.dumps({"kind": state.facts.kind, **values})


def _loaded(text: str, facts: Facts) -> _State:
    """Returns a state; if it is of another version of this reader, the one of the start."""
    try:
        state = loads(text)
        digests = {name: tuple(state[name]) for name in _DIGESTS}
        facts = replace(facts, kind=Kind(state["kind"]))
        prompt, noted = state["last_prompt"], dict(state["noted"])
        return _State(facts, last_prompt=prompt, noted=noted, **digests)
    except (KeyError, TypeError, ValueError):
        return _State(facts)


def _digest(words: str) -> str:
    return blake2b(words.encode("utf-8", "replace"), digest_size=4).hexdigest()


_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.{1,4096})$", re.MULTILINE)


def patched(patch: str) -> tuple[str, ...]:
    """Returns the files that a patch of an agent changes, each once."""
    return tuple(dict.fromkeys(map(str.strip, _PATCHED.findall(patch))))


def was_cut(text: str) -> bool:
    """Returns whether a turn that was read is only the ends of a longer text."""
    return len(text) > _READ


def ends_of(text: str, limit: int = LONGEST_TEXT, *, is_cut: bool = False) -> str:
    """Returns a text; of a long one both ends, with a mark between.

    What is beside the mark of one that `is_cut` may be a part of a secret, and is left out.
    """
    if not is_cut and len(text) <= limit:
        return text
    half = limit // 2
    start, end = text[:half], text[-half:]
    if is_cut:
        start = text.partition(_CUT)[0][:-_BESIDE][:half]
        end = text.rpartition(_CUT)[2][_BESIDE:][-half:]
    return f"{start}{_CUT}{end}"


_CUT = "\n[…]\n"
_BESIDE = 7_000
"""The characters on either side of a cut that are left out: no secret is longer."""
