"""Undoing changes of commands, from the trash."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from mimo.call import Call
from mimo.data import disk, files
from mimo.data.disk import STORE
from mimo.data.failures import failure
from mimo.data.files import LOCAL, PRIVATE, SESSIONS
from mimo.errors import (
    Command,
    Conflict,
    Denied,
    Hint,
    MindError,
    NotFound,
    StorageFailed,
    join_texts,
)
from mimo.frozen import frozen, replace
from mimo.guard.policy import Operation, Request
from mimo.memory.ids import handle_of, of_path
from mimo.memory.model import Memory, Problem, Record, is_elsewhere
from mimo.operations import refresh, saving
from mimo.project import trash
from mimo.project.memories import approvals_of, records_of
from mimo.project.trash import Entry, Kept, Recorder
from mimo.text.clean import compiled


class Action(StrEnum):
    """The effect of an undo on one file."""

    RESTORE = "restore"
    """Writes a file that is missing now."""
    REPLACE = "replace"
    REMOVE = "remove"
    """Removes a file that the command created."""
    NOTHING = "nothing"
    """The file is already as before the command."""


@frozen
class Step:
    """The undo of one file."""

    kept: Kept
    action: Action
    current: str | None
    """The digest of the file now; None if it is missing."""
    changed: bool
    """True if the file changed after the command."""


@frozen
class Undone:
    """A change that was undone, or would be in a dry run."""

    entry: Entry
    steps: tuple[Step, ...]
    redo: str | None
    """The id of the entry that undoes the undo."""
    hint: Hint | None = None
    """The command that redoes the change."""


@frozen
class Change:
    """A change in the trash."""

    entry: Entry
    files: tuple[str, ...]
    undone: bool


@frozen
class Position:
    """The place in the sequence of changes that `undo` leaves backwards and `redo` forwards."""

    undo: Entry | None
    redo: Entry | None
    """The undo that is reverted next; None after a new change."""
    origins: Mapping[str, Entry]
    """The change that each entry made, undid or redid, by the entry's id."""

    def origin(self, entry: Entry | None) -> Entry | None:
        """Returns the change that an entry made, undid or redid."""
        return self.origins.get(entry.id, entry) if entry else None


@contextmanager
def recorded(
    call: Call, request: Request, *, command: str, is_tool: bool, memory_only: bool = False
) -> Iterator[Recorder]:
    """Copies files into the trash before the command in the block removes or replaces them.

    With `memory_only`, files outside `.mind/` are left out: some commands undo these themselves.
    """

    def entry(id: str) -> Entry:
        return Entry(
            id=id,
            time=call.mind.now(),
            command=command,
            tool=request.tool,
            like=request.like,
            is_tool=is_tool,
            by=call.author,
            namespace=request.namespace,
            key=request.key,
        )

    def named(path: Path) -> str | None:
        if call.mind.is_of_home(path):
            return None
        name = trash.named(call.mind.project.root, path)
        is_memory = name is not None and name.startswith(f"{STORE}/")
        return name if is_memory or not memory_only else None

    note, approved = partial(call.note, "trash"), partial(_is_approved, call)
    recorder = Recorder(named, lambda: call.mind.trash, entry, note, approved)

    retired: dict[str, set[str]] = {}

    def retire(contents: Mapping[Path, bytes | None]) -> None:
        """Retires the approvals of the texts that are replaced or removed."""
        names = {
            name: data for path, data in contents.items() if (name := named(path)) and path.exists()
        }
        if names:
            before = {n: call.mind.store.approvals(n) for n in names}
            after = {n: () if d is None else approvals_of(n, d) for n, d in names.items()}
            retired.update(call.mind.trust.retire(after, before))

    with files.watched(recorder), files.watched(retire):
        try:
            yield recorder
        except BaseException:
            recorder.forget_if(lambda copy: _current(call, copy.path) == _digest(copy.before))
            raise
        finally:  # A file that could not be changed keeps its approval.
            paths = {
                each: path
                for path, names in retired.items()
                for each in names.intersection(call.mind.store.approvals(path))
            }
            if paths:
                with suppress(MindError):
                    call.mind.trust.approve(paths, paths=paths)


