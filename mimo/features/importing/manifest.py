"""The manifest of a source: the files that imports from it have written, with their digests.

`.mind/.local/imports/<format>-<hash of its path>.json` is written before the first of the files, so
that an interrupted import can be completed or rolled back. A rollback removes the files in it, so
the hash is also one of the user's secret: a manifest that comes with a clone is never used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from mimo.data import files
from mimo.data.disk import STORE
from mimo.data.locks import lock
from mimo.data.state import StateFile
from mimo.errors import StorageFailed
from mimo.frozen import frozen

FOLDER = f"{STORE}/.local/imports"
_PATH = re.compile(rf"{re.escape(STORE)}/(?:private/)?[a-z]+/[A-Za-z0-9_-][A-Za-z0-9_.-]*\.md")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@frozen
class Manifest:
    """The files that imports from one source have written."""

    path: str
    """Its own file; all paths of files are relative to the project's root."""
    source: str
    backup: str
    """The copy of the source; empty if there is none."""
    files: Mapping[str, tuple[str, ...]]
    """The digest of each file as it was written, after that of the text that this replaced.

    Both count: an import may have been interrupted in between.
    """

    def wrote(self, path: str, digest: str) -> bool:
        """Returns whether a file with this digest is as an import wrote it."""
        return digest in self.files.get(path, ())


def hold(root: Path) -> AbstractContextManager[None]:
    """Keeps other imports into the project away. Raises `StorageFailed` if one is running."""
    return lock(files.safe_path(root, f"{FOLDER}/lock"))


def manifest_path(format: str, source: str | Path, owner: str) -> str:
    """Returns the path of the manifest of a source; `owner` is the user's secret."""
    digest = sha256(f"{source}\n{owner}".encode("utf-8", "replace")).hexdigest()
    return f"{FOLDER}/{format}-{digest[:8]}.json"


def own_paths(root: Path, format: str | None, owner: str) -> list[str]:
    """Returns the paths of the manifests, of one format, that this user's imports wrote.

    A damaged one may be theirs, so it is among them.
    """
    pattern = re.compile(rf"{format or '[a-z0-9-]+'}-[0-9a-f]{{8}}\.json")
    names: list[str] = []
    with suppress(OSError):
        names = sorted(path.name for path in files.safe_path(root, FOLDER).glob("*.json"))
    paths = (f"{FOLDER}/{name}" for name in names if pattern.fullmatch(name))
    return [path for path in paths if _is_of_owner(root, path, owner)]


def format_of(path: str) -> str:
    """Returns the format that a manifest's path names."""
    return path[len(FOLDER) + 1 :].rpartition("-")[0]


def _is_of_owner(root: Path, path: str, owner: str) -> bool:
    try:
        manifest = read_manifest(root, path)
    except StorageFailed:
        return True
    if manifest is None:
        return False
    return path == manifest_path(format_of(path), manifest.source, owner)


def read_manifest(root: Path, path: str) -> Manifest | None:
    """Returns a manifest, or None if it does not exist.

    Raises `StorageFailed` for a damaged one, and for one that lists files that no import writes.
    """
    return _file(path).read(root, path)


def _file(path: str) -> StateFile[Manifest]:
    hint = "move it away; imported memories are not changed"
    return StateFile(partial(_manifest, path), hint=hint)


def _manifest(path: str, data: Any) -> Manifest:
    # Earlier versions wrote one digest for each file, and those of replacing texts apart.
    listed = {k: (of,) if isinstance(of, str) else tuple(of) for k, of in data["files"].items()}
    for name, digest in data.get("replacing", {}).items():
        listed[name] = (*listed.get(name, ()), digest)
    for name, digests in listed.items():
        if not (_PATH.fullmatch(name) and all(map(_DIGEST.fullmatch, digests))):
            raise ValueError(f"no import writes `{name}`")
    return Manifest(path=path, source=str(data["source"]), backup=str(data["backup"]), files=listed)


def write_manifest(root: Path, manifest: Manifest) -> None:
    """Writes a manifest over an earlier one. Raises `StorageFailed`."""
    content = {"source": manifest.source, "backup": manifest.backup, "files": {**manifest.files}}
    _file(manifest.path).write(root, manifest.path, content)
