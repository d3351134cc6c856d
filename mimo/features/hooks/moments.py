"""What happened in a client -> what is said to it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from mimo.errors import MindError
from mimo.features import context as sections
from mimo.features.hooks import scene as scenes
from mimo.features.hooks import storage
from mimo.features.hooks.events import (
    Dialect,
    Edit,
    Event,
    Moment,
    Say,
    answer,
    fenced,
    without_fenced,
)
from mimo.features.hooks.exposure import Intent
from mimo.features.hooks.scene import Scene
from mimo.features.hooks.storage import Session
from mimo.memory.note import Note, plain

# Which edges a text that is about to be written runs into.


_MOST_READ = 200_000


class Known(NamedTuple):
    """An edge, and whether it is of the project."""

    note: Note
    of_project: bool = True


class Hit(NamedTuple):
    """An edge, and where a text meets it."""

    note: Note
    path: str
    line: int
    """1-based, in the text that is to be written."""


def met(known: Sequence[Known], edits: Iterable[Edit], stack: Sequence[str] = ()) -> list[Hit]:
    """Returns the edges that are met, the worst first, each where it is met first.

    When one is met is the same as for `mind edges check`.
    """
    # What most tools never need: an edge to hold their text against.
    from mimo.features.edges import checking, diffs
    from mimo.features.edges.edge import Told, edge_of
    from mimo.text.phrases import heading

    edges = {}
    for one in known:
        note = one.note
        called = heading(note.title, note.text, note.topic or note.id)
        edge = edge_of(Told(note.id, called, note.text, note.extra))
        edges[id(edge)] = (edge, one)
    added = [diffs.whole(edit.path, edit.text[:_MOST_READ]) for edit in edits]
    held = [(edge, one.of_project) for edge, one in edges.values()]
    hits: dict[int, Hit] = {}
    for warned in checking.check(held, added, stack=stack):
        note = edges[id(warned.edge)][1].note
        hits.setdefault(id(warned.edge), Hit(note, warned.path, warned.line))
    return [hits[key] for key in sorted(hits, key=lambda key: edges[key][0].severity.rank)]


# The client's own summary of a session, kept as a private memory.


LEAST = 200
"""Characters of last words that are worth a memory: `Done.` is not."""

SUMMARY_MOST = 20_000
"""Characters of a summary that are kept."""


def masked(text: str) -> str:
    """Returns a client's words without their secrets, which no agent can allow itself to keep."""
    from mimo.privacy.model import without
    from mimo.privacy.secrets import secrets_in

    return without(text, secrets_in(text, cut=True, allowing=False))


def keep(scene: Scene, session: Session, text: str, *, closing: bool = False) -> Session:
    """Keeps a summary and returns the session, which knows its memory. Raises `MindError`.

    Only what is secret in it is left out. A session has one memory: a later summary takes the
    place of an earlier one, and what was said at the end goes below it.
    """
    from mimo.errors import NotFound
    from mimo.memory.model import Kind
    from mimo.mind import Mind
    from mimo.operations import finding, saving

    words = masked(without_fenced(text).strip()[:SUMMARY_MOST])
    if not words or not scene.allowed.summaries:
        return session
    opened = Mind.open(
        scene.root, project=scene.root, environ=scene.environ, clock=lambda: scene.now
    )
    mind = opened.acting_as(scene.event.dialect.value)
    try:
        if session.memory:
            try:
                record = finding.one(mind, session.memory)
            except NotFound:
                record = None
            if record:
                said = record.memory.content
                both = f"{said}\n\nAt the end: {words}" if closing else words
                saving.edit(mind, record, content=both)
                return session
        title = f"Session of {scene.now:%Y-%m-%d}"
        draft = saving.draft(Kind.CONTEXT, words, title=title, category="session")
        record = saving.store(mind, draft, private=True)
        return session._replace(memory=record.memory.id)
    finally:
        opened.close()


# A tool is about to write: what that runs into, said once in a session.


MOST = 3
"""Edges that are told at once, the worst first."""

_LOOKED_AT = 200


