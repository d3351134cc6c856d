"""The examination of what a run left."""

import gc
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from mimo.guard.audit import AuditLog
from mimo.mind import Mind
from mimo.operations import undoing
from mimo.store import files
from tests.bench.torture.commands import Command
from tests.bench.torture.scratch import Result, Scratch

Facts = Mapping[str, tuple[str, ...]]
"""Data that a user could lose, by a name for it: each must be whole."""


_VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?)?"), "TIME"),
    (re.compile(r"_\d{8}_[0-9a-z]{6}"), "_ID"),
    (re.compile(r"[0-9a-f]{16,}"), "HEX"),
    (re.compile(r"\b1\d{9}(\.\d+)?\b"), "SECONDS"),
)


def _same(text: str) -> str:
    for pattern, name in _VARIES:
        text = pattern.sub(name, text)
    return text


_LEFT_OUT = re.compile(
    r"/\.mind-[^/]*\.tmp$|lock$"  # A part of a write, or no data.
    r"|/\.local/(audit\.jsonl|trash/)"  # Read by record and by entry.
    r"|/audit/|/trust/|/\.local/trust-mark"  # Judged by `mind audit verify`, and by each approval.
    r"|/\.local/(events\.jsonl|accesses\.log)$"  # Not durable by design.
    r"|/\.local/(limits\.db(-journal|-wal|-shm)?|exposure\.json|adding|sessions/.*)$"  # Passing.
    r"|/\.local/ingested\.json$"  # Without it, ingested files are compared by their digests.
    r"|/clients/folders\.json$"  # An empty folder that can't be removed stays in it.
    r"|/logs/"
)
"""Files that are not compared. Every other file is, so that no new kind is forgotten."""
_FOLDERS_LEFT_OUT = {".git", ".index", "cache"}
"""Git's own, of which commits are counted, and indexes, whose answers are compared."""
_GROWS = re.compile(r"/executions/.*\.jsonl$")
"""Logs of which an interrupted run may have written any number of lines."""


def facts(scratch: Scratch, listed: Result) -> Facts:
    """Returns what a person could lose, given the list of all memories."""
    found: dict[str, list[str]] = {}

    def add(name: str, text: str) -> None:
        found.setdefault(_same(name), []).append(_same(text))

    for path in _files(scratch.tree):
        name, data = path.relative_to(scratch.tree).as_posix(), path.read_bytes()
        if path.suffix == ".db":
            add(name, hashlib.sha256(data).hexdigest()[:12])
        else:
            # What follows the last line of a log was never written.
            end = data.rfind(b"\n") + 1 if _GROWS.search(name) else len(data)
            add(name, data[:end].decode("utf-8", "replace"))
    for row in (listed.answer or {}).get("memories", []):
        add(f"trust of {row['id']}", row["trust"])
    add("commits", scratch.git("rev-list", "--count", "--all").strip())
    if (scratch.project / ".mind/.local").is_dir():
        mind = Mind.open(scratch.project)
        for each in filter(None, (mind, mind.user())):
            for name, text in _judged(scratch, each):
                add(name, text)
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
            digest = files.digest(path.read_bytes())
            words = "trusted" if mind.trust.trusted(digest) else "untrusted"
            yield f"trust of {path.relative_to(scratch.tree).as_posix()}", words
    for change in undoing.changes(mind, 500):
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
        remains = Counter(old) & Counter(new) <= Counter(here)
        also = _unapproved(name, errors)
        if acknowledged:
            lacks = remains and Counter(here) <= Counter(new)
            if not (
                (name.startswith("trust of ") and "could not be approved" in errors)
                or ("can't undo this" in errors and _lacks_undo(name, lacks, new, here))
                or (name.startswith(may_lack) and lacks)
            ):
                yield f"acknowledged, but {name} is not as it should be"
        elif _GROWS.search(name):
            first, text, last = ("".join(texts) for texts in (old, here, new))
            if not (text.startswith(first) and last.startswith(text)):
                yield f"{name} is neither as before nor as after"
        elif any(text not in (*old, *new, *also) for text in here):
            yield f"{name} is neither as before nor as after"
        elif len(here) < min(len(old), len(new)) or not (remains or also):
            yield f"{name} is lost"
        elif _is_changed(name.removeprefix("undo of "), before, now):
            yield f"the earlier text of {name} is lost"


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


