"""Adding and changing memories: first the approval, then the file, then the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from mimo.call import Call
from mimo.data import files, locks
from mimo.data.disk import STORE
from mimo.errors import Command, Conflict, Hint, Invalid, MindError, Option, join_texts
from mimo.frozen import frozen, replace
from mimo.guard import privacy
from mimo.index.embedding import FAILURES
from mimo.index.schema import to_number, to_time
from mimo.memory import duplicates, ids, outcomes
from mimo.memory.approval import claim
from mimo.memory.model import (
    SUPERSEDES,
    Kind,
    Link,
    Memory,
    Problem,
    Record,
    Section,
    check_content,
    check_unit,
)
from mimo.operations import disclosure, refresh
from mimo.privacy.model import without
from mimo.privacy.secrets import secrets_in
from mimo.project import memories
from mimo.project.location import locate
from mimo.project.memories import check_whole
from mimo.project.walk import COMMITS

_TRIES = 5
_AHEAD = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)
_IN_WORKTREE = (
    "`git worktree remove` deletes this worktree's private memories without asking; a memory that "
    "is committed, or for all projects ("
)


@contextmanager
def approving(call: Call, *, enabled: bool = True) -> Iterator[None]:
    """Approves each text that the block writes, just before it is written, if `enabled`.

    The approval comes first so that an interruption leaves no text unapproved. A text that can't be
    approved is still written, with a notice to the user.
    """
    if not enabled:
        yield
        return

    from mimo.project.memories import approvals_of

    root = call.mind.project.root

    def approve(contents: Mapping[Path, bytes | None]) -> None:
        names = {
            path.relative_to(root).as_posix(): data
            for path, data in contents.items()
            if data is not None and path.is_relative_to(root)
        }
        paths = {each: name for name, data in names.items() for each in approvals_of(name, data)}
        try:
            # For all projects, only the user's own texts get here, and these never fade.
            call.mind.trust.approve(
                paths, reviewed=paths if call.mind.is_users else (), paths=paths
            )
        except MindError as error:
            # The text matters more than its approval, which the user can add later.
            message = f"it could not be approved and counts as untrusted: {error.message}"
            call.note("trust", message)

    with files.watched(approve):
        yield


def store(
    call: Call,
    draft: Memory,
    *,
    private: bool = False,
    path: str | None = None,
    instead: str | None = None,
) -> Record:
    """Writes a new memory, adds it to the index and returns it.

    Takes a memory of `draft`, whose texts have no secrets: `invoke` refuses those in arguments.
    Sets its id, time and author; `path` is its file if another name is wanted than the id, and
    `instead` the digest of a file there, which is replaced. A notice names the risk of a private
    memory in a linked worktree. Raises `Invalid` for a shared link to a private memory, and
    `Conflict` if the file exists or has changed.
    """
    memory = replace(draft, created=_time(call), by=call.author)
    if not private:
        from mimo.memory import codec

        links = dict.fromkeys((*memory.links, *codec.links_in(memory)))
        check_shared_links(call, links, way="make the new memory private")
    record = _create(call, memory, private=private, path=path, instead=instead)
    report(call, (None, record))
    refresh.note_change(call, record.place.path)
    if _proposes(call):
        call.note("trust", "agents get it once the user approves it in a review")
    if private and call.author is None:
        place = locate(call.mind.project.root)
        if place.git_dir != place.common:
            call.note("worktree", Hint(_IN_WORKTREE, Command("add", user=True), "), is kept"))
    return record


def _time(call: Call) -> datetime:
    """Returns the time of a new memory: now, or just after the newest memory.

    The clock may have been set back, or another author's may be ahead. A newest memory that is more
    than a day ahead is ignored.
    """
    now = call.mind.now()
    with suppress(MindError, OverflowError):
        latest = call.index.latest(to_number(now + _AHEAD))
        if latest is not None and latest > to_number(now):
            return to_time(latest + 1)
    return now


@frozen
class Stored:
    """A new memory, or the memory of which it is a duplicate."""

    record: Record
    already: bool = False
    """True if it was stored before, and nothing was written."""
    notice: str | None = None
    """Names the duplicate or near-duplicate."""


def store_once(
    call: Call,
    draft: Memory,
    write: Callable[[], Record] | None = None,
    *,
    private: bool = False,
    again: bool = False,
) -> Stored:
    """Stores a memory unless it duplicates a current one; reports a near-duplicate.

    `again` stores a duplicate, too, and `write` replaces `store`. These are not duplicates: a
    statement that only superseded, unapproved or, unless this one is private, private memories
    make, and one in a document, which its author may change. An index that fails does not prevent
    storing. Takes a draft as `store` does, and raises as `store` does.
    """
    write = write or (lambda: store(call, draft, private=private))
    if again or draft.type is Kind.CHECKPOINT:  # Two with the same text are two points in time.
        return Stored(record=write())
    from mimo.memory import codec

    normal, alike = codec.normal(draft), None
    with in_turn(call):
        # Another process adds its memory to the index before it releases the lock, unless a third
        # one kept the index busy.
        with suppress(MindError):
            refresh.refresh_roughly(call)
        existing = _duplicate(call, normal, private=private)
        if existing and call.mind.store.digest(existing.place.path) != existing.place.digest:
            refresh.refresh(call)
            existing = _duplicate(call, normal, private=private)
        if existing:
            return _already(existing, normal, private=private)
        with suppress(MindError, UnicodeEncodeError):
            alike = call.index.much_like(normal)
        record = write()
    if alike is None or not call.origin.guard.permits("mind_list"):
        return Stored(record=record)
    if any(leads_to(call, record, link, alike) for link in record.memory.links):
        return Stored(record=record)
    name = disclosure.names_of(call, [alike.memory.id])[0]
    notice = f"much like {name}; if they state the same, remove one of them"
    return Stored(record=record, notice=notice)


@contextmanager
def in_turn(call: Call) -> Iterator[None]:
    """Runs a block that reads existing memories and then adds one, one process after the other.

    It waits for a process that hangs, but not forever, and reads what earlier ones have added. The
    lock is not re-entrant.
    """
    with locks.courtesy(files.local(call.mind.project.root, "adding")):
        call.release()
        yield


def _duplicate(call: Call, draft: Memory, *, private: bool) -> Record | None:
    """Returns the memory that states all of a draft, if the index knows one.

    To a caller that may not read memories, it would confirm a guess.
    """
    if not call.origin.guard.permits("mind_list"):
        return None
    with suppress(MindError, UnicodeEncodeError):
        for record in call.index.saying(draft):
            is_owned = record.place.owned and record.parent is None
            is_visible = private or not record.place.private
            is_approved = _proposes(call) or call.mind.trust.trusted(record.place.approval)
            if is_owned and is_visible and is_approved and duplicates.covers(record.memory, draft):
                return record
    return None


def _already(existing: Record, draft: Memory, *, private: bool) -> Stored:
    memory = existing.memory
    stated = f"{memory.id} states this already, so nothing was written ("
    messages: list[str] = [Hint(stated, Option(again=True), " stores it)")]
    if warning := outcomes.warning(memory):
        messages.append(warning)
    if private and not existing.place.private:
        messages.append("it is not private")
    if names := duplicates.left_out(memory, draft):
        messages.append(
            Hint(
                f"its {' and '.join(names)} stayed as they were; ", Command("edit"), " changes them"
            )
        )
    return Stored(record=existing, already=True, notice=join_texts(*messages))


def draft(
    kind: Kind,
    content: str,
    *,
    importance: float = 0.5,
    confidence: float | None = None,
    tags: tuple[str, ...] = (),
    reasoning: str | None = None,
    **fields: Any,
) -> Memory:
    """Returns a memory that gets its id and its time when it is stored.

    Raises `Invalid` for a content, a number or a tag that can't be stored.
    """
    if reasoning and reasoning.strip():
        fields["sections"] = {Section.REASONING: reasoning, **fields.get("sections", {})}
    return Memory(
        id="",
        type=kind,
        content=check_content(content).strip("\r\n"),
        created=_NEVER,
        importance=check_unit("importance", importance),
        confidence=None if confidence is None else check_unit("confidence", confidence),
        tags=clean_tags(tags),
        **fields,
    )


def _create(
    call: Call, memory: Memory, *, private: bool, path: str | None, instead: str | None
) -> Record:
    """Writes the file under a new id; retries if another process has taken the id."""
    words = memory.topic or memory.title or memory.content
    # Permitted in the text, but not in the name of its file.
    if private or call.caller.allows_secrets or "secret" in call.notices:
        words = without(words, secrets_in(words))
    is_short = path is None and not private and call.mind.config["files.names"] == "short"
    for _ in range(_TRIES):
        letters = ids.suffix(call.mind.randomness(4))
        name = ids.new_id(memory.type, words, memory.created, letters)
        file = f"{STORE}/{memory.type.folder}/{ids.short_name(name)}" if is_short else path
        try:
            with approving(call, enabled=not _proposes(call)):
                new = replace(memory, id=name)
                return call.mind.store.create(new, private=private, path=file, instead=instead)
        except Conflict:
            if path is not None:
                raise
    raise Conflict("no free id was found", hint="try again")


def _proposes(call: Call) -> bool:
    """Returns whether the user must approve what is stored: an agent's note for all projects."""
    return call.mind.is_users and call.agent is not None


