"""Counting what was found and shown, which keeps memories from fading."""

from collections.abc import Iterable
from contextlib import suppress

from mimo.domain.decay import Use
from mimo.domain.memory import Record
from mimo.errors import MindError
from mimo.mind import Mind


def note(mind: Mind, records: Iterable[Record]) -> None:
    """Counts an access to each memory: a search answered with it, or it was shown or loaded.

    Nobody waits for it, and an answer never fails because it can't be counted.
    """
    with suppress(MindError, OSError):
        mind.accesses.note([one.memory.id for one in records], mind.now())


def uses(mind: Mind) -> dict[str, Use]:
    """Returns how often each memory was used on this machine, and when last."""
    with suppress(MindError, OSError):
        mind.accesses.flush()
    return mind.accesses.uses()
