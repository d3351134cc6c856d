"""Installing mind into the programs that speak MCP, removing it, and checking the result.

A file of a client is changed in three steps: `targets` lists the files and their edits, a `Plan`
has the new content of one file, and `apply` writes it.
"""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from mimo.errors import Conflict, Invalid, MindError, StorageFailed
from mimo.features.clients import edits as editing
from mimo.features.clients import json_file, storage
from mimo.features.clients.edits import Edit, Entry, Needed
from mimo.features.clients.formats import Format, load
from mimo.features.clients.storage import Found, Note
from mimo.features.clients.table import (
    CLIENTS,
    PLUGIN,
    SERVER,
    Client,
    File,
    Scope,
    client,
    places,
)
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.store import files

NOT_OURS = f"the entry `{SERVER}` starts another program"
_SECONDS = 60
"""Time limit for a client's own program."""


@frozen
class Machine:
    """The machine that clients are installed on."""

    places: Mapping[str, str]
    project: Path | None
    path: str | None
    """The PATH to search for programs."""
    executable: str
    """The absolute path of `mind`."""
    home: str | None = None
    """$MIND_HOME, if it is set: a client may not pass it to the server."""

    def which(self, program: str) -> str | None:
        """Returns the path of a program; None if it is not on the PATH."""
        return shutil.which(program, path=self.path)


@frozen
class Target:
    """A file of a client and the edits to make in it."""

    path: Path
    format: Format
    edits: tuple[Edit, ...]
    within: Path | None


def machine(mind: Mind) -> Machine:
    """Returns this machine, according to the environment of `mind`."""
    home = mind.environ.get("HOME") or str(Path.home())
    path = mind.environ.get("PATH")
    beside = Path(sys.executable).with_name("mind")
    named = shutil.which("mind", path=path) or (str(beside) if beside.exists() else "mind")
    return Machine(
        places=places(home, mind.environ, sys.platform),
        project=mind.project.root if mind.has_project else None,
        path=path,
        executable=os.path.abspath(named) if os.sep in named else named,  # noqa: PTH100 - links stay
        home=str(mind.home) if mind.environ.get("MIND_HOME") else None,
    )


def scope_of(client: Client, scope: Scope | None, here: Machine) -> Scope:
    """Returns the scope: by default the project, if there is one and the client supports it."""
    if scope is None:
        return Scope.PROJECT if Scope.PROJECT in client.files and here.project else Scope.USER
    if scope not in client.files:
        raise Invalid(
            f"{client.title} has no configuration in projects",
            hint=f"mind install {client.name} --scope user",
        )
    return scope


def targets(client: Client, scope: Scope, here: Machine) -> list[Target]:
    """Returns the files to change; a file for both entry and hooks is listed once."""
    command = here.executable
    if not (client.absolute and scope is Scope.USER) and (
        scope is Scope.PROJECT or here.which("mind")
    ):
        command = "mind"
    project = str(here.project) if here.project else None
    wanted: list[tuple[File, tuple[Edit, ...]]] = []
    if not (client.adds_itself and scope is Scope.USER):
        entry = client.server(scope, command, project=project, home=here.home)
        wanted.append((client.files[scope], (entry,)))
    if client.hooks:
        wanted.append((client.hooks.files[scope], client.hooks.edits(home=here.home)))
    targets: dict[Path, Target] = {}
    for file, edits in wanted:
        path = place_of(file, here)
        before = targets[path].edits if path in targets else ()
        within = here.project if scope is Scope.PROJECT else None
        target = Target(path=path, format=file.format, edits=(*before, *edits), within=within)
        targets[path] = target
    return list(targets.values())


def place_of(file: File, here: Machine) -> Path:
    """Returns the first existing place of a file, else its first place."""
    names = {**here.places, "project": str(here.project)}
    if here.project is None and "{project}" in file.places[0]:
        raise Invalid("there is no project here", hint="run `mind init` first, or use --scope user")
    paths = [Path(place.format_map(names)) for place in file.places]
    return next((path for path in paths if path.exists()), paths[0])


@frozen
class Step:
    """The change of one file, or a step that the user must take."""

    file: Path
    action: str
    """`created`, `changed`, `removed`, `unchanged` or `yours`."""
    diff: str | None = None
    backup: Path | None = None
    remark: str | None = None


@frozen
class Plan:
    """The planned change of one file."""

    found: Found
    data: bytes | None
    """The new content; None to remove the file."""
    note: Note | None
    remark: str | None = None

    @property
    def action(self) -> str:
        """Returns the kind of change, as in `Step`."""
        if self.data == self.found.data:
            return "unchanged"
        if self.data is None:
            return "removed"
        return "created" if self.found.data is None else "changed"


