"""The request to an agent, at the end of a turn, to record what its session leaves.

It is made once in a session, and only if the setting `hook.capture` is on, the session worked on
something, and the agent did not record anything by itself. What happened in the session is known to
the agent alone: mind counts its prompts and edits, and lists what is already stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime

from mimo.data import disk, files
from mimo.errors import Conflict, MindError
from mimo.features.hooks.events import REQUEST, fenced
from mimo.features.hooks.related import matches
from mimo.features.hooks.scene import Scene, Session, Work, remove_old
from mimo.index.catalog import Catalog
from mimo.memory.note import Note, plain
from mimo.operations.earlier import SWITCH, sessions_of
from mimo.text.tool_names import spelled

LIST_BUDGET = 1_500
"""Maximum number of characters of the list of stored memories."""
MAX_SAVED = 12
"""Maximum number of memories of the session in the list."""
MAX_CLOSEST = 6
"""Maximum number of earlier memories in the list."""
MAX_OF_USER = 2
"""Maximum number of the user's memories for all projects in the list."""

MAX_PROPOSALS, PROPOSAL_LENGTH = 8, 300
"""Maximum number of proposals from the session in the request, and of their characters."""

_LEAST_STEPS = 3
"""Prompts and edits of a session that worked: a typo is one prompt and one edit."""
_LEAST_PROMPTS = 4
"""Prompts of a session without edits that may have decided something."""
_READ = 1_000
"""Characters of the agent's last message that are compared with the memories."""


def has_worked(work: Work) -> bool:
    """Returns whether a session that was not asked yet may leave something worth recording."""
    if work.asked or work.prompts + work.edits < _LEAST_STEPS:
        return False
    return work.edits > 0 or work.prompts >= _LEAST_PROMPTS


def is_permitted(scene: Scene) -> bool:
    """Returns whether the policy permits the list of memories, and a tool that the text names."""
    if not any(scene.allows(tool, writes=True) for tool in _TOOLS.values()):
        return False
    return scene.allows("mind_search") and scene.permits()


def request(scene: Scene, session: Session) -> str:
    """Returns the request; empty if the agent saved a checkpoint, or anything in this turn."""
    began = datetime.fromisoformat(session.work.began)
    turn = datetime.fromisoformat(session.work.turn or session.work.began)
    turn = turn.replace(microsecond=0)  # Files state the time of a memory in seconds.
    with scene.index() as catalog:
        saved = catalog.since(began, scene.now, MAX_SAVED, accepts=_is_record) if catalog else []
        if any(note.kind == "checkpoint" or note.created >= turn for note in saved):
            return ""
        message = (scene.event.text or session.last)[:_READ]
        closest = _closest(catalog, message) if catalog else []
    if message:
        closest += scene.of_user(
            lambda catalog: [*matches(catalog, message, limit=MAX_OF_USER).by_words]
        )
    return worded(scene.allowed.naming, listed([*saved, *closest]), _proposals(scene))


def _proposals(scene: Scene) -> str:
    """Returns what the user's extension for earlier sessions proposes from this one, in lines."""
    is_here = scene.user is None and not scene.is_outside
    if not (is_here and scene.trust.settings()[SWITCH] == "on" and scene.allows("mind_sessions")):
        return ""
    from mimo.mind import Mind

    with suppress(MindError), closing(Mind.open(scene.root, project=scene.root)) as mind:
        if sessions := sessions_of(mind):
            proposals = sessions.proposals(mind, scene.event.session)[:MAX_PROPOSALS]
            return "\n".join(f"- {plain(text, PROPOSAL_LENGTH)}" for text in proposals)
    return ""


def is_first(scene: Scene) -> bool:
    """Returns whether the session was not asked in another project or worktree, and remembers it.

    The project's own file of the session can't tell, as an agent may leave the folder. Raises
    `StorageFailed` if that can't be remembered.
    """
    folder = scene.home / "sessions"
    name = disk.sha256(scene.event.session.encode("utf-8", "replace")).hex()
    try:
        files.write_new(folder / name[:32], b"", mode=0o600)
    except Conflict:
        return False
    remove_old(folder)
    return True


def _is_record(note: Note) -> bool:
    """Returns whether a memory was saved by itself or in a commit.

    It is neither a summary that a hook kept, nor a document that the session may have edited.
    """
    is_summary = note.kind == "context" and note.category == "session"
    return note.path.startswith((".mind/", ".git/")) and not is_summary


def _closest(catalog: Catalog, message: str) -> list[Note]:
    """Returns the memories closest to the agent's last message, else the newest decisions."""
    notes = matches(catalog, message, limit=MAX_CLOSEST).by_words if message else ()
    return list(notes) or catalog.decisions(MAX_CLOSEST, private=True)


def listed(notes: Iterable[Note]) -> str:
    """Returns the ids, types and titles of memories, one on each line, within the budget."""
    lines: dict[str, str] = {}
    left = LIST_BUDGET
    for note in notes:
        line = f"- {plain(note.id, 120)} ({note.kind}): {plain(note.heading, 100)}"
        if note.id not in lines and len(line) < left:
            left -= len(line) + 1
            lines[note.id] = line
    return "\n".join(lines.values())


_REQUEST = """\
{reminder}, once in a session): if this session leaves something that later sessions need, record \
it now.
- what was decided, and why: `{decision}`
- what failed, and why: `{outcome}` if its decision is stored, else `{insight}`
- where unfinished work stopped, and its next steps: `{checkpoint}`
Without these tools, run `mind save decision|insight|checkpoint` in a shell. Leave out what the \
code, git or the list below states. If nothing is left, end the turn as it was."""

_PROPOSED = """\
Found by rules in the words of this session. Of these, record what is right and will last, \
corrected and with its reason, and leave out the others:"""

_TOOLS = {
    "decision": "save/decision",
    "outcome": "evolve/outcome",
    "insight": "save/insight",
    "checkpoint": "save/checkpoint",
}


def worded(naming: str, stored: str, proposals: str = "") -> str:
    """Returns the text of the request, with the names of tools in the user's spelling."""
    names = {word: spelled(tool, naming) for word, tool in _TOOLS.items()}
    words = _REQUEST.format_map({"reminder": REQUEST, **names})
    if proposals:
        words += f"\n{_PROPOSED}\n{fenced(proposals)}"
    return f"{words}\nAlready stored:\n{fenced(stored)}" if stored else words
