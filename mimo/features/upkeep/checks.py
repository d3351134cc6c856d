"""`mind doctor`: the checks of a memory and its settings, and repairs without a decision."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.extensions import broken
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, command
from mimo.call.table import all_commands
from mimo.data import disk, files, locks
from mimo.data.failures import ONE_USER, place_of_another
from mimo.errors import Command, Hint, Invalid, MindError, StorageFailed, Untrusted
from mimo.features import audit, daemon, values
from mimo.features.clients import doubts
from mimo.features.pitfalls import sources
from mimo.features.review import trusting
from mimo.frozen import frozen
from mimo.guard.policy import FILE, Operation
from mimo.index import survey
from mimo.index.embedding import open_encoder
from mimo.index.targets import Loose
from mimo.memory.ids import handle_of
from mimo.memory.model import Filter, Memory
from mimo.operations import (
    asking,
    disclosure,
    earlier,
    freshness,
    overview,
    refresh,
    sharing,
    syncing,
)
from mimo.project import git, init, memories, projects
from mimo.project.walk import LOG
from mimo.rendering import Part, Screen, bad, dim, good, warn
from mimo.rendering.results import count, render

_MOST_NAMED = 20
"""The number of missing targets, and of headers with unusable values, that are listed."""


class Verdict(StrEnum):
    """The verdict of a check."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@frozen
class Check:
    """The result of one check."""

    name: str
    verdict: Verdict
    message: str
    hint: Omitted[str] = None
    file: Annotated[Omitted[str], Out("The file that it is about")] = None
    line: Annotated[Omitted[int], Out("The line in it, from 1")] = None


def _check(
    verdict: Verdict,
    name: str,
    message: str,
    hint: str = "",
    *,
    file: str | None = None,
    line: int | None = None,
) -> Check:
    return Check(
        name=name, verdict=verdict, message=message, hint=hint or None, file=file, line=line
    )


_ok = partial(_check, Verdict.OK)
_warning = partial(_check, Verdict.WARNING)
_fault = partial(_check, Verdict.FAULT)


def examine(call: Call) -> Iterator[Check]:
    """Yields the results of all checks. A check that fails does not stop the others.

    Only a $MIND_HOME that can't be mind's own does: nothing in it may be read or changed.
    """
    try:
        projects.check_home(call.mind.home)
    except Untrusted as refused:
        yield _fault("home", refused.message, refused.hint)
        return
    call, error = _openable(call)
    if error:
        yield _fault("project", error.message, error.hint)
    checks = _OF_PROJECT if call.mind.has_project else _EVERYWHERE
    if call.mind.has_project and (place := place_of_another(call.mind.folder / ".local")):
        yield _warning("project", f"`{place}` is another user's: you can only read", ONE_USER)
        checks = tuple(check for check in checks if check not in _OF_OWNER)
    if not call.origin.guard.permits("mind_list"):
        checks = tuple(check for check in checks if check not in _OF_TEXTS)
        message = "memories may not be read now, so their files are not checked"
        yield _warning("files", message)
    for number, check in enumerate(checks, 1):
        call.advance("Checking", number, len(checks))
        name = check.__name__.strip("_")
        try:
            yield from check(call)
        except MindError as failure:
            yield _fault(name, failure.message, failure.hint)
        except Exception as failure:  # noqa: BLE001 - the last resort, as in `invoke`
            message = f"this check failed ({type(failure).__name__})"
            yield _fault(name, message, "report it; the other checks are complete")


def repair(call: Call) -> Iterator[Check]:
    """Repairs everything without a decision: modes of private files, git's settings and lists.

    Yields a fault for each repair that fails; the others are made. Raises `Untrusted` if
    $MIND_HOME can't be mind's own.
    """
    projects.check_home(call.mind.home)
    call, _ = _openable(call)
    if call.mind.has_project:
        call.mind.config.check_format()
    for mend in (_close, _complete_lists, _install_driver):
        try:
            mend(call)
        except MindError as failure:
            yield _fault("repair", failure.message, failure.hint)


def _close(call: Call) -> None:
    for path in _exposed(call):
        disk.tighten(path)


