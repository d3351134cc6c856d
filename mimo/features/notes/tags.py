"""`mind tags` and `mind tags rename`: the tags of the memory."""

from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import Command, Conflict, Hint, Invalid, NotFound, StorageFailed
from mimo.frozen import frozen
from mimo.index import survey
from mimo.memory.model import Filter, tag_key
from mimo.operations import finding, refresh, saving, undoing
from mimo.operations.rows import Limit, OfUser, Undo
from mimo.project.memories import is_read_only
from mimo.rendering import Screen, good, titled
from mimo.rendering.results import count, render


@frozen
class TagRow:
    """A tag, in lower case, and the number of memories that have it."""

    tag: str
    memories: int


@frozen
class TagRows:
    """The tags of the most memories, the most frequent first."""

    tags: tuple[TagRow, ...]


@frozen
class Renamed:
    """A tag that was renamed in all memories."""

    tag: Annotated[str, Out("The new name")]
    ids: Annotated[tuple[str, ...], Out("The changed memories")]
    undo: Undo = None
    notice: Omitted[str] = None


@command(
    "mind_tags",
    cli="tags",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    of_user=True,
    errors=(Invalid,),
    examples=("mind tags", "mind tags rename auth security"),
)
def tags(call: Call, *, limit: Limit = 50, everywhere: OfUser = False) -> TagRows:
    """List the tags, those of the most memories first"""
    counts = refresh.up_to_date(call).ask(lambda sql: survey.tags(sql, limit))
    return TagRows(tags=tuple(TagRow(tag=tag, memories=number) for tag, number in counts))


@command(
    "mind_tags_rename",
    cli="tags rename",
    effect=Effect.WRITE,
    toolset="extra",
    surfaces=Surface.CLI,
    of_user=True,
    errors=(Invalid, NotFound, Conflict, StorageFailed),
    examples=("mind tags rename auth security", "mind tags rename auth/jwt auth/tokens"),
)
def rename(
    call: Call,
    old: Annotated[str, Arg("The tag", complete="tag")],
    new: Annotated[str, Arg("Its new name, which other memories may have", complete="tag")],
    *,
    everywhere: OfUser = False,
) -> Renamed:
    """Rename a tag in all memories that have it

    Tags below it, such as `auth/jwt` below `auth`, are renamed with it. One undo reverts all.
    Chunks of ingested files and lines of `MEMORY.md` keep their tags.
    """
    (old_tag,), (new_tag,) = saving.clean_tags((old,)), saving.clean_tags((new,))
    refresh.up_to_date(call)
    options = finding.Options(filter=Filter(tags=frozenset((old_tag,))))
    records = finding.listing(call, options).records
    if not records:
        hint = Hint(Command("tags"), " lists them")
        raise NotFound(f"no memory has the tag `{old_tag}`", hint=hint)
    editable = [each for each in records if not (each.parent or is_read_only(each.place.path))]
    undoing.edit_all(
        call, [(each, {"tags": _renamed(each.memory.tags, old_tag, new_tag)}) for each in editable]
    )
    notice = None
    if skipped_count := len(records) - len(editable):
        notice = f"{skipped_count:,} more keep it, in chunks or in files that mind never changes"
    ids = tuple(record.memory.id for record in editable)
    return Renamed(tag=new_tag, ids=ids, undo=undoing.entry_id(), notice=notice)


def _renamed(tags: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    """Returns tags with one renamed, and those below it."""
    depth = old.count("/") + 1
    renamed: dict[str, str] = {}
    for tag in tags:
        parts = tag.split("/")
        is_below = tag_key("/".join(parts[:depth])) == tag_key(old)
        name = "/".join((new, *parts[depth:])) if is_below else tag
        renamed.setdefault(tag_key(name), name)
    return tuple(renamed.values())


@render.register
def _(result: TagRows, screen: Screen) -> None:
    if not result.tags:
        screen.line("no tags")
    screen.pairs([(f"#{row.tag}", f"{row.memories:,}") for row in result.tags])


@render.register
def _(result: Renamed, screen: Screen) -> None:
    many = count(len(result.ids), "memory", "memories")
    screen.line(good("✓ "), f"{many} tagged ", titled(f"#{result.tag}"))
    if result.undo:
        screen.note("`mind undo` reverts all of it")
