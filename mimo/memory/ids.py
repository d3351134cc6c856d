"""Ids of memories, and names of namespaces and keys."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from pathlib import PurePosixPath

from mimo.errors import Invalid
from mimo.memory.model import ID_PATTERN, Kind
from mimo.text.clean import compiled

# Namespaces and keys of values.

LONGEST_NAMESPACE = 100
LONGEST_KEY = 200
SUFFIX = ".md"

_NAMESPACE = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
_KEY = r"[A-Za-z0-9_.-]+"
_PREFIX = r"[A-Za-z0-9_.-]*"
_PLAIN = r"[a-z0-9_][a-z0-9_.-]*(?<!\.)"
_DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)))
)
"""Names of devices on some systems, with any ending."""


def check_namespace(text: str) -> str:
    """Returns a namespace unchanged; raises `Invalid` for another text."""
    if len(text) <= LONGEST_NAMESPACE and compiled(_NAMESPACE).fullmatch(text):
        return text
    raise Invalid(
        f"`namespace` is not a name of a namespace: {_excerpt(text)}",
        hint=f"words of A-Z a-z 0-9 _ - joined by dots, such as `session.build`; "
        f"{LONGEST_NAMESPACE} characters at most",
        details={"field": "namespace"},
    )


def check_key(text: str) -> str:
    """Returns a key unchanged; raises `Invalid` for another text."""
    if len(text) <= LONGEST_KEY and compiled(_KEY).fullmatch(text) and text.strip("."):
        return text
    raise Invalid(
        f"`key` is not a name of a key: {_excerpt(text)}",
        hint=f"letters A-Z a-z, digits, `_`, `-` and `.`; {LONGEST_KEY} characters at most",
        details={"field": "key"},
    )


def check_prefix(text: str) -> str:
    """Returns the start of a key unchanged; raises `Invalid` if no key can begin with it."""
    if len(text) <= LONGEST_KEY and compiled(_PREFIX).fullmatch(text):
        return text
    raise Invalid(
        f"no key begins with `prefix` {_excerpt(text)}",
        hint="keys have letters A-Z a-z, digits, `_`, `-` and `.`",
        details={"field": "prefix"},
    )


def is_passing(namespace: str) -> bool:
    """Returns whether values of a namespace stay on this machine: `session.*`, in any case."""
    return namespace.partition(".")[0].lower() == "session"


def covers(pattern: str, name: str) -> bool:
    """Returns whether a pattern admits a name, compared segment by segment and case by case.

    `*` stands for one whole segment, as the last one for one or more: `session.*` admits
    `session.a` and `session.a.b`, but neither `session` nor `sessionevil`.
    """
    mask, parts = pattern.split("."), name.split(".")
    if mask[-1] == "*" and len(parts) > len(mask):
        parts = parts[: len(mask)]
    return len(mask) == len(parts) and all(
        want in ("*", have) for want, have in zip(mask, parts, strict=True)
    )


def is_pattern(text: str) -> bool:
    """Returns whether a text can admit names: a namespace in which segments may be `*`."""
    plain = ".".join("x" if part == "*" else part for part in text.split("."))
    return len(text) <= LONGEST_NAMESPACE and compiled(_NAMESPACE).fullmatch(plain) is not None


def stem_of(name: str) -> str:
    """Returns the name of the file or folder of a namespace or key, without an ending.

    It is the name itself if that is safe on every file system, case-insensitive ones included.
    Otherwise the start of a digest follows a `~`, which no name contains.
    """
    if compiled(_PLAIN).fullmatch(name) and name.partition(".")[0] not in _DEVICES:
        return name
    import hashlib

    safe_name = re.sub(r"^[.-]", "_", name.lower())
    return f"{safe_name}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _excerpt(text: str) -> str:
    short = text if len(text) <= 60 else text[:59] + "…"
    return f"`{short.encode('unicode_escape').decode()}`"


MEMORY_URI = "mind://memory/"
"""Prefix of the URI of a memory, followed by its id."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_BEFORE_LETTERS = r"(?:[a-z]+_(?:[a-z0-9_]+_)?[0-9]{8}|source(?:_[a-z0-9_]+)?)_"
_GENERATED_ID = rf"{_BEFORE_LETTERS}([a-z2-7]{{6}})"
"""The ids of new memories, see `new_id`, and those of ingested files."""
_MENTIONED = rf"(?<![\w/.-]){_BEFORE_LETTERS}[a-z2-7]{{6}}(?:\.[0-9]+)?(?![\w/-]|\.\w)"
HANDLE_LENGTH = 6
_BEGINNING = rf"[a-z2-7]{{1,{HANDLE_LENGTH}}}"
_SLUG_LENGTH = 40
_DERIVED_LENGTH = 100
_FOLDERS = frozenset(kind.folder for kind in Kind)


def suffix(randomness: bytes) -> str:
    """Returns the six base32 letters that end a new id, made from 4 or more random bytes."""
    number = int.from_bytes(randomness[:4], "big")
    return "".join(_LETTERS[number >> (5 * place) & 31] for place in range(6))


def slug(text: str) -> str:
    """Returns the words of `text` as an id shows them: ASCII, joined by `_`, 40 letters at most.

    Accents are dropped; the slug of a text without ASCII letters and digits is empty.
    """
    plain = unicodedata.normalize("NFKD", text[:400]).encode("ascii", "ignore").decode().lower()
    words = ""
    for word in re.findall(r"[a-z0-9]+", plain):
        longer = f"{words}_{word}" if words else word[:_SLUG_LENGTH]
        if len(longer) > _SLUG_LENGTH:
            break
        words = longer
    return words


