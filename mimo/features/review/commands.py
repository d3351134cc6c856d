"""`mind review`, `mind trust` and `mind untrust`: decisions that only the user can make."""

from collections import Counter
from datetime import datetime
from itertools import groupby
from typing import Annotated

from mimo import when
from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, command
from mimo.errors import (
    AmbiguousId,
    Command,
    Conflict,
    Hint,
    Invalid,
    NotFound,
    Option,
    StorageFailed,
)
from mimo.features import review as reviewing
from mimo.features.review import (
    BOTH,
    BY_CHOICE,
    CHEAP,
    LISTED,
    Choice,
    Item,
    Resolved,
    Waiting,
    trusting,
)
from mimo.features.review.trusting import FirstLook, look_of, short, show_look
from mimo.frozen import frozen, replace
from mimo.guard.policy import Operation
from mimo.memory.ids import with_handles
from mimo.memory.merge import is_text
from mimo.memory.model import Kind
from mimo.operations.rows import (
    AlsoFrom,
    File,
    Limit,
    OfUser,
    Owner,
    SureId,
    Trust,
    TrustLabel,
    facts,
    file_of,
    owner_of,
    untrusted,
)
from mimo.project.memories import is_read_only
from mimo.rendering import (
    Part,
    Screen,
    accent,
    bad,
    dim,
    fitted,
    good,
    ident,
    path,
    strong,
    text_of,
    titled,
    warn,
)
from mimo.rendering.results import count, day, labels, render, tally

_FEW, _LINES = 3, 10
"""Items of a kind up to which each is written whole, and of more, those that have a line."""
_MOST_LINES = 12
"""Lines of one version that are shown in a list."""

Kinds = Annotated[tuple[Waiting, ...], Arg("Only items of this kind, such as stale or untrusted")]
OneKind = Annotated[Waiting | None, Arg("Kind of the item, if the memory has several")]
Ids = Annotated[
    tuple[str, ...],
    Arg("Ids of memories, or paths of other files (default: all)", complete="id"),
]


@frozen
class ReviewChoice:
    """One side of a conflict."""

    number: Annotated[int, Out("Its number for `mind review settle ID --take`, from 1")]
    text: str
    id: Annotated[Omitted[str], Out("Its id, if it is a memory of its own")] = None
    title: Omitted[str] = None
    created_at: Omitted[datetime] = None
    by: Omitted[str] = None
    trust: Omitted[Trust] = None
    obstacle: Annotated[Omitted[str], Out("Why it can't be taken")] = None


@frozen
class ReviewField:
    """Another field of the same merge with several versions."""

    field: str
    choices: tuple[ReviewChoice, ...]


@frozen
class ReviewItem:
    """One item that needs a decision."""

    kind: Waiting
    id: Annotated[Omitted[str], Out("The memory; omitted for an unreadable file")]
    type: Omitted[Kind]
    title: Omitted[str]
    why: Annotated[str, Out("Why it needs a decision")]
    field: Annotated[Omitted[str], Out("The field with several versions")]
    against: Annotated[Omitted[str], Out("The other memory of a pair")]
    choices: tuple[ReviewChoice, ...]
    others: Annotated[Omitted[tuple[ReviewField, ...]], Out("Other fields with several versions")]
    actions: Annotated[tuple[str, ...], Out("Commands that resolve it; choose one")]
    trust: Omitted[Trust]
    file: File
    line: Omitted[int]
    scope: Owner = None


@frozen
class Review:
    """The items that need a decision, most urgent first."""

    items: tuple[ReviewItem, ...]
    total: Annotated[int, Out("Number of items, before the limit")]
    counts: Annotated[dict[str, int], Out("Number of items of each kind")]
    arrived: Annotated[Omitted[FirstLook], Out("A summary of what is not approved here")] = None
    fading: Annotated[
        Omitted[int], Out("Number of fading memories, if they are not among the items")
    ] = None
    notice: Omitted[str] = None


@frozen
class SettledRow:
    """A resolved item and its result."""

    id: Omitted[str]
    title: Omitted[str]
    message: Annotated[str, Out("The result")]
    files: Annotated[tuple[str, ...], Out("Files that were changed")]
    left: Annotated[int, Out("Number of this memory's open items of the quickly found kinds")]
    notice: Omitted[str] = None


