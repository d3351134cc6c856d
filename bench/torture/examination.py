"""The examination of what a run left."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from bench.torture.commands import Command
from bench.torture.figures import Figures
from bench.torture.scratch import Contents, Result, Scratch
from mimo.call import Call
from mimo.guard.audit import AuditLog
from mimo.mind import Mind
from mimo.operations import undoing
from mimo.project.memories import approvals_of

Facts = Mapping[str, tuple[str, ...]]
"""Data that a user could lose, by a name for it: each must be whole."""


_VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?)?"), "TIME"),
    (re.compile(r"_\d{8}_[0-9a-z]{6}"), "_ID"),
    (re.compile(r"\b1(\d{9}(\.\d+)?|\.\d+e\+09)\b"), "SECONDS"),  # SQLite prints both forms.
    (re.compile(r"[0-9a-f]{16,}"), "HEX"),
)


def _same(text: str) -> str:
    for pattern, name in _VARIES:
        text = pattern.sub(name, text)
    return text


_LEFT_OUT = re.compile(
    r"/\.mind-[^/]*\.tmp$|/\.mind-export-[^/]*/|lock$"  # A part of a write, or no data.
    r"|/\.merge_file_[^/]*$"  # The same, of git.
    r"|\.db-(journal|wal|shm)$"  # Of databases whose rows are compared.
    r"|/\.local/(audit\.jsonl|trash/)"  # Read by record and by entry.
    r"|/audit/"  # Judged by `mind audit verify`.
    r"|/trust\.db$|/\.local/trust-mark"  # Judged by each approval.
    r"|/\.local/(events\.jsonl|accesses\.log)$"  # Not durable by design.
    r"|/\.local/(limits-\w+\.db|adding)$"  # Passing.
    r"|/logs/"
)
"""Files that are not compared. Every other file is, so that no new kind is forgotten."""
_FOLDERS_LEFT_OUT = {".git", ".index", "cache"}
"""Git's own, which git is asked for, and indexes, whose answers are compared."""
_STATUS = "git status --porcelain --untracked-files=all"
_OF_GIT = ("git log --all --format=%s", _STATUS, "git config --local --list")
"""The questions to git. The status compares its commit and its index with the files."""
_GROWS = re.compile(r"/executions/.*\.jsonl$")
"""Logs of which an interrupted run may have written any number of lines."""
_STOPPED = re.compile(r'.*"kind": "end", "status": "interrupted", .*"error": "can\'t write .*\n\Z')
_ENTRIES = re.compile(r"/\.local/(ingested-\w+|imports/[^/]*)\.json$|/clients/folders\.json$")
"""JSON files whose entries are compared one by one."""
_MAY_BE_OLD = re.compile(
    r"/\.local/exposure\.json$|/sessions/"  # Of a session.
    r"|/private/\.gitignore$"  # `.mind/.gitignore` has a rule, too, and the next write tries again.
    r"|^home/\.mind/\.gitignore$|/\.mind/index-owner$"  # Written before an index is opened.
    r"|/\.local/ingested-\w+\.json$"  # Without an entry, the digests of the files are compared.
    r"|/clients/folders\.json$"  # An empty folder that can't be removed stays in it.
)
"""Files that an acknowledged command may have failed to write; what they contain must be whole."""


def facts(scratch: Scratch) -> Facts:
    """Returns the data that a user could lose, without asking the index."""
    found: dict[str, list[str]] = {}

    def add(name: str, text: str) -> None:
        found.setdefault(_same(name), []).append(_same(text))

    for path in _files(scratch.tree):
        name, data = path.relative_to(scratch.tree).as_posix(), path.read_bytes()
        if name.endswith(".db") and path.parent.name == ".local":
            parts = _rows(path)
        else:
            # What follows the last line of a log was never written.
            end = data.rfind(b"\n") + 1 if _GROWS.search(name) else len(data)
            parts = _parts(name, data[:end].decode("utf-8", "replace"))
        for text in parts:
            add(name, text)
    for command in _OF_GIT:
        for line in _lines(scratch, command):
            add(command, line)
    if (scratch.project / ".mind/.local").is_dir():
        mind = Mind.open(scratch.project)
        for each in filter(None, (mind, mind.user())):
            for name, text in _judged(scratch, each):
                add(name, text)
    return {name: tuple(sorted(texts)) for name, texts in found.items()}


def _lines(scratch: Scratch, command: str) -> list[str]:
    """Returns the lines that git prints, without those about new files that are left out."""
    lines = scratch.git(*command.split()[1:]).splitlines()
    return [line for line in lines if not _LEFT_OUT.search(f"/{line.removeprefix('?? ')}")]


