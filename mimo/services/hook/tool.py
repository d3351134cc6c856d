"""A tool is about to write: what that runs into, said once in a session."""

from mimo.domain.context import sections
from mimo.domain.context.note import Note, plain
from mimo.domain.hooks.answer import Say, fenced
from mimo.domain.hooks.edges import Hit, Known, met
from mimo.services.hook.scene import Scene
from mimo.store.sessions import Session

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
    from mimo.store.global_edges import GlobalEdges

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
    from mimo.services import stack

    return stack.detect(scene.root)


def _told(hit: Hit) -> str:
    return f"{sections.gotcha(hit.note)} ({plain(hit.path, 120)}, line {hit.line} of what is new)"
