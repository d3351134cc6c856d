"""What is read for memories and never written: the log, comments in code, messages of commits."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from mimo.domain.memory import Place, Problem, Record
from mimo.store import files, history
from mimo.store.names import ALONE
from mimo.store.walk import COMMITS, LOG, is_markdown

_MOST_BYTES = 4_000_000
"""A log is one file for years, and so may be code; what is larger was made by a program."""
_MARK = b"MEMORY:"


def is_read_only(path: str) -> bool:
    """Returns whether memories at a path stand among what people wrote, line by line."""
    return path in (LOG, COMMITS) or not is_markdown(path)


def read(root: Path, path: str, *, commits: int) -> tuple[Record, ...] | Problem:
    """Returns the memories of a path that `is_read_only`, or why there are none.

    `commits` is how far back messages are read. Raises `OSError` and `MindError`.
    """
    if path == COMMITS:
        return tuple(_of_commits(root, commits))
    data, status = files.look(files.safe_path(root, path), limit=_MOST_BYTES)
    if len(data) > _MOST_BYTES:
        reason = f"too large: {status.st_size:,} bytes, and {_MOST_BYTES:,} are read at most"
        return Problem(path=path, line=None, reason=reason) if path == LOG else ()
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    if path == LOG:
        return _of_log(root, data, modified)
    return _of_code(path, data, modified) if _MARK in data else ()


def _of_log(root: Path, data: bytes, modified: datetime) -> tuple[Record, ...] | Problem:
    from mimo.domain import log

    return log.parse(
        data,
        path=LOG,
        digest=files.digest(data),
        modified=modified,
        dates=lambda: history.line_dates(root, LOG),
    )


def _of_code(path: str, data: bytes, modified: datetime) -> tuple[Record, ...]:
    from mimo.domain.log import remarks

    text = data.decode("utf-8", "replace")
    return tuple(remarks.in_code(text, path=path, digest=files.digest(data), modified=modified))


def _of_commits(root: Path, most: int) -> Iterator[Record]:
    from mimo.domain.log import remarks

    taken: dict[str, int] = {}
    position = 0
    for commit in history.commits(root, most):
        for memory in remarks.in_message(
            commit.body, commit=commit.id, author=commit.author, when=commit.when, taken=taken
        ):
            digest = files.digest(memory.content.encode("utf-8", "replace"))
            place = Place(path=COMMITS, line=1, digest=f"{ALONE}{digest}", owned=False)
            yield Record(memory=memory, place=place, position=position)
            position += 1
