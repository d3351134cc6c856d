"""Making, changing and removing memories: first trust, then the file, then the index."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mimo.config import FORMAT
from mimo.errors import Conflict, Invalid, MindError, StorageFailed
from mimo.guard import privacy
from mimo.index.embedding import FAILURES
from mimo.memory import ids
from mimo.memory.model import (
    SUPERSEDES,
    Kind,
    Link,
    Memory,
    Problem,
    Record,
    check_content,
    check_unit,
)
from mimo.mind import Mind
from mimo.operations import finding, refresh
from mimo.privacy import texts_of
from mimo.privacy.model import without
from mimo.privacy.secrets import secrets_in
from mimo.store import files, memories
from mimo.store.memories import check_whole
from mimo.store.walk import COMMITS

# Approving texts before they are written, so that an interruption leaves no text unapproved.


@contextmanager
def approving(mind: Mind, *, wanted: bool = True) -> Iterator[None]:
    """Approves each text that the block writes, just before its file gets it; if `wanted`.

    If a process is killed in between, the approval is of a text that never appeared, which is
    harmless. A text that can't be approved is written all the same, with a note to the user.
    """
    if not wanted:
        yield
        return

    def approve(contents: Mapping[Path, bytes | None]) -> None:
        try:
            mind.trust.approve(files.digest(data) for data in contents.values() if data is not None)
        except MindError as error:
            # The text matters more than its approval, which the user can repeat.
            message = f"it could not be approved and counts as untrusted: {error.message}"
            mind.note("trust", message)

    with files.watched(approve):
        yield


_TRIES = 5
_NEVER = datetime.min.replace(tzinfo=UTC)


def store(mind: Mind, draft: Memory, *, private: bool = False) -> Record:
    """Writes a new memory and returns it; it is found from then on.

    Its id and time, and who made it, are set here. Raises `Invalid` where the content or a field
    can't be stored.
    """
    check_content(draft.content)
    check_texts(mind, draft)
    if not private:
        check_shared_links(mind, draft.links)
    check_unit("importance", draft.importance)
    if draft.confidence is not None:
        check_unit("confidence", draft.confidence)
    memory = replace(
        draft,
        content=draft.content.strip("\r\n"),
        created=mind.now(),
        tags=clean_tags(draft.tags),
        by=mind.author,
    )
    record = _create(mind, memory, private=private)
    refresh.note_change(mind, record.place.path)
    return record


def draft(kind: Kind, content: str, **fields: Any) -> Memory:
    """Returns a memory that has neither an id nor a time before it is stored."""
    return Memory(id="", type=kind, content=content, created=_NEVER, **fields)


def _create(mind: Mind, memory: Memory, *, private: bool) -> Record:
    """Writes the file under a fresh id; two processes may draw the same one."""
    check_format(mind)
    words = memory.topic or memory.title or memory.content
    # A person may allow a secret; the name of a file must not tell it all the same.
    words = without(words, secrets_in(words))
    for _ in range(_TRIES):
        name = ids.new_id(memory.type, words, memory.created, ids.suffix(mind.randomness(4)))
        try:
            with approving(mind):
                return mind.store.create(replace(memory, id=name), private=private)
        except Conflict:
            continue
    raise Conflict("no free id was found", hint="try again")


def edit(mind: Mind, record: Record, **changes: Any) -> Record:
    """Changes the named fields in the memory's file and returns the memory as it is now.

    Everything else in the file stays byte for byte. Raises `Conflict` where the file changed
    since it was read.
    """
    check_changeable(record)
    if "content" in changes:
        check_content(changes["content"])
    if "importance" in changes:
        check_unit("importance", changes["importance"])
    if "tags" in changes:
        changes["tags"] = clean_tags(changes["tags"])
    if "links" in changes and not record.place.private:
        known = record.memory.links
        check_shared_links(mind, [link for link in changes["links"] if link not in known])
    check_secrets(mind, changes, before="\n".join(texts_of(record.memory)))
    check_format(mind)
    # Another author's text does not become trusted by a change of its importance.
    with approving(mind, wanted=mind.trust.trusted(record.place.digest)):
        changed = mind.store.update(record, replace(record.memory, **changes))
    refresh.note_change(mind, changed.place.path)
    return changed


def rewrite(mind: Mind, record: Record, text: str) -> Record:
    """Puts `text` in the place of the memory's whole file and returns the memory as it is now.

    Raises `Invalid` where the text would not be readable as that memory; the file is then as it
    was. Only a person who changes it approves what somebody else wrote, or says who wrote it.
    """
    check_changeable(record)
    check_secrets(mind, {"file_text": text}, before=file_text(mind, record))
    check_format(mind)
    if mind.author is not None:
        _check_origin(record, text)
    data, before = text.encode(), record.place.digest
    by_a_person = mind.author is None and files.digest(data) != before
    with approving(mind, wanted=by_a_person or mind.trust.trusted(before)):
        changed = mind.store.rewrite(record, data)
    refresh.note_change(mind, changed.place.path)
    return changed


def _check_origin(record: Record, text: str) -> None:
    """Raises `Invalid` where a text says another author or time than the memory's file."""
    from mimo.memory import codec

    said = codec.parse(text.encode(), path=record.place.path, modified=record.memory.created)
    if isinstance(said, Problem):
        return
    if said.memory.by != record.memory.by or said.memory.created != record.memory.created:
        raise Invalid(
            f"`by` and `created` of `{record.memory.id}` are not an agent's to change",
            hint="leave both lines of the header as they are",
        )


