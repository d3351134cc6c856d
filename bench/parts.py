"""A long run in several processes, which a time limit or Ctrl-C ends without losing its figures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_OWN = {"MIND_PROJECT", "SANDBOX_DIR", "MIND_HOME", "GIT_DIR"}


class Limit:
    """The end of the time that a run or a part of it has; Ctrl-C brings it forward."""

    def __init__(self, minutes: float) -> None:
        """Counts from now on."""
        self._end = time.monotonic() + 60 * minutes
        signal.signal(signal.SIGINT, self._stop)

    def _stop(self, *_: object) -> None:
        self._end = 0.0

    def is_reached(self) -> bool:
        """Returns whether nothing else may be begun."""
        return time.monotonic() > self._end


def run_parts(module: str, folders: Sequence[Path], more: Sequence[Mapping[str, str]]) -> bool:
    """Runs a module once for each folder, at the same time; returns whether all did their work.

    Each process gets the arguments of this one, `--part NUMBER` and `--folder FOLDER`, and has the
    folder for its temporary files. `more` adds to the environment of each. After Ctrl-C, each ends
    with the point that it is trying.
    """
    environ = {name: value for name, value in os.environ.items() if name not in _OWN}
    processes = []
    for number, folder in enumerate(folders):
        words = ["--part", str(number), "--folder", str(folder)]
        command = [sys.executable, "-X", "utf8", "-m", module, *sys.argv[1:], *words]
        own = {"TMPDIR": str(folder), **more[number]}
        # In a session of its own: Ctrl-C is for the part, not for the commands that it tries.
        processes.append(subprocess.Popen(command, env=environ | own, start_new_session=True))
    try:
        statuses = [_ended(process, processes) for process in processes]
    finally:
        for process in processes:
            process.terminate()
    return not any(statuses)


NOTHING_TRIED = 2
"""The exit status of a run that tried nothing, and so shows nothing."""


def is_vain(tried: int, points: int, before: int = 0) -> bool:
    """Returns whether a run tried nothing that was left, and prints why.

    `before` is the number of points that earlier runs tried.
    """
    if tried or (points and before >= points):
        return False
    reason = "the time was used up before the first point" if points else "no point was chosen"
    print(f"nothing was tried: {reason}", file=sys.stderr)
    return True


def _ended(process: subprocess.Popen[bytes], every: Sequence[subprocess.Popen[bytes]]) -> int:
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            print("stopping after the points that are being tried", file=sys.stderr)
            for each in every:
                each.send_signal(signal.SIGINT)
