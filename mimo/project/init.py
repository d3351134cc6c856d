"""Creating a `.mind/`, and finding existing documents of a project."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from mimo.config import MAX_BYTES, load
from mimo.data import disk, files
from mimo.data.disk import STORE
from mimo.data.loads import DataError, loads
from mimo.data.locks import lock
from mimo.errors import Command, Hint, Invalid, StorageFailed
from mimo.frozen import frozen
from mimo.memory.approval import approval_of
from mimo.memory.model import is_elsewhere
from mimo.project import git
from mimo.project.projects import (
    Project,
    check_owner,
    is_home,
    register,
    registering,
    served_root,
    user_root,
)
from mimo.project.trust import Trust
from mimo.project.walk import SUFFIXES, is_markdown, walk
from mimo.text.clean import compiled

CONFIG = """\
# Settings of this project's memory. Everyone who clones the repository shares them.
format = 1

# Markdown elsewhere in the project that is memory too, such as decision records:
# include = ["docs/decisions/*.md"]

# Code whose comments that begin with `MEMORY:` are memories too:
# comments = ["src/**/*.py"]
"""

_ID = """\
# Random: the shared index of a team knows the project by it. A fork needs another one.
id = "{}"
"""
_ID_LINE = r"(?<![^\n\ufeff])[ \t]*(?:id|\"id\"|'id')[ \t]*=.*\n?"
_COMMENTS = r"\ufeff?(?:[ \t]*(?:#.*)?\r?\n)*"
"""The lines before the first setting."""

LOG = """\
# Memory

<!-- Your own notes. mind reads this file and never rewrites it. It finds `- Issue → Workaround`
under Gotchas, and under the heading of a day (`## 2026-11-20`) lines such as
`**Decided:** … because …`, `**Problem:** …` and `**Learned:** …`. -->

## Project State

## Gotchas

## Session Log
"""

_TEMPLATES = (("config.toml", CONFIG), ("MEMORY.md", LOG))
_IGNORED = (
    *(f"{folder}/" for folder in sorted(disk.PRIVATE_FOLDERS)),
    f"{disk.TEMPORARY_PREFIX}*{disk.TEMPORARY_SUFFIX}",
)
_MERGED = (
    "*.md merge=mind",
    # Git compares upper and lower case. Added below the other lines, these leave `MEMORY.md` alone.
    "*.Md merge=mind",
    "*.[mM]D merge=mind",
    *(
        f"*.{''.join(f'[{letter}{letter.upper()}]' for letter in suffix[1:])} merge=mind"
        for suffix in SUFFIXES[1:]
    ),
    "MEMORY.md merge=union",
    "sources/*.md -text",
    "procedures/** merge=text",
    "values/** merge=text",
)
"""Ingested files keep their line ends; files without memories are merged as text."""
_FOR_GIT = ((".gitignore", _IGNORED), (".gitattributes", _MERGED))
IGNORE_FILE = f"{STORE}/.gitignore"
_DECISIONS = (
    "docs/decisions",
    "docs/adr",
    "docs/adrs",
    "docs/architecture/decisions",
    "doc/adr",
    "doc/decisions",
    "architecture/decisions",
    "adr",
    "adrs",
)
_NOTES = ("CLAUDE.md", "AGENTS.md")
_OF_VAULTS = (".obsidian", ".foam", "logseq", "dendron.yml")
"""Files and folders that programs for notes put beside all notes."""
_ALL_NOTES = "**/*.md"
_NOTES_OF_MIND = b"<!-- MIND:CONTEXT"


@frozen
class InitReport:
    """The result of `mind init`."""

    project: Project
    created: bool
    """True if the `.mind/` is new, so that no text in it is another author's."""
    added: tuple[str, ...]
    """New files, and files with added lines, relative to the project."""
    found: tuple[str, ...]
    """Existing folders and files with knowledge."""
    include: tuple[str, ...]
    """The globs of the setting `include`, and those that would include them too."""
    notices: tuple[str, ...]