def _rows(path: Path) -> list[str]:
    """Returns the rows of a database. Opening its copy reverts an interrupted change."""
    with tempfile.TemporaryDirectory() as folder:
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, folder)
        with contextlib.closing(sqlite3.connect(Path(folder, path.name))) as database:
            return [line for line in database.iterdump() if line.startswith("INSERT ")]


def _parts(name: str, text: str) -> list[str]:
    """Returns the entries of a file that is compared by entry, of any other its text."""
    if _ENTRIES.search(name):
        with contextlib.suppress(ValueError):
            entries = json.loads(text)
            if isinstance(entries, dict):  # A manifest of an import has a list of its files.
                entries = [*entries.pop("files", {}).items(), *entries.items()]
            return list(map(repr, entries))
    return [text]


def _trusts(listed: Result) -> dict[str, tuple[str, ...]]:
    """Returns the trust of each memory in a list."""
    found: dict[str, list[str]] = {}
    for row in (listed.answer or {}).get("memories", []):
        found.setdefault(_same(f"trust of {row['id']}"), []).append(row["trust"])
    return {name: tuple(sorted(texts)) for name, texts in found.items()}


def _files(top: Path) -> Iterator[Path]:
    """Yields the files that are compared."""
    for folder, folders, names in os.walk(top):
        folders[:] = sorted({*folders} - _FOLDERS_LEFT_OUT)
        paths = (Path(folder, name) for name in sorted(names))
        for path in paths:
            # A server that was killed leaves its socket.
            if not _LEFT_OUT.search(path.as_posix()) and path.is_file():
                yield path


def _judged(scratch: Scratch, mind: Mind) -> Iterator[tuple[str, str]]:
    """Yields the approvals, the changes that can be undone, and the records of writing calls."""
    root = mind.project.root
    place = root.relative_to(scratch.tree).as_posix()
    for path in _files(root / ".mind"):
        if "/.local/" not in path.as_posix():
            names = approvals_of(path.relative_to(root).as_posix(), path.read_bytes())
            words = "trusted" if mind.trust.trusted(*names) else "untrusted"
            yield f"trust of {path.relative_to(scratch.tree).as_posix()}", words
    for change in undoing.changes(Call(mind), 500):
        end = ", undone" if change.undone else ""
        for kept in mind.trash.kept(change.entry.id):
            text = (kept.before or b"").decode("utf-8", "replace")
            kind = "new " if kept.before is None else ""
            yield f"undo of {kind}{place}/{kept.path}", f"{change.entry.command}{end}: {text}"
    log = AuditLog(mind.home, root, os.urandom)
    for path in log.paths():
        for _, link in log.links(path):
            if link:
                event = link.event
                if (event.get("operation"), event.get("status")) == ("write", "ok"):
                    subject = "a value" if "namespace" in event else "another call"
                    yield f"record of {subject}", str(event["tool"])


def lost(
    acknowledged: bool,
    before: Facts,
    after: Facts,
    now: Facts,
    errors: str,
    may_lack: tuple[str, ...] = (),
) -> Iterator[str]:
    """Yields what an acknowledged run did not do, and what another left half done.

    What is new may be missing in facts whose names begin with one of `may_lack`.
    """
    for name in sorted({*before, *after, *now}):
        old, new, here = (one.get(name, ()) for one in (before, after, now))
        if here == new:
            continue
        also = _unapproved(name, errors, before, after)
        remains = Counter(old) & Counter(new) <= Counter(here)
        if acknowledged:
            lacks = remains and Counter(here) <= Counter(new)
            if not (
                (_MAY_BE_OLD.search(name) and set(here) <= {*old, *new})
                or ("could not be approved" in errors and set(here) <= {*new, *also})
                or ("can't undo this" in errors and _lacks_undo(name, lacks, new, here))
                or (name.startswith(may_lack) and lacks)
            ):
                yield f"acknowledged, but {name} is not as it should be"
        elif reason := _half_done(name, old, new, here, also):
            yield f"{name} is {reason}"
        elif not (also or _GROWS.search(name)) and _is_changed(
            name.removeprefix("undo of "), before, now
        ):
            yield f"the earlier text of {name} is lost"


def _half_done(
    name: str, old: Sequence[str], new: Sequence[str], here: Sequence[str], also: Sequence[str]
) -> str:
    """Returns why data is neither as before a command nor as after it, empty if it is."""
    if name == _STATUS:
        return ""  # Of commands that change git's index, it is compared once they were repeated.
    if _GROWS.search(name):
        first, text, last = ("".join(texts) for texts in (old, here, new))
        ended = _STOPPED.sub("", text)  # A run that could not go on records that.
        is_whole = text.startswith(first) and last.startswith((text, ended))
        return "" if is_whole else "neither as before nor as after"
    if any(text not in (*old, *new, *also) for text in here):
        return "neither as before nor as after"
    remains = Counter(old) & Counter(new) <= Counter(here)
    return "lost" if len(here) < min(len(old), len(new)) or not (remains or also) else ""


