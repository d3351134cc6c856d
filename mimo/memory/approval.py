"""The names by which texts are approved.

An approval covers the bytes of a text and the way in which they are read: the same bytes in another
folder are another type of memory, and a quotation in a note is a decision in the log. So the name
of a text is a digest of both. It is that of a whole file, except where a file has several memories:
each line of the log, comment, commit message and part of an ingested text has its own name, so that
a change of one leaves the others approved.
"""

from __future__ import annotations

try:  # `hashlib` also loads OpenSSL, which takes too long for a short command.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b
from mimo.memory.ids import folder_kind
from mimo.memory.model import Kind, Memory, is_elsewhere

_ANY = "surrogatepass"
_BY_PATH = ("values", "procedures")
"""The folders in which the name of a file decides what its text is for."""
_OF_PLACE = ("chunk_index", "total_chunks", "lines", "sha256", "chunks")
"""Facts of a part of a text that change when another part does."""


def approval_of(path: str, data: bytes) -> str:
    """Returns the name that approves a whole file; `path` is relative to the project.

    What the text of a decision record states beside its header is part of it, so that a text is
    approved as it is read. The exact path of the policy and of the settings is part of it, so that
    neither a memory with the same bytes, which an agent may write, nor another spelling of the path
    approves them.
    """
    folders = path.split("/")[1:-1]
    inside = folders[1:] if folders[:1] == ["private"] else folders
    if is_elsewhere(path):
        kind = folder_kind(path)
        way = f"document {kind or ''}"
        if kind is Kind.DECISION:
            from mimo.memory.codec.file import stated_in_text

            way += "".join(f"\0{key}\0{value}" for key, value in stated_in_text(data).items())
    elif inside[:1] and inside[0] not in _BY_PATH:
        way = f".mind/{inside[0]}/"
    else:
        way = path if inside or not path.endswith(".md") else ".mind/"
    return blake2b(f"{way}\0".encode("utf-8", _ANY) + data, digest_size=32).hexdigest()


def approval_of_entry(way: str, memory: Memory) -> str:
    """Returns the name that approves one of several memories in a text, which is read in a `way`.

    Its place and its date are not part of it: other entries move it, and git may know its date.
    """
    extra = {key: value for key, value in memory.extra.items() if key not in _OF_PLACE}
    fields = (
        *(memory.type.value, memory.content, memory.topic, memory.tags, memory.by, memory.status),
        *(memory.outcome and memory.outcome.value, memory.protected, memory.importance),
        *(memory.title, memory.category, memory.confidence),
        *(sorted((key.value, text) for key, text in memory.sections.items()),),
        *(sorted((link.to, str(link.type)) for link in memory.links), sorted(extra.items())),
    )
    text = repr(fields).encode("utf-8", _ANY)
    return blake2b(f"{way}\0\0".encode("utf-8", _ANY) + text, digest_size=32).hexdigest()


def claim(source: str, target: str) -> str:
    """Returns the name that approves the claim of one memory to supersede another, by their ids."""
    ids = f"supersedes\0\0\0{source}\0{target}".encode("utf-8", _ANY)
    return blake2b(ids, digest_size=32).hexdigest()