@frozen
class TrustState:
    """The trust in the project's files."""

    path: str
    trust: Annotated[str, Out("A description of the trust in the files here")]
    approved: Annotated[int, Out("Number of files whose current text is approved")]
    total: Annotated[int, Out("Number of files that can be approved")]
    changed: Annotated[Omitted[tuple[str, ...]], Out("The given ids")] = None
    left: Annotated[Omitted[FirstLook], Out("A summary of what is not approved yet")] = None


@command(
    "mind_review",
    cli="review",
    of_user=True,
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, StorageFailed),
    examples=("mind review", "mind review --kind stale", "mind review --user"),
)
def review(
    call: Call,
    *,
    kinds: Kinds = (),
    all: Annotated[bool, Arg("Include the items hidden on this machine")] = False,
    limit: Limit = 100,
    from_date: AlsoFrom = None,
    everywhere: OfUser = False,
) -> Review:
    """List items that need a decision, most urgent first

    These are unreadable files, versions that a merge left, competing decisions, contradictions, and
    memories that are not approved here, cite changed files or are near-duplicates. On a terminal it
    asks about them one by one; nothing is changed without an answer. Fading memories are counted;
    the kind `fading` lists them.
    """
    since = when.window(None, from_date, None, now=call.mind.local_now()).since
    items, counts = reviewing.first(call, kinds or LISTED, limit, with_hidden=all, since=since)
    arrived = look_of(call) if counts.get(Waiting.UNTRUSTED) else None
    if arrived and call.agent:
        arrived = replace(arrived, authors={})  # The names are the words of these authors.
    return Review(
        items=tuple(_row(call, item) for item in items),
        total=sum(counts.values()),
        counts={kind.value: number for kind, number in counts.items() if number},
        arrived=arrived,
        fading=None if kinds or since else reviewing.fading(call) or None,
        notice=call.notice,
    )


@command(
    "mind_review_settle",
    cli="review settle",
    of_user=True,
    effect=Effect.WRITE,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(Invalid, NotFound, AmbiguousId, Conflict, StorageFailed),
    examples=("mind review settle k3v7mq --take 2", "mind review settle k3v7mq --take both"),
)
def settle(
    call: Call,
    id: SureId,
    take: Annotated[str, Arg("Its number in `mind review`, or both", named=True)],
    *,
    against: Annotated[
        str | None, Arg("Other memory of the item, if the memory is in several", complete="id")
    ] = None,
    kind: OneKind = None,
    field: Annotated[str | None, Arg("Only this field, if several have versions")] = None,
) -> SettledRow:
    """Choose one of several versions or memories

    The chosen version of a field replaces the others in the file. A chosen memory supersedes the
    others. `both` keeps both texts, or both memories current.
    """
    done = reviewing.settle(call, id, take, against=against, kind=kind, field=field)
    return _settled(call, done)


@command(
    "mind_review_keep",
    cli="review keep",
    of_user=True,
    effect=Effect.WRITE,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(Invalid, NotFound, AmbiguousId, Conflict, StorageFailed),
    examples=("mind review keep k3v7mq --kind stale", "mind review keep k3v7mq --off"),
)
def keep(
    call: Call,
    id: SureId,
    *,
    kind: OneKind = None,
    off: Annotated[bool, Arg("Show it again")] = False,
) -> SettledRow:
    """Hide an item until it changes

    Only this machine remembers that; a fading memory is protected in its file instead.
    """
    return _settled(call, reviewing.keep(call, id, kind=kind, off=off))


def _row(call: Call, item: Item) -> ReviewItem:
    memory = facts(call, [item.record], ReviewItem)[0] if item.record else None
    draft = item.draft
    title = memory.title if memory else draft.content if draft else None
    if item.record and (item.kind is Waiting.OUTDATED or item.record.parent):
        title = item.record.origin  # Its file, not its first chunk.
    return ReviewItem(
        kind=item.kind,
        id=item.id,
        type=memory.type if memory else draft.type if draft else None,
        title=title,
        why=_why(call, item),
        field=item.field,
        against=item.against,
        choices=_choices(call, item),
        others=tuple(
            ReviewField(field=part.field or "", choices=_choices(call, part))
            for part in item.others
        )
        or None,
        actions=_actions(item),
        trust=_trust(call, item),
        file=file_of(call, item.file),
        line=item.line,
        scope=owner_of(call),
    )


