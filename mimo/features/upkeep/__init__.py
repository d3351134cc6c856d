"""Keeping a store healthy: the checks of `mind doctor`, repairs, and changes of settings."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mimo import disk
from mimo.config import MAX_BYTES, Scope, Setting
from mimo.errors import Invalid, MindError
from mimo.features import audit, values
from mimo.features.clients import doubts
from mimo.features.edges import sources
from mimo.features.review import trusting
from mimo.frozen import frozen
from mimo.guard.policy import FILE
from mimo.mind import Mind
from mimo.operations import freshness, overview, refresh, syncing
from mimo.store import files, git, init, projects

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def change(mind: Mind, target: Setting, text: str | None, *, user: bool) -> Mind:
    """Writes one setting (None removes it) and returns the memory with the new settings.

    Comments and other settings are not changed. Raises `Invalid` for a wrong value, or a setting of
    the other file.
    """
    scope = Scope.USER if user or target.scope is Scope.USER else Scope.PROJECT
    if target.scope is Scope.PROJECT and user:
        raise Invalid(f"`{target.key}` is a setting of the project", hint="say it without --user")
    path = mind.home / "config.toml" if scope is Scope.USER else mind.folder / "config.toml"
    value = None if text is None else target.parse(text)
    before = disk.read(path, limit=MAX_BYTES, follow=True) if path.exists() else b""
    document = _parsed(path, before)
    _put(document, target.key.split("."), list(value) if isinstance(value, tuple) else value)
    after = document.as_string().encode()
    if path.exists():
        files.replace(path, after, expect=hashlib.sha256(before).hexdigest())
    else:
        files.write_new(path, after)
    return mind.reopened()


def _parsed(path: Path, data: bytes) -> "TOMLDocument":
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(data.decode())
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise Invalid(
            f"{path} can't be read: {error}", hint="mend the file first; nothing was changed"
        ) from None


def _put(document: "TOMLDocument", keys: list[str], value: object) -> None:
    import tomlkit

    table: object = document
    for key in keys[:-1]:
        if key not in table:  # type: ignore[operator]
            table[key] = tomlkit.table()  # type: ignore[index]
        table = table[key]  # type: ignore[index]
    if value is None:
        table.pop(keys[-1], None)  # type: ignore[attr-defined]
    else:
        table[keys[-1]] = value  # type: ignore[index]


Check = Callable[[Mind], Iterator["Finding"]]

_MOST_LINKS = 20
"""The number of dangling links that are listed."""


@frozen
class Finding:
    """The result of one check: `verdict` is `ok`, `warning` or `fault`."""

    name: str
    verdict: str
    message: str
    hint: str = ""
    file: str | None = None
    line: int | None = None


def examine(mind: Mind) -> Iterator[Finding]:
    """Yields the findings of all checks. A check that fails does not stop the others."""
    mind, error = _openable(mind)
    if error:
        yield Finding(name="project", verdict="fault", message=error.message, hint=error.hint)
    for check in _OF_PROJECT if mind.has_project else _EVERYWHERE:
        yield from _findings(check, mind)


def _openable(mind: Mind) -> tuple[Mind, MindError | None]:
    """Returns the memory, outside of a project that can't be opened, and the error of that."""
    try:
        _ = mind.has_project
    except MindError as error:
        return mind.outside(), error
    return mind, None


def _findings(check: Check, mind: Mind) -> Iterator[Finding]:
    """Yields the findings of one check, or its failure as a finding."""
    name = check.__name__.strip("_")
    try:
        yield from check(mind)
    except MindError as error:
        yield Finding(name=name, verdict="fault", message=error.message, hint=error.hint)
    except Exception as error:  # noqa: BLE001 - the last resort, as in `invoke`
        yield Finding(
            name=name,
            verdict="fault",
            message=f"this check failed ({type(error).__name__})",
            hint="report it; the other checks are complete",
        )


def _project(mind: Mind) -> Iterator[Finding]:
    if mind.has_project:
        yield Finding(name="project", verdict="ok", message=str(mind.project.root))
        return
    try:
        _ = mind.project
    except MindError as error:
        yield Finding(name="project", verdict="warning", message=error.message, hint=error.hint)


def _settings(mind: Mind) -> Iterator[Finding]:
    for warning in mind.config.warnings:
        yield Finding(name="settings", verdict="warning", message=warning, hint="see `mind config`")
    if not mind.config.warnings:
        yield Finding(name="settings", verdict="ok", message="every setting is understood")


