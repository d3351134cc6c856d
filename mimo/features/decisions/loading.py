"""`mind load …`: the last checkpoint, and a decision with its links; MAMA's decision tools."""

from datetime import datetime
from typing import Annotated

from mimo.call import Call
from mimo.call.spec import Arg, Effect, Json, Omitted, Out, command
from mimo.errors import (
    AmbiguousId,
    Command,
    Conflict,
    Hint,
    Invalid,
    NotFound,
    SearchFailed,
    SecretDetected,
    StorageFailed,
    join_texts,
)
from mimo.features import decisions
from mimo.features.decisions import Whose
from mimo.features.decisions.commands import Evolved
from mimo.features.decisions.commands import outcome as evolve_outcome
from mimo.frozen import frozen, replace
from mimo.memory.ids import with_handles
from mimo.memory.model import (
    MAX_CONTENT_BYTES,
    SUPERSEDES,
    Filter,
    Kind,
    Record,
    Section,
    topic_key,
)
from mimo.memory.outcomes import outcome_of
from mimo.memory.relations import MAX_DEPTH, Graph
from mimo.operations import finding, lookup, searching
from mimo.operations.disclosure import may_quote
from mimo.operations.rows import (
    Competing,
    Facts,
    Limit,
    LinkedMemory,
    Remembered,
    Trust,
    TrustLabel,
    Untrusted,
    linked_memories,
    remembered,
    row_of,
    rows,
    trust_of,
    untrusted,
    view,
)
from mimo.rendering import (
    BELOW,
    LEAST_OF_A_TITLE,
    Screen,
    bad,
    dim,
    fitted,
    ident,
    path,
    strong,
    warn,
)
from mimo.rendering.results import (
    after_title,
    age,
    because_of,
    day,
    first_lines,
    labels,
    render,
    row_labels,
    tagged,
    without_title,
)
from mimo.text import calendar, phrases

CONTEXT_DEPTH = 2
MOST_RELATED = 50
"""Linked memories in an answer."""

MOST_RECENT = 5
"""New memories beside a checkpoint."""


@view("id type title created_at outcome status warning superseded_by private")
class RecentMemory(Facts):
    """A new memory."""


@frozen
class Checkpoint:
    """The checkpoint to resume from."""

    summary: Annotated[str | None, Out("Finished work; null without a checkpoint")]
    open_files: tuple[str, ...]
    next_steps: Annotated[Json, Out("A text or a list of steps, as given; null if none")]
    timestamp: datetime | None
    id: Omitted[str] = None
    age: Annotated[Omitted[str], Out("Its age in words")] = None
    made: Annotated[
        Omitted[Whose], Out("Where it was made: this branch, this machine or elsewhere")
    ] = None
    branch: Omitted[str] = None
    by: Annotated[Omitted[str], Out("The program that saved it")] = None
    author: Annotated[Omitted[str], Out("Author of its commit, if it was made elsewhere")] = None
    trust: Omitted[Trust] = None
    file: Omitted[str] = None
    recent: Annotated[
        Omitted[tuple[RecentMemory, ...]],
        Out("Approved memories made since then, newest first; without a checkpoint, the newest"),
    ] = None
    origin: Annotated[Omitted[str], Out(wire="notice")] = None


@frozen
class RelatedLink:
    """A link between two memories; the source holds it, and the link has its trust."""

    source: str
    target: str
    type: str
    trust: Untrusted
    given: Annotated[Omitted[str], Out("The words given for the type")] = None


@frozen
class Context:
    """A whole memory, and the memories linked with it."""

    memory: Remembered
    related: tuple[LinkedMemory, ...]
    links: tuple[RelatedLink, ...]
    missing: Annotated[tuple[str, ...], Out("Link targets that do not exist")]
    competing: Competing
    notice: Omitted[str] = None