def _trust(call: Call, item: Item) -> TrustLabel | None:
    """Returns the label of an item, which may name each of its memories; None without one."""
    if item.record is None:
        return None
    records = [choice.record for choice in item.choices if choice.record]
    return untrusted(call, item.record, *records) or TrustLabel.TRUSTED


def _why(call: Call, item: Item) -> str:
    """Returns the reason for an item; that of a note for all projects names its author."""
    if not (call.mind.is_users and item.record and item.kind is Waiting.UNTRUSTED):
        return item.why
    by = item.record.memory.by
    source = f"proposed for all projects by {short(by)}" if by else "pushed by another author"
    return f"{source}: no agent gets it until you approve it"


def _choices(call: Call, item: Item) -> tuple[ReviewChoice, ...]:
    return tuple(_choice(call, n, choice) for n, choice in enumerate(item.choices, 1))


def _choice(call: Call, number: int, choice: Choice) -> ReviewChoice:
    if choice.record is None:
        return ReviewChoice(number=number, text=choice.text)
    (memory,) = facts(call, [choice.record], ReviewChoice)
    return memory.row(
        ReviewChoice,
        number=number,
        text=choice.text,
        obstacle=choice.obstacle,
    )


def _actions(item: Item) -> tuple[str, ...]:
    """Returns the command lines that resolve an item."""
    name, kind = item.id or item.file, item.kind
    edit, remove = Command("edit", name), Command("rm", name)
    leave = Command("review keep", name, kind=kind.value)
    if kind in BY_CHOICE:
        takes = [
            str(number) for number, choice in enumerate(item.choices, 1) if not choice.obstacle
        ]
        if item.field is None or is_text(item.field):
            takes.append(BOTH)
        of_kind = None if item.field else kind.value
        settle: list[str] = [
            Command(
                "review settle",
                name,
                field=item.field,
                kind=of_kind,
                against=item.against,
                take=take,
            )
            for take in takes
        ]
        settle += [line for part in item.others for line in _actions(part)[:-1]]
        return (*settle, edit) if kind is Waiting.VERSIONS else tuple(settle)
    if kind is Waiting.PROPOSAL:
        return Command("sessions accept", name), Command("sessions reject", name)
    if item.record is None and kind is Waiting.UNTRUSTED:
        return Command("trust", name), leave
    actions: dict[Waiting, list[str]] = {
        Waiting.UNREADABLE: [f"repair {item.file} in an editor"],
        Waiting.UNTRUSTED: [
            *(Command("show", name), Command("trust", name)),
            *(() if is_read_only(item.file) else (remove,)),
            leave,
        ],
        Waiting.OUTDATED: [item.remedy or remove, remove, leave],
        Waiting.STALE: [edit, leave, remove],
        Waiting.FADING: [Command("keep", name), remove],
    }
    return tuple(dict.fromkeys(actions[kind]))


def _settled(call: Call, done: Resolved) -> SettledRow:
    settled_item = done.items[0]
    items = reviewing.waiting(call, CHEAP)
    return SettledRow(
        id=settled_item.id,
        title=settled_item.record.memory.heading if settled_item.record else settled_item.file,
        message=done.message,
        files=tuple(file_of(call, path) for path in done.files),
        left=sum(bool(set(item.ids) & set(settled_item.ids)) for item in items),
        notice=call.notice,
    )