def plan_install(mind: Mind, client: Client, target: Target, *, force: bool) -> Plan:
    """Returns the plan that adds the missing edits to a file. Raises as `install` does."""
    found = storage.look(target.path, within=target.within)
    note = storage.note_of(mind.home, target.path)
    data = read(found, target.format)
    try:
        text = editing.put_in(target.format, found.text, target.edits, force=force)
    except MindError as error:
        raise _with_path(error, target.path, _by_hand(target.edits)) from None
    differing = [line for edit in target.edits if (line := editing.differing(data, edit))]
    remark = None
    if differing and not force:
        remark = f"it runs `{differing[0]}`; `--force` replaces it"
    if text == found.text:
        if note:
            note = replace(note, clients=tuple(dict.fromkeys((*note.clients, client.name))))
        return Plan(found=found, data=found.data, note=note, remark=remark)
    after = found.encoded(text)
    current = None if found.data is None else files.digest(found.data)
    fresh = note is not None and note.after == current
    clients = (*note.clients, client.name) if note else (client.name,)
    made = editing.missing(target.format, found.text, target.edits)
    return Plan(
        found=found,
        data=after,
        note=Note(
            clients=tuple(dict.fromkeys(clients)),
            before=note.before if note and fresh else ("" if note else current),
            after=files.digest(after),
            made=tuple(dict.fromkeys((*(note.made if note else ()), *made))),
        ),
        remark=remark,
    )


def _by_hand(edits: Sequence[Edit]) -> str:
    """Returns the entry for a user who adds it by hand."""
    entry = next((edit for edit in edits if isinstance(edit, Entry)), None)
    if entry is None:
        return ""
    value = json.dumps(entry.value, ensure_ascii=False)
    return f"the entry would be {'.'.join(entry.path)} = {value}"


def plan_uninstall(mind: Mind, client: Client, target: Target) -> Plan:
    """Returns the plan that removes the edits from a file.

    A file that has not changed since is restored; from any other, the entries are cut out.
    """
    found = storage.look(target.path, within=target.within)
    note = storage.note_of(mind.home, target.path)
    others = [name for name in note.clients if name != client.name] if note else []
    if note and others:
        left = replace(note, clients=tuple(others))
        return Plan(
            found=found, data=found.data, note=left, remark=f"{', '.join(others)} uses it too"
        )
    if found.data is None:
        return Plan(found=found, data=None, note=None)
    if note and note.after == files.digest(found.data) and note.before != "":
        before = None
        if note.before is not None:
            before = storage.kept(mind.home, target.path, note.before)
        if before is not None or note.before is None:
            return Plan(found=found, data=before, note=None)
    return _plan_cut(found, target, note)


def _plan_cut(found: Found, target: Target, note: Note | None) -> Plan:
    """Returns the plan for a file that was changed since, or that has no note."""
    data = read(found, target.format)
    try:
        text = editing.take_out(
            target.format, found.text, target.edits, made=note.made if note else None
        )
    except MindError as error:
        raise _with_path(error, target.path) from None
    entry = next((edit for edit in target.edits if isinstance(edit, Entry)), None)
    current = editing.at(data, entry.path) if entry else None
    remark = None
    if current is not None and not editing.is_ours(current):
        remark = NOT_OURS
    needed = {edit.path[0]: edit.value for edit in target.edits if isinstance(edit, Needed)}
    if note and note.before is None and _holds_only(target.format, text, needed):
        return Plan(found=found, data=None, note=None, remark=remark)
    return Plan(found=found, data=found.encoded(text), note=None, remark=remark)


def _holds_only(format: Format, text: str, needed: Mapping[str, Any]) -> bool:
    """Returns whether a text has only the keys that hooks need, and no comment."""
    if format is not Format.JSON:
        return not text.strip()
    return not json_file.has_comments(text) and json_file.load(text) in ({}, needed)


def apply(mind: Mind, plan: Plan, scope: Scope, *, dry_run: bool) -> Step:
    """Carries out a plan, unless it is a dry run, and returns the step."""
    changes = plan.data != plan.found.data
    backup = None
    if not dry_run:
        if changes and plan.found.data is not None:
            backup = storage.keep(mind.home, plan.found)
        if changes and plan.data is None:
            storage.remove(plan.found)
        elif changes and plan.data is not None:
            storage.change(plan.found, plan.data, private=scope is Scope.USER)
        storage.write_note(mind.home, plan.found.path, plan.note)
    return Step(
        file=plan.found.path,
        action=plan.action,
        diff=_diff(plan) if changes and dry_run else None,
        backup=backup,
        remark=plan.remark,
    )