@command(
    "load/checkpoint",
    effect=Effect.READ,
    has_budget=True,
    toolset="load",
    examples=("mind load checkpoint", "mind load checkpoint --json"),
    description="""\
Use when: work resumes, "continue from yesterday". Shows where it stopped, open files, next steps.
Don't use for: what happened lately → search/recent""",
    title="Resume work",
)
def checkpoint(call: Call) -> Checkpoint:
    """Show the checkpoint to resume from

    The newest one made on this machine and branch, else one made on this machine, else one of
    another author, with the author's name and its age.
    """
    resumed = decisions.latest_checkpoint(call)
    if resumed is None:
        return Checkpoint(
            summary=None,
            open_files=(),
            next_steps=None,
            timestamp=None,
            recent=_recent(call, None),
            origin=Hint("no checkpoint yet; ", Command("save checkpoint"), " makes one"),
        )
    call.count_uses([resumed.record])
    memory = resumed.record.memory
    steps = phrases.steps_of(memory.sections.get(Section.NEXT_STEPS, ""))
    age = calendar.age(memory.created, call.mind.now())
    origin = None
    if resumed.whose is Whose.MACHINE:
        where = f"branch {resumed.branch}" if resumed.branch else "this machine"
        origin = f"made on {where}, {age}"
    elif resumed.whose is Whose.ELSEWHERE:
        origin = f"made elsewhere by {resumed.author or 'an unknown author'}, {age}"
    return Checkpoint(
        summary=memory.content,
        open_files=phrases.items_of(memory.sections.get(Section.OPEN_FILES, "")),
        next_steps=list(steps) if isinstance(steps, tuple) else steps,
        timestamp=memory.created,
        id=memory.id,
        age=age,
        made=resumed.whose,
        branch=resumed.branch,
        by=memory.by,
        author=resumed.author,
        trust=trust_of(call, resumed.record),
        file=resumed.record.place.path,
        recent=_recent(call, resumed.record),
        origin=origin,
    )


def _recent(call: Call, checkpoint: Record | None) -> tuple[RecentMemory, ...] | None:
    """Returns the newest memories after a checkpoint; None if there are none."""
    since = checkpoint.memory.created if checkpoint else None
    conditions = Filter(since=since, approved=True)
    records = finding.newest(call, conditions, MOST_RECENT + 1, documents=False)
    new = [record for record in records if record != checkpoint][:MOST_RECENT]
    return rows(call, new, RecentMemory) or None


@command(
    "load/context",
    effect=Effect.READ,
    has_budget=True,
    toolset="load",
    errors=(NotFound, AmbiguousId),
    examples=("mind load context", "mind load context auth_strategy", "mind load context k3v7mq"),
    description="""\
Use when: you have an id or topic, or a result was cut. Loads the whole decision with its reasons,
what it replaced, and links.
Don't use for: questions → search/by_context""",
    title="Load a decision",
)
def context(
    call: Call,
    id: Annotated[
        str | None,
        Arg(
            "Id or short id of a memory, or topic of a decision (default: the newest decision or"
            " checkpoint)",
            agents="Id or topic (default: the newest)",
            alias=("topic", "memory_id", "decision_id"),
            complete="id",
        ),
    ] = None,
) -> Context:
    """Show a whole decision, with linked memories

    If several decisions compete on a topic, the newest is shown, with the ids of the others.
    """
    record = _newest_work(call) if id is None else decisions.newest(call, id)
    call.count_uses([record])
    around = finding.linked(call, [record.memory.id], depth=CONTEXT_DEPTH, limit=MOST_RELATED + 1)
    (row,) = remembered(call, [record], limit=MAX_CONTENT_BYTES)
    return Context(
        memory=replace(row, updated_at=lookup.updated_at(call, record)),
        related=linked_memories(call, [node for node in around.nodes if node.depth]),
        links=links_in(call, around),
        missing=_missing(call, around),
        competing=row.competing,
        notice=f"only the nearest {MOST_RELATED} are listed" if around.cut else None,
    )


def _missing(call: Call, around: Graph) -> tuple[str, ...]:
    """Returns the missing targets of links; an agent gets those of approved memories only."""
    nodes = (node.record for node in around.nodes if may_quote(call, node.record.place.approval))
    named = {link.to for record in nodes for link in record.memory.links}
    return tuple(target for target in around.missing if target in named)


def _newest_work(call: Call) -> Record:
    """Returns the newest approved decision or checkpoint. Raises `NotFound`."""
    kinds = Filter(types=frozenset({Kind.DECISION, Kind.CHECKPOINT}), approved=True)
    records = finding.listing(call, finding.Options(filter=kinds, limit=1)).records
    if not records:
        raise NotFound(
            "there is no approved decision or checkpoint yet",
            hint=Hint(Command("save decision"), " and ", Command("save checkpoint"), " make one"),
        )
    return records[0]