def edit(call: Call, record: Record, **changes: Any) -> Record:
    """Changes the given fields in the memory's file and returns the changed memory.

    The rest of the file is unchanged, byte for byte. Takes texts without new secrets, and tags of
    `clean_tags`. Raises `Invalid` for a field that can't be stored, and `Conflict` if the file
    changed since it was read.
    """
    changed = write_fields(call, record, changes)
    report(call, (record, changed))
    return changed


def write_fields(call: Call, record: Record, changes: dict[str, Any]) -> Record:
    """Changes a memory's file as `edit` does, and logs no event."""
    new = _edited(call, record, changes)
    # A changed field must not approve the text of another author.
    with approving(call, enabled=call.mind.trust.trusted(record.place.approval)):
        changed = call.mind.store.update(record, new)
    refresh.note_change(call, changed.place.path)
    return changed


def check_edit(call: Call, record: Record, **changes: Any) -> None:
    """Raises each error that `edit` would raise, before several files are changed."""
    with files.naming(record.place.path):
        call.mind.store.changed(record, _edited(call, record, changes))


def _edited(call: Call, record: Record, changes: dict[str, Any]) -> Memory:
    """Returns a memory with changed fields. Raises `Invalid`."""
    check_changeable(record)
    if "content" in changes:
        check_content(changes["content"])
    if "importance" in changes:
        check_unit("importance", changes["importance"])
    if "status" in changes:
        changes["status"] = " ".join(changes["status"].split()) or None
    new = replace(record.memory, **changes)
    if not changes.keys().isdisjoint(("content", "sections", "links")):
        from mimo.memory import codec

        links = (*new.links, *codec.links_in(new))
        _check_added_links(call, record, links)
    return new