def _unlike(after: Facts, again: Facts, errors: str) -> Iterator[str]:
    """Yields what is not as after an undisturbed run, although both were repeated.

    Both runs have records, and changes that can be undone. A merge is not made a second time, so
    one that could not be approved stays untrusted.
    """
    may_differ = ["record of ", "undo of "]
    if "could not be approved" in errors:
        may_differ.append("trust of ")
    for name in sorted({*after, *again}):
        if after.get(name) != again.get(name) and not (
            name.startswith(tuple(may_differ)) or _MAY_BE_OLD.search(name)
        ):
            yield f"repeated, but {name} is not as it should be"


def _lacks_undo(name: str, lacks: bool, new: Sequence[str], here: Sequence[str]) -> bool:
    """Returns whether a command is missing in the trash that only created files.

    If it was an undo, the earlier command does not count as undone.
    """
    if name.startswith("undo of new ") and lacks:
        return True
    undone = sorted(text.replace(", undone: ", ": ", 1) for text in new)
    return name.startswith("undo of ") and undone == sorted(here)


def _is_changed(name: str, before: Facts, now: Facts) -> bool:
    """Returns whether a file is missing or different; False if several have the name."""
    return len(before.get(name, ())) == 1 and before[name] != now.get(name)


def _unapproved(name: str, errors: str, before: Facts, after: Facts) -> tuple[str, ...]:
    """Returns the trust that a memory may have, too, if a failure kept mind from approving it.

    That is one that the command writes. A killed process prints nothing, and leaves each text that
    it wrote approved.
    """
    subject = name.removeprefix("trust of ")
    if not errors or subject == name:
        return ()
    written = (path for path in {*before, *after} if before.get(path) != after.get(path))
    return ("untrusted",) if any(subject in path for path in written) else ()


LIST = ("list", "--limit", "500", "--json")
_QUESTIONS = (
    LIST,
    ("search", "tea at four", "--json"),
    # By meaning, and all memories.
    ("search", "warm beverage in the afternoon", "--threshold", "0", "--limit", "500", "--json"),
)


BY_MEANING = 4
"""Of so many points, one compares the vectors of the index, which takes a third longer."""
ADDS_FIRST = 3
"""Of so many points, one adds a memory before any other command reads the index that was left."""


class Examination(NamedTuple):
    """The state of the project and the home after a run."""

    facts: Facts
    problems: Sequence[str]
    """Their own faults."""
    fresh: Sequence[object] = ()
    """The answers of a rebuilt index, which do not depend on the one that was left."""
    again: Facts = MappingProxyType({})
    """The facts after the command was repeated; none if it was not."""


def faults_of(
    command: Command,
    acknowledged: bool,
    before: Facts,
    after: Examination,
    now: Examination,
    errors: str,
    may_lack: tuple[str, ...],
) -> Iterator[str]:
    """Yields everything that is wrong after a run; see `lost`."""
    # git itself removes a file before it makes the new one, so only its repetition is compared.
    if acknowledged or not command.is_gits:
        yield from lost(acknowledged, before, after.facts, now.facts, errors, may_lack)
    yield from _unlike(after.again, now.again, errors)
    yield from now.problems


def examined(
    scratch: Scratch, command: Command, fresh: Sequence[object] = (), *, at: int = 0
) -> Examination:
    """Returns what a process of its own finds, in which no call fails.

    The number of the point determines whether it compares vectors, and whether it adds first.
    """
    run = scratch.fork(lambda: _examine(scratch, command, fresh, at))
    if run.status:
        return Examination({}, [f"it can't be examined: {run.errors.strip()[-500:]}"])
    held, problems, answers, again = run.answer
    first, second = ({name: tuple(texts) for name, texts in each.items()} for each in (held, again))
    return Examination(first, problems, answers, second)


CHECKED = 16
"""Of so many points that left one state, the last is examined, too."""


