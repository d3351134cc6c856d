"""The moments of a session without notes: a tool is about to write, a turn or the session ends.

Before a tool writes, its text is checked against the known edges. At compaction and at the end of
a session the client's own summary is kept as a private memory.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mimo.features.hooks.events import Dialect, Moment, Say, fenced, without_fenced
from mimo.features.hooks.scene import Scene, Session
from mimo.memory.note import plain

if TYPE_CHECKING:
    from mimo.features.edges.checking import Hit
    from mimo.features.edges.edge import Edge

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


def _before_tool(scene: Scene, session: Session) -> tuple[Say, Session]:
    """Returns a question if a critical edge applies, a remark for any other, once a session."""
    edits = scene.event.edits if scene.allowed.edges else ()
    edges, stack = _edges(scene) if edits else ([], ())
    if not edges:
        return Say(), session
    from mimo.features.edges.checking import check, whole

    first: dict[Edge, Hit] = {}
    for hit in check(edges, [whole(edit.path, edit.text[:_MAX_TEXT]) for edit in edits], stack):
        if hit.edge.id not in session.warned:
            first.setdefault(hit.edge, hit)
    if not first:
        return Say(), session
    hits = sorted(first.values(), key=lambda hit: hit.edge.severity.rank)[:MAX_EDGES]
    names = [hit.edge.id for hit in hits]
    scene.log(f"edges apply: {', '.join(names)}")
    texts = list(map(_described, hits))
    critical = [text for text, hit in zip(texts, hits, strict=True) if hit.edge.severity.rank == 0]
    say = Say(
        context=fenced("\n".join(f"- Known edge: {text}" for text in texts)),
        notice=f"mind: known edge: {'; '.join(texts)}",
        stop=f"mind: a known edge applies: {'; '.join(critical)}" if critical else "",
    )
    return say, session.and_warned(names)


def _edges(scene: Scene) -> "tuple[list[Edge], Sequence[str]]":
    """Returns the edges of the project and of the user, and the stack if the latter need it."""
    with scene.index() as look:
        notes = look.newest("edge", _MAX_CHECKED, private=True) if look else []
    edges: list[Edge] = []
    # Most edits are made in projects without edges, so these are imported late.
    if notes:
        from mimo.features.edges.edge import edge_of
        from mimo.text.phrases import heading

        for note in notes:
            title = heading(note.title, note.text, note.topic or note.id)
            edge = edge_of(note.id, title, note.text, note.extra)
            edges.append(edge._replace(of_project=True))
    if (scene.home / "edges").is_dir():
        from mimo.features.edges import stack, storage

        if of_user := storage.read_all(scene.home)[0]:
            return [*edges, *of_user], stack.detect(scene.root)
    return edges, ()


def _described(hit: "Hit") -> str:
    """Returns an edge and its place in one line."""
    cure = f" → {plain(hit.edge.workaround, 200)}" if hit.edge.workaround.strip() else ""
    place = f"{plain(hit.path, 120)}, line {hit.line} of the new text"
    return f"{plain(hit.edge.title, 160)}{cure} ({place})"


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
