"""Installing mind into the programs that speak MCP, removing it, and checking the result.

A file of a client is changed in three steps: `targets` lists the files and their edits, a `Plan`
has the new content of one file, and `apply` writes it.
"""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import product
from pathlib import Path, PurePath
from typing import Annotated, Any

from mimo.call import Call
from mimo.call.spec import Omitted, Out
from mimo.data import disk, files
from mimo.errors import Conflict, Invalid, MindError, StorageFailed, join_texts
from mimo.features.clients import edits as editing
from mimo.features.clients import json_file, storage
from mimo.features.clients.edits import Edit, Entry, Format, Hook, Needed, Script, load
from mimo.features.clients.storage import FileState, Note
from mimo.features.clients.table import (
    CLIENTS,
    PLUGIN,
    SERVER,
    Client,
    ClientName,
    Places,
    Scope,
    client,
    places,
)
from mimo.frozen import NamedTuple, frozen, replace

NOT_OURS = f"the entry `{SERVER}` starts another program"
_EDITED = "it is changed, or of another version of mind"
_SECONDS = 60
"""Time limit for a client's own program."""


class Action(StrEnum):
    """The change of a file."""

    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"
    UNCHANGED = "unchanged"
    YOURS = "yours"


@frozen
class FileRow:
    """A file of a client and its change."""

    file: str
    action: Annotated[Action, Out("`yours` if the user must do it")]
    note: Annotated[Omitted[str], Out("Remark on the change")] = None
    backup: Annotated[Omitted[str], Out("Copy of the earlier content")] = None
    diff: Annotated[Omitted[str], Out("The change as a unified diff")] = None
    lines: Annotated[Omitted[str], Out("Lines that the user must add or remove")] = None


@frozen
class ClientRow:
    """A client and its state on this machine."""

    client: ClientName
    title: str
    found: Annotated[bool, Out("Whether it seems to be installed on this machine")]
    installed: Annotated[tuple[Scope, ...], Out("Scopes in which its configuration has the server")]
    problem: Annotated[Omitted[str], Out("Why its configuration can't be read")] = None


@frozen
class Machine:
    """The machine that clients are installed on."""

    places: Mapping[str, str]
    project: Path | None
    environ: Mapping[str, str]
    """The variables, with the PATH to search for programs."""
    executable: str
    """The absolute path of `mind`."""
    home: str | None = None
    """$MIND_HOME, if it is set: a client may not pass it to the server."""
    url: str | None = None
    """The address of the team's server that is installed, instead of a program."""
    has_token: bool = False
    """True if the user has a token for that server, so that the client need not sign in."""
    token_file: Path | None = None
    """A file with that token."""

    def entry(self, client: Client, scope: Scope, command: str) -> Entry:
        """Returns the entry of a client. Raises `Invalid`."""
        if self.url:
            return client.distant(scope, self.url, has_token=self.has_token)
        project = str(self.project) if self.project else None
        return client.server(scope, command, project=project, home=self.home)

    def which(self, program: str) -> str | None:
        """Returns the path of a program; None if it is not on the PATH."""
        return disk.program(program, self.environ)


class Target(NamedTuple):
    """A file of a client and the edits to make in it."""

    path: Path
    edits: tuple[Edit, ...]
    within: Path | None


class Plan(NamedTuple):
    """The planned change of one file."""

    file: FileState
    data: bytes | None
    """The new content; None to remove the file."""
    note: Note | None = None
    remark: str | None = None
    lines: str | None = None
    """The lines of a change that the user must make."""


class Doubt(NamedTuple):
    """A problem, and how to solve it."""

    message: str
    hint: str


