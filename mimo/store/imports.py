"""What imports have written into a project: kept beside it, on this machine alone.

`.mind/.local/imports/mama-<hash of the source's path>.json` lists every file with its digest before
the first of them is written, so that an import that was interrupted can be completed or taken back.
The copy of the source stands beside it.
"""

import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from mimo.errors import Conflict, StorageFailed
from mimo.frozen import frozen
from mimo.store import files
from mimo.store.locking import lock
from mimo.store.names import STORE

FOLDER = f"{STORE}/.local/imports"
_PATH = re.compile(rf"{re.escape(STORE)}/(?:private/)?[a-z]+/[A-Za-z0-9_-][A-Za-z0-9_.-]*\.md")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@frozen
class Manifest:
    """What imports from one source have written."""

    source: str
    """Where the source is, or was."""
    digest: str
    """SHA-256 of the copy that was read last."""
    backup: str
    """That copy, relative to the project's root."""
    began: datetime
    finished: datetime | None
    """None where the last import was interrupted."""
    counts: Mapping[str, int]
    """How many memories each table gave the last time."""
    files: Mapping[str, str]
    """Digest of each file by its path relative to the project's root, as it was written."""


def path_of(source: Path) -> str:
    """Returns where the manifest of a source is, relative to the project's root."""
    digest = sha256(str(source).encode("utf-8", "replace")).hexdigest()
    return f"{FOLDER}/mama-{digest[:8]}.json"


def known(root: Path) -> tuple[str, ...]:
    """Returns where the manifests of a project are, relative to its root."""
    folder = files.safe_path(root, FOLDER)
    with suppress(OSError):
        return tuple(sorted(f"{FOLDER}/{path.name}" for path in folder.glob("mama-*.json")))
    return ()


def hold(root: Path) -> AbstractContextManager[None]:
    """Keeps other imports into the project away. Raises `StorageFailed` where one is at work."""
    return lock(files.safe_path(root, f"{FOLDER}/lock"))


def keep_backup(root: Path, data: bytes, digest: str) -> str:
    """Puts the copy of a source into the project and returns its path. Raises `StorageFailed`.

    Its name is made from what it holds: the same copy is kept once.
    """
    path = f"{FOLDER}/mama-{digest[:16]}.db"
    with suppress(Conflict):
        files.write_new(files.safe_path(root, path), data, mode=0o600)
    return path


def read(root: Path, path: str) -> Manifest | None:
    """Returns a manifest, or None where there is none. Raises `StorageFailed` for a damaged one."""
    target = files.safe_path(root, path)
    try:
        raw = json.loads(files.read(target))
        finished = raw["finished"]
        return Manifest(
            source=str(raw["source"]),
            digest=str(raw["digest"]),
            backup=str(raw["backup"]),
            began=datetime.fromisoformat(raw["began"]),
            finished=datetime.fromisoformat(finished) if finished else None,
            counts={str(name): int(count) for name, count in raw["counts"].items()},
            files=_files(raw["files"]),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise files.failure("read", target, error) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise StorageFailed(
            f"`{path}` is damaged", hint="move it away; what was imported stays as it is"
        ) from None


def write(root: Path, path: str, manifest: Manifest) -> None:
    """Puts a manifest in the place of an earlier one. Raises `StorageFailed`."""
    told = {
        "source": manifest.source,
        "digest": manifest.digest,
        "backup": manifest.backup,
        "began": manifest.began.isoformat(),
        "finished": manifest.finished.isoformat() if manifest.finished else None,
        "counts": dict(manifest.counts),
        "files": dict(manifest.files),
    }
    data = json.dumps(told, indent=1, ensure_ascii=True).encode()
    files.replace(files.safe_path(root, path), data + b"\n", mode=0o600)


def forget(root: Path, path: str) -> None:
    """Removes a manifest. Raises `StorageFailed`."""
    files.remove(files.safe_path(root, path))


def _files(raw: Any) -> dict[str, str]:
    """Returns the listed files; raises `ValueError` for what no import writes."""
    for path, digest in raw.items():
        if not _PATH.fullmatch(path) or not _DIGEST.fullmatch(digest):
            raise ValueError(path)
    return dict(raw)
