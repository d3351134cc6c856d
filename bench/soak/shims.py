"""Libraries that are loaded into a process: one moves its clock, one limits file events."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def built(name: str, folder: Path) -> Path | None:
    """Compiles a library into a folder and returns its path; None if this system can't."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / f"{name}.so"
    source = FOLDER / f"{name}.c"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    done = subprocess.run(words, check=False, capture_output=True)
    return library if done.returncode == 0 else None


class Clock:
    """The clock of the processes that have its environment."""

    def __init__(self, library: Path, file: Path) -> None:
        """Takes the library and a new file for the shift."""
        self._file = file
        self.set(0)
        self.environ = {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(file)}

    def set(self, seconds: int) -> None:
        """Moves the time of day, counted from the real one."""
        data = struct.pack("=q", seconds)
        if not self._file.exists():
            self._file.write_bytes(data)
        with self._file.open("r+b") as file:
            file.write(data)
