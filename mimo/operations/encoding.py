"""Making the encoder's vectors, by which memories are compared in context.

`mind index` makes all of them. A search that lacks many starts a process of low priority that does
so, and goes on without them.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from mimo.errors import MindError
from mimo.mind import Mind
from mimo.store.locks import holding, is_held

_PRIORITY = 19
"""The lowest: any other work on the machine goes first."""

_started: list[int] = []
"""The processes that this one has started and that may still run."""


def encode(mind: Mind) -> int:
    """Makes all missing vectors and returns the number of memories that got some.

    Returns 0 if another process is making them.
    """
    with holding(mind.index_folder / "encoding") as ours:
        if not ours:
            return 0
        if mind.shared_index is not None:
            from mimo.operations import sharing

            sharing.fetch_vectors(mind)
        return mind.index.make_meanings(
            lambda done, total: mind.advance("Comparing in context", done, total)
        )


def encode_later(mind: Mind) -> None:
    """Starts a process that makes the missing vectors, unless there is one already."""
    if os.environ.get("MIND_BACKGROUND") == "off" or not mind.has_project:
        return
    _reap()
    with suppress(MindError, OSError):
        if not is_held(mind.index_folder / "encoding"):
            _started.append(_start(mind.project.root, mind.home))


def _reap() -> None:
    """Lets the system forget processes that have ended; a server lives long."""
    for process in list(_started):
        with suppress(ChildProcessError):
            if os.waitpid(process, os.WNOHANG) == (0, 0):
                continue
        _started.remove(process)


def _start(root: Path, home: Path) -> int:
    from mimo.operations.syncing import start

    return start("mimo.operations.encoding", root, home)


def main() -> None:
    """Makes the missing vectors of the project that the command line names."""
    root, home = Path(sys.argv[1]), sys.argv[2]
    os.nice(_PRIORITY)
    with suppress(MindError, OSError):
        mind = Mind.open(root, project=root, environ={**os.environ, "MIND_HOME": home})
        encode(mind)


if __name__ == "__main__":
    main()
