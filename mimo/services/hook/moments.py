"""What happened in a client -> what is said to it."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from mimo.domain.exposure import Intent
from mimo.domain.hooks.answer import Say, answer
from mimo.domain.hooks.event import Dialect, Event, Moment
from mimo.errors import MindError
from mimo.services.hook import scene as scenes
from mimo.services.hook.scene import Scene
from mimo.store import sessions
from mimo.store.sessions import Session

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
        from mimo.services.hook import prompt

        intent = prompt.classified(scene)
    try:
        with sessions.held(scene.root):
            key = scene.session_key(event.session)
            before = sessions.load(scene.root, key)
            say, after = _reaction(scene, before, intent)
            if after != before:
                sessions.save(scene.root, key, after)
            if event.moment is Moment.START:
                sessions.clean(scene.root)
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
        from mimo.services.hook import start

        return start.say(scene, session)
    if moment is Moment.PROMPT:
        from mimo.services.hook import prompt

        return prompt.say(scene, session, intent)
    if moment is Moment.TOOL:
        from mimo.services.hook import tool

        return tool.say(scene, session)
    if moment is Moment.STOPPED:
        return Say(), _heard(scene, session)
    return Say(), _kept(scene, session)


def _heard(scene: Scene, session: Session) -> Session:
    """Returns the session with what the agent said last, where that may be worth a summary."""
    from mimo.services.hook import summary

    text = scene.event.text if scene.allowed.summaries else ""
    return session._replace(last=summary.masked(text)) if text else session


def _kept(scene: Scene, session: Session) -> Session:
    """Returns the session after its summary is kept, at compaction or at its end."""
    from mimo.services.hook import summary

    event = scene.event
    if event.moment is Moment.COMPACTED:
        if event.text:
            session = summary.keep(scene, session, event.text)
        forgets = event.dialect not in _STARTS_ANEW
        return session._replace(shown=(), warned=()) if forgets else session
    text = event.text or session.last
    if len(text) < summary.LEAST:
        return session
    return summary.keep(scene, session, text, closing=True)._replace(last="")
