"""Libraries in C that are loaded into processes, in front of the system's own functions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

MISSING = "nothing was tried: this needs Linux and a C compiler (`cc`)"
"""The message where `built` returns None."""


def built(source: Path, folder: Path) -> Path | None:
    """Compiles a library into a folder and returns its path; None if this system can't."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / f"{source.stem}.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    done = subprocess.run(words, check=False, capture_output=True)
    return library if done.returncode == 0 else None


def loaded(library: Path, name: str, folder: Path, size: int) -> dict[str, str]:
    """Returns the variables that load a library which shares a state and a record.

    Makes both files in the folder: `NAME_STATE`, of so many zeros, and `NAME_RECORD`.
    """
    state, record = folder / "state", folder / "record"
    state.write_bytes(bytes(size))
    record.touch()
    return {"LD_PRELOAD": f"{library}", f"{name}_STATE": f"{state}", f"{name}_RECORD": f"{record}"}
