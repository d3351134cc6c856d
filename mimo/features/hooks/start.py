"""A session begins: what of the memory its agent should know and no file tells it."""

from contextlib import suppress
from pathlib import Path

from mimo.errors import MindError
from mimo.features import context
from mimo.features.context import Section
from mimo.features.hooks import storage
from mimo.features.hooks.events import Dialect, Say, fenced
from mimo.features.hooks.scene import Scene
from mimo.features.hooks.storage import Session
from mimo.index.glance import Glance
from mimo.memory.note import Note
from mimo.store import files
from mimo.store.made import Made, branch

# What an agent knows already: the block of notes in the files that its client reads.


_FILES = {
    Dialect.CLAUDE: ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
    Dialect.CODEX: ("AGENTS.override.md", "AGENTS.md"),
    Dialect.GEMINI: ("GEMINI.md",),
    Dialect.CURSOR: ("AGENTS.md",),
    Dialect.VSCODE: ("AGENTS.md", ".github/copilot-instructions.md"),
    Dialect.COPILOT: ("AGENTS.md", ".github/copilot-instructions.md"),
}
_MOST_BYTES = 256 * 1024


def context_lines(root: Path, dialect: Dialect) -> frozenset[str]:
    """Returns the lines of the blocks that the client has put before its agent."""
    found: set[str] = set()
    for name in _FILES[dialect]:
        with suppress(OSError, MindError):
            data, _ = files.look(files.safe_path(root, name), limit=_MOST_BYTES)
            if b"MIND:CONTEXT" in data and (there := context.find(data)):
                found.update(there.body.split("\n"))
    return frozenset(found)


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
    gathered = context.gather(look, private=True)
    resumed = own_checkpoint(scene, look)
    found = context.sections(gathered._replace(checkpoint=resumed))
    known = context_lines(scene.root, scene.event.dialect)
    left = _without(found, known, frozenset(session.shown))
    told = context.within(left, scene.allowed.budget)
    kept = {line.mark for section in told for line in section.lines}
    in_file = {line.mark for section in found for line in section.lines if line.text in known}
    if told:
        scene.log(f"{sum(len(section.lines) for section in told)} lines of notes")
    say = Say(context=fenced(context.rendered(told)) if told else "")
    return say, session.and_shown([*in_file, *kept])


def own_checkpoint(scene: Scene, look: Glance) -> Note | None:
    """Returns the checkpoint to go on from: of this machine and branch, else the next best."""
    found = context.checkpoints(look, _CHECKPOINTS, private=True)
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
    told = storage.load(scene.root, key)
    if "untrusted" in told.warned:
        return Say()
    storage.save(scene.root, key, told.and_warned(["untrusted"]))
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
