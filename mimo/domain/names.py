"""Names of namespaces and keys: what is one, and which file it has.

A name is taken exactly as it is or refused. Nothing is decoded, folded or trimmed, so that what a
policy permits and what is opened are one and the same.
"""

import re

from mimo.errors import Invalid

LONGEST_NAMESPACE = 100
LONGEST_KEY = 200
SUFFIX = ".md"

_NAMESPACE = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_KEY = re.compile(r"[A-Za-z0-9_.-]+")
_PREFIX = re.compile(r"[A-Za-z0-9_.-]*")
_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.-]*(?<!\.)")
_DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)))
)
"""Names that some systems take for devices, whatever follows the first dot."""


def check_namespace(text: str) -> str:
    """Returns a namespace as it is; raises `Invalid` for what is none."""
    if len(text) <= LONGEST_NAMESPACE and _NAMESPACE.fullmatch(text):
        return text
    raise Invalid(
        f"`namespace` is no name of a namespace: {_shown(text)}",
        hint=f"words of A-Z a-z 0-9 _ - joined by dots, such as `session.build`; "
        f"{LONGEST_NAMESPACE} characters at most",
        details={"field": "namespace"},
    )


def check_key(text: str) -> str:
    """Returns a key as it is; raises `Invalid` for what is none."""
    if len(text) <= LONGEST_KEY and _KEY.fullmatch(text) and text.strip("."):
        return text
    raise Invalid(
        f"`key` is no name of a key: {_shown(text)}",
        hint=f"letters A-Z a-z, digits, `_`, `-` and `.`; {LONGEST_KEY} characters at most",
        details={"field": "key"},
    )


def check_prefix(text: str) -> str:
    """Returns the start of a key as it is; raises `Invalid` for what no key begins with."""
    if len(text) <= LONGEST_KEY and _PREFIX.fullmatch(text):
        return text
    raise Invalid(
        f"no key begins with `prefix` {_shown(text)}",
        hint="keys have letters A-Z a-z, digits, `_`, `-` and `.`",
        details={"field": "prefix"},
    )


def is_passing(namespace: str) -> bool:
    """Returns whether what a namespace holds stays on this machine: `session.*`, in any case."""
    return namespace.partition(".")[0].lower() == "session"


def covers(pattern: str, name: str) -> bool:
    """Returns whether a pattern admits a name, compared segment by segment and case by case.

    `*` stands for one whole segment, as the last one for one or more: `session.*` admits
    `session.a` and `session.a.b`, but neither `session` nor `sessionevil`.
    """
    wanted, given = pattern.split("."), name.split(".")
    if wanted[-1] == "*" and len(given) > len(wanted):
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(
        want in ("*", have) for want, have in zip(wanted, given, strict=True)
    )


def is_pattern(text: str) -> bool:
    """Returns whether a text can admit names: a namespace in which segments may be `*`."""
    plain = ".".join("x" if part == "*" else part for part in text.split("."))
    return len(text) <= LONGEST_NAMESPACE and _NAMESPACE.fullmatch(plain) is not None


def stem_of(name: str) -> str:
    """Returns the name of the file or folder of a namespace or key, without an ending.

    It is the name itself where that is safe on every file system, also where case is folded; any
    other has the start of a digest behind a `~`, which no name holds.
    """
    if _PLAIN.fullmatch(name) and name.partition(".")[0] not in _DEVICES:
        return name
    import hashlib

    shown = re.sub(r"^[.-]", "_", name.lower())
    return f"{shown}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _shown(text: str) -> str:
    short = text if len(text) <= 60 else text[:59] + "…"
    return f"`{short.encode('unicode_escape').decode()}`"