_TOOLS = {"memory-files": "memory tool", "items": "item store"}
"""Names of the tools without a command, by the first word that an entry has for them."""


def name_of(command: str) -> str:
    """Returns the name of a change for people: its command, or the tool and its operation."""
    group, _, operation = command.partition(" ")
    if tool := _TOOLS.get(group):
        return f"{tool}: {operation.replace('-', '_')}"
    return f"mind {command}"


def is_own(path: str) -> bool:
    """Returns whether a file is one that mind keeps for itself, such as the list of an import."""
    return f"{LOCAL}/" in path


def _entries(call: Call) -> list[Entry]:
    """Returns the changes in the trash, oldest first, without those of a later version of mind."""
    entries = []
    for id_ in call.mind.trash.ids():
        with suppress(StorageFailed):
            if entry := call.mind.trash.entry(id_):
                entries.append(entry)
    return entries


def changes(call: Call, limit: int) -> tuple[Change, ...]:
    """Returns the newest changes in the trash, newest first."""
    store, entries = call.mind.trash, _entries(call)[::-1]
    undone: set[str] = set()  # Those that were undone and not redone since.
    for entry in entries:
        if entry.undoes and entry.id not in undone:
            undone.add(entry.undoes)
    return tuple(
        Change(
            entry=entry,
            files=tuple(copy.path for copy in store.kept(entry.id)),
            undone=entry.id in undone,
        )
        for entry in entries[:limit]
    )


def position(call: Call) -> Position:
    """Returns which change `undo` reverts next, and which undo `redo`.

    The undo of the last change steps back and the undo of that undo forward. Any other command is a
    new change, so is the undo of an earlier one. Raises `StorageFailed` if a later version of mind
    made the last change.
    """
    store = call.mind.trash
    store.entry(store.last)
    origins: dict[str, Entry] = {}
    back: list[Entry] = []
    forward: list[Entry] = []
    for entry in _entries(call):
        target = entry.undoes
        if target and (target not in origins or (back and back[-1].id == target)):
            del back[-1 if target in origins else len(back) :]
            forward.append(entry)
        elif forward and forward[-1].id == target:
            forward.pop()
            back.append(entry)
        else:
            back.append(entry)
            forward.clear()
        origins[entry.id] = origins.get(target or "", entry)
    undo, redo = (entries[-1] if entries else None for entries in (back, forward))
    return Position(undo=undo, redo=redo, origins=origins)


def undo(
    call: Call,
    target: str | None,
    *,
    redoes: bool = False,
    dry_run: bool = False,
    force: bool = False,
) -> Undone:
    """Undoes a change, by default the last one that is not undone, and returns the effect on files.

    With `redoes`, reverts the last undo instead, unless a new change followed. The present content
    of the files goes to the trash. With `dry_run` nothing changes. Raises `NotFound`,
    `AmbiguousId`, `Denied` if the caller may not run the command that is undone, `Conflict` if a
    file changed since, unless `force` is set, and `StorageFailed`; no file is then undone.
    """
    store = call.mind.trash
    with ExitStack() as locks:
        if not dry_run:
            for locked in (store.locked, call.mind.store.locked, call.mind.values.locked):
                locks.enter_context(locked())
        place = position(call)
        entry, origin = _target(store, place, target, redoes=redoes)
        _authorise(call, origin)
        steps = tuple(_step(call, copy) for copy in store.kept(entry.id))
        is_done = all(step.action is Action.NOTHING for step in steps)
        if is_done and target is not None:
            raise NotFound(
                f"`{entry.id}` has nothing to undo: its files are as before"
                f" `{name_of(entry.command)}`",
                hint=Hint("see ", Command("undo", list=True), " for other changes"),
            )
        if dry_run:
            return Undone(entry=origin, steps=steps, redo=None)
        if not force and (changed := [step for step in steps if step.changed]):
            raise _refused(call, entry, changed)
        recorder = trash.current()
        if recorder:
            recorder.undoes = entry.id
            if is_done:  # A later call of `undo` goes further back.
                recorder.begin()
        paths = [step.kept.path for step in steps if step.action is not Action.NOTHING]
        memories = call.mind.store.stamps().keys() | call.index.stamps().keys()
        previous = _read(call, memories.intersection(paths))
        _apply_all(call, steps, paths)
    memories |= call.mind.store.stamps().keys()
    after = _read(call, memories.intersection(paths))
    saving.report(call, *((previous.get(id), after.get(id)) for id in {**previous, **after}))
    refresh.note_change(call, *(path for path in paths if path in memories))
    call.mind.tell("mimo.undo", {"files": len(paths)}, id=origin.id, command=origin.command)
    hint = None
    undo, redo = Command("undo"), Command("redo")
    if is_done:
        hint = Hint(redo if redoes else undo, " again goes one change further")
    elif entry != place.redo:
        hint = Hint(redo if entry == place.undo else undo, " redoes it")
    id_ = recorder.id if recorder else None
    return Undone(entry=origin, steps=steps, redo=id_, hint=hint)


