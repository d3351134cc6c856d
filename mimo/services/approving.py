"""Approving texts before they are written, so that an interruption leaves no text unapproved."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mimo.errors import MindError
from mimo.mind import Mind
from mimo.store import files


@contextmanager
def approving(mind: Mind, *, wanted: bool = True) -> Iterator[None]:
    """Approves each text that the block writes, just before its file gets it; if `wanted`.

    If a process is killed in between, the approval is of a text that never appeared, which is
    harmless. A text that can't be approved is written all the same, with a note to the user.
    """
    if not wanted:
        yield
        return

    def approve(contents: Mapping[Path, bytes | None]) -> None:
        try:
            mind.trust.approve(files.digest(data) for data in contents.values() if data is not None)
        except MindError as error:
            # The text matters more than its approval, which the user can repeat.
            message = f"it could not be approved and counts as untrusted: {error.message}"
            mind.note("trust", message)

    with files.watched(approve):
        yield
