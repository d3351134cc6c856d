"""Which files may become memories: where they may lie, and what they may be."""

import os
from base64 import b32encode
from pathlib import Path

from mimo.domain import ids
from mimo.domain.chunking import REFUSED, suffix
from mimo.errors import Invalid
from mimo.mind import Mind
from mimo.store.sandbox import Sandbox

_SIGNATURES = {b"%PDF-": "a PDF", b"PK\x03\x04": "a zip archive or an Office document"}


def sandbox_of(mind: Mind) -> Sandbox:
    """Returns what may be read: all of it for a person, the project for an agent.

    SANDBOX_DIR is the limit of both where it is set.
    """
    root, by_agent = mind.project.root, mind.author is not None
    given = mind.environ.get("SANDBOX_DIR")
    if given:
        limit = Path(given).expanduser().absolute()
        return Sandbox(limit, limit if by_agent and not root.is_relative_to(limit) else _base(mind))
    return Sandbox(root if by_agent else None, _base(mind))


def _base(mind: Mind) -> Path:
    """Returns where relative names begin: where a person is, and the project for an agent."""
    return Path.cwd() if mind.author is None else mind.project.root


def relative(mind: Mind, path: Path) -> str:
    """Returns a file's path as it is kept: relative to the project, wherever that is."""
    found = Path(os.path.relpath(path, os.path.realpath(mind.project.root))).as_posix()
    return found.encode("utf-8", "backslashreplace").decode()


def check_place(mind: Mind, place: Path, path: str) -> None:
    """Raises `Invalid` for a file that is memory already, or git's own."""
    check_not_git(path)
    if path.startswith(".mind/") or place.is_relative_to(mind.home):
        raise Invalid(f"`{path}` is memory already", hint="name a file outside of .mind/")
    if mind.config["include"] and path in mind.store.stamps():
        raise Invalid(
            f"`{path}` is memory already, by the setting `include`",
            hint="it is found as it is; see `mind config include`",
        )


def check_not_git(path: str) -> None:
    """Raises `Invalid` for a path, relative to the project, in a git directory.

    Those hold addresses with passwords, and texts of every branch.
    """
    if ".git" in path.casefold().split("/"):
        raise Invalid(f"`{path}` belongs to git", hint="name a file or folder of the working tree")


def text_of(data: bytes, path: str) -> str:
    """Returns the text of a file; raises `Invalid` for what may not become memory."""
    kind = REFUSED.get(suffix(path))
    kind = kind or next((what for sign, what in _SIGNATURES.items() if data.startswith(sign)), None)
    if kind:
        raise Invalid(
            f"`{path}` is {kind}; only plain text can be ingested",
            hint="turn it into text first, for example with pdftotext or pandoc",
        )
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Invalid(f"`{path}` is text in UTF-16, not in UTF-8", hint="convert it with iconv")
    if b"\0" in data:
        raise Invalid(f"`{path}` is binary; only plain text can be ingested")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Invalid(
            f"`{path}` is not text in UTF-8: byte 0x{data[error.start]:02x} on line {line}",
            hint="convert it first, for example with iconv",
        ) from None


def source_id(path: str) -> str:
    """Returns the id of a file's source: the same for the same path, on every machine."""
    from hashlib import sha256

    letters = b32encode(sha256(path.encode()).digest())[:6].decode().lower()
    return "_".join(part for part in ("source", ids.slug(path.rpartition("/")[2]), letters) if part)
