"""`mind sessions propose`: memories that may follow from what the user wrote in sessions."""

from datetime import datetime
from functools import partial
from typing import Annotated

from mimo.api import (
    BELOW,
    Arg,
    Call,
    Denied,
    Effect,
    Invalid,
    Item,
    Kind,
    Limit,
    Needs,
    NotFound,
    Omitted,
    Operation,
    Out,
    Screen,
    SecretDetected,
    StorageFailed,
    Waiting,
    accent,
    age,
    count,
    dim,
    earlier,
    for_people,
    frozen,
    good,
    ident,
    render,
    replace,
    rows,
    saving,
    strong,
)
from mimo.extensions.sessions import drafts, store, turning_on
from mimo.extensions.sessions.indexing import sessions_of
from mimo.extensions.sessions.proposals import Proposal

_command = partial(for_people, needs_project=True)

ProposalIds = Annotated[tuple[str, ...], Arg("Ids of proposals")]


@frozen
class ProposalRow:
    """A sentence that may become a memory."""

    id: str
    type: Annotated[Kind, Out("The type of the memory")]
    text: str
    cue: Annotated[str, Out("Its cue: `decide`, `rule`, `prefer`, `correct` or `mend`")]
    source: Annotated[str, Out("The session and the turn")]
    sessions: Annotated[int, Out("Number of sessions that have it")]
    date: Annotated[Omitted[datetime], Out("When the user last wrote it")] = None


@frozen
class Proposed:
    """The proposals that wait, best first."""

    proposals: tuple[ProposalRow, ...]
    has_more: Annotated[bool, Out("Whether others wait after them")] = False
    notice: Omitted[str] = None


@frozen
class Accepted:
    """The memories that were saved."""

    ids: Annotated[tuple[str, ...], Out("Their ids")]
    titles: tuple[str, ...]
    files: tuple[str, ...]
    notice: Omitted[str] = None


@frozen
class Rejected:
    """The proposals that were rejected."""

    ids: tuple[str, ...]
    never: Annotated[bool, Out("Whether they are never proposed again")]


@_command(
    "mind_sessions_propose",
    cli="sessions propose",
    effect=Effect.READ,
    needs=Needs(Operation.READ, person=True),
    errors=(Invalid, Denied, NotFound, StorageFailed),
    examples=("mind sessions propose", "mind sessions propose cc-1ccba294"),
)
def propose(
    call: Call,
    session: Annotated[str | None, Arg("Only of this session", complete="session")] = None,
    *,
    limit: Limit = drafts.LIMIT,
) -> Proposed:
    """List sentences of sessions that may become memories

    Decisions, rules, preferences and corrections that the user wrote, and failures whose cause the
    agent stated. They are found by their words, without a language model: of ten, about six are of
    use, and three can be kept as they are. Nothing is saved unless the user accepts it. With
    `sessions.propose on`, `mind review` asks about each.
    """
    turning_on.check(call)
    chosen = None
    if session:
        with sessions_of(call.mind).store.reading() as sql:
            chosen = store.find(sql, session)
    proposals = tuple(map(_row, drafts.waiting(call, limit + 1, chosen)))
    notice = None if proposals else "nothing is proposed"
    return Proposed(proposals=proposals[:limit], has_more=len(proposals) > limit, notice=notice)


@_command(
    "mind_sessions_accept",
    cli="sessions accept",
    effect=Effect.WRITE,
    errors=(Invalid, Denied, NotFound, SecretDetected, StorageFailed),
    examples=(
        "mind sessions accept p3fa91c2",
        'mind sessions accept p3fa91c2 --text "Use pnpm, never npm"',
    ),
)
def accept(
    call: Call,
    ids: ProposalIds,
    *,
    text: Annotated[str | None, Arg("The memory's text, if it is another one")] = None,
    type: Annotated[Kind | None, Arg("Its type, if it is another one")] = None,
    everywhere: Annotated[bool, Arg("Keep them for all projects", wire="user")] = False,
) -> Accepted:
    """Save proposals as memories

    `mind undo` removes the memory, and the proposal waits again.
    """
    turning_on.check(call)
    proposals = drafts.named(call, ids)
    if text is not None and len(proposals) > 1:
        raise Invalid("a text is that of one memory", hint="give one id")
    saved = []
    for proposal in proposals:
        memory = drafts.memory_of(proposal, text or "")
        memory = replace(memory, type=type or memory.type)
        saving.check_secrets(call, {"text": memory.content})
        saved.append(saving.store_once(call, memory).record)
        verdict = f"{drafts.ACCEPTED} {saved[-1].memory.id}"
        drafts.drafts_of(call.origin).decide([proposal], verdict, call.mind.now())
    return Accepted(
        ids=tuple(record.memory.id for record in saved),
        titles=tuple(record.memory.heading for record in saved),
        files=tuple(rows.file_of(call, record.place.path) for record in saved),
        notice=call.notice,
    )


