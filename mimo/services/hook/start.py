"""A session begins: what of the memory its agent should know and no file tells it."""

from contextlib import suppress

from mimo.domain.context import sections
from mimo.domain.context.note import Note
from mimo.domain.context.sections import Section
from mimo.domain.hooks.answer import Say, fenced
from mimo.index.glance import Glance
from mimo.services import notes
from mimo.services.hook import there
from mimo.services.hook.scene import Scene
from mimo.store import sessions
from mimo.store.made import Made, branch
from mimo.store.sessions import Session

_CLONE = "\0clone"
"""Under this name it is remembered what was told of the clone itself."""

_CHECKPOINTS = 100


def say(scene: Scene, session: Session) -> tuple[Say, Session]:
    """Returns what a new session is told; what it knows from an earlier start is left out."""
    if scene.event.source != "resume":
        session = session._replace(shown=(), warned=())
    with scene.look() as look:
        if look is None:
            return _unread(scene), session
        if _is_strange(scene) and (memories := look.count()):
            return _first_look(scene, memories), session
        if not scene.allowed.context:
            return Say(), session
        return _context(scene, look, session)


def _context(scene: Scene, look: Glance, session: Session) -> tuple[Say, Session]:
    gathered = notes.gather(look, private=True)
    resumed = own_checkpoint(scene, look)
    found = sections.sections(gathered._replace(checkpoint=resumed))
    known = there.lines(scene.root, scene.event.dialect)
    left = _without(found, known, frozenset(session.shown))
    told = sections.within(left, scene.allowed.budget)
    kept = {line.mark for section in told for line in section.lines}
    in_file = {line.mark for section in found for line in section.lines if line.text in known}
    if told:
        scene.log(f"{sum(len(section.lines) for section in told)} lines of notes")
    say = Say(context=fenced(sections.rendered(told)) if told else "")
    return say, session.and_shown([*in_file, *kept])


def own_checkpoint(scene: Scene, look: Glance) -> Note | None:
    """Returns the checkpoint to go on from: of this machine and branch, else the next best."""
    found = notes.checkpoints(look, _CHECKPOINTS, private=True)
    made, here = Made(scene.trust).branches(), branch(scene.root)
    own = [note for note in found if note.id in made or note.private]
    of_branch = (note for note in own if made.get(note.id, here) == here)
    return next(of_branch, None) or next(iter(own), None) or next(iter(found), None)


def _without(found: list[Section], known: frozenset[str], shown: frozenset[str]) -> list[Section]:
    """Returns the sections without lines that the agent has seen."""
    left = (
        Section(
            section.title,
            tuple(
                line for line in section.lines if line.text not in known and line.mark not in shown
            ),
        )
        for section in found
    )
    return [section for section in left if section.lines]


def _unread(scene: Scene) -> Say:
    """Returns what is said where there is no index: whose memories they are, if there are any."""
    if not _has_memories(scene):
        return Say()
    if _is_strange(scene):
        return _first_look(scene, 0)
    return Say(notice="mind: this project's memory was not read here yet; `mind status` reads it")


def _is_strange(scene: Scene) -> bool:
    """Returns whether nobody here has approved anything of the project."""
    return not (scene.trust.state.follow or scene.trust.state.approved)


def _first_look(scene: Scene, many: int) -> Say:
    """Returns the one line about a clone that nobody here trusts; nothing the second time."""
    key = scene.session_key(_CLONE)
    told = sessions.load(scene.root, key)
    if "untrusted" in told.warned:
        return Say()
    sessions.save(scene.root, key, told.and_warned(["untrusted"]))
    if scene.trust.has_earlier:
        return Say(
            notice="mind: approvals that an earlier version made for this path are not used; "
            "`mind review` shows the memories, `mind trust` approves them again"
        )
    what = "memory" if not many else "1 memory" if many == 1 else f"{many:,} memories"
    return Say(
        notice=f"mind: this repository has {what} that nobody here has approved, so none of "
        "it is shown to agents; `mind review` shows what it is, `mind trust` approves it"
    )


def _has_memories(scene: Scene) -> bool:
    """Returns whether there is any file of a memory, looking into each folder once."""
    store = scene.root / ".mind"
    with suppress(OSError):
        for folder in store.iterdir():
            if folder.name[0] != "." and folder.is_dir() and next(folder.glob("*.md"), None):
                return True
    return False