class Examiner:
    """Examines what runs left; equal states share an examination."""

    def __init__(self, scratch: Scratch, figures: Figures) -> None:
        """Takes the figures that count what was shared."""
        self._scratch, self._figures = scratch, figures
        self._known: dict[object, Examination] = {}
        self._times: Counter[object] = Counter()
        self._fresh: dict[object, Sequence[object]] = {}

    def examined(self, command: Command, contents: Contents, at: int) -> Examination:
        """Returns what is found in the tree, which has these contents; see `examined`."""
        key = (command.name, contents.everything, at % ADDS_FIRST == 0, at % BY_MEANING == 0)
        self._times[key] += 1
        if key in self._known and self._times[key] % CHECKED:
            self._figures.shared += 1
            return self._known[key]
        self._figures.checked += key in self._known
        place = (command.name, contents.without_index)
        now = examined(self._scratch, command, self._fresh.get(place, ()), at=at)
        self._fresh[place] = now.fresh
        self._known[key] = now
        return now


def _examine(scratch: Scratch, command: Command, fresh: Sequence[object], at: int) -> int:
    held = dict(facts(scratch))
    problems = []
    if command.recover:
        command.recover(scratch)
        run = scratch.call(*command.words_in(scratch))
        if run.status:
            problems.append(f"it can't be repeated: {run.errors.strip()}")
    adds_first = at % ADDS_FIRST == 0
    if adds_first:
        problems += _added(scratch)
    listed = scratch.call(*LIST)
    held |= _trusts(listed)
    again = {**facts(scratch), **_trusts(listed)} if command.recover else {}
    problems += problems_of(scratch)
    here = _answers(scratch, listed, _QUESTIONS if at % BY_MEANING == 0 else _QUESTIONS[:-1])
    if not adds_first:
        problems += _added(scratch)
    fresh = fresh or _refreshed(scratch)
    for words, answer, right in zip(_QUESTIONS, here, fresh, strict=False):
        if answer is None:
            problems.append(f"it fails: {' '.join(words)}")
        elif answer != right:
            problems.append(
                f"the index differs from a fresh one: {' '.join(words)}: {answer}, not {right}"
            )
    print(json.dumps((held, problems, fresh, again)))
    return 0


def _added(scratch: Scratch) -> Iterator[str]:
    """Adds a memory and lists it, with the index as it is, and removes its file again."""
    added = scratch.call("add", "Biscuits are in the tin", "--json")
    if added.status:
        yield f"the next `add` fails: {added.errors.strip()[:300]}"
        return
    if added.answer["id"] not in [
        row["id"] for row in (scratch.call(*LIST).answer or {}).get("memories", [])
    ]:
        yield "the next `add` is not listed"
    (scratch.project / added.answer["file"]).unlink()


def problems_of(scratch: Scratch) -> Iterator[str]:
    health = scratch.call("doctor", "--json").answer or {"checks": [{"verdict": "fault"}]}
    for check in health["checks"]:
        if check["verdict"] == "fault" or (check["name"] == "audit" and check.get("hint")):
            yield f"doctor: {check.get('name')}: {check.get('message')}"
    if (verdict := scratch.call("audit", "verify", "--json")).status:
        yield f"audit verify: {verdict.output[:300]}{verdict.errors[:200]}"
    if any((scratch.project / ".mind/.local").glob("executions/*/journal.jsonl")):
        runs = scratch.call("procedure", "runs", "--json").answer or {"damaged": ["all"]}
        if runs.get("damaged"):
            yield f"procedure runs: {runs['damaged']}"


def _refreshed(scratch: Scratch) -> Sequence[object]:
    for folder in (scratch.project, scratch.home / ".mind/memories"):
        shutil.rmtree(folder / ".mind/.index", ignore_errors=True)
    return _answers(scratch, scratch.call(*LIST), _QUESTIONS)


def _answers(scratch: Scratch, listed: Result, questions: Sequence[Sequence[str]]) -> list[object]:
    """Returns the answers of list and of the searches, with all fields of each memory."""
    answers = [listed.answer, *(scratch.call(*words).answer for words in questions[1:])]
    for answer in answers:
        for row in (answer or {}).get("memories", (answer or {}).get("results", ())):
            # A fact of its own; the first `add` of a project begins its approvals.
            row.pop("trust", None)
            if "confidence" in row:
                row["confidence"] = round(row["confidence"], 1)  # It decreases with time.
    return answers


def warm(scratch: Scratch) -> None:
    """Imports, loads and compiles what a run needs, so that the forks need not.

    It runs on a copy of its own, as what a process remembers of files goes by their paths.
    """
    here, environ, own = Path.cwd(), dict(os.environ), scratch.tree
    scratch.tree = scratch.top / "warm"
    shutil.copytree(own, scratch.tree, symlinks=True)
    try:
        scratch.enter()
        facts(scratch)
        list(_added(scratch))
        list(problems_of(scratch))
        _refreshed(scratch)
    finally:
        shutil.rmtree(scratch.tree)
        scratch.tree = own
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environ)
    import_module("mimo.server.stdio")
    gc.collect()
    gc.freeze()