def rewrite(call: Call, record: Record, text: str, *, checked: bool = True) -> Record:
    """Replaces the memory's whole file by `text` and returns the changed memory.

    Raises `Invalid` if the text can't be read as that memory, or if it is `checked` and has a fault
    that the file does not have; the file is then unchanged. A document of the project is not
    checked: its keys may be those of other programs. Only a person can approve another author's
    text by changing it, or change the author.
    """
    check_changeable(record)
    check_secrets(call, {"file_text": text}, previous=(old_text := file_text(call, record)))
    from mimo.memory import codec

    data, old_digest = text.encode(), record.place.digest
    # Without a time of the file, a header without `created` differs from one that has it.
    read = partial(codec.parse, path=record.place.path, modified=_NEVER)
    new, old = read(data), read(old_text.encode(), lenient=True)
    if not isinstance(new, Problem) and not isinstance(old, Problem):
        authorship = [(parsed.memory.by, parsed.memory.created) for parsed in (new, old)]
        if call.agent is not None and authorship[0] != authorship[1]:
            raise Invalid(
                f"an agent can't change `by` and `created` of `{ids.handle_of(record.memory.id)}`",
                hint="leave both lines of the header as they are",
            )
        _check_added_links(call, record, new.memory.links)
        if checked and not record.place.elsewhere:
            check_file(call, data, record.place.path, previous=old_text.encode())
    by_a_person = call.agent is None and files.digest(data) != old_digest
    was_trusted = checked and call.mind.trust.trusted(record.place.approval)
    # A text of an earlier revision may be another author's, which no agent approves.
    with approving(call, enabled=by_a_person or was_trusted):
        changed = call.mind.store.rewrite(record, data)
    report(call, (record, changed))
    refresh.note_change(call, changed.place.path)
    return changed


