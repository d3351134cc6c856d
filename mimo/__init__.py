"""mind: a local-first, git-friendly long-term memory for coding agents and people."""

from __future__ import annotations

import os

__version__ = "1.1.0"


def installed() -> str:
    """Returns what identifies the installation on disk; an empty text if it was removed.

    An update writes this file again, so its inode or its time changes. In an archive, the file is
    the archive.
    """
    path = __file__
    while True:
        try:
            status = os.stat(path)  # noqa: PTH116 - `pathlib` takes longer to load than all of this
        except NotADirectoryError:
            path = os.path.dirname(path)  # noqa: PTH120 - as above
        except OSError:
            return ""
        else:
            return f"{status.st_ino:x} {status.st_mtime_ns:x} {os.path.realpath(path)}"


BUILD = installed()
"""The installation from which this process loaded its code."""