def _complete_lists(call: Call) -> None:
    if call.mind.has_project:
        init.complete(call.mind.project.root)
        init.ensure_id(call.mind.project.root, call.mind.home)


def _install_driver(call: Call) -> None:
    if call.mind.has_project and git.has_repository(call.mind.project.root):
        git.install_driver(call.mind.project.root)


def _openable(call: Call) -> tuple[Call, MindError | None]:
    """Returns the memory, without a project that can't be opened, and the error of that."""
    try:
        _ = call.mind.has_project
    except MindError as error:
        return call.on(call.mind.outside()), error
    return call, None


def _settings(call: Call) -> Iterator[Check]:
    # A repair may have changed them since this memory was opened.
    warnings = disclosure.of_settings(call.on(call.mind.reopened()))
    for warning in warnings:
        yield _warning("settings", warning, Hint("see ", Command("config")))
    if not warnings:
        yield _ok("settings", "every setting is understood")


def _extensions(_: Call) -> Iterator[Check]:
    all_commands().tools()  # Also notes modules and tools that can't be used.
    for name, reason in broken().items():
        message = f"extension `{name}` can't be used: {reason}"
        yield _warning("extensions", message, "install it again, or remove it")


def _projects(call: Call) -> Iterator[Check]:
    registry = call.registered()
    if registry.problem:
        yield _warning("projects", registry.problem.message, registry.problem.hint)
    for project in (project for project in registry.projects if call.at(project) is None):
        message = f"registered project `{project.name}` is missing: {project.path}"
        hint = Hint(
            "searches over all projects skip it; if it was moved, run ",
            Command("init"),
            " in its folder",
        )
        yield _warning("projects", message, hint)


def _modes(call: Call) -> Iterator[Check]:
    if exposed := list(_exposed(call)):
        message = f"private files that other users can read or change: {_list_paths(exposed)}"
        yield _warning("modes", message, Hint(Command("doctor", fix=True), " closes them"))
    else:
        yield _ok("modes", "private files are closed to other users")


def _exposed(call: Call) -> Iterator[Path]:
    """Yields the files and folders in private places that other users can access."""
    if call.owns_home:
        yield from filter(disk.is_exposed, [call.mind.home])
        for name in disk.HOME_NAMES:
            # Git writes the working copies in `served/` with modes of its own.
            if name != projects.served_root(call.mind.home).name:
                yield from disk.exposed_below(call.mind.home / name)
    if call.mind.has_project:
        for folder in disk.private_folders(call.mind.folder):
            yield from disk.exposed_below(folder)


def _list_paths(paths: Sequence[object]) -> str:
    """Returns the first three paths, and the number of others."""
    more = f" and {len(paths) - 3:,} more" if len(paths) > 3 else ""
    return ", ".join(map(str, paths[:3])) + more


def _locks(call: Call) -> Iterator[Check]:
    """Yields a fault if two processes could change the memory at once."""
    path = files.local(call.mind.project.root, "lock")
    if os.access(call.mind.folder, os.W_OK) and not locks.excludes(path):
        message = f"a lock on `{path}` does not exclude other processes"
        yield _fault(
            "locks", message, "move the project to a local disk, or mount its disk with locks"
        )


def _clients(call: Call) -> Iterator[Check]:
    for doubt in dict.fromkeys(doubts(call)):  # Clients share files.
        yield _warning("clients", doubt.message, doubt.hint)


def _project(call: Call) -> Iterator[Check]:
    try:
        yield _ok("project", str(call.mind.project.root))
    except MindError as error:
        yield _warning("project", error.message, error.hint)
    own_folders = [call.mind.home] if call.owns_home else []
    for folder in (*own_folders, *([call.mind.folder] if call.mind.has_project else [])):
        if folder.exists() and not os.access(folder, os.W_OK):
            message = f"`{folder}` is read-only: nothing can be stored in it"
            yield _warning("project", message, "make it writable, unless that is intended")


