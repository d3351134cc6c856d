"""A person said something: which tools fit it, and what the memory knows of it."""

from mimo.errors import MindError
from mimo.features import context
from mimo.features.context import Line
from mimo.features.hooks import start, storage
from mimo.features.hooks.events import Say, fenced, takes_context
from mimo.features.hooks.exposure import Intent, classify
from mimo.features.hooks.scene import Scene
from mimo.features.hooks.storage import Exposure, Session
from mimo.memory.note import Note

BUDGET = 2_000
"""Characters of notes that a prompt may bring with it."""

MOST = 4
"""Memories that a prompt may bring with it."""


def classified(scene: Scene) -> Intent:
    """Returns what the prompt is about, and tells the server by a file."""
    said = classify(scene.event.prompt)
    tools = "every tool" if said.tools is None else f"{len(said.tools)} tools"
    told = f"{said.intent} ({said.confidence:g}): {tools}"
    told_ = Exposure(
        session=scene.event.session,
        intent=said.intent,
        confidence=said.confidence,
        tools=said.tools,
        at=scene.now,
    )
    try:
        storage.write(scene.root, told_)
    except MindError as error:
        told += f"; not handed on: {error.message}"
    scene.log(told)
    return said.intent


def say(scene: Scene, session: Session, intent: Intent) -> tuple[Say, Session]:
    """Returns what the agent is told beside the prompt: nothing where nothing surely fits."""
    if not (scene.allowed.context and takes_context(scene.event)):
        return Say(), session
    lines = [line for line in _lines(scene, intent) if line.mark not in session.shown]
    if not lines:
        return Say(), session
    known = start.context_lines(scene.root, scene.event.dialect)
    left, budget = [], BUDGET
    for line in lines:
        if line.text not in known and len(line.text) < budget:
            budget -= len(line.text) + 1
            left.append(line)
    session = session.and_shown(line.mark for line in lines)
    return Say(context=fenced("\n".join(line.text for line in left)) if left else ""), session


def _lines(scene: Scene, intent: Intent) -> list[Line]:
    with scene.look() as look:
        if look is None:
            return []
        found: list[Line] = []
        if intent is Intent.RESUMING and (resumed := start.own_checkpoint(scene, look)):
            found = context.checkpoint(resumed)
        marks = {line.mark for line in found}
        notes = look.related(scene.event.prompt, MOST)
        related = (context.told(note) for note in notes if _is_current(scene, note))
        return [*found, *(line for line in related if line.mark not in marks)]


def _is_current(scene: Scene, note: Note) -> bool:
    """Returns whether the file that a note was ingested from, if any, is as it was then."""
    if "/sources/" not in note.path:
        return True
    from mimo.operations.freshness import IngestedFiles

    for path, seen in IngestedFiles(scene.root).read().items():
        if seen.kept == note.digest:
            try:
                status = (scene.root / path).lstat()
            except OSError:
                return False
            return (status.st_size, status.st_mtime_ns) == (seen.size, seen.mtime_ns)
    return True
