"""`mind merge-driver`, which git calls for each file of memory that two branches changed.

It is not a command of the registry: only git calls it, once a file, and it must start fast.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mimo.errors import MindError

USAGE = """\
Usage: mind merge-driver BASE OURS THEIRS [PATH]

Merge one file of memory, field by field, into OURS. git calls this; `mind init` sets it up.
"""
_CONFLICT = 1
"""The exit status if nothing was merged: git merges the texts then."""
_APART = ("values/", "procedures/", "MEMORY.md", "policy.yaml")
"""Files that are not memories: a mixture of two procedures would be one without an author."""


def main(args: Sequence[str]) -> int:
    """Returns 0 if our file contains the merge now, 1 if it is not changed."""
    if len(args) not in (3, 4):
        sys.stderr.write(USAGE)
        return 0 if list(args) == ["--help"] else 2
    # The path is relative to the repository, and the project may be a folder of it.
    named = args[3] if len(args) == 4 else ""
    path = f".mind/{named.rpartition('.mind/')[2] or 'memory.md'}"
    if path.removeprefix(".mind/").startswith(_APART):
        return _CONFLICT
    try:
        return _merge([Path(name) for name in args[:3]], path, args[-1])
    except Exception:  # noqa: BLE001 - git can still merge the texts
        return _CONFLICT


def _merge(files: Sequence[Path], path: str, shown: str) -> int:
    from mimo.disk import read
    from mimo.memory.merge import merge
    from mimo.rendering import complain
    from mimo.store.files import replace

    base, ours, theirs = (read(file) for file in files)
    merged = merge(base, ours, theirs, path=path)
    if merged is None:
        return _CONFLICT
    _approve_if_both_were(ours, theirs, merged.data, path=shown)
    replace(files[1], merged.data)
    if merged.dropped:
        reason = "two copies of an ingested file; the newer one was kept, ingest it again"
        complain(f"mind: {shown}: {reason}")
    elif merged.competing:
        names = ", ".join(merged.competing)
        reason = f"competing versions of {names}; both stand in the file (## Competing: …)"
        complain(f"mind: {shown}: {reason}")
    return 0


def _approve_if_both_were(ours: bytes, theirs: bytes, merged: bytes, *, path: str) -> None:
    """Approves a merge of two approved texts, since it contains no other text.

    git calls from the top of the working tree, and the project may be a folder of it. If trust
    can't be read or written, the merge counts as untrusted.
    """
    import os

    from mimo.disk import home_of
    from mimo.store.files import digest
    from mimo.store.trust import Trust

    with suppress(MindError, OSError):
        root = Path.cwd() / path.rpartition(".mind/")[0]
        trust = Trust(home_of(os.environ), root)
        if trust.trusted(digest(ours)) and trust.trusted(digest(theirs)):
            trust.approve([digest(merged)])