def _diff(plan: Plan) -> str:
    from difflib import unified_diff

    sides = [(data or b"").decode("utf-8", "replace") for data in (plan.found.data, plan.data)]
    old, new = (side.splitlines(keepends=True) for side in sides)
    name = str(plan.found.path)
    lines = unified_diff(
        old,
        new,
        "/dev/null" if plan.found.data is None else name,
        "/dev/null" if plan.data is None else name,
    )
    missing = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + missing for line in lines)


def read(found: Found, format: Format) -> Any:
    """Returns the data in a file. Raises `Invalid` with the file's path."""
    try:
        return load(format, found.text)
    except Invalid as error:
        raise _with_path(error, found.path) from None


def _with_path(error: MindError, path: Path, hint: str = "") -> MindError:
    """Returns an error with the path of the file in its message."""
    return type(error)(
        f"`{path}`: {error.message}",
        hint="; ".join(part for part in (error.hint, hint) if part),
        details=error.details | {"path": str(path)},
    )


# Clients that rewrite their configuration often: their own program must change it.


def _add_by_program(client: Client, here: Machine, *, force: bool, dry_run: bool) -> Step:
    """Adds the entry to the user's configuration.

    Raises `Conflict` if another entry has its name, and `StorageFailed`.
    """
    command = "mind" if here.which("mind") else here.executable
    value = dict(client.server(Scope.USER, command, project=None, home=here.home).value)
    present = _present(client, here)
    if present is not None and (present == value or (editing.is_ours(present) and not force)):
        return Step(file=_file(client, here), action="unchanged")
    if present is not None and not force:
        raise Conflict(
            f"`{_file(client, here)}` has an entry `{SERVER}` that differs",
            hint="nothing was changed; `--force` replaces it",
        )
    words = ["add-json", "--scope", "user", SERVER, json.dumps(value, separators=(",", ":"))]
    if present is not None and not dry_run:
        _run(client, here, ["remove", "--scope", "user", SERVER])
    return _run(client, here, words, dry_run=dry_run)


def _remove_by_program(client: Client, here: Machine, *, dry_run: bool) -> Step:
    """Removes the entry from the user's configuration."""
    present = _present(client, here)
    if present is None:
        return Step(file=_file(client, here), action="unchanged")
    if not editing.is_ours(present):
        return Step(file=_file(client, here), action="unchanged", remark=NOT_OURS)
    return _run(client, here, ["remove", "--scope", "user", SERVER], dry_run=dry_run)


def _file(client: Client, here: Machine) -> Path:
    return Path(client.files[Scope.USER].places[0].format_map(here.places))


def _present(client: Client, here: Machine) -> Any:
    file = client.files[Scope.USER]
    try:
        text = storage.look(_file(client, here), within=None).text
        return editing.at(load(file.format, text), (client.section, SERVER))
    except MindError:
        return None  # the client's own program reports the error


