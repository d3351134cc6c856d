"""What is to become of one file of a client, and doing it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mimo.domain.clients import edits as editing
from mimo.domain.clients import json_file
from mimo.domain.clients.client import Client, Scope
from mimo.domain.clients.edits import Edit, Entry, Format, Needed
from mimo.errors import Invalid, MindError
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.clients.machine import Target
from mimo.store import client_files, files
from mimo.store.client_files import Found, Note


@frozen
class Step:
    """What becomes of one file, or what a person has to do."""

    file: Path
    action: str
    """`created`, `changed`, `removed`, `unchanged` or `yours`."""
    diff: str | None = None
    backup: Path | None = None
    told: str | None = None


@frozen
class Plan:
    """What is to become of one file."""

    found: Found
    data: bytes | None
    """Its new content; None where it goes."""
    note: Note | None
    told: str | None = None

    @property
    def action(self) -> str:
        """Returns what is done to the file."""
        if self.data == self.found.data:
            return "unchanged"
        if self.data is None:
            return "removed"
        return "created" if self.found.data is None else "changed"


def putting(mind: Mind, client: Client, target: Target, *, force: bool) -> Plan:
    """Returns the plan of putting in what a file has not yet. Raises as `install` does."""
    found = client_files.look(target.path, within=target.within)
    note = client_files.note_of(mind.home, target.path)
    data = read(found, target.format)
    try:
        text = editing.put_in(target.format, found.text, target.edits, force=force)
    except MindError as error:
        raise named(error, target.path, _by_hand(target.edits)) from None
    differing = [said for edit in target.edits if (said := editing.differing(data, edit))]
    told = (
        f"it runs `{differing[0]}`; `--force` puts ours there" if differing and not force else None
    )
    if text == found.text:
        joined = _joined(note, client) if note else None
        return Plan(found=found, data=found.data, note=joined, told=told)
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
        told=told,
    )


def _joined(note: Note, client: Client) -> Note:
    return replace(note, clients=tuple(dict.fromkeys((*note.clients, client.name))))


def _by_hand(edits: Sequence[Edit]) -> str:
    """Returns the entry as it could be put in by hand."""
    entry = next((edit for edit in edits if isinstance(edit, Entry)), None)
    if entry is None:
        return ""
    value = json.dumps(entry.value, ensure_ascii=False)
    return f"the entry would be {'.'.join(entry.path)} = {value}"


def taking(mind: Mind, client: Client, target: Target) -> Plan:
    """Returns the plan of taking out what is ours.

    A file that nobody changed since is put back as it was; of any other, our entries are cut out.
    """
    found = client_files.look(target.path, within=target.within)
    note = client_files.note_of(mind.home, target.path)
    others = [one for one in note.clients if one != client.name] if note else []
    if note and others:
        left = replace(note, clients=tuple(others))
        return Plan(
            found=found, data=found.data, note=left, told=f"{', '.join(others)} uses it too"
        )
    if found.data is None:
        return Plan(found=found, data=None, note=None)
    if note and note.after == files.digest(found.data) and note.before != "":
        before = None
        if note.before is not None:
            before = client_files.kept(mind.home, target.path, note.before)
        if before is not None or note.before is None:
            return Plan(found=found, data=before, note=None)
    return _cutting(found, target, note)


def _cutting(found: Found, target: Target, note: Note | None) -> Plan:
    """Returns what is left of a file that was changed since, or that nothing is noted of."""
    data = read(found, target.format)
    try:
        text = editing.take_out(
            target.format, found.text, target.edits, made=note.made if note else None
        )
    except MindError as error:
        raise named(error, target.path) from None
    entry = next((edit for edit in target.edits if isinstance(edit, Entry)), None)
    standing = editing.at(data, entry.path) if entry else None
    told = None
    if standing is not None and not editing.is_ours(standing):
        told = "the entry `mind` is somebody else's"
    needed = {edit.path[0]: edit.value for edit in target.edits if isinstance(edit, Needed)}
    if note and note.before is None and _holds_only(target.format, text, needed):
        return Plan(found=found, data=None, note=None, told=told)
    return Plan(found=found, data=found.encoded(text), note=None, told=told)


def _holds_only(format: Format, text: str, needed: Mapping[str, Any]) -> bool:
    """Returns whether nothing but what our hooks need is left, and no comment."""
    if format is not Format.JSON:
        return not text.strip()
    return not json_file.has_comments(text) and json_file.load(text) in ({}, needed)


def done(mind: Mind, plan: Plan, scope: Scope, *, dry_run: bool) -> Step:
    """Returns what was done to one file, or would be where the plan is only to be shown."""
    changes = plan.data != plan.found.data
    backup = None
    if not dry_run:
        if changes and plan.found.data is not None:
            backup = client_files.keep(mind.home, plan.found)
        if changes and plan.data is None:
            client_files.remove(plan.found)
        elif changes and plan.data is not None:
            client_files.change(plan.found, plan.data, private=scope is Scope.USER)
        client_files.write_note(mind.home, plan.found.path, plan.note)
    return Step(
        file=plan.found.path,
        action=plan.action,
        diff=_diff(plan) if changes and dry_run else None,
        backup=backup,
        told=plan.told,
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
    ended = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return "".join(ended)


def read(found: Found, format: Format) -> Any:
    """Returns the data in a file; its errors name it."""
    try:
        return editing.load(format, found.text)
    except Invalid as error:
        raise named(error, found.path) from None


def named(error: MindError, path: Path, hint: str = "") -> MindError:
    """Returns an error that says which file it is about."""
    return type(error)(
        f"`{path}`: {error.message}",
        hint="; ".join(part for part in (error.hint, hint) if part),
        details=error.details | {"path": str(path)},
    )
