"""Taking an import back: its files go, but for those that somebody has changed since."""

from dataclasses import replace
from pathlib import Path

from mimo.errors import Invalid, NotFound
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import capture, upkeep
from mimo.store import imports, mama
from mimo.store.imports import Manifest


@frozen
class RolledBack:
    """What taking an import back did, or would do."""

    manifest: Manifest
    path: str
    """Where the list of its files is, or was."""
    removed: tuple[str, ...]
    gone: tuple[str, ...]
    """Files that somebody else had removed already."""
    changed: tuple[str, ...]
    """Files that stay, since somebody has changed them."""


def roll_back(mind: Mind, named: str | None, *, dry_run: bool) -> RolledBack:
    """Removes what was imported from a MAMA database, `named` where there were several.

    With `dry_run` nothing is removed. Raises `NotFound` where nothing was imported, `Invalid` where
    it isn't clear from where, and `StorageFailed`.
    """
    capture.check_format(mind)
    root = mind.project.root
    path = _path(mind, named)
    if dry_run:
        return _sorted(mind, path, _read(root, path))
    with imports.hold(root):
        found = _sorted(mind, path, _read(root, path))
        stay = mind.store.delete_all({name: found.manifest.files[name] for name in found.removed})
        changed = {name: found.manifest.files[name] for name in (*found.changed, *stay)}
        if changed:
            imports.write(root, path, replace(found.manifest, files=changed))
        else:
            imports.forget(root, path)
    upkeep.refresh(mind)
    removed = tuple(name for name in found.removed if name not in stay)
    return replace(found, removed=removed, changed=tuple(changed))


def _path(mind: Mind, named: str | None) -> str:
    """Returns where the list of the import is that is meant."""
    root = mind.project.root
    known = imports.known(root)
    if named:
        path = imports.path_of(mama.expanded(named, mind.environ))
        if path not in known:
            raise NotFound(f"nothing was imported from `{named}`", hint=_sources(root, known))
        return path
    if not known:
        raise NotFound("nothing was imported here", hint="see `mind import mama --help`")
    if len(known) > 1:
        raise Invalid(
            f"{len(known)} databases were imported; which one goes?", hint=_sources(root, known)
        )
    return known[0]


def _sources(root: Path, known: tuple[str, ...]) -> str:
    listed = ", ".join(f"--db {_read(root, path).source}" for path in known)
    return f"name one: {listed}" if listed else "see `mind import mama --help`"


def _read(root: Path, path: str) -> Manifest:
    manifest = imports.read(root, path)
    if manifest is None:
        raise NotFound("nothing was imported here", hint="somebody has taken it back meanwhile")
    return manifest


def _sorted(mind: Mind, path: str, manifest: Manifest) -> RolledBack:
    """Returns which files would go and which would stay."""
    stamps = mind.store.stamps()
    there = {name: digest for name, digest in manifest.files.items() if name in stamps}
    same = tuple(name for name, digest in there.items() if mind.store.digest(name) == digest)
    return RolledBack(
        manifest=manifest,
        path=path,
        removed=same,
        gone=tuple(name for name in manifest.files if name not in there),
        changed=tuple(name for name in there if name not in set(same)),
    )
