"""Runs that outlive the call that started them: each is a `mind` process of its own."""

import os
import sys
import threading

from mimo.errors import StorageFailed
from mimo.mind import Mind
from mimo.services.procedures.executing import HELD, hand_over
from mimo.store.executions import Execution


def start(mind: Mind, execution: Execution) -> int:
    """Returns the number of a new process that carries out an execution.

    It has a session of its own and no standard streams of ours. It inherits the execution's lock,
    so that there is no moment in which nobody seems to run it. Raises `StorageFailed`.
    """
    import subprocess

    lock = execution.hold()
    root = str(mind.project.root)
    # -P: the project's folder must not be where Python looks for modules.
    argv = [sys.executable, "-P", "-m", "mimo", "--project", root]
    try:
        hand_over(mind, execution)
        process = subprocess.Popen(
            [*argv, "procedure", "resume", execution.id],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env={**mind.environ, "MIND_HOME": str(mind.home), HELD: str(lock)},
            pass_fds=(lock,),
            start_new_session=True,
        )
    except OSError as error:
        raise StorageFailed(
            f"a process for `{execution.id}` can't be started: {error.strerror}",
            hint="run it without async",
        ) from error
    finally:
        os.close(lock)
    # Waited for, so that a server which goes on for days keeps no dead children.
    threading.Thread(target=process.wait, name="mind-reaper", daemon=True).start()
    return process.pid