@command(
    "mind_trust",
    cli="trust",
    of_user=True,
    effect=Effect.WRITE,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, NotFound, AmbiguousId, Conflict, StorageFailed),
    examples=(
        "mind trust --all",
        "mind trust k3v7mq p2wnxa",
        "mind trust .mind/policy.yaml",
        "mind trust --follow",
        "mind trust --mine",
    ),
)
def trust(
    call: Call,
    ids: Ids = (),
    *,
    all: Annotated[bool, Arg("Approve everything, without a terminal that asks")] = False,
    follow: Annotated[bool, Arg("Also approve later commits on the default branch")] = False,
    mine: Annotated[bool, Arg("Only memories whose last commit has your own address")] = False,
    digest: Annotated[
        str | None, Arg("Only if the text of the memory, or all texts, still have this digest")
    ] = None,
    everywhere: OfUser = False,
) -> TrustState:
    """Approve the current memories of this project

    Memory that came with a clone or a pull is another author's text. Until it is approved it is
    found and labelled, and never put into an agent's context. Texts that mind writes for you, and
    those that you commit in this clone under your own address, need no approval. Review them
    first: `mind review` lists the new memories and their authors. Procedures are approved too, but
    one that runs programs also asks when it first runs on a terminal.

    With --follow, later commits on the default branch are trusted too; the setting `trust.only`
    narrows that to some authors. Outside git, --follow trusts later edits. With --mine, memories
    that the history attributes to your own address are approved: for a fresh clone of your own
    repository, since anyone can write any address into a commit.
    """
    if (ids and follow) or (mine and (ids or follow)):
        raise Invalid("ids, `--follow` and `--mine` exclude each other", hint="give one of them")
    if digest is not None and (mine or len(ids) > 1):
        raise Invalid("`--digest` is of one memory or of all texts", hint="give one id, or none")
    waits = bool(call.mind.config.waiting)
    if ids:
        trusting.approve(call, ids, digest=digest)
    elif mine:
        trusting.approve_own(call)
    else:
        if not (all or follow or digest) and (look := look_of(call)):
            what = count(look.memories, "memory", "memories") if look.memories else "files"
            raise Invalid(
                f"this would approve {what} unseen",
                hint=Hint(
                    Command("review", user=call.mind.is_users or None),
                    " lists them; ",
                    Option(all=True),
                    " approves all of them",
                ),
            )
        trusting.approve_all(call, follow=follow, digest=digest)
    if waits:  # The settings that were approved may name more memories.
        call = call.on(call.mind.reopened())
        if all:
            trusting.approve_all(call, follow=follow)
    return _state(call, ids)


@command(
    "mind_untrust",
    cli="untrust",
    of_user=True,
    effect=Effect.WRITE,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, NotFound, AmbiguousId, StorageFailed),
    examples=("mind untrust", "mind untrust k3v7mq"),
)
def untrust(call: Call, ids: Ids = (), *, everywhere: OfUser = False) -> TrustState:
    """Revoke approvals of this project, or of some memories"""
    if ids:
        trusting.revoke(call, ids)
    else:
        call.mind.trust.forget()
    return _state(call, ids)


def _state(call: Call, ids: tuple[str, ...]) -> TrustState:
    names = trusting.approvals(call)
    return TrustState(
        path=str(call.mind.project.root),
        trust=trusting.describe(call),
        approved=sum(map(call.mind.trust.approved, names)),
        total=len(names),
        changed=ids or None,
        left=look_of(call),
    )


@render.register
def _(result: Review, screen: Screen) -> None:
    if not result.total:
        screen.line(good("✓ "), "nothing to review")
        _show_fading(result, screen)
        return
    if result.arrived:
        show_look(result.arrived, screen)
        screen.blank()
    for kind, items in groupby(result.items, key=lambda item: item.kind):
        _show_kind(kind, list(items), screen, is_alone=len(result.counts) == 1)
    cut = len(result.items) < result.total
    suffix = f"; the most urgent {len(result.items):,} are shown" if cut else ""
    screen.line(dim(f"to review: {tally(result.counts)}{suffix}"))
    _show_fading(result, screen)


