"""One point: the files are put back, one is damaged, and the questions are asked."""

import gc
import json
import shutil
from collections.abc import Callable
from os.path import commonprefix
from pathlib import Path
from typing import NamedTuple

from mimo.errors import MindError
from mimo.index.database import Database, State
from mimo.index.pages import Pages
from mimo.memory.model import Filter
from mimo.mind import Mind
from mimo.operations import finding
from tests.bench.damage import store
from tests.bench.damage.damages import CACHED, CLOSED, LIVE, OPEN, RANGES, Files, Point, damage
from tests.bench.torture.scratch import Scratch

_NOTICES = ("not indexed yet", "has yet to make", "were read instead")

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
        self._owner = mind.index._owner
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
        is_of_log = point.state == LIVE and _is_of_log(point.file)
        state = OPEN if is_of_log else CLOSED if point.state == LIVE else point.state
        files = self.states[state]
        self._put_back(files, state)
        path = self.scratch.tree / point.file
        if point.state == LIVE:
            run = self.scratch.fork(lambda: self._live(point, path, blind=blind))
            return _outcome(run.status, run.output, run.errors)
        damage(point, path, files[point.file], self.earlier, self._other)
        is_detected = not blind and self._is_detected(path)
        # The damaged index is replaced: what follows is the same for all of its pages.
        same = (point.state, point.file, point.kind, -1 if is_detected else point.page // _TOGETHER)
        if is_detected and same in self._asked:
            return Outcome([], is_detected=True, is_shared=True)
        questions = store.about(point.name, point.at) if same in self._asked else store.QUESTIONS
        self._asked.add(same)
        run = self.scratch.fork(lambda: self._ask(point, questions, blind=blind))
        return _outcome(run.status, run.output, run.errors)._replace(is_detected=is_detected)

    def _is_detected(self, path: Path) -> bool:
        """Returns whether an index of this file is damaged before anything is read from it."""
        if not path.name.startswith("index.db"):
            return False
        database = Database(path.with_name("index.db"))
        try:
            return database.state(self._owner) is not State.USABLE
        except MindError:
            return False
        finally:
            database.close()

    def _ask(self, point: Point, questions: store.Questions, *, blind: bool) -> int:
        if blind:
            Pages.are_sound = lambda *_, **__: True  # type: ignore[method-assign]
        first = sum(map(ord, repr(point))) % len(questions)
        questions = [*questions[first:], *questions[:first]]
        differences: list[str] = []
        for _ in range(_TRIES):
            answers = store.ask(self.scratch, questions)
            wrong = [name for name, answer in answers.items() if answer != self.expected[name]]
            differences = [
                f"`{name}`: {_difference(self.expected[name], answers[name])}" for name in wrong
            ]
            if not wrong or not all(_may_differ(point, answers[name]) for name in wrong):
                break
        print(json.dumps(differences))
        return 0

    def _live(self, point: Point, path: Path, *, blind: bool) -> int:
        """Asks in one process that has the index open, before the damage and after it."""
        if blind:
            Pages.are_sound = lambda *_, **__: True  # type: ignore[method-assign]
        mind = Mind.open(self.scratch.project)
        before = _answers(mind)
        damage(point, path, path.read_bytes(), self.earlier, self._other)
        after = _answers(mind)
        for _ in range(_TRIES if _loses_vectors(point) else 0):
            after = _answers(mind)
        mind.close()
        pairs = zip(before, after, strict=True)
        print(
            json.dumps([f"{new[:300]} instead of {old[:300]}" for old, new in pairs if old != new])
        )
        return 0

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
        for index in (mind.index, finding.at(mind, "HEAD").mind.index):
            with index._database.writing() as sql:
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
    """Returns whether more of the encoder's vectors are lost than one search makes again."""
    is_of_few = point.name.endswith(".rows") and point.kind in RANGES and point.at > 0
    return point.name.startswith("meanings") and not is_of_few


def _may_differ(point: Point, answer: str) -> bool:
    """Returns whether an answer may be incomplete for a while.

    It states so, or many vectors of the encoder are lost: a search makes some of them.
    """
    # With a link in it, the folder is not safe, and a new index in the user's cache is used.
    are_lost = _loses_vectors(point) or point.kind.startswith("a link")
    return (are_lost and '"results"' in answer) or any(notice in answer for notice in _NOTICES)


def _difference(expected: str, answer: str) -> str:
    """Returns the parts of two answers that differ, shortened."""
    start = len(commonprefix((expected, answer)))  # noqa: RUF071 - of letters
    return (
        f"{answer[max(0, start - 60) : start + 200]!r} instead of {expected[start : start + 200]!r}"
    )


def _outcome(status: int, output: str, errors: str) -> Outcome:
    if status:
        return Outcome([f"it ended with {status}: {errors[-500:]}"])
    return Outcome(json.loads(output))


def _answers(mind: Mind) -> list[str]:
    """Returns answers of an open memory."""
    from mimo.features.search.commands import search

    past = finding.at(mind, "HEAD").mind
    ask: list[Callable[[], object]] = [
        lambda: search(mind, "kettle").results,
        lambda: search(mind, "who repairs the harbour lamp").results,
        lambda: search(mind, "로그인 토큰").results,
        lambda: mind.index.records(Filter()),
        lambda: mind.index.graph(("fact_05",), depth=3, types=(), most=9, now=mind.now()),
        lambda: search(past, "kettle").results,
        lambda: past.index.records(Filter()),
    ]
    return [repr(question()) for question in ask]