def _target(
    store: trash.Trash, place: Position, target: str | None, *, redoes: bool
) -> tuple[Entry, Entry]:
    """Returns the entry to undo, and the change that it made, undid or redid."""
    entry = place.redo if redoes else place.undo
    if target is not None:
        named = store.find(target)
        # A change that was redone is reverted by its last redo, which has the present text.
        entry = entry if entry and place.origin(entry) == named else named
    origin = place.origin(entry)
    if entry is None or origin is None:
        raise NotFound(
            f"there is no change to {'redo' if redoes else 'undo'}",
            hint=Hint("see ", Command("undo", list=True), " for other changes")
            if redoes or place.redo
            else Hint("for committed changes see ", Command("log")),
        )
    return entry, origin


def owner_of_last(call: Call, arguments: Mapping[str, Any], *, redoes: bool = False) -> Call:
    """Returns the memory with the change that a person undoes: the last one, or a named one.

    That is the project's, or the user's for all projects.
    """
    target, is_purge = arguments.get("id"), arguments.get("purge")
    user = None if call.agent or arguments.get("list_") else call.user()
    if user is None or (is_purge and target in (None, "all")):
        return call
    if target is None:
        return max((call, user), key=lambda owner: _next_id(owner, redoes=redoes))
    return user if user.mind.trash.matches(target) and not call.mind.trash.matches(target) else call


def _next_id(call: Call, *, redoes: bool) -> str:
    place = position(call)
    entry = place.redo if redoes else place.undo
    return entry.id if entry else ""


def purge(call: Call, target: str) -> tuple[int, str | None]:
    """Removes a change from the trash permanently, or `all` changes; returns their number.

    Also unstages their texts, unless they are on the disk, and returns a notice of that. The ids of
    memories that are missing now are removed, too. Raises `NotFound`, `AmbiguousId`, and
    `StorageFailed` if a change can't be removed; the others are removed then.
    """
    store = call.mind.trash
    ids = store.ids() if target == "all" else [store.find(target).id]
    for id_ in ids:
        store.entry(id_)  # Raises for a later format.
    purged: dict[str, set[str | None]] = {}
    memories = set[str]()
    for id_ in ids:
        with suppress(NotFound):  # Another user made the change.
            for copy in store.kept(id_):
                purged.setdefault(copy.path, set()).add(_digest(copy.before))
                memories |= _ids(call, copy.path, copy.before)
    failed: MindError | None = None
    for id_ in ids:
        try:
            store.remove(id_)
        except MindError as error:  # A clone may bring a folder or a link of that name.
            failed = error

    def is_of(path: str, text: bytes) -> bool:
        digest = _digest(text)
        return digest in purged[path] and digest != _current(call, path)

    index = refresh.up_to_date(call)
    missing = [id_ for id_ in sorted(memories) if not (index.get(id_) or index.parts(id_))]
    notice = join_texts(_unstage(call, "", purged, is_of), forget_ids(call, missing))
    if failed:
        failed.hint = join_texts(failed.hint, "the other changes were removed", notice) or ""
        raise failed
    return len(ids), notice


def entry_id() -> str | None:
    """Returns the trash entry of the running command, if it has changed files."""
    recorder = trash.current()
    return recorder.id if recorder else None