_MEANINGS = {
    "type": f"must be one of {', '.join(Kind)}",
    "importance": "must be a number from 0 to 1",
    "confidence": "must be a number from 0 to 1",
    "outcome": "must be SUCCESS, FAILED, PARTIAL or PENDING",
    "protected": "must be true or false",
    "created": "must be a date",
    "links": "must be a list of `{to: ID, type: builds_on}`",
    "id": "must be letters, digits, `_` and `-`",
}
"""The valid values of keys of front matter; those of the other keys are texts."""


def check_file(call: Call, data: bytes, path: str, *, previous: bytes | None = None) -> None:
    """Raises `Invalid` for a fault of a readable file, unless it is in `previous` as well.

    Faults are a value of front matter that has no meaning, a type that is not that of the folder, a
    missing one if the folder has none, a link to a missing memory, and a text that is too long, or
    empty without a title.
    """
    faults = _faults(call, data, path)
    earlier = _faults(call, previous, path) if faults and previous else {}
    for (field, value), reason in faults.items():
        if (field, value) not in earlier:
            raise Invalid(reason, hint="nothing was written", details={"field": field})


def _faults(call: Call, data: bytes, path: str) -> dict[tuple[str, str], str]:
    """Returns the faults of a file in words, each by its field and what is wrong there."""
    from mimo.memory.codec.file import KEYS, parse, read_document, understand

    header = read_document(data, lenient=True)[1]
    fields, extra = understand(header)
    if str(extra.get("outcome")).strip().lower() == "pending":
        del extra["outcome"]
    faults = {
        (key, repr(extra[key])): f"`{key}` {_MEANINGS.get(key, 'must be a text')}"
        for key in KEYS
        if key in extra
    }
    kind, folder = fields.get("type"), ids.folder_kind(path)
    if header.get("type") is None and folder is None:
        faults["type", ""] = "`type` is missing"
    elif kind and folder and kind is not folder:
        faults["type", kind] = f"`type` is {kind}, but the folder is that of the type {folder}"
    for link in fields.get("links", ()):
        if refresh.up_to_date(call).named(link.to, near=path) is None:
            faults["links", link.to] = f"`links` names `{link.to}`, which is not a memory"
    parsed = parse(data, path=path, modified=_NEVER)
    if not isinstance(parsed, Problem):
        try:
            # A title suffices: programs create files that they fill later.
            check_content(parsed.memory.content or parsed.memory.title or "")
        except Invalid as error:
            faults["content", ""] = error.message
    return faults


