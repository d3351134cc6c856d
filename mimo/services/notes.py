"""Which memories an agent is shown unasked: only those that somebody here approved."""

from mimo.domain.context import sections
from mimo.domain.context.note import Note
from mimo.domain.context.sections import Notes
from mimo.index.glance import Glance

ARCHIVED = "archived"


def gather(look: Glance, *, private: bool = False) -> Notes:
    """Returns the notes that the sections are made from, without private ones unless asked.

    They depend on the memories alone, so that two machines tell the same.
    """
    of_state = f"m.topic_key = '{sections.STATE_TOPIC}'"
    others = f"(m.topic_key IS NULL OR m.topic_key <> '{sections.STATE_TOPIC}')"
    return Notes(
        state=look.newest("context", sections.STATE, where=of_state, private=private),
        keys=look.kept(sections.KEYS, private=private),
        decisions=look.decisions(4 * sections.DECISIONS, private=private),
        issues=look.newest("issue", sections.LOOPS, private=private, accepts=_is_open),
        gotchas=look.newest("edge", 4 * sections.GOTCHAS, private=private),
        sessions=look.newest("context", sections.SUMMARIES, where=others, private=private),
        checkpoint=next(iter(checkpoints(look, 1, private=private)), None),
    )


def checkpoints(look: Glance, limit: int, *, private: bool) -> list[Note]:
    """Returns the newest checkpoints that may be resumed."""
    return look.newest("checkpoint", limit, private=private, accepts=_is_resumable)


def _is_open(note: Note) -> bool:
    return note.status.lower() not in sections.DONE


def _is_resumable(note: Note) -> bool:
    return note.status.lower() != ARCHIVED
