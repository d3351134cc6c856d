"""The process of an automatic commit, which the user's setting `autocommit` asks for."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from mimo.call import Call
from mimo.data import disk, files
from mimo.errors import MindError
from mimo.mind import Mind
from mimo.operations import sharing, syncing
from mimo.project import commit as commits


def commit_scheduled(root: Path, home: Path) -> None:
    """Commits the collected changes; if that fails, a later change schedules it again."""
    with suppress(MindError, OSError):
        files.remove(syncing.scheduled_file(root))
    with suppress(MindError, OSError):
        environ = {**os.environ, "MIND_HOME": str(home)}
        call = Call(Mind.open(root, project=root, environ=environ))
        # Outside git, and if it is ignored, nothing fails.
        commits.check_shared(syncing.repository(call))
        try:
            with disk.shared():
                syncing.sync(call, message=None, automatic=True)
        except (MindError, OSError) as error:
            syncing.note_failure(call, error)
            raise
        if sharing.url_of(call.mind):
            sharing.shared_index(call).push_if_behind(call)


if __name__ == "__main__":
    time.sleep(float(sys.argv[3]))
    commit_scheduled(Path(sys.argv[1]), Path(sys.argv[2]))