def init(root: Path, home: Path, *, now: datetime) -> InitReport:
    """Makes `root` a project, or adds missing files to a project, and registers it.

    No file of the user is overwritten. If the `.mind/` is new, the user's commits are trusted from
    now on. Raises `Invalid` in the parent of `home` ($MIND_HOME), in a bare repository, and if git
    has files that are missing here, and `StorageFailed`, also if a later version of mind wrote the
    `.mind/`.
    """
    root = root.resolve()
    _check(root, home)
    _check_missing(root)
    project = Project(root=root, name=root.name)
    config = load(user=home / files.CONFIG, project=project.store / files.CONFIG)
    config.check_format()
    added, notices = list[str](), list[str]()
    # An init that fails here has written nothing, so that the next one creates the `.mind/`.
    with registering(home):
        created = not os.path.lexists(project.store)
        if created:
            # Before the files: an init after a failed one can't know the author of a `.mind/`.
            try:
                Trust(home, root).begin()
            except StorageFailed as error:
                notices.append(f"texts can't be approved here: {error.message}")
        for name, text in _TEMPLATES:
            if not os.path.lexists(project.store / name):
                data = _with_id(text) if name == files.CONFIG else text.encode()
                files.write_new(project.store / name, data)
                added.append(f"{STORE}/{name}")
        if created:
            with suppress(StorageFailed):  # It was reported.
                Trust(home, root).approve_file(files.SETTINGS)
        added += complete(root)
        if notice := register(home, project, now=now):
            notices.append(notice)
    include = config["include"]
    included = frozenset(walk(root, include).files) if include else frozenset[str]()
    existing = [path for path in (*_DECISIONS, *_NOTES, "docs") if _files(root, path) - included]
    globs = [_glob(root, path) for path in existing]
    if any(map(os.path.lexists, map(root.joinpath, _OF_VAULTS))):
        others = frozenset(walk(root, [_ALL_NOTES]).files) - included
        notes = list(filter(is_elsewhere, others))
        existing, globs = ([f"{len(notes)} notes"], [_ALL_NOTES]) if notes else ([], [])
    covered = {glob.replace("/**", "") for glob in globs}
    earlier = [glob for glob in include if existing and glob not in covered]
    return InitReport(
        project=project,
        created=created,
        added=tuple(added),
        found=tuple(existing),
        include=(*earlier, *globs),
        notices=tuple(notices),
    )


def make_users(home: Path) -> None:
    """Makes the folder of the user's memory for all projects, with a file that keeps it out of git.

    A home may be in a repository, such as one of the user's settings. Raises `StorageFailed`.
    """
    root = user_root(home)
    files.ensure(root / disk.IGNORE_FILE, f"{disk.IGNORE_ALL}\n".encode())
    with files.reported("write", root / STORE):
        disk.make_folder(root / STORE)


def _check(root: Path, home: Path) -> None:
    """Raises `Invalid`, `Untrusted` or `StorageFailed` if a folder can't be a project."""
    store, hint = root / STORE, Hint("run ", Command("init"), " in the project's folder")
    if not root.is_dir():
        raise Invalid(f"`{root}` is not a folder", hint="create it first, or name another one")
    served = served_root(home.resolve())
    if STORE in (root.relative_to(served) if root.is_relative_to(served) else root).parts:
        raise Invalid(f"`{root}` is in a `.mind/`", hint=hint)
    reason = ""
    if root in (root.parent, Path.home().resolve()):
        reason = "everything below it would be its memory"
    elif home.resolve() in (root, store.resolve()):
        reason = f"`{home}` is mind's own folder"
    elif is_home(store):
        reason = "its `.mind/` is a home of mind ($MIND_HOME)"
    elif root == user_root(home.resolve()):
        reason = "it holds your memory for all projects"
    if reason:
        raise Invalid(f"`{root}` can't be a project: {reason}", hint=hint)
    check_owner(root, home)
    git.working_tree(root)
    if store.is_symlink():
        raise StorageFailed(f"`{store}` is a symbolic link", hint="links are never followed")
    if store.exists() and not store.is_dir():
        raise StorageFailed(f"`{store}` is a file", hint="move it away first")


def _check_missing(root: Path) -> None:
    """Raises `Invalid` if git has a missing file, whose text a commit of ours would replace."""
    paths = (f"{STORE}/{name}" for name, _ in _TEMPLATES)
    missing = [path for path in paths if not os.path.lexists(root / path)]
    listed = git.output(root, "ls-files", "-t", "--", *missing) if missing else None
    if not listed:
        return
    marks, _, path = listed.splitlines()[0].partition(" ")
    hint = f"`git checkout -- {STORE}` restores it, `git rm -r --cached {STORE}` gives it up"
    if marks == "S":
        hint = f"this is a sparse checkout: run `git sparse-checkout add {STORE}` in `{root}`"
    raise Invalid(f"git has `{path}`, which is missing here", hint=hint)


