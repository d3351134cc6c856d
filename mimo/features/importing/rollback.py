"""Rolling an import back: removing the files that it wrote, unless they were changed since."""

from __future__ import annotations

from collections.abc import Mapping

from mimo.call import Call
from mimo.data import files
from mimo.errors import Conflict, Invalid, NotFound, join_texts
from mimo.features.importing import database
from mimo.features.importing.manifest import (
    FOLDER,
    Manifest,
    format_of,
    hold,
    manifest_path,
    own_paths,
    read_manifest,
    write_manifest,
)
from mimo.frozen import frozen, replace
from mimo.memory.model import Problem
from mimo.operations import refresh, saving
from mimo.project.projects import index_owner


@frozen
class RolledBack:
    """The result of a rollback, or its plan."""

    manifest: Manifest
    removed: Mapping[str, str]
    """The removed files, each with its digest."""
    missing: tuple[str, ...]
    """Files that had been removed already."""
    changed: tuple[str, ...]
    """Files that stay because they were changed after the import."""


def roll_back(
    call: Call, named: str | None, *, format: str | None = None, dry_run: bool
) -> RolledBack:
    """Removes the memories that were imported from a source.

    `named` chooses one of several sources, `format` one of several formats. With `dry_run` nothing
    is removed. Raises `NotFound` if nothing was imported, `Invalid` if there are several, and
    `StorageFailed` if a file can't be removed; the others are removed then.
    """
    root = call.mind.project.root
    path = _imported(call, named, format)
    if dry_run:
        return _sorted(call, path)
    with hold(root):
        plan = _sorted(call, path)
        stored = [(name, call.mind.store.read(name)) for name in plan.removed]
        stay = call.mind.store.delete_all(plan.removed)
        rolled = (read for name, read in stored if name not in stay)
        records = (record for read in rolled if not isinstance(read, Problem) for record in read)
        saving.report(call, *((record, None) for record in records))
        changed = {name: plan.manifest.files[name] for name in (*plan.changed, *stay)}
        if changed:
            write_manifest(root, replace(plan.manifest, files=changed))
        else:
            files.remove(files.safe_path(root, path))
    refresh.commit_soon(call)
    refresh.refresh(call)
    for error in stay.values():
        if not isinstance(error, Conflict):
            error.hint = join_texts(error.hint, "run it again to remove the rest") or ""
            raise error
    removed = {name: digest for name, digest in plan.removed.items() if name not in stay}
    return replace(plan, removed=removed, changed=tuple(changed))


def _imported(call: Call, named: str | None, format: str | None) -> str:
    """Returns the path of the manifest of the named source, or of the only one."""
    root, owner = call.mind.project.root, index_owner(call.mind.home, call.mind.randomness)
    paths = matches = own_paths(root, format, owner)
    if named:
        end = manifest_path("", database.expanded(named, call.mind.environ), owner)
        matches = [path for path in paths if path.endswith(end.removeprefix(f"{FOLDER}/"))]
    if len(matches) == 1:
        return matches[0]
    listed = [manifest for path in matches or paths if (manifest := read_manifest(root, path))]
    is_mama = format == "mama"
    options = (f"--db {m.source}" if is_mama else f"`{m.source}`" for m in listed)
    hint = f"name one: {', '.join(sorted(options))}"
    if len(matches) > 1 and named:
        formats = map(format_of, matches)
        raise Invalid(
            f"`{named}` was imported in {len(matches)} formats",
            hint=f"name one: {', '.join(f'--from {format}' for format in formats)}",
        )
    if len(matches) > 1:
        raise Invalid(
            f"{len(matches)} {'databases' if is_mama else 'sources'} were imported", hint=hint
        )
    command = "mind import mama" if is_mama else "mind import"
    raise NotFound(
        f"nothing was imported from `{named}`" if named else "nothing was imported here",
        hint=hint if listed else f"see `{command} --help`",
    )


def _sorted(call: Call, path: str) -> RolledBack:
    """Returns which files a rollback would remove, and which would stay."""
    manifest = read_manifest(call.mind.project.root, path)
    if manifest is None:
        raise NotFound("nothing was imported here", hint="it was rolled back meanwhile")
    stamps = call.mind.store.stamps()
    digests = {name: call.mind.store.digest(name) for name in manifest.files if name in stamps}
    removed = {name: digest for name, digest in digests.items() if manifest.wrote(name, digest)}
    return RolledBack(
        manifest=manifest,
        removed=removed,
        missing=tuple(name for name in manifest.files if name not in stamps),
        changed=tuple(name for name in digests if name not in removed),
    )
