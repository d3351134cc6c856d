"""One point: the files are put back, one is damaged, and the questions are asked."""

import gc
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from os.path import commonprefix
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from mimo.errors import MindError, StorageFailed
from mimo.index.database import Database, State
from mimo.index.meanings import Compared, Meanings
from mimo.index.pages import Pages
from mimo.memory.model import Filter
from mimo.mind import Mind
from mimo.operations import past
from tests.bench.damage import store
from tests.bench.damage.damages import CACHED, CLOSED, LIVE, OPEN, RANGES, Files, Point, damage
from tests.bench.torture.scratch import Scratch

_TOGETHER = 16
"""The number of pages of which one is examined with all questions, for each kind of damage."""

_TRIES = 4
"""The number of times that questions are asked until the index is complete again."""


class Outcome(NamedTuple):
    """The result of one point."""

    failures: list[str]
    is_detected: bool = False
    """True if the index was found to be damaged when it was opened."""
    is_shared: bool = False
    """True if the questions were asked for an earlier range of the same page only."""


_Made = list[set[bytes] | None]
"""The encoder's vectors that each comparison of a command had; None for one that failed."""


class Different(NamedTuple):
    """An answer that is not as expected."""

    words: tuple[str, ...]
    name: str
    answer: str
    expected: str
    made: _Made

    def __str__(self) -> str:
        return f"`{self.name}`: {_difference(self.expected, self.answer)}"