def _registry(mind: Mind) -> Iterator[Finding]:
    registry = projects.registered(mind.home)
    if registry.problem:
        yield Finding(
            name="projects",
            verdict="warning",
            message=registry.problem,
            hint="the next `mind init` keeps it aside and begins a new one",
        )
    for project in (project for project in registry.projects if mind.at(project) is None):
        yield Finding(
            name="projects",
            verdict="warning",
            message=f"registered project `{project.name}` is gone: {project.path}",
            hint="searches over all projects pass it over",
        )


def _modes(mind: Mind) -> Iterator[Finding]:
    exposed = list(_exposed(mind))
    if exposed:
        some = ", ".join(map(str, exposed[:3])) + (", …" if len(exposed) > 3 else "")
        yield Finding(
            name="modes",
            verdict="warning",
            message=f"{len(exposed):,} private files can be read or changed by other users: {some}",
            hint="`mind doctor --fix` closes them",
        )
    else:
        message = "private files are closed to other users"
        yield Finding(name="modes", verdict="ok", message=message)


def _exposed(mind: Mind) -> Iterator[Path]:
    """Yields the files and folders in private places that other users can access."""
    yield from disk.exposed_below(mind.home)
    if mind.has_project:
        for folder in disk.private_folders(mind.folder):
            yield from disk.exposed_below(folder)


def _clients(mind: Mind) -> Iterator[Finding]:
    for doubt in doubts(mind):
        yield Finding(name="clients", verdict="warning", message=doubt.message, hint=doubt.hint)


def _index(mind: Mind) -> Iterator[Finding]:
    try:
        stats = refresh.up_to_date(mind).stats()
    except MindError as error:
        yield Finding(name="index", verdict="fault", message=error.message, hint=error.hint)
        return
    if note := mind.noted("embedding"):
        hint = "see `mind config embedding.model`, or --unset it"
        yield Finding(name="model", verdict="warning", message=note, hint=hint)
    if pending := mind.noted("pending"):
        hint = "wait until it is done; if it hangs, end it"
        yield Finding(name="index", verdict="warning", message=pending, hint=hint)
    if note := mind.noted("index"):
        hint = f"free some space, or make {mind.index_folder} writable"
        yield Finding(name="index", verdict="warning", message=note, hint=hint)
        return
    message = f"{stats.memories:,} memories in {stats.units:,} passages, {stats.bytes:,} bytes"
    yield Finding(name="index", verdict="ok", message=message)


def _files(mind: Mind) -> Iterator[Finding]:
    problems = refresh.problems(mind)
    for problem in problems:
        yield Finding(
            name="files",
            verdict="fault",
            message=problem.reason,
            hint="the file was left as it is; mend it and it is found again",
            file=problem.path,
            line=problem.line,
        )
    if not problems:
        yield Finding(name="files", verdict="ok", message="every file can be read")
    others = mind.store.walk().others
    if others:
        some = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        message = f"{len(others):,} files under .mind/ are no Markdown and not read: {some}"
        yield Finding(name="files", verdict="ok", message=message)


def _values(mind: Mind) -> Iterator[Finding]:
    for problem in values.broken(mind):
        yield Finding(
            name="values",
            verdict="fault",
            message=problem.reason,
            hint="the file was left as it is; mend it and its value is there again",
            file=problem.path,
            line=problem.line,
        )


def _policy(mind: Mind) -> Iterator[Finding]:
    policies = mind.guard.policies()
    for line, reason in policies.faults:
        yield Finding(
            name="policy",
            verdict="fault",
            message=reason,
            hint="no tool may be used before it is mended",
            file=FILE,
            line=line,
        )
    if not policies.trusted:
        message = "it came from elsewhere, so it can only narrow what is permitted"
        hint = "approve it with `mind trust`"
        yield Finding(name="policy", verdict="warning", message=message, hint=hint, file=FILE)


def _sources(mind: Mind) -> Iterator[Finding]:
    checked = freshness.checked(mind, overview.everything(mind))
    stale = [one for one in checked if one.message]
    for one in stale:
        yield Finding(
            name="sources",
            verdict="warning",
            message=one.message or "",
            hint=f"`{one.remedy}`",
            file=one.part.place.path,
        )
    if checked and not stale:
        message = f"{len(checked):,} ingested files are as they were"
        yield Finding(name="sources", verdict="ok", message=message)


