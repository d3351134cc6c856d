"""The log of `mind hook`: one line for each thing, and never much of it."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from mimo.domain.clean import clean
from mimo.errors import MindError
from mimo.store import append_log, files

MOST_BYTES = 256 * 1024
_LONGEST = 400


def path_of(home: Path) -> Path:
    """Returns where the log is."""
    return home / "logs" / "hook.log"


def note(home: Path, now: datetime, what: str) -> None:
    """Adds one line; that it can't be written is no reason to fail."""
    path = path_of(home)
    line = " ".join(clean(what).split())[:_LONGEST]
    with suppress(OSError, MindError):
        stamp = now.isoformat(timespec="seconds").replace("+00:00", "Z")
        append_log.append(path, f"{stamp} {line}\n".encode("utf-8", "replace"), durable=False)
        if path.stat().st_size > MOST_BYTES:
            kept = files.read(path)[-MOST_BYTES // 2 :]
            files.replace(path, kept[kept.find(b"\n") + 1 :], mode=0o600)
