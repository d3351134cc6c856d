"""Making the encoder's vectors, by which memories are compared in context.

`mind index` makes all of them. A search that lacks many starts a process of low priority that does
so, and goes on without them.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from mimo.call import Call
from mimo.errors import MindError
from mimo.operations import background
from mimo.store.locks import holding, is_held


def encode(call: Call) -> int:
    """Makes all missing vectors and returns the number of memories that got some.

    Returns 0 if another process is making them.
    """
    with holding(call.mind.index_folder / "encoding") as ours:
        if not ours:
            return 0
        if call.mind.shared_index is not None:
            from mimo.operations import sharing

            sharing.fetch_vectors(call)
        return call.mind.index.make_meanings(
            lambda done, total: call.advance("Comparing in context", done, total)
        )


def encode_later(call: Call) -> None:
    """Starts a process that makes the missing vectors, unless there is one already."""
    if os.environ.get("MIND_BACKGROUND") == "off" or not call.mind.has_project:
        return
    with suppress(MindError, OSError):
        if not is_held(call.mind.index_folder / "encoding"):
            background.start("mimo.operations.encoding", call.mind.project.root, call.mind.home)


def main() -> None:
    """Makes the missing vectors of the project that the command line names."""
    os.nice(background.PRIORITY)
    with suppress(MindError, OSError):
        encode(Call(background.opened(Path(sys.argv[1]), Path(sys.argv[2]))))


if __name__ == "__main__":
    main()