def machine(call: Call) -> Machine:
    """Returns this machine, according to the environment of `mind`."""
    home = call.mind.environ.get("HOME") or str(Path.home())
    beside = Path(sys.executable).with_name("mind")
    named = disk.program("mind", call.mind.environ) or (str(beside) if beside.exists() else "mind")
    return Machine(
        places=places(home, call.mind.environ, sys.platform),
        project=call.mind.project.root if call.mind.has_project else None,
        environ=call.mind.environ,
        executable=named,
        home=str(call.mind.home) if call.mind.environ.get("MIND_HOME") else None,
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


def install(
    call: Call,
    client: Client,
    scope: Scope,
    here: Machine,
    *,
    force: bool,
    dry_run: bool,
    skill: bool = False,
) -> Iterator[FileRow]:
    """Changes the files, unless it is a dry run, after every plan has succeeded; yields the rows.

    Raises `Conflict` if another entry has the server's name, `Invalid` for a file that can't be
    read or changed in place, and `StorageFailed`.
    """
    capture = call.mind.config["hook.capture"] == "on"
    all_targets = [
        *targets(client, scope, here, capture=capture),
        *(skill_targets(client, scope, here) if skill else ()),
    ]
    plans = [plan_install(call, client, target, force=force) for target in all_targets]
    if client.adds_itself and scope is Scope.USER:
        command = "mind" if here.which("mind") else here.executable
        entry = here.entry(client, Scope.USER, command)
        yield _by_program(call, client, here, entry.value, force=force, dry_run=dry_run)
    yield from (apply(call, plan, scope, dry_run=dry_run) for plan in plans)


def uninstall(
    call: Call, client: Client, scope: Scope, here: Machine, *, dry_run: bool
) -> Iterator[FileRow]:
    """Changes the files, unless it is a dry run, and yields the rows. Raises as `install`."""
    skills = [each for each in skill_targets(client, scope, here) if each.path.exists()]
    all_targets = [*targets(client, scope, here, capture=True, removing=True), *skills]
    plans = [plan_uninstall(call, client, target) for target in all_targets]
    if client.adds_itself and scope is Scope.USER:
        yield _by_program(call, client, here, None, dry_run=dry_run)
    yield from (apply(call, plan, scope, dry_run=dry_run) for plan in plans)


def targets(
    client: Client, scope: Scope, here: Machine, *, capture: bool, removing: bool = False
) -> list[Target]:
    """Returns the files to change; a file for both entry and hooks is listed once.

    `capture` is whether the hooks may ask the agent to record what a session leaves. For
    `removing`, all files that may have hooks are listed.
    """
    command = _program(here, scope, absolute=client.absolute)
    pairs: list[tuple[Places, tuple[Edit, ...]]] = []
    if not (client.adds_itself and scope is Scope.USER):
        entry = here.entry(client, scope, command)
        pairs.append((client.files[scope], (entry,)))
    for hooks in client.hooks:
        program = _program(here, scope, absolute=hooks.absolute)
        changes = hooks.edits(program=program, home=here.home, capture=capture)
        files, beside = hooks.files[scope], hooks.beside.get(scope)
        if beside and removing:
            pairs += [(beside, changes), (files, changes)]
        elif beside and _has_hooks(beside, here) and not _has_hooks(files, here):
            pairs.append((beside, changes))
        else:
            pairs.append((files, changes))
    if client.plugin:
        text = Path(__file__).with_name(f"{client.name}.js").read_text(encoding="utf-8")
        pairs.append((client.plugin[scope], (Script(text),)))
    edits: dict[Path, tuple[Edit, ...]] = {}
    for file, some in pairs:
        path = place_of(file, here)
        edits[path] = (*edits.get(path, ()), *some)
    within = here.project if scope is Scope.PROJECT else None
    return [Target(path, file_edits, within) for path, file_edits in edits.items()]


def skill_targets(client: Client, scope: Scope, here: Machine) -> list[Target]:
    """Returns the file of the skill; none for a client without skills."""
    if scope not in client.skills:
        return []
    text = Path(__file__).with_name("skill.md").read_text(encoding="utf-8")
    within = here.project if scope is Scope.PROJECT else None
    path = place_of(client.skills[scope], here)
    return [Target(path, (Script(text, editable=True),), within)]


def _has_hooks(file: Places, here: Machine) -> bool:
    """Returns whether a file has any hooks; Codex also keeps the approvals of hooks in its own."""
    events = editing.at(_data(file, here), ("hooks",))
    return isinstance(events, dict) and any(isinstance(each, list) for each in events.values())


def _program(here: Machine, scope: Scope, *, absolute: bool) -> str:
    """Returns the program for the files of a scope: its path only if it is needed there."""
    if scope is Scope.PROJECT or (here.which("mind") and not absolute):
        return "mind"
    return here.executable


def place_of(file: Places, here: Machine) -> Path:
    """Returns the first existing place of a file, else the first one whose client has run.

    A client that has run has made the folder above that of the file. If none has, it is the first.
    """
    names = {**here.places, "project": str(here.project)}
    if here.project is None and "{project}" in file[0]:
        raise Invalid("there is no project here", hint="run `mind init` first, or use --scope user")
    paths = [Path(place.format_map(names)) for place in file]
    some = (path for path in paths if path.parent.parent.is_dir())
    return next((path for path in paths if path.exists()), next(some, paths[0]))


def plan_install(call: Call, client: Client, target: Target, *, force: bool) -> Plan:
    """Returns the plan that adds the missing edits to a file. Raises as `install` does."""
    file = storage.look(target.path, within=target.within)
    note = storage.note_of(call.mind.home, target.path)
    data = read(file)
    if file.format is Format.YAML:
        return _plan_for_user(file, data, target, force=force)
    if _is_edited(file, target, note) and not force:
        return Plan(file, file.data, note, f"{_EDITED}; `--force` replaces it")
    text = file.text
    for edit in target.edits:
        try:
            text = editing.put_in(file.format, text, [edit], force=force)
        except MindError as error:
            raise _with_path(error, target.path, _by_hand(edit)) from None
    differing = [line for edit in target.edits if (line := editing.differing(data, edit))]
    remark = None
    if differing and not force:
        remark = f"it runs `{differing[0]}`; `--force` replaces it"
    elif any(editing.has_other_hook(editing.load(file.format, text), e) for e in target.edits):
        remark = "its hooks are changed, or of an earlier version; `--force` replaces them"
    clients = tuple(dict.fromkeys((*(note.clients if note else ()), client.name)))
    if text == file.text:
        # Without a note, the file had ours already: its original is unknown.
        note = note or Note(clients=clients, before="", after="")
        return Plan(file, file.data, replace(note, clients=clients), remark)
    current = None if file.data is None else files.digest(file.data)
    original = current
    if note:
        original = note.before if note.after == current else ""
    after = file.encoded(text)
    note = Note(clients=clients, before=original, after=files.digest(after))
    return Plan(file, after, note, remark)


def _is_edited(file: FileState, target: Target, note: Note | None) -> bool:
    """Returns whether a file that users may edit is neither as mind wrote it nor as it would be."""
    if file.data is None or (note and note.after == files.digest(file.data)):
        return False
    return any(
        isinstance(edit, Script) and edit.editable and not edit.is_in(file.text)
        for edit in target.edits
    )


def _by_hand(edit: Edit) -> str:
    """Returns what the user can add instead of an edit that failed."""
    if isinstance(edit, Script):
        return ""
    name, value = ".".join(edit.path), json.dumps(edit.value, ensure_ascii=False)
    if isinstance(edit, Hook):
        return f"the new item of {name} would be {value}"
    return f"the entry would be {name} = {value}"


def plan_uninstall(call: Call, client: Client, target: Target) -> Plan:
    """Returns the plan that removes the edits from a file.

    A file that has not changed since is restored, unless it had some of our entries before. From
    any other, the entries are cut out.
    """
    file = storage.look(target.path, within=target.within)
    if file.format is Format.YAML:
        return _plan_for_user(file, read(file), target, removes=True)
    note = storage.note_of(call.mind.home, target.path)
    if note and (other_clients := tuple(name for name in note.clients if name != client.name)):
        remark = f"{', '.join(other_clients)} uses it too"
        return Plan(file, file.data, replace(note, clients=other_clients), remark)
    if file.data is None:
        return Plan(file, None)
    if _is_edited(file, target, note):
        return Plan(file, file.data, remark=f"{_EDITED}; remove it yourself")
    original: FileState | None = None
    if note:
        kept = storage.kept(call.mind.home, target.path, note.before) if note.before else None
        if note.before is None or kept is not None:
            original = replace(file, data=kept)
        if original and note.after == files.digest(file.data) and not _has_ours(original, target):
            return Plan(file, original.data)
    data, before = read(file), None
    if original:
        before = original.text
        with suppress(MindError):  # It may have had some of ours.
            before = editing.take_out(file.format, before, target.edits, original=None)
    try:
        text = editing.take_out(file.format, file.text, target.edits, original=before)
    except MindError as error:
        raise _with_path(error, target.path) from None
    entries = [editing.at(data, edit.path) for edit in target.edits if isinstance(edit, Entry)]
    others_run = any(entry is not None and not editing.is_ours(entry) for entry in entries)
    is_script = any(isinstance(edit, Script) for edit in target.edits)
    is_ours_alone = (is_script and not text) or (
        note is not None and note.before is None and _is_empty(text, file, target)
    )
    after = None if is_ours_alone else file.encoded(text)
    return Plan(file, after, remark=NOT_OURS if others_run else None)


def _plan_for_user(
    file: FileState, data: Any, target: Target, *, force: bool = False, removes: bool = False
) -> Plan:
    """Returns the plan that leaves a YAML file to the user: no library keeps all of its form.

    Raises `Conflict` if another entry has the server's name.
    """
    (entry,) = (edit for edit in target.edits if isinstance(edit, Entry))
    section, name = entry.path
    current, value = editing.at(data, entry.path), entry.value
    if removes:
        if not editing.is_ours(current):
            return Plan(file, file.data, remark=None if current is None else NOT_OURS)
        value, task = current, "remove the entry from"
    else:
        try:
            is_installed = editing.has_edit(data, entry, force=force)
        except Conflict as error:
            raise _with_path(error, target.path, _by_hand(entry)) from None
        if is_installed:
            line = editing.differing(data, entry)
            remark = f"it runs `{line}`; `--force` shows the entry that replaces it"
            return Plan(file, file.data, remark=remark if line else None)
        if current is not None:
            task = "replace the entry in"
        elif editing.at(data, (section,)):
            task = f"add the entry below its `{section}:` to"
        else:
            task = "add the entry to"
    lines = editing.yaml_lines({section: {name: value}})
    return Plan(file, file.data, remark=f"{task} `{target.path}`:", lines=lines)


def _has_ours(file: FileState, target: Target) -> bool:
    """Returns whether a file has entries or hooks of ours."""
    try:
        return (
            editing.take_out(file.format, file.text, target.edits, original=file.text) != file.text
        )
    except MindError:
        return True  # It has some that can't be cut out.


def _is_empty(text: str, file: FileState, target: Target) -> bool:
    """Returns whether a text has only the keys that hooks need, and no comment.

    OpenCode adds the address of its schema to every file.
    """
    if file.format is not Format.JSON:
        return not text.strip()
    needed = {edit.path[0]: edit.value for edit in target.edits if isinstance(edit, Needed)}
    if json_file.has_comments(text):
        return False
    left = {key: value for key, value in json_file.load(text).items() if key != "$schema"}
    return left in ({}, needed)


def apply(call: Call, plan: Plan, scope: Scope, *, dry_run: bool) -> FileRow:
    """Carries out a plan, unless it is a dry run, and returns the change."""
    file, data = plan.file, plan.data
    action, diff, backup = Action.UNCHANGED, None, None
    if data != file.data:
        action = Action.CREATED if file.data is None else Action.CHANGED
        action = Action.REMOVED if data is None else action
        if dry_run:
            diff = _diff(plan)
        else:
            backup = None if file.data is None else str(storage.keep(call.mind.home, file))
            storage.change(call.mind.home, file, data, private=scope is Scope.USER)
    if not dry_run:
        storage.write_note(call.mind.home, file.path, plan.note)
    if plan.lines:
        action = Action.YOURS
    row = FileRow(file=str(file.path), action=action, note=plan.remark, backup=backup, diff=diff)
    return replace(row, lines=plan.lines)


def _diff(plan: Plan) -> str:
    from difflib import unified_diff

    sides = (plan.file.data, plan.data)
    old, new = ((data or b"").decode("utf-8", "replace").splitlines(True) for data in sides)
    old_path, after = ("/dev/null" if data is None else str(plan.file.path) for data in sides)
    missing = "\n\\ No newline at end of file\n"
    lines = unified_diff(old, new, old_path, after)
    return "".join(line if line.endswith("\n") else line + missing for line in lines)


def read(file: FileState) -> Any:
    """Returns the data in a file. Raises `Invalid` with the file's path."""
    try:
        return load(file.format, file.text)
    except Invalid as error:
        raise _with_path(error, file.path) from None


def _with_path(error: MindError, path: Path, hint: str = "") -> MindError:
    """Returns an error with the path of the file in its message."""
    return type(error)(
        f"`{path}`: {error.message}",
        hint=join_texts(error.hint, hint) or "",
        details=error.details | {"path": str(path)},
    )


# A client that rewrites its configuration often: its own program must change it.


def _by_program(
    call: Call,
    client: Client,
    here: Machine,
    new_entry: Mapping[str, Any] | None,
    *,
    force: bool = False,
    dry_run: bool,
) -> FileRow:
    """Adds the wanted entry to the user's configuration, or removes ours if it is None.

    Raises `Conflict` if another entry has its name, and `StorageFailed`.
    """
    path = Path(client.files[Scope.USER][0].format_map(here.places))
    file = present = None
    # The client's own program reports the error.
    with suppress(MindError):
        file = storage.look(path, within=None)
        present = editing.at(read(file), (client.section, SERVER))
    is_ours = editing.is_ours(present)
    if present == new_entry or (new_entry and is_ours and not force):
        return FileRow(file=str(path), action=Action.UNCHANGED)
    remove = ["remove", "--scope", "user", SERVER]
    if new_entry is None:
        if not is_ours:
            return FileRow(file=str(path), action=Action.UNCHANGED, note=NOT_OURS)
        return _run(client, here, path, remove, dry_run=dry_run)
    if present is not None and not force:
        raise Conflict(
            f"`{path}` has an entry `{SERVER}` that differs",
            hint="nothing was changed; `--force` replaces it",
        )
    add, restore = (
        ["add-json", "--scope", "user", SERVER, json.dumps(entry, separators=(",", ":"))]
        for entry in (new_entry, present)
    )
    is_here = here.which(str(client.program)) is not None
    if file is None or present is None or dry_run or not is_here:
        return _run(client, here, path, add, dry_run=dry_run)
    backup = str(storage.keep(call.mind.home, file))
    _run(client, here, path, remove, dry_run=False)
    try:
        return replace(_run(client, here, path, add, dry_run=False), backup=backup)
    except StorageFailed as error:
        error.hint = join_texts(error.hint, "the earlier entry is unchanged") or ""
        try:
            _run(client, here, path, restore, dry_run=False)
        except StorageFailed:
            error.hint = f"the earlier entry was removed; `{backup}` has a copy of the file"
        raise


def _run(client: Client, here: Machine, path: Path, words: list[str], *, dry_run: bool) -> FileRow:
    """Runs the client's own program; if it is not on the PATH, returns the command to run."""
    import subprocess

    name = str(client.program)
    line = shlex.join([name, "mcp", *words])
    program = here.which(name)
    if dry_run or program is None:
        why = "would run" if program else f"`{name}` is not on the PATH; run where it is"
        return FileRow(file=str(path), action=Action.YOURS, note=f"{why}: {line}")
    try:
        done = subprocess.run(
            [program, "mcp", *words],
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
    return FileRow(file=str(path), action=Action.CHANGED, note=f"ran {line}")


# The state of the clients.


def states(here: Machine) -> Iterator[ClientRow]:
    """Yields the state of every client."""
    for candidate in CLIENTS:
        traces = (Path(trace.format_map(here.places)) for trace in candidate.traces)
        runs = candidate.program is not None and here.which(candidate.program) is not None
        installed, problem = [], None
        for scope, entry in _entries(candidate, here):
            if isinstance(entry, MindError):
                problem = entry.message
            elif editing.is_ours(entry):
                installed.append(scope)
        yield ClientRow(
            client=ClientName(candidate.name),
            title=candidate.title,
            found=runs or any(trace.exists() for trace in traces),
            installed=tuple(installed),
            problem=problem,
        )


def doubts(call: Call) -> Iterator[Doubt]:
    """Yields problems: missing programs, and hooks that run twice or not at all."""
    here = machine(call)
    for candidate in CLIENTS:
        for scope, entry in _entries(candidate, here):
            if isinstance(entry, MindError) or not editing.is_ours(entry):
                continue
            command, *arguments = editing.command_of(entry)
            if arguments and here.which(command) is None:
                again = f"mind install {candidate.name} --scope {scope} --force"
                has_path = PurePath(command).is_absolute()
                yield Doubt(
                    f"{place_of(candidate.files[scope], here)} starts the missing `{command}`",
                    again if has_path else "put it on your PATH: pipx install CHECKOUT",
                )
    yield from _doubtful_hooks(here)
    capture = call.mind.config["hook.capture"] == "on"
    yield from _other_hooks(here, capture=capture)
    if capture:
        yield from _silent_hooks(here)


def _other_hooks(here: Machine, *, capture: bool) -> Iterator[Doubt]:
    """Yields files whose hooks are not as this version writes them."""
    for candidate, scope in product(CLIENTS, Scope):
        if not candidate.hooks or (scope is Scope.PROJECT and here.project is None):
            continue
        for path, edits, _ in targets(candidate, scope, here, capture=capture):
            with suppress(MindError):
                data = read(storage.look(path, within=None))
                if any(editing.has_other_hook(data, edit) for edit in edits):
                    yield Doubt(
                        f"the hooks of mind in {path} are changed, or of an earlier version",
                        f"mind install {candidate.name} --scope {scope} --force",
                    )


def _doubtful_hooks(here: Machine) -> Iterator[Doubt]:
    """Yields scopes in which Claude Code runs hooks twice, or Codex reads only some of them."""
    start = ("hooks", "SessionStart")
    claude = {scope: _data(file, here) for scope, file in _hook_files("claude-code")}
    if any(editing.at(data, ("enabledPlugins", PLUGIN)) is True for data in claude.values()):
        for scope, data in claude.items():
            if editing.has_hook(data, start):
                yield Doubt(
                    f"the plugin {PLUGIN} and {scope} settings both run mind's hooks",
                    f"mind uninstall claude-code --scope {scope}",
                )
    for scope, file in _hook_files("codex"):
        config = client("codex").files[scope]
        if editing.has_hook(_data(file, here), start) and _has_hooks(config, here):
            yield Doubt(
                f"Codex has hooks in {place_of(config, here)} and in hooks.json, and warns of that",
                f"mind uninstall codex --scope {scope} && mind install codex --scope {scope}",
            )


def _silent_hooks(here: Machine) -> Iterator[Doubt]:
    """Yields installed hooks that can't ask an agent, although the user wants them to."""
    for _, file in _hook_files("claude-code"):
        if editing.at(_data(file, here), ("enabledPlugins", PLUGIN)) is True:
            yield Doubt(
                f"`hook.capture` is on, but the hooks of the plugin {PLUGIN} do not wait",
                "use `mind install claude-code` in place of the plugin",
            )
    for candidate in CLIENTS:
        asking = [(hooks, event) for hooks in candidate.hooks for event in hooks.asking]
        for (hooks, event), scope in product(asking, Scope):
            file = hooks.files[scope]
            data = _data(file, here)
            items = editing.at(data, ("hooks", event)) or ()
            does_not_wait = any(map(editing.is_async, items))
            has_others = any(editing.has_hook(data, ("hooks", other)) for other in hooks.events)
            if does_not_wait or (has_others and not items):
                yield Doubt(
                    f"`hook.capture` is on, but {candidate.title} has no hook in "
                    f"{place_of(file, here)} that waits for the request to the agent",
                    f"mind install {candidate.name} --scope {scope}",
                )


def _hook_files(name: str) -> list[tuple[Scope, Places]]:
    return [item for hooks in client(name).hooks for item in hooks.files.items()]


def _entries(client: Client, here: Machine) -> Iterator[tuple[Scope, Any]]:
    """Yields the entry of the server in each scope, or the error of reading it."""
    for scope, file in client.files.items():
        if scope is Scope.PROJECT and here.project is None:
            continue
        try:
            data = read(storage.look(place_of(file, here), within=None))
        except MindError as error:
            yield scope, error
        else:
            yield scope, editing.at(data, (client.section, SERVER))


def _data(file: Places, here: Machine) -> Any:
    """Returns the data in a file; None if there is no project for it, or it can't be read."""
    with suppress(MindError):
        return read(storage.look(place_of(file, here), within=None))
    return None