def _links(mind: Mind) -> Iterator[Finding]:
    dangling = mind.index.dangling()
    if len(dangling) > _MOST_LINKS:
        yield Finding(
            name="links",
            verdict="warning",
            message=f"{len(dangling):,} links lead nowhere; the first {_MOST_LINKS} follow",
        )
    for source, target in dangling[:_MOST_LINKS]:
        yield Finding(
            name="links",
            verdict="warning",
            message=f"{source} links to `{target}`, which is not there",
            hint="git may still have it: git log --all -- .mind",
        )
    if not dangling:
        yield Finding(name="links", verdict="ok", message="every link leads somewhere")


def _edges(mind: Mind) -> Iterator[Finding]:
    every = sources.everything(mind)
    faults = list(sources.problems(mind, every))
    for problem in faults:
        yield Finding(
            name="edges",
            verdict="warning",
            message=problem.reason,
            file=problem.path,
            line=problem.line,
        )
    if not faults:
        message = f"{len(every):,} known, all of them usable" if every else "none yet"
        yield Finding(name="edges", verdict="ok", message=message)


def mend(mind: Mind) -> None:
    """Repairs everything without a decision: modes of private files, git's settings and lists."""
    mind, _ = _openable(mind)
    for path in _exposed(mind):
        disk.tighten(path)
    if mind.has_project:
        syncing.install(mind.project.root)
        init.complete(mind.project.root)


def _private(mind: Mind) -> Iterator[Finding]:
    for leak in syncing.leaks(mind.project.root):
        yield Finding(
            name="private", verdict="fault", message=leak.message, hint=leak.hint, file=leak.file
        )


def _merging(mind: Mind) -> Iterator[Finding]:
    warning = syncing.lacking(mind.project.root)
    if warning:
        hint = "`mind doctor --fix` lets git merge them field by field"
        yield Finding(name="merging", verdict="warning", message=warning, hint=hint)
    in_repository = git.is_inside(mind.project.root)
    for name in (*init.lacking(mind.project.root), *init.exposed(mind.project.root)):
        if in_repository and name == init.IGNORE_FILE:
            continue
        message = f"{name} lacks lines by which git ignores or merges files of the memory"
        hint = "`mind doctor --fix` adds them"
        yield Finding(name="merging", verdict="warning", message=message, hint=hint, file=name)
    if in_repository and not warning:
        yield Finding(name="merging", verdict="ok", message="git merges memories field by field")


def _procedures(mind: Mind) -> Iterator[Finding]:
    from mimo.features.procedures import library

    for file, result in library.every(mind):
        for fault in result.faults:
            yield Finding(
                name="procedures",
                verdict="fault",
                message=fault.reason,
                hint="see `mind procedure check`",
                file=file.path,
                line=fault.line,
            )


def _audit(mind: Mind) -> Iterator[Finding]:
    try:
        records, places = audit.broken(mind, newest=True)
    except MindError as error:
        yield Finding(name="audit", verdict="fault", message=error.message, hint=error.hint)
        return
    for place in places:
        yield Finding(
            name="audit",
            verdict="fault" if place.is_broken else "warning",
            message=place.what,
            hint="see `mind audit verify`" if place.is_broken else "",
            file=place.file,
            line=place.line,
        )
    if not places:
        message = f"{records:,} calls recorded, the newest of them verified"
        yield Finding(name="audit", verdict="ok", message=message)


def _trust(mind: Mind) -> Iterator[Finding]:
    if notice := mind.trust.state.notice:
        hint = "the next approval removes it; `mind trust` approves what is here now"
        yield Finding(name="trust", verdict="warning", message=notice, hint=hint)
    trusted = mind.trust.checker()
    doubtful = sum(not trusted(record.place.digest) for record in overview.everything(mind))
    if doubtful:
        yield Finding(
            name="trust",
            verdict="warning",
            message=f"{doubtful:,} memories are not approved on this machine",
            hint="go through them with `mind review`, or approve all with `mind trust`",
        )
    else:
        yield Finding(name="trust", verdict="ok", message=trusting.describe(mind))


_EVERYWHERE: tuple[Check, ...] = (_settings, _registry, _modes, _clients, _project, _edges)
_OF_PROJECT: tuple[Check, ...] = (
    _settings,
    _registry,
    _modes,
    _clients,
    _project,
    _index,
    _files,
    _values,
    _policy,
    _sources,
    _links,
    _edges,
    _private,
    _merging,
    _procedures,
    _trust,
    _audit,
)