def file_text(call: Call, record: Record) -> str:
    """Returns the whole text of the memory's file, header included, to be edited.

    Raises `Invalid` for a chunk of an ingested file and for a file that mind never changes.
    """
    check_changeable(record)
    check_whole(record)
    return call.mind.store.raw(record).decode()


def check_changeable(record: Record) -> None:
    """Raises `Invalid` for a memory in a file that mind never changes."""
    path, line = record.place.path, record.place.line
    if not memories.is_read_only(path):
        return
    name = ids.handle_of(record.memory.id)  # An id is a text of its author.
    if path == COMMITS:
        raise Invalid(
            f"`{name}` is from the message of {record.memory.source}",
            hint=Hint("commits can't be changed; add a new memory with ", Command("add")),
            details={"id": name},
        )
    raise Invalid(
        f"`{name}` is line {line} of `{path}`, which mind never changes",
        hint=f"edit {path}:{line}; the next command sees it",
        details={"id": name, "file": path, "line": line},
    )


def is_embedded(call: Call, record: Record) -> bool:
    """Returns whether the memory can be found by meaning: its text has a token of the model."""
    try:
        return bool(call.mind.embedder and call.mind.embedder.encode(record.memory.text))
    except FAILURES:
        return False


def move(call: Call, moves: Sequence[tuple[Record, str]]) -> list[Record]:
    """Gives the files of memories other paths, and the memories the types of their folders, if any.

    If one file can't be moved, none is. The memories keep their ids, also if only the old paths
    gave them. Raises `Conflict` if a new path is in use or a file changed since it was read, and
    `Invalid` if a shared file would name a private memory.
    """
    from mimo.index import survey

    kinds = {path: ids.folder_kind(path) or record.memory.type for record, path in moves}
    for record, path in moves:
        check_changeable(record)
        check_whole(record)
        with files.naming(record.place.path):
            if not files.is_private(path):
                check_shared_links(call, record.memory.links, way="leave the memory private")
            call.mind.store.moved(record, path, kinds[path])
    hidden = [r.memory.id for r, path in moves if files.is_private(path) and not r.place.private]
    for source, target in refresh.up_to_date(call).ask(survey.shared_links, hidden):
        name = disclosure.names_of(call, [source])[0]
        raise Invalid(
            f"`{name}` is shared by git and links to `{target}`, which must not be private then",
            hint="remove that link first, or make both memories private",
        )
    moved = []
    for record, path in moves:
        with approving(call, enabled=call.mind.trust.trusted(record.place.approval)):
            moved.append(call.mind.store.move(record, path, kinds[path]))
        report(call, (record, moved[-1]))
        refresh.note_change(call, record.place.path, path)
    return moved


def report(call: Call, *changes: tuple[Record | None, Record | None]) -> None:
    """Logs changes of memories as events `mimo.memory.*`, all with one write.

    A change is a memory before and after; None if it did not exist or was removed. The events have
    ids and types, never a text. Also approves that a new text supersedes others, if it is approved,
    and ends these approvals for links that were removed.
    """
    from mimo.project.events import Event

    events: list[tuple[str, dict[str, str]]] = []
    for old, new in changes:
        record = new or old
        if record is None or (old and new and old.place == new.place):
            continue
        id = record.memory.id
        verb = "created" if old is None else "updated" if new else "deleted"
        events.append((f"mimo.memory.{verb}", {"id": id, "type": record.memory.type.value}))
        earlier = [(link.to, link.type) for link in old.memory.links] if old else ()
        for link in record.memory.links:
            if (link.to, link.type) in earlier or not ids.is_id(link.to):
                continue
            if link.type == SUPERSEDES:
                events.append(("mimo.memory.superseded", {"id": link.to, "by": id}))
            else:
                events.append(("mimo.memory.linked", {"id": id, "to": link.to, "type": link.type}))
    logged, now = [], call.mind.now()
    for name, data in events:
        logged.append(Event(name=name, time=now, measurements={"count": 1}, metadata=data))
    call.mind.events.write(*logged)
    _note_claims(call, changes)


