"""The notes of the memory that an agent gets at the start of a session and with a prompt.

A note is given once in a session, and not at all if the client reads it from the block in an
instructions file.
"""

from contextlib import suppress
from pathlib import Path

from mimo import disk
from mimo.errors import MindError
from mimo.features import context
from mimo.features.context import Line, Section
from mimo.features.hooks import exposure
from mimo.features.hooks.events import Dialect, Say, fenced, takes_context
from mimo.features.hooks.exposure import Intent
from mimo.features.hooks.scene import Scene, Session
from mimo.index.glance import Glance
from mimo.memory.note import Note
from mimo.store import files

PROMPT_BUDGET = 2_000
"""Maximum number of characters of the notes with a prompt."""

MAX_RELATED = 4
"""Maximum number of memories with a prompt."""

_FILES = {
    Dialect.CLAUDE: ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
    Dialect.CODEX: ("AGENTS.override.md", "AGENTS.md"),
    Dialect.GEMINI: ("GEMINI.md",),
    Dialect.CURSOR: ("AGENTS.md",),
    Dialect.VSCODE: ("AGENTS.md", ".github/copilot-instructions.md"),
    Dialect.COPILOT: ("AGENTS.md", ".github/copilot-instructions.md"),
}
"""The instructions files that each client gives to its agent."""
_MAX_FILE_BYTES = 256 * 1024
_MAX_CHECKPOINTS = 100

_CLONE = "\0clone"
"""The name of the session that remembers the notice about the clone itself."""


def at_start(scene: Scene, session: Session) -> tuple[Say, Session]:
    """Returns the notes for a new session; a resumed one gets what it has not seen yet."""
    if scene.event.source != "resume":
        session = session._replace(shown=(), warned=())
    approves_nothing = not (scene.trust.state.follow or scene.trust.state.approved)
    with scene.index() as look:
        if look is None:
            if not _has_memories(scene.root):
                return Say(), session
            if approves_nothing:
                return _unapproved(scene, 0), session
            notice = "mind: this project's memory is not indexed yet; `mind status` indexes it"
            return Say(notice=notice), session
        if approves_nothing and (memories := look.count()):
            return _unapproved(scene, memories), session
        if not scene.allowed.context:
            return Say(), session
        return _sections(scene, look, session)


def expose(scene: Scene) -> Intent:
    """Returns the intent of a prompt, and writes the tools that fit it for the server."""
    exposed = exposure.classify(scene.event.prompt)
    tools = "every tool" if exposed.tools is None else f"{len(exposed.tools)} tools"
    line = f"{exposed.intent} ({exposed.confidence:g}): {tools}"
    try:
        exposure.write(scene.root, exposed._replace(session=scene.event.session, at=scene.now))
    except MindError as error:
        line += f"; not written: {error.message}"
    scene.log(line)
    return exposed.intent


def with_prompt(scene: Scene, session: Session, intent: Intent | None) -> tuple[Say, Session]:
    """Returns the notes that certainly concern a prompt, and the checkpoint to resume."""
    if not (scene.allowed.context and takes_context(scene.event)):
        return Say(), session
    lines: list[Line] = []
    with scene.index() as look:
        if look is None:
            return Say(), session
        if intent is Intent.RESUMING and (resumed := own_checkpoint(scene, look)):
            lines = context.checkpoint(resumed)
        marks = {*session.shown, *(line.mark for line in lines)}
        lines = [line for line in lines if line.mark not in session.shown]
        for note in look.related(scene.event.prompt, MAX_RELATED):
            if note.mark not in marks and _is_current(scene, note):
                lines.append(context.as_line(note))
    if not lines:
        return Say(), session
    in_files = lines_in_files(scene.root, scene.event.dialect)
    texts, budget = [], PROMPT_BUDGET
    for line in lines:
        if line.text not in in_files and len(line.text) < budget:
            budget -= len(line.text) + 1
            texts.append(line.text)
    session = session.and_shown(line.mark for line in lines)
    return Say(context=fenced("\n".join(texts)) if texts else ""), session


def lines_in_files(root: Path, dialect: Dialect) -> frozenset[str]:
    """Returns the lines of the blocks in the instructions files of a client."""
    lines: set[str] = set()
    for name in _FILES[dialect]:
        with suppress(OSError, MindError):
            data, _ = disk.look(files.safe_path(root, name), limit=_MAX_FILE_BYTES)
            if b"MIND:CONTEXT" in data and (block := context.find(data)):
                lines.update(block.body.split("\n"))
    return frozenset(lines)


def own_checkpoint(scene: Scene, look: Glance) -> Note | None:
    """Returns the checkpoint to resume: of this machine and branch, else the next best."""
    from mimo.store.git import branch
    from mimo.store.trust import Made

    checkpoints = context.checkpoints(look, _MAX_CHECKPOINTS, private=True)
    made, current = Made(scene.trust).branches(), branch(scene.root)
    own = [note for note in checkpoints if note.id in made or note.private]
    of_branch = (note for note in own if made.get(note.id, current) == current)
    return next(of_branch, None) or next(iter(own or checkpoints), None)


def _sections(scene: Scene, look: Glance, session: Session) -> tuple[Say, Session]:
    notes = context.gather(look, private=True)._replace(checkpoint=own_checkpoint(scene, look))
    sections = context.sections(notes)
    in_files = lines_in_files(scene.root, scene.event.dialect)
    new = [
        Section(title, lines)
        for title, every in sections
        if (
            lines := tuple(
                line
                for line in every
                if line.text not in in_files and line.mark not in session.shown
            )
        )
    ]
    kept = context.within(new, scene.allowed.budget)
    given = [line.mark for section in kept for line in section.lines]
    if kept:
        scene.log(f"{len(given)} lines of notes")
    read = [line.mark for part in sections for line in part.lines if line.text in in_files]
    say = Say(context=fenced(context.rendered(kept)) if kept else "")
    return say, session.and_shown([*read, *given])


def _is_current(scene: Scene, note: Note) -> bool:
    """Returns whether the file that a note was ingested from, if any, is unchanged."""
    if "/sources/" not in note.path:
        return True
    from mimo.operations.freshness import IngestedFiles

    for path, ingested in IngestedFiles(scene.root).read().items():
        if ingested.kept == note.digest:
            try:
                status = (scene.root / path).lstat()
            except OSError:
                return False
            return (status.st_size, status.st_mtime_ns) == (ingested.size, ingested.mtime_ns)
    return True


def _unapproved(scene: Scene, count: int) -> Say:
    """Returns the notice about a clone without approved memories; nothing the second time."""
    session = scene.load_session(_CLONE)
    if "untrusted" in session.warned:
        return Say()
    scene.save_session(_CLONE, session.and_warned(["untrusted"]))
    if scene.trust.has_earlier:
        return Say(
            notice="mind: approvals that an earlier version made for this path are not used; "
            "`mind review` shows the memories, `mind trust` approves them again"
        )
    memories = "memories" if not count else "1 memory" if count == 1 else f"{count:,} memories"
    return Say(
        notice=f"mind: this repository has {memories} that you have not approved, so agents do "
        "not see them; `mind review` shows them, `mind trust` approves them"
    )


def _has_memories(root: Path) -> bool:
    """Returns whether there is any file of a memory, reading each folder once."""
    with suppress(OSError):
        for folder in (root / ".mind").iterdir():
            if folder.name[0] != "." and folder.is_dir() and next(folder.glob("*.md"), None):
                return True
    return False
