"""Sessions of a real client, and the sessions that mind reads in its files.

Two prompts with an edit and a command that fails, in a session that is continued, then one in a
copy of it if the client makes copies. Then mind must hold these prompts, and not one more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clients.model import Json, Model, serving
from clients.recipes import Place, Recipe
from clients.sessions import AT_START, PROMPT, WITH_PROMPT, Evidence, Session, prepare, send
from mimo.extensions.sessions.model import Progress
from mimo.extensions.sessions.readers import reader_of

SECOND = 'Call the page\'s key a "cursor" from now on, because offset means rows.'
FORKED = "And now the same for invoices."
ANSWER = "Done: the page has a key."
ERROR = "no such key: orders"
FILE = "a.py"

_UNSAID = (
    *(AT_START, WITH_PROMPT, "mind-context", "session_context", "environment_context"),
    *("system-reminder", "system_reminder", "hook_context", "user_input", "current_datetime"),
)
"""Texts that are not of the user, nor of the agent."""

_QUIET_SECONDS = 6
"""A session is read some seconds after its last change."""


@dataclass
class Reading:
    """The result of one run."""

    version: str = ""
    prompts: list[str] = field(default_factory=list)
    """The prompts of the session, as mind holds them."""
    files: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """The prompts of the other sessions."""
    records: int = 0
    unknown: int = 0
    problems: list[str] = field(default_factory=list)


def read_back(recipe: Recipe, bin: Path, base: Path, scope: str) -> Reading:
    """Runs the client with mind's hooks, and returns what mind then holds of its sessions."""
    reading = Reading()
    project = base / "project"
    model = Model(
        calls=(recipe.edit(project / FILE, "x = 1\n"), recipe.try_command(f"echo {ERROR}; exit 3")),
        text=ANSWER,
    )
    with serving(model):
        session = Session(recipe, Place(base / "home", project, model.address), bin)
        evidence = Evidence()
        prepare(session, evidence)
        reading.version = evidence.version
        session.mind("config", "hook.capture", "off")
        session.mind("config", "sessions.enabled", "on")
        session.mind("install", recipe.client, "--scope", scope)
        outputs = [send(session, model, PROMPT)]
        _index(session)
        id = _native_id(session)
        if recipe.starts_files:
            time.sleep(61 - time.time() % 60)
        outputs.append(send(_continued(session, id), model, SECOND))
        if recipe.fork:
            outputs.append(send(_continued(session, id, recipe.fork), model, FORKED))
        _index(session)
        if recipe.archive:
            words = (word.replace("{id}", id) for word in recipe.archive)
            outputs.append(session.run(recipe.program, *words))
            _index(session)
    (base / "output.txt").write_text("\n".join(f"{each.stdout}{each.stderr}" for each in outputs))
    (base / "requests.json").write_text(json.dumps([request.body for request in model.requests]))
    reading.problems += model.problems
    _fill(reading, session)
    _check(reading, recipe)
    return reading


def _index(session: Session) -> None:
    time.sleep(_QUIET_SECONDS)
    session.mind("sessions", "index")


def _native_id(session: Session) -> str:
    """Returns the client's id of its first session."""
    reader = reader_of(session.recipe.client)
    for source in reader.sources({}, session.place.home):
        for part in reader.read(source, Progress()):
            if any(turn.role == "user" for turn in part.turns):
                return part.facts.native_id
    raise AssertionError("no session was read")


def _continued(session: Session, id: str, more: Sequence[str] = ()) -> Session:
    """Returns a session in which prompts continue an earlier one."""
    recipe = session.recipe
    resume, then = ([word.replace("{id}", id) for word in w] for w in (recipe.resume, recipe.then))
    if recipe.then:
        then += more
    else:
        resume += more
    words = [word for word in recipe.words if word not in recipe.first]
    return replace(session, recipe=replace(recipe, words=(*resume, *words, *then)))


def _fill(reading: Reading, session: Session) -> None:
    rows = _json(session, "sessions", "--hidden")["sessions"]
    for row in rows:
        turns = _json(session, "sessions", "show", row["id"])["turns"]
        prompts = [turn["content"] for turn in turns if turn["role"] == "user"]
        wrong = [text for text in _UNSAID for turn in turns if text in turn["content"]]
        reading.problems += [f"`{text}` is in session {row['id']}" for text in wrong]
        if PROMPT in prompts:
            reading.prompts += prompts
            reading.files += [file for turn in turns for file in turn.get("files") or ()]
            reading.errors += [turn["error"] for turn in turns if turn.get("error")]
            if ANSWER not in [turn["content"] for turn in turns if turn["role"] == "agent"]:
                reading.problems.append("the agent's answer is missing")
        else:
            reading.others += prompts
    reader = reader_of(session.recipe.client)
    for source in reader.sources({}, session.place.home):
        for part in reader.read(source, Progress()):
            reading.records += part.records
            reading.unknown += part.unknown


def _json(session: Session, *words: str) -> Json:
    value: Any = json.loads(session.mind(*words, "--json"))
    return dict(value.get("data") or value)


def _check(reading: Reading, recipe: Recipe) -> None:
    """Notes each difference between what was done and what was read."""
    is_continued = bool(recipe.resume or recipe.then)
    others = [SECOND] * (not is_continued) + [FORKED] * bool(recipe.fork)
    for name, actual, expected in (
        ("prompts", reading.prompts, [PROMPT, SECOND] if is_continued else [PROMPT]),
        ("files", reading.files, [FILE]),
        ("errors", reading.errors, [ERROR]),
        ("prompts of other sessions", reading.others, others),
    ):
        if actual != expected:
            reading.problems.append(f"{name}: {actual}, not {expected}")