def _index(call: Call) -> Iterator[Check]:
    refresh.refresh(call)
    stats = call.mind.index.stats()
    if note := call.noted("embedding"):
        yield _warning(
            "model", note, Hint("see ", Command("config", "embedding.model"), ", or unset it")
        )
    if pending := call.noted("pending"):
        yield _warning("index", pending, "wait until it is done; if it hangs, end it")
    if note := call.noted("index"):
        place = call.mind.index_folder if os.access(call.mind.home, os.W_OK) else call.mind.home
        yield _warning("index", note, f"free some space, or make {place} writable")
    else:
        memories = count(overview.overview(call).total, "memory", "memories")
        size = f"{count(stats.units, 'passage')}, {stats.bytes:,} bytes"
        yield _ok("index", f"{memories} in {size}")


def _encoder(call: Call) -> Iterator[Check]:
    """Yields a warning if the encoder does not read a text; this asks its server."""
    place = call.mind.config["embedding.encoder"]
    if place == "off":
        yield _ok("encoder", "off: texts are compared by words and by the static model")
        return
    try:
        encoder = open_encoder(call.mind.config)
        if encoder is None:
            hint = "reinstall mind with numpy, or set `embedding.encoder` to `off`"
            yield _warning(
                "encoder", "numpy is missing, so texts are not read for their meaning", hint
            )
            return
        encoder.encode("a text")
    except Invalid as error:
        yield _warning("encoder", error.message, error.hint or "")
        return
    name = encoder.model.partition(":")[0] if place == "on" else f"`{place}`"
    yield _ok("encoder", f"{name} reads texts for their meaning")


def _files(call: Call) -> Iterator[Check]:
    problems = disclosure.of_problems(call)
    hint = "the file was not changed; repair it, and it is found again"
    for problem in problems:
        yield _fault("files", problem.reason, hint, file=problem.path, line=problem.line)
    if not problems:
        yield _ok("files", "every file can be read")
    yield from _unclosed(call, "files", LOG)
    headers = list(_headers(call))
    broken_paths = {check.file for check in headers}
    for record, keys in refresh.up_to_date(call).ask(lambda sql: list(survey.misread(sql))):
        if keys or record.place.path not in broken_paths:
            message, path = _unused(record.memory, keys), record.place.path
            headers.append(_warning("files", message, "correct it in the file", file=path))
    yield from headers[:_MOST_NAMED]
    if len(headers) > _MOST_NAMED:
        yield _warning("files", f"and {len(headers) - _MOST_NAMED:,} more such files")
    if stray_paths := call.mind.store.walk().others:
        # An agent would read names in a sentence of mind's as mind's own words.
        named = _list_paths(stray_paths) if call.agent is None else f"{len(stray_paths):,}"
        message = f"files under .mind/ that are not Markdown, and not read: {named}"
        yield _ok("files", message)


def _headers(call: Call) -> Iterator[Check]:
    """Yields a warning for each header that is not quite YAML or TOML."""
    from mimo.memory.codec.file import header_fault

    for path in call.mind.store.walk().files:
        data = None if memories.is_read_only(path) else call.mind.store.content(path)
        if data and (fault := header_fault(data)):
            reason = fault.reason.removeprefix("header: ")
            message = f"its header is read line by line, and what can't be read is text: {reason}"
            message = disclosure.reason_for(call, path, message)
            yield _warning("files", message, "correct it in the file", file=path, line=fault.line)


def _unclosed(call: Call, name: str, file: str) -> Iterator[Check]:
    if line := memories.unclosed(call.mind.project.root):
        message = "code, a comment or HTML begins here and is not closed: no later line is read"
        yield _warning(name, message, "close it in the file", file=file, line=line)


def _unused(memory: Memory, keys: Sequence[str]) -> str:
    """Returns the reason for which keys of a header are not read; without keys, the whole one."""
    from mimo.memory.codec.file import DATES

    named = ", ".join(f"`{key}`" for key in keys)
    if not keys:
        return (
            "its header is read as text: the first line must be `---`, and a header has lines of"
            " `key: value` with a blank after the colon"
        )
    if any(key != key.lower() and key.lower() not in DATES for key in keys):
        return f"not read in the header: {named}; the keys of mind are in lower case"
    if memory.extra.get("tags", "") is None:
        return 'its tags are a comment in YAML: tags with `#` need quotes, as in `tags: "#a #b"`'
    return f"the value of {named} in the header has no meaning, so it is not used"


