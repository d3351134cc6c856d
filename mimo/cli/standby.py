"""A server in the background for a project with very many memories.

Comparing all files takes most of a command there. So the first command starts this process, which
watches the files and answers the next ones. It ends when it was not asked for a while.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

from mimo import installation
from mimo.call import Call
from mimo.cli.answering import reply
from mimo.cli.asked import standby_lock
from mimo.errors import MindError
from mimo.operations import refresh
from mimo.operations.background import opened
from mimo.operations.listening import Listener, Memory
from mimo.store.locks import holding

IDLE_SECONDS = 900.0
_CHECK_SECONDS = 5.0


def serve(root: Path, home: Path, idle: float) -> None:
    """Answers the commands of a project until none has asked for `idle` seconds.

    Does nothing if another process of this kind serves the project.
    """
    installation.keep()
    memory = Memory(lambda: opened(root, home))
    with holding(standby_lock(Call(memory.mind()))) as ours:
        if not ours:
            return
        refresh.refresh(Call(memory.mind()))
        listener = Listener(home, memory, reply)
        listener.start()
        # A project that is removed has no commands left, and after an update they do not ask.
        while (
            time.monotonic() - listener.asked < idle
            and (root / ".mind").is_dir()
            and not installation.is_changed()
        ):
            time.sleep(min(idle, _CHECK_SECONDS))
        listener.close()
        memory.close()


def main() -> None:
    """Serves the project that the command line names."""
    with suppress(MindError, OSError):
        serve(Path(sys.argv[1]), Path(sys.argv[2]), IDLE_SECONDS)


if __name__ == "__main__":
    main()