def say(scene: Scene, session: Session) -> tuple[Say, Session]:
    """Returns a question where the worst kind of edge is met, a remark for any other."""
    if not (scene.event.edits and scene.allowed.edges):
        return Say(), session
    known = [*_edges(scene), *_everybodys(scene)]
    if not known:
        return Say(), session
    stack = _stack(scene) if any(not one.of_project for one in known) else ()
    met_ = met(known, scene.event.edits, stack)
    hits = [hit for hit in met_ if hit.note.id not in session.warned]
    if not hits:
        return Say(), session
    hits = hits[:MOST]
    session = session.and_warned(hit.note.id for hit in hits)
    scene.log(f"runs into {', '.join(hit.note.id for hit in hits)}")
    grave = [hit for hit in hits if hit.note.extra.get("severity") == "critical"]
    notice = "; ".join(_told(hit) for hit in hits)
    stop = f"mind: this runs into a known edge: {'; '.join(map(_told, grave))}" if grave else ""
    context = fenced("\n".join(f"- Known edge: {_told(hit)}" for hit in hits))
    return Say(context=context, notice=f"mind: known edge: {notice}", stop=stop), session


def _edges(scene: Scene) -> list[Known]:
    with scene.look() as look:
        found = look.newest("edge", _LOOKED_AT, private=True) if look else []
    return [Known(note) for note in found]


def _everybodys(scene: Scene) -> list[Known]:
    """Returns the edges of the user's own home, which are looked at where there are any."""
    if not (scene.home / "edges").is_dir():
        return []
    from mimo.features.edges.storage import GlobalEdges

    memories = (record.memory for record in GlobalEdges(scene.home).all()[0])
    return [
        Known(
            Note(
                id=memory.id,
                kind="edge",
                title=memory.title or "",
                text=memory.content,
                created=memory.created,
                extra=memory.extra,
            ),
            of_project=False,
        )
        for memory in memories
    ]


def _stack(scene: Scene) -> tuple[str, ...]:
    from mimo.features.edges import stack

    return stack.detect(scene.root)


def _told(hit: Hit) -> str:
    return f"{sections.gotcha(hit.note)} ({plain(hit.path, 120)}, line {hit.line} of what is new)"


_STARTS_ANEW = (Dialect.CLAUDE, Dialect.CODEX)
"""Clients that begin a session anew after they cut a conversation short."""


def react(
    event: Event, *, home: Path, now: datetime, environ: Mapping[str, str]
) -> dict[str, Any] | None:
    """Returns what to print for a client; None for nothing. Raises `MindError`."""
    scene = None
    idle = event.moment is Moment.TOOL and not event.edits
    if event.moment is not Moment.OTHER and not idle:
        scene = scenes.found(event, home=home, now=now, environ=environ)
    return answer(event, _said(scene) if scene else Say())


def _said(scene: Scene) -> Say:
    """Returns what is said, after the session has taken note of it."""
    event = scene.event
    intent = Intent.OTHER
    if event.moment is Moment.PROMPT:
        from mimo.features.hooks import prompt

        intent = prompt.classified(scene)
    try:
        with storage.held(scene.root):
            key = scene.session_key(event.session)
            before = storage.load(scene.root, key)
            say, after = _reaction(scene, before, intent)
            if after != before:
                storage.save(scene.root, key, after)
            if event.moment is Moment.START:
                storage.clean(scene.root)
            return say
    except MindError as error:
        scene.failed(error.message)
        # Where nothing can be remembered it is said at the start, and not again and again.
        if event.moment is Moment.START:
            return _reaction(scene, Session(), intent)[0]
        return Say()


def _reaction(scene: Scene, session: Session, intent: Intent) -> tuple[Say, Session]:
    moment = scene.event.moment
    if moment is Moment.START:
        from mimo.features.hooks import start

        return start.say(scene, session)
    if moment is Moment.PROMPT:
        from mimo.features.hooks import prompt

        return prompt.say(scene, session, intent)
    if moment is Moment.TOOL:
        return say(scene, session)
    if moment is Moment.STOPPED:
        return Say(), _heard(scene, session)
    return Say(), _kept(scene, session)


def _heard(scene: Scene, session: Session) -> Session:
    """Returns the session with what the agent said last, where that may be worth a summary."""
    text = scene.event.text if scene.allowed.summaries else ""
    return session._replace(last=masked(text)) if text else session


def _kept(scene: Scene, session: Session) -> Session:
    """Returns the session after its summary is kept, at compaction or at its end."""
    event = scene.event
    if event.moment is Moment.COMPACTED:
        if event.text:
            session = keep(scene, session, event.text)
        forgets = event.dialect not in _STARTS_ANEW
        return session._replace(shown=(), warned=()) if forgets else session
    text = event.text or session.last
    if len(text) < LEAST:
        return session
    return keep(scene, session, text, closing=True)._replace(last="")