def _values(call: Call) -> Iterator[Check]:
    hint = "the file was not changed; repair it, and its value is available again"
    for problem in values.broken(call):
        yield _fault("values", problem.reason, hint, file=problem.path, line=problem.line)


def _policy(call: Call) -> Iterator[Check]:
    policies = call.mind.guard.policies()
    for line, reason in policies.faults:
        hint = "no tool may be used before it is repaired"
        yield _fault(
            "policy", disclosure.reason_for(call, FILE, reason), hint, file=FILE, line=line
        )
    if waiting := policies.waiting():
        yield _warning("policy", *waiting, file=FILE)


def _sources(call: Call) -> Iterator[Check]:
    checked = freshness.checked(call, refresh.up_to_date(call).ask(survey.ingested))
    stale = [(source, source.message) for source in checked if source.message]
    for source, message in stale:
        yield _warning("sources", message, Hint(source.remedy), file=source.part.place.path)
    doubles = call.index.ask(survey.named_like_sources)[:_MOST_NAMED]
    for record in doubles:
        message = "its id is that of an ingested file, too: commands with this id act on the memory"
        hint = "change the id in its file"
        yield _warning("sources", message, hint, file=record.place.path)
    if checked and not (stale or doubles):
        yield _ok("sources", f"unchanged: {count(len(checked), 'ingested file')}")


def _links(call: Call) -> Iterator[Check]:
    loose = call.index.loose_links()
    yield from _loose(call, loose)
    by_name = call.index.ask(survey.superseding_names)[:_MOST_NAMED]
    for source, name, approval, target in by_name:
        message = f"{source} supersedes `{name}` by its name, which has no effect"
        hint = f"write the id in its file: `to: {target.memory.id}`"
        if not disclosure.may_quote(call, approval):
            message = f"{handle_of(source)} supersedes a name, which has no effect"
        if not disclosure.may_quote(call, approval, target.place.approval):
            hint = "write an id in its file"
        yield _warning("links", message, hint)
    circles = call.index.ask(survey.circles)[:_MOST_NAMED]
    for circle in circles:
        start, second, *_ = names = (
            circle if call.agent is None else disclosure.names_of(call, circle)
        )
        message = f"{', '.join(names)} supersede each other, so none of them is current"
        hint = Hint(Command("link", second, start, type="supersedes", remove=True), " ends it")
        yield _warning("links", message, hint)
    if not (loose or by_name or circles):
        yield _ok("links", "every link leads to a memory")


def _loose(call: Call, links: Sequence[Loose]) -> Iterator[Check]:
    """Yields a check for each missing target, and for each that several memories are named."""
    sources: defaultdict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for link in links:
        is_quoted = disclosure.may_quote(call, link.approval)
        key = (link.target, link.rivals) if is_quoted else ("", ("",) if link.rivals else ())
        sources[key].append(link.source if is_quoted else handle_of(link.source))
    if len(sources) > _MOST_NAMED:
        message = f"{len(sources):,} targets of links are not clear; the first {_MOST_NAMED} follow"
        yield _warning("links", message)
    groups = sorted(sources.items(), key=lambda group: (bool(group[0][1]), -len(group[1]), group))
    for (target, rivals), ids in groups[:_MOST_NAMED]:
        linking = f"{count(len(ids), 'link')} ({_list_paths(ids)})"
        hint = "git may still have it: `git log --all -- .mind`"
        message = f"`{target}` is missing: {linking}"
        if rivals:
            hint = "write an id, or more of the path, in the links"
            names = rivals if call.agent is None else disclosure.names_of(call, rivals)
            message = f"`{target}` names {_list_paths(names)}: {linking}"
        if not target:
            state = "ambiguous" if rivals else "missing"
            message = f"texts that are not approved have links to {state} memories: {linking}"
        yield _warning("links", message, hint)