def file_text(mind: Mind, record: Record) -> str:
    """Returns the whole text of the memory's file, header included, to be edited.

    Raises `Invalid` for a part of an ingested file, and of what mind never changes.
    """
    check_changeable(record)
    check_whole(record)
    return mind.store.raw(record).decode()


def check_changeable(record: Record) -> None:
    """Raises `Invalid` where a memory stands in what people wrote, which mind never changes."""
    path, line = record.place.path, record.place.line
    if not memories.is_read_only(path):
        return
    if path == COMMITS:
        raise Invalid(
            f"`{record.memory.id}` is from the message of {record.memory.source}",
            hint="what is committed stays; say what holds now with `mind add`",
            details={"id": record.memory.id},
        )
    raise Invalid(
        f"`{record.memory.id}` is line {line} of `{path}`, which mind never changes",
        hint=f"edit {path}:{line}; the next command sees it",
        details={"id": record.memory.id, "file": path, "line": line},
    )


def is_embedded(mind: Mind, record: Record) -> bool:
    """Returns whether the memory can be found by meaning: something of its text is known."""
    try:
        return bool(mind.embedder and mind.embedder.encode(record.memory.text))
    except FAILURES:
        return False


def remove(mind: Mind, wanted: str) -> Record:
    """Removes the memory's file and returns what it held; git keeps the past.

    What had superseded it then supersedes what it had superseded, so that no chain breaks.
    """
    record = finding.one(mind, wanted, surely=True)
    check_changeable(record)
    newer = successors(mind, [record])
    check_format(mind)
    if record.place.elsewhere:
        raise Invalid(
            f"`{record.place.path}` is a document of the project, not mind's to remove",
            hint="remove it with git, or take it out of `mind config include`",
        )
    is_part = record.parent is not None
    with approving(mind, wanted=is_part and mind.trust.trusted(record.place.digest)):
        mind.store.delete(record)
    refresh.note_change(mind, record.place.path)
    relink(mind, newer, [record])
    return record


def successors(mind: Mind, gone: Sequence[Record]) -> list[Record]:
    """Returns the memories that supersede some that are about to go, each once."""
    names = dict.fromkeys(id for one in gone for id in mind.index.successors(one.memory.id))
    return [found for name in names if (found := mind.index.get(name))]


def relink(mind: Mind, newer: Sequence[Record], gone: Sequence[Record]) -> None:
    """Lets what superseded memories that are gone supersede what these had superseded."""
    removed = {one.memory.id for one in gone}
    for successor in newer:
        if successor.place.owned and successor.memory.id not in removed:
            links = successor.memory.links
            for one in gone:
                # What an unapproved memory claimed must not become the word of an approved one.
                older = one.memory.links if mind.trust.trusted(one.place.digest) else ()
                if not successor.place.private:
                    older = tuple(link for link in older if not is_private(mind, link.to))
                links = _relinked(successor.memory.id, links, one.memory.id, older)
            edit(mind, successor, links=links)


def _relinked(
    newer: str, known: tuple[Link, ...], gone: str, links_of_gone: tuple[Link, ...]
) -> tuple[Link, ...]:
    """Returns the links of `newer`, past `gone` to what that had superseded."""
    older = [link for link in links_of_gone if link.type == SUPERSEDES and link.to != newer]
    links: list[Link] = []
    for link in known:
        past = link.type == SUPERSEDES and link.to == gone
        links.extend(older if past else [link])
    return tuple(dict.fromkeys(links))


def clean_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the tags without blanks around them, `#` before them, and doubles.

    Raises `Invalid` where one of them can't be a tag.
    """
    cleaned = [tag.strip().lstrip("#") for tag in tags]
    for tag in cleaned:
        if not tag or any(not c.isprintable() or c in ",[]{}" for c in tag):
            raise Invalid(f"`{tag}` is not a tag", hint="a tag is a word or two, without commas")
    return tuple(dict.fromkeys(cleaned))


def check_shared_links(mind: Mind, links: Iterable[Link]) -> None:
    """Raises `Invalid` for a link to a private memory: git shares the file that would name it."""
    if names := [link.to for link in links if is_private(mind, link.to)]:
        raise Invalid(
            f"`{names[0]}` is private, and a memory that git shares must not name it",
            hint="make the new memory private (`--private`), or leave the link out",
            details={"field": "links", "ids": names},
        )


def is_private(mind: Mind, id: str) -> bool:
    """Returns whether a memory with this id exists and is private."""
    record = mind.index.get(id)
    return record is not None and record.place.private


def check_secrets(
    mind: Mind, fields: Mapping[str, Any], *, before: str = "", file: str | None = None
) -> None:
    """Raises `SecretDetected` where something to be stored holds a secret that nobody allowed.

    What `before` holds already may stay. `file` is named where the text is a file's.
    """
    if not mind.allows_secrets:
        privacy.check_secrets(fields, by_person=mind.author is None, before=before, file=file)


def check_texts(mind: Mind, memory: Memory) -> None:
    """Raises `SecretDetected` where a new memory holds a secret, naming the field."""
    told = {
        "content": memory.content,
        "title": memory.title,
        "topic": memory.topic,
        "tags": memory.tags,
        "category": memory.category,
        "source": memory.source,
        "links": [link.given for link in memory.links],
        "metadata": memory.extra,
    }
    sections = {name.value.lower(): text for name, text in memory.sections.items()}
    check_secrets(mind, told | sections)


def check_format(mind: Mind) -> None:
    """Raises `StorageFailed` where a later mind made the store: it may keep files otherwise."""
    if mind.config.format > FORMAT:
        raise StorageFailed(
            f"this memory has format {mind.config.format}; this mind writes format {FORMAT}",
            hint="update mind; nothing was changed",
        )