def links_in(call: Call, around: Graph, *, with_words: bool = True) -> tuple[RelatedLink, ...]:
    """Returns the links of a graph, with the words for their types unless `with_words` is off."""
    trust = {node.record.memory.id: untrusted(call, node.record) for node in around.nodes}
    return tuple(
        row_of(
            edge,
            RelatedLink,
            trust=trust[edge.source],
            given=edge.given if with_words else None,
        )
        for edge in around.edges
    )


# The decision tools of MAMA 1.0: MCP clients can call them, but they are not listed.


@frozen
class History:
    """The decisions on a topic."""

    success: bool = True
    history: Annotated[tuple[Remembered, ...], Out("Newest first")]
    message: str


@frozen
class Suggestions:
    """Decisions that are relevant to a question."""

    success: bool = True
    suggestions: Annotated[tuple[Remembered, ...], Out("Best first")]
    message: str


@frozen
class DecisionList:
    """The current decisions."""

    success: bool = True
    list: Annotated[tuple[Remembered, ...], Out("Newest first")]
    count: int


@frozen
class OutcomeUpdate:
    """The result of recording an outcome."""

    success: bool = True
    evolved: Evolved
    message: Omitted[str] = None


@command(
    "recall_decision",
    effect=Effect.READ,
    toolset="legacy",
    instead="search/by_topic",
)
def recall_decision(
    call: Call, topic: Annotated[str, Arg("The topic of the decisions")]
) -> History:
    """Show the history of the decisions on a topic"""
    on_topic = _on_topic(call, topic)
    if not on_topic:
        # As the old tool did: a topic with the same first word.
        stem = topic_key(topic).partition("_")[0]
        near = [name for name in call.index.nearest_topics(topic) if stem]
        same = next((name for name in near if topic_key(name).startswith(stem)), None)
        on_topic = _on_topic(call, same)
    ids = [record.memory.id for record in on_topic]
    chain = finding.linked(call, ids, depth=MAX_DEPTH, types=(SUPERSEDES,))
    records = chain.newest_first()
    call.count_uses(records)
    message = f"{len(records)} on `{topic}`" if records else f"no decision on `{topic}`"
    return History(history=remembered(call, records), message=message)


def _on_topic(call: Call, topic: str | None) -> tuple[Record, ...]:
    if not topic:
        return ()
    conditions = Filter(types=frozenset({Kind.DECISION}), topic=topic)
    return finding.listing(call, finding.Options(filter=conditions)).records


@command(
    "suggest_decision",
    effect=Effect.READ,
    toolset="legacy",
    errors=(Invalid, SearchFailed),
    instead="search/by_context",
)
def suggest_decision(
    call: Call,
    question: Annotated[str, Arg("The question", wire="userQuestion", alias=("question", "query"))],
    *,
    limit: Limit = 5,
    recency_weight: Annotated[
        float | None, Arg("Ignored", wire="recencyWeight", ge=0, le=1)
    ] = None,
) -> Suggestions:
    """Find the decisions that are relevant to a question"""
    conditions = Filter(types=frozenset({Kind.DECISION}))
    matches = searching.search(call, question, finding.Options(filter=conditions, limit=limit))
    rows = remembered(call, [hit.record for hit in matches.hits])
    message = f"{len(rows)} relevant to the question"
    return Suggestions(suggestions=rows, message=join_texts(message, matches.notice) or "")


@command("list_decisions", effect=Effect.READ, toolset="legacy", instead="search/recent")
def list_decisions(call: Call, *, limit: Limit = 20) -> DecisionList:
    """List the current decisions"""
    conditions = Filter(types=frozenset({Kind.DECISION}), current=True)
    rows = remembered(
        call, finding.listing(call, finding.Options(filter=conditions, limit=limit)).records
    )
    return DecisionList(list=rows, count=len(rows))