def forget(call: Call, record: Record) -> Callable[[str], bool]:
    """Removes all copies of a memory's file from the trash; the running command keeps none.

    Copies at an earlier path of the file are those whose text has the id, and copies of other
    files, such as CLAUDE.md, those that quote the memory or a copy of it. Returns a function that
    checks whether a text quotes one of these.
    """
    path, id_ = record.place.path, record.parent or record.memory.id
    if recorder := trash.current():
        recorder.exempt(path)
    versions = [record.memory]
    for entry in call.mind.trash.ids():
        for copy in call.mind.trash.kept(entry) if call.mind.trash.entry(entry) else ():
            if copy.before is not None and (copy.path == path or id_.encode() in copy.before):
                read = (each.memory for each in _records(call, copy.path, copy.before))
                versions += [memory for memory in read if memory.id == record.memory.id]

    def quoted(text: str) -> bool:
        return any(quotes(memory, text) for memory in versions)

    def is_of(copy: Kept) -> bool:
        text = copy.before
        if text is not None and is_elsewhere(copy.path):
            return quoted(text.decode("utf-8", "replace"))
        return text is not None and _holds(call, id_, copy.path, text)

    call.mind.trash.purge(path, is_of)
    return quoted


_QUOTED = 8, 60
"""The fewest characters of a sentence that count as a quote, and those that are compared."""
_FIRST_WIDE = "\u2e80"
"""The first of the Korean, Japanese and Chinese characters, each of which counts as two."""


def quotes(memory: Memory, text: str) -> bool:
    """Returns whether a text has a sentence of a memory, or its title.

    Case and marks don't count, and only the beginning of a long sentence does, as in notes.
    """
    least, limit = _QUOTED

    def length(words: str) -> int:
        return len(words) + sum(sign >= _FIRST_WIDE for sign in words)

    lines = "\n".join((memory.heading, memory.content, *memory.sections.values()))
    sentences = {_words(each)[:limit] for each in compiled(r"(?<=[.!?])\s+|\n").split(lines)}
    words = _words(text)
    return any(each in words for each in sentences if length(each) >= least)


def _words(text: str) -> str:
    """Returns the words of a text in small letters, each after a space."""
    return compiled(r"[\W_]+").sub(" ", f" {text.casefold()}").rstrip()


def unstage(call: Call, record: Record) -> str | None:
    """Unstages the texts of a memory that was removed, which the user's next commit would publish.

    Returns a notice of that, and of a commit that has the file; None if git never had it.
    """
    from mimo.project import git

    path, id_ = record.place.path, record.parent or record.memory.id
    unstaged = _unstage(
        call, id_, (path,), lambda file, text: file == path or _holds(call, id_, file, text)
    )
    root = call.mind.project.root
    words = ("log", "-1", "--all", "--format=%h", "--", path)
    commit = git.output(root, *words) if git.is_inside(root) else None
    notice = f"git's history keeps it, such as in {commit}: revoke a secret" if commit else ""
    return join_texts(unstaged, notice)


def unstage_quotes(call: Call, names: Collection[str], quoted: Callable[[str], bool]) -> str | None:
    """Unstages those of the named files whose staged text quotes a purged memory.

    Returns a notice of that.
    """
    return _unstage(call, "", names, lambda _, text: quoted(text.decode("utf-8", "replace")))


def _unstage(
    call: Call, id_: str, paths: Collection[str], is_of: Callable[[str, bytes], bool]
) -> str | None:
    from mimo.project import commit, git

    root = call.mind.project.root
    if not git.is_inside(root):
        return None
    names: list[str] = []
    try:
        staged = commit.staged_texts(root, id_, paths)
        names = [path for path, text in staged if is_of(path, text)]
        commit.unstage(root, names)
    except MindError as error:
        # git could not list the staged files.
        targets = {STORE if path.startswith(f"{STORE}/") else path for path in paths}
        some = " ".join(map(quote, names or sorted(targets)))
        return (
            f"git may still have the text staged ({error.message}): "
            f"run `git rm -r --cached -- {some}`"
        )
    return f"git had the text staged; it was unstaged: {', '.join(names)}" if names else None


def _holds(call: Call, id_: str, path: str, text: bytes) -> bool:
    """Returns whether a text, kept from this path, has a memory or an ingested file of this id."""
    return (id_.encode() in text or of_path(path) == id_) and id_ in _ids(call, path, text)


