"""What could carry private files of a project into git."""

from collections.abc import Iterator
from pathlib import Path

from mimo.frozen import frozen
from mimo.services import merging
from mimo.store import init, tracked
from mimo.store.names import unshared_folder

_SHOWN = 3


@frozen
class Leak:
    """A way by which private files reach git, and how to close it."""

    message: str
    hint: str
    file: str


def leaks(root: Path) -> Iterator[Leak]:
    """Yields what is wrong with the project's ignore rules, and private files that git tracks.

    There is nothing to report outside a git repository.
    """
    if not merging.in_repository(root):
        return
    if init.IGNORE_FILE in init.lacking(root):
        yield Leak(
            message=f"{init.IGNORE_FILE} lacks rules that keep private files out of git",
            hint="`mind doctor --fix` restores them; `mind sync` never commits such files",
            file=init.IGNORE_FILE,
        )
    files = tracked.unshared(root)
    if files:
        some = ", ".join(files[:_SHOWN]) + (", …" if len(files) > _SHOWN else "")
        folders = " ".join(sorted({unshared_folder(path) or path for path in files}))
        yield Leak(
            message=f"git tracks files that must stay on this machine: {some}",
            hint=f"`git rm -rf --cached -- {folders}` and a commit untrack them; earlier commits "
            "keep them",
            file=files[0],
        )