def _server(call: Call) -> Iterator[Check]:
    root = str(call.mind.project.root)
    request = {"ask": "status", "folder": root, **asking.surroundings(call.mind.environ)}
    if reply := asking.ask(str(call.mind.home), root, request):
        yield _ok("server", f"process {reply['pid']} answers commands and hooks")
    else:
        yield _ok("server", "none with this code answers, so commands and hooks work alone")
    if (current := daemon.running(call.mind.home)) and current.has_other_code:
        yield _warning("server", daemon.OTHER_CODE, f"{daemon.RESTART} replaces it")


def _shared_index(call: Call) -> Iterator[Check]:
    if not sharing.url_of(call.mind):
        return
    try:
        yield _ok("shared", sharing.shared_index(call).described(call))
    except (Invalid, StorageFailed) as error:
        yield _warning("shared", error.message, error.hint or "")


def _sessions(call: Call) -> Iterator[Check]:
    sessions = earlier.sessions_of(call.mind) if call.sees_sessions else None
    for message, hint in sessions.described(call.mind) if sessions else ():
        yield _warning("sessions", message, hint) if hint else _ok("sessions", message)


def _user(call: Call) -> Iterator[Check]:
    user = call.user()
    if user is None:
        return
    index = refresh.up_to_date(user)
    for problem in disclosure.of_problems(user):
        hint = "the file was not changed; repair it, and it is found again"
        file = str(user.mind.project.root / problem.path)
        yield _fault("user", problem.reason, hint, file=file, line=problem.line)
    yield from _unclosed(user, "user", str(user.mind.project.root / LOG))
    user.mind.trust.check_format()
    if fault := user.mind.trust.state.problem:
        yield _fault(
            "user", fault, Hint("run ", Command("index", rebuild=True), " outside of projects")
        )
    memories = index.count(Filter())
    if proposed := memories - index.count(Filter(approved=True)):
        message = f"memories for all projects that you have not approved: {proposed:,}"
        yield _warning("user", message, Hint("go through them with ", Command("review", user=True)))
    yield _ok("user", f"memories for all projects: {memories:,}")


def _edges(call: Call) -> Iterator[Check]:
    edges = sources.all_edges(call)
    problems = list(sources.problems(call, edges))
    for problem in problems:
        yield _warning("pitfalls", problem.reason, file=problem.path, line=problem.line)
    if not problems:
        yield _ok("pitfalls", f"{len(edges):,} known, all of them usable" if edges else "none yet")


def _private(call: Call) -> Iterator[Check]:
    for leak in syncing.leaks(call.mind.project.root):
        yield _fault("private", leak.message, leak.hint, file=leak.file)


def _merging(call: Call) -> Iterator[Check]:
    root = call.mind.project.root
    warning, in_repository = syncing.lacking(root), git.is_inside(root)
    if warning:
        hint = Hint(Command("doctor", fix=True), " lets git merge them field by field")
        yield _warning("merging", warning, hint)
    names = dict.fromkeys((*init.lacking(root), *init.exposed(root)))
    if paths := [name for name in names if not (in_repository and name == init.IGNORE_FILE)]:
        message = f"lines by which git ignores or merges memories are missing: {_list_paths(paths)}"
        yield _warning("merging", message, Hint(Command("doctor", fix=True), " adds them"))
    if in_repository and not warning:
        yield _ok("merging", "git merges memories field by field")


def _sharing(call: Call) -> Iterator[Check]:
    if warning := syncing.ignored(call.mind.project.root):
        yield _warning("sharing", warning, "`git check-ignore -v FILE` shows the rule of a file")


def _autocommit(call: Call) -> Iterator[Check]:
    if failure := syncing.failure_of_commit(call):
        hint = Hint(Command("sync"), " commits the changes, or shows the reason again")
        yield _warning("autocommit", failure, hint)


def _procedures(call: Call) -> Iterator[Check]:
    from mimo.features.procedures import library

    for file, result in library.read_files(call):
        for fault in result.faults:
            hint = Hint("see ", Command("procedure check"))
            yield _fault("procedures", fault.reason, hint, file=file.path, line=fault.line)