@_command(
    "mind_sessions_reject",
    cli="sessions reject",
    effect=Effect.WRITE,
    errors=(Invalid, Denied, NotFound, StorageFailed),
    examples=("mind sessions reject p3fa91c2", "mind sessions reject p3fa91c2 --never"),
)
def reject(
    call: Call,
    ids: ProposalIds,
    *,
    never: Annotated[bool, Arg("Not even if it is repeated")] = False,
) -> Rejected:
    """Reject proposals, and those of their kind a little

    A rejected sentence is proposed again only if a later session has it.
    """
    turning_on.check(call)
    proposals = drafts.named(call, ids)
    verdict = drafts.NEVER if never else drafts.REJECTED
    drafts.drafts_of(call.mind).decide(proposals, verdict, call.mind.now())
    return Rejected(ids=tuple(proposal.id for proposal in proposals), never=never)


def items(call: Call) -> list[Item]:
    """Returns the proposals for a review of the user, none unless the user's settings ask for them.

    Raises `StorageFailed`.
    """
    config = call.mind.config
    is_asked = earlier.is_on(call.mind) and config["sessions.propose"] == "on"
    if not is_asked or call.agent or not call.sees_sessions or not call.mind.has_project:
        return []
    return [
        Item(
            kind=Waiting.PROPOSAL,
            why=_why(call, proposal),
            file=proposal.source,
            evidence=proposal.id,
            draft=replace(drafts.memory_of(proposal), id=proposal.id),
        )
        for proposal in drafts.waiting(call)
    ]


def _why(call: Call, proposal: Proposal) -> str:
    if proposal.sessions > 1:
        where = ", also of other projects" if proposal.is_general else ""
        return f"in {proposal.sessions} sessions{where} ({proposal.family})"
    time = proposal.latest
    day = f" on {time.astimezone(call.mind.zone):%Y-%m-%d}" if time else ""
    return f"{proposal.family}{day}"


def _row(proposal: Proposal) -> ProposalRow:
    return ProposalRow(
        id=proposal.id,
        type=proposal.type,
        text=proposal.text,
        cue=proposal.family.value,
        source=proposal.source,
        sessions=proposal.sessions,
        date=proposal.latest,
    )


@render.register
def _(result: Proposed, screen: Screen) -> None:
    for row in result.proposals:
        often = f"in {row.sessions} sessions" if row.sessions > 1 else ""
        when = age(row.date, screen) if row.date else ""
        screen.line(ident(row.id), "  ", strong(row.type), dim("  "), row.text)
        facts = filter(None, (row.cue, row.source, when, often))
        screen.line(dim("  ".join(facts)), indent=BELOW)
    if result.proposals:
        many = count(len(result.proposals), "proposal")
        many = f"{many}, more wait" if result.has_more else many
        screen.line(dim(f"{many}; "), accent("`mind sessions accept ID`"), dim(" saves one"))


@render.register
def _(result: Accepted, screen: Screen) -> None:
    for id, title, file in zip(result.ids, result.titles, result.files, strict=True):
        screen.line(good("saved "), ident(id), "  ", strong(title), dim(f"  {file}"))


@render.register
def _(result: Rejected, screen: Screen) -> None:
    how = " and never proposed again" if result.never else ""
    ids = [part for id in result.ids for part in (ident(id), " ")]
    screen.line(good("rejected "), *ids, dim(how))
