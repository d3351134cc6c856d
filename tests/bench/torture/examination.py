"""The examination of what a run left."""

import gc
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

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


def facts(scratch: Scratch, listed: Result) -> Facts:
    """Returns what a person could lose, given the list of all memories."""
    found: dict[str, list[str]] = {}
    kept = [
        scratch.project / ".mind",
        scratch.home / ".mind/memories",
        scratch.home / ".mind/edges",
    ]
    single = [scratch.project / "CLAUDE.md", scratch.project / ".mcp.json"]
    single += [scratch.home / ".mind" / name for name in ("projects.json", "config.toml")]
    single += [scratch.home / ".mind/tokens.toml"]
    single += sorted((scratch.project / ".mcp/modules").rglob("*.*"))
    single += sorted((scratch.project / ".claude").rglob("*.json"))
    for path in [*single, *(file for folder in kept for file in sorted(folder.rglob("*")))]:
        name = path.relative_to(scratch.tree).as_posix()
        passing = re.search(r"/\.(index|local)(/|$)|/\.mind-[^/]*\.tmp$|lock$", name)
        if path.is_file() and not passing:
            found.setdefault(_same(name), []).append(_same(path.read_text("utf-8", "replace")))
    for row in (listed.answer or {}).get("memories", []):
        found.setdefault(f"trust of {_same(row['id'])}", []).append(row["trust"])
    found["commits"] = [scratch.git("rev-list", "--count", "--all").strip()]
    return {name: tuple(sorted(texts)) for name, texts in found.items()}


def lost(acknowledged: bool, before: Facts, after: Facts, now: Facts, errors: str) -> Iterator[str]:
    """Yields what an acknowledged run did not do, and what another left half done."""
    for name in sorted({*before, *after, *now}):
        old, new, here = (one.get(name, ()) for one in (before, after, now))
        if here == new:
            continue
        if acknowledged:
            if not (name.startswith("trust of ") and "could not be approved" in errors):
                yield f"acknowledged, but {name} is not as it should be"
        elif any(text not in (*old, *new, *_unapproved(name, errors)) for text in here):
            yield f"{name} is neither as before nor as after"
        elif not here and old and new:
            yield f"{name} is lost"


def _unapproved(name: str, errors: str) -> tuple[str, ...]:
    """Returns the trust that a memory may have, too, if a failure kept mind from approving it.

    A killed process prints nothing, and leaves each text that it wrote approved.
    """
    return ("untrusted",) if errors and name.startswith("trust of ") else ()


LIST = ("list", "--limit", "500", "--json")


class Fresh(NamedTuple):
    """The facts that do not depend on the index that was left."""

    ids: Sequence[str]
    found: Sequence[str]
    """The ids that a search answers with."""
    error: str
    """Of the next command."""


class Examination(NamedTuple):
    """The state of the project and the home after a run."""

    facts: Facts
    problems: Sequence[str]
    """Their own faults."""
    fresh: Fresh | None = None


def examined(scratch: Scratch, command: Command, fresh: Fresh | None = None) -> Examination:
    """Returns what a process of its own finds, in which no call fails."""
    run = scratch.fork(lambda: _examine(scratch, command, fresh))
    if run.status:
        return Examination({}, [f"it can't be examined: {run.errors.strip()[-500:]}"])
    held, problems, again = run.answer
    texts = {name: tuple(texts) for name, texts in held.items()}
    return Examination(texts, problems, Fresh(*again))


def _examine(scratch: Scratch, command: Command, fresh: Fresh | None) -> int:
    listed = scratch.call(*LIST)
    held = facts(scratch, listed)
    problems = []
    if command.name == "init":
        if (again := scratch.call("init", "--json")).status:
            problems.append(f"init can't be repeated: {again.errors.strip()}")
        listed = scratch.call(*LIST)
    problems += problems_of(scratch)
    here = (_ids(listed), _search(scratch))
    fresh = fresh or _refreshed(scratch)
    if here != (fresh.ids, fresh.found):
        problems.append(f"the index differs from a fresh one: {here} {fresh}")
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


def _refreshed(scratch: Scratch) -> Fresh:
    shutil.rmtree(scratch.project / ".mind/.index", ignore_errors=True)
    ids, found = _ids(scratch.call(*LIST)), _search(scratch)
    added = scratch.call("add", "Biscuits are in the tin", "--json")
    listed = not added.status and added.answer["id"] in _ids(scratch.call(*LIST))
    error = "" if listed else added.errors.strip()[:300] or "it is not listed"
    return Fresh(ids, found, error)


def _ids(listed: Result) -> list[str]:
    """Returns the ids of all memories."""
    return sorted(row["id"] for row in (listed.answer or {}).get("memories", [{"id": "no answer"}]))


def _search(scratch: Scratch) -> list[str]:
    """Returns the ids of the memories that a search answers with."""
    found = scratch.call("search", "tea at four", "--json").answer or {}
    return [row["id"] for row in found.get("memories", found.get("results", []))]


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
