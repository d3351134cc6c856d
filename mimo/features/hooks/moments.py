"""The moments of a session without notes: a tool is about to write, a turn or the session ends.

Before a tool writes, its text is checked against the known edges. At compaction and at the end of
a session the client's own summary is kept as a private memory.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mimo.features import context
from mimo.features.hooks.events import Dialect, Edit, Moment, Say, fenced, without_fenced
from mimo.features.hooks.scene import Scene, Session
from mimo.memory.note import Note, plain

MAX_EDGES = 3
"""Maximum number of edges in one answer, the worst first."""
_MAX_CHECKED = 200
_MAX_TEXT = 200_000

MIN_LAST = 200
"""Characters of a last message that is worth a memory: `Done.` is not."""
MAX_SUMMARY = 20_000
"""Characters of a summary that are kept."""

_NEW_CONTEXT = (Dialect.CLAUDE, Dialect.CODEX)
"""Clients that start a session again after compaction."""


def reaction(scene: Scene, session: Session) -> tuple[Say, Session]:
    """Returns the answer to an event that is neither a start nor a prompt. Raises `MindError`."""
    event = scene.event
    if event.moment is Moment.TOOL:
        return _before_tool(scene, session)
    if event.moment is Moment.STOPPED:
        text = event.text if scene.allowed.summaries else ""
        return Say(), session._replace(last=masked(text)) if text else session
    if event.moment is Moment.COMPACTED:
        if event.text:
            session = _keep_summary(scene, session, event.text)
        if event.dialect not in _NEW_CONTEXT:
            session = session._replace(shown=(), warned=())
        return Say(), session
    text = event.text or session.last
    if len(text) >= MIN_LAST:
        session = _keep_summary(scene, session, text, closing=True)._replace(last="")
    return Say(), session


# A tool is about to write.


class Known(NamedTuple):
    """An edge, and whether it is of the project."""

    note: Note
    of_project: bool = True


class Hit(NamedTuple):
    """An edge, and the first place in a new text that it applies to."""

    note: Note
    path: str
    line: int
    """1-based, in the new text."""

    def __str__(self) -> str:
        """Returns the edge and the place in one line."""
        place = f"{plain(self.path, 120)}, line {self.line} of the new text"
        return f"{context.gotcha(self.note)} ({place})"


def matches(known: Sequence[Known], edits: Iterable[Edit], stack: Sequence[str] = ()) -> list[Hit]:
    """Returns the edges that apply to some edits, as in `mind edges check`, the worst first."""
    # Most edits are made in projects without edges, so these are imported late.
    from mimo.features.edges import checking, diffs
    from mimo.features.edges.edge import Fields, edge_of
    from mimo.text.phrases import heading

    edges = []
    notes = {}
    for note, of_project in known:
        title = heading(note.title, note.text, note.topic or note.id)
        edge = edge_of(Fields(note.id, title, note.text, note.extra))
        edges.append((edge, of_project))
        notes[id(edge)] = note
    added = [diffs.whole(edit.path, edit.text[:_MAX_TEXT]) for edit in edits]
    hits: dict[int, tuple[int, Hit]] = {}
    for warning in checking.check(edges, added, stack=stack):
        hit = Hit(notes[id(warning.edge)], warning.path, warning.line)
        hits.setdefault(id(warning.edge), (warning.edge.severity.rank, hit))
    return [hit for _, hit in sorted(hits.values(), key=lambda ranked: ranked[0])]


def _before_tool(scene: Scene, session: Session) -> tuple[Say, Session]:
    """Returns a question if a critical edge applies, a remark for any other, once a session."""
    if not (scene.event.edits and scene.allowed.edges):
        return Say(), session
    with scene.index() as look:
        own = look.newest("edge", _MAX_CHECKED, private=True) if look else []
    known = [*map(Known, own), *_of_user(scene)]
    if not known:
        return Say(), session
    stack: tuple[str, ...] = ()
    if len(known) > len(own):
        from mimo.features.edges.stack import detect

        stack = detect(scene.root)
    every = matches(known, scene.event.edits, stack)
    hits = [hit for hit in every if hit.note.id not in session.warned][:MAX_EDGES]
    if not hits:
        return Say(), session
    session = session.and_warned(hit.note.id for hit in hits)
    scene.log(f"edges apply: {', '.join(hit.note.id for hit in hits)}")
    critical = [str(hit) for hit in hits if hit.note.extra.get("severity") == "critical"]
    say = Say(
        context=fenced("\n".join(f"- Known edge: {hit}" for hit in hits)),
        notice=f"mind: known edge: {'; '.join(map(str, hits))}",
        stop=f"mind: a known edge applies: {'; '.join(critical)}" if critical else "",
    )
    return say, session


def _of_user(scene: Scene) -> list[Known]:
    """Returns the edges in the user's own home, which are read only if there are any."""
    if not (scene.home / "edges").is_dir():
        return []
    from mimo.features.edges.storage import GlobalEdges

    return [
        Known(
            Note(
                id=record.memory.id,
                kind="edge",
                title=record.memory.title or "",
                text=record.memory.content,
                created=record.memory.created,
                extra=record.memory.extra,
            ),
            of_project=False,
        )
        for record in GlobalEdges(scene.home).all()[0]
    ]


# The client's own summary of a session.


def masked(text: str) -> str:
    """Returns a client's text without its secrets; an agent can't allow one for itself."""
    from mimo.privacy.model import without
    from mimo.privacy.secrets import secrets_in

    return without(text, secrets_in(text, cut=True, allowing=False))


def _keep_summary(scene: Scene, session: Session, text: str, *, closing: bool = False) -> Session:
    """Keeps a summary without its secrets; returns the session with the id of its memory.

    A session has one memory: a later summary replaces an earlier one, and one at the `closing` of
    the session is added below it. Raises `MindError`.
    """
    from mimo.errors import NotFound
    from mimo.memory.model import Kind
    from mimo.mind import Mind
    from mimo.operations import finding, saving

    words = masked(without_fenced(text).strip()[:MAX_SUMMARY])
    if not words or not scene.allowed.summaries:
        return session
    opened = Mind.open(
        scene.root, project=scene.root, environ=scene.environ, clock=lambda: scene.now
    )
    try:
        mind = opened.acting_as(scene.event.dialect.value)
        try:
            record = finding.one(mind, session.memory) if session.memory else None
        except NotFound:
            record = None
        if record:
            both = f"{record.memory.content}\n\nAt the end: {words}" if closing else words
            saving.edit(mind, record, content=both)
            return session
        title = f"Session of {scene.now:%Y-%m-%d}"
        draft = saving.draft(Kind.CONTEXT, words, title=title, category="session")
        return session._replace(memory=saving.store(mind, draft, private=True).memory.id)
    finally:
        opened.close()