def _unapproved(name: str, errors: str) -> tuple[str, ...]:
    """Returns the trust that a memory may have, too, if a failure kept mind from approving it.

    A killed process prints nothing, and leaves each text that it wrote approved.
    """
    return ("untrusted",) if errors and name.startswith("trust of ") else ()


LIST = ("list", "--limit", "500", "--json")
_QUESTIONS = (
    LIST,
    ("search", "tea at four", "--json"),
    # By meaning, and all memories.
    ("search", "warm beverage in the afternoon", "--threshold", "0", "--limit", "500", "--json"),
)


BY_MEANING = 4
"""Of so many points, one compares the vectors of the index, which takes a third longer."""


class Fresh(NamedTuple):
    """The facts that do not depend on the index that was left."""

    answers: Sequence[object]
    error: str
    """Of the next command."""


class Examination(NamedTuple):
    """The state of the project and the home after a run."""

    facts: Facts
    problems: Sequence[str]
    """Their own faults."""
    fresh: Fresh | None = None


def examined(
    scratch: Scratch, command: Command, fresh: Fresh | None = None, *, by_meaning: bool = True
) -> Examination:
    """Returns what a process of its own finds, in which no call fails.

    Only `by_meaning`, the vectors of the index that was left are asked, too.
    """
    run = scratch.fork(lambda: _examine(scratch, command, fresh, by_meaning=by_meaning))
    if run.status:
        return Examination({}, [f"it can't be examined: {run.errors.strip()[-500:]}"])
    held, problems, again = run.answer
    texts = {name: tuple(texts) for name, texts in held.items()}
    return Examination(texts, problems, Fresh(*again))


def _examine(scratch: Scratch, command: Command, fresh: Fresh | None, *, by_meaning: bool) -> int:
    listed = scratch.call(*LIST)
    held = facts(scratch, listed)
    problems = []
    if command.name == "init":
        if (again := scratch.call("init", "--json")).status:
            problems.append(f"init can't be repeated: {again.errors.strip()}")
        listed = scratch.call(*LIST)
    problems += problems_of(scratch)
    here = _answers(scratch, listed, _QUESTIONS if by_meaning else _QUESTIONS[:-1])
    fresh = fresh or _refreshed(scratch)
    for words, answer, right in zip(_QUESTIONS, here, fresh.answers, strict=False):
        if answer != right:
            problems.append(
                f"the index differs from a fresh one: {' '.join(words)}: {answer}, not {right}"
            )
    if fresh.error:
        problems.append(f"the next command fails: {fresh.error}")
    print(json.dumps((held, problems, fresh)))
    return 0


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


def _refreshed(scratch: Scratch) -> Fresh:
    for folder in (scratch.project, scratch.home / ".mind/memories"):
        shutil.rmtree(folder / ".mind/.index", ignore_errors=True)
    answers = _answers(scratch, scratch.call(*LIST), _QUESTIONS)
    added = scratch.call("add", "Biscuits are in the tin", "--json")
    ids = [row["id"] for row in (scratch.call(*LIST).answer or {}).get("memories", [])]
    listed = not added.status and added.answer["id"] in ids
    error = "" if listed else added.errors.strip()[:300] or "it is not listed"
    return Fresh(answers, error)


def _answers(scratch: Scratch, listed: Result, questions: Sequence[Sequence[str]]) -> list[object]:
    """Returns the answers of list and of the searches, with all fields of each memory."""
    answers = [listed.answer, *(scratch.call(*words).answer for words in questions[1:])]
    for answer in answers:
        for row in (answer or {}).get("results", ()):
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
        facts(scratch, scratch.call(*LIST))
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
