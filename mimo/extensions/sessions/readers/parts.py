"""The parts of a session as a reader comes to know them, record by record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from mimo.api import replace
from mimo.extensions.sessions.model import LONGEST_TEXT, Facts, Part, Progress, Role, Turn
from mimo.extensions.sessions.readers.wrappings import last_line, without_notes, words_of

_TURNS = 500
"""The number of turns of a part, at most about: what bounds memory."""

_READ = LONGEST_TEXT + 12_000
"""The most characters of a turn that are read: a secret at a cut is masked before the last one."""


class Parts:
    """Collects the turns of one session, and yields them in parts."""

    def __init__(self, facts: Facts, *, is_whole: bool) -> None:
        """Takes what is known already; `is_whole` if the source is read from its start."""
        self.facts = facts
        self.records = self.unknown = 0
        self._turns: list[Turn] = []
        self._calls: dict[str, int] = {}
        self._replaces = is_whole
        self._message = ""

    def learn(self, **facts: Any) -> None:
        """Notes facts of the session that are not known yet; empty ones say nothing."""
        new = {name: value for name, value in facts.items() if value and not self._has(name)}
        self.correct(**new)

    def correct(self, **facts: Any) -> None:
        """Notes facts that replace what was known; empty ones say nothing."""
        new = {n: value for n, value in facts.items() if value and value != getattr(self.facts, n)}
        if new:
            self.facts = replace(self.facts, **new)

    def _has(self, name: str) -> bool:
        return bool(getattr(self.facts, name))

    def say(
        self, text: str, at: datetime | None, native_id: str = "", *, is_typed: bool = True
    ) -> None:
        """Adds what the user said, unless a program wrote it, or it is the turn before again."""
        words = words_of(text)
        last = self._turns[-1] if self._turns else None
        if words and not (last and last.role is Role.USER and last.text == words):
            self._add(Role.USER, words, at, native_id, is_typed=is_typed)

    def answer(
        self, text: str, at: datetime | None, native_id: str = "", message: str = ""
    ) -> None:
        """Adds what the agent said; blocks of one `message` in a row are one turn."""
        words = without_notes(text)
        last = self._turns[-1] if self._turns else None
        if not words:
            return
        if message and message == self._message and last and last.role is Role.AGENT:
            self._turns[-1] = replace(last, text=ends_of(f"{last.text}\n\n{words}", _READ))
        else:
            self._add(Role.AGENT, words, at, native_id)
        self._message = message

    def call(
        self,
        line: str,
        at: datetime | None,
        native_id: str = "",
        *,
        id: str = "",
        files: Sequence[str] = (),
    ) -> None:
        """Adds the call of a tool; `id` is what its result names."""
        if id:
            self._calls[id] = len(self._turns)
        self._add(Role.TOOL, " ".join(line.split()), at, native_id, tuple(filter(None, files)))

    def fail(self, id: str, output: str) -> None:
        """Notes that a call failed: the last line of its output is kept."""
        place = self._calls.get(id)
        if place is not None:
            error = last_line(output) or "failed"
            self._turns[place] = replace(self._turns[place], error=error)

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

    def full(self, progress: Progress) -> Iterator[Part]:
        """Yields the turns so far as a part if they are many and end before a user's turn."""
        if len(self._turns) >= _TURNS:
            yield self.rest(progress)

    def rest(self, progress: Progress) -> Part:
        """Returns the turns that no part has yet."""
        part = Part(self.facts, self._turns, progress, self.records, self.unknown, self._replaces)
        self._turns, self._calls, self._message = [], {}, ""
        self.records = self.unknown = 0
        self._replaces = False
        return part


def ends_of(text: str, limit: int = LONGEST_TEXT) -> str:
    """Returns a text; of a long one both ends, with a mark between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[…]\n{text[-half:]}"