def _note_claims(call: Call, changes: Iterable[tuple[Record | None, Record | None]]) -> None:
    """Approves the claims of new texts that are approved; ends the approvals of removed ones."""
    added, dropped = set[str](), set[str]()
    for old, new in changes:
        old_claims, after = claims_of(old) if old else set(), claims_of(new) if new else set()
        dropped |= old_claims - after
        if new and after - old_claims and call.mind.trust.trusted(new.place.approval):
            added |= after - old_claims
    with suppress(MindError, OSError):
        if added:
            call.mind.trust.approve(added)
    try:
        # Otherwise a pull could put the link back into an unapproved text.
        if ended := list(filter(call.mind.trust.approved, dropped - added)):
            call.mind.trust.revoke(ended)
    except (MindError, OSError) as error:
        call.note("trust", f"the approval of a removed link could not be ended: {error}")


def claims_of(record: Record) -> set[str]:
    """Returns the digests that approve that a memory supersedes others."""
    memory = record.memory
    return {claim(memory.id, link.to) for link in memory.links if link.type == SUPERSEDES}


def clean_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the tags without surrounding spaces, leading `#` and duplicates.

    Raises `Invalid` for a text that can't be a tag.
    """
    cleaned = [tag.strip().lstrip("#") for tag in tags]
    for tag in cleaned:
        if not tag or any(not c.isprintable() or c in ",[]{}" for c in tag):
            raise Invalid(f"`{tag}` is not a tag", hint="a tag is a word or two, without commas")
    return tuple(dict.fromkeys(cleaned))


def leads_to(call: Call, source: Record, link: Link, target: Record) -> bool:
    """Returns whether a link of a memory leads to another one, by its id or a name."""
    if link.to == target.memory.id:
        return True
    record = call.index.named(link.to, near=source.place.path)
    return record is not None and record.memory.id == target.memory.id


def check_shared_links(call: Call, links: Iterable[Link], *, way: str) -> None:
    """Raises `Invalid` for a link to a private memory, which a shared file must not name.

    `way` is the hint on how to link the two.
    """
    if names := [link.to for link in links if is_private(call, link.to)]:
        raise Invalid(
            f"`{names[0]}` is private, and a memory shared by git must not name it",
            hint=f"{way}, or omit the link",
            details={"field": "links", "ids": names},
        )


def _check_added_links(call: Call, record: Record, links: Iterable[Link]) -> None:
    """Raises `Invalid` if new links of a shared file name a private memory.

    Links that the file already has are ignored.
    """
    if not record.place.private:
        earlier = set(record.memory.links)
        added = [link for link in dict.fromkeys(links) if link not in earlier]
        check_shared_links(call, added, way="link the private memory to this one instead")


def is_private(call: Call, id: str) -> bool:
    """Returns whether a memory with this id exists and is private, also if the index lacks it."""
    if not ids.is_id(id):
        return False
    with suppress(MindError):
        if record := call.index.get(id):
            return record.place.private
    return any(call.mind.store.stamp(f"{files.PRIVATE}{kind.folder}/{id}.md") for kind in Kind)


def check_secrets(
    call: Call,
    fields: Mapping[str, Any],
    *,
    previous: str = "",
    file: str | None = None,
    private: bool = False,
) -> None:
    """Raises `SecretDetected` if a field holds a secret, unless the user allows secrets.

    Warns of a secret in prose, unless the text is private. Secrets that are already in `previous`
    are ignored. `file` is the file of the text, if it has one.
    """
    if not call.caller.allows_secrets:
        by_person = call.agent is None
        secret = privacy.check_secrets(fields, by_person=by_person, previous=previous, file=file)
        if secret and not private:
            call.note("secret", privacy.warning(secret))