class Examination:
    """A store with its states, and the answers that are expected."""

    def __init__(self, top: Path) -> None:
        """Makes the store in a folder, and another one."""
        other = Scratch(top / "other")
        store.prepared(other, memories=3)
        self._other = other.tree
        self.scratch = Scratch(top / "own")
        store.prepared(self.scratch)
        self.earlier = self._files()
        store.changed(self.scratch)
        self.states: dict[str, Files] = {}
        self.expected = self._fresh()
        mind = Mind.open(self.scratch.project)
        self._owner = mind.index._data._owner
        mind.close()
        self.states[CLOSED] = self._files()
        self.states[OPEN] = self._left_open()
        logs = {name: data for name, data in self.states[OPEN].items() if _is_of_log(name)}
        self.states[LIVE] = {**self.states[CLOSED], **logs}
        if self._fresh(CACHED) != self.expected:
            raise SystemExit("the index in the cache gives other answers")
        self.states[CACHED] = self._files()
        self._asked: set[tuple[object, ...]] = set()
        gc.collect()
        gc.freeze()  # The forks need not copy what they never free.

    def try_(self, point: Point, *, blind: bool = False) -> Outcome:
        """Returns the outcome of a point; `blind` switches the checksums of pages off."""
        self._put_back_for(point)
        if point.state != LIVE:
            self._damage(point)
        is_detected = not blind and self._is_detected(point)
        # The damaged index is replaced: what follows is the same for all of its pages.
        same = (point.state, point.file, point.kind, -1 if is_detected else point.page // _TOGETHER)
        if is_detected and same in self._asked:
            return Outcome([], is_detected=True, is_shared=True)
        questions = store.about(point.name, point.at) if same in self._asked else store.QUESTIONS
        self._asked.add(same)
        first = sum(map(ord, repr(point))) % len(questions)
        questions = [*questions[first:], *questions[:first]]
        run = self.scratch.fork(partial(self._ask, point, questions, blind=blind))
        if run.status:
            return Outcome([f"it ended with {run.status}: {run.errors[-500:]}"], is_detected)
        return Outcome(json.loads(run.output), is_detected)

    def _put_back_for(self, point: Point) -> None:
        """Puts back the files of the state of a point."""
        is_log_in_use = point.state == LIVE and _is_of_log(point.file)
        state = OPEN if is_log_in_use else CLOSED if point.state == LIVE else point.state
        self._put_back(self.states[state], state)

    def _damage(self, point: Point) -> None:
        path = self.scratch.tree / point.file
        damage(point, path, path.read_bytes(), self.earlier, self._other)

    def _is_detected(self, point: Point) -> bool:
        """Returns whether an index of this file is damaged before anything is read from it."""
        path = self.scratch.tree / point.file
        if point.state == LIVE or not path.name.startswith("index.db"):
            return False
        try:
            return self._is_damaged(path)
        finally:
            self._put_back_for(point)  # SQLite has merged and removed the logs.
            self._damage(point)

    def _is_damaged(self, path: Path) -> bool:
        database = Database(path.with_name("index.db"))
        try:
            return database.state(self._owner) is not State.USABLE
        except MindError:
            return False
        finally:
            database.close()

    def _ask(self, point: Point, questions: store.Questions, *, blind: bool) -> int:
        """Asks until the answers are complete again, and prints those that are wrong."""
        if blind:
            Pages.are_sound = lambda *_, **__: True  # type: ignore[method-assign]
        incomplete: list[Different] = []
        differences: list[Different] = []
        with self._held() if point.state == LIVE else nullcontext():
            if point.state == LIVE:
                if before := self._differences(questions):
                    raise SystemExit(f"before the damage: {before}")
                self._damage(point)
            for _ in range(_TRIES):
                incomplete += differences
                differences = self._differences(questions)
                if not differences or not _loses_vectors(point):
                    break
        wrong = [*differences, *filter(self._is_wrong, incomplete)]
        print(json.dumps(list(map(str, wrong))))
        return 0

    def _differences(self, questions: store.Questions) -> list[Different]:
        """Returns the answers that are not as expected."""
        different = []
        for words in questions:
            with _noting() as made:
                ((name, answer),) = store.ask(self.scratch, [words]).items()
            if answer != (expected := self.expected[name]):
                different.append(Different(words, name, answer, expected, made))
        return different

    def _is_wrong(self, different: Different) -> bool:
        """Returns whether an answer is not that of a sound index with the same vectors."""
        self._put_back(self.states[CLOSED], CLOSED)
        with _limited_to(different.made):
            answers = store.ask(self.scratch, [different.words])
        return answers != {different.name: different.answer}

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Lets all commands of this process use one open memory, as those of a server do."""
        mind = Mind.open(self.scratch.project)
        with patch.object(Mind, "open", lambda *_, **__: mind), patch.object(mind, "close"):
            yield
        mind.close()

    def _files(self) -> Files:
        return {
            path.relative_to(self.scratch.tree).as_posix(): path.read_bytes()
            for path in store.index_files(self.scratch)
        }

    def _put_back(self, files: Files, state: str) -> None:
        index, cache = self.scratch.project / ".mind/.index", self.scratch.home / ".mind/cache"
        for folder in (index, cache):
            if folder.is_symlink():
                folder.unlink()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
        if state == CACHED:  # A link is treated as a folder that can't be written, also for root.
            index.rmdir()
            index.symlink_to("nothing")
        for name, data in files.items():
            path = self.scratch.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o600)

    def _fresh(self, state: str = CLOSED) -> dict[str, str]:
        """Makes the index again from nothing, and asks until all vectors are made."""
        self._put_back({}, state)
        before: dict[str, str] = {}
        while before != (now := store.ask(self.scratch)):
            before = now
        return now

    def _left_open(self) -> Files:
        """Returns the files while a process has the databases open, and has just changed them."""
        mind = Mind.open(self.scratch.project)
        for index in (mind.index, past.at(mind, "HEAD").mind.index):
            with index._data.newest.writing() as sql:
                sql.execute("REINDEX")
                sql.execute("INSERT INTO words (words) VALUES ('optimize')")
        own, meanings = mind.index._vectors, mind.index.meanings
        if not (own and meanings):
            raise SystemExit("the index has no vectors")
        for vectors in (own, meanings.vectors):
            stored = dict.fromkeys(vectors.empty(), b"") | dict(vectors.all())
            vectors.prune(sorted(stored)[::2])
            vectors.put(stored)
        files = self._files()
        mind.close()
        return files


def _is_of_log(file: str) -> bool:
    return file.endswith(("-wal", "-shm"))


def _loses_vectors(point: Point) -> bool:
    """Returns whether more of the encoder's vectors are lost than one search makes again.

    Meanwhile, an answer may be that of a sound index that has only the vectors made so far.
    """
    # With a link in it, the folder is not safe, and a new index in the user's cache is used.
    if point.kind.startswith("a link"):
        return True
    is_of_few = point.name.endswith(".rows") and point.kind in RANGES and point.at > 0
    return point.name.startswith("meanings") and not is_of_few


@contextmanager
def _noting() -> Iterator[_Made]:
    """Notes the encoder's vectors that each comparison has."""
    original, made = Meanings.compared, _Made()

    def compared(
        own: Meanings, sql: sqlite3.Connection, text: str, filter: Filter
    ) -> Compared | None:
        made.append(None)
        result = original(own, sql, text, filter)
        names = sql.execute("SELECT DISTINCT vector FROM units")
        made[-1] = own.vectors.known(name for (name,) in names)
        return result

    with patch.object(Meanings, "compared", compared):
        yield made


@contextmanager
def _limited_to(made: _Made) -> Iterator[None]:
    """Lets each comparison have these vectors of the encoder only, and make none."""
    original, left = Meanings.compared, iter(made)

    def compared(
        own: Meanings, sql: sqlite3.Connection, text: str, filter: Filter
    ) -> Compared | None:
        names = next(left)
        if names is None:
            raise StorageFailed("the vectors can't be read")
        own.vectors.prune(names)
        return original(own, sql, text, filter)

    with patch.object(Meanings, "compared", compared), patch.object(Meanings, "_catch_up"):
        yield


def _difference(expected: str, answer: str) -> str:
    """Returns the parts of two answers that differ, shortened."""
    start = len(commonprefix((expected, answer)))  # noqa: RUF071 - of letters
    return (
        f"{answer[max(0, start - 60) : start + 200]!r} instead of {expected[start : start + 200]!r}"
    )