def _trust(call: Call) -> Iterator[Check]:
    call.mind.trust.check()
    call.mind.trust.check_format()
    if problem := call.mind.trust.state.problem:
        yield _fault("trust", problem, Hint("run ", Command("trust"), " to approve again"))
        return
    look = trusting.look_of(call)
    if look and look.memories:
        approval = Command("trust", all=call.console.ask is None)
        hint = Hint("go through them with ", Command("review"), ", or approve all with ", approval)
        yield _warning(
            "trust", f"memories that are not approved on this machine: {look.memories:,}", hint
        )
    else:
        yield _ok("trust", trusting.describe(call))


def _audit(call: Call) -> Iterator[Check]:
    records, places = audit.broken(call, newest=True)
    for place in places:
        check, hint = (
            (_fault, Hint("see ", Command("audit verify"))) if place.is_broken else (_warning, "")
        )
        yield check("audit", place.what, hint, file=place.file, line=place.line)
    if not places:
        yield _ok("audit", f"{count(records, 'recorded call')}, the newest of them verified")


_EVERYWHERE: tuple[Callable[[Call], Iterator[Check]], ...]
_EVERYWHERE = (
    _settings,
    _extensions,
    _projects,
    _modes,
    _clients,
    _project,
    _user,
    _edges,
    _encoder,
    _sessions,
)
_OF_OWNER = (_locks, _merging, _audit)
"""Checks of files that only the user can read who works in the project."""
_OF_TEXTS = (_user, _edges, _files, _sources, _links)
"""Checks that quote memories."""
_OF_PROJECT = (
    *_EVERYWHERE,
    _locks,
    _index,
    _shared_index,
    _server,
    _files,
    _values,
    _policy,
    _sources,
    _links,
    _private,
    _merging,
    _sharing,
    _autocommit,
    _procedures,
    _trust,
    _audit,
)


@frozen
class Diagnosis:
    """The results of all checks."""

    healthy: Annotated[bool, Out("Whether there are no faults")]
    checks: tuple[Check, ...]

    @property
    def exit_status(self) -> int:
        """Returns the exit status of the command line: 1 if there is a fault."""
        return 0 if self.healthy else 1


@command(
    "mind_doctor",
    cli="doctor",
    finds=True,
    effect=Effect.READ,
    needs=Needs(Operation.READ, diagnosis=True),
    toolset="extra",
    needs_project=False,
    examples=("mind doctor", "mind doctor --fix"),
)
def doctor(
    call: Call,
    *,
    fix: Annotated[
        bool, Arg("Repair git's settings and the modes of private files", surfaces=Surface.CLI)
    ] = False,
) -> Diagnosis:
    """Check the memory and its settings

    Files that could not be read are listed with line and reason; they are never changed. `--fix`
    installs the merge driver in a clone (clones do not copy git settings), adds the lines that
    .mind/.gitignore and .mind/.gitattributes lack, gives a project without an id one, and closes
    private files to other users. It approves nothing.
    """
    failed = tuple(repair(call)) if fix else ()
    checks = (*failed, *examine(call))
    return Diagnosis(
        healthy=all(check.verdict is not Verdict.FAULT for check in checks), checks=checks
    )


# The output.


_MARKS: dict[Verdict, Part] = {
    Verdict.OK: good("ok      "),
    Verdict.WARNING: warn("warning "),
    Verdict.FAULT: bad("fault   "),
}


@render.register
def _(result: Diagnosis, screen: Screen) -> None:
    hint: str | None = None
    for check in result.checks:
        line = f":{check.line}" if check.line else ""
        place = f"{check.file}{line}  " if check.file else ""
        screen.line(_MARKS[check.verdict], dim(f"{check.name:<8} "), place, check.message)
        if check.hint and check.verdict is not Verdict.OK and not check.file:
            if check.hint != hint:  # A row of checks has it once.
                screen.line(dim(f"hint: {check.hint}"), indent=17)
            hint = check.hint
    screen.blank()
    warnings = sum(check.verdict is Verdict.WARNING for check in result.checks)
    noted = f", {count(warnings, 'warning')}" if warnings else ""
    screen.line(good(f"healthy{noted}") if result.healthy else bad("not healthy"))
