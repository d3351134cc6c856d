"""`mind link`: adding a link between two memories, or removing links."""

from typing import Annotated

from mimo.call import Call
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import (
    AmbiguousId,
    Command,
    Conflict,
    Hint,
    Invalid,
    NotFound,
    SecretDetected,
    StorageFailed,
)
from mimo.features.decisions import relations
from mimo.frozen import frozen, replace
from mimo.memory.codec.file import header_links
from mimo.memory.model import Link, Record
from mimo.memory.relations import Relation
from mimo.operations import disclosure, lookup, saving, undoing
from mimo.operations.rows import File, SureId, Undo, Untrusted, untrusted
from mimo.rendering import Screen, dim, good, ident, strong
from mimo.rendering.results import render

_MUTUAL = (Relation.RELATES_TO, Relation.CONTRADICTS)
"""Relations that hold in both directions."""


@frozen
class ChangedLink:
    """A link that was added or removed."""

    source: Annotated[str, Out("Id of the memory that holds the link, the newer one")]
    source_title: str
    type: str
    given: Annotated[Omitted[str], Out("The words given for the type", "as")]
    target: str
    target_title: str
    trust: Untrusted
    file: File


@frozen
class Linked:
    """The result of adding a link, or of removing links."""

    links: tuple[ChangedLink, ...]
    removed: bool
    already: Annotated[Omitted[bool], Out("True if it existed, so nothing was written")]
    undo: Undo = None
    notice: Omitted[str] = None


@command(
    "mind_link",
    cli="link",
    effect=Effect.WRITE,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, Conflict, StorageFailed),
    examples=(
        "mind link k3v7mq p2wnxa",
        "mind link k3v7mq p2wnxa --type builds_on",
        "mind link k3v7mq p2wnxa --remove",
    ),
)
def link(
    call: Call,
    id: SureId,
    other: Annotated[str, Arg("Id of the memory that it links to", complete="id")],
    *,
    type: Annotated[
        str | None,
        Arg(
            "Relation: supersedes, refines, builds_on, implements, contradicts, relates_to or your"
            " own words (default relates_to)"
        ),
    ] = None,
    remove: Annotated[
        bool, Arg("Remove the links between both, or only those of the type")
    ] = False,
) -> Linked:
    """Link two memories, or remove their links

    The first memory builds on, refines or supersedes the second. The link is written into the file
    of the newer one, whose other bytes stay as they are, and is found from both.
    """
    start = lookup.one(call, id, surely=True)
    second = lookup.one(call, other, surely=True)
    if start.memory.id == second.memory.id:
        raise Invalid(
            f"`{id}` and `{other}` are the same memory",
            hint=Hint(Command("list"), " shows the others"),
        )
    if remove:
        return _unlinked(call, start, second, type)
    new = relations.link(call, second.memory.id, type or "")
    source, target = start, second
    if start.memory.created < second.memory.created:
        if new.given or new.type not in _MUTUAL:
            words = new.given or new.type
            raise Invalid(
                f"`{id}` is older than `{other}`, and a link leads from the newer memory",
                hint=Hint(Command("link", other, id, type=words), " states it of the newer one"),
                details={"field": "id"},
            )
        source, target, new = second, start, replace(new, to=start.memory.id)
    exists = any(
        saving.leads_to(call, source, old, target)
        and (old.type, old.given) == (new.type, new.given)
        for old in source.memory.links
    )
    if not exists:
        source = saving.edit(call, source, links=(*source.memory.links, new))
    return Linked(
        links=(_row(call, source, new, target),),
        removed=False,
        already=exists or None,
        undo=None if exists else undoing.entry_id(),
        notice=call.notice,
    )


def _unlinked(call: Call, start: Record, second: Record, type: str | None) -> Linked:
    """Removes the links between two memories, in both files. Raises `NotFound` and `Invalid`."""
    link_type = None if type is None else relations.link(call, second.memory.id, type).type
    rows: list[ChangedLink] = []
    changes: list[tuple[Record, tuple[Link, ...]]] = []
    for source, target in ((start, second), (second, start)):
        links = [
            old
            for old in source.memory.links
            if saving.leads_to(call, source, old, target) and link_type in (None, old.type)
        ]
        if any(old not in header_links(source.memory) for old in links):
            to, of = disclosure.names_of(call, [target.memory.id, source.memory.id])
            raise Invalid(
                f"the link to `{to}` is in the text of `{of}`",
                hint=Hint("remove it there: ", Command("edit", of)),
            )
        if links:
            new_links = tuple(old for old in source.memory.links if old not in links)
            changes.append((source, new_links))
        rows += [_row(call, source, old, target) for old in links]
    if not rows:
        of_type = f" of the type `{link_type}`" if link_type else ""
        source_name, target_name = disclosure.names_of(call, [start.memory.id, second.memory.id])
        raise NotFound(
            f"there is no link{of_type} between `{source_name}` and `{target_name}`",
            hint=Hint(Command("graph", source_name), " shows its links"),
        )
    for source, new_links in changes:
        saving.check_edit(call, source, links=new_links)
    for source, new_links in changes:
        saving.edit(call, source, links=new_links)
    return Linked(
        links=tuple(rows), removed=True, already=None, undo=undoing.entry_id(), notice=call.notice
    )


def _row(call: Call, source: Record, link: Link, target: Record) -> ChangedLink:
    return ChangedLink(
        source=source.memory.id,
        source_title=source.memory.heading,
        type=link.type,
        given=link.given,
        target=target.memory.id,
        target_title=target.memory.heading,
        trust=untrusted(call, source, target),
        file=source.place.path,
    )


@render.register
def _(result: Linked, screen: Screen) -> None:
    for row in result.links:
        remark = "  linked before" if result.already else "  removed" if result.removed else ""
        words = row.given or row.type
        screen.line(good("✓ "), strong(row.source_title), "  ", ident(row.source), remark)
        screen.line(dim(f"{words} → "), row.target_title, "  ", ident(row.target), indent=2)
    if result.removed and result.undo:
        screen.note("`mind undo` takes it back")