def _run(client: Client, here: Machine, words: list[str], *, dry_run: bool = False) -> Step:
    """Runs the client's own program; if it is not on the PATH, returns the command to run."""
    import subprocess

    name = str(client.program)
    line = shlex.join([name, "mcp", *words])
    found = here.which(name)
    if dry_run or found is None:
        why = "would run" if found else f"`{name}` is not on the PATH; run where it is"
        return Step(file=_file(client, here), action="yours", remark=f"{why}: {line}")
    try:
        done = subprocess.run(
            [found, "mcp", *words],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StorageFailed(f"`{line}` failed: {error}", hint="run it yourself") from None
    if done.returncode:
        output = (done.stderr or done.stdout).strip()
        raise StorageFailed(f"`{line}` failed: {output}", hint="run it yourself to see more")
    return Step(file=_file(client, here), action="changed", remark=f"ran {line}")


# The commands.


@frozen
class State:
    """The state of a client on this machine."""

    client: Client
    is_here: bool
    installed: tuple[Scope, ...]
    problem: str | None


def install(
    mind: Mind, client: Client, scope: Scope, here: Machine, *, force: bool, dry_run: bool
) -> Iterator[Step]:
    """Changes the files, unless it is a dry run, after every plan has succeeded; yields the steps.

    Raises `Conflict` if another entry has the server's name, `Invalid` for a file that can't be
    read or changed in place, and `StorageFailed`.
    """
    plans = [
        plan_install(mind, client, target, force=force) for target in targets(client, scope, here)
    ]
    if client.adds_itself and scope is Scope.USER:
        yield _add_by_program(client, here, force=force, dry_run=dry_run)
    yield from (apply(mind, plan, scope, dry_run=dry_run) for plan in plans)


def uninstall(
    mind: Mind, client: Client, scope: Scope, here: Machine, *, dry_run: bool
) -> Iterator[Step]:
    """Changes the files, unless it is a dry run, and yields the steps. Raises as `install`."""
    plans = [plan_uninstall(mind, client, target) for target in targets(client, scope, here)]
    if client.adds_itself and scope is Scope.USER:
        yield _remove_by_program(client, here, dry_run=dry_run)
    yield from (apply(mind, plan, scope, dry_run=dry_run) for plan in plans)


def states(mind: Mind, here: Machine) -> Iterator[State]:
    """Yields the state of every client."""
    for candidate in CLIENTS:
        traces = (Path(trace.format_map(here.places)) for trace in candidate.traces)
        runs = candidate.program is not None and here.which(candidate.program) is not None
        installed, problem = [], None
        for scope, entry in entries(candidate, here):
            if isinstance(entry, MindError):
                problem = entry.message
            elif editing.is_ours(entry):
                installed.append(scope)
        yield State(
            client=candidate,
            is_here=runs or any(trace.exists() for trace in traces),
            installed=tuple(installed),
            problem=problem,
        )


def entries(client: Client, here: Machine) -> Iterator[tuple[Scope, Any]]:
    """Yields the entry of the server in each scope, or the error of reading it."""
    for scope, file in client.files.items():
        if scope is Scope.PROJECT and here.project is None:
            continue
        path = place_of(file, here)
        try:
            data = read(storage.look(path, within=None), file.format)
        except MindError as error:
            yield scope, error
        else:
            yield scope, editing.at(data, (client.section, SERVER))


@frozen
class Doubt:
    """A problem, and how to solve it."""

    message: str
    hint: str


def doubts(mind: Mind) -> Iterator[Doubt]:
    """Yields problems: missing programs, and hooks that run twice or not at all."""
    here = machine(mind)
    for candidate in CLIENTS:
        yield from _missing_programs(candidate, here)
    yield from _hooks_run_twice(here)
    yield from _hooks_in_two_files(here)


def _missing_programs(client: Client, here: Machine) -> Iterator[Doubt]:
    for scope, entry in entries(client, here):
        if isinstance(entry, MindError) or not editing.is_ours(entry):
            continue
        command = editing.command_of(entry)[0]
        if here.which(command) is not None:
            continue
        bare = not PurePath(command).is_absolute()
        yield Doubt(
            message=f"{place_of(client.files[scope], here)} starts the missing `{command}`",
            hint="put it on your PATH: pipx install mimo"
            if bare
            else f"mind install {client.name} --scope {scope} --force",
        )


def _hooks_run_twice(here: Machine) -> Iterator[Doubt]:
    """Yields scopes in which both the plugin and the settings of Claude Code run hooks."""
    hooks = client("claude-code").hooks
    found = (
        {scope: _data(file, scope, here) for scope, file in hooks.files.items()} if hooks else {}
    )
    if not any(editing.at(data, ("enabledPlugins", PLUGIN)) is True for data in found.values()):
        return
    for scope, data in found.items():
        if editing.has_hook(data, ("hooks", "SessionStart")):
            yield Doubt(
                message=f"the plugin {PLUGIN} and {scope} settings both run mind's hooks",
                hint=f"mind uninstall claude-code --scope {scope}",
            )


def _hooks_in_two_files(here: Machine) -> Iterator[Doubt]:
    """Yields scopes in which Codex has hooks in both of its files; it reads only one."""
    codex = client("codex")
    for scope, file in codex.hooks.files.items() if codex.hooks else ():
        ours = editing.has_hook(_data(file, scope, here), ("hooks", "SessionStart"))
        if ours and editing.at(_data(codex.files[scope], scope, here), ("hooks",)):
            other = place_of(codex.files[scope], here)
            yield Doubt(
                message=f"Codex has hooks in {other} and in hooks.json",
                hint="it reads them from one of the two: put all into one",
            )


def _data(file: File, scope: Scope, here: Machine) -> Any:
    """Returns the data in a file; None if it is missing or can't be read."""
    if scope is Scope.PROJECT and here.project is None:
        return None
    try:
        return read(storage.look(place_of(file, here), within=None), file.format)
    except MindError:
        return None