def handle_of(id: str) -> str:
    """Returns the six letters by which people name a memory or an ingested file.

    They are the random end of an id that mind made, and a digest of any other id. A text that can't
    be an id, such as one with a masked secret, is returned unchanged.
    """
    if match := compiled(_GENERATED_ID).fullmatch(id):
        return match[1]
    if not compiled(ID_PATTERN).fullmatch(id):
        return id
    import hashlib

    return suffix(hashlib.sha256(id.encode()).digest())


def source_of(id: str) -> str | None:
    """Returns the id of the ingested file if `id` is that of one of its chunks."""
    source, _, number = id.rpartition(".")
    return source if id.startswith("source_") and number.isdecimal() else None


def is_source(id: str) -> bool:
    """Returns whether an id is that of an ingested file, not of one of its chunks."""
    return id.startswith("source_") and source_of(id) is None


def with_handles(message: str) -> str:
    """Returns a message with handles in place of the ids that mind made, except in paths."""
    return compiled(_MENTIONED).sub(lambda match: handle_of(match[0]), message)


def begins_handle(word: str) -> bool:
    """Returns whether `word` can be a handle, or the beginning of one."""
    return compiled(_BEGINNING).fullmatch(word) is not None


def new_id(kind: Kind, topic_or_text: str, day: date, letters: str) -> str:
    """Returns `<type>_<slug>_<yyyymmdd>_<letters>`; an empty slug is left out.

    `letters` come from `suffix`. A slug that looks like a secret is left out as well.
    """
    words = slug(topic_or_text)
    words = "" if holds_secret(words) else words
    parts = [kind.value, words, f"{day:%Y%m%d}", letters]
    return "_".join(part for part in parts if part)


def short_name(id: str) -> str:
    """Returns the short name of a new memory's file: `use-jwt-k3v7mq.md`."""
    _, *words, _, letters = id.split("_")
    return "-".join((*words, letters)) + SUFFIX


def holds_secret(name: str) -> bool:
    """Returns whether an id, or the name of a file, holds a secret.

    Such an id would be masked in every output, so that its memory could not be opened.
    """
    if not compiled(_LONG_PART).search(name):
        return False
    from mimo.privacy.secrets import secrets_in

    return bool(secrets_in(name))


_LONG_PART = r"[A-Za-z0-9]{14}"
"""Every secret has a part of this length."""


def is_id(word: str) -> bool:
    """Returns whether `word` can be the id of a memory."""
    return compiled(ID_PATTERN).fullmatch(word) is not None


def uri_of(id: str) -> str:
    """Returns the URI of a memory; ids need no escaping."""
    return f"{MEMORY_URI}{id}"


def of_path(path: str) -> str:
    """Returns the id of a file without an id in its header.

    It is the stem for a file directly in `.mind/` or in a folder named for a type, else the path
    joined by dots (`docs/decisions/0001-use-git.md` is `docs.decisions.0001-use-git`). If an id
    can't hold some of the characters, they are dropped and a hash of the path is added.
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
    # With a dot in a name, `a.b/c` and `a/b.c` would have the same id.
    plain = is_id(joined) and not any("." in part for part in [*parts, stem])
    return joined if plain else unique(path)


def unique(path: str) -> str:
    """Returns a unique id for the file at `path`: its valid characters and a hash."""
    from hashlib import sha256

    parts, name = _within_store(path)
    text = ".".join([*parts, PurePosixPath(name).stem or name])
    text = unicodedata.normalize("NFKD", text)
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", re.sub(r"[\u0300-\u036f]", "", text))
    readable = re.sub(r"-*\.[-.]*", ".", readable).strip("-.")[:_DERIVED_LENGTH].strip("-.")
    if holds_secret(readable):
        readable = ""
    # A name has two normal forms in Unicode, and file systems return one or the other.
    digest = sha256(unicodedata.normalize("NFC", path).encode("utf-8", "replace"))
    return f"{readable or 'note'}-{digest.hexdigest()[:8]}"


_KINDS_BY_FOLDER = {kind.folder: kind for kind in Kind} | dict.fromkeys(
    ("adr", "adrs"), Kind.DECISION
)
"""Folders named after a type, and the usual names for folders of decision records."""


def folder_kind(path: str) -> Kind | None:
    """Returns the type that a file's folder names, if any.

    Under `.mind/` that is the first folder, elsewhere the folder of the file. There, pages about
    decisions are not decisions, and a folder with a number is one: `decisions/0005-x/index.md`.
    """
    *folders, name = path.split("/")
    if folders[:1] != [".mind"]:
        stem = name.partition(".")[0]
        if folders and stem.lower() in OF_FOLDER and compiled(RECORD_NUMBER).match(folders[-1]):
            stem = folders.pop()
        kind = _KINDS_BY_FOLDER.get(folders[-1].lower()) if folders else None
        return None if kind is Kind.DECISION and is_about_records(stem) else kind
    inside = folders[2:] if folders[1:2] == ["private"] else folders[1:]
    return _KINDS_BY_FOLDER.get(inside[0]) if inside else None


OF_FOLDER = ("readme", "index")
"""The names, in lower case, of files that may be the record of their folder."""
RECORD_NUMBER = r"(?i)(?:adr[-_ ]?)?(\d{1,6})(?=[-_ .]|$)"
"""The start of the name of a decision record."""
_ABOUT_RECORDS = (
    r"(?i)readme|index|(?:0*[-_ ])?(?:m?adr[-_ ]|decision[-_ ])?_?template"
    r"(?:[-_ ](?:bare|minimal|short|long|full|simple|example))*"
)


def is_about_records(stem: str) -> bool:
    """Returns whether a file in a folder of decision records is a page about them, by its name."""
    return compiled(_ABOUT_RECORDS).fullmatch(stem) is not None


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