def _show_kind(kind: Waiting, items: list[ReviewItem], screen: Screen, *, is_alone: bool) -> None:
    """Writes the items of a kind: many in a line each, or the first ones if they need a choice."""
    of_id = {item.id or item.file: item for item in items}
    if len(items) <= _FEW or kind in BY_CHOICE:
        for item in items if is_alone else items[:_FEW]:
            show_item(item, screen)
            for action in item.actions:
                screen.line(accent(with_handles(_shortened(action, item, screen))), indent=2)
            screen.blank()
        if len(items) > _FEW and not is_alone:
            screen.line(f"and {len(items) - _FEW:,} more: ", accent(f"mind review --kind {kind}"))
            screen.blank()
        return
    ((usual, number),) = Counter(item.why for item in items).most_common(1)
    usual = usual if number > 1 else ""
    screen.line(warn(kind), dim(f"  {with_handles(usual)}" if usual else ""))
    for item in list(of_id.values())[:_LINES]:
        why = dim("" if item.why == usual else f"  {with_handles(item.why)}")
        name: list[Part] = [ident(item.id), "  "] if item.id else []
        screen.line(*name, titled(short(item.title or item.file)), fitted(why), indent=2)
    if (more := len(of_id) - _LINES) > 0:
        screen.line(dim(f"and {more:,} more"), indent=2)
    example = next((item for item in items if item.id), items[0])
    actions = (_shortened(action, example, screen) for action in example.actions)
    screen.line(dim("each by its id, such as "), accent(with_handles("; ".join(actions))), indent=2)
    screen.blank()


def _shortened(action: str, item: ReviewItem, screen: Screen) -> str:
    """Returns a command with the handles of the memories, also if mind did not make an id."""
    ids = filter(None, (item.id, item.against))
    handles = {id: text_of(screen.resolved(ident(id))) for id in ids}
    return " ".join(handles.get(word, word) for word in action.split(" "))


def _show_fading(result: Review, screen: Screen) -> None:
    if result.fading:
        fade = count(result.fading, "memory fades", "memories fade")
        screen.line(dim(f"{fade}; "), accent("`mind fading`"), dim(" lists them"))


@render.register
def _(result: SettledRow, screen: Screen) -> None:
    screen.line(good("✓ "), strong(short(result.title or result.id or "")))
    screen.line(result.message, indent=2)
    for file in result.files:
        screen.line(dim("changed "), path(file), indent=2)
    if result.left:
        screen.line(f"{count(result.left, 'item')} of it left to review", indent=2)


def show_item(item: ReviewItem, screen: Screen) -> None:
    """Writes one item, without its commands."""
    trust = item.trust or TrustLabel.TRUSTED
    marks = labels(trust=trust) if item.kind is not Waiting.UNTRUSTED else []
    is_urgent = item.kind in (Waiting.UNREADABLE, Waiting.VERSIONS, Waiting.DECISIONS)
    kind = bad(item.kind) if is_urgent else warn(item.kind)
    title = short(item.title or item.file) if item.kind is not Waiting.PROPOSAL else item.type or ""
    screen.line(kind, "  ", strong(title), *marks)
    if item.kind is Waiting.PROPOSAL:
        screen.text(item.title or "", indent=2)
    screen.line(with_handles(item.why), indent=2)
    place = f"{item.file}:{item.line}" if item.line else item.file
    is_choice = any(choice.id == item.id for choice in item.choices)
    about: list[Part] = [ident(item.id), "  "] if item.id and not is_choice else []
    screen.line(*about, path(place), indent=2)
    fields = [ReviewField(field=item.field or "", choices=item.choices), *(item.others or ())]
    for versions in fields:
        if item.others:
            screen.line(dim(f"{versions.field}:"), indent=2)
        for choice in versions.choices:
            _show_choice(choice, screen)


def _show_choice(choice: ReviewChoice, screen: Screen) -> None:
    number = strong(f"{choice.number}. ")
    if choice.id:
        by = f" by {choice.by}" if choice.by else ""
        origin = f"  {day(choice.created_at)}{by}" if choice.created_at else ""
        marks = labels(trust=choice.trust or TrustLabel.TRUSTED)
        title = strong(short(choice.title or ""))
        screen.line(number, ident(choice.id), "  ", title, dim(short(origin)), *marks, indent=2)
        return
    lines = (choice.text or "(nothing)").splitlines()
    screen.line(number, lines[0], indent=2)
    for line in lines[1:_MOST_LINES]:
        screen.line(line, indent=5)
    if len(lines) > _MOST_LINES:
        screen.line(dim(f"… {len(lines) - _MOST_LINES} more lines"), indent=5)


@render.register
def _(result: TrustState, screen: Screen) -> None:
    screen.line(good("✓ "), strong(result.trust))
    if result.left:
        show_look(result.left, screen)
    if result.left and result.left.memories:
        screen.line(dim("review them with "), accent("`mind review --kind untrusted`"), indent=2)