def _ids(call: Call, path: str, text: bytes | None) -> set[str]:
    """Returns the id in a text that was kept from this path; for no text, that of the path."""
    from mimo.project.revisions import is_memory

    if text is None:
        return {of_path(path)} if is_memory(path.replace(PRIVATE, f"{STORE}/")) else set()
    return {record.parent or record.memory.id for record in _records(call, path, text)}


def _records(call: Call, path: str, text: bytes) -> Sequence[Record]:
    """Returns the memories in a text that was kept from this path."""
    from mimo.project.revisions import is_memory

    if not is_memory(path.replace(PRIVATE, f"{STORE}/")):
        return ()
    read = records_of(text, path, call.mind.now())
    return () if isinstance(read, Problem) else read


def forget_ids(call: Call, ids: Iterable[str]) -> str | None:
    """Removes the ids of purged memories, which have words of their texts, from mind's own files.

    Events keep the short ids. Also removes what the index has left of all removed texts. Returns a
    notice of what fails: the memories are removed already.
    """
    failed = list[str]()
    try:
        for id_ in ids:
            _forget_id(call, id_)
    except (MindError, OSError) as error:
        reason = error.message if isinstance(error, MindError) else error.strerror
        failed.append(f"a file in `{LOCAL}` may still have its id ({reason}): remove that")
    try:
        refresh.refresh(call)
        call.release()
        call.mind.index.purge()
    except MindError as error:
        folder = call.mind.index_folder
        failed.append(f"the index may still have its words ({error.message}): remove `{folder}`")
    return join_texts(*failed)


def _forget_id(call: Call, id: str) -> None:
    from mimo.data import append_log

    call.mind.events.replace(id, handle_of(id))
    call.mind.accesses.forget(id)
    call.mind.trust.forget_id(id)
    pattern = re.compile(rf'"{re.escape(json.dumps(id)[1:-1])}(?=[.#])'.encode())
    for path in files.safe_path(call.mind.project.root, SESSIONS).glob("*.json"):
        with suppress(MindError):  # A clone may bring anything.
            append_log.rewrite(path, partial(pattern.sub, f'"{handle_of(id)}'.encode()))


def _authorise(call: Call, entry: Entry) -> None:
    """Raises `Denied` unless the caller may run the command that is undone or redone."""
    if call.author is not None and (not entry.is_tool or entry.undoes):
        raise Denied(
            f"an agent can't undo `{name_of(entry.command)}`",
            hint=Hint("a person can run ", Command("undo", entry.id)),
        )
    call.mind.guard.authorise(
        Request(
            tool=entry.tool,
            like=entry.like,
            operation=Operation.WRITE,
            governed=entry.is_tool or call.agent is not None,
            agent=call.agent,
            at=call.mind.now(),
            namespace=entry.namespace,
            key=entry.key,
        )
    )


def _step(call: Call, copy: Kept) -> Step:
    current, old_digest = _current(call, copy.path), _digest(copy.before)
    if current == old_digest:
        action = Action.NOTHING
    elif old_digest is None:
        action = Action.REMOVE
    else:
        action = Action.RESTORE if current is None else Action.REPLACE
    changed = current not in (old_digest, copy.after)
    return Step(kept=copy, action=action, current=current, changed=changed)


def _apply_all(call: Call, steps: Sequence[Step], paths: Sequence[str]) -> None:
    """Changes the files at `paths`; if one can't be changed, the others are put back.

    The trash then has no entry of the undo, so the change does not count as undone.
    """
    with ExitStack() as undone:
        try:
            for number, step in enumerate(steps, 1):
                undone.callback(_put_back, call, _present(call, step))
                _apply(call, step)
                call.advance("Changing files", number, len(steps))
            if any(path.startswith(f"{STORE}/values/") for path in paths):
                call.mind.values.restored(paths)
        except MindError as error:
            error.hint = join_texts(error.hint, "nothing was undone") or ""
            raise
        undone.pop_all()


