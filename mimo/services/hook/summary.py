"""The client's own summary of a session, kept as a private memory."""

from mimo.domain.hooks.answer import without_fenced
from mimo.services.hook.scene import Scene
from mimo.store.sessions import Session

LEAST = 200
"""Characters of last words that are worth a memory: `Done.` is not."""

MOST = 20_000
"""Characters of a summary that are kept."""


def masked(text: str) -> str:
    """Returns a client's words without their secrets, which no agent can allow itself to keep."""
    from mimo.domain.privacy import secrets_in, without

    return without(text, secrets_in(text, cut=True, allowing=False))


def keep(scene: Scene, session: Session, text: str, *, closing: bool = False) -> Session:
    """Keeps a summary and returns the session, which knows its memory. Raises `MindError`.

    Only what is secret in it is left out. A session has one memory: a later summary takes the
    place of an earlier one, and what was said at the end goes below it.
    """
    from mimo.domain.memory import Kind
    from mimo.errors import NotFound
    from mimo.mind import Mind
    from mimo.services import capture, recall

    words = masked(without_fenced(text).strip()[:MOST])
    if not words or not scene.allowed.summaries:
        return session
    opened = Mind.open(
        scene.root, project=scene.root, environ=scene.environ, clock=lambda: scene.now
    )
    mind = opened.acting_as(scene.event.dialect.value)
    try:
        if session.memory:
            try:
                record = recall.one(mind, session.memory)
            except NotFound:
                record = None
            if record:
                said = record.memory.content
                both = f"{said}\n\nAt the end: {words}" if closing else words
                capture.edit(mind, record, content=both)
                return session
        title = f"Session of {scene.now:%Y-%m-%d}"
        draft = capture.draft(Kind.CONTEXT, words, title=title, category="session")
        record = capture.store(mind, draft, private=True)
        return session._replace(memory=record.memory.id)
    finally:
        opened.close()