@command(
    "update_outcome",
    effect=Effect.WRITE,
    toolset="legacy",
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, Conflict, StorageFailed),
    instead="evolve/outcome",
)
def update_outcome(
    call: Call,
    id: Annotated[
        str,
        Arg("Id or topic of the decision", wire="decisionId", alias=("topic", "id", "decision_id")),
    ],
    outcome: Annotated[str, Arg("One of SUCCESS, FAILED, PARTIAL and pending, in any case")],
    *,
    failure_reason: Annotated[str | None, Arg("Why it failed", alias="reason")] = None,
    limitation: Annotated[str | None, Arg("Limitation of a partial success")] = None,
) -> OutcomeUpdate:
    """Mark how a decision turned out"""
    value = outcome_of(outcome)
    reason = "\n".join(text for text in (failure_reason, limitation) if text) or None
    evolved = evolve_outcome(call, id, value.value if value else "PENDING", reason)
    message = None
    if outcome.strip().casefold() == "superseded" and not finding.successor(call, evolved.id):
        message = "save the decision that replaces it with evolve/supersede"
    return OutcomeUpdate(evolved=evolved, message=message)


@render.register
def _(result: Checkpoint, screen: Screen) -> None:
    if result.summary is None:
        screen.line("no checkpoint")
        screen.note(result.origin or "")
        _write_recent(screen, "The newest memories", result.recent)
        return
    where = f" on {result.branch}" if result.branch else ""
    by = f" by {result.by}" if result.by else ""
    marks = labels(trust=result.trust or TrustLabel.TRUSTED)
    screen.line(strong(f"Checkpoint, {result.age}{where}{by}"), *marks)
    if result.origin:
        screen.line(warn(result.origin))
    screen.blank()
    screen.markdown(result.summary)
    _list(screen, "Next steps", result.next_steps)
    _list(screen, "Open files", list(result.open_files))
    _write_recent(screen, "New since then", result.recent)
    if result.id:
        screen.blank()
        screen.line(ident(result.id), "  ", path(result.file or ""))


def _write_recent(screen: Screen, title: str, rows: tuple[RecentMemory, ...] | None) -> None:
    if not rows:
        return
    screen.blank()
    screen.line(strong(title))
    for row in rows:
        about = dim(f"  {age(row.created_at, screen):>4}  ")
        named = fitted(row.title, LEAST_OF_A_TITLE)
        screen.line(ident(row.id), about, named, *row_labels(row, brief=True), indent=2)


def _list(screen: Screen, title: str, items: object) -> None:
    """Writes a list, or a text, under a title."""
    if not items:
        return
    screen.blank()
    screen.line(strong(title))
    if isinstance(items, str):
        screen.markdown(items)
        return
    for item in items if isinstance(items, list) else []:
        head, *more = str(item).splitlines() or [""]
        screen.line(f"- {head}", indent=2)
        for line in more:
            screen.line(line, indent=4)


@render.register
def _(result: Context, screen: Screen) -> None:
    show(result.memory, screen, in_full=True)
    if result.related:
        screen.blank()
        screen.line(strong("Linked"))
    links = {(link.source, link.target): link.type for link in result.links}
    for neighbour in result.related:
        out = links.get((result.memory.id, neighbour.id))
        back = links.get((neighbour.id, result.memory.id))
        arrow = f"{out} → " if out else f"← {back} " if back else "· "
        indent = 2 * neighbour.depth
        title = fitted(neighbour.title, LEAST_OF_A_TITLE)
        when = dim(f"  {age(neighbour.created_at, screen)}")
        marks = row_labels(neighbour, brief=True)
        screen.line(dim(arrow), ident(neighbour.id), "  ", title, when, *marks, indent=indent)
        if neighbour.warning:
            screen.line(bad(with_handles(neighbour.warning)), indent=indent + 2)
    for target in result.missing:
        screen.line(dim(f"links to {target}, which is missing"), indent=2)


def show(row: Remembered, screen: Screen, *, in_full: bool = False) -> None:
    """Writes one memory with everything that shows whether it is still valid."""
    screen.line(ident(row.id), "  ", strong(row.title), *row_labels(row))
    if row.warning:
        screen.text(with_handles(row.warning), indent=BELOW)
    about = (row.type, row.topic, day(row.created_at), tagged(row.tags), row.by)
    screen.line(fitted(dim("  ".join(part for part in about if part))), indent=BELOW)
    text = after_title(row.content, row.title)
    if in_full:
        if text := without_title(row.content, row.title):
            screen.blank()
            screen.markdown(text)
        if row.reasoning:
            screen.blank()
            screen.line(strong("Reasoning"))
            screen.markdown(row.reasoning)
        return
    if text:
        screen.text(first_lines(text), indent=BELOW)
    if row.reasoning:
        screen.text(because_of(first_lines(row.reasoning.strip())), indent=BELOW)