def _present(call: Call, step: Step) -> Kept:
    """Returns a file as it is before the step of an undo, and the digest after it."""
    target = files.safe_path(call.mind.project.root, step.kept.path)
    content = files.content(target)
    mode = step.kept.mode if content is None else target.stat().st_mode & 0o777
    approved = content is not None and _is_approved(call, step.kept.path, content)
    after = _digest(step.kept.before)
    return replace(step.kept, before=content, after=after, mode=mode, approved=approved)


def _is_approved(call: Call, path: str, data: bytes) -> bool:
    return call.mind.trust.trusted(*approvals_of(path, data))


def _put_back(call: Call, present: Kept) -> None:
    """Reverts the change of a failed command, unless another process has changed the file since."""
    try:
        step = _step(call, present)
        if not step.changed:
            _apply(call, step)
    except MindError as error:
        remark = Hint(
            f"`{present.path}` was changed; ", Command("undo", str(entry_id())), " puts it back"
        )
        error.hint = join_texts(error.hint, remark) or ""
        raise


def _apply(call: Call, step: Step) -> None:
    copy, data = step.kept, step.kept.before or b""
    target = files.safe_path(call.mind.project.root, copy.path)
    # The command that is undone has retired the text, unless it was disapproved since.
    names = approvals_of(copy.path, data) if copy.approved else ()
    was_replaced = call.mind.trust.was_replaced
    with saving.approving(call, enabled=bool(names) and all(map(was_replaced, names))):
        if step.action is Action.REMOVE:
            files.remove(target, expect=step.current)
        elif step.action is Action.RESTORE:
            files.write_new(target, data, mode=copy.mode)
        elif step.action is Action.REPLACE:
            files.replace(target, data, expect=step.current)


def _read(call: Call, paths: Iterable[str]) -> dict[str, Record]:
    """Returns the memories in those of the files that exist, by id; no chunks of sources."""
    stored = (call.mind.store.read(path) for path in sorted(paths))
    records = (record for read in stored if not isinstance(read, Problem) for record in read)
    return {record.memory.id: record for record in records if record.parent is None}


def edit_all(call: Call, edits: Sequence[tuple[Record, dict[str, Any]]]) -> list[Record]:
    """Changes several memories as `edit` does: all of them, or none if one fails or at Ctrl-C."""
    for record, changes in edits if len(edits) > 1 else ():
        saving.check_edit(call, record, **changes)
    try:
        changed = [saving.write_fields(call, record, changes) for record, changes in edits]
    except BaseException as error:
        with ExitStack() as undone:
            for copy in call.mind.trash.kept(id_) if (id_ := entry_id()) else ():
                undone.callback(_put_back, call, copy)
                refresh.note_change(call, copy.path)
        if isinstance(error, MindError) and len(edits) > 1:
            error.hint = join_texts(error.hint, "nothing was changed") or ""
        error.add_note("nothing was changed")
        raise
    saving.report(call, *zip([record for record, _ in edits], changed, strict=True))
    return changed


def _refused(call: Call, entry: Entry, changed: Sequence[Step]) -> Conflict:
    """Returns the error for a change of files that have changed since."""
    paths = [step.kept.path for step in changed]
    later = [
        change.entry.id
        for change in changes(call, len(call.mind.trash.ids()))
        if change.entry.id > entry.id and not change.undone and set(paths) & set(change.files)
    ]
    advice = Hint("undo the later change first: ", Command("undo", later[0])) if later else ""
    forced = Hint(
        Command("undo", entry.id, force=True), " overwrites it; its present text goes to the trash"
    )
    labels = [f"`{path}`" for path in paths if not is_own(path)] or ["mind's record of the files"]
    more = f" (and {len(labels) - 1} more)" if len(labels) > 1 else ""
    return Conflict(
        f"{labels[0]}{more} has changed since `{name_of(entry.command)}`; nothing was undone",
        hint=f"{advice}; or {forced}" if advice else forced,
        details={"id": entry.id, "files": paths, "later": later},
    )


def _current(call: Call, path: str) -> str | None:
    """Returns the digest of a file as it is now; None if it is missing.

    Raises `StorageFailed` if it can't be read.
    """
    target = files.safe_path(call.mind.project.root, path)
    try:
        return files.digest(disk.read(target))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise failure("read", target, error) from error


def _digest(data: bytes | None) -> str | None:
    return None if data is None else files.digest(data)
