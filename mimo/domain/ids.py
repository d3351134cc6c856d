"""Ids of memories: how new ones are made, and which one a file without an id goes by."""

import re
import unicodedata
from datetime import date
from pathlib import PurePosixPath

from mimo.domain.memory import ID_PATTERN, Kind

MEMORY_URI = "mind://memory/"
"""What the URI of a memory begins with; its id ends it."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_SLUG_LENGTH = 40
_DERIVED_LENGTH = 100
_FOLDERS = frozenset(kind.folder for kind in Kind)


def suffix(randomness: bytes) -> str:
    """Returns the six base32 letters that end a new id, made from 4 or more random bytes."""
    number = int.from_bytes(randomness[:4], "big")
    return "".join(_LETTERS[number >> (5 * place) & 31] for place in range(6))


def slug(text: str) -> str:
    """Returns the words of `text` as an id shows them: ASCII, joined by `_`, 40 letters at most.

    Accents are dropped; a text without any ASCII word characters has an empty slug.
    """
    plain = unicodedata.normalize("NFKD", text[:400]).encode("ascii", "ignore").decode().lower()
    found = ""
    for word in re.findall(r"[a-z0-9]+", plain):
        longer = f"{found}_{word}" if found else word[:_SLUG_LENGTH]
        if len(longer) > _SLUG_LENGTH:
            break
        found = longer
    return found


def new_id(kind: Kind, topic_or_text: str, day: date, letters: str) -> str:
    """Returns `<type>_<slug>_<yyyymmdd>_<letters>`, without the slug where nothing is left of it.

    `letters` come from `suffix`. A slug that makes a secret of it is left out as well.
    """
    words = slug(topic_or_text)
    words = "" if holds_secret(words) else words
    parts = [kind.value, words, f"{day:%Y%m%d}", letters]
    return "_".join(part for part in parts if part)


def holds_secret(name: str) -> bool:
    """Returns whether an id, or the name of a file, holds a secret.

    Such an id would be masked wherever it is shown, and its memory could not be opened.
    """
    if not _LONG_PART.search(name):
        return False
    from mimo.domain.privacy import secrets_in

    return bool(secrets_in(name))


_LONG_PART = re.compile(r"[A-Za-z0-9]{14}")
"""No secret has only shorter parts."""


def is_id(word: str) -> bool:
    """Returns whether `word` can be the id of a memory."""
    return ID_PATTERN.fullmatch(word) is not None


def uri_of(id: str) -> str:
    """Returns the URI of a memory; an id holds no character that a URI would have to escape."""
    return f"{MEMORY_URI}{id}"


def of_path(path: str) -> str:
    """Returns the id of a file whose header gives none.

    It is the stem for a file directly in `.mind/` or in a folder named for a type, else the path
    joined by dots (`docs/decisions/0001-use-git.md` is `docs.decisions.0001-use-git`). What an id
    can't hold is left out, and a hash of the path keeps the rest unique.
    """
    parts, name = _within_store(path)
    stem = PurePosixPath(name).stem or name
    if holds_secret(path):
        return unique(path)
    if not parts:
        return stem if is_id(stem) and not stem.startswith(".") else unique(path)
    if not name.endswith(".md"):
        stem = name
    joined = ".".join([*parts, stem])
    # With a dot in a name, `a.b/c` and `a/b.c` would be one id.
    plain = is_id(joined) and not any("." in part for part in [*parts, stem])
    return joined if plain else unique(path)


def unique(path: str) -> str:
    """Returns an id that only the file at `path` has: what an id can hold of it, and a hash."""
    from hashlib import sha256

    parts, name = _within_store(path)
    text = ".".join([*parts, PurePosixPath(name).stem or name])
    text = unicodedata.normalize("NFKD", text)
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", re.sub(r"[\u0300-\u036f]", "", text))
    readable = re.sub(r"-*\.[-.]*", ".", readable).strip("-.")[:_DERIVED_LENGTH].strip("-.")
    if holds_secret(readable):
        readable = ""
    # One name has two spellings in Unicode, and file systems differ in which one they give back.
    digest = sha256(unicodedata.normalize("NFC", path).encode("utf-8", "replace"))
    return f"{readable or 'note'}-{digest.hexdigest()[:8]}"


_KINDS_BY_FOLDER = {kind.folder: kind for kind in Kind} | dict.fromkeys(
    ("adr", "adrs"), Kind.DECISION
)
"""Folders named after a type; decision records have a name of their own."""


def folder_kind(path: str) -> Kind | None:
    """Returns the type that a file's folder says, if it says one.

    Under `.mind/` that is the first folder, elsewhere the one that the file lies in.
    """
    folders = path.split("/")[:-1]
    if folders[:1] != [".mind"]:
        return _KINDS_BY_FOLDER.get(folders[-1].lower()) if folders else None
    told = folders[2:] if folders[1:2] == ["private"] else folders[1:]
    return _KINDS_BY_FOLDER.get(told[0]) if told else None


def _within_store(path: str) -> tuple[list[str], str]:
    """Returns the folders of `path` that its id shows, and the file's name."""
    *folders, name = path.split("/")
    if folders[:1] == [".mind"]:
        del folders[0]
        if folders[:1] == ["private"] and (len(folders) == 1 or folders[1] in _FOLDERS):
            del folders[0]
        if len(folders) == 1 and folders[0] in _FOLDERS:
            del folders[0]
    return folders, name