def ensure_id(root: Path, home: Path) -> None:
    """Gives a project without a valid id a random one. An approved text of its settings stays so.

    An id that is not one line by itself, such as a table, stays. Raises `StorageFailed`.
    """
    path = files.safe_path(root, files.SETTINGS)
    with lock(files.local(root, "lock")), files.reported("read", path):
        data = disk.read(path, limit=MAX_BYTES)
        try:
            settings = loads(data, "toml")
            if settings.get("id") and isinstance(settings["id"], str):
                return
            text = data.decode()
            after = _with_id(compiled(_ID_LINE).sub("", text, 1) if "id" in settings else text)
            if {**loads(after, "toml"), "id": ""} != {**settings, "id": ""}:
                return
        except DataError:  # It is reported with the settings.
            return
        trust = Trust(home, root)
        is_approved = trust.trusted(approval_of(files.SETTINGS, data))
        files.replace(path, after, expect=files.digest(data))
        if is_approved:
            trust.approve_file(files.SETTINGS)


def _with_id(settings: str) -> bytes:
    comments = compiled(_COMMENTS).match(settings)
    start = comments.end() if comments else 0
    id = _ID.format(os.urandom(16).hex())
    return f"{settings[:start]}{id}{settings[start:]}".encode()


def complete(root: Path) -> tuple[str, ...]:
    """Adds missing lines to the files for git, also in private folders.

    A missing file that git has gets its text from there. Returns the changed files. Raises
    `StorageFailed`.
    """
    for folder in disk.private_folders(root / STORE):
        with files.reported("write", folder):
            disk.make_folder(folder)
    changed = []
    for name, lines in (*_FOR_GIT, *_of_private_folders(root)):
        path = files.safe_path(root, f"{STORE}/{name}")
        data = files.content(path)
        start = _staged(root, f"{STORE}/{name}") if data is None else data
        missing = b"".join(line + b"\n" for line in disk.missing_rules(start, lines))
        if missing and start and not start.endswith(b"\n"):
            missing = b"\n" + missing
        if data is None:
            files.write_new(path, start + missing)
        elif missing:
            files.replace(path, start + missing, expect=files.digest(data))
        else:
            continue
        changed.append(f"{STORE}/{name}")
    return tuple(changed)


def _staged(root: Path, path: str) -> bytes:
    """Returns the text of a file in git's index; empty if it has none."""
    with suppress(Invalid):
        result = git.run(root, "cat-file", "blob", f":./{path}")
        return b"" if result.returncode else result.stdout
    return b""


def exposed(root: Path) -> tuple[str, ...]:
    """Returns the ignore files of private folders that do not keep all their files out of git."""
    names = _of_private_folders(root)
    return tuple(f"{STORE}/{name}" for name, lines in names if _lacks(root, name, lines))


def _of_private_folders(root: Path) -> list[tuple[str, tuple[str, ...]]]:
    folders = disk.private_folders(root / STORE)
    names = [folder.relative_to(root / STORE) / disk.IGNORE_FILE for folder in folders]
    return [(name.as_posix(), (disk.IGNORE_ALL,)) for name in sorted(names)]


def lacking(root: Path) -> tuple[str, ...]:
    """Returns the files for git that lack lines or can't be read."""
    return tuple(f"{STORE}/{name}" for name, lines in _FOR_GIT if _lacks(root, name, lines))


def _lacks(root: Path, name: str, lines: tuple[str, ...]) -> bool:
    try:
        data = files.content(files.safe_path(root, f"{STORE}/{name}")) or b""
        return bool(disk.missing_rules(data, lines))
    except StorageFailed:
        return True


def _glob(root: Path, path: str) -> str:
    """Returns the glob of a file or folder with knowledge."""
    if not (root / path).is_dir():
        return path
    return f"{path}/**/*.md" if _nested_records(root, path) else f"{path}/*.md"


def _nested_records(root: Path, path: str) -> frozenset[str]:
    """Returns the records of decisions that have a folder each, such as `0012-x/index.md`."""
    names = (f"*/{name}.md" for name in ("index", "README") if path in _DECISIONS)
    return frozenset(
        file.relative_to(root).as_posix()
        for name in names
        for file in (root / path).glob(name)
        if file.is_file() and not file.is_symlink() and not file.parent.is_symlink()
    )


def _files(root: Path, path: str) -> frozenset[str]:
    """Returns the Markdown file of that path, or those in its folder; none that has mind's notes.

    Memories would otherwise contain copies of others.
    """
    place = root / path
    with suppress(OSError):
        if place.is_symlink():
            return frozenset()
        if place.is_file():
            return frozenset() if _NOTES_OF_MIND in disk.read(place) else frozenset((path,))
        with os.scandir(place) as entries:
            return _nested_records(root, path).union(
                f"{path}/{entry.name}"
                for entry in entries
                if is_markdown(entry.name) and entry.is_file(follow_symlinks=False)
            )
    return frozenset()
